"""`plan_events`: a plan from memory alone, the same whatever the order of the lines, within exact budgets."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatproc.core import plan_events
from chatproc.errors import ConfigError

if TYPE_CHECKING:
    from random import Random

Json = dict[str, Any]

DAY = 1_782_835_200
BUDGET = {"max_conversation_chars": 1500, "max_messages": 3, "max_input_chars": 3000}


def event(key: str, second: float = 0, **fields: object) -> Json:
    return {
        "schema": "chatproc.event/1",
        "event_id": f"event of {key}",
        "message_key": key,
        "revision": 0,
        "platform": "qq",
        "account_id": "1",
        "conversation": {"id": "room"},
        "sent_at": DAY + second,
        "sender": {"id": None, "name": None},
        "text": f"text of {key}",
        **fields,
    }


def line(fields: Json) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


@st.composite
def worlds(draw: st.DrawFn) -> list[Json]:
    """Messages of up to three rooms; links go wrong in every way, and some messages are collected again."""
    made: list[Json] = []
    before: dict[str, str] = {}
    for number in range(draw(st.integers(1, 12))):
        key, room = f"k{number}", draw(st.sampled_from("aab"))
        fields: Json = {"conversation": {"id": room}, "text": draw(st.text(max_size=30))}
        link = draw(st.sampled_from(["before"] * 5 + ["none", "first", "gone", "any"]))
        other = {"before": before.get(room), "gone": "gone", "any": f"k{draw(st.integers(0, 12))}"}.get(link)
        if link != "none":
            fields["sequence"] = {"index": number, "predecessor": other}
        fields["kind"] = draw(st.sampled_from(["message"] * 6 + ["system"]))
        before[room] = key
        told = event(key, draw(st.integers(0, 9000)), **fields)
        made.append(told)
        if draw(st.booleans()):
            again = {"event_id": f"again {number}", "collected_at": DAY + draw(st.integers(-3, 3))}
            made.append({**told, **again, "selection": {"rules": ["more"]}})
    return made


def chains(events: list[Json]) -> dict[str, list[list[str]]]:
    """The contract's chains, the slow way: by room, each as keys in order."""
    messages = {told["message_key"]: told for told in events}
    rooms: dict[str, list[list[str]]] = {}
    for room in sorted({told["conversation"]["id"] for told in events}):
        own = {key: told for key, told in messages.items() if told["conversation"]["id"] == room}
        claims = {key: told["sequence"]["predecessor"] for key, told in own.items() if "sequence" in told}
        told_once = {key: other for key, other in claims.items() if list(claims.values()).count(other) == 1}
        follows = {key: other for key, other in told_once.items() if other in claims}
        on_cycle = {key for key in follows if cycles(key, follows)}
        follows = {key: other for key, other in follows.items() if key not in on_cycle}
        after = {other: key for key, other in follows.items()}
        found = []
        for head in own.keys() - follows.keys():
            chain = [head]
            while chain[-1] in after:
                chain.append(after[chain[-1]])
            found.append(chain)
        found.sort(key=lambda chain: order(own[chain[0]]))
        rooms[room] = [
            kept for chain in found if (kept := [key for key in chain if own[key]["kind"] == "message"])
        ]
    return rooms


def cycles(key: str, follows: dict[str, str]) -> bool:
    seen, at = set(), follows[key]
    while at in follows and at not in seen:
        if at == key:
            return True
        seen.add(at)
        at = follows[at]
    return at == key


def order(told: Json) -> tuple[Any, ...]:
    index = told.get("sequence", {}).get("index")
    return (told["sent_at"], index is not None, index or 0, told["message_key"])


@given(worlds(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=80)
def test_any_order_and_repetition_gives_the_same_plan(events: list[Json], random: Random) -> None:
    lines = [line(told) for told in events]
    plan = plan_events(lines, BUDGET)
    other = [*lines, *random.choices(lines, k=3)]
    random.shuffle(other)
    again = plan_events(other, BUDGET)
    assert again.counts == {**plan.counts, "lines": len(other), "repeats": 3}
    assert {**again.to_dict(), "counts": None} == {**plan.to_dict(), "counts": None}


@given(worlds())
@settings(deadline=None, max_examples=80)
def test_segments_are_the_chains_that_a_slow_reading_of_the_contract_finds(events: list[Json]) -> None:
    plan = plan_events([line(told) for told in events])
    found: dict[str, list[list[str]]] = {told["conversation"]["id"]: [] for told in events}
    for segment in plan.segments:
        found[segment["conversation"]["id"]].append(segment["messages"])
        assert segment["continuity"] == ("single" if len(segment["messages"]) == 1 else "proven")
    assert found == chains(events)


@given(worlds())
@settings(deadline=None, max_examples=80)
def test_groups_and_batches_hold_every_segment_once_within_their_budgets(events: list[Json]) -> None:
    plan = plan_events([line(told) for told in events], BUDGET)
    assert plan.counts["lines"] == sum(plan.counts[name] for name in ("accepted", "repeats", "quarantined"))
    fitting = [segment["fingerprint"] for segment in plan.segments if not segment["oversized"]]
    grouped = [segment["fingerprint"] for group in plan.groups for segment in group["segments"]]
    assert sorted(grouped) == sorted(fitting)
    assert len(plan.oversized) == len(plan.segments) - len(fitting)
    for group in plan.groups:
        assert group["chars"] == 160 + sum(segment["chars"] for segment in group["segments"])
        assert group["chars"] <= BUDGET["max_conversation_chars"]
        assert group["messages"] == sum(len(segment["messages"]) for segment in group["segments"])
        assert group["messages"] - len(group["segments"][-1]["messages"]) < BUDGET["max_messages"]
    sizes = {group["id"]: group["chars"] for group in plan.groups}
    rooms = {group["id"]: group["conversation"]["id"] for group in plan.groups}
    assert [group for batch in plan.batches for group in batch] == list(sizes)
    for batch in plan.batches:
        assert 200 + sum(sizes[group] for group in batch) <= BUDGET["max_input_chars"]
        assert len({rooms[group] for group in batch}) == len(batch)


@given(st.lists(st.one_of(st.binary(max_size=60), worlds().map(lambda events: line(events[0]))), max_size=8))
@settings(deadline=None, max_examples=120)
def test_no_bytes_stop_a_plan_and_every_line_is_counted(lines: list[bytes]) -> None:
    plan = plan_events(lines)
    assert plan.counts["lines"] == sum(plan.counts[name] for name in ("accepted", "repeats", "quarantined"))
    assert plan.counts["quarantined"] == len(plan.quarantined)
    assert plan.counts["lines"] <= len(lines)
    assert {refused["line"] for refused in plan.quarantined} <= set(range(1, len(lines) + 1))


def test_of_conflicting_lines_the_first_stays() -> None:
    first, second = event("k"), {**event("k"), "event_id": "other", "text": "something else"}
    plan = plan_events([line(first), line(second), line({**first, "text": "a lie"}), line(second)])
    assert plan.counts == {"lines": 4, "accepted": 1, "repeats": 1, "quarantined": 2}
    reasons = [(refused["line"], refused["reason"]) for refused in plan.quarantined]
    assert reasons == [(2, "revision-conflict"), (3, "event-conflict")]
    assert plan.groups == plan_events([line(first)]).groups


def test_a_line_may_end_in_a_newline_or_not_and_the_first_may_have_a_byte_order_mark() -> None:
    plain = line(event("k")).strip()
    forms = [plain, plain + b"\n", plain + b"\r\n", b"\xef\xbb\xbf" + plain]
    plans = [plan_events([form, b"\n", b" \r\n"]) for form in forms]
    assert all(plan == plans[0] for plan in plans)
    assert plans[0].counts["lines"] == 1
    assert plan_events([b"oops\r\n"]).quarantined[0]["raw"] == "oops"


def test_start_at_may_be_seconds_or_rfc_3339() -> None:
    lines = [line(event("old", 0)), line(event("new", 3600))]
    kept = [["new"]]
    for start_at in (DAY + 1, float(DAY + 1), "2026-07-01T00:00:01+08:00"):
        plan = plan_events(lines, {"start_at": start_at})
        assert [segment["messages"] for segment in plan.segments] == kept


def test_time_and_session_say_how_they_know() -> None:
    linked = [
        event(f"k{at}", at * 1000, sequence={"predecessor": f"k{at - 1}" if at else None}) for at in range(4)
    ]
    lines = [line(told) for told in linked]
    by_time = plan_events(lines, {"grouping": "time", "gap_minutes": 20})
    assert [segment["continuity"] for segment in by_time.segments] == ["by-time"]
    session = plan_events(lines, {"grouping": "session", "gap_minutes": 10, "carry_messages": 2})
    shown = [(segment["continuity"], segment["carried"]) for segment in session.segments]
    cut = "cut-at-silence"
    assert shown == [("single", []), (cut, ["k0"]), (cut, ["k0", "k1"]), (cut, ["k1", "k2"])]


@pytest.mark.parametrize(
    "options",
    [
        {"nonsense": 1},
        {"max_messages": 0},
        {"gap_minutes": -1},
        {"grouping": "moon"},
        {"timezone": "Mars/Base"},
    ],
)
def test_an_option_that_means_nothing_is_a_config_error(options: Json) -> None:
    with pytest.raises(ConfigError):
        plan_events([], options)


def test_lines_that_are_not_bytes_are_a_type_error() -> None:
    with pytest.raises(TypeError):
        plan_events(["text"])  # type: ignore[list-item]


def test_threads_plan_the_same_at_once() -> None:
    lines = [line(event(f"k{at}", at)) for at in range(300)]
    with ThreadPoolExecutor(4) as pool:
        plans = list(pool.map(lambda _: plan_events(lines), range(8)))
    assert all(plan == plans[0] for plan in plans)
