"""Sessions that read attachments: pictures on the wire, receipts, citations, a round from file to task."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chatproc.agent.compaction import compacted, estimate_tokens
from chatproc.agent.record import SessionRecord
from chatproc.attachments import Extracts, Limits
from chatproc.attachments.isolation import Reader
from chatproc.check import check_project
from chatproc.config import load_config
from chatproc.pipeline import run_round
from tests.batches import batch_of, outcomes, run
from tests.hostile_parser import BOOT
from tests.project import Project, event
from tests.sse import Answer, ModelServer, call, calls, new_task, no_tasks, results_of, submits

SAMPLES = Path(__file__).parent / "attachments"
SEES = Limits(vision=True)


def batch_with(*files: tuple[str, str]) -> dict[str, Any]:
    """A batch whose messages m1, m2 … carry one file each: path and type."""
    attachments = {
        f"f{number}": {"message": f"m{number}", "name": path, "type": kind, "path": path}
        for number, (path, kind) in enumerate(files, start=1)
    }
    return batch_of({"c1": ["见附件"] * len(files)}, attachments=attachments)


def read(ref: str, **more: int) -> tuple[str, dict[str, Any]]:
    return "read_attachment", {"ref": ref, **more}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def pictures_of(message: dict[str, Any]) -> list[bytes]:
    """The files of the pictures in a user message."""
    urls = [part["image_url"]["url"] for part in message["content"] if part["type"] == "image_url"]
    return [base64.b64decode(url.partition("base64,")[2], validate=True) for url in urls]


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


# --- pictures


def test_pictures_of_all_results_come_in_one_message_after_them_each_under_its_id() -> None:
    batch = batch_with(
        ("multipage.tiff", "tiff"), ("rotation.pdf", "pdf"), ("hopper_orientation_6.jpg", "jpg")
    )
    with ModelServer([calls(read("f1"), read("f2"), read("f3")), no_tasks]) as server:
        result = run(server, batch, archive_root=SAMPLES, limits=SEES, assistant_bridge_after_tool=False)
        messages = server.requests[1].json["messages"]
    assert outcomes(result) == {"c1": "accepted"}
    assert roles(messages) == ["system", "user", "assistant", "tool", "tool", "tool", "user"]
    kinds = [(part["type"], part.get("text")) for part in messages[-1]["content"]]
    ids = ["f1:i1", "f1:i2", "f1:i3", "f3:i1"]
    assert kinds == [pair for ident in ids for pair in (("text", ident), ("image_url", None))]
    shown = [json.loads(text) for text in results_of({"messages": messages})]
    assert [unit["id"] for page in shown for unit in page["units"]] == [*ids[:3], "f2:p1", "f2:p2", ids[3]]
    assert all("[the picture follows]" in unit["text"] for page in shown[::2] for unit in page["units"])


def test_a_picture_goes_out_turned_and_without_what_its_file_said_besides() -> None:
    from PIL import Image

    batch = batch_with(("gen_exif6.jpg", "jpg"))
    with ModelServer([calls(read("f1")), no_tasks]) as server:
        run(server, batch, archive_root=SAMPLES, limits=Limits(vision=True, max_image_px=100))
        picture = pictures_of(server.requests[1].json["messages"][-1])[0]
    with Image.open(io.BytesIO(picture)) as image:
        assert image.size == (50, 100)
        assert image.mode == "RGB"
        assert not image.getexif()


def test_a_bridge_stands_between_results_and_pictures_where_an_endpoint_wants_one() -> None:
    with ModelServer([calls(read("f1")), no_tasks]) as server:
        batch = batch_with(("hopper_orientation_6.jpg", "jpg"))
        run(server, batch, archive_root=SAMPLES, limits=SEES, assistant_bridge_after_tool=True)
        messages = server.requests[1].json["messages"]
    assert roles(messages) == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert len(pictures_of(messages[-1])) == 1


def test_a_receipt_covers_the_bytes_of_the_picture_and_its_words() -> None:
    cites = submits({"c1": [new_task("看图", ["f1:i1"])]})
    with ModelServer([calls(read("f1")), cites]) as server:
        batch = batch_with(("hopper_orientation_6.jpg", "jpg"))
        result = run(server, batch, archive_root=SAMPLES, limits=SEES)
        messages = server.requests[1].json["messages"]
    text = json.loads(results_of({"messages": messages})[0])["units"][0]["text"]
    sent = text.encode() + pictures_of(messages[-1])[0]
    unit = {"message_key": "qq:m1", "attachment_id": "a-f1", "unit": "i1"}
    assert result.conversations[0]["receipts"] == [
        {
            **unit,
            "attachment_sha256": sha256((SAMPLES / "hopper_orientation_6.jpg").read_bytes()),
            "content_sha256": sha256(sent),
            "length": len(sent),
        }
    ]
    assert result.conversations[0]["tasks"][0]["evidence"] == [unit]


def test_words_of_a_picture_cannot_be_quoted() -> None:
    quoting = new_task("看图", ["f1:i1"], quotes=[{"ref": "f1:i1", "text": "周五截止"}])
    with ModelServer([calls(read("f1")), submits({"c1": [quoting]}), no_tasks]) as server:
        batch = batch_with(("hopper_orientation_6.jpg", "jpg"))
        run(server, batch, archive_root=SAMPLES, limits=SEES)
        answer = results_of(server.requests[2].json)[-1]
    assert "c1.tasks[0].quotes[0].text: f1:i1 is a picture, which cannot be quoted" in answer


def test_a_model_that_does_not_see_is_told_so_and_cannot_cite_what_it_did_not_see() -> None:
    cites = submits({"c1": [new_task("看图", ["m1", "f1:i1"])]})
    with ModelServer([calls(read("f1")), cites, no_tasks]) as server:
        run(server, batch_with(("hopper_orientation_6.jpg", "jpg")), archive_root=SAMPLES)
        shown = json.loads(results_of(server.requests[1].json)[0])
        assert roles(server.requests[1].json["messages"])[-1] == "tool"
        assert "f1:i1 was not read" in results_of(server.requests[2].json)[-1]
    assert shown["units"][0]["text"].endswith("[this model cannot see pictures; nothing of it was read]")


def test_a_scanned_page_is_a_picture_for_a_model_that_sees_and_said_to_be_one_for_others() -> None:
    for limits, wanted in ((SEES, 1), (Limits(), 0)):
        with ModelServer([calls(read("f1")), no_tasks]) as server:
            run(server, batch_with(("testOCR.pdf", "pdf")), archive_root=SAMPLES, limits=limits)
            messages = server.requests[1].json["messages"]
        text = results_of({"messages": messages})[0]
        if wanted:
            assert json.loads(text)["units"][0]["id"] == "f1:p1"
            assert pictures_of(messages[-1])[0].startswith((b"\xff\xd8\xff", b"\x89PNG"))
        else:
            assert text.startswith("cannot be read: no_text_scanned: ")


def test_no_more_pictures_than_allowed_come_with_one_reading() -> None:
    with ModelServer([calls(read("f1")), calls(read("f1", start=3)), no_tasks]) as server:
        limits = Limits(vision=True, max_images_per_read=2)
        run(server, batch_with(("multipage.tiff", "tiff")), archive_root=SAMPLES, limits=limits)
        first, second = map(json.loads, results_of(server.requests[2].json))
    assert [unit["id"] for unit in first["units"]] == ["f1:i1", "f1:i2"]
    assert (first["next"], first["total"]) == (3, 3)
    assert [unit["id"] for unit in second["units"]] == ["f1:i3"]


def test_pictures_are_counted_as_pictures_and_compaction_keeps_results_and_pictures_together() -> None:
    url = "data:image/jpeg;base64," + "A" * 900_000
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    assert 500 < estimate_tokens([picture]) < 4000
    exchange = [{"role": "assistant", "content": ""}, {"role": "tool", "content": "x" * 4000}, picture]
    first = [{"role": "system", "content": "s"}, {"role": "user", "content": "{}"}]
    record = SessionRecord(batch_of())
    kept = compacted([*first, *exchange, *exchange, *exchange], 4000, record)
    assert roles(kept) == ["system", "user", "assistant", "tool", "user"]
    parts = kept[-1]["content"]
    assert [part["type"] for part in parts] == ["image_url", "text"]
    assert "left out" in parts[-1]["text"]
    assert picture["content"] == [{"type": "image_url", "image_url": {"url": url}}]


# --- citations


def test_a_unit_of_another_session_is_not_read_here_even_where_the_round_knows_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("周五前交表", encoding="utf-8")
    cites = submits({"c1": [new_task("交表", ["m1", "f1:b1"])]})
    extracts = Extracts()
    with ModelServer([calls(read("f1")), cites]) as server:
        first = run(server, batch_with(("a.txt", "txt")), archive_root=tmp_path, extracts=extracts)
    with ModelServer([cites, no_tasks]) as server:
        run(server, batch_with(("a.txt", "txt")), archive_root=tmp_path, extracts=extracts)
        assert "f1:b1 was not read" in results_of(server.requests[1].json)[-1]
    assert outcomes(first) == {"c1": "accepted"}


def test_of_a_file_that_changed_in_the_session_nothing_can_be_cited(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("周五前交表", encoding="utf-8")

    def change(request: dict[str, Any]) -> Answer:
        del request
        file.write_text("周六前交表", encoding="utf-8")
        return calls(read("f1"))

    cites = submits({"c1": [new_task("交表", ["m1", "f1:b1"])]})
    with ModelServer([calls(read("f1")), change, cites, no_tasks]) as server:
        result = run(server, batch_with(("a.txt", "txt")), archive_root=tmp_path)
        first, second, third = results_of(server.requests[3].json)
    assert json.loads(first)["total"] == 1
    assert second.startswith("cannot be read: changed: ")
    assert "f1:b1 was not read" in third
    assert result.conversations[0]["receipts"] == []


def test_a_file_that_is_not_the_collected_one_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("周六前交表", encoding="utf-8")
    batch = batch_with(("a.txt", "txt"))
    batch["attachments"]["f1"]["sha256"] = sha256("周五前交表".encode())
    with ModelServer([calls(read("f1")), no_tasks]) as server:
        run(server, batch, archive_root=tmp_path)
        assert results_of(server.requests[1].json)[0].startswith("cannot be read: changed: ")


def test_a_crash_costs_the_attachment_and_never_the_session(tmp_path: Path) -> None:
    """The reading process has no memory to speak of: its parsers cannot even be loaded."""
    shutil.copy(SAMPLES / "rotation.pdf", tmp_path)
    with ModelServer([calls(read("f1"), read("f1")), no_tasks]) as server:
        limits = Limits(max_memory_mb=40)
        result = run(server, batch_with(("rotation.pdf", "pdf")), archive_root=tmp_path, limits=limits)
        assert all(text.startswith("cannot be read: ") for text in results_of(server.requests[1].json))
    assert outcomes(result) == {"c1": "accepted"}


def test_a_session_that_ends_while_a_parser_hangs_ends_at_once_and_takes_the_process_along(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("while True: pass", encoding="utf-8")
    reader = Reader(Limits(timeout_seconds=60.0), boot=BOOT)
    begin = time.monotonic()
    with ModelServer([calls(read("f1")), no_tasks]) as server:
        batch = batch_with(("a.txt", "txt"))
        result = run(server, batch, archive_root=tmp_path, reader=reader, max_session_seconds=2.0)
    assert time.monotonic() - begin < 20
    assert result.error is not None
    assert result.error["kind"] == "max_session_seconds"
    assert reader.pid is None


# --- a round


def attached(key: str, text: str, name: str) -> dict[str, Any]:
    """A message with one file of the archive."""
    size = (SAMPLES / name).stat().st_size
    attachment = {"id": f"a-{key}", "name": name, "size": size, "path": name, "state": "present"}
    return event(key, text, conversation="lab", attachments=[attachment])


def ref_of(request: dict[str, Any], name: str) -> str:
    document = json.loads(request["messages"][1]["content"])
    ref: str = next(entry["ref"] for entry in document["attachments"] if entry["name"] == name)
    return ref


PDF, DOCX, DOC, PICTURE = "rotation.pdf", "checked_boxes.docx", "52117.doc", "hopper_orientation_6.jpg"


def reads_everything(request: dict[str, Any]) -> Answer:
    wanted = [
        read(ref_of(request, PDF), start=2, count=1),
        *(read(ref_of(request, n)) for n in (DOCX, DOC, PICTURE)),
    ]
    return calls(*wanted)


def cites_everything(request: dict[str, Any]) -> Answer:
    """One task that rests on page 2, a table, a block of the DOC and the picture, the first three quoted."""
    document = json.loads(request["messages"][1]["content"])
    messages = [
        it["id"] for segment in document["conversations"][0]["segments"] for it in segment["messages"]
    ]
    page, table, block, picture = (json.loads(text)["units"] for text in results_of(request))
    cited = [page[0], next(unit for unit in table if " | " in unit["text"]), block[0], picture[0]]
    quotes = [{"ref": unit["id"], "text": unit["text"].split("\n")[0][:20].strip()} for unit in cited[:3]]
    sources = [*messages, *(unit["id"] for unit in cited)]
    return submits({"c1": [new_task("按附件办理", sources, quotes=quotes)]})


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
def test_a_round_reads_a_page_a_table_an_old_document_and_a_picture_and_the_task_carries_them(
    tmp_path: Path,
) -> None:
    with ModelServer([reads_everything, cites_everything]) as server:
        project = Project(tmp_path / "project", server.base_url)
        project.configure(input={"archive_root": str(SAMPLES)}, agent={"vision": True})
        names = (PDF, DOCX, DOC, PICTURE)
        project.batch("a.jsonl", *(attached(f"k{at}", f"见附件{at}", name) for at, name in enumerate(names)))
        report = run_round(load_config(project.root / "config" / "processor.toml"))
        last = server.requests[-1].json["messages"]
    assert [group["outcome"] for group in report.round["groups"]] == ["done"], report.round
    assert len(pictures_of(last[-1])) == 1
    (published,) = project.events()
    evidence = {entry["name"]: entry for entry in published["task"]["attachment_evidence"]}
    assert set(evidence) == set(names)
    for name, entry in evidence.items():
        assert entry["sha256"] == sha256((SAMPLES / name).read_bytes())
        assert entry["path"] == name
    assert evidence[PDF]["unit"] == "p2"
    assert evidence[PICTURE]["unit"] == "i1"
    quotes = [quote for source in published["task"]["sources"] for quote in source["quotes"]]
    assert len(quotes) == 3
    # The receipts of every unit that was sent lie beside the commit, not those of the cited ones alone.
    sent = [unit for text in results_of({"messages": last}) for unit in json.loads(text)["units"]]
    assert receipts(project) == len(sent)
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"chatproc-*/{PDF}"))  # noqa: S108


def test_check_says_how_far_parsers_are_shut_in_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "project").configure(input={"archive_root": "archive"})
    (project.root / "archive").mkdir()
    config = load_config(project.root / "config" / "processor.toml")
    found = [it for it in check_project(config) if it.topic == "attachments"]
    with contextlib.closing(Reader(Limits())) as reader:
        words = "without a network" if "namespace" in reader.network else "sockets are"
    assert words in found[0].text
    missing = [] if shutil.which("soffice") else ["note"]
    assert [it.state for it in found[1:]] == missing
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    (broken,) = [it for it in check_project(config) if it.state == "broken"]
    assert (broken.topic, broken.exit_code) == ("attachments", 2)


def receipts(project: Project) -> int:
    """How many receipts the store has; another process looks."""
    code = (
        "import sqlite3, sys; "
        "print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM receipts').fetchone()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(project.state)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_a_round_leaves_no_reading_process_and_no_folder_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    during: list[list[str]] = []

    def look(request: dict[str, Any]) -> Answer:
        during.append([path.name for path in (tmp_path / "scratch").iterdir()])
        return no_tasks(request)

    with ModelServer([call("read_attachment", {"ref": "f1"}), look]) as server:
        project = Project(tmp_path / "project", server.base_url)
        project.configure(input={"archive_root": str(SAMPLES)})
        project.batch("a.jsonl", attached("k", "见附件", PDF))
        run_round(load_config(project.root / "config" / "processor.toml"))
    assert len(during[0]) == 1
    assert list((tmp_path / "scratch").iterdir()) == []
