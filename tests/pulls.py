"""Drives a connector as the loop does, page by page, and keeps what a store would keep."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chatproc.connectors.base import BudgetSpentError, Page, Pull, SyncError, Toolkit
from chatproc.core import plan_events

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass
class Purse:
    """A day's budget."""

    requests: int = 100_000
    page: int | None = None
    used: int = 0

    async def request(self) -> None:
        if self.used >= self.requests:
            raise BudgetSpentError
        self.used += 1

    def page_size(self, usual: int) -> int:
        return usual if self.page is None else min(usual, self.page)


@dataclass
class Puller:
    """One connection: its configuration, and what its runs brought so far."""

    toolkit: Toolkit
    settings: dict[str, Any]
    secret: str | None
    since: int = 0
    now: int = 0
    archive_root: Path | None = None
    cursor: dict[str, Any] = field(default_factory=dict)
    lines: list[bytes] = field(default_factory=list)
    pages: list[list[bytes]] = field(default_factory=list)

    def run(
        self,
        purse: Purse | None = None,
        *,
        pages: int | None = None,
        after_page: Callable[[int], None] | None = None,
    ) -> SyncError | None:
        """One run, to its end, to its fault, to the end of the budget or for so many pages."""
        return asyncio.run(self._run(purse or Purse(), pages, after_page))

    async def _run(
        self, purse: Purse, pages: int | None, after_page: Callable[[int], None] | None
    ) -> SyncError | None:
        config = self.toolkit.settings.model_validate(self.settings)
        ask = Pull(
            config=config,
            cursor=json.loads(json.dumps(self.cursor)),
            budget=purse,
            since=self.since,
            now=lambda: self.now,
            secret=lambda: self.secret,
            archive_root=self.archive_root,
        )
        self.pages.clear()
        async with contextlib.aclosing(self.toolkit.pull(ask)) as source:
            try:
                async for page in source:
                    self._commit(page)
                    if after_page is not None:
                        after_page(len(self.pages))
                    if len(self.pages) == pages:
                        return None
            except SyncError as fault:
                return fault
            except BudgetSpentError:
                return None
        assert not page.more
        return None

    def _commit(self, page: Page) -> None:
        lines = [entry if isinstance(entry, bytes) else json.dumps(entry).encode() for entry in page.events]
        assert lines or page.cursor != self.cursor or not page.more, "a page that leads nowhere"
        self.cursor = json.loads(json.dumps(page.cursor))
        self.pages.append(lines)
        self.lines += lines

    @property
    def events(self) -> list[dict[str, Any]]:
        """All deliveries that are events."""
        refused = {entry["line"] for entry in self.quarantined}
        return [json.loads(line) for number, line in enumerate(self.lines, 1) if number not in refused]

    @property
    def keys(self) -> list[str]:
        """Message keys of all deliveries; every line must be an event."""
        return [json.loads(line)["message_key"] for line in self.lines]

    @property
    def quarantined(self) -> list[dict[str, Any]]:
        return plan_events(self.lines).quarantined
