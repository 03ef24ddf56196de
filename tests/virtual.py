"""An event loop whose time is not the world's: where nothing is left to do, the next timer is due at once.

Threads are waited for in real time, so that what a program computes is the same; only its waiting is gone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN = 1_782_864_000_000
"""2026-07-01T08:00:00+08:00, milliseconds since 1970."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a monotonic clock of its own, and a wall clock that can be set."""

    def __init__(self) -> None:
        self._monotonic = 0.0
        self._in_threads = 0
        self._set_by = 0
        super().__init__()

    def time(self) -> float:
        return self._monotonic

    def now(self) -> int:
        """The wall clock, milliseconds since 1970."""
        return BEGIN + self._set_by + round(self._monotonic * 1000)

    def set_clock(self, seconds: float) -> None:
        """Set the wall clock forward or back, as after a sleep of the machine or by its owner."""
        self._set_by += round(seconds * 1000)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401
        self._in_threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._returned)
        return future

    def _returned(self, _: object) -> None:
        self._in_threads -= 1

    def _run_once(self) -> None:
        pending = [timer for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        if pending and not self._ready and not self._in_threads:  # type: ignore[attr-defined]
            self._monotonic = max(self._monotonic, min(timer.when() for timer in pending))
        super()._run_once()  # type: ignore[misc]
