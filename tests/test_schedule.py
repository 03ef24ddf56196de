"""The loop over a real store, in virtual time: months of ticks, faults and changed clocks, in seconds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from chatproc import _core
from chatproc.config import load_config
from chatproc.connectors.base import Page, SyncError
from chatproc.given import reading
from chatproc.loop.due import DAY, HOUR, day_of
from chatproc.loop.pages import DEEPEST_CURSOR, LARGEST_CURSOR, MOST_EVENTS
from chatproc.loop.room import NEW_FOR, SEATS
from chatproc.loop.sync import DEADLINE, Setting, sync_connection
from chatproc.loop.ticks import Loop
from chatproc.pipeline import Writer, _Worker
from chatproc.schedule import connections
from tests import scripted
from tests.project import Project, chat
from tests.scripted import SOURCES, message
from tests.virtual import BEGIN, VirtualLoop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from chatproc.agent.session import SessionResult
    from chatproc.connectors.base import Pull
    from chatproc.results import Json

    Act = Callable[[Loop, VirtualLoop], Awaitable[None]]

MINUTE = 60.0
ZONE = "Asia/Shanghai"


@pytest.fixture(autouse=True)
def entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(scripted.installed(tmp_path / "packages")))
    yield
    SOURCES.clear()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Its messages are history, so that rounds ask no model: they would wait for a real one."""
    project = Project(tmp_path / "project")
    return project.configure(
        input={"start_at": 4_000_000_000, "settle_seconds": 0},
        schedule={"tick_seconds": 1200, "watch": False},
    )


def hourly(*ids: str, **more: Any) -> list[tuple[str, dict[str, Any]]]:  # noqa: ANN401 - any key
    return [("scripted", {"interval_seconds": 3600, **more, "id": name}) for name in ids]


def file_of(project: Project) -> Path:
    return project.root / "config" / "processor.toml"


def play(project: Project, act: Act) -> tuple[Loop, list[str]]:
    """Run the loop while the act goes on, then stop it; returns it with what it told."""
    told: list[str] = []
    with virtual() as events:
        loop, _ = events.run_until_complete(played(project, act, events, told))
    return loop, told


async def played(
    project: Project, act: Act, events: VirtualLoop, told: list[str] | None = None
) -> tuple[Loop, float]:
    """The loop, and when it ended."""
    tell = [].append if told is None else told.append
    config = load_config(file_of(project))
    with Writer(config, now=events.now) as writer:
        store = _core.Connections(config.storage.state, events.now())
        loop = Loop(config, writer, store, now=events.now, chance=lambda: 0.0, tell=tell)
        running = asyncio.create_task(loop.run())
        await act(loop, events)
        assert not running.done(), "nothing ends the loop"
        loop.stop()
        await running
        store.close()
        return loop, events.time()


@contextlib.contextmanager
def virtual() -> Iterator[VirtualLoop]:
    events = VirtualLoop()
    yield events
    events.run_until_complete(events.shutdown_default_executor())
    events.close()


def sleeping(seconds: float) -> Act:
    async def act(_loop: Loop, _events: VirtualLoop) -> None:
        await asyncio.sleep(seconds)

    return act


def rows(project: Project) -> dict[str, Json]:
    return {row["id"]: row for row in _core.connections(project.state)}


def stored(project: Project) -> int:
    messages: int = _core.status(project.state)["messages"]
    return messages


class Source:
    """A source that grows by itself: a message an interval of its own clock; pages of a size."""

    def __init__(self, name: str, *, size: int = 10, behind: int = 0) -> None:
        self.name = name
        self.size = size
        self.behind = behind
        """Messages that were there before the beginning."""
        self.began: list[int] = []
        """When each pull began."""
        self.pages: list[int] = []
        """From which message each page that was asked for went on."""
        self.fault: Callable[[int], Exception | None] = lambda _: None
        self.slow = 0.0
        """Seconds that a page takes."""
        SOURCES[name] = self.pull

    def length(self, now: int) -> int:
        return self.behind + (now - BEGIN) // HOUR

    async def pull(self, ask: Pull) -> AsyncIterator[Page]:
        self.began.append(ask.now())
        at, more = ask.cursor.get("at", 0), True
        while more:
            await ask.budget.request()
            size = ask.budget.page_size(self.size)
            self.pages.append(at)
            if self.slow:
                await asyncio.sleep(self.slow)
            if (fault := self.fault(ask.now())) is not None:
                raise fault
            end = min(at + size, self.length(ask.now()))
            found = [message(self.name, number) for number in range(at, end)]
            at, more = end, end < self.length(ask.now())
            yield Page(events=found, cursor={"at": at}, more=more)


def nested(depth: int) -> dict[str, Any]:
    cursor: dict[str, Any] = {}
    for _ in range(depth - 1):
        cursor = {"in": cursor}
    return cursor


def gaps(times: list[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(times)]


# ── when ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_month_of_ticks_syncs_each_connection_at_its_own_pace_and_brings_every_message_once(
    project: Project,
) -> None:
    project.configure(schedule={"tick_seconds": 24 * 3600})
    sources = [Source("a"), Source("b", behind=500)]
    project.connect(*hourly("a", "b", interval_seconds=8 * 3600))
    loop, _ = play(project, sleeping(30 * 86400))
    assert loop.counts["ticks"] in {30, 31}
    for source in sources:
        assert source.began[0] == BEGIN
        assert set(gaps(source.began[1:])) == {8 * HOUR}
        assert len(source.began) in {90, 91}
    assert sources[0].began[1] != sources[1].began[1], "connections are spread"
    read = [source.length(source.began[-1]) for source in sources]
    assert stored(project) == sum(read)
    states = rows(project)
    assert [states[name]["written"] for name in "ab"] == read
    assert [states[name]["failures_in_row"] for name in "ab"] == [0, 0]


def test_the_budget_of_a_day_is_used_up_and_comes_back_at_midnight_in_the_rules_zone(
    project: Project,
) -> None:
    project.configure(schedule={"tick_seconds": 6 * 3600})
    source = Source("a", size=1, behind=40)
    project.connect(*hourly("a", daily_requests=5))
    seen: list[Json] = []

    async def act(_loop: Loop, events: VirtualLoop) -> None:
        await asyncio.sleep(2 * 3600)
        seen.append(connections_at(project, events)["a"])
        await asyncio.sleep(5 * 86400)

    play(project, act)
    # 2026-07-01 08:00 in Shanghai: the first five go at once.
    assert (seen[0]["state"], seen[0]["budget"]["requests_left"]) == ("paused", 0)
    assert "paused until 2026-07-02T00:" in seen[0]["why"]
    days = {day_of(at, ZONE) for at in source.began}
    assert len(days) == 6
    assert len(source.pages) == 5 * 6
    assert source.pages == sorted(set(source.pages)), "no page is asked for twice, none is left out"
    assert stored(project) == source.pages[-1] + 1
    midnights = [at for at in source.began if day_of(at - HOUR, ZONE) != day_of(at, ZONE)]
    assert len(midnights) == 5


def connections_at(project: Project, events: VirtualLoop) -> dict[str, Json]:
    from chatproc.loop.standing import stand

    entries = stand(load_config(file_of(project)), _core.connections(project.state), events.now())
    return {entry["id"]: entry for entry in entries}


def test_a_source_that_fails_is_asked_ever_less_often_then_once_a_day_until_it_heals(
    project: Project,
) -> None:
    project.configure(schedule={"tick_seconds": 12 * 3600})
    source = Source("a")
    healed = BEGIN + 5 * DAY
    source.fault = lambda now: SyncError("no route", fault="network") if now < healed else None
    project.connect(*hourly("a"))
    play(project, sleeping(6 * 86400))
    failed = [at for at in source.began if at < healed]
    waits = gaps(failed)
    assert HOUR / 2 < waits[0] <= 1.5 * HOUR
    assert [round(wait / HOUR) for wait in waits[1:4]] == [2, 4, 6]
    assert {round(wait / HOUR) for wait in waits[4:]} == {24}
    after = [at for at in source.began if at >= healed]
    assert set(gaps(after)[1:]) == {HOUR}
    state = rows(project)["a"]
    assert (state["breaker"], state["failures_in_row"], state["error_class"]) == ("closed", 0, "network")
    assert stored(project) == source.length(source.began[-1])


def test_a_clock_that_is_set_back_or_forward_stops_nothing_and_doubles_nothing(project: Project) -> None:
    source = Source("a")
    source.length = lambda _: 3  # type: ignore[method-assign]
    project.connect(*hourly("a"))
    turns: list[int] = []

    async def act(_loop: Loop, events: VirtualLoop) -> None:
        for days in (-300, 20, -1, 700, -5):
            await asyncio.sleep(6 * 3600)
            turns.append(len(source.began))
            events.set_clock(days * 86400)
            await asyncio.sleep(120)
            assert len(source.began) == turns[-1] + 1, "one run makes up for it"
        await asyncio.sleep(6 * 3600)
        turns.append(len(source.began))

    play(project, act)
    assert all(5 <= runs <= 8 for runs in gaps(turns)), turns
    assert stored(project) == 3


@pytest.mark.parametrize("jumps", [(-3600, 30 * 86400), (30 * 86400, -30 * 86400 - 3600)])
def test_a_clock_that_changes_in_mid_page_costs_neither_the_run_nor_a_day(
    project: Project, jumps: tuple[int, int]
) -> None:
    source = Source("a", behind=30)
    source.length = lambda _: 30  # type: ignore[method-assign]
    source.slow = 40.0
    project.connect(*hourly("a", daily_requests=4))

    async def act(_loop: Loop, events: VirtualLoop) -> None:
        await asyncio.sleep(50)
        events.set_clock(jumps[0])
        await asyncio.sleep(40)
        events.set_clock(jumps[1])
        await asyncio.sleep(60)
        state = rows(project)["a"]
        assert (state["cursor"], state["failures_in_row"], stored(project)) == ({"at": 30}, 0, 30)
        assert source.pages[:3] == [0, 10, 20], "no page is asked for twice"
        await asyncio.sleep(26 * 3600)
        shown = connections_at(project, events)["a"]
        assert shown["budget"]["day"] == day_of(events.now(), ZONE)
        assert max(source.began) > events.now() - 25 * HOUR, "the next day has its budget"

    play(project, act)


def test_a_machine_that_slept_for_days_makes_one_run_and_one_tick_soon_after(project: Project) -> None:
    source = Source("a")
    project.connect(*hourly("a"))

    async def act(loop: Loop, events: VirtualLoop) -> None:
        await asyncio.sleep(100)
        ticks, runs = loop.counts["ticks"], len(source.began)
        events.set_clock(3 * 86400)
        await asyncio.sleep(61)
        assert (loop.counts["ticks"], len(source.began)) == (ticks + 1, runs + 1)

    play(project, act)


def test_many_connections_do_not_come_at_the_same_time(project: Project) -> None:
    sources = [Source(f"s{number}") for number in range(12)]
    project.connect(*hourly(*(source.name for source in sources)))
    play(project, sleeping(2 * 3600))
    second = sorted(source.began[1] for source in sources)
    assert len({at // 60_000 for at in second}) >= 9


# ── rounds ───────────────────────────────────────────────────────────────────────────────────────────


class Model:
    """Sessions that break, for as long as it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, events: Callable[[], int]) -> None:
        self.asked: list[int] = []
        self._now = events
        monkeypatch.setattr(_Worker, "_session", self._break)

    async def _break(self, _batch: Json) -> SessionResult:
        self.asked.append(self._now())
        raise RuntimeError


def test_what_always_fails_is_asked_ever_less_often_and_again_at_once_when_it_changes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.configure(input={"start_at": 0}, agent={"base_url": "http://127.0.0.1:9/v1"})
    project.batch("a.jsonl", *chat("lab", "交报告"))
    told: list[str] = []
    with virtual() as events:
        model = Model(monkeypatch, events.now)

        async def act(_loop: Loop, events: VirtualLoop) -> None:
            await asyncio.sleep(30 * 3600)
            waits = [round(gap / 60_000) for gap in gaps(model.asked)]
            assert waits[:8] == [20, 20, 40, 80, 160, 320, 360, 360]
            asked = len(model.asked)
            project.rules.write_text("P1: everything.", encoding="utf-8")
            await asyncio.sleep(1201)
            assert len(model.asked) > asked, "other rules: another question"
            await asyncio.sleep(2 * 3600)
            asked = len(model.asked)
            project.batch("b.jsonl", *chat("other", "开会"))
            await asyncio.sleep(1201)
            assert len(model.asked) > asked, "what is new waits for nothing"
            asked = len(model.asked)
            events.set_clock(-400 * 86400)
            await asyncio.sleep(1261)
            assert len(model.asked) > asked, "a clock that is set back holds nothing up for a year"
            await asyncio.sleep(30 * 3600)
            asked = len(model.asked)
            events.set_clock(30 * 86400)
            await asyncio.sleep(70)
            assert len(model.asked) == asked + 1
            await asyncio.sleep(3 * 3600)
            assert len(model.asked) == asked + 1, "the wait begins anew, it is no shorter for the month"

        events.run_until_complete(played(project, act, events, told))
    assert any("failed again and wait; the next try is at 2026-07-01T" in line for line in told)


def test_a_model_that_is_away_makes_no_group_wait_longer(project: Project) -> None:
    project.configure(input={"start_at": 0}, agent={"base_url": "http://127.0.0.1:9/v1", "retries": 0})
    project.batch("a.jsonl", *chat("lab", "交报告"))

    async def act(loop: Loop, events: VirtualLoop) -> None:
        await asyncio.sleep(6 * 3600 + 10)
        assert loop.counts["rounds"] == loop.counts["ticks"] == 19
        shown = _core.status(project.state)
        assert shown["retry"]["at"] * 1000 <= events.now(), "it is asked at every tick"

    play(project, act)


# ── the configuration ────────────────────────────────────────────────────────────────────────────────


def test_edits_of_the_configuration_count_and_a_bad_one_keeps_the_last_good_one(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Source("a"), Source("b")
    project.connect(*hourly("a"))

    async def act(_loop: Loop, _events: VirtualLoop) -> None:
        await asyncio.sleep(1300)
        good = file_of(project).read_text()
        file_of(project).write_text(good + "\n[[connections]\n")
        before = len(first.began)
        await asyncio.sleep(5 * 3600)
        assert len(first.began) - before == 5, "goes on under the last good one"
        project.connect(*hourly("a", enabled=False), *hourly("b"))
        before = len(first.began)
        await asyncio.sleep(5 * 3600)
        assert len(first.began) == before
        assert len(second.began) in {5, 6}
        file_of(project).unlink()
        await asyncio.sleep(3600)

    with caplog.at_level(logging.WARNING):
        _, told = play(project, act)
    refused = [text for text in caplog.messages if text.startswith("the last good configuration")]
    assert len(refused) == 2, "each fault is told once"
    assert "TOML" in refused[0]
    assert "there is no configuration" in refused[1]
    assert "the configuration can be used again" in told


def test_another_store_is_not_taken_while_at_work(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    source = Source("a")
    project.connect(*hourly("a"))

    async def act(_loop: Loop, _events: VirtualLoop) -> None:
        await asyncio.sleep(100)
        project.configure(storage={"state": "other/state.db"})
        await asyncio.sleep(3 * 3600)

    with caplog.at_level(logging.WARNING):
        play(project, act)
    assert [text for text in caplog.messages if "restart `chatproc run`" in text or "storage.state" in text]
    assert not (project.root / "other").exists()
    assert len(source.began) >= 3


# ── one at a time ────────────────────────────────────────────────────────────────────────────────────


def test_three_triggers_at_once_make_one_run_and_one_after_it_makes_another(project: Project) -> None:
    source = Source("a")
    source.slow = 10.0
    project.connect(*hourly("a"))

    async def act(loop: Loop, _events: VirtualLoop) -> None:
        for trigger in ("nudge", "watch", "nudge"):
            assert loop.nudge("scripted", "a", trigger)  # type: ignore[arg-type]
        assert not loop.nudge("scripted", "unknown")
        await asyncio.sleep(5)
        assert len(source.began) == 1
        loop.nudge("scripted", "a")  # what it tells of may lie behind the page in hand
        loop.nudge("scripted", "a")
        await asyncio.sleep(100)
        assert len(source.began) == 2

    play(project, act)
    assert rows(project)["a"]["runs"] == 2


async def race(project: Project, count: int, **more: Any) -> list[Json]:  # noqa: ANN401
    """As many processes as asked for, each with a store of its own, that decided at the same moment."""
    config = load_config(file_of(project))
    now = asyncio.get_running_loop().now  # type: ignore[attr-defined]
    stores = [_core.Connections(config.storage.state, now()) for _ in range(count)]
    (row,) = stores[0].states() or [None]
    settings = [
        Setting(
            store=store,
            config=config,
            reading=reading(config),
            holder=f"process {number} on elsewhere, since then",
            now=now,
            chance=lambda: 0.0,
            stopping=asyncio.Event(),
        )
        for number, store in enumerate(stores)
    ]
    trigger = more.get("trigger", "tick")
    runs = [sync_connection(setting, config.connections[0], trigger, row) for setting in settings]
    reports = await asyncio.gather(*runs)
    for store in stores:
        store.close()
    return list(reports)


@pytest.mark.parametrize("slow", [0.0, 30.0, 280.0])
def test_of_processes_that_decide_at_one_moment_one_runs(project: Project, slow: float) -> None:
    """Also when its run is over before the last one asks, and when it takes longer than a lease."""
    source = Source("a", behind=3)
    source.slow = slow
    project.connect(*hourly("a"))
    with virtual() as events:
        reports = events.run_until_complete(race(project, 4))
    outcomes = [report["outcome"] for report in reports]
    assert outcomes.count("done") == 1
    assert set(outcomes) <= {"done", "running", "skipped"}
    assert "running" in outcomes or not slow
    assert len(source.began) == 1
    assert rows(project)["a"]["runs"] == 1


def test_a_lease_whose_process_is_gone_does_not_hold_up_the_next(project: Project) -> None:
    source = Source("a")
    project.connect(*hourly("a"))
    store = _core.Connections(project.state, BEGIN)
    import socket

    gone = f"process {2**22 + 1} on {socket.gethostname()}, since then"
    assert store.lease("scripted", "a", gone, "tick", BEGIN, BEGIN + 60_000) is not None
    store.close()
    play(project, sleeping(5))
    assert len(source.began) == 1


def test_a_lease_of_another_machine_holds_until_it_ends(project: Project) -> None:
    source = Source("a")
    project.connect(*hourly("a"))
    store = _core.Connections(project.state, BEGIN)
    store.lease("scripted", "a", "process 1 on elsewhere, since then", "tick", BEGIN, BEGIN + 60_000)
    store.close()

    async def act(_loop: Loop, events: VirtualLoop) -> None:
        await asyncio.sleep(50)
        assert not source.began
        entry = connections_at(project, events)["a"]
        assert entry["state"] == "running"
        assert "process 1 on elsewhere" in entry["why"]
        await asyncio.sleep(100)
        assert len(source.began) == 1

    play(project, act)


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_source_that_hangs_delays_no_other_and_ends_as_a_failure(project: Project) -> None:
    good = Source("good")

    async def hang(_: Pull) -> AsyncIterator[Page]:
        await asyncio.Event().wait()
        yield Page(events=(), cursor={})

    names = [f"bad{number}" for number in range(5)]
    SOURCES.update(dict.fromkeys(names, hang))
    project.connect(*hourly(*names, "good"))
    play(project, sleeping(2 * 3600))
    assert good.began[0] == BEGIN
    assert set(gaps(good.began)[1:]) == {HOUR}
    state = rows(project)["bad0"]
    assert (state["failures_in_row"], state["error_class"]) == (2, "network")
    assert state["error_text"] == f"nothing came for {DEADLINE:.0f} seconds"


def test_sources_that_hang_fill_no_place_however_many_they_are(project: Project) -> None:
    good = Source("good")

    async def hang(_: Pull) -> AsyncIterator[Page]:
        await asyncio.Event().wait()
        yield Page(events=(), cursor={})

    names = [f"bad{number}" for number in range(3 * SEATS)]
    SOURCES.update(dict.fromkeys(names, hang))
    project.connect(*hourly(*names, "good"))
    play(project, sleeping(4 * 3600))
    assert good.began[0] - BEGIN <= 3 * (NEW_FOR + 1) * 1000, "nobody knew yet that they hang"
    assert set(gaps(good.began)[1:]) == {HOUR}, "it waits for none of them any more"
    assert {state["error_class"] for name, state in rows(project).items() if name != "good"} == {"network"}


def test_a_run_whose_time_is_up_goes_on_at_the_next_tick_from_its_place(project: Project) -> None:
    source = Source("a", behind=60)
    source.slow = 70.0
    project.connect(*hourly("a"))
    play(project, sleeping(3600))
    # Four pages of ten in 300 seconds; the fifth was on its way.
    assert gaps(source.began)[0] == 1200 * 1000
    assert source.pages[:6] == [0, 10, 20, 30, 40, 40]
    assert rows(project)["a"]["written"] >= 60


@pytest.mark.parametrize("events", [(), [message("a", 0)]])
def test_a_page_that_leads_nowhere_ends_the_run(project: Project, events: Any) -> None:  # noqa: ANN401
    asked = 0

    async def circle(_: Pull) -> AsyncIterator[Page]:
        nonlocal asked
        while True:
            asked += 1
            yield Page(events=events, cursor={}, more=True)

    SOURCES["a"] = circle
    project.connect(*hourly("a"))
    play(project, sleeping(60))
    assert asked == 1 + len(events)
    assert rows(project)["a"]["error_class"] == "bad_data"


def test_a_source_that_asks_for_no_budget_ends_at_the_days_items_all_the_same(project: Project) -> None:
    async def endless(_: Pull) -> AsyncIterator[Page]:
        number = 0
        while True:
            number += 1
            yield Page(events=[message("a", number)], cursor={"at": number}, more=True)

    SOURCES["a"] = endless
    project.connect(*hourly("a", daily_items=20))
    play(project, sleeping(60))
    state = rows(project)["a"]
    assert (state["written"], state["last_run"]["outcome"], state["more_pending"]) == (20, "paused", True)


@pytest.mark.parametrize(
    "fault", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]
)
def test_what_would_end_the_program_ends_a_run_of_its_connection(
    project: Project, fault: BaseException
) -> None:
    good = Source("good")

    async def broken(_: Pull) -> AsyncIterator[Page]:
        raise fault
        yield

    SOURCES["a"] = broken
    project.connect(*hourly("a", "good"))
    play(project, sleeping(2 * 3600))
    state = rows(project)["a"]
    assert (state["error_class"], state["failures_in_row"]) == ("bug", 2)
    assert state["error_text"].startswith(f"{type(fault).__name__} in the connector")
    assert len(good.began) >= 2


@pytest.mark.parametrize("asked", [float("nan"), float("inf"), -1, 1e300, "soon"])
def test_whatever_wait_a_source_asks_for_the_run_is_on_record(project: Project, asked: Any) -> None:  # noqa: ANN401
    async def busy(_: Pull) -> AsyncIterator[Page]:
        raise SyncError("busy", fault="rate", retry_after=asked)
        yield

    SOURCES["a"] = busy
    project.connect(*hourly("a"))
    play(project, sleeping(60))
    state = rows(project)["a"]
    assert (state["error_class"], state["lease"]) == ("rate", None)
    assert BEGIN < state["next_due_at"] <= BEGIN + DAY + HOUR


def test_a_fault_in_a_connector_is_its_own_and_its_words_are_not_repeated(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    good = Source("good")
    said = "token=SECRET"

    async def broken(_: Pull) -> AsyncIterator[Page]:
        yield Page(events=[message("a", 0)], cursor={"at": 1}, more=True)
        raise ValueError(said)

    SOURCES["a"] = broken
    project.connect(*hourly("a", "good"))
    with caplog.at_level(logging.DEBUG):
        play(project, sleeping(3 * 3600))
    state = rows(project)["a"]
    assert state["error_class"] == "bug"
    assert state["error_text"].startswith("ValueError in the connector (test_schedule.py:")
    assert (state["cursor"], state["written"]) == ({"at": 1}, 1), "the page before it stays"
    assert "SECRET" not in caplog.text
    assert len(good.began) >= 3


@pytest.mark.parametrize(
    "page",
    [
        Page(events=[{"text": {1, 2}}], cursor={"at": 1}),  # type: ignore[dict-item]
        Page(events=[], cursor=3),  # type: ignore[arg-type]
        Page(events=["text"], cursor={}),  # type: ignore[list-item]
        Page(events=[message("a", 0)] * (MOST_EVENTS + 1), cursor={"at": 1}),
        Page(events=[message("a", 0)], cursor={"at": float("nan")}),
        Page(events=[message("a", 0)], cursor={"at": 2**64}),
        Page(events=[message("a", 0)], cursor={"at": "\ud800"}),
        Page(events=[message("a", 0)], cursor={"at": "x" * LARGEST_CURSOR}),
        Page(events=[message("a", 0)], cursor=nested(DEEPEST_CURSOR + 1)),
        Page(events=[message("a", 0)], cursor=nested(100_000)),
        Page(events=[message("a", 0)], cursor={"at": 1}, more="yes"),  # type: ignore[arg-type]
        None,
    ],
    ids=lambda page: type(page).__name__,
)
def test_what_is_no_page_moves_no_cursor_and_ends_nothing(project: Project, page: Any) -> None:  # noqa: ANN401
    async def wrong(_: Pull) -> AsyncIterator[Page]:
        yield page

    SOURCES["a"] = wrong
    project.connect(*hourly("a"))
    play(project, sleeping(60))
    state = rows(project)["a"]
    assert (state["cursor"], state["written"]) == ({}, 0)
    assert (state["error_class"], state["failures_in_row"]) == ("bug", 1)


def test_the_deepest_cursor_that_is_taken_can_be_read_again(project: Project) -> None:
    async def deep(_: Pull) -> AsyncIterator[Page]:
        yield Page(events=(), cursor=nested(DEEPEST_CURSOR))

    SOURCES["a"] = deep
    project.connect(*hourly("a"))
    play(project, sleeping(60))
    assert rows(project)["a"]["cursor"] == nested(DEEPEST_CURSOR)


def test_what_mends_a_fault_is_shown_with_it(project: Project) -> None:
    async def refused(_: Pull) -> AsyncIterator[Page]:
        raise SyncError("refused", fault="auth", where="example.org", hint="make a new token")
        yield

    SOURCES["a"] = refused
    project.connect(*hourly("a"))
    play(project, sleeping(60))
    (entry,) = connections(load_config(file_of(project))).connections
    assert entry["last_error"]["text"] == "refused (example.org); make a new token"
    assert "make a new token" in entry["why"]


def test_a_store_that_is_deleted_swallows_nothing(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    source = Source("a", behind=1)
    project.connect(*hourly("a"))

    async def act(_loop: Loop, _events: VirtualLoop) -> None:
        await asyncio.sleep(60)
        shutil.rmtree(project.state.parent)
        await asyncio.sleep(2 * 3600)

    play(project, act)
    assert len(source.began) == 1
    assert "the store was removed or replaced while `run` is at work" in caplog.text
    assert "restart `chatproc run`" in caplog.text


def test_stopped_in_mid_page_nothing_is_lost_and_the_run_is_on_record(project: Project) -> None:
    source = Source("a", behind=30)
    source.slow = 60.0
    project.connect(*hourly("a"))

    async def act(_loop: Loop, events: VirtualLoop) -> None:
        await asyncio.sleep(90)
        assert events.time() == 90

    play(project, act)
    state = rows(project)["a"]
    assert (state["cursor"], state["last_run"]["outcome"], state["lease"]) == ({"at": 10}, "stopped", None)
    assert stored(project) == 10
    source.slow = 0.0
    play(project, sleeping(200))
    assert stored(project) == 30
    assert source.pages == [0, 10, 10, 20]


@pytest.mark.parametrize("stopped_after", [100, 400])
def test_a_connector_that_will_not_stop_holds_up_neither_its_deadline_nor_the_end(
    project: Project, stopped_after: int
) -> None:
    good = Source("good")

    async def stubborn(_: Pull) -> AsyncIterator[Page]:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(5)
        yield Page(events=(), cursor={})

    SOURCES["a"] = stubborn
    project.connect(*hourly("a", "good"))
    told: list[float] = []

    async def act(_loop: Loop, events: VirtualLoop) -> None:
        await asyncio.sleep(stopped_after)
        told.append(events.time())

    with virtual() as events:
        loop, ended = events.run_until_complete(played(project, act, events))
    assert ended - told[0] < 10
    run = rows(project)["a"]["last_run"]
    assert (run["outcome"], run["error_text"]) == (
        ("stopped", None)
        if stopped_after < DEADLINE
        else ("failed", "the connector does not end when it is told to")
    )
    assert loop.counts["syncs"] == 2
    assert len(good.began) == 1


# ── rounds ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_round_that_fails_ends_nothing_and_the_next_tick_tries_again(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source("a", behind=1)
    project.configure(input={"start_at": 0})
    project.connect(*hourly("a"))
    with caplog.at_level(logging.WARNING):
        loop, _ = play(project, sleeping(3 * 1200 - 60))
    failed = [text for text in caplog.messages if text.startswith("round: ConfigError: no model")]
    assert len(failed) == loop.counts["failed_rounds"] >= 3
    assert len(source.began) >= 1
    last = _core.status(project.state)["last_round"]
    assert last["report"]["error"] == "no model is configured"


def test_batches_of_a_jsonl_connection_are_read_by_the_core_and_counted(project: Project) -> None:
    project.configure(input={"paths": []})
    project.batch("a.jsonl", *chat("lab", "一", "二"), "no json")
    project.connect(jsonl={"id": "files", "paths": ["in/*.jsonl"], "interval_seconds": 3600})

    async def act(_loop: Loop, _events: VirtualLoop) -> None:
        await asyncio.sleep(60)
        project.batch("b.jsonl", *chat("lab", "三", begin=2))
        await asyncio.sleep(2 * 3600)

    play(project, act)
    state = rows(project)["files"]
    assert (state["written"], state["quarantined"]) == (3, 1)
    assert state["runs"] >= 2
    assert stored(project) == 3


# ── what a person is told ────────────────────────────────────────────────────────────────────────────


def test_every_connection_says_why_it_is_not_synced(project: Project) -> None:
    project.connect(
        *hourly("off", enabled=False), *hourly("new"), ("scripted", {"id": "hand", "interval_seconds": 0})
    )
    entries = {entry["id"]: entry for entry in connections(load_config(file_of(project))).connections}
    assert {name: entry["state"] for name, entry in entries.items()} == {
        "off": "disabled",
        "new": "due",
        "hand": "manual",
    }
    assert entries["new"]["why"] == "never synced yet"
    assert "chatproc sync" in entries["hand"]["why"]
    assert not project.state.exists()
