"""One run of one connection: lease, pages into the store, and a record of how it went, whoever asked for it.

It decides nothing about when (`due` does) and knows no source (`connectors` do). Whatever a source does ends
as one record of its own connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import traceback
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from chatproc.connectors import jsonl, toolkit
from chatproc.connectors.base import FAULTS, BudgetSpentError, Pull, SyncError
from chatproc.credentials import read_secret
from chatproc.errors import ChatprocError, CredentialError, without_secret
from chatproc.holder import is_gone
from chatproc.loop import due
from chatproc.loop.pages import cursor_of, lines_of
from chatproc.threads import to_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from chatproc import _core
    from chatproc.config import Config, ConnectionConfig
    from chatproc.connectors.base import Cursor, Page
    from chatproc.loop.due import Policy, Row, Trigger
    from chatproc.results import Json

DEADLINE = 300.0
"""Seconds that a run may take; what is left waits for the next one."""

_RENEW_EVERY = 20.0
_GRACE = 5.0
_LONGEST_TEXT = 500
_COUNTS = ("read", "written", "repeats", "quarantined")

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a run needs beside its connection.

    Attributes:
        store: Where events and cursors go.
        config: The whole configuration.
        reading: How the core reads batches, without `paths` and `now`.
        holder: Names this process, see `chatproc.holder`.
        now: The wall clock, milliseconds since 1970.
        chance: A number from -1 to 1.
        stopping: Set: the page in hand is stored, and no other.
    """

    store: _core.Connections
    config: Config
    reading: Json
    holder: str
    now: Callable[[], int]
    chance: Callable[[], float]
    stopping: asyncio.Event


def policy_of(config: Config, connection: ConnectionConfig) -> Policy:
    """What the configuration says of a connection, as `due` wants it.

    Args:
        config: The whole configuration.
        connection: One of its connections.

    Raises:
        ConfigError: Its connector is not installed any more.
    """
    wanted = connection.interval_seconds
    interval = max(wanted, toolkit(connection.toolkit).minimum_interval) if wanted else 0
    return due.Policy(
        toolkit=connection.toolkit,
        id=connection.id,
        enabled=connection.enabled,
        interval=round(interval * 1000),
        daily_requests=connection.daily_requests,
        daily_items=connection.daily_items,
        zone=config.rules.timezone,
        mark=partial(_mark, config, connection),
    )


def _mark(config: Config, connection: ConnectionConfig) -> str:
    settings = connection.model_dump(mode="json")
    try:
        return due.mark_of(settings, read_secret(config, connection))
    except CredentialError as error:
        # A secret that is there now but cannot be used is a change, too.
        return due.mark_of({**settings, "unusable": str(error)}, None)


def without_the_dead(row: Row) -> Row:
    """The row without a lease whose process is gone from this machine; `gone` then says whose it was.

    Args:
        row: As the store has it.
    """
    lease = row["lease"]
    if lease is None or not is_gone(lease["holder"]):
        return {**row, "gone": None}
    return {**row, "lease": None, "gone": lease["holder"]}


async def sync_connection(
    setting: Setting, connection: ConnectionConfig, trigger: Trigger, row: Row | None
) -> Json:
    """Run a connection once, if nobody else does.

    Args:
        setting: What it runs in.
        connection: Which one.
        trigger: Who asked for it.
        row: What the decision rests on, from `without_the_dead`. When the connection ran since, what was
            asked for is done.

    Returns:
        `toolkit id outcome why error read written repeats quarantined requests more_pending next_due_at`;
        `outcome` is `done`, `paused`, `failed`, `stopped`; `running` when another run is at work, `skipped`
        when it came first and is over. With `unfinished_files` where a collector is in the middle of a line.

    Raises:
        ChatprocError: The store refuses the lease or the record.
        OSError: The store cannot be written.
    """
    known = row or {"runs": 0, "gone": None}
    now = setting.now()
    taken = await to_end(
        setting.store.lease,
        connection.toolkit,
        connection.id,
        setting.holder,
        trigger,
        now,
        now + due.LEASE,
        gone=known["gone"],
        seen=known["runs"],
    )
    if taken is None:
        held = await to_end(setting.store.lease_of, connection.toolkit, connection.id)
        if held is None:
            return report_of(connection, "skipped", why="another run came first")
        return report_of(connection, "running", why=f"another run is at work: {held['holder']}")
    return await _Run(setting, connection, taken).record()


def report_of(connection: ConnectionConfig, outcome: str, **more: Any) -> Json:  # noqa: ANN401 - JSON values
    """The report of a run, or of none.

    Args:
        connection: Which one.
        outcome: See `sync_connection`; `skipped` where it was not even tried.
        more: What there is to tell.
    """
    return {
        "toolkit": connection.toolkit,
        "id": connection.id,
        "outcome": outcome,
        "why": None,
        "error": None,
        **dict.fromkeys((*_COUNTS, "requests"), 0),
        "more_pending": False,
        "next_due_at": None,
        **more,
    }


class _StoreError(Exception):
    """The store refused: no fault of the source."""


class _EscapeError(Exception):
    """A connector raised what would end the whole program; its cause says what."""


class _Run:
    """A leased run; also the budget that its connector asks."""

    def __init__(self, setting: Setting, connection: ConnectionConfig, taken: Row) -> None:
        self.setting = setting
        self.connection = connection
        self.policy = policy_of(setting.config, connection)
        self.row = taken
        self.names = (connection.toolkit, connection.id, taken["run"])
        self.cursor: Cursor = taken["cursor"] or {}
        self.last_lines: list[bytes] = []
        self.page_limit: int | None = taken["page_limit"]
        self.asked: int | None = None
        self.day = due.day_of(setting.now(), self.policy.zone)
        self.items_used = due.used(self.policy, taken, setting.now())[1]
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.requests = 0
        self.pages = 0
        self.more = False
        self.waiting = 0

    async def record(self) -> Json:
        """Run, and note how it went."""
        renewing = asyncio.create_task(self._renew())
        try:
            end = await self._run()
        finally:
            renewing.cancel()
        now = self.setting.now()
        noted = due.settle(self.policy, self.row, end, now, self.setting.chance())
        kept = await to_end(self.setting.store.record, *self.names, self.setting.holder, noted, now)
        if not kept:
            _log.warning("%s: its lease had run out, the run is not on record", self.policy.name)
        at = noted["next_due_at"]
        return report_of(
            self.connection,
            end.outcome,
            why=self._why(end, now),
            error=noted["error"],
            **self.counts,
            requests=self.requests,
            more_pending=end.more,
            next_due_at=None if at is None else due.moment(at, self.policy.zone),
            **({"unfinished_files": self.waiting} if self.waiting else {}),
        )

    def _why(self, end: due.End, now: int) -> str | None:
        if end.spent:
            midnight = due.next_midnight(now, self.policy.zone)
            return f"paused until {due.moment(midnight, self.policy.zone)}: today's budget is used up"
        if end.outcome == "paused":
            return f"{DEADLINE:.0f} seconds were over; the next run goes on from there"
        return "stopped by a person; the next run goes on from there" if end.outcome == "stopped" else None

    async def _run(self) -> due.End:
        """Pull until the source has no more, the time is up, or it is stopped; then the page in hand ends."""
        pull = asyncio.create_task(
            self._ingest() if self.connection.toolkit == jsonl.TOOLKIT.name else self._pull()
        )
        stop = asyncio.create_task(self.setting.stopping.wait())
        try:
            await asyncio.wait({pull, stop}, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
            if pull.done():
                return self._end(pull)
            pull.cancel()
            await asyncio.wait({pull}, timeout=_GRACE)
            if not pull.done() or pull.cancelled():
                return self._cut_off(ended=pull.done(), stopped=stop.done())
            return self._end(pull)
        finally:
            pull.cancel()
            stop.cancel()

    def _end(self, pull: asyncio.Task[None]) -> due.End:
        """What became of a pull that ended by itself."""
        if pull.cancelled():
            return self._failed("bug", "CancelledError in the connector, which nobody cancelled")
        error = pull.exception()
        if error is None:
            return self._over("done", more=self.more)
        if isinstance(error, BudgetSpentError):
            return self._over("paused", more=True, spent=True)
        return self._fault(error)

    def _cut_off(self, *, ended: bool, stopped: bool) -> due.End:
        if stopped:
            return self._over("stopped", more=True)
        if not ended:
            return self._failed("bug", "the connector does not end when it is told to")
        if self.pages or self._is_files():
            return self._over("paused", more=True)
        return self._failed("network", f"nothing came for {DEADLINE:.0f} seconds")

    def _over(self, outcome: Any, **more: Any) -> due.End:  # noqa: ANN401 - fields of `End`
        return due.End(outcome=outcome, pages=self.pages, page_limit=self.page_limit, **more)

    def _fault(self, error: BaseException) -> due.End:
        if isinstance(error, SyncError):
            fault = error.fault if error.fault in FAULTS else "bug"
            return self._failed(fault, _told(error), retry_after=error.retry_after)
        if isinstance(error, CredentialError):
            return self._failed("auth", _told(error))
        if isinstance(error, _StoreError):
            return self._failed("bug", f"the store refused: {error.__cause__}", ours=True)
        if isinstance(error, _EscapeError) and error.__cause__ is not None:
            error = error.__cause__
        # Its own words may hold a message or a secret: the class and the place are enough.
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "nowhere"
        _log.debug("%s: %s", self.policy.name, "".join(traceback.format_tb(error.__traceback__)))
        return self._failed("bug", f"{type(error).__name__} in the connector ({place})")

    def _failed(self, fault: Any, text: str, **more: Any) -> due.End:  # noqa: ANN401 - fields of `End`
        return due.End(
            outcome="failed",
            fault=fault,
            text=without_secret(text, self._secret())[:_LONGEST_TEXT],
            pages=self.pages,
            more=self.more,
            page_limit=self.page_limit,
            **more,
        )

    def _secret(self) -> str | None:
        """What no error may repeat, whatever the server says."""
        try:
            return read_secret(self.setting.config, self.connection)
        except CredentialError:
            return None

    def _is_files(self) -> bool:
        return self.connection.toolkit == jsonl.TOOLKIT.name

    async def _renew(self) -> None:
        """Keep the lease while a slow source is waited for. Once lost, the next page says so."""
        kept = True
        while kept:
            await asyncio.sleep(_RENEW_EVERY)
            until = self.setting.now() + due.LEASE
            with contextlib.suppress(ChatprocError, OSError):
                kept = await to_end(self.setting.store.renew, *self.names, self.setting.holder, until)

    # ── pages ────────────────────────────────────────────────────────────────────────────────────────

    async def _pull(self) -> None:
        while True:
            try:
                await self._pages()
            except (SystemExit, KeyboardInterrupt) as error:
                raise _EscapeError from error
            except SyncError as error:
                if error.fault != "too_large" or self.asked is None or self.asked <= 1:
                    raise
                self.page_limit = max(1, self.asked // 2)
            else:
                return

    async def _pages(self) -> None:
        config = self.setting.config
        pages = toolkit(self.connection.toolkit).pull(
            Pull(
                config=self.connection,
                cursor=self.cursor,
                budget=self,
                since=self.setting.now() - self.connection.backfill_days * due.DAY,
                now=self.setting.now,
                secret=partial(read_secret, config, self.connection),
                archive_root=config.input.archive_root,
                timezone=config.rules.timezone,
            )
        )
        try:
            async for page in pages:
                await self._store_page(page)
        finally:
            close = getattr(pages, "aclose", None)
            if close is not None:
                await close()

    async def _store_page(self, page: Page) -> None:
        lines, cursor = lines_of(page), cursor_of(page)
        if page.more and cursor == self.cursor and lines == self.last_lines:
            raise SyncError("the source goes round in a circle: a page with nothing new", fault="bad_data")
        day = due.day_of(self.setting.now(), self.policy.zone)
        longest = self.setting.config.input.max_line_bytes
        arguments = (self.setting.holder, lines, cursor, page.more, day, longest)
        stored = await self._ask(self.setting.store.page, *self.names, *arguments)
        for name in _COUNTS:
            self.counts[name] += stored[name]
        self.day, self.items_used = day, stored["items_used"]
        self.cursor, self.last_lines = cursor, lines
        self.more = page.more
        self.pages += 1
        if page.more and self.items_used >= self.policy.daily_items:
            raise BudgetSpentError

    async def _ingest(self) -> None:
        """Let the core read the batches of a collector."""
        stopped = threading.Event()

        def tell(_done: int, _total: int) -> None:
            if stopped.is_set():
                raise asyncio.CancelledError

        paths = self.connection.model_dump()["paths"]
        wanted = {**self.setting.reading, "paths": list(paths), "now": self.setting.now()}
        call = partial(to_end, stop=stopped.set)
        counts = await self._ask(
            self.setting.store.ingest, *self.names, self.setting.holder, wanted, tell, through=call
        )
        self.counts = {
            "read": counts["lines"],
            "written": counts["accepted"],
            "repeats": counts["repeats"],
            "quarantined": counts["quarantined"],
        }
        self.more = False
        self.waiting = counts["waiting"]
        for unread in counts["unreadable"]:
            _log.warning("%s: %s: %s", self.policy.name, unread["file"], unread["error"])

    async def _ask(
        self,
        call: Callable[..., _Result],
        *arguments: Any,  # noqa: ANN401 - those of the store
        through: Any = to_end,  # noqa: ANN401 - or with a stop
    ) -> _Result:
        try:
            result: _Result = await through(call, *arguments)
        except (ChatprocError, OSError) as error:
            raise _StoreError from error
        return result

    # ── the budget ───────────────────────────────────────────────────────────────────────────────────

    async def request(self) -> None:
        """As `Budget.request`."""
        day = due.day_of(self.setting.now(), self.policy.zone)
        if day > self.day:
            self.day, self.items_used = day, 0
        if self.items_used >= self.policy.daily_items:
            raise BudgetSpentError
        wanted = (self.setting.holder, day, self.policy.daily_requests)
        if not await self._ask(self.setting.store.reserve, *self.names, *wanted):
            raise BudgetSpentError
        self.requests += 1

    def page_size(self, usual: int) -> int:
        """As `Budget.page_size`."""
        left = self.policy.daily_items - self.items_used
        self.asked = max(1, min(usual, left, self.page_limit or usual))
        return self.asked


def _told(error: ChatprocError) -> str:
    """An error in one line, with what mends it."""
    return f"{error}; {error.hint}" if error.hint else str(error)
