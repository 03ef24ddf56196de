"""A killed import leaves nothing: no half batch, and no hidden file beyond the next import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chatproc.importers import import_chats
from chatproc.importers.mail import attachment_store
from chatproc.whole import clear_abandoned, whole_file
from tests.project import PATIENCE, Project
from tests.test_import_session import write_chat

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGES = 15_000


def hidden(folder: Path) -> list[Path]:
    return sorted(folder.rglob(".*.tmp")) if folder.exists() else []


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write_chat(tmp_path / "result.json", MESSAGES)
    return Project(tmp_path / "project")


def test_the_next_import_clears_what_a_killed_one_left(project: Project) -> None:
    out = project.root / "data/import"
    killed = project.start("import", "telegram", "../result.json")
    wait_for(lambda: hidden(out))
    assert killed.kill().code != 0
    assert (len(hidden(out)), list(out.glob("*.jsonl"))) == (1, [])
    report = project.document("import", "telegram", "../result.json")
    assert [str(entry) for entry in out.iterdir()] == report["files"]
    assert report["messages"] == MESSAGES


def test_an_import_at_work_keeps_its_file_from_another_one(project: Project, tmp_path: Path) -> None:
    out = project.root / "data/import"
    (tmp_path / "other").mkdir()
    write_chat(tmp_path / "other/result.json", 10)
    first = project.cold("import", "telegram", "../result.json")
    try:
        wait_for(lambda: hidden(out))
        os.kill(first.pid, signal.SIGSTOP)
        held = hidden(out)
        assert len(held) == 1
        project.document("import", "telegram", "../other/result.json")
        assert hidden(out) == held
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert first.wait(PATIENCE) == 0
    assert hidden(out) == []
    alone = import_chats("telegram", [tmp_path / "result.json"], out=tmp_path / "alone")
    name = Path(alone.files[0]).name
    assert (out / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    assert len(list(out.iterdir())) == 2


def test_only_files_of_that_name_that_nobody_holds_are_cleared(tmp_path: Path) -> None:
    abandoned = tmp_path / ".chatproc-abcd1234.tmp"
    others = [tmp_path / name for name in (".x.tmp", ".chatproc-abcd1234.tmp.jsonl", "chatproc-abcd1234.tmp")]
    for file in (abandoned, *others):
        file.write_text("x")
    linked = tmp_path / ".chatproc-linked_1.tmp"
    linked.symlink_to(others[0])
    os.mkfifo(tmp_path / ".chatproc-fifo0001.tmp")
    (tmp_path / ".chatproc-folder01.tmp").mkdir()
    with whole_file(tmp_path / "kept") as file:
        file.write(b"whole")
        clear_abandoned(tmp_path)
    assert (tmp_path / "kept").read_bytes() == b"whole"
    assert not abandoned.exists()
    assert all(other.read_text() == "x" for other in others)
    assert (linked.is_symlink(), (tmp_path / ".chatproc-folder01.tmp").is_dir()) == (True, True)


def test_an_attachment_of_a_mail_clears_what_a_killed_import_left_in_its_place(tmp_path: Path) -> None:
    save = attachment_store(tmp_path / "files", tmp_path)
    assert save is not None
    left = tmp_path / "files/ab/abcd/.chatproc-abcd1234.tmp"
    left.parent.mkdir(parents=True)
    left.write_text("ha")
    assert save(b"half", "abcd", "a.txt") == "files/ab/abcd/a.txt"
    assert [entry.name for entry in left.parent.iterdir()] == ["a.txt"]
