"""The commands over a real store and a real model server: the way of a person through a day."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests import sse

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = [sys.executable, "-c", "from chatproc.cli import main; main()"]
TEXTS = ["请大家周五 17:00 前把报告交到 302", "好的\x1b[2J\u202e收到", "明天下午三点开会"]


def event(number: int, text: str) -> str:
    return json.dumps(
        {
            "schema": "chatproc.event/1",
            "event_id": f"e{number}",
            "message_key": f"qq:1:9:{number}",
            "revision": 0,
            "platform": "qq",
            "account_id": "1",
            "conversation": {"id": "9", "name": "实验室", "type": "group"},
            "sent_at": 1782871200 + number * 60,
            "sender": {"id": str(number), "name": f"王老师{number}"},
            "text": text,
            "sequence": {"index": number, "predecessor": f"qq:1:9:{number - 1}"},
        }
    )


class Project:
    """A project folder, and the program run in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "rules.md").write_text("rules", encoding="utf-8")
        self.configure()

    def configure(self, agent: str = "") -> None:
        text = (
            '[input]\npaths = ["in/*.jsonl"]\nsettle_seconds = 0\n[rules]\nfile = "rules.md"\n[agent]\n'
            + agent
        )
        (self.root / "processor.toml").write_text(text, encoding="utf-8")

    def serve(self, server: sse.ModelServer) -> None:
        self.configure(f'base_url = "{server.base_url}"\nmodel = "m"\napi_key_env = ""\napi_key_file = ""')

    def write(self, *lines: str) -> None:
        (self.root / "in").mkdir(exist_ok=True)
        (self.root / "in" / "a.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore::RuntimeWarning"}
        environment.pop("CHAT_PROCESSOR_API_KEY", None)
        command = [*PROGRAM, arguments[0], "--config", "processor.toml", *arguments[1:]]
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def call(self, *arguments: str, code: int = 0) -> str:
        running = self.start(*arguments)
        shown, said = running.communicate(timeout=60)
        assert running.returncode == code, said
        assert "Traceback" not in said
        return shown

    def document(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.call(*arguments, "--json", code=code))
        return document


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def finished(project: Project) -> Project:
    """A project with one task, published."""
    project.write(*(event(number, text) for number, text in enumerate(TEXTS)))
    with sse.ModelServer(sse.one_task_each) as server:
        project.serve(server)
        project.call("once")
    return project


def test_reading_commands_without_a_store_are_empty_and_create_nothing(project: Project) -> None:
    before = sorted(project.root.rglob("*"))
    assert project.document("status")["messages"] == 0
    assert project.document("tasks") == {"tasks": [], "next_cursor": None, "total": 0, "at_least": False}
    assert project.document("preview")["groups"] == []
    assert project.document("quarantine") == {"lines": []}
    assert project.document("export")["events"] == 0
    for command in ("status", "tasks", "preview", "quarantine", "export"):
        project.call(command)
    assert sorted(project.root.rglob("*")) == before


def test_a_round_ends_with_a_task_and_the_next_one_asks_nothing(project: Project) -> None:
    project.write(*(event(number, text) for number, text in enumerate(TEXTS)))
    with sse.ModelServer(sse.one_task_each) as server:
        project.serve(server)
        document = project.document("once")
        assert {"lines", "accepted", "repeats", "quarantined"} <= set(document["ingest"])
        assert {"groups", "pending", "oversized", "usage"} <= set(document["round"])
        assert {"files", "events"} <= set(document["export"])
        (group,) = document["round"]["groups"]
        names = {"id", "conversation", "segments", "messages", "chars", "outcome", "reason", "tasks"}
        assert names <= set(group)
        assert document["export"]["events"] == 1
        assert project.document("once")["round"]["groups"] == []
        assert len(server.requests) == 1


def test_a_round_without_a_model_says_what_to_do_and_keeps_what_it_read(project: Project) -> None:
    project.write(event(0, TEXTS[0]))
    project.call("once", code=2)
    assert project.document("status")["messages"] == 1


def test_a_round_without_a_key_is_5_and_keeps_what_it_read(project: Project) -> None:
    project.configure('base_url = "https://example.invalid/v1"\nmodel = "m"')
    project.write(event(0, TEXTS[0]))
    project.call("once", code=5)
    assert project.document("status")["messages"] == 1


def test_a_refused_line_makes_the_round_3_and_stays_in_the_quarantine_until_discarded(
    project: Project,
) -> None:
    project.write("\x1b[31mno json")
    project.call("once", code=3)
    (line,) = project.document("quarantine")["lines"]
    assert {"id", "file", "line", "offset", "reason", "explanation", "raw"} <= set(line)
    shown = project.call("quarantine", "show", str(line["id"]))
    assert "no json" in shown
    assert "\x1b" not in shown
    project.call("quarantine", "retry", str(line["id"]), code=3)
    project.call("quarantine", "discard", str(line["id"]))
    assert project.document("quarantine")["lines"] == []
    project.call("quarantine", "show", code=2)
    project.call("quarantine", "show", "99", code=1)


def test_a_full_preview_is_what_is_sent_byte_for_byte(project: Project) -> None:
    project.write(*(event(number, text) for number, text in enumerate(TEXTS)))
    with sse.ModelServer(sse.one_task_each) as server:
        project.serve(server)
        (shown,) = project.call("preview", "--full").splitlines()
        project.call("once")
        (request,) = server.requests
    assert shown == next(sent["content"] for sent in request.json["messages"] if sent["role"] == "user")


def test_a_preview_names_its_groups(project: Project) -> None:
    project.write(*(event(number, text) for number, text in enumerate(TEXTS)))
    (group,) = project.document("preview")["groups"]
    assert set(group["conversation"]) == {"platform", "account_id", "id", "name"}
    assert {"chars", "segments", "estimated_tokens", "estimated_price"} <= set(group)
    assert [set(segment) >= {"continuity", "messages"} for segment in group["segments"]] == [True]
    assert project.document("preview", "--group", group["id"])["groups"] == [group]
    assert f"{group['id']}\tqq 实验室\t" in project.call("preview")


def test_a_task_is_listed_and_shown_with_its_source(finished: Project) -> None:
    (task,) = finished.document("tasks", "--query", "开会", "--status", "open", "--people", "")["tasks"]
    shown = finished.call("task", task["task_id"])
    assert "2026-07-01T10:02:00+08:00 qq 实验室 王老师2\n  明天下午三点开会\n" in shown
    assert finished.document("tasks", "--priority", "P0")["tasks"] == []
    finished.call("task", "t_unknown", code=1)
    finished.call("tasks", "--cursor", "nonsense", code=1)


def test_what_a_user_decides_is_published_with_who_and_why(finished: Project) -> None:
    (task,) = finished.document("tasks")["tasks"]
    ident = task["task_id"]
    event_ = finished.document("done", ident, "--actor", "me", "--note", "handed in")
    assert (event_["task"]["status"], event_["task"]["status_by"]) == ("completed", "user")
    finished.call("cancel", ident, "--expected-revision", "1", code=1)
    assert finished.document("reopen", ident)["task"]["status"] == "open"
    assert finished.document("cancel", ident)["task"]["status"] == "cancelled"
    assert finished.document("priority", ident, "P0")["task"]["priority"] == "P0"
    history = finished.document("task", ident, "--history")["history"]
    assert [entry["revision"] for entry in history] == [1, 2, 3, 4, 5]
    assert (history[1]["actor"], history[1]["why"]) == ("user:me", "handed in")
    assert finished.document("status")["outbox"] == 4
    assert finished.document("export")["events"] == 4
    assert finished.document("status")["outbox"] == 0


def test_an_interrupted_round_is_130_and_its_group_stays_pending(project: Project) -> None:
    project.write(event(0, TEXTS[0]))
    with sse.ModelServer([sse.EMPTY.then("hang")]) as server:
        project.serve(server)
        running = project.start("once")
        assert server.arrived.wait(60)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in said
    assert project.document("preview")["pending"] == 1


def test_a_second_round_at_the_same_time_is_4_and_says_who_holds_the_store(project: Project) -> None:
    project.write(event(0, TEXTS[0]))
    with sse.ModelServer([sse.EMPTY.then("hang")]) as server:
        project.serve(server)
        first = project.start("once")
        assert server.arrived.wait(60)
        second = project.start("once")
        _, said = second.communicate(timeout=60)
        assert project.document("status")["messages"] == 1
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
    assert second.returncode == 4
    assert f"process {first.pid}" in said


def test_no_key_is_ever_shown(project: Project) -> None:
    key = "sk-verysecret"
    project.write(event(0, TEXTS[0]))
    answers = [sse.failure(401, {"error": {"message": f"bad key {key}"}})] * 3
    with sse.ModelServer(answers) as server:
        project.configure(f'base_url = "{server.base_url}"\nmodel = "m"\napi_key_file = "key"')
        (project.root / "key").write_text(key)
        (project.root / "key").chmod(0o600)
        for arguments in (["once", "-vv"], ["check", "--ping", "-vv"], ["status", "--json"], ["check"]):
            running = project.start(*arguments)
            shown, said = running.communicate(timeout=60)
            assert key not in shown + said
        assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    for file in project.root.rglob("*"):
        if file.is_file() and file.name != "key":
            assert key.encode() not in file.read_bytes()


@pytest.mark.parametrize(("date", "code"), [("2026-07-01T10:00:00", 0), ("some day", 3)])
def test_an_import_is_3_when_something_was_not_understood(project: Project, date: str, code: int) -> None:
    message = {"id": 1, "type": "message", "date": date, "from": "a", "from_id": "user1", "text": "x"}
    export = {"name": "x", "type": "personal_chat", "id": 1, "messages": [message]}
    (project.root / "result.json").write_text(json.dumps(export))
    document = project.document("import", "telegram", "result.json", code=code)
    assert len(document["not_understood"]) == (1 if code else 0)
    names = {"files", "messages", "edits", "recalls", "attachments", "not_understood", "timezone_assumed"}
    assert names <= set(document)
    assert [
        file for file in document["files"] if not file.startswith(str(project.root / "data/import"))
    ] == []
