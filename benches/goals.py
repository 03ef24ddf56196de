"""Every row of the table in benches/README.md that can be measured here, with its goal and a verdict.

    python benches/goals.py --generator ../shared/bench/gen_batch.py --baselines ../shared/bench --tasks 10000

Rows that need the generator, the baselines or a store of many tasks are left out, by name, where these are
not asked for; a baseline whose package is not installed likewise. Ratios are of processor time; the rows of
milliseconds are the best of several, which is what a shared machine allows.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import searches
import session
from rounds import HERE, generated, timed

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS: list[str] = []
LEFT_OUT: list[str] = []
ENGINES = {"msgspec": 7, "duckdb": 8, "polars": 10}
"""How many times as fast the cold run is to be."""
LINE = json.dumps({"schema": "chatproc.task-event/1", "task": {"text": "x" * 900}}).encode() + b"\n"


def row(work: str, measured: float, unit: str, *, most: float = math.inf, least: float = 0) -> None:
    """Note a measured row with the bound that is its goal."""
    goal = f"≥ {least}" if least else f"≤ {most}"
    verdict = "met" if least <= measured <= most else "missed"
    ROWS.append(f"| {work} | {goal} {unit} | {measured:.3g} {unit} | {verdict} |")


def best(runs: int, work: Callable[[], object]) -> float:
    """The fewest milliseconds of some runs."""
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1000)
    return min(took)


def event(number: int) -> str:
    """One line of a batch."""
    return json.dumps(
        {
            "schema": "chatproc.event/1",
            "event_id": f"e{number}",
            "message_key": f"k{number}",
            "revision": 0,
            "platform": "qq",
            "account_id": "1",
            "conversation": {"id": f"c{number % 50}", "type": "group"},
            "sent_at": 1_782_871_200 + number,
            "sender": {"id": "u"},
            "text": "Please send the figures.",
        }
    )


def stages(run: dict[str, float | str]) -> float:
    """Processor seconds of a run's stages, without the interpreter's start."""
    told = json.loads(str(run["last"]))["stages"]
    return sum(float(stage["cpu"]) for stage in told.values())


def cold(options: argparse.Namespace, work: Path) -> None:
    """The whole job: against a baseline, its memory, and how it grows."""
    data = generated(options.generator, options.events)
    small = generated(options.generator, options.events // 10)
    own = [sys.executable, str(HERE / "rounds.py"), "once"]
    run = timed([*own, str(data), str(work / "cold")])
    row("cold run, peak memory", float(run["rss_mb"]) * 2**20 / options.events, "bytes an event", most=200)
    first = timed([*own, str(small), str(work / "small")])
    exponent = math.log10(stages(run) / stages(first))
    row("cold run, growth over a tenth", exponent, "(exponent)", most=1.05)
    for engine, times in ENGINES.items() if options.baselines else ():
        if importlib.util.find_spec(engine) is None:
            LEFT_OUT.append(f"the cold run against {engine}, which is not installed")
            continue
        other = timed(
            [sys.executable, str(options.baselines / f"baseline_{engine}.py"), str(data), str(work / engine)]
        )
        row(
            f"cold run against {engine}",
            float(other["cpu"]) / float(run["cpu"]),
            "times as fast",
            least=times,
        )
        if engine == "msgspec":
            against_parts(options, data, work / engine, run, other)


def against_parts(
    options: argparse.Namespace,
    data: Path,
    folder: Path,
    run: dict[str, float | str],
    other: dict[str, float | str],
) -> None:
    """Stages against the same ones of msgspec + sqlite3, and the whole against the least work there is."""
    own, theirs = (json.loads(str(told["last"]))["stages"] for told in (run, other))
    ingest = theirs["ingest"]["cpu"] / own["ingest"]["cpu"]
    row("reading alone, which writes, against msgspec's, which does not", ingest, "times as fast", least=8)
    plan = (theirs["segments"]["cpu"] + theirs["plan"]["cpu"]) / own["plan"]["cpu"]
    row("planning alone, which writes, against msgspec's, which does not", plan, "times as fast", least=25)
    if importlib.util.find_spec("simdjson") is None:
        LEFT_OUT.append("the cold run against the limit probes, which need pysimdjson")
        return
    limits = timed([sys.executable, str(options.baselines / "limits.py"), str(data), str(folder)])
    least = sum(float(probe["cpu"]) for probe in json.loads(str(limits["last"])).values())
    row("cold run against the sum of the limit probes", float(run["cpu"]) / least, "times the time", most=1.4)


def questions(options: argparse.Namespace) -> None:
    """Lists and searches, the slowest of a hundred of each kind."""
    for kind, took in searches.measured(searches.made(options.tasks), 100).items():
        row(f"{kind}, {options.tasks:,} tasks, 99th percentile", searches.slowest(took), "ms", most=10)


def requests() -> None:
    """A session's own processor time a request."""
    own, bare, _ = session.measured(20)
    row("a request of a session, against a bare client's", own / bare, "times the time", most=2)


def more(options: argparse.Namespace, work: Path) -> None:
    """New events on the store of the cold run, from files to exported files."""
    delta = generated(options.generator, options.events) / "delta"
    script = str(HERE / "rounds.py")
    run = timed([sys.executable, script, "more", str(delta), str(work / "cold")])
    told = json.loads(str(run["last"]))["stages"].values()
    milliseconds = 1000 * sum(float(stage["wall"]) for stage in told)
    row("1,000 new events in 20 conversations", milliseconds, "ms", most=45)


def unchanged(work: Path) -> None:
    """Ten thousand files in which nothing is new."""
    from chatproc import _core

    folder = work / "files"
    folder.mkdir()
    for number in range(10_000):
        (folder / f"batch-{number:05}.jsonl").write_text(event(number) + "\n")
    now = time.time_ns() // 1_000_000
    store = _core.Round(work / "files.db", "benchmark", now)
    paths = {"paths": [f"{folder}/*.jsonl"], "max_line_bytes": 1 << 24, "settle_ms": 0, "max_memory_mb": 512}
    paths |= {"now": now, "state": f"{work}/files.db", "output": ""}
    store.ingest(paths)
    milliseconds = best(5, lambda: store.ingest(paths))
    row("nothing new, 10,000 unchanged files", milliseconds, "ms", most=100)


def fill(state: Path) -> None:
    """Put rows into the outbox of a store that nothing else has open."""
    import sqlite3  # noqa: TID251 - no part of the program is in this process

    rows = ((str(number), 1, number, 0, "program", "benchmark", LINE) for number in range(100_000))
    sql = "INSERT INTO outbox(event_id, task, revision, at, actor, why, line) VALUES(?, ?, ?, ?, ?, ?, ?)"
    with sqlite3.connect(state) as conn:
        conn.executemany(sql, rows)
    conn.close()


def export(work: Path) -> None:
    """Rows of the outbox → files, against writing and syncing the same bytes."""
    from chatproc import _core

    state = work / "export.db"
    empty = _core.Round(state, "benchmark", 0)
    empty.ingest(
        {
            "paths": [],
            "max_line_bytes": 1 << 24,
            "settle_ms": 0,
            "max_memory_mb": 512,
            "now": 0,
            "state": str(state),
            "output": "",
        }
    )
    empty.close()
    subprocess.run([sys.executable, __file__, "fill", str(state)], check=True)
    store = _core.Round(state, "benchmark", 0)
    ours = best(1, lambda: store.export(work / "todos"))

    def plain() -> None:
        for number in range(10):
            with (work / f"plain-{number}").open("wb") as file:
                file.write(LINE * 10_000)
                os.fsync(file.fileno())

    ratio = ours / best(1, plain)
    row("export of 100,000 rows, against writing them", ratio, "times the time", most=1.3)


def starts(work: Path, state: Path) -> None:
    """What a person waits for before anything happens."""
    config = work / "chatproc.toml"
    config.write_text(f'[input]\npaths = ["{work}/none/*.jsonl"]\n[storage]\nstate = "{state}"\n')

    def run(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, cwd=work)

    python = sys.executable
    program = (python, "-c", "from chatproc.cli import main; main()")
    rows = (
        ("import chatproc", 150, run(python, "-c", "import chatproc")),
        ("chatproc --help", 250, run(*program, "--help")),
        ("chatproc status", 250, run(*program, "status", "--config", str(config))),
    )
    for name, most, work_of in rows:
        row(name, best(5, work_of), "ms", most=most)


def main() -> None:
    """Measure, print the table."""
    if sys.argv[1:2] == ["fill"]:
        fill(Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generator", type=Path, help="gen_batch.py, which makes the data")
    parser.add_argument("--baselines", type=Path, help="folder with baseline_msgspec.py")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument(
        "--tasks", type=int, default=0, help="searches in a store of so many, made once, slowly"
    )
    options = parser.parse_args()
    (HERE / "data").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HERE / "data") as folder:
        work = Path(folder)
        if options.generator:
            cold(options, work)
            more(options, work)
        unchanged(work)
        export(work)
        requests()
        if options.tasks:
            questions(options)
        starts(work, work / ("cold/state.db" if options.generator else "files.db"))
    print("| work | goal | measured | verdict |\n|---|--:|--:|---|", *ROWS, sep="\n")
    if not options.generator:
        LEFT_OUT.append("the cold run, its memory and growth, new events on its store, without --generator")
    if not options.baselines:
        LEFT_OUT.append("the cold run against what others do, without --baselines")
    if not options.tasks:
        LEFT_OUT.append("lists and searches, without --tasks")
    print("\nLeft out:", *LEFT_OUT, sep="\n- ")


if __name__ == "__main__":
    main()
