"""Connections and the loop for callers: how they stand, one sync now, and the loop, once in a process.

It opens the store, puts the loop into a thread of its own and takes it down again; work is done elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from chatproc import _core
from chatproc.config import DEFAULT_CONFIG, load_config
from chatproc.errors import ConfigError
from chatproc.given import reading
from chatproc.holder import holder_now
from chatproc.loop import due
from chatproc.loop.room import Room
from chatproc.loop.standing import rows_by_name, stand
from chatproc.loop.sync import Setting, policy_of, report_of, sync_connection
from chatproc.loop.ticks import Loop
from chatproc.pipeline import Writer
from chatproc.results import ConnectionStates, LoopReport, SyncReport

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from chatproc.config import Config, ConnectionConfig
    from chatproc.loop.due import Row
    from chatproc.results import Json

# Made as they are needed. A connector may block some in a source that hangs; commits must still find one.
_THREADS = 1024
_LAST_WORDS = 0.5

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


def _now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _chance() -> float:
    return random.uniform(-1.0, 1.0)  # noqa: S311 - spreads retries, no secret


# ── how connections stand ────────────────────────────────────────────────────────────────────────────


def connections(config: Config) -> ConnectionStates:
    """How every configured connection stands, and why it is not synced right now. Asks no source.

    Args:
        config: From `load_config`.

    Example:
        >>> [entry["why"] for entry in connections(config).connections]  # doctest: +SKIP
        ['not due before 2026-07-01T10:20:00+08:00']
    """
    return ConnectionStates(stand(config, _core.connections(config.storage.state), _now()))


def plan_run(config: Config) -> Json:
    """What the loop would sync if it began now, and why; no request is made.

    Args:
        config: From `load_config`.

    Returns:
        `tick_seconds` and `connections`, each with `would_sync`.
    """
    states = connections(config).connections
    return {
        "tick_seconds": config.schedule.tick_seconds,
        "connections": [{**entry, "would_sync": entry["state"] == "due"} for entry in states],
    }


# ── one sync now ─────────────────────────────────────────────────────────────────────────────────────


def sync_connections(config: Config, connection: str | None = None, *, force: bool = False) -> SyncReport:
    """Sync one connection, or all that are enabled, now; also while a loop or a round is at work.

    Args:
        config: From `load_config`.
        connection: `toolkit/id`, or an id that only one connection has; `None`: all that are enabled.
        force: Also those that are stopped by a refused credential or whose breaker is open.

    Raises:
        ConfigError: No connection, or more than one, has that name.
        OSError: The store cannot be opened.

    Example:
        >>> sync_connections(config, "imap/work").connections[0]["outcome"]  # doctest: +SKIP
        'done'
    """
    chosen = _enabled(config) if connection is None else [find_connection(config, connection)]
    if not chosen:
        return SyncReport([])
    store = _core.Connections(config.storage.state, _now())
    try:
        entries = _run_in_loop(lambda: _sync_all(config, store, chosen, force=force))
    finally:
        store.close()
    return SyncReport(entries)


def _enabled(config: Config) -> list[ConnectionConfig]:
    return [connection for connection in config.connections if connection.enabled]


def find_connection(config: Config, name: str) -> ConnectionConfig:
    """The connection that a person means.

    Args:
        config: From `load_config`.
        name: `toolkit/id`, or an id that only one connection has.

    Raises:
        ConfigError: None has that name, or more than one.
    """
    toolkit, _, rest = name.partition("/")
    whole = [known for known in config.connections if (known.toolkit, known.id) == (toolkit.lower(), rest)]
    found = whole or [known for known in config.connections if known.id == name]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{known.toolkit}/{known.id}" for known in (found or config.connections))
    what = f"more than one connection has the id {name!r}" if found else f"no connection is called {name!r}"
    raise ConfigError(what, where=str(config.file), hint=f"there are: {names}" if names else None)


async def _sync_all(
    config: Config, store: _core.Connections, chosen: list[ConnectionConfig], *, force: bool
) -> list[Json]:
    setting = Setting(
        store=store,
        config=config,
        reading=reading(config),
        holder=holder_now(config.rules.timezone),
        now=_now,
        chance=_chance,
        stopping=asyncio.Event(),
    )
    rows = rows_by_name(store.states())
    room = Room()
    tasks = [
        asyncio.create_task(_sync_one(setting, known, rows.get((known.toolkit, known.id)), room, force=force))
        for known in chosen
    ]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        setting.stopping.set()
        await asyncio.wait(tasks)
        raise
    return [task.result() for task in tasks]


async def _sync_one(
    setting: Setting, connection: ConnectionConfig, row: Row | None, room: Room, *, force: bool
) -> Json:
    policy = policy_of(setting.config, connection)
    verdict = due.decide(policy, row, setting.now())
    if verdict.state != "running" and not verdict.allows("sync", force=force):
        error = None
        if row is not None and verdict.state in {"stopped", "open"}:
            error = {"class": row["error_class"], "text": row["error_text"]}
        return report_of(connection, "skipped", why=verdict.why, error=error)
    async with room.seat(row):
        return await sync_connection(setting, connection, "sync", row)


# ── the loop ─────────────────────────────────────────────────────────────────────────────────────────


class RunningLoop:
    """A loop at work in a thread of this process. Made by `start_loop`."""

    def __init__(self, config: Config, tell: Callable[[str], None]) -> None:
        """Nothing runs yet."""
        self.config_file = config.file
        self._config = config
        self._tell = tell
        self.over: Future[None] = Future()
        """Done when it has ended, however it did."""
        self._opened = threading.Event()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._loop: Loop | None = None
        self._events: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="chatproc run", daemon=True)

    @property
    def is_running(self) -> bool:
        """Whether it is at work, or about to end."""
        return self._thread.is_alive() and not self._ended.is_set()

    def nudge(self, connection: str) -> None:
        """Sync a connection as soon as may be, whatever its interval: something new is known to be there.

        Args:
            connection: `toolkit/id`, or an id that only one connection has.

        Raises:
            ConfigError: No connection, or more than one, has that name.
        """
        assert self._loop is not None  # noqa: S101 - opened before anyone has it
        found = find_connection(self._loop.config, connection)
        self._call(self._loop.nudge, found.toolkit, found.id)

    def stop(self) -> None:
        """Ask it to end with the page and the commit in hand; returns at once."""
        assert self._loop is not None  # noqa: S101
        self._call(self._loop.stop)

    def wait(self, seconds: float | None = None) -> LoopReport | None:
        """Until it has ended.

        Args:
            seconds: How long at most; `None`: for ever.

        Returns:
            What it did; `None` while it is at work.

        Raises:
            ChatprocError: What ended it, if that was a fault.
        """
        if not self._ended.wait(seconds):
            return None
        if self._error is not None:
            raise self._error
        counts: Counter[str] = Counter() if self._loop is None else self._loop.counts
        return LoopReport(**{name: counts[name] for name in LoopReport.__dataclass_fields__})

    def _call(self, call: Callable[..., object], *arguments: object) -> None:
        assert self._events is not None  # noqa: S101
        with contextlib.suppress(RuntimeError):  # it has ended
            self._events.call_soon_threadsafe(call, *arguments)

    def start(self) -> None:
        """Begin; returns when the store is open.

        Raises:
            StateLockedError: Another process writes rounds into this store.
        """
        self._thread.start()
        self._opened.wait()
        if self._loop is None and self._error is not None:
            self._ended.wait()
            raise self._error

    def _work(self) -> None:
        try:
            _run_in_loop(self._main)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            self._error = error
        finally:
            self._ended.set()
            self._opened.set()
            self.over.set_result(None)

    def _say(self, line: str) -> None:
        """Whoever listens may be gone; that ends nothing."""
        try:
            self._tell(line)
        except Exception as error:  # noqa: BLE001 - the caller's
            _log.debug("nobody took %r: %s", line, type(error).__name__)

    async def _main(self) -> None:
        self._events = asyncio.get_running_loop()
        with Writer(self._config, now=_now) as writer:
            store = _core.Connections(self._config.storage.state, _now())
            try:
                self._loop = Loop(self._config, writer, store, now=_now, chance=_chance, tell=self._say)
                self._opened.set()
                await self._loop.run()
            finally:
                store.close()


_running: dict[Path, RunningLoop] = {}
_starting = threading.Lock()


def start_loop(
    config_file: str | os.PathLike[str] = DEFAULT_CONFIG, *, tell: Callable[[str], None] | None = None
) -> RunningLoop:
    """Start the loop of `chatproc run` in a thread, or get the one that runs on this store already.

    Args:
        config_file: Read again at every tick.
        tell: Takes one line for each thing that was done, from the loop's thread.

    Raises:
        ConfigError: The configuration cannot be used.
        StateLockedError: Another process writes rounds into this store.

    Example:
        >>> loop = start_loop("config/processor.toml")  # doctest: +SKIP
        >>> loop.stop(), loop.wait(10)  # doctest: +SKIP
    """
    config = load_config(config_file)
    with _starting:
        known = _running.get(config.storage.state)
        if known is not None and known.is_running:
            return known
        started = RunningLoop(config, tell or (lambda _: None))
        started.start()
        _running[config.storage.state] = started
        return started


def nudge(config: Config, connection: str) -> bool:
    """Tell the loop of this process that a connection has something new, as a webhook does.

    Args:
        config: From `load_config`.
        connection: `toolkit/id`, or an id that only one connection has.

    Returns:
        Whether a loop of this process runs on this store. If not, `sync_connections` does it without.

    Raises:
        ConfigError: No connection, or more than one, has that name.
    """
    known = _running.get(config.storage.state)
    if known is None or not known.is_running:
        find_connection(config, connection)
        return False
    known.nudge(connection)
    return True


def _run_in_loop(main: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
    """As `asyncio.run`, but a thread that hangs in a source does not keep it from returning."""
    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="chatproc")
    events = asyncio.new_event_loop()
    events.set_default_executor(threads)
    task = events.create_task(main())
    try:
        with _cancelled_by_ctrl_c(events, task):
            return _complete(events, task)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        left = asyncio.all_tasks(events)
        for other in left:
            other.cancel()
        if left:
            events.run_until_complete(asyncio.wait(left, timeout=_LAST_WORDS))
        events.run_until_complete(events.shutdown_asyncgens())
        threads.shutdown(wait=False, cancel_futures=True)
        events.close()


def _complete(events: asyncio.AbstractEventLoop, task: asyncio.Task[_Result]) -> _Result:
    """Until the task is over; what a connector's own tasks raise to end a program ends nothing."""
    while True:
        try:
            return events.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt):
            if task.done():
                raise


@contextlib.contextmanager
def _cancelled_by_ctrl_c(events: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> Iterator[None]:
    """Ctrl-C breaks into no step of a source: the first one cancels, a second one ends the program."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield
        return

    def step_aside(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with contextlib.suppress(NotImplementedError):  # not on Windows
        # The loop wakes and cancels; the handler itself runs also while a source blocks the loop.
        events.add_signal_handler(signal.SIGINT, task.cancel)
        signal.signal(signal.SIGINT, step_aside)
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError):
            events.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, usual)
