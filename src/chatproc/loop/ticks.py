"""The loop of `run`: syncs what is due, works off what is pending, and wakes for ticks, files and nudges.

It only starts things: what a sync does is in `sync`, what a round does in `pipeline`, when a connection is
due in `due`. Nothing that a connection, the model or a file does ends it. Its clocks come from outside: the
wall clock as a function, monotonic time from the event loop that it runs in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatproc.config import load_config
from chatproc.errors import ChatprocError, ConfigError
from chatproc.given import reading
from chatproc.loop import due
from chatproc.loop.room import Room
from chatproc.loop.standing import rows_by_name
from chatproc.loop.sync import Setting, policy_of, sync_connection
from chatproc.loop.watch import Watch
from chatproc.pipeline import round_with
from chatproc.threads import to_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from chatproc import _core
    from chatproc.config import Config, ConnectionConfig
    from chatproc.loop.due import Row, Trigger
    from chatproc.pipeline import Writer
    from chatproc.results import Json, RoundReport

    Name = tuple[str, str]

PATIENCE = 10.0
"""Seconds that a round waits for the syncs that began before it."""

# A machine that slept wakes with a wall clock far ahead; monotonic waits do not notice it.
_LONGEST_SLEEP = 60.0
_JUMP = 5.0
_ELSEWHERE = 10.0
_TO_TICK = float("inf")
_LAST_PAGE = 6.5
_LAST_EXPORT = 2.0

_log = logging.getLogger(__name__)


@dataclass
class _Tick:
    """When the last tick was, by both clocks; whichever says that it is over is believed."""

    wall: int = 0
    monotonic: float = float("-inf")

    def left(self, now: int, monotonic: float, seconds: float) -> float:
        """Seconds to the next tick, zero or less when it is due."""
        by_wall = self.wall / 1000 + seconds - now / 1000
        return min(self.monotonic + seconds - monotonic, by_wall)


class Loop:
    """One loop over one store. Made and run inside an event loop.

    Args:
        config: As it was read to open the store.
        writer: Holds the store for rounds.
        store: The same store, for connections.
        now: The wall clock, milliseconds since 1970.
        chance: A number from -1 to 1.
        tell: Takes one line for each thing that was done.
    """

    def __init__(  # noqa: PLR0913 - the parts it puts together
        self,
        config: Config,
        writer: Writer,
        store: _core.Connections,
        *,
        now: Callable[[], int],
        chance: Callable[[], float],
        tell: Callable[[str], None],
    ) -> None:
        """Nothing runs yet."""
        self.config = config
        self.counts: Counter[str] = Counter()
        self._writer = writer
        self._store = store
        self._now = now
        self._chance = chance
        self._tell = tell
        self._time = asyncio.get_running_loop().time
        self._opened = _file_of(config)
        self._refused: str | None = None
        self._tick = _Tick()
        self._next_due: int | None = None
        self._stopping = asyncio.Event()
        self._wake = asyncio.Event()
        self._round_wanted = asyncio.Event()
        self._room = Room()
        self._syncs: dict[Name, asyncio.Task[None]] = {}
        self._nudged: dict[Name, Trigger] = {}
        self._held_until: dict[Name, float] = {}
        self._retry: asyncio.TimerHandle | None = None

    # ── from outside ─────────────────────────────────────────────────────────────────────────────────

    def stop(self) -> None:
        """End with the page and the commit in hand."""
        self._stopping.set()
        self._wake.set()

    def nudge(self, toolkit: str, connection_id: str, trigger: Trigger = "nudge") -> bool:
        """Sync a connection as soon as may be; while it is at work, once more after that.

        Args:
            toolkit: In lower case.
            connection_id: Its id.
            trigger: For the record.

        Returns:
            Whether there is such a connection.
        """
        name = (toolkit, connection_id)
        if name not in {(known.toolkit, known.id) for known in self.config.connections}:
            return False
        self._nudged[name] = trigger
        self._wake.set()
        return True

    def want_round(self) -> None:
        """Work off what is new without waiting for the tick."""
        self._round_wanted.set()

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Until it is stopped."""
        watch = Watch(self)
        beside = [asyncio.create_task(self._rounds()), asyncio.create_task(watch.run())]
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                self._reload()
                watch.look_again()
                await self._turn()
                await self._sleep()
        finally:
            await self._wind_down(beside)

    async def _turn(self) -> None:
        """Start what is due; at a tick also a round."""
        seconds = self.config.schedule.tick_seconds
        ticked = self._tick.left(self._now(), self._time(), seconds) <= 0
        if ticked:
            self._tick = _Tick(self._now(), self._time())
            self._held_until.clear()
            self.counts["ticks"] += 1
        try:
            self._check_store()
            await self._start_due()
        except (ChatprocError, OSError) as error:
            self._fault("connections", error)
        if ticked:
            self.want_round()

    def _check_store(self) -> None:
        """A store that was deleted is still open, and would swallow work that nobody finds again."""
        if _file_of(self.config) != self._opened:
            self._next_due = None
            raise ChatprocError(
                "the store was removed or replaced while `run` is at work: nothing is done",
                where=str(self.config.storage.state),
                hint="restart `chatproc run`",
            )

    async def _sleep(self) -> None:
        """Until a tick, a connection that comes due, a nudge, a file, a clock that jumps, or the end."""
        wall, began = self._now(), self._time()
        seconds = self._tick.left(wall, began, self.config.schedule.tick_seconds)
        if self._next_due is not None:
            seconds = min(seconds, (self._next_due - wall) / 1000)
        end, jumped = began + seconds, False
        while not self._wake.is_set() and not jumped and self._time() < end:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(end - self._time(), _LONGEST_SLEEP)):
                    await self._wake.wait()
            passed = self._time() - began
            jumped = abs((self._now() - wall) / 1000 - passed) > _JUMP

    def _reload(self) -> None:
        """Read the configuration again; one that cannot be used changes nothing, and is told once."""
        try:
            config = load_config(self.config.file)
            if config.storage.state != self.config.storage.state:
                raise ConfigError(
                    f"storage.state = {str(config.storage.state)!r}: cannot change while `run` is at work",
                    where=str(config.file),
                    hint="restart `chatproc run`",
                )
        except (ChatprocError, OSError) as error:
            if str(error) != self._refused:
                _log.warning("the last good configuration stays in force: %s", error)
            self._refused = str(error)
            return
        if self._refused is not None:
            self._tell("the configuration can be used again")
        self._refused = None
        self.config = config

    async def _wind_down(self, beside: list[asyncio.Task[None]]) -> None:
        """Let the pages and the commit in hand end, then publish."""
        self._stopping.set()
        for task in beside:
            task.cancel()
        tasks = {*beside, *self._syncs.values()}
        await asyncio.wait(tasks, timeout=_LAST_PAGE)
        try:
            async with asyncio.timeout(_LAST_EXPORT):
                report = await to_end(self._writer.export, self.config)
        except (ChatprocError, OSError, TimeoutError) as error:
            self._fault("export", error)
        else:
            if report.error is not None:
                _log.warning("export: %s", report.error)

    # ── syncs ────────────────────────────────────────────────────────────────────────────────────────

    async def _start_due(self) -> None:
        rows = rows_by_name(await to_end(self._store.states))
        now = self._now()
        self._next_due = None
        for connection in self.config.connections:
            name = (connection.toolkit, connection.id)
            if name not in self._syncs:
                try:
                    self._decide(connection, rows.get(name), now)
                except ChatprocError as error:
                    self._fault(f"{connection.toolkit}/{connection.id}", error)

    def _decide(self, connection: ConnectionConfig, row: Row | None, now: int) -> None:
        name = (connection.toolkit, connection.id)
        verdict = due.decide(policy_of(self.config, connection), row, now)
        nudged = self._nudged.pop(name, None)
        if nudged is not None and verdict.allows(nudged):
            self._start(connection, nudged, row)
            return
        held = self._held_until.get(name, 0.0) - self._time()
        if verdict.state == "due" and held <= 0:
            self._start(connection, "tick", row)
            return
        at = verdict.at
        if verdict.state == "running" and row is not None:
            at = row["lease"]["until"]
        elif verdict.state == "due":
            at = None if held == _TO_TICK else now + round(held * 1000)
        if at is not None and at > now:
            self._next_due = min(at, self._next_due or at)

    def _start(self, connection: ConnectionConfig, trigger: Trigger, row: Row | None) -> None:
        name = (connection.toolkit, connection.id)
        self._syncs[name] = asyncio.create_task(self._sync(connection, trigger, row))

    async def _sync(self, connection: ConnectionConfig, trigger: Trigger, row: Row | None) -> None:
        name = (connection.toolkit, connection.id)
        try:
            async with self._room.seat(row):
                if not self._stopping.is_set():
                    self._note(await sync_connection(self._setting(), connection, trigger, row))
        except Exception as error:  # noqa: BLE001 - a fault of one connection is its own
            self._held_until[name] = _TO_TICK
            self._fault("/".join(name), error)
        finally:
            del self._syncs[name]
            self._wake.set()

    def _setting(self) -> Setting:
        return Setting(
            store=self._store,
            config=self.config,
            reading=reading(self.config),
            holder=self._writer.holder,
            now=self._now,
            chance=self._chance,
            stopping=self._stopping,
        )

    def _note(self, report: Json) -> None:
        """What a finished sync brings about."""
        name = f"{report['toolkit']}/{report['id']}"
        if report["outcome"] in {"running", "skipped"}:
            # Someone came first; what it records says when this connection is due.
            self._held_until[report["toolkit"], report["id"]] = self._time() + _ELSEWHERE
            return
        self.counts["syncs"] += 1
        self.counts["written"] += report["written"]
        if report["written"]:
            self.want_round()
        if report["more_pending"]:
            self._held_until[report["toolkit"], report["id"]] = _TO_TICK
        if report.get("unfinished_files"):
            self._later(lambda: self.nudge(report["toolkit"], report["id"], "watch"))
        if report["error"] is not None:
            self.counts["failed_syncs"] += 1
            _log.warning("%s: %s: %s", name, report["error"]["class"], report["error"]["text"])
        else:
            more = ", more to come" if report["more_pending"] else ""
            self._tell(f"{name}: {report['outcome']}, {report['written']} new of {report['read']}{more}")

    def _later(self, call: Callable[[], object]) -> None:
        """Once a last line without a newline has been quiet for long enough."""
        seconds = self.config.input.settle_seconds + 0.1
        asyncio.get_running_loop().call_later(seconds, call)

    # ── rounds ───────────────────────────────────────────────────────────────────────────────────────

    async def _rounds(self) -> None:
        while True:
            await self._round_wanted.wait()
            self._round_wanted.clear()
            if self._syncs:
                # What one source brings late is a round of its own: it delays no other.
                await asyncio.wait(self._syncs.values(), timeout=PATIENCE)
            try:
                while await self._round():
                    pass
            except Exception as error:  # noqa: BLE001 - the next tick tries again
                self.counts["failed_rounds"] += 1
                self._fault("round", error)

    async def _round(self) -> bool:
        """One round; whether another one has something to do and this one got on well."""
        self._check_store()
        config = self.config
        report = await round_with(self._writer, config, patient=True)
        self.counts["rounds"] += 1
        outcomes = Counter(group["outcome"] for group in report.round["groups"])
        self._tell_round(report, outcomes)
        if report.ingest["waiting"]:
            self._later(self.want_round)
        if report.round["waiting"]:
            asyncio.get_running_loop().call_later(config.schedule.settle_seconds, self.want_round)
        self._retry_at(report.round["retry_at"])
        # What failed once is asked again by the next round: that is worth it only while more succeeds.
        return bool(report.round["pending"] and outcomes["done"] > outcomes["failed"])

    def _retry_at(self, at: float | None) -> None:
        """A round when the first of what was put off is worth another try; each round tells that anew."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if at is not None:
            seconds = max(0.0, at - self._now() / 1000)
            self._retry = asyncio.get_running_loop().call_later(seconds, self.want_round)

    def _tell_round(self, report: RoundReport, outcomes: Counter[str]) -> None:
        for group in report.round["groups"]:
            if group["outcome"] == "failed":
                _log.warning("group %s: %s", group["id"], group["reason"])
        if report.export["error"]:
            _log.warning("export: %s", report.export["error"])
        tasks = sum(len(group["tasks"]) for group in report.round["groups"])
        self.counts["tasks"] += tasks
        new = report.ingest["accepted"]
        if new or outcomes or report.export["events"]:
            done, pending = outcomes["done"], report.round["pending"]
            self._tell(f"round: {new} new lines, {done} groups done, {tasks} tasks, {pending} groups pending")
        if outcomes["failed"] and report.round["put_off"]:
            at = due.moment(round(report.round["retry_at"] * 1000), self.config.rules.timezone)
            self._tell(f"{report.round['put_off']} segments failed again and wait; the next try is at {at}")

    @staticmethod
    def _fault(what: str, error: BaseException) -> None:
        """An error with its class; unforeseen ones without their words, which may hold anything."""
        if isinstance(error, (ChatprocError, OSError)):
            hint = getattr(error, "hint", None)
            _log.warning("%s: %s: %s%s", what, type(error).__name__, error, f"; {hint}" if hint else "")
        else:
            _log.warning("%s: %s; this is a fault of chatproc", what, type(error).__name__)
            _log.debug("%s", what, exc_info=error)


def _file_of(config: Config) -> tuple[int, int] | None:
    """What tells the store's file from a later one of its name."""
    try:
        status = config.storage.state.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
