"""Days of a small project over the core, with a played model and a played clock: same input, same bytes.

A day is a program that may be cut off anywhere and is then simply run again, as a person would. Run in
processes that are killed, so it imports nothing but the core.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from chatproc import _core

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]

NOW = 1_782_871_200_000
"""2026-07-01T10:00:00+08:00 in milliseconds, the time of the first day."""
DAY = 86_400_000
ZONE = "Asia/Shanghai"
OPTIONS = {"start_at": 0, "timezone": ZONE, "batching": "single_conversation"}
SETTINGS = {
    "protocol": 1,
    "rules_file": "rules.md",
    "rules_sha256": "0" * 64,
    "base_url": "http://127.0.0.1/v1",
    "model": "played",
    "vision": False,
}
_PLACE = ("played", "source")


class Life:
    """A project folder with `in/`, `state/`, `out/`, `pages/` of a connection, and copies in `kept/`."""

    def __init__(self, root: Path, notes: Path | None = None) -> None:
        self.root = root
        self.state = root / "state" / "state.db"
        self.output = root / "out"
        self.asked = (notes or root) / "asked"
        """A line for each stretch of talk that the model was asked about."""
        self.answered = (notes or root) / "answered"
        """A line for each whose answer was committed, written after that."""

    def input(self, now: int) -> Json:
        return {
            "max_line_bytes": 1 << 20,
            "settle_ms": 0,
            "max_memory_mb": 512,
            "state": str(self.state),
            "output": str(self.output),
            "paths": [str(self.root / "in" / "*")],
            "now": now,
        }

    # ── a day ────────────────────────────────────────────────────────────────────────────────────────

    def day(self, number: int) -> None:
        """A day's work: a sync, rounds until nothing is pending, the user's clicks, a backup.

        On the first day it begins with batches, which build the store; on the last one, of another project,
        with a sync, which makes it.
        """
        now = NOW + number * DAY
        if number == 0:
            with _Round(self.state, now) as store:
                store.ingest(self.input(now))
        self.sync(number, now)
        while self.round(now):
            pass
        self.clicks(number, now)
        with _Round(self.state, now) as store:
            store.export(self.output)
        copy = self.root / "kept" / f"{number}.db"
        if not copy.exists():
            _core.backup(self.state, copy, str(os.getpid()))

    def round(self, now: int) -> int:
        """One round as `once` makes it; how many groups it left."""
        with _Round(self.state, now) as store:
            store.export(self.output)
            store.ingest(self.input(now))
            plan = store.plan(OPTIONS, SETTINGS)
            store.begin(now)
            for (group,) in plan["batches"]:
                self._ask(store, group, now)
            store.export(self.output)
            store.finish(now, {"groups": len(plan["groups"])})
            return int(plan["pending"]) - len(plan["groups"])

    def _ask(self, store: _core.Round, group: str, now: int) -> None:
        batch = store.document([group])
        document = json.loads(batch["document"])
        (conversation,) = document["conversations"]
        segments = json.dumps(conversation["segments"])
        _append(self.asked, segments)
        tasks = [
            {**_task(message["text"]), "sources": [message["key"]]}
            for message in batch["messages"].values()
            if message["subject"] and "交" in message["text"]
        ]
        reason = None if tasks else "chatter"
        accepted = {"tasks": tasks, "no_task_reason": reason}
        (end,) = store.commit([(group, accepted)], {"output_tokens": 1}, now)
        if end["outcome"] != "done":
            raise RuntimeError(str(end))
        _append(self.answered, segments)

    def clicks(self, number: int, now: int) -> None:
        """What the user says of the tasks, each click with its own request id."""
        page = _core.search(self.state, {"sort": "created", "limit": 1000}, ZONE)
        for task in sorted(page["tasks"], key=lambda task: str(task["task_id"])):
            title = task["record"]["title"]
            if task["record"]["status"] == "superseded":
                continue
            if f"完成{number}" in title:
                _core.update_status(self.state, _wish(task, "completed", f"s{number}"), now, ZONE)
            if f"改期{number}" in title:
                _core.update_priority(self.state, _wish(task, "P0", f"p{number}"), now, ZONE)

    def sync(self, number: int, now: int) -> None:
        """Pull the pages of the day that are not stored yet, as one run of a connection."""
        toolkit, name = _PLACE
        connections = _core.Connections(self.state, now)
        held = connections.lease_of(toolkit, name)
        gone = None if held is None else held["holder"]
        until = now + 60_000
        leased = connections.lease(toolkit, name, "me", "tick", now, until, gone)
        assert leased is not None
        run = (toolkit, name, leased["run"], "me")
        day = f"2026-07-{1 + number:02}"
        pages = sorted((self.root / "pages" / str(number)).iterdir())
        begun = leased["cursor"]
        done = begun["page"] if begun.get("day") == number else 0
        for place, page in enumerate(pages[done:], done + 1):
            assert connections.reserve(*run, day, 100)
            lines = page.read_bytes().splitlines()
            connections.page(*run, lines, {"day": number, "page": place}, place < len(pages), day, 1 << 20)
        ended = {
            "outcome": "done",
            "next_due_at": now + DAY,
            "failures_in_row": 0,
            "breaker": "closed",
            "page_limit": None,
            "stopped_by": None,
            "error": None,
            "last_success": True,
        }
        assert connections.record(*run, ended, now)
        connections.close()

    # ── what there is ────────────────────────────────────────────────────────────────────────────────

    def outcome(self) -> Json:
        """All that two lives must agree on, output bytes included; times of rounds and their number aside."""
        status = _core.status(self.state)
        page = _core.search(self.state, {"sort": "created", "limit": 1000}, ZONE)
        tasks = {task["task_id"]: task for task in page["tasks"]}
        return {
            "status": {name: value for name, value in status.items() if name != "last_round"}
            | {"connections": [_lasting(state) for state in status["connections"]]},
            "tasks": tasks,
            "history": {task: [_roundless(it) for it in _core.history(self.state, task)] for task in tasks},
            "quarantine": sorted(bytes(raw or b"") for _, raw in _core.quarantine(self.state)),
            "output": b"".join(self.published().values()),
        }

    def published(self) -> dict[str, bytes]:
        """The output files, by name and so in the order of their events."""
        return {file.name: file.read_bytes() for file in sorted(self.output.glob("*.jsonl"))}

    def waiting(self, now: int) -> set[str]:
        """What the model would be asked about next."""
        shown = _core.preview(self.state, self.input(now), OPTIONS, SETTINGS, 100)
        return {
            json.dumps(conversation["segments"])
            for document in shown["documents"]
            for conversation in json.loads(document)["conversations"]
        }

    def asked_for(self) -> list[str]:
        return _lines(self.asked)

    def committed(self) -> list[str]:
        return _lines(self.answered)


class _Round:
    """A writer of rounds that lets go of the store."""

    def __init__(self, state: Path, now: int) -> None:
        self._store = _core.Round(state, "me", now)

    def __enter__(self) -> _core.Round:
        return self._store

    def __exit__(self, *_: object) -> None:
        self._store.close()


def _append(file: Path, line: str) -> None:
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"{line}\n")


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def _task(title: str) -> Json:
    return {"title": title, "event": title, "priority": "P3", "status": "open"}


def _wish(task: Json, value: str, request: str) -> Json:
    return {
        "task_id": task["task_id"],
        "value": value,
        "request_id": f"{request}-{task['task_id']}",
        "actor": "me",
        "expected_revision": None,
        "note": None,
    }


def _roundless(revision: Json) -> Json:
    """A revision without the number of its round, which counts those that were cut off."""
    return {**revision, "why": re.sub(r" in round \d+", "", revision["why"])}


def _lasting(state: Json) -> Json:
    """What of a connection does not depend on how often its work was cut off."""
    lasting = ("toolkit", "id", "more_pending", "next_due_at", "written", "repeats", "quarantined")
    return {name: state[name] for name in lasting}
