"""Reads every file of folders and prints what came of it: the tables of docs/attachments.md.

    python benches/attachments.py FOLDER…

Each file is read by a program of its own, so that seconds and peak memory are its own: those of the reading
process and of LibreOffice, whichever is larger; starting the reading process is among the seconds (0.2).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from chatproc.attachments import Archive, Limits, UnreadableError

NO_SAMPLES = {"SOURCES.md", "expected.jsonl", "generate.py"}


def read(file: Path) -> dict[str, Any]:
    """One file: what it gave, how long it took, what it held."""
    begin = time.monotonic()
    kind = file.suffix.lower().removeprefix(".") or "file"
    with Archive(file.parent, Limits(vision=True)) as archive:
        try:
            reading = archive.read({"path": file.name, "type": kind})
            found = "pictures" if any(unit.image for unit in reading.units) else "text"
            words = reading.note
        except UnreadableError as error:
            found, words = error.code, error.words
    seconds = time.monotonic() - begin
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return {"file": file.name, "kind": kind, "found": found, "words": words, "seconds": seconds, "mb": peak}


def measured(file: Path) -> dict[str, Any]:
    """`read`, in a program of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--one", str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """The tables."""
    if sys.argv[1] == "--one":
        print(json.dumps(read(Path(sys.argv[2]))))
        return
    files = [file for folder in sys.argv[1:] for file in sorted(Path(folder).iterdir())]
    found = [measured(file) for file in files if file.is_file() and file.name not in NO_SAMPLES]
    table("found", found)
    print()
    table("kind", found)
    print()
    for entry in sorted(found, key=lambda entry: -entry["seconds"])[:8]:
        print(f"| {entry['file']} | {entry['found']} | {entry['seconds']:.1f} s | {entry['mb']} MiB |")


def table(by: str, found: list[dict[str, Any]]) -> None:
    """Files, longest time and highest peak by one of their fields."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in found:
        groups[entry[by]].append(entry)
    print(f"| {by} | files | longest | most memory |\n|---|---|---|---|")
    for name, entries in sorted(groups.items(), key=lambda group: -len(group[1])):
        longest = max(entry["seconds"] for entry in entries)
        most = max(entry["mb"] for entry in entries)
        print(f"| `{name}` | {len(entries)} | {longest:.1f} s | {most} MiB |")


if __name__ == "__main__":
    main()
