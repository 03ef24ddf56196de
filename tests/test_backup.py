"""`backup`: a whole, private copy that is alone under its name, made while others work; and the way back."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from chatproc import ChatprocError, ConfigError, backup, load_config
from tests.project import PATIENCE, Project, chat
from tests.sse import Answer, ModelServer, one_task_each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chatproc.results import Progress


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(one_task_each) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, server: ModelServer) -> Project:
    project = Project(tmp_path / "project", server.base_url)
    return project.configure(agent={"batching": "single_conversation", "concurrency": 1})


@pytest.fixture
def worked(project: Project) -> Project:
    project.batch("a.jsonl", *chat("lab", "交报告"), *chat("home", "交水费"))
    project.once()
    return project


def restore(project: Project, copy: Path) -> None:
    """As docs/reliability.md tells it."""
    for suffix in ("", "-wal", "-shm"):
        project.state.with_name(project.state.name + suffix).unlink(missing_ok=True)
    shutil.copy(copy, project.state)


def test_a_copy_is_one_private_file_that_is_sound_and_holds_what_the_store_held(
    worked: Project, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    before = worked.outcome()
    told = worked.document("backup", str(copy))
    assert told == {"file": str(copy), "bytes": copy.stat().st_size, "version": told["version"]}
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [it.name for it in tmp_path.glob("copy*")] == ["copy.db"], "one file, nothing beside it"
    restore(worked, copy)
    assert worked.document("verify")["ok"]
    assert worked.outcome() == before


def test_a_file_that_is_there_is_never_replaced(worked: Project, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(b"precious")
    for there in (copy, worked.state):
        done = worked.call("backup", str(there), code=2)
        assert f"at: {there}" in done.err
        assert "hint:" in done.err
    assert copy.read_bytes() == b"precious"
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere")
    worked.call("backup", str(tmp_path / "link.db"), code=2)
    with pytest.raises(ConfigError, match="there already"):
        backup(load_config(worked.root / "config" / "processor.toml"), copy)


def test_without_a_store_or_a_folder_it_says_so_and_makes_nothing(project: Project, tmp_path: Path) -> None:
    assert "no store yet" in project.call("backup", str(tmp_path / "copy.db"), code=1).err
    project.batch("a.jsonl", *chat("lab", "交报告"))
    project.once()
    assert "none/copy.db" in project.call("backup", str(tmp_path / "none" / "copy.db"), code=1).err
    assert not list(tmp_path.rglob("copy.db*"))


def test_a_damaged_store_is_not_copied_in_silence(worked: Project, tmp_path: Path) -> None:
    worked.call("backup", str(tmp_path / "sound.db"))
    bytes_ = bytearray(worked.state.read_bytes())
    bytes_[8192:12288] = b"\x5a" * 4096
    worked.state.write_bytes(bytes_)
    done = worked.call("backup", str(tmp_path / "copy.db"), code=1)
    assert str(worked.state) in done.err
    assert "Traceback" not in done.err
    assert not list(tmp_path.glob("copy*"))


def test_it_can_be_watched_and_stopped_and_then_leaves_nothing(worked: Project, tmp_path: Path) -> None:
    config = load_config(worked.root / "config" / "processor.toml")
    seen: list[Progress] = []

    def stop(progress: Progress) -> None:
        seen.append(progress)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup(config, tmp_path / "copy.db", progress=stop)
    assert seen[0].stage == "backup"
    assert not list(tmp_path.glob("copy*"))
    with pytest.raises(ChatprocError):
        backup(config, tmp_path / "project" / "state", progress=stop)


def test_copies_made_during_a_round_are_each_a_moment_of_it_and_lead_to_the_same_end(
    worked: Project, server: ModelServer, tmp_path: Path
) -> None:
    """Each answer of the model waits for a copy."""
    known = set(worked.published())
    copies: list[Path] = []
    asked = threading.Lock()

    def model(request: dict[str, Any]) -> Answer:
        with asked:
            copy = tmp_path / f"copy{len(copies)}.db"
            worked.call("backup", str(copy))
            copies.append(copy)
        return one_task_each(request)

    worked.batch("b.jsonl", *(it for name in "cdefgh" for it in chat(name, f"交{name}", "好")))
    with ModelServer(model) as slow:
        worked.configure(agent={"base_url": slow.base_url})
        # Another endpoint makes what was read before pending too.
        round_ = worked.cold("once", "--json")
        out, err = round_.communicate(timeout=PATIENCE)
        assert round_.returncode == 0, err
        assert len(copies) >= len(json.loads(out)["round"]["groups"]) == 8
    worked.configure(agent={"base_url": server.base_url})
    while worked.once()["round"]["pending"]:
        pass
    wanted = {task["title"] for task in worked.tasks()}
    held = []
    for copy in copies[::3]:
        restore(worked, copy)
        for name in set(worked.published()) - known:
            (worked.output / name).unlink()
        held.append(len(worked.tasks()))
        while worked.once()["round"]["pending"]:
            pass
        assert {task["title"] for task in worked.tasks()} == wanted
        assert worked.document("verify")["ok"]
    assert held == sorted(held)
    assert len(set(held)) > 1, "each copy is of its own moment"


def test_a_restored_copy_never_publishes_a_name_anew(worked: Project, tmp_path: Path) -> None:
    """What was exported after the copy stands in files that the copy knows nothing of."""
    worked.call("backup", str(tmp_path / "copy.db"))
    worked.batch("b.jsonl", *chat("club", "交会费"))
    worked.once()
    newer = worked.published()
    restore(worked, tmp_path / "copy.db")
    found = worked.document("verify", code=1)
    assert {it["kind"] for it in found["breaks"]} == {"export"}
    worked.batch("c.jsonl", *chat("late", "交表格"))
    report = worked.once(code=3)
    assert "restored from a copy" in report["export"]["error"]
    assert worked.published() == newer, "nothing that was published has changed"
    for name in set(newer) - {next(iter(newer))}:
        (worked.output / name).rename(tmp_path / name)
    worked.once()
    assert worked.document("verify")["ok"]
    assert {task["title"] for task in worked.tasks()} == {"交报告", "交水费", "交会费", "交表格"}


def test_a_round_that_was_killed_leaves_a_log_that_a_restored_store_must_not_meet(
    worked: Project, tmp_path: Path
) -> None:
    """Why the way back begins with removing `-wal`: SQLite would play it into the restored file."""
    worked.call("backup", str(tmp_path / "copy.db"))
    worked.batch("b.jsonl", *chat("club", "交会费"))
    hanging = threading.Event()

    def model(request: dict[str, Any]) -> Answer:
        hanging.set()
        return one_task_each(request).then("hang").first(1)

    with ModelServer(model) as slow:
        worked.configure(agent={"base_url": slow.base_url})
        round_ = worked.cold("once")
        assert hanging.wait(PATIENCE)
        round_.send_signal(signal.SIGKILL)
        round_.communicate(timeout=PATIENCE)
    assert worked.state.with_name("state.db-wal").stat().st_size
    restore(worked, tmp_path / "copy.db")
    assert worked.document("verify")["ok"]
    assert worked.status()["messages"] == 2


def test_a_full_disk_is_1_names_the_copy_and_leaves_nothing(worked: Project, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        failed = worked.call("backup", str(small / "copy.db"), code=1)
        assert str(small / "copy.db") in failed.err
        assert "full" in failed.err
        assert not list(small.iterdir())
        subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
        worked.call("backup", str(small / "copy.db"))
    finally:
        subprocess.run(["umount", str(small)], check=True)
