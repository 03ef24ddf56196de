"""The pages of `chatproc console` over a store of many tasks: how long each takes.

    python benches/verify.py --tasks 100000 --runs 1   # makes the store, once
    python benches/console.py

Each page is asked over HTTP from the same process, several times; what counts is the processor time of the
whole, the asking included. It reads the store and writes nothing into it.
"""

from __future__ import annotations

import argparse
import http.client
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from chatproc.console.server import ConsoleServer

HERE = Path(__file__).resolve().parent
LIMIT = 200
"""Milliseconds that no page may take."""

PAGES = {
    "tasks, by due time": "/tasks",
    "tasks, by priority": "/tasks?sort=priority&status=open&status=completed",
    "tasks, a word that all have": "/tasks?q=%E6%8A%A5%E5%91%8A",
    "tasks, overdue": "/tasks?term=overdue",
    "rounds": "/rounds",
    "connections": "/connections",
    "refused": "/refused",
    "coverage": "/coverage",
    "rules": "/rules",
    "settings": "/settings",
    "preview": "/preview",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--store", type=Path, default=HERE / "data" / "verify-100000" / "state.db")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    if not arguments.store.exists():
        print(f"no store at {arguments.store}: make one with benches/verify.py")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "processor.toml"
        config.write_text(
            f'[storage]\nstate = "{arguments.store.resolve()}"\n[rules]\nfile = "rules.md"\n',
            encoding="utf-8",
        )
        (Path(folder) / "rules.md").write_text("P0: today\n", encoding="utf-8")
        with ConsoleServer(config) as server:
            return measure(server, arguments.runs)


def found(pattern: str, page: str) -> str:
    """A link of a page."""
    link = re.search(pattern, page)
    if link is None:
        raise SystemExit(f"no {pattern} on the page")
    return link[1].replace("&amp;", "&")


def measure(server: ConsoleServer, runs: int) -> int:
    cookie = ""

    def get(path: str) -> tuple[str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        if answer.status not in {200, 303}:
            raise SystemExit(f"{path}: {answer.status}")
        return answer.getheader("set-cookie") or "", body

    place = urlsplit(server.address)
    cookie = get(f"{place.path}?{place.query}")[0].partition(";")[0]
    listed = get("/tasks")[1]
    task = found(r'href="(/tasks/t_\w+)"', listed)
    pages = {
        **PAGES,
        "tasks, a further page": found(r'rel="next" href="([^"]+)"', listed),
        "a task with its sources": task,
        "coverage of a conversation": found(r'href="(/coverage/conversation\?[^"]+)"', get("/coverage")[1]),
        "coverage of a message": found(r'href="(/coverage\?key=[^"]+)"', get(task)[1]),
    }
    slowest = 0.0
    print("| page | ms of processor time | ms as waited |\n|---|---|---|")
    for name, path in pages.items():
        busy, waited = [], []
        for _ in range(runs):
            begin, clock = time.process_time(), time.perf_counter()
            get(path)
            waited.append((time.perf_counter() - clock) * 1000)
            busy.append((time.process_time() - begin) * 1000)
        slowest = max(slowest, statistics.median(busy))
        print(f"| {name} | {statistics.median(busy):.0f} | {statistics.median(waited):.0f} |")
    return int(slowest > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
