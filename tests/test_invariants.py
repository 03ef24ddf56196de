"""The store's invariants, through the writer of rounds: nothing depends on how events came, what is done
is not done again, what is shown is what is done, and every message is counted once.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from chatproc import _core
from chatproc.core import plan_events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

Json = dict[str, Any]

DAY = 1_782_835_200
NOW = 4_000_000_000_000
DONE: Json = {"no_task_reason": "x", "tasks": [], "receipts": []}
OPTIONS: Json = {"max_conversation_chars": 1500, "max_messages": 3, "max_groups_per_round": 1000}
SETTINGS: Json = {
    "protocol": 1,
    "rules_file": "rules.md",
    "rules_sha256": "00" * 32,
    "base_url": "http://127.0.0.1:1/v1",
    "model": "small",
    "vision": False,
}


def event(key: str, revision: int = 0, **fields: object) -> Json:
    return {
        "schema": "chatproc.event/1",
        "event_id": f"{key}/{revision}",
        "message_key": key,
        "revision": revision,
        "state": "edited" if revision else "normal",
        "platform": "qq",
        "account_id": "1",
        "conversation": {"id": "room"},
        "sent_at": DAY,
        "sender": {"id": "s", "name": "王"},
        "text": f"{key} as of {revision}",
        **fields,
    }


def line(fields: Json) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


class Project:
    """A folder with batch files and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state.db"
        self.files = 0

    def write(self, lines: list[bytes]) -> None:
        """Adds a batch file; later ones come first by name."""
        self.files += 1
        (self.folder / f"{1000 - self.files}.jsonl").write_bytes(b"".join(lines))

    @property
    def input(self) -> Json:
        paths = [str(self.folder / "*.jsonl")]
        return {
            "paths": paths,
            "max_line_bytes": 1 << 20,
            "settle_ms": 5000,
            "max_memory_mb": 512,
            "now": NOW,
            "state": "",
            "output": "",
        }

    @contextmanager
    def round(self) -> Iterator[_core.Round]:
        with closing(_core.Round(self.state, "test", NOW)) as round_:
            yield round_

    def ingest(self) -> Json:
        with self.round() as round_:
            return round_.ingest(self.input)

    def plan(self, options: Json = OPTIONS, changed: Json | None = None) -> tuple[Json, list[str]]:
        """The plan and its documents."""
        with self.round() as round_:
            plan = round_.plan(options, {**SETTINGS, **(changed or {})})
            plan["groups"] = [round_.group(group["id"]) for group in plan["groups"]]
            return plan, [round_.document(batch)["document"] for batch in plan["batches"]]

    def preview(self, options: Json = OPTIONS) -> Json:
        return _core.preview(self.state, self.input, options, SETTINGS, 1000)

    def commit(self, count: int) -> list[Json]:
        """Commits the first groups as read without a task."""
        with self.round() as round_:
            planned = round_.plan(OPTIONS, SETTINGS)["groups"][:count]
            groups = [round_.group(group["id"]) for group in planned]
            ended = round_.commit([(group["id"], DONE) for group in groups], {}, NOW)
            assert all(end["outcome"] == "done" for end in ended)
        return list(groups)


@contextmanager
def project() -> Iterator[Project]:
    with tempfile.TemporaryDirectory() as folder:
        yield Project(Path(folder))


@st.composite
def worlds(draw: st.DrawFn) -> list[Json]:
    made = []
    for number in range(draw(st.integers(1, 8))):
        key, room = f"k{number}", draw(st.sampled_from(["a", "a", "b"]))
        predecessor = draw(st.sampled_from([f"k{number - 1}", f"k{number - 1}", "gone", None]))
        for revision in range(draw(st.integers(1, 2))):
            told = event(key, revision, conversation={"id": room}, sent_at=DAY + draw(st.integers(0, 9000)))
            if draw(st.integers(0, 4)):
                told["sequence"] = {"index": number, "predecessor": predecessor}
            made.append(told)
            if draw(st.booleans()):
                sender = {"id": "s", "name": draw(st.sampled_from(["王", "李", None]))}
                later = {"event_id": f"again {key}/{revision}", "collected_at": DAY, "sender": sender}
                made.append({**told, **later})
    return made


@given(worlds(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=25)
def test_any_order_over_any_files_and_rounds_plans_what_memory_plans(
    events: list[Json], random: Random
) -> None:
    wanted = plan_events([line(told) for told in events], OPTIONS)
    lines = [line(told) for told in events * 2]
    random.shuffle(lines)
    with project() as at:
        counts = dict.fromkeys(("lines", "accepted", "repeats", "quarantined"), 0)
        while lines:
            size = random.randint(1, len(lines))
            at.write(lines[:size])
            lines = lines[size:]
            report = at.ingest()
            counts = {name: counts[name] + report[name] for name in counts}
        plan, documents = at.plan()
        assert plan["groups"] == wanted.groups
        assert plan["batches"] == wanted.batches
        assert len(documents) == len(wanted.batches)
        assert counts == {
            "lines": 2 * len(events), "accepted": len(events), "repeats": len(events), "quarantined": 0,
        }  # fmt: skip
        assert at.preview()["documents"] == documents


def by_room(groups: list[Json]) -> dict[str, list[Json]]:
    """Pending segments of each room, in order."""
    rooms: dict[str, list[Json]] = {}
    for group in groups:
        rooms.setdefault(group["conversation"]["id"], []).extend(group["segments"])
    return rooms


class Store(RuleBasedStateMachine):
    """Messages come, are edited, collected again and refused, groups are committed, in any order."""

    @initialize()
    def start(self) -> None:
        self.scope = project()
        self.at = self.scope.__enter__()
        self.told: dict[str, Json] = {}
        self.accepted: list[bytes] = []
        self.done: set[tuple[str, ...]] = set()
        self.refused = 0
        self.at.ingest()

    def teardown(self) -> None:
        if hasattr(self, "scope"):
            self.scope.__exit__(None, None, None)

    def take(self, told: Json) -> None:
        """Reads one more delivery; a preview told before what a plan tells then."""
        self.at.write([line(told)])
        before = self.at.preview()
        assert self.at.ingest()["accepted"] == 1
        self.accepted.append(line(told))
        self.told[told["message_key"]] = told
        plan, documents = self.at.plan()
        assert before["groups"] == plan["groups"]
        assert before["documents"] == documents

    @rule(room=st.sampled_from("ab"), linked=st.booleans(), old=st.booleans())
    def say(self, room: str, *, linked: bool, old: bool) -> None:
        number = len(self.told)
        fields: Json = {"conversation": {"id": room}, "sent_at": DAY + number * 60 - (old * 100_000)}
        if linked:
            fields["sequence"] = {"index": number, "predecessor": f"k{number - 1}"}
        self.take(event(f"k{number}", **fields))

    @precondition(lambda self: self.told)
    @rule(pick=st.integers(0, 99), recalled=st.booleans())
    def change(self, pick: int, *, recalled: bool) -> None:
        self.at.commit(1000)
        key = list(self.told)[pick % len(self.told)]
        before = self.told[key]
        revision = before["revision"] + 1
        text = {"text": f"{key} as of {revision}", "event_id": f"{key}/{revision}"}
        self.take({**before, "revision": revision, "state": "recalled" if recalled else "edited", **text})
        # Its own segment and no other.
        segments = [segment for group in self.at.plan()[0]["groups"] for segment in group["segments"]]
        assert [key in segment["messages"] for segment in segments] == [True]

    @precondition(lambda self: self.told)
    @rule(pick=st.integers(0, 99))
    def collect_again(self, pick: int) -> None:
        before = self.at.plan()
        told = list(self.told.values())[pick % len(self.told)]
        again = {"event_id": f"{told['event_id']} again {len(self.accepted)}", "collected_at": DAY}
        self.take({**told, **again, "selection": {"rules": [f"rule {len(self.accepted)}"]}})
        assert self.at.plan() == before

    @precondition(lambda self: self.told)
    @rule(pick=st.integers(0, 99))
    def lie(self, pick: int) -> None:
        before = self.at.plan()
        told = list(self.told.values())[pick % len(self.told)]
        self.refused += 1
        lies = [
            {**told, "event_id": f"lie {self.refused}", "text": "a lie"},
            {**told, "text": f"lie {self.refused}"},
        ]
        self.at.write([line(lies[self.refused % 2])])
        report = self.at.ingest()
        assert (report["lines"], report["quarantined"]) == (1, 1)
        assert self.at.plan() == before

    @rule(count=st.integers(1, 3))
    def commit(self, count: int) -> None:
        pending = self.at.plan()[0]["groups"]
        done = self.at.commit(count)
        assert done == pending[:count]
        # The plan's beginning is gone, and nothing else.
        assert by_room(self.at.plan()[0]["groups"]) == by_room(pending[count:])

    @invariant()
    def every_message_is_counted_once(self) -> None:
        if not hasattr(self, "at"):
            return
        status = _core.status(self.at.state)
        assert status["messages"] == len(self.told) == sum(status["outcomes"].values())
        assert status["events"] == len(self.accepted)
        assert status["quarantined"] == self.refused

    @invariant()
    def with_other_settings_all_is_pending_as_memory_plans_it(self) -> None:
        if not hasattr(self, "at"):
            return
        before = self.at.plan()[0]
        plan, _ = self.at.plan(changed={"model": "large"})
        assert plan["groups"] == plan_events(self.accepted, OPTIONS).groups
        assert self.at.plan()[0] == before

    @invariant()
    def outcomes_say_what_is_pending_and_what_is_done(self) -> None:
        if not hasattr(self, "at"):
            return
        groups = self.at.plan()[0]["groups"]
        pending = {key for group in groups for segment in group["segments"] for key in segment["messages"]}
        recalled = {key for key, told in self.told.items() if told["state"] == "recalled"}
        outcomes = _core.status(self.at.state)["outcomes"]
        assert outcomes["recalled"] == len(recalled)
        assert outcomes["pending"] == len(pending - recalled)
        assert outcomes["read-no-task"] == len(self.told.keys() - pending - recalled)


Store.TestCase.settings = settings(deadline=None, max_examples=12, stateful_step_count=12)
TestStore = Store.TestCase
