"""Each row of "What each failure does" (docs/reliability.md), with real processes, disks, signals and locks.

Kills at fail points, at random instants and at system calls are in test_kills.py.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import PATIENCE, Project, chat, event
from tests.sse import EMPTY, Answer, ModelServer, call, failure, no_tasks, one_task_each, prose

if TYPE_CHECKING:
    from collections.abc import Iterator

THREE_CHATS = [*chat("lab", "交报告"), *chat("home", "交水费"), *chat("club", "交会费")]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(one_task_each) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, server: ModelServer) -> Project:
    project = Project(tmp_path / "project", server.base_url)
    return project.configure(agent={"batching": "single_conversation", "concurrency": 1})


@pytest.fixture
def worked(project: Project) -> Project:
    """A project after a round with one task."""
    project.batch("a.jsonl", *chat("lab", "交报告"))
    project.once()
    return project


def serve(project: Project, server: ModelServer) -> None:
    """Configure another endpoint: it makes every segment pending, as any new setting does."""
    project.configure(agent={"base_url": server.base_url})


def conversations(server: ModelServer) -> list[str]:
    """The text of the first message of each request."""
    return [it["conversations"][0]["segments"][0]["messages"][0]["text"] for it in server.documents]


# ── same event again ─────────────────────────────────────────────────────────────────────────────────


def test_the_same_event_again_is_skipped_and_counted(worked: Project, server: ModelServer) -> None:
    before = worked.outcome()
    worked.batch("again.jsonl", *chat("lab", "交报告"), *chat("lab", "交报告"))
    report = worked.once()
    assert (report["ingest"]["accepted"], report["ingest"]["repeats"]) == (0, 2)
    assert report["round"]["groups"] == []
    assert len(server.requests) == 1
    assert worked.outcome() == before


# ── a model that gives nothing ───────────────────────────────────────────────────────────────────────

BAD_EVIDENCE = call(
    "submit_tasks",
    {"conversations": [{"id": "c1", "no_task_reason": None, "tasks": [{"title": "x", "sources": ["m9"]}]}]},
)
USELESS = {
    "timeout": (EMPTY.then("hang"), "nothing came", 1),
    "bad JSON": (call("submit_tasks", '{"conversations": [{'), "", 30),
    "bad evidence": (BAD_EVIDENCE, r"not accepted: c1\.tasks\[0\]", 3),
    "prose": (prose("I think there is nothing."), "text instead of a tool call", 3),
    "server error": (failure(500), "500", 1),
    "reset": (EMPTY.then("reset"), "", 1),
}


@pytest.mark.parametrize("fault", USELESS)
def test_a_group_without_a_usable_answer_stays_pending_with_its_reason_and_the_others_are_committed(
    project: Project, fault: str
) -> None:
    useless, reason, attempts = USELESS[fault]
    project.batch("a.jsonl", *THREE_CHATS)

    def script(request: dict[str, Any]) -> Answer:
        return useless if "交水费" in str(request) else one_task_each(request)

    with ModelServer(script) as faulty:
        serve(project, faulty)
        project.configure(agent={"timeout_seconds": 0.5})
        report = project.once(3)
        asked = sum("水费" in text for text in conversations(faulty))
    outcomes = {group["conversation"]["id"]: group for group in report["round"]["groups"]}
    assert {name: group["outcome"] for name, group in outcomes.items()} == {
        "lab": "done",
        "home": "failed",
        "club": "done",
    }
    assert re.search(reason, outcomes["home"]["reason"])
    assert asked == attempts
    assert report["round"]["pending"] == 1
    assert project.status()["outcomes"]["failed"] == 1
    assert {task["title"] for task in project.tasks()} == {"交报告", "交会费"}
    assert len(project.events()) == 2


def test_a_failed_group_is_asked_for_again_and_the_others_are_not(project: Project) -> None:
    project.batch("a.jsonl", *THREE_CHATS)
    with ModelServer([failure(500), one_task_each, failure(500), one_task_each, one_task_each]) as flaky:
        serve(project, flaky)
        assert project.once(3)["round"]["pending"] == 2
        assert project.once()["round"]["pending"] == 0
        assert conversations(flaky)[3:] == [conversations(flaky)[0], conversations(flaky)[2]]
    assert len(project.tasks()) == 3
    project.check_published()


# ── an endpoint that refuses ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_asked_once_and_all_groups_stay_pending(project: Project, status: int) -> None:
    project.batch("a.jsonl", *THREE_CHATS)
    with ModelServer([failure(status)]) as refusing:
        serve(project, refusing)
        report = project.once(3)
        assert len(refusing.requests) == 1
    groups = report["round"]["groups"]
    assert [group["outcome"] for group in groups] == ["failed", "left", "left"]
    assert all(str(status) in group["reason"] for group in groups)
    assert report["round"]["pending"] == 3
    assert project.status()["messages"] == 3
    with ModelServer(one_task_each) as willing:
        serve(project, willing)
        assert project.once()["round"]["pending"] == 0
    assert len(project.tasks()) == 3


def test_a_round_in_which_every_group_fails_loses_nothing(project: Project) -> None:
    project.batch("a.jsonl", *THREE_CHATS)
    with ModelServer(lambda _: failure(503)) as down:
        serve(project, down)
        report = project.once(3)
        shown = project.call("once", code=3)
    assert {group["outcome"] for group in report["round"]["groups"]} == {"failed"}
    assert all("503" in group["reason"] for group in report["round"]["groups"])
    assert shown.out.count("503") >= 3
    assert report["round"]["pending"] == 3
    assert project.status()["outcomes"]["failed"] == 3
    assert project.events() == []


# ── output that cannot be written ────────────────────────────────────────────────────────────────────


@contextmanager
def mounted(target: Path, *arguments: str) -> Iterator[None]:
    """A mount, or a skipped test where mounting is not permitted."""
    target.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", *arguments, str(target)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(target)], check=True)


def fill(ballast: Path) -> None:
    """Write until the disk is full."""
    with ballast.open("wb", buffering=0) as file:
        while os.statvfs(ballast).f_bavail:
            file.write(b"x" * 4096)


def check_safe(project: Project, report: dict[str, Any], asked: int, server: ModelServer) -> None:
    """Tasks and outbox are safe although nothing was published."""
    assert report["export"]["waiting"] == 1
    assert str(project.output) in report["export"]["error"]
    assert project.status()["outbox"] == 1
    assert len(project.tasks()) == 1
    assert len(server.requests) == asked


def check_next_exports_first(project: Project, server: ModelServer) -> None:
    """The next run publishes what waited, before and without any model."""
    asked = len(server.requests)
    project.configure(agent={"base_url": "", "model": ""})
    report = project.start("once", "--json").wait()
    # Without a model the pending groups stop the round, after the export.
    assert report.code in {0, 2}, report
    assert len(project.events()) == 1
    assert len(server.requests) == asked
    assert project.status()["outbox"] == 0
    project.check_published()


def test_a_full_output_disk_is_3_and_the_next_round_exports_first(
    project: Project, server: ModelServer
) -> None:
    project.batch("a.jsonl", *chat("lab", "交报告"))
    with mounted(project.output, "-t", "tmpfs", "-o", "size=64k", "none"):
        fill(project.output / "ballast")
        report = project.once(3)
        check_safe(project, report, 1, server)
        assert "No space left" in report["export"]["error"]
        project.call("export", code=3)
        (project.output / "ballast").unlink()
        check_next_exports_first(project, server)


def test_a_read_only_output_folder_is_3_and_the_next_round_exports_first(
    project: Project, server: ModelServer, tmp_path: Path
) -> None:
    project.batch("a.jsonl", *chat("lab", "交报告"))
    (tmp_path / "real").mkdir()
    with mounted(project.output, "-o", "bind,ro", str(tmp_path / "real")):
        report = project.once(3)
        check_safe(project, report, 1, server)
        assert "Read-only" in report["export"]["error"]
    project.output.rmdir()
    check_next_exports_first(project, server)


def test_a_file_in_place_of_the_output_folder_is_3_and_the_next_round_exports_first(
    project: Project, server: ModelServer
) -> None:
    project.batch("a.jsonl", *chat("lab", "交报告"))
    project.output.write_bytes(b"")
    check_safe(project, project.once(3), 1, server)
    shown = project.call("export", code=3)
    assert str(project.output) in shown.out + shown.err
    project.output.unlink()
    check_next_exports_first(project, server)


# ── a database that cannot be written ────────────────────────────────────────────────────────────────


def big_day(number: int) -> list[dict[str, Any]]:
    return [
        it
        for chat_ in range(20)
        for it in chat(f"big{chat_}-", *["交报告 " + "很长 " * 60] * 20, begin=number)
    ]


@pytest.mark.parametrize("room", [4096, 60_000, 150_000, 300_000, 600_000])
def test_a_full_database_disk_is_1_names_the_path_and_rolls_back_whole(worked: Project, room: int) -> None:
    """The limit is reached by the write-ahead log, somewhere in ingest, segments or commit."""
    before = worked.outcome()
    worked.configure(agent={"batching": "auto"})
    worked.batch("b.jsonl", *big_day(0))
    done = worked.start("once", file_limit=room).wait()
    assert done.code == 1, done
    assert f"{worked.state}" in done.err
    assert "Traceback" not in done.err
    assert "fault of chatproc" not in done.err
    status = worked.status()
    assert status["messages"] in {1, 401}
    assert sum(status["outcomes"].values()) == status["messages"]
    assert {task["task_id"] for task in before["tasks"]} <= {task["task_id"] for task in worked.tasks()}
    while worked.once()["round"]["pending"]:
        pass
    assert worked.status()["tasks"]["open"] == 21
    worked.check_published()


def test_a_full_disk_under_a_new_store_is_1_and_a_later_round_makes_it(project: Project) -> None:
    project.batch("a.jsonl", *chat("lab", "交报告"))
    with mounted(project.state.parent, "-t", "tmpfs", "-o", "size=32k", "none"):
        done = project.call("once", code=1)
        assert str(project.state.parent) in done.err
        assert project.status()["messages"] == 0
        subprocess.run(["mount", "-o", "remount,size=16m", str(project.state.parent)], check=True)
        assert len(project.once()["round"]["groups"]) == 1
        assert len(project.tasks()) == 1


def test_a_full_disk_under_the_store_in_the_middle_of_a_commit_rolls_back_whole(
    project: Project, server: ModelServer
) -> None:
    project.batch("a.jsonl", *chat("lab", "交报告"))
    ballast = project.state.parent / "ballast"

    def filling_model(request: dict[str, Any]) -> Answer:
        fill(ballast)
        return one_task_each(request)

    with mounted(project.state.parent, "-t", "tmpfs", "-o", "size=2m", "none"):
        with ModelServer(filling_model) as filling:
            serve(project, filling)
            done = project.call("once", code=1)
        assert str(project.state) in done.err
        assert "full" in done.err
        assert project.status()["tasks"]["open"] == 0
        assert project.status()["outcomes"]["pending"] == 1
        ballast.unlink()
        serve(project, server)
        project.once()
        assert [task["title"] for task in project.tasks()] == ["交报告"]
        assert len(project.events()) == 1


def test_a_read_only_store_is_1_and_can_still_be_read(worked: Project) -> None:
    with mounted(worked.state.parent, "-o", "bind,ro", str(worked.state.parent)):
        done = worked.call("once", code=1)
        assert str(worked.state.parent) in done.err


def test_a_file_that_is_no_database_is_1_names_the_path_and_stays(project: Project) -> None:
    project.state.parent.mkdir()
    project.state.write_bytes(b"no database at all, but long enough to have a header" * 20)
    for command in ("once", "status", "tasks"):
        assert str(project.state) in project.call(command, code=1).err
    assert project.state.read_bytes().startswith(b"no database")


# ── two at a time ────────────────────────────────────────────────────────────────────────────────────


class Asked:
    """A model that keeps its answer back until it is released."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.release = threading.Event()

    def __call__(self, request: dict[str, Any]) -> Answer:
        self.asked.set()
        assert self.release.wait(PATIENCE)
        return one_task_each(request)


def test_a_second_round_is_refused_with_4_while_readers_and_status_updates_go_on(worked: Project) -> None:
    (task,) = worked.tasks()
    worked.batch("b.jsonl", *chat("home", "交水费"))
    model = Asked()
    with ModelServer(model) as slow:
        serve(worked, slow)
        first = worked.cold("once", "--json")
        assert model.asked.wait(PATIENCE)
        for command in ("once", "export"):
            second = worked.call(command, code=4)
            assert f"process {first.pid} on {socket.gethostname()}, since 20" in second.err
            assert f"at: {worked.state}.lock" in second.err
            assert "hint:" in second.err
        assert len(slow.requests) == 1
        assert worked.status()["messages"] == 2
        assert worked.pending() == 2
        assert len(worked.tasks()) == 1
        for command in ("done", "reopen", "cancel"):
            worked.call(command, task["task_id"], "--actor", "me")
        worked.call("priority", task["task_id"], "P0", "--actor", "me")
        assert worked.document("task", task["task_id"])["task"]["status"] == "cancelled"
        model.release.set()
        out, err = first.communicate(timeout=PATIENCE)
        assert first.returncode == 0, err
        assert out
    assert worked.call("once").code == 0
    statuses = [event["task"]["status"] for event in worked.events() if event["task_id"] == task["task_id"]]
    assert statuses[:4] == ["open", "completed", "open", "cancelled"]
    (mine,) = [it for it in worked.tasks() if it["task_id"] == task["task_id"]]
    assert (mine["status"], mine["priority"]) == ("cancelled", "P0")
    worked.check_published()


def test_the_lock_goes_with_its_holder(worked: Project) -> None:
    worked.batch("b.jsonl", *chat("home", "交水费"))
    with ModelServer([EMPTY.then("hang"), one_task_each]) as slow:
        serve(worked, slow)
        first = worked.start("once")
        assert slow.arrived.wait(PATIENCE)
        assert first.kill().code == -signal.SIGKILL
        assert len(worked.once(3)["round"]["groups"]) == 2  # the script has one answer left


def locked(state: Path) -> bool:
    """Whether any process holds a POSIX lock on a file."""
    table = Path("/proc/locks")
    if not table.exists():
        pytest.skip("this system does not show its locks")
    return f":{state.stat().st_ino} " in table.read_text()


def test_a_status_update_in_the_process_of_a_round_leaves_the_stores_locks_alone(worked: Project) -> None:
    """POSIX locks go when any descriptor of the file is closed in the process. Another process that then
    believes itself alone may take the write-ahead log away, and what the round commits goes with it."""
    (task,) = worked.tasks()
    worked.batch("b.jsonl", *chat("home", "交水费"))
    code = """
import sys, threading
from chatproc import load_config, run_round, update_task_status
config = load_config("config/processor.toml")
done = []
at_work = threading.Thread(target=lambda: done.append(run_round(config).exit_code))
at_work.start()
sys.stdin.readline()
update_task_status(config, sys.argv[1], "completed", request_id="r", actor="me")
print("updated", flush=True)
at_work.join()
sys.exit(done[0])
"""
    model = Asked()
    with ModelServer(model) as slow:
        serve(worked, slow)
        command = [sys.executable, "-W", "ignore", "-c", code, task["task_id"]]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=worked.root, stdin=pipe, stdout=pipe, text=True) as engine:
            assert engine.stdin is not None
            assert engine.stdout is not None
            assert model.asked.wait(PATIENCE)
            before = locked(worked.state)
            engine.stdin.write("\n")
            engine.stdin.flush()
            updated = engine.stdout.readline()
            after = locked(worked.state)
            worked.call("reopen", task["task_id"], "--actor", "me")
            last = locked(worked.state)
            model.release.set()
            assert engine.wait(PATIENCE) == 0
    assert (before, updated, after, last) == (True, "updated\n", True, True)
    statuses = [it["task"]["status"] for it in worked.events() if it["task_id"] == task["task_id"]]
    assert statuses[:3] == ["open", "completed", "open"]
    assert "交水费" in {it["title"] for it in worked.tasks()}
    assert worked.status()["outbox"] == 0
    worked.check_published()


# ── another version's store ──────────────────────────────────────────────────────────────────────────


def in_store(project: Project, statements: str) -> str:
    """Run statements in another process; gives what the last one of them answers."""
    code = """if True:
        import sqlite3, sys
        state = sqlite3.connect(sys.argv[1], isolation_level=None)
        for statement in sys.argv[2].split(";"):
            rows = state.execute(statement).fetchall()
        print(*rows[-1] if rows else "")
    """
    command = [sys.executable, "-c", code, str(project.state), statements]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def set_version(project: Project, version: str) -> None:
    in_store(project, f"PRAGMA user_version = {version}")


def test_a_newer_store_is_refused_untouched_by_writer_and_reader(
    worked: Project, server: ModelServer
) -> None:
    (task,) = worked.tasks()
    version = in_store(worked, "PRAGMA user_version")
    set_version(worked, "99")
    worked.batch("b.jsonl", *chat("home", "交水费"))
    before = worked.state.read_bytes()
    asked = len(server.requests)
    commands = [
        ["once"],
        ["export"],
        ["status"],
        ["preview"],
        ["tasks"],
        ["quarantine"],
        ["task", task["task_id"]],
    ]
    for command in [*commands, ["done", task["task_id"], "--actor", "me"]]:
        done = worked.call(*command, code=1)
        assert "version 99" in done.err
        assert str(worked.state) in done.err
        assert "hint:" in done.err
    assert worked.state.read_bytes() == before
    assert len(server.requests) == asked
    set_version(worked, version)
    assert worked.once()["round"]["pending"] == 0


def test_an_older_store_is_brought_up_to_date_by_a_round_with_a_copy_beside_it(worked: Project) -> None:
    tasks = worked.tasks()
    version = in_store(worked, "PRAGMA user_version")
    proven = ("messages", "revisions", "commits", "outbox", "requests")
    newer = [
        "DROP TABLE task_counts",
        "DROP INDEX tasks_places",
        "DROP INDEX conversations_id",
        "DROP TRIGGER messages_changed",
        "DROP TABLE changed",
        "DROP INDEX segments_predecessor",
        "ALTER TABLE segments DROP COLUMN predecessor",
    ]
    newer += [f"ALTER TABLE {table} DROP COLUMN proof" for table in proven]
    newer += [
        "ALTER TABLE messages ADD COLUMN raw BLOB",
        "UPDATE messages SET raw = l.raw FROM lines l WHERE l.message = messages.message",
        "DROP TABLE lines",
        "ALTER TABLE messages ADD COLUMN segment INTEGER",
        "UPDATE messages SET segment = m.segment FROM members m WHERE m.message = messages.message",
        "DROP TABLE members",
        "DROP INDEX events_message",
    ]
    newer += ["DROP TABLE connections", "DROP TABLE sync_runs", "PRAGMA user_version = 1"]
    in_store(worked, "; ".join(newer))
    told = worked.call("status", code=1)
    assert "version 1" in told.err
    assert "hint: run `chatproc once`" in told.err
    worked.once()
    assert in_store(worked, "PRAGMA user_version") == version
    assert worked.tasks() == tasks
    assert worked.status()["connections"] == []
    (copy,) = worked.state.parent.glob("*.bak")
    assert copy.name.startswith("state.v1-")


# ── an interrupted round ─────────────────────────────────────────────────────────────────────────────


def test_an_interrupted_session_is_130_its_group_pending_and_no_process_left(worked: Project) -> None:
    worked.batch("b.jsonl", *chat("home", "交水费"))
    with ModelServer([EMPTY.then("hang")]) as slow:
        serve(worked, slow)
        running = worked.cold("once")
        assert slow.arrived.wait(PATIENCE)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=PATIENCE)
        assert running.returncode == 130, err
        assert "Traceback" not in err
        assert slow.requests[0].abandoned.wait(PATIENCE)
        with pytest.raises(ProcessLookupError):
            os.killpg(running.pid, 0)
        assert worked.pending() == 2
    with ModelServer(one_task_each) as willing:
        serve(worked, willing)
        assert worked.once()["round"]["pending"] == 0


def test_an_interrupt_while_batches_are_read_ends_the_reading_with_the_slice_in_hand(
    project: Project,
) -> None:
    files = 3000
    for number in range(files):
        project.batch(f"{number}.jsonl", event(f"k{number}", "好"))
    running = project.cold("once")
    build = project.state.with_name("state.db.build")  # empty tables take less than half of this
    while not (build.exists() and build.stat().st_size > 500_000):
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert not build.exists()
    assert 0 < project.status()["messages"] < files


def test_many_faults_in_a_row_end_as_none(project: Project, server: ModelServer) -> None:
    """A refused line, a bad endpoint, a full output, an interrupt and a kill, one after the other."""
    project.batch("a.jsonl", *THREE_CHATS, "no json")
    with ModelServer([failure(401)]) as refusing:
        serve(project, refusing)
        project.once(3)
    project.output.write_bytes(b"")
    with ModelServer([one_task_each, EMPTY.then("hang")]) as slow:
        serve(project, slow)
        running = project.start("once")
        while len(slow.requests) < 2:
            assert slow.arrived.wait(PATIENCE)
        running.send(signal.SIGINT)
        assert running.wait().code == 130
    assert project.status()["tasks"]["open"] == 1
    project.output.unlink()
    with ModelServer([EMPTY.then("hang")]) as slow:
        serve(project, slow)
        running = project.start("once")
        assert slow.arrived.wait(PATIENCE)
        assert len(project.published()) == 1, "what waited is published before the model is asked"
        running.kill()
    serve(project, server)
    project.once()
    assert {task["title"] for task in project.tasks()} == {"交报告", "交水费", "交会费"}
    assert [line["raw"] for line in project.document("quarantine")["lines"]] == ["no json"]
    project.check_published()


def test_a_conversation_without_tasks_is_done_too(project: Project) -> None:
    project.batch("a.jsonl", event("x1", "在吗"), event("x2", "在", conversation="home"))
    with ModelServer(no_tasks) as idle:
        serve(project, idle)
        report = project.once()
        assert project.once()["round"]["groups"] == []
        assert len(idle.requests) == 2
    assert [group["reason"] for group in report["round"]["groups"]] == ["chatter", "chatter"]
