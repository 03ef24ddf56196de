"""`chatproc run` in the foreground: the loop until a signal ends it.

The signals are taken over before anything is loaded or opened: however early they come, they end it with what
is in hand.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from chatproc.results import LoopReport
    from chatproc.schedule import RunningLoop

_STOP_WITHIN = 9.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_RINGS = {b"\0", *(bytes([number]) for number in _SIGNALS)}


def run_loop(
    config_file: str | os.PathLike[str] | None = None, *, tell: Callable[[str], None] | None = None
) -> LoopReport | None:
    """Run the loop until SIGTERM or SIGINT, which end it within ten seconds; a second one ends it at once.

    Called in the main thread it takes these two signals over, elsewhere it leaves them alone and `stop` of
    `start_loop`'s loop ends it.

    Args:
        config_file: Read again at every tick; `None`: `config/processor.toml`.
        tell: Takes one line for each thing that was done, from the loop's thread.

    Returns:
        What it did; `None` when something in it hangs. Nothing is lost by leaving that behind.

    Raises:
        ConfigError: The configuration cannot be used.
        StateLockedError: Another process writes rounds into this store.
    """
    with contextlib.closing(_Bell()) as bell, _first_signal(bell):
        loop = _started(config_file, tell)
        if tell is not None:
            tell("at work; Ctrl-C or SIGTERM ends it")
        loop.over.add_done_callback(lambda _: bell.ring())
        bell.wait()
        if loop.is_running:
            loop.stop()
            if tell is not None:
                tell("ending with what is in hand; a second signal ends it at once")
        return loop.wait(_STOP_WITHIN)


def _started(config_file: str | os.PathLike[str] | None, tell: Callable[[str], None] | None) -> RunningLoop:
    from chatproc.config import DEFAULT_CONFIG
    from chatproc.schedule import start_loop

    return start_loop(config_file or DEFAULT_CONFIG, tell=tell)


class _Bell:
    """Rung by a signal or by another thread.

    A signal that comes just before a lock is waited for does not end that wait. A socket is waited for
    instead: Python writes there in the moment of the signal.
    """

    def __init__(self) -> None:
        self._ear, self.rope = socket.socketpair()
        self.rope.setblocking(False)

    def ring(self) -> None:
        with contextlib.suppress(OSError):  # nobody waits any more
            self.rope.send(b"\0")

    def wait(self) -> None:
        while self._ear.recv(1) not in _RINGS:
            pass

    def close(self) -> None:
        self._ear.close()
        self.rope.close()


@contextlib.contextmanager
def _first_signal(bell: _Bell) -> Iterator[None]:
    """The first signal rings, the second one is the system's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def step_aside(_number: int, _frame: object) -> None:
        for number in before:
            signal.signal(number, signal.SIG_DFL)

    rope = signal.set_wakeup_fd(bell.rope.fileno(), warn_on_full_buffer=False)
    for number in before:
        signal.signal(number, step_aside)
    try:
        yield
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)
        signal.set_wakeup_fd(rope)
