"""The reading process under parsers that crash, hang, eat, lie and reach out: real processes, real holes."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chatproc.attachments.isolation import DOCUMENTS_PER_PROCESS, DeathError, Reader
from chatproc.attachments.units import Limits, Unit, UnreadableError
from tests.hostile_parser import BOOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMITS = Limits(timeout_seconds=2.0, max_memory_mb=512, max_file_mb=4)
FINE = "units = ['fine']"

CONTROL = """
import os, stat, signal, struct, json
def is_socket(fd):
    try: return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError: return False
control = next(filter(is_socket, range(3, 64)))
def frame(header, content=b"", more=0, turn=1):
    text = header if isinstance(header, bytes) else json.dumps({"turn": turn, **header}).encode()
    os.write(control, struct.pack(">IQ", len(text), len(content) + more) + text + content)
"""
"""What a hostile document needs to speak on the connection itself."""

linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part is Linux's")


@pytest.fixture
def reader() -> Iterator[Reader]:
    with contextlib.closing(Reader(LIMITS, boot=BOOT)) as reader:
        yield reader


def run(reader: Reader, code: str) -> list[str]:
    """The texts of the units that some code leaves."""
    opened = reader.open(textwrap.dedent(code).encode(), "txt")
    return [reader.unit(number).text for number in range(1, opened.total + 1)]


def refusal(reader: Reader, code: str) -> UnreadableError:
    """How some code is refused; a program that goes on with the next document is part of it."""
    with pytest.raises(UnreadableError) as refused:
        run(reader, code)
    assert run(reader, FINE) == ["fine"]
    return refused.value


def is_gone(group: int) -> bool:
    """Whether no process of a group is left alive; the dead that nobody reaped yet are no lives."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, process_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(process_group) == group and state not in "ZX":
                    return False
    return True


def wait_until(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        os.sched_yield()
    return holds()


# --- dying


@pytest.mark.parametrize(
    "code",
    [
        "import ctypes; ctypes.string_at(0)",
        "import os; os.abort()",
        "import os; os._exit(0)",
        "import os; os._exit(7)",
        "raise SystemExit",
        "raise KeyboardInterrupt",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os; os.closerange(3, 64)",
        "total = 1\ndef unit(number):\n    import ctypes; ctypes.string_at(0)",
    ],
)
def test_a_parser_that_dies_costs_one_document_one_answer(reader: Reader, code: str) -> None:
    error = refusal(reader, code)
    assert isinstance(error, DeathError)
    assert error.code in {"crashed", "memory"}


def test_a_parser_that_raises_is_answered_and_its_process_goes_on(reader: Reader) -> None:
    assert run(reader, FINE) == ["fine"]
    before = reader.pid
    error = refusal(reader, "raise ValueError('words of the file')")
    assert error.code == "corrupt"
    assert "words of the file" not in str(error)
    assert refusal(reader, "def f(): f()\nf()").code == "corrupt"
    assert reader.pid == before


def test_a_missing_package_is_no_fault_of_the_file(reader: Reader) -> None:
    refused = refusal(reader, "import no_such_package")
    assert refused.code == "crashed"
    assert "no_such_package" in refused.words


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()",
        "import time, ctypes; ctypes.CDLL(None).sleep(1000)",
        "total = 1\ndef unit(number):\n    while True: pass",
    ],
)
def test_a_parser_that_hangs_is_ended_in_time(reader: Reader, code: str) -> None:
    run(reader, FINE)
    begin = time.monotonic()
    with pytest.raises(DeathError, match="timeout"):
        run(reader, code)
    assert time.monotonic() - begin < LIMITS.timeout_seconds + 2
    assert run(reader, FINE) == ["fine"]


@pytest.mark.parametrize(
    "code",
    [
        "bytes(1 << 30)",
        "kept = []\nwhile True: kept.append(bytearray(1 << 20))",
        "text = 'x'\nwhile True: text += text",
    ],
)
def test_a_parser_that_eats_memory_is_answered_so(reader: Reader, code: str) -> None:
    error = refusal(reader, code)
    assert error.code == "memory"
    assert isinstance(error, DeathError)


@linux
def test_memory_of_native_code_is_bounded_too(reader: Reader) -> None:
    code = """
    import ctypes
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    got = 0
    while libc.malloc(1 << 20): got += 1
    units = [str(got)]
    """
    assert 0 < int(run(reader, code)[0]) < 512


@linux
def test_whatever_a_parser_started_goes_with_it(reader: Reader) -> None:
    run(reader, FINE)
    group = reader.pid
    assert group is not None
    code = """
    import os, subprocess, time
    for _ in range(40):
        if os.fork() == 0:
            while True: time.sleep(1000)
    subprocess.Popen(["sleep", "1000"])
    while True: pass
    """
    with pytest.raises(DeathError, match="timeout"):
        run(reader, code)
    assert wait_until(lambda: is_gone(group))


@linux
def test_a_child_that_outlives_its_crashed_parser_goes_too(reader: Reader) -> None:
    run(reader, FINE)
    group = reader.pid
    assert group is not None
    refusal(reader, "import os, subprocess; subprocess.Popen(['sleep', '1000']); os.abort()")
    assert wait_until(lambda: is_gone(group))


@linux
def test_a_parser_cannot_leave_its_process_group(reader: Reader) -> None:
    if "filter" not in reader.network:
        pytest.skip("no filter of system calls for this machine")
    code = """
    import os
    units = []
    for leave in (os.setsid, lambda: os.setpgid(0, 0)):
        if (child := os.fork()) == 0:
            try: leave()
            except PermissionError: os._exit(3)
            os._exit(0)
        units.append(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    """
    assert run(reader, code) == ["3", "3"]


@linux
def test_a_program_that_is_killed_leaves_no_reading_process() -> None:
    code = """
    import sys
    from chatproc.attachments.isolation import Reader
    from chatproc.attachments.units import Limits
    from tests.hostile_parser import BOOT
    reader = Reader(Limits(timeout_seconds=60.0), boot=BOOT)
    reader.open(b"units = ['fine']", "txt")
    print(reader.pid, flush=True)
    busy = b"import os\\nos.fork()\\nos.write(LIFE, b'x')\\nwhile True: pass"
    reader.open(busy.replace(b"LIFE", sys.argv[1].encode()), "txt")
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), "1"],
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert program.stdout is not None
    group = int(program.stdout.readline())
    assert wait_until(lambda: len(_members(group)) == 2)
    program.kill()
    program.wait()
    program.stdout.close()
    assert wait_until(lambda: is_gone(group))


def _members(group: int) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                    found.append(entry.name)
    return found


def test_closing_from_another_thread_ends_a_reading_at_once() -> None:
    reader = Reader(Limits(timeout_seconds=60.0), boot=BOOT)
    run(reader, FINE)
    errors: list[UnreadableError] = []

    def read() -> None:
        try:
            run(reader, "while True: pass")
        except UnreadableError as error:
            errors.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    reader.close()
    thread.join(10)
    assert not thread.is_alive()
    assert [error.code for error in errors] in (["crashed"], ["memory"])
    with pytest.raises(DeathError):
        reader.open(FINE.encode(), "txt")
    assert reader.pid is None


def test_a_process_that_died_between_documents_costs_none(reader: Reader) -> None:
    run(reader, FINE)
    assert reader.pid is not None
    os.kill(reader.pid, signal.SIGKILL)
    assert run(reader, FINE) == ["fine"]


def test_a_process_is_kept_warm_and_replaced_when_it_read_its_share(reader: Reader) -> None:
    pids = set()
    for _ in range(DOCUMENTS_PER_PROCESS):
        run(reader, FINE)
        pids.add(reader.pid)
    assert len(pids) == 1
    run(reader, FINE)
    assert reader.pid not in pids


@linux
def test_a_process_that_kept_much_memory_is_replaced(reader: Reader) -> None:
    run(reader, FINE)
    before = reader.pid
    run(reader, "import sys\nsys.kept = bytearray(300 << 20)\nunits = ['x']")
    assert reader.pid == before
    run(reader, FINE)
    assert reader.pid != before


# --- lying


@pytest.mark.parametrize(
    "code",
    [
        "os.write(control, b'garbage ' * 10_000)",
        "os.write(control, bytes(100))",
        "frame(b'x' * 10)",
        "frame(b'[1]')",
        "frame(b'[' * 5000)",
        "frame({})",
        "frame({'opened': {'total': 1, 'note': ''}}, turn=2)",
        "frame({'opened': {'total': 1, 'note': ''}}, turn=None)",
        "frame({'opened': 5})",
        "frame({'opened': {'total': -1, 'note': ''}})",
        "frame({'opened': {'total': '1', 'note': ''}})",
        "frame({'opened': {'total': True, 'note': ''}})",
        "frame({'opened': {'total': 10**9, 'note': ''}})",
        "frame({'opened': {'total': 1, 'note': None}})",
        "frame({'unreadable': 'no'})",
        "frame({'unreadable': {'code': 'fine', 'words': 'x'}})",
        "frame({'unreadable': {'code': 'corrupt', 'words': 5}})",
        "frame({'converting': True}); frame({'converting': True})",
        "os.write(control, struct.pack('>IQ', 2**31, 0))",
        "os.write(control, struct.pack('>IQ', 2, 2**62) + b'{}')",
        "frame({'unit': {'id': 'b1', 'mime': None, 'text': 0}})",
    ],
)
def test_an_answer_that_makes_no_sense_is_a_crash(reader: Reader, code: str) -> None:
    error = refusal(reader, CONTROL + code + "\nsignal.pause()")
    assert error.code == "crashed"


def test_an_answer_that_never_ends_is_ended_in_time(reader: Reader) -> None:
    run(reader, FINE)
    begin = time.monotonic()
    drip = "import time\nframe({}, more=1000)\nwhile True: os.write(control, b'x'); time.sleep(0.05)"
    with pytest.raises(DeathError, match="timeout"):
        run(reader, CONTROL + drip)
    assert time.monotonic() - begin < LIMITS.timeout_seconds + 2


@pytest.mark.parametrize(
    "unit",
    [
        "Unit('b2', 'x')",
        "Unit('x1', 'x')",
        "Unit('b1 ', 'x')",
        "Unit('b01', 'x')",
        "Unit('', 'x')",
        "Unit(5, 'x')",
        "Unit('i1', 'x', b'GIF89a', 'image/gif')",
        "Unit('i1', 'x', b'<svg/>', 'image/png')",
        "Unit('i1', 'x', b'\\x89PNG\\r\\n\\x1a\\n', None)",
        "Unit('i1', 'x', b'x' * 30_000_000, 'image/png')",
    ],
)
def test_a_unit_that_makes_no_sense_is_a_crash(reader: Reader, unit: str) -> None:
    assert refusal(reader, f"total = 1\ndef unit(number): return {unit}").code == "crashed"


def test_texts_of_the_other_side_are_cleaned_and_cut(reader: Reader) -> None:
    lie = (
        "frame({'unit': {'id': 'b1', 'mime': None, 'text': 60_003}}, b'a\\x1b\\x00' + b'b' * 60_000, turn=2)"
    )
    code = f"{CONTROL}\ntotal = 1\nnote = 'n\\n\\x1b' * 9000\ndef unit(number): {lie}; os._exit(0)"
    opened = reader.open(code.encode(), "txt")
    assert len(opened.note) <= 1000
    assert "\n" not in opened.note
    text = reader.unit(1).text
    assert text.startswith("ab")
    assert "cut" in text
    assert len(text) == 20_000
    words = "frame({'unreadable': {'code': 'corrupt', 'words': 'w\\n\\x1b' * 9000}}); signal.pause()"
    with pytest.raises(UnreadableError, match="corrupt") as refused:
        run(reader, f"{CONTROL}\n{words}")
    assert len(refused.value.words) <= 300
    assert "\x1b" not in refused.value.words


def test_an_answer_that_nobody_asked_for_is_never_taken_for_the_next_one(reader: Reader) -> None:
    """A document that answers twice costs the next one nothing: it is read in a process of its own."""
    code = f"{CONTROL}\nframe({{'opened': {{'total': 7, 'note': ''}}}}); units = ['x', 'y']"
    assert reader.open(code.encode(), "txt").total == 7
    before = reader.pid
    assert run(reader, FINE) == ["fine"]
    assert reader.pid != before


def test_an_honest_picture_comes_as_it_is(reader: Reader) -> None:
    content = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    reader.open(
        f"total = 1\ndef unit(number): return Unit('i1', '图', {content!r}, 'image/png')".encode(), "txt"
    )
    assert reader.unit(1) == Unit("i1", "图", content, "image/png")


# --- reaching out


CONNECT = """
import ctypes, os, socket, struct, subprocess, sys
units = []
try:
    socket.create_connection(("127.0.0.1", PORT), 1).sendall(b"python")
except OSError as error:
    units.append(type(error).__name__)
libc = ctypes.CDLL(None, use_errno=True)
address = struct.pack("=HH4s8x", 2, socket.htons(PORT), bytes([127, 0, 0, 1]))
native = libc.socket(2, 1, 0)
if native >= 0 and libc.connect(native, address, 16) == 0:
    libc.send(native, b"native", 6, 0)
script = "exec 3<>/dev/tcp/127.0.0.1/PORT && echo shell >&3"
units.append(str(subprocess.run(["bash", "-c", script], capture_output=True).returncode))
"""
"""Three ways to a listener of this machine: Python's, the C library's, another program's."""


@linux
@pytest.mark.parametrize("without", ["", "namespace", "filter"])
def test_a_listener_on_loopback_sees_nothing_of_a_parser(without: str) -> None:
    off = {
        "": "",
        "namespace": "confine._own_namespace = lambda libc: False; ",
        "filter": "confine._filter_calls = lambda libc: False; ",
    }
    boot = f"from chatproc.attachments import confine; {off[without]}{BOOT}"
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        contextlib.closing(Reader(LIMITS, boot=boot)) as reader,
    ):
        if set(reader.network) == {"python"}:
            pytest.skip("this kernel allows neither way")
        assert without not in reader.network
        shown = run(reader, CONNECT.replace("PORT", str(listener.getsockname()[1])))
        assert shown[0] == "PermissionError"
        assert shown[1] != "0"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_where_the_kernel_allows_nothing_python_still_makes_no_socket() -> None:
    boot = (
        "from chatproc.attachments import confine; confine._own_namespace = lambda libc: False; "
        f"confine._filter_calls = lambda libc: False; {BOOT}"
    )
    with contextlib.closing(Reader(LIMITS, boot=boot)) as reader:
        assert reader.network == ("python",)
        code = "import socket\ntry: socket.socket()\nexcept PermissionError: units = ['no']"
        assert run(reader, code) == ["no"]


@linux
def test_a_parser_inherits_no_secret_and_no_descriptor(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CHAT_PROCESSOR_API_KEY", "sk-very-secret")
    with (tmp_path / "open").open("w", encoding="utf-8") as file:
        os.set_inheritable(file.fileno(), True)
        code = """
        import os
        here = open("/proc/self/environ").read()
        links = [os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)]
        kinds = sorted(
            os.readlink(f"/proc/self/fd/{fd}").split(":")[0]
            for fd in range(3, 256) if os.path.lexists(f"/proc/self/fd/{fd}")
        )
        units = [repr(sorted(os.environ)), here, repr(links), repr(kinds)]
        """
        names, environ, links, kinds = run(reader, code)
    assert names == repr(["HOME", "LANG", "LC_ALL", "PATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR"])
    assert "secret" not in environ
    assert links == repr(["/dev/null"] * 3)
    assert kinds == repr(["pipe", "socket"])


@linux
def test_a_parser_has_bounds_on_files_processes_memory_and_time(reader: Reader) -> None:
    code = """
    import resource
    names = ("AS", "FSIZE", "CORE", "NOFILE")
    units = [str(resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))) for name in names]
    units.append(str(resource.getrlimit(resource.RLIMIT_CPU)[0] <= 2 + 60))
    try:
        with open("big", "wb") as file: file.write(bytes(17 << 20))
    except OSError as error:
        units.append(type(error).__name__)
    """
    memory, written, core, files, seconds, big = run(reader, code)
    assert memory == str((512 << 20, 512 << 20))
    assert written == str((16 << 20, 16 << 20))
    assert core == "(0, 0)"
    assert files == "(256, 256)"
    assert (seconds, big) == ("True", "OSError")


def test_the_private_folder_is_gone_after_the_end(reader: Reader) -> None:
    code = "import os\nopen('left', 'w').close()\nunits = [os.getcwd(), os.environ['TMPDIR']]"
    where, temporary = run(reader, code)
    assert where == temporary
    assert (Path(where) / "left").exists()
    assert Path(where).stat().st_mode & 0o077 == 0
    reader.close()
    assert not Path(where).exists()


def test_a_conversion_has_its_own_time_and_no_more() -> None:
    boot = BOOT.replace("worker.main()", "worker.CONVERTED = {'txt'}; worker.main()")
    with contextlib.closing(Reader(LIMITS, boot=boot, conversion_seconds=4.0)) as reader:
        assert run(reader, "import time; time.sleep(2.5); units = ['slow']") == ["slow"]
        begin = time.monotonic()
        with pytest.raises(DeathError, match="timeout"):
            run(reader, "while True: pass")
        assert 3.5 < time.monotonic() - begin < 6


def test_a_reading_process_that_does_not_start_is_one_plain_answer() -> None:
    with contextlib.closing(Reader(LIMITS, boot="raise SystemExit")) as reader:
        with pytest.raises(DeathError, match="crashed"):
            reader.open(b"x", "txt")
        assert reader.pid is None


def test_signals_of_the_terminal_do_not_reach_the_reading_process(reader: Reader) -> None:
    run(reader, FINE)
    assert reader.pid is not None
    assert os.getpgid(reader.pid) == reader.pid != os.getpgid(0)
    assert os.getsid(reader.pid) == reader.pid


@linux
def test_the_folder_of_a_killed_program_goes_with_the_next_start_and_no_other_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
    import sys
    from chatproc.attachments.isolation import Reader
    from chatproc.attachments.units import Limits
    reader = Reader(Limits())
    print(reader.open(b"text", "txt").total, flush=True)
    sys.stdin.read()
    """
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONWARNINGS": "ignore",
        "TMPDIR": str(scratch),
    }

    def start() -> subprocess.Popen[bytes]:
        program = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert program.stdout is not None
        assert program.stdout.readline() == b"1\n"
        return program

    with start() as killed:
        (left,) = scratch.iterdir()
        killed.kill()
    others = [scratch / name for name in ("chatproc-reading-process-mine", "chatproc-x", "y")]
    for folder in others:
        folder.mkdir()
    (scratch / "chatproc-reading-process-linked00").symlink_to(others[0])
    with start() as living:
        assert not left.exists()
        (kept,) = set(scratch.iterdir()) - {*others, scratch / "chatproc-reading-process-linked00"}
        monkeypatch.setattr("tempfile.tempdir", str(scratch))
        with contextlib.closing(Reader(Limits())) as reader:
            assert reader.open(b"text", "txt").total == 1
            assert kept.exists()
        living.kill()
    assert all(folder.exists() for folder in others)
