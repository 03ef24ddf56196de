"""The tools of a session: reading attachments and searching earlier tasks, as the model sees them."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.attachments import Limits
from tests.batches import batch_of, outcomes, run
from tests.sse import ModelServer, call, new_task, no_tasks, results_of, submits

if TYPE_CHECKING:
    from pathlib import Path


def attached(name: str, kind: str = "txt", **more: object) -> dict[str, Any]:
    """A batch whose first message carries one file."""
    attachment = {"message": "m1", "name": name, "type": kind, "path": name, **more}
    return batch_of({"c1": ["见附件"], "c2": ["别的事"]}, attachments={"f1": attachment})


def answers_to(
    calls: list[dict[str, Any]],
    tool: str,
    batch: dict[str, Any] | None = None,
    **more: Any,  # noqa: ANN401
) -> list[str]:
    """What a tool gives for several calls, one a turn."""
    with ModelServer([*(call(tool, arguments) for arguments in calls), no_tasks]) as server:
        result = run(server, batch, **more)
        assert set(outcomes(result).values()) == {"accepted"}
        return results_of(server.requests[-1].json)


def reading(arguments: dict[str, Any], batch: dict[str, Any], root: Path, **more: Any) -> str:  # noqa: ANN401
    return answers_to([arguments], "read_attachment", batch, archive_root=root, **more)[0]


# --- reading


def test_an_attachment_is_read_in_units_that_can_be_cited_and_each_leaves_a_receipt(tmp_path: Path) -> None:
    content = "周五前交表\n\n交到 A101".encode()
    (tmp_path / "表.txt").write_bytes(content)
    task = new_task("交表", ["f1:b2"], quotes=[{"ref": "f1:b2", "text": "A101"}])
    with ModelServer([call("read_attachment", {"ref": "f1"}), submits({"c1": [task], "c2": []})]) as server:
        result = run(server, attached("表.txt"), archive_root=tmp_path)
        shown = json.loads(results_of(server.requests[1].json)[0])
    units = [{"id": "f1:b1", "text": "周五前交表"}, {"id": "f1:b2", "text": "交到 A101"}]
    assert shown == {"total": 2, "units": units, "next": None, "note": ""}
    conversation = result.conversations[0]
    assert conversation["tasks"][0]["sources"] == ["qq:m1"]
    cited = {"message_key": "qq:m1", "attachment_id": "a-f1", "unit": "b2"}
    assert conversation["tasks"][0]["evidence"] == [cited]
    assert conversation["tasks"][0]["quotes"] == [{**cited, "text": "A101", "check": "exact"}]
    assert conversation["receipts"][1] == {
        **cited,
        "attachment_sha256": hashlib.sha256(content).hexdigest(),
        "content_sha256": hashlib.sha256("交到 A101".encode()).hexdigest(),
        "length": len("交到 A101".encode()),
    }
    assert result.conversations[1]["receipts"] == []


def test_reading_is_paged_by_start_and_count_and_by_characters(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n\n".join(letter * 100 for letter in "abcdef"))
    calls = [
        {"ref": "f1"},
        {"ref": "f1", "start": 4},
        {"ref": "f1", "start": 2, "count": 1},
        {"ref": "f1", "start": 9},
    ]
    limits = Limits(max_chars_per_read=350)
    texts = answers_to(calls, "read_attachment", attached("a.txt"), archive_root=tmp_path, limits=limits)
    pages = [json.loads(text) for text in texts]
    assert [[unit["id"] for unit in page["units"]] for page in pages] == [
        ["f1:b1", "f1:b2", "f1:b3"],
        ["f1:b4", "f1:b5", "f1:b6"],
        ["f1:b2"],
        [],
    ]
    assert [page["next"] for page in pages] == [4, None, 3, None]
    assert {page["total"] for page in pages} == {6}
    assert "no unit 9" in pages[3]["note"]


def test_a_unit_is_never_longer_than_a_reading_may_be(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 500)
    text = reading({"ref": "f1"}, attached("a.txt"), tmp_path, limits=Limits(max_chars_per_read=200))
    assert json.loads(text)["units"] == [{"id": "f1:b1", "text": "x" * 200}]


@pytest.mark.parametrize(
    ("name", "kind", "more", "code"),
    [
        ("gone.txt", "txt", {}, "missing"),
        ("a.txt", "txt", {"available": False}, "missing"),
        ("a.txt", "txt", {"path": None}, "missing"),
        ("a.txt/b.txt", "txt", {}, "missing"),
        ("../secret.txt", "txt", {}, "outside_archive"),
        ("/etc/hostname", "txt", {}, "outside_archive"),
        ("link.txt", "txt", {}, "outside_archive"),
        ("folder/../a.txt", "txt", {}, "outside_archive"),
        ("loop.txt", "txt", {}, ""),
        ("pipe.txt", "txt", {}, "outside_archive"),
        (".", "txt", {}, ""),
        ("nul\0.txt", "txt", {}, "outside_archive"),
        ("a.txt", "txt", {"sha256": "0" * 64}, "changed"),
        ("big.txt", "txt", {}, "too_large"),
        ("empty.txt", "txt", {}, "empty"),
        ("blank.txt", "txt", {}, "empty"),
        ("binary.txt", "txt", {}, "type_mismatch"),
        ("picture.txt", "txt", {}, "truncated"),
        ("doc.pdf", "pdf", {}, ""),
        ("binary.docx", "docx", {}, "type_mismatch"),
        ("binary", "file", {}, "unsupported_type"),
    ],
)
def test_what_cannot_be_read_says_why(
    tmp_path: Path, name: str, kind: str, more: dict[str, Any], code: str
) -> None:
    root = tmp_path / "archive"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (root / "a.txt").write_text("text")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "loop.txt").symlink_to(root / "loop.txt")
    os.mkfifo(root / "pipe.txt")
    (root / "big.txt").write_bytes(b"x" * (1024 * 1024 * 50 + 1)) if name == "big.txt" else None
    (root / "empty.txt").write_bytes(b"")
    (root / "blank.txt").write_text(" \n\t\n")
    for binary in ("binary.txt", "binary.docx", "binary"):
        (root / binary).write_bytes(bytes(range(256)) * 4)
    (root / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    (root / "doc.pdf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    text = reading({"ref": "f1"}, attached(name, kind, **more), root)
    assert text.startswith(f"cannot be read: {code}")
    assert ": " in text.removeprefix("cannot be read: ")
    assert "secret" not in text


def test_without_an_archive_every_attachment_is_missing() -> None:
    text = answers_to([{"ref": "f1"}], "read_attachment", attached("a.txt"))[0]
    assert text.startswith("cannot be read: missing: ")


def test_a_unit_that_could_not_be_read_cannot_be_cited(tmp_path: Path) -> None:
    read = call("read_attachment", {"ref": "f1"})
    cites = submits({"c1": [new_task("交表", ["m1", "f1:b1"])], "c2": []})
    with ModelServer([read, cites, no_tasks]) as server:
        run(server, attached("gone.txt"), archive_root=tmp_path)
        assert "c1.tasks[0].sources[1]: f1:b1 was not read" in results_of(server.requests[2].json)[1]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"ref": None},
        {"ref": "f9"},
        {"ref": ["f1"]},
        {"ref": "f1:b1"},
        {"ref": "f1", "start": 0},
        {"ref": "f1", "start": "2"},
        {"ref": "f1", "start": True},
        {"ref": "f1", "count": -1},
        {"ref": "f1", "count": 1.5},
        {"ref": "f1", "start": 10**30},
    ],
)
def test_bad_arguments_of_reading_are_answered_in_words(tmp_path: Path, arguments: dict[str, Any]) -> None:
    (tmp_path / "a.txt").write_text("text")
    text = reading(arguments, attached("a.txt"), tmp_path)
    assert text.startswith("read_attachment: ")
    assert "must be" in text


def test_arguments_that_are_left_out_null_or_unknown_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    arguments = {"ref": " f1 ", "start": 1.0, "count": None, "ctx": 1, "self": 2, "name": "x", "tool": {}}
    assert json.loads(reading(arguments, attached("a.txt"), tmp_path))["total"] == 1


# --- searching


STORED = {
    "task_id": "t_secret_id",
    "revision": 4,
    "title": "交表",
    "event": "报名",
    "status": "open",
    "priority": "P2",
    "time": {
        "start": None,
        "due": "2026-07-03",
        "timezone": "Asia/Shanghai",
        "original": "周五",
        "check": None,
    },
    "people": [],
    "location": None,
    "platform": "qq",
    "updated": "2026-07-01T10:00:00+08:00",
    "record": {"owner": {"account_id": "secret"}},
}


def test_a_search_passes_its_arguments_and_shows_only_what_the_model_may_see() -> None:
    queries: list[dict[str, Any]] = []

    def search(query: dict[str, Any]) -> dict[str, Any]:
        queries.append(query)
        return {"total": 21, "tasks": [STORED], "cursor": "x"}

    arguments = {
        "query": " 交 ",
        "people": "王老师",
        "status": ["open", "completed"],
        "platform": "qq",
        "due_from": "2026-07-01",
        "due_to": "2026-07-31T00:00:00+08:00",
        "page": 3,
        "page_size": 99,
    }
    found, again = answers_to([arguments, {}], "find_related_tasks", search=search)
    assert queries[0] == {
        "query": "交",
        "people": ["王老师"],
        "status": ["open", "completed"],
        "platform": "qq",
        "due_from": "2026-07-01",
        "due_to": "2026-07-31T00:00:00+08:00",
        "sort": "updated",
        "limit": 20,
        "offset": 40,
    }
    assert queries[1] == {"sort": "updated", "limit": 10, "offset": 0}
    shown = json.loads(found)
    assert (shown["total"], shown["page"]) == (21, 3)
    assert list(shown["tasks"][0]) == [
        *("ref", "title", "event", "status", "priority", "time", "people", "location", "platform", "updated")
    ]
    assert shown["tasks"][0]["time"] == {"start": None, "due": "2026-07-03", "original": "周五"}
    assert "secret" not in found
    assert json.loads(again)["tasks"][0]["ref"] == shown["tasks"][0]["ref"] == "t1"


def test_a_found_task_can_be_updated_and_takes_a_ref_after_those_of_the_document() -> None:
    batch = batch_of(tasks={"t1": {"task_id": "t_a", "revision": 2}, "t2": {"task_id": "t_b", "revision": 1}})

    def search(query: dict[str, Any]) -> dict[str, Any]:
        del query
        return {"total": 2, "tasks": [STORED, {**STORED, "task_id": "t_b", "revision": 7}]}

    update = submits({"c1": [new_task("交表", ["m1"], task_ref=ref) for ref in ("t3", "t2", "t1")]})
    with ModelServer([call("find_related_tasks", {}), update]) as server:
        result = run(server, batch, search=search)
        shown = json.loads(results_of(server.requests[1].json)[0])
    assert [task["ref"] for task in shown["tasks"]] == ["t3", "t2"]
    updates = [(task["task_id"], task["seen_revision"]) for task in result.conversations[0]["tasks"]]
    assert updates == [("t_secret_id", 4), ("t_b", 7), ("t_a", 2)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": 5},
        {"query": "x" * 1001},
        {"people": ["x" * 5000]},
        {"people": [1]},
        {"status": ["done"]},
        {"status": {"open": True}},
        {"due_from": "tomorrow"},
        {"due_to": "2026-07-01T00:00:00Z"},
        {"page": 0},
        {"page_size": "ten"},
    ],
)
def test_bad_arguments_of_a_search_are_answered_in_words(arguments: dict[str, Any]) -> None:
    text = answers_to([arguments], "find_related_tasks")[0]
    assert text.startswith("find_related_tasks: ")


def test_an_error_of_the_store_is_not_hidden_from_the_caller() -> None:
    def broken(query: dict[str, Any]) -> dict[str, Any]:
        raise OSError(5, "Input/output error", query.get("query"))

    with (
        ModelServer([call("find_related_tasks", {}), no_tasks]) as server,
        pytest.raises(OSError, match="Input"),
    ):
        run(server, search=broken)
