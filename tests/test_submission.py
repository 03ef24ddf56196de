"""The checker of submissions: what it accepts is proven by the session, what it refuses it names."""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatproc.agent.record import ReadUnit, SessionRecord
from chatproc.agent.submission import Verdict, check_submission, parse_moment
from tests.batches import JUDGE, batch_of
from tests.sse import new_task, submission

SHANGHAI = ZoneInfo("Asia/Shanghai")
BERLIN = ZoneInfo("Europe/Berlin")
TEXTS = {"c1": ["周五 18:00 前交表到 A101", "收到"], "c2": ["明天开会", "ok"]}


def record_of(**more: Any) -> SessionRecord:  # noqa: ANN401
    """c1: m1, m2 (history) with file f1, of which b1 was read; c2: m3, m4 with file f2; task t1."""
    attachments = {
        "f1": {"message": "m1", "name": "a.txt", "type": "txt", "path": "a.txt"},
        "f2": {"message": "m3", "name": "b.txt", "type": "txt", "path": "b.txt"},
    }
    tasks = {"t1": {"task_id": "t_a", "revision": 5}}
    batch = batch_of(TEXTS, history=("m2",), attachments=attachments, tasks=tasks)
    record = SessionRecord({**batch, **more})
    record.add_unit(ReadUnit("f1", "b1", "报名表  一式两份", "aa", "bb", 22))
    record.add_unit(ReadUnit("f2", "b1", "议程", "cc", "dd", 6))
    record.sent()
    return record


def verdict_on(arguments: object, timezone: ZoneInfo = SHANGHAI) -> Verdict:
    return check_submission(record_of(), timezone, JUDGE, arguments)


def faults_of(task: object, timezone: ZoneInfo = SHANGHAI) -> tuple[str, ...]:
    """The faults of one task of c1, c2 having none."""
    return verdict_on(submission({"c1": [task], "c2": []}), timezone).faults  # type: ignore[list-item]


def a_task(**changed: object) -> dict[str, Any]:
    """A task that passes, but for what is changed."""
    return {**new_task("交表", ["m1"]), **changed}


def test_a_whole_task_is_accepted_as_the_core_takes_it() -> None:
    task = a_task(
        task_ref="t1",
        title=" 交报名表 ",
        event="报名",
        priority="P1",
        priority_reason="截止近",
        status="cancelled",
        time={"start": "2026-07-01", "due": "2026-07-03T18:00:00+08:00", "original": "周五 18:00 前"},
        people=[{"name": "王老师", "role": None}],
        location="A101",
        action_steps=["打印"],
        notes="一式两份",
        sources=["m1", "m2", "f1:b1", "m1"],
        quotes=[{"ref": "m1", "text": "18:00"}, {"ref": "f1:b1", "text": "报名表 一式两份"}],
        needs_review=True,
        processing={"model": "forged"},
    )
    verdict = verdict_on(submission({"c1": [task], "c2": []}))
    assert verdict.faults == ()
    assert verdict.accepted["c2"]["no_task_reason"] == "chatter"
    accepted = verdict.accepted["c1"]
    assert accepted == {
        "ref": "c1",
        "group": "g_c1",
        "outcome": "accepted",
        "no_task_reason": None,
        "tasks": [
            {
                "task_id": "t_a",
                "seen_revision": 5,
                "title": "交报名表",
                "event": "报名",
                "priority": "P1",
                "priority_reason": "截止近",
                "status": "cancelled",
                "time": {
                    "start": "2026-07-01",
                    "due": "2026-07-03T18:00:00+08:00",
                    "original": "周五 18:00 前",
                },
                "people": [{"name": "王老师", "role": None}],
                "location": "A101",
                "action_steps": ["打印"],
                "notes": "一式两份",
                "sources": ["qq:m1", "qq:m2"],
                "evidence": [{"message_key": "qq:m1", "attachment_id": "a-f1", "unit": "b1"}],
                "quotes": [
                    {
                        "message_key": "qq:m1",
                        "attachment_id": None,
                        "unit": None,
                        "text": "18:00",
                        "check": "exact",
                    },
                    {
                        "message_key": "qq:m1",
                        "attachment_id": "a-f1",
                        "unit": "b1",
                        "text": "报名表  一式两份",
                        "check": "repaired",
                    },
                    {
                        "message_key": "qq:m1",
                        "attachment_id": None,
                        "unit": None,
                        "text": "A101",
                        "check": "exact",
                    },
                ],
            }
        ],
        "receipts": [
            {
                "message_key": "qq:m1",
                "attachment_id": "a-f1",
                "unit": "b1",
                "attachment_sha256": "aa",
                "content_sha256": "bb",
                "length": 22,
            }
        ],
    }


def test_what_may_be_left_out_may_be_left_out() -> None:
    task = {"title": "交表", "event": "", "priority": "P2", "sources": ["m1"]}
    verdict = verdict_on(submission({"c1": [task], "c2": []}))
    assert verdict.faults == ()
    accepted = verdict.accepted["c1"]["tasks"][0]
    assert accepted["status"] == "open"
    assert accepted["time"] == {"start": None, "due": None, "original": None}
    assert (accepted["people"], accepted["location"], accepted["notes"]) == ([], None, "")


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"title": ""}, "title: must have 1 to 200 characters, has 0"),
    ({"title": "   "}, "title: must have 1 to 200 characters, has 0"),
    ({"title": "x" * 201}, "title: must have 1 to 200 characters, has 201"),
    ({"title": 5}, "title: must be a text"),
    ({"event": None}, "event: must be a text"),
    ({"priority": "P5"}, 'priority: must be one of P0, P1, P2, P3, P4, not "P5"'),
    ({"priority": "p1"}, 'priority: must be one of P0, P1, P2, P3, P4, not "p1"'),
    ({"priority": 1}, "priority: must be one of P0, P1, P2, P3, P4, not a number"),
    ({"priority_reason": []}, "priority_reason: must be a text"),
    ({"status": "completed"}, 'status: must be one of open, cancelled, not "completed"'),
    ({"status": None}, "status: must be one of open, cancelled, not null"),
    ({"time": "Friday"}, "time: must be an object with start, due and original"),
    ({"time": {"original": 1}}, "time.original: must be a text"),
    ({"people": ["王老师"]}, "people[0]: must be an object with name and role"),
    ({"people": {"name": "x"}}, "people: must be a list"),
    ({"people": [{"name": " "}]}, "people[0].name: must not be empty"),
    ({"people": [{"name": "x", "role": 1}]}, "people[0].role: must be a text"),
    ({"location": ["A"]}, "location: must be a text"),
    ({"action_steps": "one"}, "action_steps: must be a list"),
    ({"action_steps": [1]}, "action_steps[0]: must be a text"),
    ({"notes": {}}, "notes: must be a text"),
    ({"task_ref": "t9"}, 'task_ref: "t9" was not shown; null for a new task'),
    ({"task_ref": 1}, "task_ref: must be a text"),
    ({"sources": []}, "sources: must be a list with at least one message of the conversation"),
    ({"sources": None}, "sources: must be a list with at least one message of the conversation"),
    ({"sources": "m1"}, "sources: must be a list with at least one message of the conversation"),
    ({"sources": ["m1", 3]}, "sources[1]: must be the id of a message or of a unit that was read"),
    ({"sources": ["m1", "m9"]}, 'sources[1]: there is no "m9" in this document'),
    ({"sources": ["m1", "qq:m1"]}, 'sources[1]: there is no "qq:m1" in this document'),
    ({"sources": ["m1", "m3"]}, "sources[1]: m3 belongs to c2, not to c1"),
    ({"sources": ["m2"]}, "sources: needs at least one message that is not history"),
    ({"sources": ["m1", "f1:p3"]}, "sources[1]: f1:p3 was not read"),
    ({"sources": ["m1", "f1"]}, "sources[1]: f1 is a whole file; cite a unit that was read, such as f1:b1"),
    ({"sources": ["m1", "f2:b1"]}, "sources[1]: f2:b1 belongs to c2, not to c1"),
    ({"sources": ["m1", "f9:b1"]}, 'sources[1]: there is no "f9:b1" in this document'),
    ({"quotes": [{"ref": "m1", "text": "周六"}]}, 'quotes[0].text: "周六" does not occur in m1'),
    ({"quotes": [{"ref": "m1", "text": " "}]}, 'quotes[0].text: "" does not occur in m1'),
    (
        {"quotes": [{"ref": "m2", "text": "收到"}]},
        'quotes[0].ref: "m2" is not among the sources of this task',
    ),
    (
        {"quotes": [{"ref": "f1:b1", "text": "报"}]},
        'quotes[0].ref: "f1:b1" is not among the sources of this task',
    ),
    ({"quotes": [{"ref": "m1"}]}, "quotes[0].text: must be a text"),
    ({"quotes": ["周五"]}, "quotes[0]: must be an object with ref and text"),
    ({"quotes": "周五"}, "quotes: must be a list"),
]


@pytest.mark.parametrize(("changed", "fault"), FAULTS, ids=[fault for _, fault in FAULTS])
def test_a_fault_is_named_where_it_is(changed: dict[str, Any], fault: str) -> None:
    assert faults_of(a_task(**changed)) == (f"c1.tasks[0].{fault}",)


def test_a_cited_unit_counts_as_its_message() -> None:
    verdict = verdict_on(submission({"c1": [a_task(sources=["f1:b1"])], "c2": []}))
    assert verdict.accepted["c1"]["tasks"][0]["sources"] == ["qq:m1"]


# --- times


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("2026-07-01", SHANGHAI),
        ("2026-07-01T18:00:00+08:00", SHANGHAI),
        ("2026-07-01t18:00:00.5+08:00", SHANGHAI),
        ("2026-07-01T18:00:00Z", ZoneInfo("UTC")),
        ("2026-07-01T18:00:00+02:00", BERLIN),
        ("2026-12-01T18:00:00+01:00", BERLIN),
        ("2026-10-25T02:30:00+02:00", BERLIN),  # the hour that comes twice
        ("2026-10-25T02:30:00+01:00", BERLIN),
    ],
)
def test_a_time_with_an_offset_of_its_zone_is_read(text: str, zone: ZoneInfo) -> None:
    assert parse_moment(text, zone).isoformat()[:10] == text[:10]
    assert faults_of(a_task(time={"due": text}), zone) == ()


@pytest.mark.parametrize(
    ("text", "zone", "words"),
    [
        ("tomorrow", SHANGHAI, "is not a time"),
        ("2026-07-01 18:00", SHANGHAI, "is not a time"),
        ("2026-07-01T18:00:00", SHANGHAI, "is not a time"),
        ("2026-07-01T18:00+08:00", SHANGHAI, "is not a time"),
        ("2026-02-30", SHANGHAI, "is not a time"),
        ("2026-07-01T25:00:00+08:00", SHANGHAI, "is not a time"),
        ("2026-7-1", SHANGHAI, "is not a time"),
        ("20260701", SHANGHAI, "is not a time"),
        ("２０２６-07-01", SHANGHAI, "is not a time"),
        ("2026-07-01T18:00:00+99:00", SHANGHAI, "is not a time"),
        ("0001-01-01T00:00:00+08:00", SHANGHAI, "does not"),
        ("2026-07-01T18:00:00Z", SHANGHAI, "2026-07-01T18:00:00+08:00 would be one"),
        ("2026-07-01T18:00:00+09:00", SHANGHAI, "an offset that Asia/Shanghai does not have then"),
        ("2026-12-01T18:00:00+02:00", BERLIN, "an offset that Europe/Berlin does not have then"),
        ("2026-03-29T02:30:00+01:00", BERLIN, "an offset that"),  # the hour that is left out
        ("2026-03-29T02:30:00+02:00", BERLIN, "an offset that"),
    ],
)
def test_any_other_time_is_a_fault(text: str, zone: ZoneInfo, words: str) -> None:
    fault = faults_of(a_task(time={"start": text}), zone)
    assert len(fault) == 1
    assert fault[0].startswith("c1.tasks[0].time.start: ")
    if words != "does not":
        assert words in fault[0]


@pytest.mark.parametrize(
    ("start", "due", "fine"),
    [
        ("2026-07-01", "2026-07-01", True),
        ("2026-07-02", "2026-07-01", False),
        ("2026-07-01T18:00:00+08:00", "2026-07-01", True),
        ("2026-07-01", "2026-07-01T00:00:00+08:00", True),
        ("2026-07-02", "2026-07-01T23:00:00+08:00", False),
        ("2026-07-01T18:00:00+08:00", "2026-07-01T17:59:59+08:00", False),
        ("2026-07-01T18:00:00+08:00", "2026-07-01T18:00:00+08:00", True),
    ],
)
def test_the_start_is_not_after_the_due_time(start: str, due: str, fine: bool) -> None:  # noqa: FBT001 - a table
    faults = faults_of(a_task(time={"start": start, "due": due}))
    assert faults == (() if fine else (f"c1.tasks[0].time: start {start} is after due {due}",))


# --- quotes


@pytest.mark.parametrize(
    ("source", "quote", "wording", "check"),
    [
        ("周五 18:00 前交表", "18:00 前", "18:00 前", "exact"),
        ("周五\n 18:00 前", "周五 18:00", "周五\n 18:00", "repaired"),
        ("周五 １８：００ 前", "18:00", "１８：００", "repaired"),
        ("ＡＢＣ１２３", "ABC123", "ＡＢＣ１２３", "repaired"),
        ("地点:Ａ101(二楼)", "A101(二楼)", "Ａ101(二楼)", "repaired"),
        ("Cafe\u0301 at noon", "Café at", "Cafe\u0301 at", "repaired"),
        ("Café at noon", "Cafe\u0301 at", "Café at", "repaired"),
        ("㍿の件", "株式", "㍿", "repaired"),
        ("\u1100\u1161\u11a8자 준비", "각자", "\u1100\u1161\u11a8자", "repaired"),
        ("a\u3000b", "a b", "a\u3000b", "repaired"),
        ("🎉周五", "🎉周", "🎉周", "exact"),
    ],
)
def test_a_quote_that_occurs_is_kept_in_the_sources_own_wording(
    source: str, quote: str, wording: str, check: str
) -> None:
    record = SessionRecord(batch_of({"c1": [source]}))
    task = a_task(quotes=[{"ref": "m1", "text": quote}])
    verdict = check_submission(record, SHANGHAI, JUDGE, submission({"c1": [task]}))
    assert verdict.faults == ()
    assert verdict.accepted["c1"]["tasks"][0]["quotes"][0]["text"] == wording
    assert verdict.accepted["c1"]["tasks"][0]["quotes"][0]["check"] == check


@settings(deadline=None)
@given(st.text(min_size=1), st.text(), st.text())
def test_every_part_of_a_text_is_a_quote_of_it(part: str, before: str, after: str) -> None:
    source = before + part + after
    record = SessionRecord(batch_of({"c1": [source]}))
    task = a_task(quotes=[{"ref": "m1", "text": part}])
    verdict = check_submission(record, SHANGHAI, JUDGE, submission({"c1": [task]}))
    if part.strip():
        assert verdict.faults == ()
        assert verdict.accepted["c1"]["tasks"][0]["quotes"][0]["text"] in source


def test_stacked_accents_do_not_slow_the_comparison() -> None:
    record = SessionRecord(batch_of({"c1": ["a" + "\u0301\u0323" * 20_000]}))
    task = a_task(quotes=[{"ref": "m1", "text": "b"}])
    assert check_submission(record, SHANGHAI, JUDGE, submission({"c1": [task]})).faults


# --- once, and in agreement


def test_a_new_task_submitted_twice_is_a_fault_of_the_second() -> None:
    verdict = verdict_on(submission({"c1": [a_task(), a_task(notes="again")], "c2": []}))
    assert verdict.faults == ("c1.tasks[1]: is the same task as c1.tasks[0]; submit a task once",)
    other_day = a_task(time={"due": "2026-07-04"})
    assert verdict_on(submission({"c1": [a_task(), other_day], "c2": []})).faults == ()


def test_an_earlier_task_updated_twice_by_one_conversation_is_a_fault() -> None:
    tasks = [a_task(task_ref="t1"), a_task(task_ref="t1", title="另一个")]
    faults = verdict_on(submission({"c1": tasks, "c2": []})).faults
    assert faults == ("c1.tasks[1]: updates the same task as c1.tasks[0]; submit a task once",)


def test_two_conversations_that_update_one_task_must_agree_or_both_fail() -> None:
    ours = a_task(task_ref="t1", priority="P1")
    theirs = a_task(task_ref="t1", sources=["m3"], priority="P2", location="礼堂")
    verdict = verdict_on(submission({"c1": [ours], "c2": [theirs]}))
    assert verdict.accepted == {}
    words = "both must agree, they differ in priority, location"
    assert verdict.faults == (
        f"c1.tasks[0]: updates the same task as c2.tasks[0]; {words}",
        f"c2.tasks[0]: updates the same task as c1.tasks[0]; {words}",
    )
    agreeing = a_task(task_ref="t1", sources=["m3"], priority="P1")
    assert verdict_on(submission({"c1": [ours], "c2": [agreeing]})).faults == ()


def test_every_conversation_is_given_exactly_once() -> None:
    one = submission({"c1": [a_task()]})["conversations"][0]
    twice = verdict_on({"conversations": [one, one]})
    assert twice.faults == (
        "c1: is given twice; give every conversation exactly once",
        "c2: is missing; give every conversation exactly once",
    )
    assert twice.accepted == {}
    unknown = verdict_on({"conversations": [one, {"id": "c9", "tasks": []}, 5, {"id": None}]})
    assert list(unknown.accepted) == ["c1"]
    assert unknown.faults[0] == 'conversations[1].id: "c9" is no conversation of this document (c1, c2)'
    assert unknown.refused == {"c2": ("c2: is missing; give every conversation exactly once",)}


def test_an_empty_list_needs_its_reason() -> None:
    for reason in (None, "", "  "):
        entries = [{"id": ref, "tasks": [], "no_task_reason": reason} for ref in TEXTS]
        verdict = verdict_on({"conversations": entries})
        assert verdict.accepted == {}
        assert verdict.faults[0] == "c1.no_task_reason: an empty list of tasks needs its reason"
    verdict = verdict_on({"conversations": [{"id": "c1"}, {"id": "c2", "tasks": {}}]})
    assert verdict.faults == tuple(f"{c}.tasks: must be a list; [] when there is no task" for c in TEXTS)


def test_a_fault_never_carries_a_long_or_multi_line_value() -> None:
    faults = faults_of(a_task(priority="x\n" * 10_000, sources=["y" * 10_000], task_ref="\x1b[31m\ud800"))
    assert len(faults) == 3
    assert all(len(fault) < 200 and "\n" not in fault and "\x1b" not in fault for fault in faults)
    for fault in faults:
        fault.encode()


# --- any value at all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
REFS = st.sampled_from(
    ["c1", "c2", "m1", "m2", "m3", "f1:b1", "f2:b1", "f1", "t1", "P1", "open", "", "2026-07-01"]
)
TASK_KEYS = st.sampled_from([*new_task("x", []), "due", "start", "original", "ref", "text", "name", "role"])
SHAPED = st.recursive(
    REFS | JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TASK_KEYS, inner, max_size=8),
    max_leaves=12,
)
ENTRY = st.fixed_dictionaries(
    {"id": REFS | JSON, "tasks": st.lists(SHAPED | st.dictionaries(TASK_KEYS, SHAPED)) | JSON},
    optional={"no_task_reason": JSON},
)


def holds(verdict: Verdict) -> None:
    """What is true of every verdict."""
    assert set(verdict.accepted) | set(verdict.refused) == set(TEXTS)
    assert not set(verdict.accepted) & set(verdict.refused)
    assert bool(verdict.faults) or set(verdict.accepted) == set(TEXTS)
    json.dumps(verdict.accepted, ensure_ascii=False, allow_nan=False).encode()
    for fault in verdict.faults:
        fault.encode()
    for ref, outcome in verdict.accepted.items():
        own = {f"qq:{message}" for message in ("m1", "m2")} if ref == "c1" else {"qq:m3", "qq:m4"}
        assert outcome["tasks"] or outcome["no_task_reason"]
        for task in outcome["tasks"]:
            assert task["sources"]
            assert set(task["sources"]) <= own
            assert 1 <= len(task["title"]) <= 200


@settings(deadline=None)
@given(JSON)
def test_no_json_value_breaks_the_checker(value: object) -> None:
    holds(verdict_on(value))


@settings(deadline=None)
@given(st.fixed_dictionaries({"conversations": st.lists(ENTRY, max_size=3)}))
def test_no_shape_of_submission_breaks_the_checker(value: object) -> None:
    holds(verdict_on(value))


@settings(deadline=None)
@given(st.sampled_from(sorted(new_task("x", []))), SHAPED)
def test_one_wrong_field_is_a_fault_of_that_task_or_harmless(key: str, value: object) -> None:
    verdict = verdict_on(submission({"c1": [{**a_task(), key: value}], "c2": []}))
    holds(verdict)
    assert "c2" in verdict.accepted
    assert all(fault.startswith("c1.tasks[0]") for fault in verdict.faults)
