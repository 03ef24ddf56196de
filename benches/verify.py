"""`verify` over a store of many tasks: how long it takes, and where a change is found.

    python benches/verify.py --tasks 100000 --runs 3

The store is made by real rounds over generated chats, with a model that is played: each message of a group is
a task that quotes it. It is made once and kept in `benches/data`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from chatproc import _core

HERE = Path(__file__).resolve().parent
START = 1_782_871_200
SETTINGS = {
    "protocol": 1,
    "rules_file": "rules.md",
    "rules_sha256": "00" * 32,
    "base_url": "http://127.0.0.1:1/v1",
    "model": "played",
    "vision": False,
}
TEXT = "请第{number}组在周五 17:00 前把实验报告交到 302，联系王老师；附件里有模板，记得写学号和姓名。"
TASKS_OF_A_CHAT = 10


def line(chat: int, number: int) -> str:
    """A message, proven to follow the one before."""
    key = f"qq:1:{chat}:{number}"
    event = {
        "schema": "chatproc.event/1",
        "event_id": key,
        "message_key": key,
        "revision": 0,
        "platform": "qq",
        "account_id": "1",
        "conversation": {"id": str(chat), "name": f"实验室 {chat}", "type": "group"},
        "message_id": str(number),
        "sent_at": START + 60 * number,
        "sender": {"id": "10001", "name": "王老师", "role": "user"},
        "text": TEXT.format(number=number),
        "sequence": {"index": number, "predecessor": f"qq:1:{chat}:{number - 1}" if number else None},
        "selection": {"rules": ["mentions-all"], "window": [START, START + 3600]},
        "collected_at": START + 86400,
        "source": {"module": "generated", "table": "messages", "local_id": number},
    }
    return json.dumps(event, ensure_ascii=False) + "\n"


def draft(key: str, number: int) -> dict[str, Any]:
    """A task that rests on one message."""
    return {
        "title": f"第{number}组交实验报告",
        "event": "实验课程",
        "priority": "P2",
        "priority_reason": "有截止时间，影响成绩",
        "status": "open",
        "time": {"start": None, "due": "2026-07-03T17:00:00+08:00", "original": "周五 17:00"},
        "people": [{"name": "王老师", "role": "联系人"}],
        "location": "302",
        "action_steps": ["写学号和姓名", "交到 302"],
        "notes": "",
        "sources": [key],
        "quotes": [{"message_key": key, "text": "周五 17:00 前", "check": "exact"}],
    }


def make(folder: Path, tasks: int) -> None:
    """A store with so many tasks, and its exported files."""
    folder.mkdir(parents=True)
    with (folder / "batch.jsonl").open("w", encoding="utf-8") as batch:
        for chat in range(tasks // TASKS_OF_A_CHAT):
            batch.writelines(line(chat, number) for number in range(TASKS_OF_A_CHAT))
    now = time.time_ns() // 1_000_000 + 60_000
    store = _core.Round(folder / "state.db", "benchmark", now)
    store.begin(now)
    paths = [str(folder / "batch.jsonl")]
    places = {"state": str(folder / "state.db"), "output": str(folder / "todos")}
    store.ingest(
        {
            "paths": paths,
            "max_line_bytes": 1 << 24,
            "settle_ms": 0,
            "max_memory_mb": 512,
            "now": now,
            **places,
        }
    )
    options = {"max_groups_per_round": 1 << 40, "batching": "single_conversation"}
    for group in store.plan(options, SETTINGS)["groups"]:
        segments = store.group(group["id"])["segments"]
        keys = [key for segment in segments for key in segment["messages"]]
        found = [draft(key, number) for number, key in enumerate(keys)]
        outcome = {"no_task_reason": None, "tasks": found, "receipts": []}
        store.commit([(group["id"], outcome)], {"requests": 1, "input_tokens": 2000}, now)
    store.export(folder / "todos")
    store.finish(now, {})
    store.close()


def main() -> None:
    """Make the store if it is missing, verify it some times, print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    folder = HERE / "data" / f"verify-{options.tasks}"
    if not folder.exists():
        began = time.perf_counter()
        make(folder, options.tasks)
        print(f"made in {time.perf_counter() - began:.0f} s")
    seconds: list[tuple[float, float]] = []
    for _ in range(options.runs):
        began = (time.perf_counter(), time.process_time())
        verdict = _core.verify(folder / "state.db", folder / "todos")
        seconds.append((time.perf_counter() - began[0], time.process_time() - began[1]))
        if not verdict["ok"]:
            raise SystemExit(str(verdict["breaks"][:3]))
    wall, processor = (statistics.median(column) for column in zip(*seconds, strict=True))
    size = (folder / "state.db").stat().st_size / 1e6
    print(f"{verdict['checked']}\nstore {size:.0f} MB: wall {wall:.1f} s, processor {processor:.1f} s")


if __name__ == "__main__":
    main()
