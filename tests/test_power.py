"""The power goes at any moment: what was acknowledged is there, and the rest is done again with the same end.

On real file systems that lose whatever was not synced. The mutants switch a protection off; a test that does
not notice would be blind.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest

from chatproc import _core
from tests.breaking.build import failpoint_package
from tests.breaking.kills import write_life
from tests.breaking.life import NOW, Life
from tests.breaking.power import Disk, NoDiskError, disks
from tests.project import Warm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = 20_261_130
CUTS = 8
MORE_CUTS = 250
LAYOUTS = {
    "ext4": ("ext4",),
    "xfs": ("xfs",),
    "apart": ("ext4", "xfs"),
    "apart the other way": ("xfs", "ext4"),
}
"""The file system of the project, and that of the output where it is another one."""
MUTANTS = {"file-sync": "apart", "folder-sync": "apart", "synchronous-full": "ext4"}
"""A protection, and the layout on which its want shows."""
_FORK = "from tests.breaking.fork import main; main()"


class Powered:
    """A project on disks whose power can be cut, and the end it comes to when nothing happens."""

    def __init__(self, disks: list[Disk], folder: Path, warm: Warm) -> None:
        self.disks = disks
        self.folder = folder
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.life = Life(disks[0].root / "project", self.notes)
        self.acknowledged: set[str] = set()
        """What was committed before the power went."""
        self._warm = warm
        self._new()
        begin = time.monotonic()
        assert self._run() == 0, (folder / "err").read_text()
        self.seconds = time.monotonic() - begin
        self.wanted = self.life.outcome()

    def _new(self) -> None:
        for note in self.notes.iterdir():
            note.unlink()
        for disk in self.disks:
            disk.renew()
        write_life(self.life.root)
        output = self.disks[-1].root / "published"
        output.mkdir()
        self.life.output.symlink_to(output)
        os.sync()

    def _run(self, cut_after: float | None = None, without: str = "") -> int:
        (self.folder / "err").write_text("")
        call = {
            "root": str(self.life.root),
            "notes": str(self.notes),
            "day": 0,
            "environment": {"CHATPROC_WITHOUT": without, "CHATPROC_FAILPOINT": ""},
            "fault": None,
            "out": str(self.folder / "err"),
            "err": str(self.folder / "err"),
        }
        running = self._warm.start(call)
        if cut_after is None:
            return running.wait().code
        time.sleep(cut_after)  # the moment itself, not a wait for something
        self._cut()
        running.send(signal.SIGKILL)
        return running.wait().code

    def _cut(self) -> None:
        """What is acknowledged from here on is not counted: a dying kernel may call anything synced."""
        self.acknowledged = set(self.life.committed())
        for disk in self.disks:
            disk.cut_power()

    def cut(self, rng: random.Random, without: str = "") -> list[str]:
        """Cut the power at a moment of the day; what is wrong when it is back, and in the end."""
        self._new()
        life = self.life
        # Half of the cuts come when all is done and acknowledged: then nothing at all may be gone.
        done = rng.random() < 0.5
        if done:
            assert self._run(without=without) == 0, (self.folder / "err").read_text()
            self._cut()
        else:
            self._run(cut_after=rng.uniform(0, 1.1 * self.seconds), without=without)
        for disk in self.disks:
            disk.unmount()
            disk.mount()
        found = self._look()
        if done and life.outcome() != self.wanted:
            found.append("what was done and acknowledged is not there")
        return found + self._finish()

    def _look(self) -> list[str]:
        """What is wrong with what is there."""
        life = self.life
        found = [str(broken) for broken in _core.verify(life.state, life.output)["breaks"]]
        copy = life.root / "kept" / "0.db"
        if copy.exists() and not _core.verify(copy, life.output)["ok"]:
            found.append("the copy is not whole")
        if self.acknowledged & life.waiting(NOW):
            found.append("an answer is gone whose commit was acknowledged")
        return found

    def _finish(self) -> list[str]:
        """What is wrong when the day was run again."""
        life = self.life
        published, asked = life.published(), len(life.asked_for())
        if self._run():
            return [f"it does not go on: {(self.folder / 'err').read_text()}"]
        found = []
        if self.acknowledged & set(life.asked_for()[asked:]):
            found.append("a committed answer was asked for again")
        if not published.items() <= life.published().items():
            found.append("a published file has changed")
        if life.outcome() != self.wanted:
            found.append("the end is another one")
        return found


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    package = failpoint_package()
    if package is None:
        pytest.skip("without cargo no extension with fail points can be built")
    warm = Warm(package, program=_FORK)
    yield warm
    warm.close()


@pytest.fixture(scope="module", params=LAYOUTS)
def powered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, warm: Warm
) -> Iterator[Powered]:
    yield from on_disks(LAYOUTS[request.param], tmp_path_factory.mktemp("power"), warm)


def on_disks(kinds: tuple[str, ...], folder: Path, warm: Warm) -> Iterator[Powered]:
    try:
        with disks(kinds, folder) as made:
            yield Powered(made, folder, warm)
    except NoDiskError as error:
        pytest.skip(f"no disk can be made here: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cuts(powered: Powered, numbers: range) -> None:
    for number in numbers:
        found = powered.cut(random.Random(SEED + number))  # noqa: S311 - to be repeated, no secret
        assert found == [], f"seed {SEED}+{number}"


@pytest.mark.timeout(900)  # the first one waits until the extension is built
def test_a_power_cut_at_any_moment_takes_nothing_that_was_acknowledged(powered: Powered) -> None:
    cuts(powered, range(CUTS))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_power_cuts_take_nothing_that_was_acknowledged(powered: Powered) -> None:
    cuts(powered, range(CUTS, MORE_CUTS))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("without", MUTANTS)
def test_a_protection_that_is_missing_is_noticed(
    without: str, tmp_path_factory: pytest.TempPathFactory, warm: Warm
) -> None:
    for powered in on_disks(LAYOUTS[MUTANTS[without]], tmp_path_factory.mktemp("mutant"), warm):
        for number in range(3 * CUTS):
            if powered.cut(random.Random(SEED + number), without):  # noqa: S311 - to be repeated, no secret
                return
        pytest.fail(f"nothing was noticed without {without}: the test is blind")
