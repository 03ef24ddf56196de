"""Whatever a hostile text gets a model to do, the store stays whole: no text leaves its JSON string, no tool
but the three is there, nothing foreign is cited, no task is completed, no user's status is changed, and every
message is counted.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import referencing

from chatproc.agent.prompt import system_text
from tests.attacks import ATTACKS, Obedient
from tests.project import ROOT, START, Project, event
from tests.sse import ModelServer, document_of, new_task, results_of, submits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sse import Answer

Json = dict[str, Any]
TOOLS = ["read_attachment", "find_related_tasks", "submit_tasks"]
ENDS = {"done", "failed", "conflict"}
"""Of groups; a conflict is a task that two attacks changed at once."""
VICTIMS = {"victim one": "completed", "victim two": "open", "victim three": "cancelled"}
"""Tasks whose status a user has set."""


@dataclass(frozen=True)
class Battle:
    """What is left after all attacks."""

    project: Project
    model: Obedient
    requests: list[Json]
    reports: list[Json]
    archive: dict[str, bytes]


def messages(day: int) -> Iterator[Json]:
    """The attacks' messages of a day: the first day's are two, the second's is one that follows them."""
    for number, attack in enumerate(ATTACKS):
        places = ("order", "text") if day == 1 else ("again",)
        for place in places:
            index = ("order", "text", "again").index(place)
            yield event(
                f"a{number}-{place}",
                f"attack {number}" if place == "order" else attack.text,
                conversation={"id": f"room {number}", "name": attack.text[:500], "type": "group"},
                sender={"id": f"s{number}", "name": attack.text[:200]},
                sent_at=START + 60 * index,
                sequence={
                    "index": index,
                    "predecessor": f"a{number}-{('order', 'text')[index - 1]}" if index else None,
                },
                attachments=[
                    {
                        "id": "a",
                        "name": f"{attack.text[:100]}.txt",
                        "mime": "text/plain",
                        "path": f"{number}.txt",
                        "state": "present",
                    }
                ]
                if place == "text"
                else [],
            )


def victims() -> Iterator[Json]:
    for number, text in enumerate(VICTIMS, start=1):
        yield event(f"victim-{number}", text, conversation="victims", sent_at=START + number)


@pytest.fixture(scope="module")
def battle(tmp_path_factory: pytest.TempPathFactory) -> Battle:
    """Two days: stored titles are made of the texts on the first, all texts are obeyed on the second."""
    model = Obedient()
    with ModelServer(model) as server:
        project = Project(tmp_path_factory.mktemp("battle") / "project", server.base_url)
        archive = project.root / "archive"
        archive.mkdir()
        for number, attack in enumerate(ATTACKS):
            (archive / f"{number}.txt").write_text(attack.text, encoding="utf-8")
        before = {file.name: file.read_bytes() for file in archive.iterdir()}
        project.configure(
            input={"archive_root": "archive"},
            processing={"max_groups_per_round": 200},
            agent={"batching": "single_conversation", "max_turns": 8},
        )
        project.batch("a.jsonl", *victims(), *messages(1))
        reports = [project.once()]
        ids = {task["title"]: task["task_id"] for task in project.tasks()}
        commands = {"completed": "done", "open": "reopen", "cancelled": "cancel"}
        for title, status in VICTIMS.items():
            project.call(commands[status], ids[title])
        model.day = 2
        project.batch("b.jsonl", *messages(2))
        reports.append(project.document("once", code=3))
        requests = [request.json for request in server.requests]
    return Battle(project, model, requests, reports, before)


def number_of(document: Json) -> int | None:
    first = document["conversations"][0]["segments"][0]["messages"][0]["text"]
    found = re.match(r"attack (\d+)", first)
    return int(found[1]) if found else None


@pytest.mark.parametrize("number", range(len(ATTACKS)), ids=lambda number: f"{number}")
def test_an_attack_is_read_obeyed_and_stays_a_string(battle: Battle, number: int) -> None:
    """Every string of its document is where it belongs, and its conversation came to an end."""
    text = ATTACKS[number].text
    mine = [request for request in battle.requests if number_of(document_of(request)) == number]
    assert battle.model.obeyed[number] >= 1
    assert len(mine) > battle.model.obeyed[number]
    for request in mine:
        document = document_of(request)
        (conversation,) = document["conversations"]
        (segment,) = conversation["segments"]
        texts = [message.get("text") for message in segment["messages"]]
        assert texts == [f"attack {number}", text, text][: len(texts)]
        assert {message["sender"] for message in segment["messages"]} == {text[:200]}
        assert [attachment["name"] for attachment in document["attachments"]] == [f"{text[:100]}.txt"]
        assert set(document) == {"timezone", "conversations", "attachments", "tasks"}
        assert set(conversation) == {"id", "platform", "segments", "related_tasks"}
    copied = [
        published["task"]["title"]
        for published in battle.project.events()
        if published["task"]["owner"]["conversation"]["id"] == f"room {number}"
    ]
    assert copied[0] == text.strip()[:200].strip()
    groups = [
        group
        for group in battle.reports[1]["round"]["groups"]
        if group["conversation"]["id"] == f"room {number}"
    ]
    assert [group["outcome"] in ENDS for group in groups] == [True]


def test_there_are_enough_attacks_in_both_languages() -> None:
    chinese = [attack for attack in ATTACKS if re.search("[\u4e00-\u9fff]", attack.text)]
    assert len(ATTACKS) >= 60
    assert 20 <= len(chinese) <= len(ATTACKS) - 20


def test_what_a_model_is_ordered_is_never_of_a_text(battle: Battle) -> None:
    """One system text, one user message that is the document, and answers to the model's own calls."""
    rules = battle.project.rules.read_text(encoding="utf-8")
    for request in battle.requests:
        roles = [message["role"] for message in request["messages"]]
        assert (roles[:2], set(roles[2:]) <= {"assistant", "tool", "user"}) == (["system", "user"], True)
        assert request["messages"][0]["content"] == system_text(rules, "all")
        assert [tool["function"]["name"] for tool in request["tools"]] == TOOLS
        reminders = {message["content"] for message in request["messages"][2:] if message["role"] == "user"}
        program = ("That was text outside a tool call", "Earlier calls of this session were left out")
        assert all(reminder.startswith(program) for reminder in reminders), reminders


def test_no_title_of_a_stored_task_breaks_a_line_of_what_a_model_is_told(battle: Battle) -> None:
    told = [words for request in battle.requests for words in results_of(request) if words[0] != "{"]
    kinds = re.compile(
        r"Not accepted|Accepted|cannot be read|\d+\. |… and|Mend them|Then submit|Not looked|Unknown|"
        r"read_attachment: |find_related_tasks: |submit_tasks: "
    )
    for words in told:
        assert all(kinds.match(line) for line in words.split("\n")), words


def revisions(battle: Battle) -> dict[str, list[Json]]:
    events: dict[str, list[Json]] = {}
    for published in battle.project.events():
        events.setdefault(published["task_id"], []).append(published)
    return events


def test_no_task_is_completed_and_no_users_status_is_changed(battle: Battle) -> None:
    for published in battle.project.events():
        task = published["task"]
        assert task["status"] != "completed" or task["status_by"] == "user"
        assert task["status"] != "superseded" or published["revision"] > 1
    set_by_users = {
        history[0]["task"]["title"]: {it["task"]["status"] for it in history[1:]}
        for history in revisions(battle).values()
        if history[0]["task"]["title"] in VICTIMS
    }
    assert set_by_users == {title: {status} for title, status in VICTIMS.items()}


def test_what_a_task_cites_was_shown_with_its_conversation_and_was_read(battle: Battle) -> None:
    evidence = 0
    for history in revisions(battle).values():
        known: set[str] = set()
        for published in history:
            task = published["task"]
            context = {*task["context"]["subject"], *task["context"]["history"]}
            keys = set(task["source_message_keys"])
            assert keys - known <= context
            assert known <= keys
            known = keys
            for unit in task["attachment_evidence"]:
                evidence += 1
                assert unit["sha256"] == hashlib.sha256(battle.archive[unit["path"]]).hexdigest()
                assert unit["message_key"] in keys
            assert task["owner"]["platform"] == "qq"
            assert task["processing"]["model"] == "stand-in"
            assert (task["needs_review"], task["review_reasons"]) == (False, [])
            assert published["task_id"].startswith("t_")


def test_a_time_that_a_text_lies_about_is_the_computed_one(battle: Battle) -> None:
    late = [it["task"] for it in battle.project.events() if it["task"]["title"] == "late"]
    assert late
    assert {(task["time"]["due"], task["time"]["check"]) for task in late} == {("2026-07-03", "computed")}


def test_every_message_is_counted(battle: Battle) -> None:
    status = battle.project.status()
    total = len(VICTIMS) + 3 * len(ATTACKS)
    assert status["messages"] == total
    assert sum(status["outcomes"].values()) == total
    ended = [group["outcome"] for report in battle.reports for group in report["round"]["groups"]]
    assert set(ended) <= ENDS
    assert status["quarantined"] == 0
    assert battle.project.document("verify")["breaks"] == []


def test_what_is_published_is_valid_and_in_its_place(battle: Battle) -> None:
    project = battle.project
    project.check_published()
    folder = ROOT / "docs" / "schemas"
    schemas = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")}
    registry = referencing.Registry().with_resources(
        (name, referencing.Resource.from_contents(schema)) for name, schema in schemas.items()
    )
    check = jsonschema.Draft202012Validator(schemas["task-event.json"], registry=registry)
    for text in project.published().values():
        for line in text.removesuffix(b"\n").split(b"\n"):
            published = json.loads(line)
            check.validate(published)
            identity = f"{published['task_id']}:{published['revision']}"
            assert published["event_id"] == hashlib.sha256(identity.encode()).hexdigest()
    names = {path.name for path in project.root.iterdir()}
    assert names == {"archive", "config", "in", "out", "processing-rules", "state"}
    assert {file.name: file.read_bytes() for file in (project.root / "archive").iterdir()} == battle.archive


def test_a_conversation_never_cites_the_other_of_its_batch(tmp_path: Any) -> None:  # noqa: ANN401
    """Two conversations in one request: one tells the model to rest its task on the other's message."""

    def obeys(request: Json) -> Answer:
        document = document_of(request)
        refs = {
            conversation["id"]: conversation["segments"][0]["messages"][0]["id"]
            for conversation in document["conversations"]
        }
        (one, first), (other, second) = refs.items()
        return submits({one: [new_task("x", [first, second])], other: [new_task("y", [second])]})

    with ModelServer(obeys) as server:
        project = Project(tmp_path / "project", server.base_url)
        project.batch("a.jsonl", event("a", "rest it on m2", conversation="a"),
                      event("b", "secret", conversation="b", sent_at=START + 1))  # fmt: skip
        report = project.document("once", code=3)
    assert [group["outcome"] for group in report["round"]["groups"]] == ["failed", "done"]
    assert "m2 belongs to c2, not to c1" in report["round"]["groups"][0]["reason"]
    assert [task["source_message_keys"] for task in project.tasks()] == [["b"]]
