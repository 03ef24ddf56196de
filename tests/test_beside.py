"""Many at a time: a round, clicks at fifty a second, readers, copies, and rounds that are refused."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from chatproc import _core
from tests.project import PATIENCE, Project, chat
from tests.sse import Answer, ModelServer, one_task_each

if TYPE_CHECKING:
    from pathlib import Path

CHATS = 12
CLICKS, READS, COPIES, ROUNDS = 150, 6, 4, 2
"""What is done at least while the round is at work."""

_ACTOR = """
import sys, time
from pathlib import Path
import chatproc
from chatproc import StateLockedError, load_config

config = load_config("config/processor.toml")
tasks = [task.task_id for task in chatproc.list_tasks(config, limit=1000)]

def click(number):
    task = tasks[number % len(tasks)]
    status = ("completed", "open", "cancelled")[number // len(tasks) % 3]
    event = chatproc.update_task_status(config, task, status, request_id=f"click{number}", actor="me")
    return f"{task} {event.revision} {status}"

def read(number):
    verdict = chatproc.verify(config)
    assert verdict.ok, verdict.breaks
    status = chatproc.status(config).to_dict()
    assert sum(status["outcomes"].values()) == status["messages"]
    assert chatproc.preview(config, limit=1).pending >= 0
    return len(chatproc.list_tasks(config, limit=1000))

def copy(number):
    return chatproc.backup(config, f"copy{number}.db").file

def round(number):
    try:
        chatproc.run_round(config)
    except StateLockedError as error:
        return error.exit_code

works = {"click": (click, 0.02), "read": (read, 0), "copy": (copy, 0.3), "round": (round, 0.05)}
work, pause = works[sys.argv[1]]
begin = time.monotonic()
for number in range(1_000_000):
    if Path("stop").exists():
        break
    print(work(number), flush=True)
    # A rate: later ones do not wait for earlier ones that took long.
    time.sleep(max(0.0, begin + pause * (number + 1) - time.monotonic()))
"""


class Actor:
    """A process that does one thing again and again beside a round."""

    def __init__(self, project: Project, work: str) -> None:
        self.lines: list[str] = []
        self._enough = threading.Condition()
        pipe = subprocess.PIPE
        command = [sys.executable, "-W", "ignore", "-c", _ACTOR, work]
        self.process = subprocess.Popen(command, cwd=project.root, stdout=pipe, stderr=pipe, text=True)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._enough:
                self.lines.append(line.strip())
                self._enough.notify_all()
        with self._enough:
            self.process.wait()
            self._enough.notify_all()

    def did(self, number: int) -> bool:
        """Wait until it has done so much, or has ended."""
        with self._enough:
            wanted = len(self.lines) + number
            ended = self.process.poll
            assert self._enough.wait_for(lambda: len(self.lines) >= wanted or ended() is not None, PATIENCE)
            return len(self.lines) >= wanted

    def end(self) -> list[str]:
        """What it said; it must have ended well."""
        _, err = self.process.communicate(timeout=PATIENCE)
        self._reading.join(PATIENCE)
        assert self.process.returncode == 0, err
        return self.lines


def test_a_round_with_clicks_readers_copies_and_other_rounds_beside_it(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.configure(agent={"batching": "single_conversation", "concurrency": 2})
    project.batch("a.jsonl", *(it for number in range(5) for it in chat(f"old{number}", f"交报告 {number}")))
    with ModelServer(one_task_each) as first:
        project.configure(agent={"base_url": first.base_url})
        project.once()
    project.batch(
        "b.jsonl", *(it for number in range(CHATS) for it in chat(f"new{number}", f"交水费 {number}"))
    )
    begun, enough = threading.Event(), threading.Event()

    def model(request: dict[str, Any]) -> Answer:
        begun.set()
        # The first answers come at once, so that there are commits beside the clicks; the others then.
        if len(server.requests) > CHATS:
            assert enough.wait(PATIENCE)
        return one_task_each(request)

    with ModelServer(model) as server:
        project.configure(agent={"base_url": server.base_url}, processing={"max_groups_per_round": 100})
        round_ = project.cold("once", "--json")
        assert begun.wait(PATIENCE)
        wanted = {"click": CLICKS, "read": READS, "copy": COPIES, "round": ROUNDS}
        actors = {work: Actor(project, work) for work in wanted}
        met = [actors[work].did(number) for work, number in wanted.items()]
        enough.set()
        out, err = round_.communicate(timeout=PATIENCE)
        (project.root / "stop").touch()
        said = {work: actor.end() for work, actor in actors.items()}
    assert met == [True] * len(wanted)
    assert round_.returncode == 0, err
    groups = json.loads(out)["round"]["groups"]
    assert {group["outcome"] for group in groups} <= {"done", "conflict"}
    assert said["round"][:ROUNDS] == ["4"] * ROUNDS
    for _ in range(4):
        if not project.once()["round"]["pending"]:
            break
    assert project.status()["outbox"] == 0
    assert project.document("verify")["ok"]
    project.check_published()
    published = {(it["task_id"], it["revision"]): it["task"]["status"] for it in project.events()}
    for line in said["click"]:
        task, revision, status = line.split()
        assert published[task, int(revision)] == status, "an acknowledged click is published as it was"
    for file in said["copy"][-3:]:
        verdict = _core.verify(project.root / file, tmp_path / "nothing")
        assert {it["kind"] for it in verdict["breaks"]} <= {"export"}
