"""Lists and searches over a store of many tasks: how long the slowest of a hundred takes.

    python benches/searches.py --tasks 100000

The store is made by real rounds with a model that is played: each message of a chat becomes a task with
words, a person, a place and a time of its own. It is made once and kept in `benches/data`.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verify import SETTINGS, START

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ZONE = "Asia/Shanghai"
DOINGS = ["交", "写", "改", "查", "送", "取", "订", "讨论", "整理", "准备", "提交", "打印", "通知", "安排"]
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
FAMILIES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡"
NAMES = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超霞平刚桂英华玉萍红玲建国志文"
PLACES = ["302", "教学楼", "图书馆", "实验室", "会议室", "线上"]
TASKS_OF_A_CHAT = 40
DAY = 86_400


def person(rng: random.Random) -> str:
    """One of some thousands of names."""
    return rng.choice(FAMILIES) + rng.choice(NAMES) + rng.choice(NAMES)


def line(rng: random.Random, chat: int, number: int) -> tuple[str, dict[str, Any]]:
    """A message of a chat, and the task that it is."""
    key = f"qq:1:{chat}:{number}"
    title = f"{rng.choice(DOINGS)}{rng.choice(THINGS)}{rng.randrange(100_000):05}"
    name, place = person(rng), rng.choice(PLACES)
    due = time.strftime("%Y-%m-%d", time.gmtime(START + rng.randrange(400) * DAY))
    event = {
        "schema": "chatproc.event/1",
        "event_id": key,
        "message_key": key,
        "revision": 0,
        "platform": "qq",
        "account_id": "1",
        "conversation": {"id": str(chat), "type": "group"},
        "sent_at": START + 60 * number,
        "sender": {"id": "10001"},
        "text": f"{name}老师：请{title}，在{place}。",
        "sequence": {"index": number, "predecessor": f"qq:1:{chat}:{number - 1}" if number else None},
    }
    task = {
        "title": title,
        "event": rng.choice(THINGS),
        "priority": f"P{rng.randrange(5)}",
        "priority_reason": "",
        "status": rng.choices(["open", "cancelled"], [9, 1])[0],
        "time": {"start": None, "due": due, "original": None},
        "people": [{"name": name, "role": None}],
        "location": place,
        "action_steps": [],
        "notes": "",
        "sources": [key],
        "quotes": [],
    }
    return json.dumps(event, ensure_ascii=False) + "\n", task


def made(tasks: int) -> Path:
    """The store, made where it is missing."""
    from chatproc import _core

    folder = HERE / "data" / f"searches-{tasks}"
    state = folder / "state.db"
    if (folder / "whole").exists():
        return state
    folder.mkdir(parents=True)
    rng = random.Random(7)  # noqa: S311 - words, no secret
    drafts: dict[str, dict[str, Any]] = {}
    with (folder / "batch.jsonl").open("w", encoding="utf-8") as batch:
        for chat in range(tasks // TASKS_OF_A_CHAT):
            for number in range(TASKS_OF_A_CHAT):
                text, task = line(rng, chat, number)
                batch.write(text)
                drafts[task["sources"][0]] = task
    now = time.time_ns() // 1_000_000 + 60_000
    store = _core.Round(state, "benchmark", now)
    paths = {
        "paths": [str(folder / "batch.jsonl")],
        "max_line_bytes": 1 << 24,
        "settle_ms": 0,
        "max_memory_mb": 512,
        "now": now,
    }
    store.ingest({**paths, "state": str(state), "output": ""})
    plan = store.plan({"max_groups_per_round": 1 << 40}, SETTINGS)
    keys = {
        group["id"]: [
            key for segment in store.group(group["id"])["segments"] for key in segment["messages"]
        ]
        for group in plan["groups"]
    }
    for groups in plan["batches"]:
        accepted = [
            (group, {"no_task_reason": None, "tasks": [drafts[key] for key in keys[group]], "receipts": []})
            for group in groups
        ]
        store.commit(accepted, {}, now)
    store.close()
    (folder / "whole").touch()
    return state


def queries(rng: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """What people and models ask, by kind."""
    while True:
        order = rng.choice(["due", "priority", "updated", "created"])
        yield "list, open", {"status": ["open"], "sort": order}
        yield "list, all", {"sort": "updated"}
        yield "list, of a priority", {"status": ["open"], "priority": [f"P{rng.randrange(5)}"]}
        yield "list, of a conversation", {"conversation": str(rng.randrange(1000))}
        yield "find, a number", {"query": f"{rng.randrange(100_000):05}"}
        yield "find, a word and a number", {"query": f"{rng.choice(THINGS)}{rng.randrange(100)}"}
        yield "find, a person", {"people": [person(rng)], "status": ["open"], "sort": "updated"}
        yield "find, a person and a word", {"query": rng.choice(THINGS), "people": [person(rng)]}
        yield "find, a common word", {"query": rng.choice(THINGS), "status": ["open"], "sort": "updated"}


KINDS = 9


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
