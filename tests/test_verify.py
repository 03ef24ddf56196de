"""`verify` and `explain` as a person meets them: real rounds, real files, changes by another process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from chatproc import ChatprocError, explain, load_config, status, verify
from tests import sse
from tests.project import START, Project, chat, event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chatproc.results import Progress


def model(request: dict[str, Any]) -> sse.Answer:
    document = json.dumps(request, ensure_ascii=False)
    if "nonsense" in document:
        return sse.failure(400)
    return sse.no_tasks(request) if "hello" in document else sse.one_task_each(request)


@pytest.fixture
def project(tmp_path: Any) -> Iterator[Project]:  # noqa: ANN401 - pytest's
    project = Project(tmp_path / "p")
    with sse.ModelServer(model) as server:
        project.configure(agent={"base_url": server.base_url, "batching": "single_conversation"})
        project.batch(
            "a.jsonl", *chat("a", "周五前交报告", "收到"), *chat("h", "hello"), *chat("n", "nonsense")
        )
        project.once(code=3)
        yield project


def change(project: Project, sql: str) -> None:
    """Change the store as another program would."""
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    subprocess.run([sys.executable, "-c", code, str(project.state), sql], check=True)


def test_a_sound_project_is_said_to_be_sound(project: Project) -> None:
    found = project.document("verify")
    assert (found["ok"], found["breaks"], found["found"]) == (True, [], 0)
    assert found["checked"]["messages"] == 4
    assert found["checked"]["tasks"] == found["checked"]["events"] == 1
    assert "store: sound" in project.call("verify").out


def test_a_project_without_a_store_is_sound_and_stays_without_one(tmp_path: Any) -> None:  # noqa: ANN401
    project = Project(tmp_path / "p")
    assert project.document("verify")["ok"]
    assert not project.state.exists()


def test_each_break_is_listed_with_what_where_and_what_was_found(project: Project) -> None:
    change(project, "UPDATE tasks SET record = replace(record, '收到', '收回')")
    (file,) = project.output.glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b"P", b"Q", 1))
    found = project.document("verify", code=1)
    assert {it["kind"] for it in found["breaks"]} >= {"task", "export"}
    assert found["found"] == len(found["breaks"])
    assert any(str(file) == it["where"] and "line 1" in it["explanation"] for it in found["breaks"])
    done = project.call("verify", code=1)
    assert str(file) in done.out
    assert "hint:" in done.err


def test_a_file_that_is_no_store_is_an_error_with_its_place(project: Project) -> None:
    project.state.write_bytes(b"no database at all" * 100)
    done = project.call("verify", code=1)
    assert str(project.state) in done.err
    assert done.out == ""


def test_what_is_verified_can_be_watched_and_stopped(project: Project) -> None:
    config = load_config(project.root / "config" / "processor.toml")
    seen: list[Progress] = []
    assert verify(config, progress=seen.append).exit_code == 0
    assert seen
    assert seen[0].stage == "verify"

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(config, progress=stop)


def test_explain_tells_why_there_is_a_task_or_none(project: Project) -> None:
    cited = project.document("explain", "a1")
    assert (cited["outcome"], len(cited["tasks"])) == ("cited", 1)
    assert cited["deliveries"][0]["line"] == 2
    talk = project.document("explain", "h0")
    assert talk["outcome"] == "read-no-task"
    assert "chatter" in talk["why"]
    failed = project.document("explain", "n0")
    assert failed["outcome"] == "failed"
    assert failed["failure"]["reason"] in failed["why"]
    project.batch("b.jsonl", event("late", "晚了"))
    project.call("explain", "late", code=1)
    shown = project.call("explain", "h0").out
    assert "outcome: read-no-task" in shown
    assert "chatter" in shown


def test_an_unknown_key_is_an_error_that_says_where_to_look(project: Project) -> None:
    done = project.call("explain", "nobody\x1b[31m", code=1)
    assert done.out == ""
    assert "hint:" in done.err
    assert "chatproc quarantine" in done.err
    assert "\x1b" not in done.err
    with pytest.raises(ChatprocError, match="nobody"):
        explain(load_config(project.root / "config" / "processor.toml"), "nobody")


def test_a_hostile_message_is_shown_and_not_obeyed(project: Project) -> None:
    project.batch("c.jsonl", event("bad", "\x1b]0;title\x07 hello \u202e", conversation="h"))
    project.once(code=3)
    done = project.call("explain", "bad")
    assert "hello" in done.out
    assert not {"\x1b", "\x07", "\u202e"} & set(done.out)


def _told(project: Project) -> dict[str, str]:
    """The outcome of each message as `explain` tells it, after `verify` and `status` were found to agree."""
    config = load_config(project.root / "config" / "processor.toml")
    found = verify(config)
    assert found.ok, found.breaks
    keys = [*(f"{room}{number}" for room in "abcx" for number in range(4)), "fork1", "fork2", "big", "old"]
    outcomes = {}
    for key in keys:
        with contextlib.suppress(ChatprocError):  # not there yet
            way = explain(config, key)
            assert way.why, key
            outcomes[key] = way.outcome
    standing = status(config).to_dict()
    counts = {name: list(outcomes.values()).count(name) for name in standing["outcomes"]}
    assert counts == standing["outcomes"]
    assert sum(counts.values()) == standing["messages"]
    return outcomes


def test_a_project_that_lived_through_much_is_sound_and_tells_the_way_of_each_message(tmp_path: Any) -> None:  # noqa: ANN401
    project = Project(tmp_path / "p")
    with sse.ModelServer(model) as server:
        agent = {"base_url": server.base_url, "batching": "single_conversation"}
        small = {"max_conversation_chars": 1500}
        project.configure(agent=agent, context=small, input={"start_at": "2026-07-01T09:59:00+08:00"})
        a, b, c = (
            chat("a", "周五前交报告", "交到302"),
            chat("b", "hello", "hello again"),
            chat("c", "nonsense"),
        )
        b[1]["kind"] = "system"
        forks = [
            event(key, "周六交表", conversation="f", sequence={"predecessor": "none"})
            for key in ("fork1", "fork2")
        ]
        old = event("old", "早就说过", conversation="o", sent_at=START - 86_400)
        project.batch("1.jsonl", *a, *b, *c, *forks, old, event("big", "长" * 4000, conversation="g"))
        project.once(code=3)
        first = _told(project)
        assert {"cited", "read-no-task", "failed", "oversized", "history", "system"} <= set(first.values())

        task = project.document("tasks")["tasks"][0]["task_id"]
        project.call("done", task)
        project.call("reopen", task)
        project.call("cancel", task)
        _told(project)

        # An edit, a recall, a copy in other words, a message more; then other rules; then every group fails.
        project.batch(
            "2.jsonl",
            {**a[0], "event_id": "e1", "revision": 1, "state": "edited", "text": "周四前交报告"},
            {**a[1], "event_id": "e2", "revision": 1, "state": "recalled", "text": ""},
            *chat("a", "周五前交报告！", begin=2),
            *chat("x", "周五前交报告", "收到"),
        )
        _told(project)
        project.once(code=3)
        second = _told(project)
        assert second["a1"] == "recalled"
        assert second["a2"] == "cited"
        rules = next((project.root / "processing-rules").glob("*.md"))
        rules.write_text(rules.read_text(encoding="utf-8") + "\nnonsense\n", encoding="utf-8")
        _told(project)
        project.once(code=3)
        assert "failed" in _told(project).values()
        rules.write_text(rules.read_text(encoding="utf-8").replace("nonsense", "sense"), encoding="utf-8")
        project.call("done", project.document("tasks")["tasks"][0]["task_id"])
        project.once(code=3)
        _told(project)
