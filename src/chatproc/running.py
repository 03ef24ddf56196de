"""`chatproc run` in the foreground: the loop until a signal ends it.

The signals are taken over before anything is loaded or opened: however early they come, they end it with what
is in hand.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from chatproc.results import LoopReport
    from chatproc.schedule import RunningLoop

_STOP_WITHIN = 9.0


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
    woken: SimpleQueue[None] = SimpleQueue()
    with _first_signal(woken):
        loop = _started(config_file, tell)
        if tell is not None:
            tell("at work; Ctrl-C or SIGTERM ends it")
        loop.over.add_done_callback(lambda _: woken.put(None))
        woken.get()
        if loop.is_running:
            loop.stop()
            if tell is not None:
                tell("ending with what is in hand; a second signal ends it at once")
        return loop.wait(_STOP_WITHIN)


def _started(config_file: str | os.PathLike[str] | None, tell: Callable[[str], None] | None) -> RunningLoop:
    from chatproc.config import DEFAULT_CONFIG
    from chatproc.schedule import start_loop

    return start_loop(config_file or DEFAULT_CONFIG, tell=tell)


@contextlib.contextmanager
def _first_signal(woken: SimpleQueue[None]) -> Iterator[None]:
    """The first signal wakes, the second one is the system's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def wake(_number: int, _frame: object) -> None:
        for number in before:
            signal.signal(number, signal.SIG_DFL)
        woken.put(None)

    for number in before:
        signal.signal(number, wake)
    try:
        yield
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)
