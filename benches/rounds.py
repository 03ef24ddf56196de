"""The whole job on generated batches: ingest, plan, commit and export, timed as a process of its own.

    python benches/rounds.py --generator ../shared/bench/gen_batch.py --events 100000
    python benches/rounds.py once DATA WORK [MIB]  # one cold run; its last line is JSON
    python benches/rounds.py more DATA WORK [MIB]  # the same on the store that is there

MIB is `input.max_memory_mb`.

The model is played by one that finds no task: every planned group is committed with an empty answer. With
`--baselines FOLDER` the scripts `baseline_*.py` there do the same job in turns with it, and the table shows
ratios of processor time, run by run, which is what a shared machine allows to compare.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
EMPTY = {"no_task_reason": "played by the benchmark", "tasks": [], "receipts": []}


def once(data: Path, work: Path, memory_mb: int = 512) -> None:
    """One cold run over `data` with a new store in `work`."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    more(data, work, memory_mb)


def more(data: Path, work: Path, memory_mb: int = 512) -> None:
    """One run over `data`, on the store in `work` if there is one."""
    from chatproc import _core

    now = time.time_ns() // 1_000_000 + 60_000
    stages: dict[str, dict[str, float]] = {}

    def stage(name: str, began: tuple[float, float]) -> tuple[float, float]:
        ended = (time.perf_counter(), time.process_time())
        stages[name] = {"wall": round(ended[0] - began[0], 4), "cpu": round(ended[1] - began[1], 4)}
        return ended

    mark = (time.perf_counter(), time.process_time())
    store = _core.Round(work / "state.db", "benchmark", now)
    paths = {
        "paths": [f"{data}/*.jsonl"],
        "max_line_bytes": 1 << 24,
        "settle_ms": 0,
        "max_memory_mb": memory_mb,
        "now": now,
        "state": f"{work}/state.db",
        "output": "",
    }
    ingested = store.ingest(paths)
    mark = stage("ingest", mark)
    settings = {
        "protocol": 1,
        "rules_file": "",
        "rules_sha256": "",
        "base_url": "",
        "model": "",
        "vision": False,
    }
    plan = store.plan({"max_groups_per_round": 1 << 40}, settings)
    mark = stage("plan", mark)
    for batch in plan["batches"]:
        store.commit([(group, EMPTY) for group in batch], {}, now)
    mark = stage("commit", mark)
    store.export(work / "todos")
    stage("export", mark)
    counts = {**ingested, "groups": len(plan["groups"]), "oversized": len(plan["oversized"])}
    print(json.dumps({"stages": stages, "counts": counts}))


def generated(generator: Path, events: int) -> Path:
    """The folder with so many generated events, and 1,000 more in its folder `delta`."""
    data = HERE / "data" / str(events)
    if not (data / "delta").exists():
        conversations = max(20, min(5000, events // 100))
        shape = ["--events", str(events), "--conversations", str(conversations), "--files", "4"]
        command = [sys.executable, str(generator), "--out", str(data), *shape, "--delta-events", "1000"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return data


def timed(command: list[str]) -> dict[str, float | str]:
    """Wall and processor seconds, peak memory and last output line of a process."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    if process.stdout is None:
        raise SystemExit("no output to read")
    output = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{command} failed")
    return {
        "wall": time.perf_counter() - began,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss_mb": usage.ru_maxrss / 1024,
        "last": output.splitlines()[-1],
    }


def table(rows: dict[str, list[dict[str, float | str]]]) -> None:
    """Medians of each row, and how many times chatproc's processor time it takes, pair by pair."""
    print("| | wall s | cpu s | peak MB | cpu / chatproc |\n|---|--:|--:|--:|--:|")
    own = [float(run["cpu"]) for run in rows["chatproc"]]
    for name, runs in rows.items():
        medians = [statistics.median(float(run[key]) for run in runs) for key in ("wall", "cpu", "rss_mb")]
        ratio = statistics.median(float(run["cpu"]) / base for run, base in zip(runs, own, strict=True))
        print(f"| {name} | {medians[0]:.2f} | {medians[1]:.2f} | {medians[2]:.0f} | {ratio:.2f} |")


def main() -> None:
    """Generate what is missing, run in turns, print the table."""
    if sys.argv[1:2] in (["once"], ["more"]):
        run = once if sys.argv[1] == "once" else more
        run(Path(sys.argv[2]), Path(sys.argv[3]), *map(int, sys.argv[4:5]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--generator", type=Path, default=HERE.parent.parent / "shared" / "bench" / "gen_batch.py"
    )
    parser.add_argument(
        "--baselines", type=Path, help="folder with baseline_*.py; their packages must be installed"
    )
    parser.add_argument("--engines", default="msgspec", help="which of them, with commas between")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    data = generated(options.generator, options.events)
    with tempfile.TemporaryDirectory(dir=HERE / "data") as work:
        commands = {"chatproc": [sys.executable, __file__, "once", str(data), f"{work}/chatproc"]}
        for engine in options.engines.split(",") if options.baselines else []:
            script = str(options.baselines / f"baseline_{engine}.py")
            commands[engine] = [sys.executable, script, str(data), f"{work}/{engine}"]
        rows: dict[str, list[dict[str, float | str]]] = {name: [] for name in commands}
        for _ in range(options.runs):
            for name, command in commands.items():
                rows[name].append(timed(command))
    table(rows)
    print(f"\nchatproc's stages, last run: {rows['chatproc'][-1]['last']}")


if __name__ == "__main__":
    main()
