"""Nothing is in a request but what the contract lists: provenance stays, the key goes to its origin alone.

Every field that must not leave the machine carries a mark of its own, and no recorded byte holds one.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import ROOT, START, Project, chat, event
from tests.sse import (
    Answer,
    ModelServer,
    call,
    document_of,
    new_task,
    no_tasks,
    one_task_each,
    redirect,
    results_of,
    submits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "sk-canary-key"
HEADERS = {
    "host",
    "connection",
    "accept",
    "accept-encoding",
    "content-type",
    "content-length",
    "user-agent",
    "authorization",
}


def marked(number: int, text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    """A message with a mark in every field that stays on this machine."""
    name = f"canary-{number}"
    return event(
        f"{name}-key",
        text,
        event_id=f"{name}-event",
        account_id="canary-account",
        message_id=f"{name}-message",
        conversation={"id": "canary-conversation", "name": "canary-room", "type": "group"},
        sent_at=START + 60 * number,
        sender={"id": "canary-sender", "name": "王老师", "role": "user", "canary-sub": "canary-unknown-sub"},
        mentions=[{"id": "canary-mentioned", "name": "canary-mentioned-name"}],
        sequence={"index": 7_000_000 + number, "predecessor": f"{name}-predecessor"},
        selection={"rules": ["canary-rule"], "window": [1, 2]},
        collected_at=1_799_999_999,
        source={
            "module": "canary-module",
            "detail": "canary-detail",
            "database": "canary-database.db",
            "table": "canary-table",
            "local_id": 987_654_321,
        },
        canary_unknown={"canary-deep": ["canary-unknown-value"]},
        **more,
    )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose folder, rules and store are marked too."""
    project = Project(tmp_path / "canary-project")
    archive = project.root / "canary-archive" / "canary-folder"
    archive.mkdir(parents=True)
    (archive / "stored.txt").write_text("第一段\n\n第二段\n", encoding="utf-8")
    project.configure(
        input={"archive_root": "canary-archive"},
        agent={"api_key_env": "CHAT_PROCESSOR_API_KEY", "api_key_file": ""},
    )
    project.environment = {
        "CHAT_PROCESSOR_API_KEY": KEY,
        "OPENAI_API_KEY": "canary-openai-key",
        "OPENAI_ORG_ID": "canary-org",
        "OPENAI_PROJECT_ID": "canary-project-id",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/canary",
        "OPENAI_CUSTOM_HEADERS": "X-Canary: canary-header",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
        "no_proxy": "",
    }
    attachment = {
        "id": "canary-attachment",
        "name": "通知.txt",
        "mime": "text/plain",
        "size": 20,
        "path": "canary-folder/stored.txt",
        "state": "present",
    }
    project.batch(
        "canary-batch.jsonl",
        marked(1, "交报告", attachments=[attachment]),
        marked(2, "好的", reply_to="canary-1-key"),
        marked(3, "", kind="system"),
        marked(4, "canary-recalled", state="recalled"),
        "canary-refused",
    )
    return project


def read_search_submit(request: dict[str, Any]) -> Answer:
    """A model that uses every tool before it submits a task on all that it saw."""
    said = sum(message["role"] == "tool" for message in request["messages"])
    document = document_of(request)
    if said == 0 and document["attachments"]:
        return call("read_attachment", {"ref": "f1"})
    if said < 2:
        return call("find_related_tasks", {"query": "报告"})
    (conversation,) = document["conversations"]
    message = conversation["segments"][0]["messages"][0]["id"]
    sources = [message, "f1:b1"] if document["attachments"] else [message]
    return submits({conversation["id"]: [new_task("交报告", sources)]})


@pytest.fixture
def recorded(project: Project) -> Iterator[ModelServer]:
    """All requests of two rounds: new messages with an attachment, then an edit with a related task."""
    with ModelServer(read_search_submit) as server:
        project.configure(agent={"base_url": server.base_url})
        project.once(3)
        edited = {**marked(1, "交报告和表"), "event_id": "canary-edit", "revision": 1, "state": "edited"}
        project.batch("canary-more.jsonl", edited, marked(5, "还有"))
        project.once()
        yield server


def test_no_provenance_is_in_any_request(project: Project, recorded: ModelServer) -> None:
    tasks = project.tasks()
    assert "canary-module" in str(tasks), "the marks are kept here"
    assert "第一段" in str([request.json for request in recorded.requests]), "the attachment was read"
    digests = [task["processing"][name] for task in tasks for name in ("settings_fp", "rules_sha256")]
    digests += [it["sha256"] for task in tasks for it in task["attachment_evidence"]]
    assert all(digests)
    numbers = ["987654321", "1799999999", "7000001"]
    marks = ["canary", str(project.root.parent), *(task["task_id"] for task in tasks), *digests, *numbers]
    for request in recorded.requests:
        sent = f"{request.path} {request.headers} {request.body.decode()} {request.json}".replace(KEY, "")
        assert [mark for mark in marks if mark in sent] == []


def keys_of(value: object) -> set[str]:
    """Every key anywhere in a JSON value."""
    if isinstance(value, dict):
        return set(value) | {key for it in value.values() for key in keys_of(it)}
    if isinstance(value, list):
        return {key for it in value for key in keys_of(it)}
    return set()


DOCUMENT = {"timezone", "conversations", "attachments", "tasks"}
CONVERSATION = {"id", "platform", "segments", "related_tasks"}
SEGMENT = {"continuity", "messages"}
MESSAGE = [
    "id", "time", "sender", "self", "history", "edited", "recalled", "mentions_me", "reply_to", "text",
    "attachments",
]  # fmt: skip
ATTACHMENT = {"ref", "name", "type", "size", "available"}
TASK = {"ref", "title", "event", "status", "priority", "time", "people", "location"}


def test_a_document_has_the_listed_keys_and_no_others(recorded: ModelServer) -> None:
    for document in recorded.documents:
        assert set(document) == DOCUMENT
        for conversation in document["conversations"]:
            assert set(conversation) == CONVERSATION
            for segment in conversation["segments"]:
                assert set(segment) == SEGMENT
                for message in segment["messages"]:
                    assert list(message) == [key for key in MESSAGE if key in message]
                    assert all(value not in (None, False, "", []) for value in message.values())
        for attachment in document["attachments"]:
            assert set(attachment) <= ATTACHMENT
        for task in document["tasks"]:
            assert set(task) == TASK
    assert [task["title"] for task in recorded.documents[-1]["tasks"]] == ["交报告"]


@pytest.mark.parametrize("page", ["privacy.md", "zh/privacy.md"])
def test_the_page_on_privacy_lists_these_keys_and_no_others(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    tables = re.findall(r"^\|[^|]+\|[^|]+\|\n\|---\|---\|\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    document, message, attachment, task = (
        re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ([^|]+) \|", table, flags=re.MULTILINE)))
        for table in tables[:4]
    )
    assert set(document) == DOCUMENT
    assert (set(message), set(attachment), set(task)) == (set(MESSAGE), ATTACHMENT, TASK)
    told = re.search(r"^\| `conversations` \| (.+) \|$", text, flags=re.MULTILINE)
    assert told is not None
    named = set(re.findall(r"`([a-z_]{2,})`", told[1]))
    assert named == CONVERSATION | SEGMENT


def test_a_request_is_the_system_text_the_document_and_the_session_and_no_more(recorded: ModelServer) -> None:
    allowed = {"model", "messages", "tools", "tool_choice", "stream", "stream_options", "max_tokens"}
    for request in recorded.requests:
        assert set(request.json) <= allowed
        assert set(request.headers) <= HEADERS
        assert request.path == "/v1/chat/completions"
        assert [message["role"] for message in request.json["messages"]][:2] == ["system", "user"]
        assert [tool["function"]["name"] for tool in request.json["tools"]] == [
            "read_attachment",
            "find_related_tasks",
            "submit_tasks",
        ]


def test_a_tools_answer_has_the_listed_keys_and_no_others(recorded: ModelServer) -> None:
    listed = {"total", "units", "id", "text", "next", "note"}
    listed |= {"page", "tasks", "ref", "title", "event", "status", "priority", "time", "people", "location"}
    listed |= {"platform", "updated", "start", "due", "original", "timezone", "check", "name", "role"}
    told = [words for request in recorded.requests for words in results_of(request.json)]
    answers = [json.loads(words) for words in told if words.startswith("{")]
    assert answers
    assert keys_of(answers) <= listed
    questions = {words for words in told if not words.startswith("{")}
    assert [words.splitlines()[0] for words in questions] == ["Not accepted yet. Look at this once:"]


def test_the_key_is_in_the_authorization_of_its_origin_alone(recorded: ModelServer) -> None:
    for request in recorded.requests:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        others = {name: value for name, value in request.headers.items() if name != "authorization"}
        assert KEY not in str(others)
        assert KEY.encode() not in request.body
        assert request.headers["host"] == recorded.base_url.split("/")[2]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(project: Project, status: int) -> None:
    with ModelServer(no_tasks) as elsewhere:
        with ModelServer([redirect(f"{elsewhere.base_url}/chat/completions", status)]) as server:
            project.configure(agent={"base_url": server.base_url})
            report = project.once(3)
            assert len(server.requests) == 1
        assert elsewhere.requests == []
    assert "redirect" in report["round"]["groups"][0]["reason"]
    assert report["round"]["pending"] == 1


def test_the_key_is_in_no_file_and_no_output(project: Project, recorded: ModelServer) -> None:
    project.batch("bad.jsonl", *chat("other", "交表"))
    with ModelServer([lambda _: Answer((KEY.encode(),), 401)]) as refusing:
        project.configure(agent={"base_url": refusing.base_url})
        for command in (["once", "-vv", "--json"], ["status", "--json"], ["check", "-vv"]):
            done = project.start(*command).wait()
            assert KEY not in done.out + done.err
    assert not [name for name, content in project.files().items() if content and KEY.encode() in content]
    assert recorded.requests


def test_each_conversation_is_told_by_refs_that_say_nothing(project: Project) -> None:
    with ModelServer(one_task_each) as server:
        project.configure(agent={"base_url": server.base_url})
        project.batch("b.jsonl", *chat("canary-second", "交表"))
        project.once(3)
        (document,) = server.documents
    assert [conversation["id"] for conversation in document["conversations"]] == ["c1", "c2"]
    ids = [
        message["id"]
        for conversation in document["conversations"]
        for segment in conversation["segments"]
        for message in segment["messages"]
    ]
    assert ids == [f"m{number}" for number in range(1, len(ids) + 1)]
