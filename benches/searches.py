"""Lists and searches over a store of many tasks: how long the slowest of a hundred takes.

    python benches/searches.py --tasks 1000000

The store is made by `benches/searches.rs`, which writes rows straight into the tables: a million tasks
through real rounds would take minutes and gigabytes that no search reads. It is kept in `benches/data`.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ZONE = "Asia/Shanghai"
# Words of benches/searches.rs.
THINGS = [
    "实验报告",
    "论文初稿",
    "采购清单",
    "会议纪要",
    "课程作业",
    "开题材料",
    "发票",
    "合同",
    "样品",
    "数据",
]
NOUNS = ["the lab report", "meeting room", "invoice", "Monday", "contract", "tickets", "survey", "budget"]
FAMILIES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡"
NAMES = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超霞平刚桂英华玉萍红玲建国志文"


def person(rng: random.Random) -> str:
    """One of some thousands of names."""
    return rng.choice(FAMILIES) + rng.choice(NAMES) + rng.choice(NAMES)


def made(tasks: int) -> Path:
    """The store, made where it is missing."""
    folder = HERE / "data" / f"tasks-{tasks}"
    state = folder / "state.db"
    if not (folder / "whole").exists():
        folder.mkdir(parents=True)
        command = ["cargo", "bench", "-q", "-p", "chatproc-core", "--bench", "searches", "--locked", "--"]
        profile = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
        env = {**os.environ, **profile}
        subprocess.run([*command, str(state), str(tasks)], check=True, cwd=HERE.parent, env=env)
        (folder / "whole").touch()
    return state


def queries(rng: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """What people and models ask, by kind."""
    while True:
        order = rng.choice(["due", "priority", "updated", "created"])
        number = f"{rng.randrange(100_000):05}"
        day = f"2026-{rng.randrange(7, 12):02}-{rng.randrange(1, 29):02}"
        yield "list, open", {"status": ["open"], "sort": order}
        yield "list, all", {"sort": "updated"}
        yield "list, of a priority", {"status": ["open"], "priority": [f"P{rng.randrange(5)}"], "sort": order}
        yield "list, due from a day on", {"status": ["open"], "due_from": day, "sort": order}
        yield "list, changed since a day", {"updated_from": day, "sort": order}
        yield "list, of a conversation", {"conversation": str(rng.randrange(1, 25_000)), "sort": order}
        yield "list, of a platform", {"platform": rng.choice(["qq", "wechat", "matrix"]), "sort": order}
        yield "find, a number", {"query": number, "sort": order}
        yield "find, two digits", {"query": number[:2], "sort": order}
        yield "find, a word and a number", {"query": f"{rng.choice(THINGS)}{number[:3]}", "sort": order}
        yield "find, a person", {"people": [person(rng)], "status": ["open"], "sort": "updated"}
        yield "find, a family name", {"people": [rng.choice(FAMILIES)], "status": ["open"], "sort": "updated"}
        yield "find, a person and a word", {"query": rng.choice(THINGS), "people": [person(rng)]}
        yield "find, a common word", {"query": rng.choice(THINGS), "status": ["open"], "sort": order}
        yield "find, English words", {"query": rng.choice(NOUNS), "status": ["open"], "sort": order}
        yield "find, an English word and a number", {"query": f"{rng.choice(NOUNS)} {number}"}


KINDS = 16


def measured(state: Path, runs: int) -> dict[str, list[float]]:
    """Milliseconds of processor time of each kind of question."""
    from chatproc import _core

    took: dict[str, list[float]] = {}
    asked = queries(random.Random(11))  # noqa: S311 - words, no secret
    for _ in range(KINDS * runs):
        kind, query = next(asked)
        began = time.process_time()
        _core.search(state, query, ZONE)
        took.setdefault(kind, []).append((time.process_time() - began) * 1000)
    return took


def slowest(took: list[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(took, n=100)[98]


def main() -> None:
    """Make the store if it is missing, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    answers = measured(made(options.tasks), options.runs)
    print("| question | median ms | 99th percentile ms |\n|---|--:|--:|")
    for kind, took in answers.items():
        print(f"| {kind} | {statistics.median(took):.1f} | {slowest(took):.1f} |")


if __name__ == "__main__":
    main()
