"""A thousand cuts, none of which loses or doubles anything: `tests/breaking` as a part of the suite.

The long mode: `make break KILLS=10000`. A failure names its case; `python -m tests.breaking --replay NAME`
repeats it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.breaking.build import failpoint_package
from tests.breaking.cases import ALL_FAIL_POINTS, Report, every_call, every_point, seeded
from tests.breaking.kills import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.breaking.cases import Case

MEMORY = Path("/dev/shm")  # noqa: S108 - a kill needs no disk, and the suite should not wear one out
EVERY = 4
"""Each fourth call in the suite, each one in the long mode."""
SEEDS = 300
FIRST_SEED = 20_261_130


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    package = failpoint_package()
    if package is None:
        pytest.skip("without cargo no extension with fail points can be built")
    folder = Path(tempfile.mkdtemp(prefix="chatproc-breaking-", dir=MEMORY if MEMORY.is_dir() else None))
    stage = Stage(folder, package)
    yield stage
    stage.close()
    shutil.rmtree(folder)


def broken(stage: Stage, cases: Iterable[Case]) -> Report:
    """Meet all cases; none may leave anything that is not as it would have been."""
    report = Report()
    for case in cases:
        stage.meet(case, report)
    for line in report.lines():
        print(line)  # noqa: T201 - shown with a failure
    assert not report.broken, (
        f"{len(report.broken)} of {report.points.total()}, the first: {report.broken[0]}"
    )
    assert (report.lost, report.doubled) == (0, 0)
    return report


@pytest.mark.timeout(900)  # the first one waits until the extension is built
def test_a_kill_at_each_hit_of_each_fail_point_changes_nothing_in_the_end(stage: Stage) -> None:
    report = broken(stage, every_point(stage))
    assert report.hit == report.points
    assert report.places == set(ALL_FAIL_POINTS)


@pytest.mark.timeout(900)
def test_a_kill_at_calls_that_change_files_changes_nothing_in_the_end(stage: Stage) -> None:
    if not stage.has_faults:
        pytest.skip("without a C compiler no library that meets the calls can be built")
    report = broken(stage, list(every_call(stage))[::EVERY])
    assert report.hit == report.points


@pytest.mark.timeout(900)
def test_cuts_by_chance_change_nothing_in_the_end(stage: Stage) -> None:
    report = broken(stage, (seeded(stage, FIRST_SEED + number) for number in range(SEEDS)))
    # What strikes the mending may come too late, and an instant too.
    for kind in set(report.points) - {"instant", "instant while mending", "call while mending"}:
        assert report.hit[kind] == report.points[kind], kind
    assert report.hit.total() > report.points.total() / 2, "the faults were not hit: the test is blind"


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_thousand_cuts_change_nothing_in_the_end(stage: Stage) -> None:
    cases = [*every_call(stage), *(seeded(stage, seed) for seed in range(9000))]
    assert broken(stage, cases).points.total() > 10_000
