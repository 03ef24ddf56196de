"""What a reading process gives up before it reads its first byte: the network, memory, its way out.

Called once, by the reading process itself, while it has one thread. It must never be called in the program:
nothing here can be taken back.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import resource
import select
import signal
import struct
import sys
from typing import Any, NamedTuple

_OPEN_FILES = 256
"""Room for a parser and for LibreOffice, none for a flood."""

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_IF_NOT_LESS = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | 1  # SECCOMP_RET_ERRNO, EPERM
_CALL, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Where `struct seccomp_data` has them."""

_X32_CALLS = 0x40000000
_AF_UNIX = 1


class _Calls(NamedTuple):
    """Numbers of system calls of one architecture."""

    architecture: int
    socket: int
    denied: tuple[int, ...]
    """`setsid setpgid` (out of the process group), `io_uring_setup` (calls past the filter),
    `ptrace process_vm_readv process_vm_writev` (into other processes)."""


_CALLS = {
    "x86_64": _Calls(0xC000003E, 41, (112, 109, 425, 101, 310, 311)),
    "aarch64": _Calls(0xC00000B7, 198, (157, 154, 425, 117, 270, 271)),
}


def give_up_network() -> tuple[str, ...]:
    """Cut the process, and whatever it starts, off the network, in every way that the kernel allows.

    Returns:
        What holds: `namespace` (no interface but a dead loopback), `filter` (no socket but local ones; nor a
        way out of the process group), `python` (no socket made by Python code), the last one always.
    """
    ways = []
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if _own_namespace(libc):
            ways.append("namespace")
        if _filter_calls(libc):
            ways.append("filter")
    sys.addaudithook(_no_sockets)
    return (*ways, "python")


def _own_namespace(libc: ctypes.CDLL) -> bool:
    """A network of its own with nothing in it, and users of its own, so that root is root no more."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        # Without the maps everything works too; files would just seem to be nobody's.
        with contextlib.suppress(OSError):
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{user} {user} 1")
            _write("/proc/self/gid_map", f"{group} {group} 1")
        return True
    return bool(libc.unshare(_CLONE_NEWNET) == 0)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # noqa: PTH123 - a kernel file, written in one call
        file.write(text)


def _filter_calls(libc: ctypes.CDLL) -> bool:
    """Let the kernel refuse sockets of the network and a way out of the group, to children too."""
    calls = _CALLS.get(platform.machine())
    if calls is None or sys.maxsize < 2**32:
        return False
    program = _filter_program(calls)
    code = ctypes.create_string_buffer(program, len(program))

    class _Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    loaded = _Program(len(program) // 8, ctypes.addressof(code))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(loaded), 0, 0) == 0)


def _filter_program(calls: _Calls) -> bytes:
    """The filter, as the kernel's small machine reads it: eight bytes a step, jumps counted from the next."""
    denied = calls.denied
    refuse = len(denied) + 5
    steps = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE),
        (_JUMP_IF_EQUAL, 0, refuse + 1, calls.architecture),
        (_LOAD_WORD, 0, 0, _CALL),
        (_JUMP_IF_NOT_LESS, refuse - 1, 0, _X32_CALLS),
        *((_JUMP_IF_EQUAL, refuse - 2 - index, 0, number) for index, number in enumerate(denied)),
        (_JUMP_IF_EQUAL, 0, 2, calls.socket),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_IF_EQUAL, 0, 1, _AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _no_sockets(event: str, arguments: tuple[Any, ...]) -> None:
    del arguments
    if event.startswith("socket."):
        raise PermissionError("a reading process has no network")


def limit_resources(max_memory_mb: int, max_file_mb: int) -> None:
    """Bound address space, files written and open, and leave no core.

    Args:
        max_memory_mb: Address space, in MiB.
        max_file_mb: The size of what is read; a file that is written may be four times that.
    """
    memory = max_memory_mb * 1024 * 1024
    written = max_file_mb * 4 * 1024 * 1024
    for limit, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, written),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
    ):
        _, hard = resource.getrlimit(limit)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # A system that cannot bound this one (macOS: address space) still has the others and the clock.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (bound, bound))


def allow_seconds(seconds: float) -> None:
    """Let this process work so many more seconds of processor time before the kernel ends it."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 1, hard))


def die_with_program(lifeline: int) -> None:
    """Have the kernel kill the whole process group when the program is gone, however it went.

    Args:
        lifeline: The reading end of a pipe whose other end the program alone holds, and never writes to.
    """
    if not hasattr(fcntl, "F_SETSIG"):
        return
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    waiting = select.poll()
    waiting.register(lifeline, select.POLLIN)
    if waiting.poll(0):
        os.killpg(0, signal.SIGKILL)
