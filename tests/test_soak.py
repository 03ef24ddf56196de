"""`run` for days with faults at random: what it holds stays flat, in the end nothing is lost or double."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.lines_server import HANG, Fault, LinesServer, install, messages
from tests.project import ROOT, Project
from tests.sse import EMPTY, Answer, ModelServer, events, failure, one_task_each, page, prose

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

AN_HOUR = 5
"""New messages in an hour, each in a room of its own, as a round asks of each once."""
CALM = 12
"""Hours without faults at the end, in which what failed is done."""


class World:
    """Two sources and a model with moods, a disk and a configuration that are sometimes broken."""

    def __init__(self, project: Project, sources: list[LinesServer], seed: int, *, patient: bool) -> None:
        """Patient: also with silences, which the example waits for in real time."""
        self.chance = random.Random(seed)  # noqa: S311 - repeatable, no secret
        self.project = project
        self.sources = sources
        self.patient = patient
        self.said = 0
        self.calm = False
        self.faults: Counter[str] = Counter()
        self.file = project.root / "config" / "processor.toml"
        self.good = self.file.read_text(encoding="utf-8")

    def model(self, request: dict[str, Any]) -> Answer:
        """What the endpoint answers now."""
        whole = one_task_each(request)
        if self.calm or self.chance.random() < 0.7:
            return whole
        self.faults["model"] += 1
        cut = whole.only(self.chance.randrange(1, len(whole.body))).then("drop")
        bad = [failure(500), failure(429), EMPTY, page(), events("{no JSON"), prose("I would rather not.")]
        return self.chance.choice([*bad, cut, EMPTY.then("hang")])

    def an_hour_passes(self) -> int:
        """Change the world; how many bytes a file may have in the next hour, 0: as many as it likes."""
        for source in self.sources:
            source.script.clear()
        if self.calm:
            self.file.write_text(self.good, encoding="utf-8")
            return 0
        for source in self.sources:
            source.lines += messages(AN_HOUR, self.said + 1)
            self.said += AN_HOUR
            if self.chance.random() < 0.3:
                self.faults["source"] += 1
                source.script += self.chance.choices([Fault(500), Fault(429), Fault(200)], k=2)
            if self.patient and self.chance.random() < 0.02:
                self.faults["silence"] += 1
                source.script.append(HANG)
        broken = self.chance.random() < 0.1
        self.faults["configuration"] += broken
        self.file.write_text(f"{self.good}\n[broken" if broken else self.good, encoding="utf-8")
        if self.chance.random() < 0.1:
            self.faults["disk"] += 1
            return self.chance.choice([4096, 100_000])
        return 0


def live(
    tmp_path: Path, hours: int, seed: int, *, patient: bool = False
) -> tuple[list[dict[str, int]], World]:
    """Soak so long, then look whether all that was said is there once."""
    packages = install(tmp_path / "packages")
    with LinesServer() as one, LinesServer() as other:
        project = Project(tmp_path / "project")
        project.paths = (packages,)
        often = {"interval_seconds": 1200, "daily_requests": 5000}
        project.connect(("lines", {"id": "one", "url": one.url, **often}),
                        ("lines", {"id": "other", "url": other.url, **often}))  # fmt: skip
        project.configure(schedule={"tick_seconds": 1200, "watch": False})
        world = World(project, [one, other], seed, patient=patient)
        with ModelServer(world.model) as model:
            project.configure(agent={"base_url": model.base_url, "timeout_seconds": 5, "retries": 1})
            world.good = world.file.read_text(encoding="utf-8")
            samples = soaked(project, world, hours, packages)
        assert project.status()["messages"] == world.said
        assert project.pending() == 0
        project.check_published()
        tasks = {event["task_id"] for event in project.events()}
        assert len(tasks) == world.said, "a task of each message"
        assert project.call("verify").code == 0
    return samples, world


def soaked(project: Project, world: World, hours: int, packages: Path) -> list[dict[str, int]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
                   "PYTHONWARNINGS": "ignore"}  # fmt: skip
    command = [sys.executable, str(ROOT / "tests" / "soak.py"), str(project.root), str(hours), str(packages)]
    samples: list[dict[str, int]] = []
    with (
        (project.streams / "soak").open("w+", encoding="utf-8") as said,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True,
                         env=environment) as running,
    ):  # fmt: skip
        assert running.stdin is not None
        assert running.stdout is not None
        for line in running.stdout:
            sample = json.loads(line)
            if "hour" not in sample:
                samples.append(sample)
                break
            samples.append(sample)
            world.calm = sample["hour"] >= hours - CALM
            running.stdin.write(f"{world.an_hour_passes()}\n")
            running.stdin.flush()
        code = running.wait(60)
        said.seek(0)
        assert code == 0, said.read()[-3000:]
    return samples


def assert_flat(samples: list[dict[str, int]]) -> None:
    """From the second quarter on nothing is held that was not held before."""
    early = samples[len(samples) // 8 : len(samples) // 4]
    late = samples[-len(samples) // 8 :]
    for name, slack in (("files", 4), ("threads", 4)):
        most = max(sample[name] for sample in early)
        assert max(sample[name] for sample in late) <= most + slack, (name, samples)
    least = min(sample["kilobytes"] for sample in early)
    assert min(sample["kilobytes"] for sample in late) <= least + 24_000, samples


def test_a_day_of_faults_loses_nothing_and_holds_nothing(tmp_path: Path) -> None:
    samples, world = live(tmp_path, hours=26, seed=8)
    assert {"model", "source"} <= set(world.faults)
    assert_flat(samples[:-1])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_eight_days_of_faults_lose_nothing_and_hold_nothing(tmp_path: Path) -> None:
    samples, world = live(
        tmp_path, hours=8 * 24 + CALM, seed=int(os.environ.get("CHATPROC_SOAK_SEED", "8")), patient=True
    )
    assert min(world.faults.values()) > 0
    assert_flat(samples[:-1])
    # The store grows with what it holds, and with nothing else.
    half = samples[len(samples) // 2]
    assert samples[-2]["store"] <= 2.6 * half["store"]
    sys.stdout.write(f"faults {dict(world.faults)}\nfirst {samples[0]}\nhalf {half}\nlast {samples[-2]}\n")
    sys.stdout.write(f"messages {world.said}, loop {samples[-1]}\n")
