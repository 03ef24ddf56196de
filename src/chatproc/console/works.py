"""What takes longer than a page may, each in a thread of its own: rounds, syncs, previews; watched, stopped.

It runs what it is given and keeps what came of it, for as long as the console is up; it knows no store.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from chatproc.console.visit import number_of, told
from chatproc.errors import ChatprocError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from chatproc.results import Progress

_KEPT = 8
"""Works of each kind."""


@dataclass
class Work:
    """One work: at its task, or over with a result or an error."""

    number: int
    kind: str
    about: dict[str, Any]
    """What a page wants to know of it later."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    progress: Progress | None = None
    result: Any = None
    error: ChatprocError | None = None
    over: threading.Event = field(default_factory=threading.Event)
    _stop: Callable[[], object] = field(default=lambda: None)

    def tell(self, progress: Progress) -> None:
        """Take note of how far it is.

        Args:
            progress: From the thread that works.
        """
        self.progress = progress

    def stop(self) -> None:
        """Ask it to end; what it committed stays."""
        self._stop()

    def run(self, call: Callable[[Work], Awaitable[Any]]) -> None:
        """Do it, in a loop of its own, and note how it ended.

        Args:
            call: Gets the work, to tell how far it is.
        """
        try:
            self.result = asyncio.run(self._stoppable(call))
        except asyncio.CancelledError:
            self.error = ChatprocError("stopped: what was committed stays, the rest is pending")
        except Exception as error:  # noqa: BLE001 - shown on the page that started it
            self.error = told(error)
        finally:
            self.over.set()

    async def _stoppable(self, call: Callable[[Work], Awaitable[Any]]) -> Any:  # noqa: ANN401 - the call's result
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - this is one
        self._stop = lambda: None if loop.is_closed() else loop.call_soon_threadsafe(task.cancel)
        return await call(self)

    def to_dict(self) -> dict[str, Any]:
        """What a page that watches it needs: `over done total unit tasks tokens`."""
        known = self.progress
        return {
            "over": self.over.is_set(),
            "stage": None if known is None else known.stage,
            "done": None if known is None else known.done,
            "total": None if known is None else known.total,
            "tasks": 0 if known is None else known.tasks,
            "tokens": None if known is None else known.tokens,
        }


class Works:
    """The works of a console, the newest of each kind kept."""

    def __init__(self) -> None:
        """None yet."""
        self._numbers = itertools.count(1)
        self._works: dict[int, Work] = {}
        self._lock = threading.Lock()

    def start(self, kind: str, call: Callable[[Work], Awaitable[Any]], **about: Any) -> Work:  # noqa: ANN401
        """Start one; where one about the same is at work, that one.

        Args:
            kind: `round`, `sync`, `preview` or `rules`.
            call: Does it.
            about: What it is about.
        """
        with self._lock:
            for known in self._works.values():
                if (known.kind, known.about) == (kind, about) and not known.over.is_set():
                    return known
            work = Work(next(self._numbers), kind, about)
            self._works[work.number] = work
            alike = [known for known in self._works.values() if known.kind == kind]
            for known in alike[:-_KEPT]:
                if known.over.is_set():
                    del self._works[known.number]
        threading.Thread(target=work.run, args=(call,), name=f"console {kind}", daemon=True).start()
        return work

    def find(self, number: str) -> Work | None:
        """The one with that number, while it is kept.

        Args:
            number: As the path says it.
        """
        return self._works.get(number_of(number) or 0)

    def of(self, kind: str) -> list[Work]:
        """Those of a kind, the newest first.

        Args:
            kind: As it was started.
        """
        return [work for work in reversed(list(self._works.values())) if work.kind == kind]

    def stop(self, seconds: float) -> None:
        """Ask all to end, and wait until they have.

        Args:
            seconds: How long for each at most.
        """
        for work in list(self._works.values()):
            work.stop()
        for work in list(self._works.values()):
            work.over.wait(seconds)
