"""What a thousand new messages cost in conversations of any length: processor milliseconds by stage.

    python benches/growth.py --lengths 1000,10000,100000

Twenty conversations of so many messages each, in talks of twelve, read and planned once; then fifty more in
each of them, from the batch file to commits by a model that finds no task. What a stage takes should not
grow with the conversations.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rounds import HERE, more

CONVERSATIONS = 20
TALK = 12
NEW = 50


def write(file: Path, numbers: range) -> None:
    """The messages with these numbers, of all conversations."""
    with file.open("w", encoding="utf-8") as batch:
        batch.writelines(line(room, number) for number in numbers for room in range(CONVERSATIONS))


def line(room: int, number: int) -> str:
    """One message; a talk begins behind one that was not selected."""
    talk, place = divmod(number, TALK)
    before = f"k:{room}:{number - 1}" if place else f"unselected:{room}:{number}"
    event = {
        "schema": "chatproc.event/1",
        "event_id": f"e:{room}:{number}",
        "message_key": f"k:{room}:{number}",
        "revision": 0,
        "platform": "qq",
        "account_id": "1",
        "conversation": {"id": f"room {room}", "type": "group"},
        "sent_at": 1_700_000_000 + talk * 5000 + place * 60,
        "sender": {"id": f"u{number % 7}", "name": f"Member {number % 7}"},
        "text": "Please send the figures for the second quarter before Friday noon.",
        "sequence": {"index": number, "predecessor": before},
    }
    return json.dumps(event) + "\n"


def measured(length: int, runs: int, folder: Path) -> list[float]:
    """The fewest milliseconds of each stage."""
    for name in ("old", "new", "work"):
        (folder / name).mkdir(parents=True)
    write(folder / "old" / "a.jsonl", range(length))
    write(folder / "new" / "b.jsonl", range(length, length + NEW))
    run(folder / "old", folder / "work")
    took = []
    for number in range(runs):
        work = folder / f"run-{number}"
        shutil.copytree(folder / "work", work)
        took.append(run(folder / "new", work))
        shutil.rmtree(work)
    return [min(stage) for stage in zip(*took, strict=True)]


def run(data: Path, work: Path) -> list[float]:
    """Milliseconds of each stage of a run in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--run", str(data), str(work)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    stages = json.loads(told.splitlines()[-1])["stages"]
    return [1000 * stage["cpu"] for stage in stages.values()]


def main() -> None:
    """Measure each length, print the table."""
    if sys.argv[1:2] == ["--run"]:
        more(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", default="1000,10000")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    (HERE / "data").mkdir(exist_ok=True)
    print("| messages of each conversation | ingest ms | plan ms | commit ms | export ms |")
    print("|--:|--:|--:|--:|--:|")
    for length in map(int, options.lengths.split(",")):
        with tempfile.TemporaryDirectory(dir=HERE / "data") as folder:
            took = measured(length, options.runs, Path(folder))
        print(f"| {length:,} |", " | ".join(f"{stage:.1f}" for stage in took), "|", flush=True)


if __name__ == "__main__":
    main()
