"""`run`, `sync` and `connections` as real processes: signals, kills, a second process, files that come."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

import pytest

import chatproc
from chatproc import _core, load_config, update_task_status
from chatproc.loop.room import NEW_FOR, SEATS
from tests.lines_server import HANG, LinesServer, install, messages
from tests.project import PATIENCE, Project, chat
from tests.sse import Answer, ModelServer, one_task_each, prose
from tests.test_faults import mounted
from tests.test_kills import ALL_FAIL_POINTS, failpoint_package

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KILL_POINTS = [
    point for point in ALL_FAIL_POINTS if point.partition(".")[0] in {"lease", "reserve", "page", "record"}
]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def server() -> Iterator[LinesServer]:
    with LinesServer(messages(30)) as server:
        yield server


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(one_task_each) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, packages: Path, model: ModelServer, server: LinesServer) -> Project:
    project = Project(tmp_path / "project", model.base_url)
    project.paths = (packages,)
    project.configure(input={"start_at": 4_000_000_000})
    return project.connect(lines={"id": "news", "url": server.url})


class Loop:
    """`chatproc run` in a process of its own, with what it says."""

    def __init__(self, project: Project, *arguments: str) -> None:
        self._process = project.cold("run", *arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def heard(self, begin: str) -> str:
        """The next line on stderr that begins so."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if line.startswith(begin):
                return line
        raise AssertionError(f"it ended without saying {begin!r}")

    def deaf(self) -> None:
        """Whoever reads stderr goes away."""
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._process.stderr = None

    def end(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal; the exit code and how long it took."""
        begin = time.monotonic()
        self._process.send_signal(number)
        code = self._process.wait(PATIENCE)
        return code, time.monotonic() - begin

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)


def state(project: Project) -> dict[str, Any]:
    (row,) = _core.connections(project.state)
    found: dict[str, Any] = row
    return found


def check_whole(project: Project) -> None:
    """Events and the cursor that passes them are there together, or neither is."""
    if not project.state.exists() or not _core.connections(project.state):
        return
    assert project.status()["messages"] == state(project)["cursor"].get("after", 0)


def finish(project: Project, server: LinesServer) -> None:
    """Undisturbed, a sync brings what is left, and each message is there once."""
    project.call("sync", "lines/news")
    check_whole(project)
    assert project.status()["messages"] == len(server.lines)
    assert state(project)["lease"] is None
    assert project.status()["quarantined"] == 0


# ── signals ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_mid_page_ends_it_with_0_and_loses_nothing(
    project: Project, server: LinesServer, number: int
) -> None:
    server.lines = list(messages(230))
    server.script = [None, HANG]
    with Loop(project) as loop:
        server.wait_for(2)
        code, seconds = loop.end(number)
    assert (code, seconds < 10) == (0, True)
    assert state(project)["cursor"] == {"after": 200}
    assert state(project)["last_run"]["outcome"] == "stopped"
    check_whole(project)
    finish(project, server)


def test_a_signal_in_mid_round_ends_it_with_0_and_the_group_is_read_again(
    project: Project, model: ModelServer
) -> None:
    held: list[Answer] = [Answer(end="hang")]
    model._script = lambda request: held.pop() if held else one_task_each(request)
    project.configure(input={"start_at": 0}).connect()
    project.batch("a.jsonl", *chat("lab", "交报告"))
    with Loop(project) as loop:
        assert model.arrived.wait(PATIENCE)
        code, seconds = loop.end()
    assert (code, seconds < 10) == (0, True)
    assert model.requests[0].abandoned.wait(PATIENCE)
    assert project.status()["last_round"]["report"]["error"] == "stopped by a person"
    assert project.pending() == 1
    project.once()
    assert [task["title"] for task in project.tasks()] == ["交报告"]
    project.check_published()


def test_a_second_signal_ends_it_at_once(project: Project, tmp_path: Path) -> None:
    package = tmp_path / "stubborn"
    about = package / "stubborn-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stubborn\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[chatproc.connectors]\nstubborn = stubborn:TOOLKIT\n")
    (package / "stubborn.py").write_text(
        "import asyncio, contextlib, sys\n"
        "from chatproc.config import ConnectionConfig\n"
        "from chatproc.connectors.base import Page, Toolkit\n"
        "async def pull(ask):\n"
        "    print('pulls', file=sys.stderr, flush=True)\n"
        "    while True:\n"
        "        with contextlib.suppress(asyncio.CancelledError):\n"
        "            await asyncio.sleep(60)\n"
        "    yield Page((), {})\n"
        "TOOLKIT = Toolkit('stubborn', 60, ConnectionConfig, pull)\n"
    )
    project.paths = (package,)
    project.connect(stubborn={"id": "a"})
    with Loop(project) as loop:
        loop.heard("pulls")
        loop.send(signal.SIGTERM)
        loop.heard("ending with what is in hand")
        code, seconds = loop.end()
        assert (code, seconds < 2) == (-signal.SIGTERM, True)
    with Loop(project) as loop:
        loop.heard("pulls")
        code, seconds = loop.end()
        assert (code, seconds < 10) == (0, True)


def run_in_python(project: Project, code: str) -> subprocess.CompletedProcess[str]:
    """`run_loop` as a program of its own that first does something else."""
    config = str(project.root / "config" / "processor.toml")
    command = [sys.executable, "-c", code, config]
    return subprocess.run(
        command, env=project._environment(), capture_output=True, text=True, check=False, timeout=PATIENCE
    )


def test_a_signal_that_comes_before_the_loop_is_at_work_ends_it_with_0(project: Project) -> None:
    ended = run_in_python(
        project,
        "import os, signal, sys\n"
        "from chatproc.loop import running\n"
        "start = running._started\n"
        "def started(*given):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return start(*given)\n"
        "running._started = started\n"
        "assert running.run_loop(sys.argv[1]) is not None\n",
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_signal_that_another_thread_gets_ends_it_all_the_same(project: Project) -> None:
    """The system may hand it to any thread, while the first one waits."""
    ended = run_in_python(
        project,
        "import signal, sys, threading\n"
        "from chatproc import run_loop\n"
        "def tell(line):\n"
        "    print(line)\n"
        "    if line.startswith('lines/news: done'):\n"
        "        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)\n"
        "assert run_loop(sys.argv[1], tell=tell).written == 30\n",
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "ending with what is in hand" in ended.stdout


def test_when_nobody_listens_any_more_it_works_on_and_ends_as_usual(
    project: Project, server: LinesServer
) -> None:
    with Loop(project) as loop:
        loop.heard("at work")
        loop.deaf()
        server.wait_for(1)
        assert loop.end()[0] == 0
    finish(project, server)


def test_servers_that_say_nothing_keep_no_other_waiting_however_many_they_are(
    project: Project, server: LinesServer
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent:
        base_url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        hanging = [("lines", {"id": f"thread{number}", "url": base_url}) for number in range(2 * SEATS)]
        hanging += [
            ("chatlab", {"id": f"socket{number}", "base_url": base_url, "sources": ["a"]})
            for number in range(2 * SEATS)
        ]
        project.connect(*hanging, ("lines", {"id": "good", "url": server.url}))
        with Loop(project) as loop:
            loop.heard("at work")
            begin = time.monotonic()
            loop.heard("lines/good: done")
            assert time.monotonic() - begin < 8 * NEW_FOR, "not the 300 seconds that each of them may take"
            code, seconds = loop.end()
    assert (code, seconds < 10) == (0, True)


# ── two processes ────────────────────────────────────────────────────────────────────────────────────


def test_a_second_loop_is_refused_and_everything_else_goes_on(project: Project, server: LinesServer) -> None:
    with Loop(project) as loop:
        loop.heard("lines/news: done")
        for command in ("run", "once"):
            refused = project.call(command, code=4)
            assert "process" in refused.err
        server.lines += messages(3, begin=31)
        (entry,) = project.document("sync")["connections"]
        assert (entry["outcome"], entry["written"]) == ("done", 3)
        (shown,) = project.document("connections")["connections"]
        assert shown["state"] == "waiting"
        assert project.status()["connections"] == [shown]
        assert loop.end()[0] == 0
    assert len(server.requests) == 2


def test_syncs_of_several_processes_at_once_make_one_run(project: Project, server: LinesServer) -> None:
    """All are at the gate before any is let through: the first request is held until all have asked."""
    server.script = [HANG]
    first = project.cold("sync")
    server.wait_for(1)
    for done in [project.call("sync", code=4) for _ in range(2)]:
        assert "another run is at work: process" in done.out
    first.send_signal(signal.SIGINT)
    assert first.wait(PATIENCE) == 130
    first.communicate()
    assert len(server.requests) == 1
    finish(project, server)


# ── kills ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_kill_in_mid_page_is_made_up_for_at_once(project: Project, server: LinesServer) -> None:
    server.script = [HANG]
    with Loop(project) as loop:
        server.wait_for(1)
        loop.kill()
    check_whole(project)
    with Loop(project) as loop:
        assert loop.heard("lines/news: done").startswith("lines/news: done, 30 new of 30")
        assert loop.end()[0] == 0
    finish(project, server)


def test_every_step_of_a_page_has_a_fail_point() -> None:
    assert set(KILL_POINTS) >= {
        "lease.committed", "reserve.committed", "page.before", "page.commit", "page.committed",
        "record.before", "record.committed",
    }  # fmt: skip


@pytest.mark.timeout(900)  # the first one waits until the extension is built
@pytest.mark.parametrize("hit", [1, 2])
@pytest.mark.parametrize("point", KILL_POINTS)
def test_a_kill_between_any_two_steps_of_a_page_loses_and_doubles_nothing(
    project: Project, server: LinesServer, point: str, hit: int
) -> None:
    project.package = failpoint_package()
    server.lines = list(messages(450))
    if hit > 1 and point.partition(".")[0] in {"lease", "record"}:
        # The second run is killed.
        server.lines = list(messages(100))
        project.call("sync")
        server.lines = list(messages(450))
        hit = 1
    project.environment = {"CHATPROC_FAILPOINT": f"{point}:{hit}"}
    killed = project.start("sync").wait()
    assert killed.code == -signal.SIGABRT, killed
    project.environment = {}
    check_whole(project)
    finish(project, server)


# ── files and nudges ─────────────────────────────────────────────────────────────────────────────────


def test_a_new_batch_wakes_the_loop_at_once(project: Project, model: ModelServer) -> None:
    project.configure(input={"start_at": 0}).connect(
        jsonl={"id": "files", "paths": ["collected/*.jsonl"], "interval_seconds": 0}
    )
    (project.root / "collected").mkdir()
    project.batch("a.jsonl", *chat("lab", "交报告"))
    with Loop(project) as loop:
        loop.heard("round: 1 new lines, 1 groups done")
        project.batch("b.jsonl", *chat("club", "交会费"))
        loop.heard("round: 1 new lines, 1 groups done")
        (project.inbox / "b.jsonl").rename(project.root / "collected" / "c.jsonl")
        loop.heard("jsonl/files: done, 0 new of 1")
        assert loop.end()[0] == 0
    asked = [text for document in model.documents for text in texts(document)]
    assert asked == ["交报告", "交会费"]


def texts(document: dict[str, Any]) -> list[str]:
    return [
        message["text"]
        for conversation in document["conversations"]
        for segment in conversation["segments"]
        for message in segment["messages"]
    ]


def test_what_always_fails_is_told_with_its_next_try_and_once_tries_at_any_time(
    project: Project, model: ModelServer
) -> None:
    def answer(request: dict[str, Any]) -> Answer:
        hard = "难题" in json.dumps(request, ensure_ascii=False)
        return prose("nothing to hand in") if hard else one_task_each(request)

    model._script = answer
    project.configure(
        input={"start_at": 0}, schedule={"tick_seconds": 1}, agent={"batching": "single_conversation"}
    ).connect()
    project.batch("a.jsonl", *chat("lab", "难题"))
    with Loop(project) as loop:
        told = loop.heard("1 segments failed again and wait; the next try is at ")
        asked = len(model.requests)
        shown = project.status()["retry"]
        assert shown["segments"] == 1
        assert abs(shown["at"] - datetime.fromisoformat(told.split()[-1]).timestamp()) <= 1
        assert 1100 < shown["at"] - time.time() <= 1200
        project.batch("b.jsonl", *chat("club", "交会费"))
        loop.heard("round: 1 new lines, 1 groups done")
        assert loop.end()[0] == 0
    assert len(model.requests) == asked + 1
    assert "tries again" in project.call("status").out
    project.once(3)
    assert len(model.requests) > asked + 1


def test_an_output_that_cannot_be_written_waits_and_the_loop_goes_on(
    project: Project, model: ModelServer
) -> None:
    project.configure(input={"start_at": 0}, schedule={"tick_seconds": 1}).connect()
    project.batch("a.jsonl", *chat("lab", "交报告"))
    with Loop(project) as loop:
        with mounted(project.output, "-t", "tmpfs", "-o", "ro", "none"):
            told = loop.heard("warning: export: ")
            assert str(project.output) in told
            loop.heard("round: 1 new lines, 1 groups done")
            project.batch("b.jsonl", *chat("club", "交会费"))
            loop.heard("round: 1 new lines, 1 groups done")
            assert project.status()["outbox"] == 2
            assert str(project.output) in project.status()["last_round"]["report"]["export"]["error"]
        loop.heard("round: 0 new lines, 0 groups done")
        assert loop.end()[0] == 0
    assert len(model.requests) == 2
    project.check_published()


def test_statuses_that_a_user_sets_while_rounds_run_stand_and_are_published_once(
    project: Project,
) -> None:
    project.configure(
        input={"start_at": 0}, schedule={"tick_seconds": 1}, processing={"max_groups_per_round": 5}
    )
    project.connect().batch(
        "a.jsonl", *(it for number in range(8) for it in chat(f"g{number}", f"交报告{number}"))
    )
    project.once()
    tasks = [task["task_id"] for task in project.tasks()]
    config = load_config(project.root / "config" / "processor.toml")
    wanted: dict[str, str] = {}
    with Loop(project) as loop:
        loop.heard("at work")
        for turn in range(100):
            if turn % 5 == 0:
                project.batch(f"b{turn}.jsonl", *chat(f"h{turn}", "交会费", "交水费"))
            task = tasks[turn % len(tasks)]
            wanted[task] = "open" if wanted.get(task) == "completed" else "completed"
            begin = time.monotonic()
            update_task_status(config, task, wanted[task], request_id=f"r{turn}", actor="me")
            assert time.monotonic() - begin < 5, "a round holds up no user"
            time.sleep(max(0.0, 0.05 - (time.monotonic() - begin)))  # twenty a second
        loop.heard("round: ")
        while project.pending():
            loop.heard("round: ")
        assert loop.end()[0] == 0
    assert {it["task_id"]: it["status"] for it in project.tasks() if it["task_id"] in wanted} == wanted
    by_user = [event for event in project.events() if event["task_id"] in wanted]
    assert len(by_user) == 100 + len(wanted), "each of them once, after its beginning"
    project.check_published()
    assert project.document("verify")["breaks"] == []


def test_a_loop_started_twice_in_a_process_is_one_and_can_be_nudged(
    project: Project, server: LinesServer, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(packages))
    file = project.root / "config" / "processor.toml"
    config = chatproc.load_config(file)
    assert not chatproc.nudge(config, "lines/news")
    loop = chatproc.start_loop(file)
    try:
        assert chatproc.start_loop(file) is loop
        server.wait_for(1)
        assert chatproc.nudge(config, "news")
        server.wait_for(1)
        with pytest.raises(chatproc.ConfigError, match="no connection is called 'nothing'"):
            chatproc.nudge(config, "nothing")
        project.call("once", code=4)
    finally:
        loop.stop()
    report = loop.wait(10)
    assert report is not None
    assert report.syncs == 2
    assert not loop.is_running
    assert state(project)["runs"] == 2
    project.once()


def test_what_would_be_synced_is_told_without_a_request_and_without_a_store(
    project: Project, server: LinesServer
) -> None:
    project.connect(
        ("lines", {"id": "news", "url": server.url}),
        ("lines", {"id": "old", "url": server.url, "enabled": False}),
    )
    planned = project.document("run", "--dry-run")
    assert [(entry["id"], entry["would_sync"]) for entry in planned["connections"]] == [
        ("news", True),
        ("old", False),
    ]
    assert server.requests == []
    assert not project.state.parent.exists()


def test_a_connection_is_named_by_toolkit_and_id_or_by_an_id_that_is_its_own(
    project: Project, server: LinesServer
) -> None:
    project.connect(
        ("lines", {"id": "a", "url": server.url}),
        ("jsonl", {"id": "a", "paths": ["x"]}),
        ("jsonl", {"id": "b", "paths": ["x"]}),
    )
    assert project.document("sync", "LINES/a")["connections"][0]["written"] == 30
    assert project.document("sync", "b")["connections"][0]["outcome"] == "done"
    assert "more than one connection has the id 'a'" in project.call("sync", "a", code=2).err
    assert "there are: lines/a, jsonl/a, jsonl/b" in project.call("sync", "c", code=2).err


def test_without_a_connection_it_is_said_how_one_is_made(project: Project) -> None:
    project.connect()
    for command in (["sync"], ["connections"], ["run", "--dry-run"]):
        assert "a source is a table [[connections]]" in project.call(*command).err


def test_a_check_says_which_secret_is_missing_before_a_sync_does(
    project: Project, server: LinesServer
) -> None:
    secret = project.root / "secrets" / "news.txt"
    keys = {"id": "news", "url": server.url, "secret_file": str(secret)}
    mail = {"id": "mail", "host": "localhost", "user": "wang"}
    project.connect(("lines", keys), ("imap", mail), ("imap", {**mail, "id": "off", "enabled": False}))
    found = {entry["text"]: entry for entry in checked(project, code=5)}
    assert len(found) == 2
    missing = f"no secret found for lines/news (looked at {secret} (not there))"
    assert found[missing]["hint"].startswith(f"write the secret into {secret}")
    assert "secret_file" in found["imap/mail has neither secret_file nor secret_env"]["hint"]
    secret.parent.mkdir(exist_ok=True)
    secret.touch(0o600)
    secret.write_text("token")
    project.connect(lines=keys)
    assert [(entry["state"], entry["text"]) for entry in checked(project)] == [
        ("ok", "lines/news, secret found")
    ]
    assert server.requests == []


def checked(project: Project, code: int = 0) -> list[dict[str, Any]]:
    found = project.document("check", code=code)["findings"]
    return [entry for entry in found if entry["topic"] == "connections"]


def test_a_secret_that_is_there_but_cannot_be_used_is_told_as_that(
    project: Project, server: LinesServer
) -> None:
    secret = project.root / "token.txt"
    project.connect(lines={"id": "my news", "url": server.url, "secret_file": str(secret)})
    (first,) = project.document("sync", code=5)["connections"]
    assert "not there" in first["error"]["text"]
    (again,) = project.document("sync", code=5)["connections"]
    assert again["outcome"] == "skipped"
    assert "`chatproc sync 'lines/my news' --force`" in again["why"]
    secret.write_text("token")
    secret.chmod(0o644)
    (opened,) = project.document("sync", code=5)["connections"]
    assert opened["error"]["text"].endswith(f"chmod 600 {secret}")
    secret.chmod(0o600)
    assert project.document("sync")["connections"][0]["outcome"] == "done"


def test_importing_the_package_stays_fast_and_loads_no_watcher() -> None:
    late = {"watchfiles", "anyio", "asyncio", "pydantic", "chatproc.connectors"}
    code = f"import sys, chatproc; print(sorted({late!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
