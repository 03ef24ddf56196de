"""How many runs of connections are at work at the same time, so that those that hang never fill the place.

A run has a seat while it is new. One that takes longer mostly waits for its source: it goes on without, and
the next one begins. What failed last sits apart: what is well never waits for it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from chatproc.loop.due import Row

SEATS = 16
"""Runs that begin at the same time; as many again of connections that failed last."""

NEW_FOR = 3.0
"""Seconds after which a run goes on without its seat."""


class Room:
    """The seats of one process. Made inside an event loop."""

    def __init__(self) -> None:
        """All are free."""
        self._well = asyncio.Semaphore(SEATS)
        self._failing = asyncio.Semaphore(SEATS)

    @asynccontextmanager
    async def seat(self, row: Row | None) -> AsyncIterator[None]:
        """Wait for a seat, and have it for as long as the run is new.

        Args:
            row: How the connection stands, as the store has it.
        """
        seats = self._failing if row is not None and row["failures_in_row"] else self._well
        await seats.acquire()
        taken = True

        def leave() -> None:
            nonlocal taken
            if taken:
                taken = False
                seats.release()

        late = asyncio.get_running_loop().call_later(NEW_FOR, leave)
        try:
            yield
        finally:
            late.cancel()
            leave()
