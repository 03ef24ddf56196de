"""Break it, and print what came of it.

python -m tests.breaking --kills 10000           # every fail point, every call, then seeds
python -m tests.breaking --kills 500 --seed 7000 # seeds from 7000 on, after the points and calls
python -m tests.breaking --replay seed:7041      # what a line of the report names, once more
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import itertools
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.breaking.build import failpoint_package
from tests.breaking.cases import Report, every_call, every_point, named, seeded
from tests.breaking.kills import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.breaking.cases import Case

_FAST = Path("/dev/shm")  # noqa: S108 - a kill needs no disk; power cuts have one
_TOLD = 500
"""Points between two lines that tell how far it is."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.breaking", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how many in all (1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--replay", action="append", default=[], help="a case by its name; repeatable")
    wanted = parser.parse_args()
    package = failpoint_package()
    if package is None:
        sys.exit("cargo is not there: no extension with fail points can be built")
    folder = Path(tempfile.mkdtemp(prefix="chatproc-breaking-", dir=_FAST if _FAST.is_dir() else None))
    try:
        report = _break(Stage(folder, package), wanted)
    finally:
        shutil.rmtree(folder)
    _say(f"{dt.datetime.now(dt.UTC):%Y-%m-%d}: `{' '.join(['python -m tests.breaking', *sys.argv[1:]])}`")
    for line in report.lines():
        _say(line)
    return 1 if report.broken or report.lost or report.doubled else 0


def _break(stage: Stage, wanted: argparse.Namespace) -> Report:
    """Meet the cases; Ctrl-C ends it with what was done by then."""
    report = Report()
    begin = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        for case in _cases(stage, wanted):
            if not wanted.replay and report.points.total() >= wanted.kills:
                break
            if wanted.replay:
                _say(str(case))
            broken, before = len(report.broken), report.points.total()
            stage.meet(case, report)
            for line in report.broken[broken:]:
                _say(f"BROKEN {line}")
            if before // _TOLD != report.points.total() // _TOLD:
                _say(f"{report.points.total()} points, {report.hit.total()} hit, {len(report.broken)} broken")
    report.seconds = time.monotonic() - begin
    stage.close()
    return report


def _cases(stage: Stage, wanted: argparse.Namespace) -> Iterator[Case]:
    if wanted.replay:
        return (named(stage, name) for name in wanted.replay)
    seeds = (seeded(stage, seed) for seed in itertools.count(wanted.seed))
    return itertools.chain(every_point(stage), every_call(stage), seeds)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the report


if __name__ == "__main__":
    sys.exit(main())
