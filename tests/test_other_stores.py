"""Stores that are not where and as this program left them: on a read-only disk, someone else's, moved."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.project import PATIENCE, Project, chat
from tests.sse import EMPTY, ModelServer, one_task_each

if TYPE_CHECKING:
    from collections.abc import Iterator

READING = (
    ("status",),
    ("tasks",),
    ("task", "TASK"),
    ("preview",),
    ("explain", "lab0"),
    ("verify",),
    ("quarantine",),
    ("connections",),
)
WRITING = (("once",), ("done", "TASK"), ("export",), ("quarantine", "retry", "1"))


@pytest.fixture
def worked(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project")
    with ModelServer(one_task_each) as server:
        project.configure(agent={"batching": "single_conversation", "base_url": server.base_url})
        project.batch("a.jsonl", *chat("lab", "交报告"), "no json")
        project.once(code=3)
        yield project


def commands(project: Project, wanted: tuple[tuple[str, ...], ...]) -> list[list[str]]:
    (task,) = project.tasks()
    return [[task["task_id"] if word == "TASK" else word for word in command] for command in wanted]


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The folder as a read-only disk, or a skipped test."""
    for options in ("bind", "remount,bind,ro"):
        command = ["mount", "-o", options, str(folder), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def killed_in_a_round(project: Project) -> None:
    """Leaves a log with commits in it, and its index."""
    project.batch("b.jsonl", *chat("home", "交水费"))
    with ModelServer([EMPTY.then("hang")]) as slow:
        project.configure(agent={"base_url": slow.base_url})
        round_ = project.cold("once")
        assert slow.arrived.wait(PATIENCE)
        round_.send_signal(signal.SIGKILL)
        round_.communicate(timeout=PATIENCE)
    assert beside(project, "-wal").stat().st_size


def beside(project: Project, suffix: str) -> Path:
    return project.state.with_name(project.state.name + suffix)


def shown(project: Project) -> list[str]:
    return [project.call(*command, "--json").out for command in commands(project, READING)]


# ── a read-only disk ─────────────────────────────────────────────────────────────────────────────────


def test_a_store_at_rest_is_read_from_a_read_only_disk(worked: Project) -> None:
    wanted = shown(worked)
    for suffix in ("-wal", "-shm"):  # what readers leave; as it is just after a round
        beside(worked, suffix).unlink(missing_ok=True)
    with read_only(worked.root):
        assert shown(worked) == wanted
        assert not beside(worked, "-wal").exists()


def test_a_store_with_a_log_is_read_from_a_read_only_disk_with_what_the_log_holds(worked: Project) -> None:
    killed_in_a_round(worked)
    with read_only(worked.root):
        assert worked.status()["messages"] == 2
        assert shown(worked)


def test_a_log_without_its_index_on_a_read_only_disk_is_an_error_and_never_passed_over(
    worked: Project,
) -> None:
    killed_in_a_round(worked)
    beside(worked, "-shm").unlink()
    told = commands(worked, READING)
    beside(worked, "-shm").unlink(missing_ok=True)
    killed_in_a_round(worked)
    beside(worked, "-shm").unlink()
    with read_only(worked.root):
        for command in told:
            done = worked.call(*command, code=1)
            assert str(worked.state) in done.err
            assert "hint:" in done.err
            assert "-wal" in done.err
            assert done.out == ""


def test_a_copy_can_be_made_from_a_read_only_disk(worked: Project, tmp_path: Path) -> None:
    with read_only(worked.root):
        worked.call("backup", str(tmp_path / "copy.db"))
    shutil.copy(tmp_path / "copy.db", worked.state)
    assert worked.document("verify")["ok"]


def test_writing_to_a_read_only_disk_is_1_and_says_what_to_look_at(worked: Project) -> None:
    wanted = commands(worked, WRITING)
    worked.call("done", wanted[1][1])
    before = worked.files()
    with read_only(worked.root):
        for command in wanted:
            done = worked.call(*command, code=1)
            assert str(worked.state) in done.err, command
            assert "hint:" in done.err, command
            assert "ead-only" in done.err or "readonly" in done.err, command
    assert worked.files() == before
    worked.once()


def test_another_user_reads_what_is_theirs_to_read_and_is_told_else(worked: Project) -> None:
    """Not as root, whom no mode keeps out."""
    if os.getuid() or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user")
    command = [sys.executable, "-W", "ignore", "-c", "from chatproc.cli.main import main; main()", "status"]
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    temporary = Path(tempfile.gettempdir()).resolve()
    for folder in (worked.root, *(it for it in worked.root.parents if temporary in it.parents)):
        folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run(other, cwd=worked.root, capture_output=True, text=True, check=False)
    if "No module named" in done.stderr or "ermission denied: '/" in done.stderr:
        pytest.skip("another user cannot run the program here")
    assert done.returncode == 1, done
    assert str(worked.state.parent) in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr


# ── moved stores ─────────────────────────────────────────────────────────────────────────────────────


def test_a_project_that_is_copied_whole_goes_on_where_it_is(worked: Project, tmp_path: Path) -> None:
    killed_in_a_round(worked)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(worked.root, elsewhere)
    with ModelServer(one_task_each) as server:
        worked.configure(agent={"base_url": server.base_url})
        copied = Project(elsewhere, server.base_url)
        copied.configure(agent={"batching": "single_conversation"})
        for project in (worked, copied):
            assert project.start("once").wait().code in {0, 3}
            assert project.document("verify")["ok"]
    assert {task["task_id"] for task in copied.tasks()} == {task["task_id"] for task in worked.tasks()}
    # Another endpoint is another setting: what the first one read is read anew, and its task is superseded.
    assert sorted(task["status"] for task in copied.tasks()) == ["open", "open", "superseded"]
