"""Break it, and print what came of it.

python -m tests.breaking --kills 10000           # every fail point, every call, then seeds
python -m tests.breaking --kills 500 --seed 7000 # seeds from 7000 on, after the points and calls
python -m tests.breaking --replay seed:7041      # what a line of the report names, once more
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.breaking.build import failpoint_package
from tests.breaking.cases import Report, every_call, every_point, named, seeded
from tests.breaking.kills import Stage

_FAST = Path("/dev/shm")  # noqa: S108 - a kill needs no disk; power cuts have one


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
    report = Report()
    begin = time.monotonic()
    if wanted.replay:
        for name in wanted.replay:
            case = named(stage, name)
            _say(str(case))
            stage.meet(case, report)
    else:
        seeds = (seeded(stage, seed) for seed in itertools.count(wanted.seed))
        for case in itertools.chain(every_point(stage), every_call(stage), seeds):
            if report.points.total() >= wanted.kills:
                break
            broken = len(report.broken)
            stage.meet(case, report)
            for line in report.broken[broken:]:
                _say(f"BROKEN {line}")
    report.seconds = time.monotonic() - begin
    stage.close()
    return report


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the report


if __name__ == "__main__":
    sys.exit(main())
