"""A round through the program: what is asked in which order, what becomes of it, what commands show."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import PATIENCE, PROGRAM, START, Project, chat, event
from tests.sse import (
    Answer,
    ModelServer,
    document_of,
    failure,
    new_task,
    no_tasks,
    one_task_each,
    submits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(one_task_each) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, server: ModelServer) -> Project:
    return Project(tmp_path / "project", server.base_url)


@pytest.fixture
def worked(project: Project) -> Project:
    """A project after a round with one task, done with its three messages."""
    project.batch("a.jsonl", *chat("lab", "好", "收到", "交报告"))
    project.once()
    return project


def singles(conversation: str, *texts: str) -> list[dict[str, Any]]:
    """Messages without a sequence: each a segment of its own."""
    return [
        event(f"{conversation}{number}", text, conversation=conversation, sent_at=START + 60 * number)
        for number, text in enumerate(texts)
    ]


def messages_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        message
        for conversation in document["conversations"]
        for segment in conversation["segments"]
        for message in segment["messages"]
    ]


def texts_of(document: dict[str, Any]) -> list[str]:
    return [message.get("text", "") for message in messages_of(document)]


def sent(server: ModelServer) -> list[str]:
    """The user messages of all first requests of sessions, byte for byte."""
    messages = [request.json["messages"] for request in server.requests]
    return [
        next(it["content"] for it in list_ if it["role"] == "user") for list_ in messages if len(list_) == 2
    ]


class Counter:
    """A model that counts the requests it has in hand, and waits until so many are there together."""

    def __init__(self, together: int) -> None:
        self._barrier = threading.Barrier(together)
        self._lock = threading.Lock()
        self._in_hand = 0
        self.most = 0

    def __call__(self, request: dict[str, Any]) -> Answer:
        with self._lock:
            self._in_hand += 1
            self.most = max(self.most, self._in_hand)
        self._barrier.wait(PATIENCE)
        with self._lock:
            self._in_hand -= 1
        return one_task_each(request)


class Asked:
    """A model that keeps its answer back until it is released."""

    def __init__(self, answer: Any = one_task_each) -> None:  # noqa: ANN401 - an answer or a function
        self.asked = threading.Event()
        self.release = threading.Event()
        self._answer = answer

    def __call__(self, request: dict[str, Any]) -> Answer:
        self.asked.set()
        assert self.release.wait(PATIENCE)
        answer: Answer = self._answer(request)
        return answer


# ── who is asked when ────────────────────────────────────────────────────────────────────────────────


def test_conversations_are_asked_for_at_once_up_to_the_configured_number(project: Project) -> None:
    model = Counter(3)
    with ModelServer(model) as server:
        project.configure(
            agent={"base_url": server.base_url, "batching": "single_conversation", "concurrency": 3}
        )
        project.batch("a.jsonl", *(message for name in "abcdef" for message in chat(name, f"交 {name}")))
        report = project.once()
        assert len(server.requests) == 6
    assert model.most == 3
    assert [group["outcome"] for group in report["round"]["groups"]] == ["done"] * 6


def test_groups_of_one_conversation_are_asked_for_one_after_the_other(project: Project) -> None:
    lock = threading.Lock()
    walk: list[tuple[str, str]] = []

    def script(request: dict[str, Any]) -> Answer:
        (text,) = texts_of(document_of(request))
        with lock:
            walk.append(("asked", text))
        answer = one_task_each(request)
        with lock:
            walk.append(("answered", text))
        return answer

    with ModelServer(script) as server:
        project.configure(
            agent={"base_url": server.base_url, "batching": "single_conversation", "concurrency": 4},
            context={"max_messages": 1},
        )
        wanted = {name: [f"交 {name}{number}" for number in range(3)] for name in "abc"}
        project.batch("a.jsonl", *(it for name, texts in wanted.items() for it in singles(name, *texts)))
        report = project.once()
    assert report["round"]["pending"] == 0
    for texts in wanted.values():
        in_order = [(step, text) for text in texts for step in ("asked", "answered")]
        assert [entry for entry in walk if entry[1] in texts] == in_order


def test_a_failed_group_does_not_stop_the_next_of_its_conversation(project: Project) -> None:
    with ModelServer([failure(500), one_task_each, one_task_each]) as server:
        project.configure(
            agent={"base_url": server.base_url, "batching": "single_conversation"},
            context={"max_messages": 1},
        )
        project.batch("a.jsonl", *singles("lab", "交一", "交二"))
        assert [it["outcome"] for it in project.once(3)["round"]["groups"]] == ["failed", "done"]
        assert [it["outcome"] for it in project.once()["round"]["groups"]] == ["done"]
        assert [texts_of(document) for document in server.documents] == [["交一"], ["交二"], ["交一"]]


def test_a_round_takes_so_many_groups_and_leaves_the_rest_without_fault(
    project: Project, server: ModelServer
) -> None:
    project.configure(processing={"max_groups_per_round": 2})
    project.batch("a.jsonl", *(message for name in "abc" for message in chat(name, f"交 {name}")))
    report = project.once()
    assert (len(report["round"]["groups"]), report["round"]["pending"]) == (2, 1)
    assert project.once()["round"]["pending"] == 0
    assert len(server.requests) == 2


def test_one_request_holds_conversations_up_to_the_budget(project: Project, server: ModelServer) -> None:
    project.batch("a.jsonl", *(message for name in "abc" for message in chat(name, f"交 {name}")))
    project.once()
    (document,) = server.documents
    assert [it["id"] for it in document["conversations"]] == ["c1", "c2", "c3"]
    assert len(project.tasks()) == 3


# ── what is asked again ──────────────────────────────────────────────────────────────────────────────


def test_a_second_round_with_nothing_new_asks_nothing_and_changes_nothing(
    worked: Project, server: ModelServer
) -> None:
    before = worked.outcome()
    assert worked.once()["round"]["groups"] == []
    worked.batch("copy.jsonl", *chat("lab", "好", "收到", "交报告"))
    assert worked.once()["round"]["groups"] == []
    assert len(server.requests) == 1
    assert worked.outcome() == before


def test_an_edited_message_sends_its_own_segment_again_and_nothing_else(
    project: Project, server: ModelServer
) -> None:
    project.batch("a.jsonl", *chat("lab", "好", "交报告"), *singles("home", "交水费"))
    edit = [event("alone1", "交一", sent_at=START + 9000), event("alone2", "交二", sent_at=START + 9999)]
    project.batch("b.jsonl", *edit)
    project.once()
    assert len(server.requests) == 1
    project.batch("c.jsonl", {**edit[0], "event_id": "new", "revision": 1, "state": "edited", "text": "交三"})
    report = project.once()
    assert len(server.requests) == 2
    (message,) = messages_of(server.documents[1])
    assert (message["text"], message["edited"]) == ("交三", True)
    assert report["round"]["pending"] == 0


def test_a_new_message_of_a_chain_sends_its_segment_again_with_what_it_follows(
    worked: Project, server: ModelServer
) -> None:
    worked.batch("b.jsonl", *chat("lab", "改到周四", begin=3), *singles("more", "在吗"))
    worked.once()
    documents = server.documents[1:]
    assert [texts_of(document) for document in documents] == [["好", "收到", "交报告", "改到周四", "在吗"]]


def test_a_recalled_message_is_sent_without_its_text_and_its_task_is_superseded(
    worked: Project, server: ModelServer
) -> None:
    recalled = {**chat("lab", "", begin=2)[0], "event_id": "new", "revision": 1, "state": "recalled"}
    worked.batch("b.jsonl", recalled)
    with ModelServer(no_tasks) as now_none:
        worked.configure(agent={"base_url": now_none.base_url})
        worked.once()
        (message,) = [it for it in messages_of(now_none.documents[0]) if it.get("recalled")]
    assert set(message) <= {"id", "time", "sender", "recalled"}
    (task,) = worked.tasks()
    assert (task["status"], task["revision"]) == ("superseded", 2)
    assert worked.status()["outcomes"]["recalled"] == 1
    assert [it["task"]["status"] for it in worked.events()] == ["open", "superseded"]
    del server


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        ("agent", {"model": "another"}),
        ("agent", {"vision": True}),
        ("rules", {"timezone": "Europe/Berlin"}),
        ("context", {"grouping": "time"}),
        ("rules", {"file": "processing-rules/other.md"}),
    ],
)
def test_a_changed_setting_sends_all_again(
    worked: Project, server: ModelServer, section: str, keys: dict[str, Any]
) -> None:
    (worked.rules.parent / "other.md").write_text("Everything is P1.", encoding="utf-8")
    worked.configure(**{section: keys})
    worked.once()
    # The model takes the task for a new one, and is asked whether it is the earlier one.
    assert [len(messages_of(json.loads(text))) for text in sent(server)] == [3, 3]
    assert len(server.requests) == 3


def test_changed_budgets_and_limits_send_nothing_again(worked: Project, server: ModelServer) -> None:
    worked.configure(
        context={"max_conversation_chars": 10_000, "max_messages": 7, "max_related_chars": 100},
        processing={"max_input_chars": 20_000, "max_groups_per_round": 3},
        agent={"concurrency": 1, "batching": "single_conversation", "retries": 2, "max_turns": 7},
    )
    assert worked.once()["round"]["groups"] == []
    assert len(server.requests) == 1


def test_history_alone_asks_nothing(project: Project, server: ModelServer) -> None:
    project.configure(input={"start_at": START + 3600})
    project.batch("a.jsonl", *chat("lab", "旧"))
    assert project.once()["round"]["groups"] == []
    assert project.status()["outcomes"]["history"] == 1
    assert server.requests == []


# ── what becomes of it ───────────────────────────────────────────────────────────────────────────────


def updates_first_task(request: dict[str, Any]) -> Answer:
    """A model that goes on with the task that it is shown and wants it cancelled."""
    document = document_of(request)
    (conversation,) = document["conversations"]
    message = messages_of(document)[-1]
    title = document["tasks"][0]["title"]
    task = new_task(title, [message["id"]], task_ref="t1", status="cancelled", priority="P4", notes="改了")
    return submits({conversation["id"]: [task]})


def test_a_status_set_during_the_session_is_a_conflict_and_the_next_round_asks_again(worked: Project) -> None:
    (task,) = worked.tasks()
    worked.batch("b.jsonl", *chat("lab", "改到周四", begin=3))
    model = Asked(updates_first_task)
    with ModelServer(model) as server:
        worked.configure(agent={"base_url": server.base_url})
        at_work = worked.cold("once", "--json")
        assert model.asked.wait(PATIENCE)
        worked.call("done", task["task_id"], "--actor", "me")
        model.release.set()
        out, err = at_work.communicate(timeout=PATIENCE)
        assert at_work.returncode == 0, err
        (group,) = json.loads(out)["round"]["groups"]
        assert group["outcome"] == "conflict"
        assert task["task_id"] in group["reason"]
        assert json.loads(out)["round"]["pending"] == 1
        assert [it["notes"] for it in worked.tasks()] == [""]
        report = worked.once()
        assert [group["outcome"] for group in report["round"]["groups"]] == ["done"]
        assert len(server.requests) == 2
    (task,) = worked.tasks()
    assert (task["status"], task["status_by"], task["notes"]) == ("completed", "user", "改了")
    worked.check_published()


@pytest.mark.parametrize(
    ("command", "status"), [("done", "completed"), ("cancel", "cancelled"), ("reopen", "open")]
)
def test_what_a_user_set_no_round_undoes(worked: Project, command: str, status: str) -> None:
    (task,) = worked.tasks()
    worked.call(command, task["task_id"], "--actor", "me")
    worked.call("priority", task["task_id"], "P0", "--actor", "me")
    worked.batch("b.jsonl", *chat("lab", "取消", begin=3))
    with ModelServer([updates_first_task, no_tasks]) as server:
        worked.configure(agent={"base_url": server.base_url})
        worked.once()
        worked.batch("c.jsonl", *chat("lab", "算了", begin=4))
        worked.once()
        assert len(server.requests) == 2
    (task,) = worked.tasks()
    assert (task["status"], task["status_by"]) == (status, "user")
    assert (task["priority"], task["priority_by"]) == ("P0", "user")
    said, note = task["notes"].split("\n")
    assert said == "改了"
    assert "stays because a user set its status" in note


def test_the_good_conversations_of_a_session_are_committed_and_the_bad_one_is_asked_for_alone(
    project: Project,
) -> None:
    def script(request: dict[str, Any]) -> Answer:
        document = document_of(request)
        tasks = {}
        for conversation in document["conversations"]:
            (message,) = conversation["segments"][0]["messages"]
            bad = message["text"] == "交坏" and len(document["conversations"]) > 1
            tasks[conversation["id"]] = [new_task(message["text"], ["m99" if bad else message["id"]])]
        return submits(tasks)

    with ModelServer(script) as server:
        project.configure(agent={"base_url": server.base_url})
        project.batch("a.jsonl", *chat("lab", "交好"), *chat("home", "交坏"))
        report = project.once(3)
        assert {it["conversation"]["id"]: it["outcome"] for it in report["round"]["groups"]} == {
            "lab": "done",
            "home": "failed",
        }
        assert len(server.requests) == 3
        assert [task["title"] for task in project.tasks()] == ["交好"]
        assert project.once()["round"]["pending"] == 0
        assert [texts_of(document) for document in server.documents[3:]] == [["交坏"]]
    assert {task["title"] for task in project.tasks()} == {"交好", "交坏"}


def test_an_oversized_segment_is_3_kept_and_listed_and_the_others_go_on(
    project: Project, server: ModelServer
) -> None:
    project.configure(context={"max_conversation_chars": 1000})
    project.batch("a.jsonl", *chat("big", "交" * 2000), *chat("lab", "交报告"))
    for _ in range(2):
        report = project.once(3)
        (oversized,) = report["round"]["oversized"]
        assert oversized["conversation"]["id"] == "big"
        assert oversized["chars"] > 2000
        assert report["round"]["pending"] == 0
    assert project.status()["oversized"] == [oversized]
    assert project.document("preview")["oversized"] == [oversized]
    assert [texts_of(document) for document in server.documents] == [["交报告"]]
    project.configure(context={"max_conversation_chars": 10_000})
    assert project.once()["round"]["oversized"] == []
    assert len(project.tasks()) == 2


# ── credentials ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def keyed(project: Project) -> Project:
    """A project that wants a key and has none."""
    return project.configure(agent={"api_key_env": "CHAT_PROCESSOR_API_KEY", "api_key_file": "secrets/key"})


def test_without_a_key_a_round_is_5_and_export_and_ingest_have_happened(
    worked: Project, server: ModelServer
) -> None:
    worked.output.rename(worked.root / "elsewhere")
    worked.output.write_bytes(b"")
    worked.call("done", worked.tasks()[0]["task_id"], "--actor", "me")
    worked.call("export", code=3)
    worked.output.unlink()
    worked.configure(agent={"api_key_env": "CHAT_PROCESSOR_API_KEY", "api_key_file": "secrets/key"})
    worked.batch("b.jsonl", *chat("home", "交水费"), "no json")
    done = worked.call("once", code=5)
    for place in ("CHAT_PROCESSOR_API_KEY", str(worked.root / ".env"), str(worked.root / "secrets/key")):
        assert place in done.err
    assert len(worked.events()) == 1
    assert worked.status()["outbox"] == 0
    assert worked.status()["messages"] == 4
    assert worked.status()["quarantined"] == 1
    assert worked.pending() == 1
    assert len(server.requests) == 1


def test_with_nothing_pending_no_key_is_needed(keyed: Project) -> None:
    assert keyed.once()["round"]["groups"] == []
    keyed.batch("a.jsonl", "no json")
    keyed.once(3)


def test_every_reading_command_works_without_a_key(keyed: Project) -> None:
    keyed.batch("a.jsonl", *chat("lab", "交报告"))
    keyed.call("once", code=5)
    for command in ("status", "preview", "tasks", "quarantine", "export"):
        keyed.call(command)


@pytest.mark.parametrize("place", ["environment", ".env", "file"])
def test_a_key_is_found_in_each_place(keyed: Project, server: ModelServer, place: str) -> None:
    keyed.batch("a.jsonl", *chat("lab", "交报告"))
    if place == "environment":
        keyed.environment["CHAT_PROCESSOR_API_KEY"] = "sk-here"
    elif place == ".env":
        (keyed.root / ".env").write_text("CHAT_PROCESSOR_API_KEY=sk-here\n")
    else:
        (keyed.root / "secrets").mkdir()
        (keyed.root / "secrets/key").write_text("sk-here\n")
        assert "chmod 600" in keyed.call("once", code=5).err
        (keyed.root / "secrets/key").chmod(0o600)
    keyed.once()
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer sk-here"]


def test_without_rules_or_leave_for_plain_http_a_round_is_2(project: Project, server: ModelServer) -> None:
    project.batch("a.jsonl", *chat("lab", "交报告"))
    project.configure(agent={"base_url": "http://192.0.2.1/v1"})
    assert "allow_http" in project.call("once", code=2).err
    project.configure(agent={"base_url": server.base_url})
    project.rules.unlink()
    assert str(project.rules) in project.call("once", code=2).err
    assert server.requests == []


# ── what commands show ───────────────────────────────────────────────────────────────────────────────

CONVERSATION = {"platform", "account_id", "id", "name"}


def test_once_shows_the_keys_of_the_contract(project: Project) -> None:
    project.batch("a.jsonl", *chat("lab", "交报告"), "no json")
    report = project.once(3)
    assert set(report) == {"ingest", "round", "export"}
    assert report["ingest"] | {"lines": 2, "accepted": 1, "repeats": 0, "quarantined": 1} == report["ingest"]
    assert {"groups", "pending", "oversized", "usage"} <= set(report["round"])
    (group,) = report["round"]["groups"]
    assert {"id", "conversation", "segments", "messages", "chars", "outcome", "reason", "tasks"} <= set(group)
    assert set(group["conversation"]) == CONVERSATION
    assert (group["segments"], group["messages"], group["outcome"]) == (1, 1, "done")
    assert group["tasks"] == [task["task_id"] for task in project.tasks()]
    assert report["round"]["usage"]["input_tokens"] == 1000
    assert report["export"] | {"files": 1, "events": 1} == report["export"]


def test_preview_shows_the_keys_of_the_contract(project: Project) -> None:
    project.batch("a.jsonl", *chat("lab", "交报告", "好"))
    shown = project.document("preview")
    assert {"groups", "pending", "oversized"} <= set(shown)
    (group,) = shown["groups"]
    wanted = {"id", "conversation", "chars", "segments", "estimated_tokens", "estimated_price"}
    assert wanted <= set(group)
    assert set(group["conversation"]) == CONVERSATION
    (segment,) = group["segments"]
    assert segment["continuity"] == "proven"
    assert len(segment["messages"]) == 2
    assert group["estimated_tokens"] > 0


def test_status_shows_the_keys_of_the_contract(worked: Project) -> None:
    status = worked.status()
    wanted = {"events", "messages", "conversations", "tasks", "outcomes", "forks", "oversized", "quarantined"}
    assert wanted | {"outbox", "last_round", "connections"} <= set(status)
    assert (status["events"], status["messages"], status["conversations"]) == (3, 3, 1)
    assert status["outcomes"]["cited"] == 1
    assert status["outcomes"]["read-no-task"] == 2
    assert status["last_round"]["ended"] >= status["last_round"]["started"]
    assert status["last_round"]["report"]["pending"] == 0


def test_quarantine_shows_the_keys_of_the_contract(project: Project) -> None:
    project.batch("a.jsonl", *chat("lab", "好"), "no json")
    project.configure(agent={"base_url": ""})
    project.start("once").wait()
    (line,) = project.document("quarantine")["lines"]
    assert {"id", "file", "line", "offset", "reason", "explanation", "raw"} <= set(line)
    assert (line["line"], line["reason"], line["raw"]) == (2, "not-json", "no json")
    assert line["file"] == str(project.inbox / "a.jsonl")


def test_tasks_show_the_record_of_the_contract(worked: Project) -> None:
    page = worked.document("tasks")
    assert {"tasks", "next_cursor", "total"} <= set(page)
    (task,) = page["tasks"]
    record = {
        "title", "event", "priority", "priority_reason", "status", "status_by", "priority_by", "time",
        "people", "location", "action_steps", "notes", "needs_review", "review_reasons",
        "source_message_keys", "sources", "attachment_evidence", "owner", "context", "processing",
    }  # fmt: skip
    assert record | {"task_id", "revision", "updated_at"} <= set(task)
    assert task["source_message_keys"] == ["lab2"]
    (published,) = worked.events()
    names = ["schema", "operation", "event_id", "task_id", "revision", "emitted_at", "task"]
    assert list(published) == names
    assert set(published["task"]) == record
    assert published["task"] == {name: task[name] for name in published["task"]}


READING = [["status"], ["preview"], ["preview", "--full"], ["tasks"], ["quarantine"], ["export"]]


@pytest.mark.parametrize("command", READING)
def test_a_reading_command_without_a_store_is_empty_and_creates_nothing(
    project: Project, command: list[str]
) -> None:
    before = project.files()
    for arguments in (command, [*command, "--json"]):
        project.call(*arguments)
    assert project.files() == before


@pytest.mark.parametrize("command", [["task"], ["done"], ["reopen"], ["cancel"], ["priority"]])
def test_a_command_for_a_task_without_a_store_is_1_and_creates_nothing(
    project: Project, command: list[str]
) -> None:
    before = project.files()
    more = ["P1"] if command == ["priority"] else []
    assert "t_none" in project.call(*command, "t_none", *more, code=1).err
    assert project.files() == before


@pytest.mark.parametrize("command", [*READING[:-1], ["tasks", "--query", "报告"]])
def test_a_reading_command_writes_nothing(worked: Project, server: ModelServer, command: list[str]) -> None:
    worked.batch("b.jsonl", *chat("home", "交水费"), "no json")
    before = worked.files()
    worked.call(*command)
    # SQLite's own index of a log that has nothing in it may lie beside the store.
    side = {str(worked.state.relative_to(worked.root)) + suffix for suffix in ("-shm", "-wal")}
    assert {name: it for name, it in worked.files().items() if name not in side} == before
    wal = worked.state.with_name("state.db-wal")
    assert not wal.exists() or wal.stat().st_size == 0
    assert len(server.requests) == 1


def check_preview_is_sent(project: Project, server: ModelServer, *arguments: str) -> None:
    shown = project.call("preview", "--full", *arguments).out
    before = len(sent(server))
    project.once()
    assert shown == "".join(f"{document}\n" for document in sent(server)[before:])
    assert shown


def test_a_full_preview_is_what_is_sent_byte_for_byte(worked: Project, server: ModelServer) -> None:
    """With related tasks, edits, recalls, attachments, and text that JSON writes as escapes."""
    attachment = {"id": "a1", "name": "模板\u2028.docx", "size": 7, "path": "x/模板.docx", "state": "present"}
    edited = {**chat("lab", "交\u0000报告\x1b[31m\u202e😀", begin=2)[0], "event_id": "e", "revision": 1}
    worked.batch(
        "b.jsonl",
        {**edited, "state": "edited", "mentions": [{"all": True}], "attachments": [attachment]},
        event("r", "", conversation="home", state="recalled"),
        *chat("club", "交\n会费", "\\\"'"),
    )
    check_preview_is_sent(worked, server)


@pytest.mark.parametrize("chats", [8, 12])
def test_a_full_preview_of_many_groups_is_what_is_sent_byte_for_byte(
    project: Project, server: ModelServer, chats: int
) -> None:
    """A request that holds more groups than are listed is shown whole: it is what would leave the machine."""
    project.batch(
        "a.jsonl", *(message for name in "abcdefghijkl"[:chats] for message in chat(name, f"交 {name}"))
    )
    check_preview_is_sent(project, server)


def test_a_preview_lists_as_many_groups_as_wanted_and_counts_all(project: Project) -> None:
    project.batch("a.jsonl", *(message for name in "abcdefg" for message in chat(name, f"交 {name}")))
    ids = [group["id"] for group in project.document("preview", "--limit", "7")["groups"]]
    assert len(ids) == 7
    shown = project.document("preview")
    assert [group["id"] for group in shown["groups"]] == ids[:5]
    assert shown["pending"] == 7
    assert [it["id"] for it in project.document("preview", "--group", ids[6])["groups"]] == [ids[6]]
    assert "g_none" in project.call("preview", "--group", "g_none", code=1).err
    report = project.once()
    assert [group["id"] for group in report["round"]["groups"]] == ids


# ── safety ───────────────────────────────────────────────────────────────────────────────────────────


def test_files_are_their_owners_alone_whatever_the_umask(project: Project, server: ModelServer) -> None:
    project.batch("a.jsonl", *chat("lab", "交报告"))
    modes: dict[str, int] = {}

    def look(request: dict[str, Any]) -> Answer:
        for path in [project.state.parent, *project.state.parent.iterdir()]:
            modes[path.name] = path.stat().st_mode & 0o777
        return one_task_each(request)

    before = os.umask(0)
    try:
        with ModelServer(look) as looking:
            project.configure(agent={"base_url": looking.base_url}, storage={"output": "far/away/out"})
            running = project.cold("once")
            _, err = running.communicate(timeout=PATIENCE)
            assert running.returncode == 0, err
    finally:
        os.umask(before)
    for path in [project.root / "far", *(project.root / "far").rglob("*"), *project.state.parent.iterdir()]:
        modes[path.name] = path.stat().st_mode & 0o777
    folders = {"state", "far", "away", "out"}
    assert {"state.db", "state.db.lock", "state.db-wal"} <= set(modes)
    assert {name: mode for name, mode in modes.items() if mode != (0o700 if name in folders else 0o600)} == {}
    del server


HOSTILE = "交\x1b[2J\x1b]0;owned\x07报\x9b31m\x9d8;;http://x\x9c告\r\u202egnp.exe\x00\x08"


def hostile_project(project: Project) -> str:
    conversation = {"id": "lab", "name": HOSTILE, "type": "group"}
    sender = {"id": "1", "name": HOSTILE}
    project.batch("a.jsonl", event("k", HOSTILE, conversation=conversation, sender=sender), f"no {HOSTILE}")

    def script(request: dict[str, Any]) -> Answer:
        more = {"location": HOSTILE, "notes": HOSTILE, "people": [{"name": HOSTILE, "role": HOSTILE}]}
        message = messages_of(document_of(request))[0]["id"]
        return submits({"c1": [new_task(HOSTILE, [message], action_steps=[HOSTILE], **more)]})

    with ModelServer(script) as server:
        project.configure(agent={"base_url": server.base_url})
        project.start("once").wait()
    (task,) = project.tasks()
    return str(task["task_id"])


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("command", ["task", "tasks", "status", "quarantine"])
def test_no_text_of_a_message_or_a_model_reaches_a_screen_as_a_command(
    project: Project, command: str, *, terminal: bool
) -> None:
    task_id = hostile_project(project)
    arguments = [command, task_id] if command == "task" else [command]
    shown = on_terminal(project, *arguments) if terminal else project.call(*arguments).out
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown) is None, shown
    assert "owned" not in shown
    if command in {"task", "tasks"}:
        assert "交报" in shown


def on_terminal(project: Project, *arguments: str) -> str:
    """What a command writes to a terminal that has no colours."""
    controller, terminal = pty.openpty()
    environment = {
        **os.environ,
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "120",
        "PYTHONWARNINGS": "ignore",
    }
    with subprocess.Popen(
        [*PROGRAM, *arguments], cwd=project.root, env=environment, stdout=terminal, stderr=subprocess.DEVNULL
    ) as running:
        os.close(terminal)
        pieces = []
        while True:
            try:
                piece = os.read(controller, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(controller)
    assert running.returncode == 0
    return b"".join(pieces).decode().replace("\r\n", "\n")
