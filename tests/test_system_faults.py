"""Each file of the product on a system that refuses: what is said, how it ends, and that it then goes on.

One call on one file fails in a real process (`tests/breaking/faults.c`), once or from there on; then there is
room again and the same command leads where it would have led.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.breaking.faults import WRITES, Fault, library, read_log
from tests.project import ROOT, Project, chat
from tests.sse import ModelServer, one_task_each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.project import Done

TELEGRAM = ROOT / "examples" / "demo" / "telegram"


@dataclass(frozen=True)
class Case:
    """A command, the file that refuses, which calls on it, how, and the exit code."""

    command: str
    below: str
    calls: tuple[str, ...]
    error: str
    code: int
    place: int = 1
    on: bool = True
    named: str = ""
    """What the error must name; the file itself where it is empty."""

    def __str__(self) -> str:
        return f"{self.command}-{self.below or 'any'}-{self.calls[0]}{self.place}-{self.error}"

    @property
    def fault(self) -> Fault:
        return Fault("fail on" if self.on else "fail", self.place, self.error, self.calls, self.below)


STATE, WAL, SHM, BUILD = (f"state/state.db{suffix}" for suffix in ("", "-wal", "-shm", ".build"))
NEW = "state/state.db."
"""Lock, build, and the empty store that is made where no build can be finished, in this order."""
DISK = ("ENOSPC", "EDQUOT", "EIO")
CASES = [
    # the store: nothing of the transaction stays, exit 1
    *(Case("first once", BUILD, WRITES, error, 1, named="state") for error in DISK),
    *(Case("first once", NEW, WRITES, error, 1, 2, named="state") for error in ("ENOSPC", "EIO", "EROFS")),
    *(Case("first once", NEW, ("fsync",), error, 1, named="state") for error in DISK),
    *(Case("first once", STATE, ("rename",), error, 1) for error in ("EIO", "ENOSPC", "EACCES")),
    Case("first once", "state", ("mkdir",), "ENOSPC", 1),
    Case("first once", "state", ("mkdir",), "EROFS", 1),
    *(Case("once", WAL, WRITES, error, 1, place, named=STATE) for error in DISK for place in (1, 9)),
    *(Case("once", WAL, ("fsync",), error, 1, named=STATE) for error in DISK),
    *(Case("once", WAL, ("open",), error, 1, named=STATE) for error in ("EACCES", "EROFS", "EMFILE")),
    *(Case("once", SHM, ("ftruncate", "ftruncate64", *WRITES), error, 1, named=STATE) for error in DISK),
    *(Case("once", SHM, ("open",), error, 1, named=STATE) for error in ("EACCES", "EROFS")),
    *(Case("once", STATE + ".lock", ("open",), error, 1) for error in ("EACCES", "EROFS", "ENOSPC")),
    Case("once", STATE + ".lock", WRITES, "ENOSPC", 1, named="state.db.lock"),
    # the output: tasks and outbox are safe, exit 3
    *(Case("first once", "out", ("mkdir",), error, 3) for error in ("ENOSPC", "EROFS", "EACCES")),
    *(Case("once", "out/", ("open",), error, 3) for error in ("ENOSPC", "EROFS", "EACCES", "EMFILE")),
    *(Case("once", "out/", WRITES, error, 3) for error in DISK),
    *(Case("once", "out/", ("fsync",), error, 3, on=False, named="out") for error in DISK),
    *(Case("once", "out/", ("rename",), error, 3) for error in ("EIO", "ENOSPC", "EACCES")),
    *(Case("once", "out", ("fsync",), "EIO", 3, place, on=False) for place in (1, 2)),
    # a copy
    *(Case("backup", "copy.db", ("open",), error, 1) for error in ("ENOSPC", "EROFS", "EACCES")),
    *(Case("backup", "copy.db", WRITES, error, 1) for error in DISK),
    *(Case("backup", "copy.db", ("fsync",), error, 1) for error in DISK),
    # an import
    *(Case("import", "data/import", ("open",), error, 1) for error in ("ENOSPC", "EROFS", "EACCES")),
    *(Case("import", "data/import", WRITES, error, 1) for error in DISK),
    *(Case("import", "data/import", ("rename",), error, 1) for error in ("EIO", "ENOSPC")),
    # what init writes
    *(Case("init", "new/", ("mkdir",), error, 1) for error in ("ENOSPC", "EROFS", "EACCES")),
    *(Case("init", "new/", ("open",), error, 1) for error in ("ENOSPC", "EROFS", "EACCES")),
    *(Case("init", "new/", WRITES, error, 1) for error in DISK),
]
CALM = [
    # interrupted once, or written in part: the rest is written, and nobody is told
    *(Case("first once", BUILD, WRITES, "EINTR", 0, place, on=False) for place in (1, 7)),
    # a build that cannot be finished is no loss: the store is made the ordinary way
    *(Case("first once", BUILD, ("fsync",), error, 0) for error in DISK),
    *(Case("once", WAL, WRITES, "EINTR", 0, place, on=False) for place in (1, 9)),
    Case("once", STATE, WRITES, "EINTR", 0, on=False),
    Case("once", "out/", WRITES, "EINTR", 0, on=False),
    Case("once", "out/", ("open",), "EINTR", 0, on=False),
    Case("backup", "copy.db", WRITES, "EINTR", 0, on=False),
    Case("import", "data/import", WRITES, "EINTR", 0, on=False),
    *(Case(command, below, WRITES, "", 0, place) for place in (1, 3) for command, below in (
        ("first once", BUILD), ("once", WAL), ("backup", "copy.db"),
    )),
    *(Case(command, below, WRITES, "", 0) for command, below in (
        ("once", STATE), ("once", "out/"), ("import", "data/import"), ("init", "new/"),
    )),
]  # fmt: skip


class Refused:
    """A project before its first round, and after it with more to read; set back for each case."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.project = Project(folder / "project", server.base_url)
        self.project.preload = library()
        self.log = folder / "calls"
        self.project.batch("a.jsonl", *chat("lab", "交报告"))
        self.mornings = {"first once": folder / "before", "once": folder / "after"}
        shutil.copytree(self.project.root, self.mornings["first once"])
        self.project.once()
        self.project.batch("b.jsonl", *chat("home", "交水费"))
        shutil.copytree(self.project.root, self.mornings["once"])
        self.wanted = {}
        for command in self.mornings:
            self.set(command)
            self.run(command)
            self.wanted[command] = self.project.outcome()

    def set(self, command: str) -> None:
        shutil.rmtree(self.project.root)
        shutil.copytree(self.mornings["first once" if command == "first once" else "once"], self.project.root)
        for name in ("copy.db", "new"):
            assert not (self.project.root / name).exists()

    def run(self, command: str, fault: Fault | None = None) -> Done:
        arguments = {
            "backup": ("backup", str(self.project.root / "copy.db")),
            "import": ("import", "telegram", str(TELEGRAM), "--account", "me"),
            "init": ("init", str(self.project.root / "new")),
        }.get(command, ("once",))
        told = None if fault is None else fault.told(self.project.root, self.log)
        return self.project.start(*arguments, fault=told).wait()

    def is_as_wanted(self, command: str) -> None:
        """The command has done what it does when nothing refuses."""
        root = self.project.root
        if command in self.mornings:
            while self.project.once()["round"]["pending"]:
                pass
            assert self.project.outcome() == self.wanted[command]
            self.project.check_published()
        elif command == "backup":
            shutil.copy(root / "copy.db", self.project.state)
            assert not list(root.glob("copy.db.*"))
        elif command == "import":
            (batch,) = (root / "data" / "import").glob("*.jsonl")
            assert batch.read_text(encoding="utf-8").endswith("\n")
            assert not [it for it in batch.parent.iterdir() if it != batch]
        else:
            assert (root / "new" / "config" / "processor.toml").read_bytes() == (
                ROOT / "config" / "processor.toml"
            ).read_bytes()
        assert self.project.document("verify")["ok"]


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refused]:
    if library() is None:
        pytest.skip("without a C compiler no library that meets the calls can be built")
    with ModelServer(one_task_each) as server:
        yield Refused(tmp_path_factory.mktemp("refused"), server)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_file_that_refuses_is_named_nothing_is_lost_and_it_goes_on(refused: Refused, case: Case) -> None:
    refused.set(case.command)
    done = refused.run(case.command, case.fault)
    assert read_log(refused.log).hits, "the fault was not hit: the test is blind"
    assert done.code == case.code, done
    told = done.err + done.out
    assert "Traceback" not in told
    assert "fault of chatproc" not in told
    assert (case.named or case.below).rstrip("/") in told, done
    if case.code == 1:
        assert "hint:" in done.err, done
    if case.command in refused.mornings:
        assert refused.project.document("verify")["ok"]
    assert refused.run(case.command).code in {0, 3}
    refused.is_as_wanted(case.command)


@pytest.mark.parametrize("case", CALM, ids=str)
def test_a_call_that_does_a_part_or_is_interrupted_is_gone_on_with(refused: Refused, case: Case) -> None:
    refused.set(case.command)
    fault = case.fault if case.error else Fault("shorten", case.place, calls=case.calls, below=case.below)
    done = refused.run(case.command, fault)
    assert read_log(refused.log).hits, "the fault was not hit: the test is blind"
    assert done.code in {0, 3}, done
    assert "error" not in done.err, done
    refused.is_as_wanted(case.command)
