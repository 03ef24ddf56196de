"""kill -9 at named fail points and at random instants of a real `once`, then life goes on as if nothing was.

After each kill the store is as before or after a commit: it can be read at once, and undisturbed rounds end
with the same tasks, events and counts as a project that was never disturbed.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.breaking.build import failpoint_package
from tests.breaking.cases import ALL_FAIL_POINTS
from tests.project import Done, Project, Running, chat, event
from tests.sse import Answer, ModelServer, document_of, new_task, submits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Those that `once` never meets: rust/chatproc-core/tests/kills.rs, test_breaking.py.
OF_CONNECTIONS = {"lease", "reserve", "page", "record"}
OF_COMMANDS = {"backup"}
MADE_BY_A_SYNC = "migrate.made"
FAIL_POINTS = [
    name
    for name in ALL_FAIL_POINTS
    if name.partition(".")[0] not in OF_CONNECTIONS | OF_COMMANDS and name != MADE_BY_A_SYNC
]
SEED = 20_261_129
RANDOM_KILLS = 40
MORE_RANDOM_KILLS = 2000


def instrumented_package() -> Path:
    package = failpoint_package()
    if package is None:
        pytest.skip("without cargo no extension with fail points can be built")
    return package


# ── two days of a project ────────────────────────────────────────────────────────────────────────────


def model(request: dict[str, Any]) -> Answer:
    """Of each conversation: goes on with its first related task if it is new to it, and adds a new one.

    What it says depends on the document alone, so that two runs can be compared.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    document = document_of(request)
    titles = {task["ref"]: task["title"] for task in document.get("tasks", ())}
    for conversation in document["conversations"]:
        messages = [message for segment in conversation["segments"] for message in segment["messages"]]
        told = [message for message in messages if message.get("text")]
        tasks = [new_task(message["text"], [message["id"]]) for message in told if "交" in message["text"]]
        tasks += [
            new_task(titles[ref], [told[-1]["id"]], task_ref=ref, notes=told[-1]["text"])
            for ref in conversation.get("related_tasks", ())[:1]
            if told
        ]
        found[conversation["id"]] = tasks
    return submits(found)


def first_day(project: Project) -> None:
    lab = chat("lab", "请大家周五前交报告", "好的", "交到 302")
    home = [event(f"home{number}", f"交水费 {number}", conversation="home") for number in range(3)]
    project.batch("a.jsonl", *lab, *home, "no json")
    project.batch("b.jsonl", lab[0], *chat("club", "交会费", "收到"), *chat("few", "在吗"))


def second_day(project: Project) -> None:
    edited = event(
        "lab0",
        "请大家周四前交报告",
        conversation="lab",
        revision=1,
        state="edited",
        sequence={"index": 0, "predecessor": None},
    )
    recalled = event("home1", "", conversation="home", revision=1, state="recalled")
    project.batch("c.jsonl", edited, recalled, *chat("club", "周三交", begin=2), *chat("new", "交表", "两份"))
    project.batch("d.jsonl", *chat("few", "在", "交押金", begin=1), "still no json")


class Stage:
    """One project folder that is set back to its beginning for each case: paths and port stay the same."""

    def __init__(self, folder: Path, server: ModelServer, package: Path | None) -> None:
        self.server = server
        self.began = 0
        self.project = Project(folder / "project", server.base_url, package=package)
        self.project.configure(agent={"batching": "single_conversation", "concurrency": 2})
        first_day(self.project)
        self._days = [folder / "first", folder / "second"]
        shutil.copytree(self.project.root, self._days[0])
        self.finish()
        self._outcomes = [self.project.outcome()]
        task = next(task for task in self.project.tasks() if task["title"] == "交会费")
        self.project.call("done", task["task_id"], "--actor", "me")
        second_day(self.project)
        shutil.copytree(self.project.root, self._days[1])
        begin = time.monotonic()
        self.project.start("once").wait()
        self.seconds = time.monotonic() - begin
        self.finish()
        self._outcomes.append(self.project.outcome())
        self.names = list(self.project.published())

    def set(self, day: int) -> Project:
        """The project on the morning of a day."""
        shutil.rmtree(self.project.root)
        shutil.copytree(self._days[day], self.project.root)
        self.began = len(self.server.requests)
        return self.project

    def finish(self) -> None:
        """Rounds until nothing is pending."""
        for _ in range(4):
            report = self.project.start("once", "--json").wait()
            assert report.code in {0, 3}, report
            assert report.document["export"]["waiting"] == 0, report
            if not report.document["round"]["pending"]:
                return
        raise AssertionError("groups are pending for ever")

    def check(self, day: int) -> set[str]:
        """After a fault: all can be read at once, and undisturbed rounds lead where they would have led.

        Returns:
            What was committed when the fault came.
        """
        published = self.project.published()
        status = self.project.status()
        assert sum(status["outcomes"].values()) == status["messages"]
        committed = self._asked(self.began) - self._waiting()
        asked = len(self.server.requests)
        self.finish()
        assert not committed & self._asked(asked), "a committed answer was asked for again"
        assert self.project.outcome() == self._outcomes[day]
        assert published.items() <= self.project.published().items(), "a published file has changed"
        self.project.check_published()
        return committed

    def _asked(self, begin: int) -> set[str]:
        return {_segments(document) for document in self.server.documents[begin:]}

    def _waiting(self) -> set[str]:
        shown = self.project.call("preview", "--full", "--limit", "100").out.splitlines()
        return {_segments(json.loads(document)) for document in shown}


def _segments(document: dict[str, Any]) -> str:
    """What a request asks about, related tasks aside."""
    (conversation,) = document["conversations"]
    return json.dumps(conversation["segments"])


def staged(folder: Path, package: Path | None) -> Iterator[Stage]:
    with ModelServer(model) as server:
        yield Stage(folder, server, package)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    yield from staged(tmp_path_factory.mktemp("stage"), None)


@pytest.fixture(scope="module")
def instrumented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    yield from staged(tmp_path_factory.mktemp("instrumented"), instrumented_package())


# ── fail points ──────────────────────────────────────────────────────────────────────────────────────


def days_of(point: str) -> list[int]:
    """The store is made on the first day."""
    return [0] if point.startswith(("build.", "migrate.")) else [0, 1]


def test_the_fail_points_are_those_of_the_core() -> None:
    families = {name.partition(".")[0] for name in ALL_FAIL_POINTS}
    assert families == {"ingest", "commit", "export", "migrate", "build"} | OF_CONNECTIONS | OF_COMMANDS


@pytest.mark.timeout(900)  # the first one waits until the extension is built
@pytest.mark.parametrize(("point", "day"), [(point, day) for point in FAIL_POINTS for day in days_of(point)])
def test_a_kill_at_a_fail_point_changes_nothing_in_the_end(instrumented: Stage, point: str, day: int) -> None:
    project = instrumented.set(day)
    # On the second day a later hit, so that something was done before it.
    hit = 2 if day and not point.startswith("export.") else 1
    project.environment = {"CHATPROC_FAILPOINT": f"{point}:{hit}"}
    killed = project.start("once").wait()
    project.environment = {}
    assert killed.code == -signal.SIGABRT, killed
    committed = instrumented.check(day)
    if point == "commit.before":
        assert len(committed) == hit - 1
    if point == "commit.after":
        assert len(committed) == hit


def test_the_installed_extension_has_no_fail_points(stage: Stage) -> None:
    project = stage.set(0)
    project.environment = {"CHATPROC_FAILPOINT": FAIL_POINTS[0]}
    assert project.start("once").wait().code == 3
    project.environment = {}


# ── random instants ──────────────────────────────────────────────────────────────────────────────────


def seeded(number: int) -> random.Random:
    return random.Random(SEED + number)  # noqa: S311 - a choice to be repeated, no secret


def tell(number: int, what: str) -> None:
    """Shown with a failure: what was done under which seed."""
    print(f"seed {SEED}+{number}: {what}")  # noqa: T201


def kill_at_random(stage: Stage, number: int) -> None:
    """One to three kills at random instants of rounds that follow each other, then the end is checked."""
    rng = seeded(number)
    day = rng.randrange(2)
    project = stage.set(day)
    for _ in range(rng.randint(1, 3)):
        instant = rng.uniform(0, stage.seconds)
        ended = project.start("once").kill_after(instant)
        tell(number, f"day {day}, killed after {instant:.4f} s: {ended.code}")
        assert ended.code in {-signal.SIGKILL, 0, 3}, ended
        project.status()
    stage.check(day)


@pytest.mark.parametrize("number", range(RANDOM_KILLS))
def test_a_kill_at_a_random_instant_changes_nothing_in_the_end(stage: Stage, number: int) -> None:
    kill_at_random(stage, number)


@pytest.mark.slow
def test_thousands_of_kills_at_random_instants_change_nothing_in_the_end(stage: Stage) -> None:
    for number in range(RANDOM_KILLS, MORE_RANDOM_KILLS):
        kill_at_random(stage, number)


# ── system calls ─────────────────────────────────────────────────────────────────────────────────────

CALLS = ("pwrite64", "write", "fsync", "ftruncate", "rename", "unlink", "openat", "mkdir")
ERRORS = {
    "pwrite64": ("ENOSPC", "EIO"),
    "write": ("ENOSPC", "EIO"),
    "fsync": ("EIO", "ENOSPC"),
    "ftruncate": ("EIO",),
    "rename": ("EIO", "EACCES"),
    "openat": ("EMFILE", "EACCES"),
    "mkdir": ("EROFS", "ENOSPC"),
}
RANDOM_CALLS = 12
MORE_RANDOM_CALLS = 1000


class Tracer:
    """`strace` on a round of the stage: counts the calls on its store and its output, or injects a fault."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.counts = [self._count(day) for day in (0, 1)]

    def round(self, injected: str) -> Done:
        """A round with `--json` in which the fault is injected."""
        running = self.stage.project.start("once", "--json", stopped=True)
        while not re.search(r"^State:\s+T", self._proc(running), re.MULTILINE):
            pass
        log = self.stage.project.streams / "strace"
        command = [
            "strace",
            "-f",
            "-qq",
            "-o",
            str(log),
            *self._files(),
            "-e",
            injected,
            "-p",
            str(running.pid),
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            while "TracerPid:\t0\n" in self._proc(running):
                if tracer.poll() is not None:
                    running.kill()
                    assert tracer.stderr is not None
                    pytest.skip(f"strace cannot attach here: {tracer.stderr.read()}")
            running.send(signal.SIGCONT)
            done = running.wait()
            tracer.wait(60)
        self.log = log.read_text()
        return done

    @staticmethod
    def _proc(running: Running) -> str:
        return Path(f"/proc/{running.pid}/status").read_text()

    def _files(self) -> list[str]:
        project = self.stage.project
        store = [f"{project.state}{suffix}" for suffix in ("", "-wal", ".new", ".new-journal", ".lock")]
        output = [f"{project.output / name}{suffix}" for name in self.stage.names for suffix in ("", ".tmp")]
        return [part for path in (*store, str(project.output), *output) for part in ("-P", path)]

    def _count(self, day: int) -> dict[str, int]:
        """How often the busiest thread of an undisturbed round makes each call (strace counts by thread)."""
        self.stage.set(day)
        self.round(f"trace={','.join(CALLS)}")
        found = Counter(re.findall(r"^(\d+) +(\w+)\(", self.log, re.MULTILINE))
        return {call: max((n for (_, name), n in found.items() if name == call), default=0) for call in CALLS}


@pytest.fixture(scope="module")
def tracer(stage: Stage) -> Tracer:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    return Tracer(stage)


def kill_at_a_call(tracer: Tracer, number: int) -> bool:
    """Kill at the K-th call of a kind, by chance; whether it was reached."""
    rng = seeded(number)
    day = rng.randrange(2)
    call = rng.choice([call for call, count in tracer.counts[day].items() if count])
    return kill_at(tracer, number, day, call, rng.randint(1, tracer.counts[day][call]))


def kill_at(tracer: Tracer, number: int, day: int, call: str, place: int) -> bool:
    tracer.stage.set(day)
    done = tracer.round(f"inject={call}:signal=KILL:when={place}")
    tell(number, f"day {day}, killed at {call} {place}: {done.code}")
    assert done.code in {-signal.SIGKILL, 0, 3}, done
    tracer.stage.check(day)
    return done.code == -signal.SIGKILL


def fail_a_call(tracer: Tracer, number: int) -> bool:
    """Let the K-th call of a kind fail, once or from there on; whether it was reached."""
    rng = seeded(number)
    day = rng.randrange(2)
    call = rng.choice([call for call in ERRORS if tracer.counts[day][call]])
    place, error = rng.randint(1, tracer.counts[day][call]), rng.choice(ERRORS[call])
    for_ever = rng.choice(("", "+"))
    project = tracer.stage.set(day)
    done = tracer.round(f"inject={call}:error={error}:when={place}{for_ever}")
    tell(number, f"day {day}, {error} at {call} {place}{for_ever}: {done.code} {done.err}")
    assert done.code in {0, 1, 3}, done
    assert "Traceback" not in done.err
    assert "fault of chatproc" not in done.err
    if done.code == 1:
        assert str(project.state) in done.err or str(project.output) in done.err, done
    tracer.stage.check(day)
    return "(INJECTED)" in tracer.log


@pytest.mark.parametrize("fault", [kill_at_a_call, fail_a_call])
def test_a_fault_at_a_system_call_changes_nothing_in_the_end(
    tracer: Tracer, fault: Callable[[Tracer, int], bool]
) -> None:
    reached = [fault(tracer, number) for number in range(RANDOM_CALLS)]
    assert sum(reached) > RANDOM_CALLS / 2, "the faults were not hit: the test is blind"


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("day", [0, 1])
def test_a_kill_at_every_call_of_a_whole_round_changes_nothing_in_the_end(tracer: Tracer, day: int) -> None:
    reached = [
        kill_at(tracer, 0, day, call, place)
        for call, count in tracer.counts[day].items()
        for place in range(1, count + 1)
    ]
    # How many calls the busiest thread makes varies with how the threads share the work.
    assert sum(reached) > 0.9 * len(reached), f"{sum(reached)} of {len(reached)} were hit: the test is blind"


@pytest.mark.slow
@pytest.mark.parametrize("fault", [kill_at_a_call, fail_a_call])
def test_a_thousand_faults_at_system_calls_change_nothing_in_the_end(
    tracer: Tracer, fault: Callable[[Tracer, int], bool]
) -> None:
    reached = [fault(tracer, number) for number in range(RANDOM_CALLS, MORE_RANDOM_CALLS)]
    assert sum(reached) > len(reached) / 2, "the faults were not hit: the test is blind"
