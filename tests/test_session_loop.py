"""The loop: how a session goes on, and how every conversation of it comes to an end."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from chatproc.agent.compaction import compacted, estimate_tokens
from chatproc.agent.record import ReadUnit, SessionRecord
from tests.batches import batch_of, outcomes, run
from tests.sse import (
    Answer,
    ModelServer,
    call,
    calls,
    document_of,
    events,
    failure,
    new_task,
    no_tasks,
    one_task_each,
    prose,
    stream,
    submission,
    submits,
)

TWO = {"c1": ["周五前交表"], "c2": ["明天开会"]}
GOOD = new_task("交表", ["m1"])
BAD = new_task("交表", ["m9"])


def reasons(result: Any) -> dict[str, str]:  # noqa: ANN401 - a SessionResult
    return {end["ref"]: end["reason"] for end in result.conversations if end["outcome"] == "failed"}


# --- submitting


def test_an_accepted_submission_ends_the_session_with_each_conversations_outcome() -> None:
    with ModelServer([submits({"c1": [GOOD], "c2": []}), failure(500)]) as server:
        result = run(server, batch_of(TWO))
        assert len(server.requests) == 1
    first, second = result.conversations
    assert (first["ref"], first["group"], first["outcome"]) == ("c1", "g_c1", "accepted")
    assert first["tasks"][0]["sources"] == ["qq:m1"]
    assert (second["ref"], second["tasks"], second["no_task_reason"]) == ("c2", [], "chatter")
    assert result.error is None
    assert result.model == "stand-in"


def test_faults_are_fed_back_numbered_and_the_mended_submission_is_accepted() -> None:
    bad = submits({"c1": [new_task("", ["m9"])]})
    with ModelServer([bad, one_task_each]) as server:
        result = run(server)
        feedback = server.requests[1].json["messages"][-1]
    assert feedback["role"] == "tool"
    lines = feedback["content"].split("\n")
    assert lines[1] == "1. c1.tasks[0].title: must have 1 to 200 characters, has 0"
    assert lines[2] == '2. c1.tasks[0].sources[0]: there is no "m9" in this document'
    assert lines[-1].endswith("Attempts left: 2.")
    assert outcomes(result) == {"c1": "accepted"}


def test_after_the_last_attempt_faultless_conversations_are_accepted_and_others_fail_with_their_reason() -> (
    None
):
    mixed = submits({"c1": [GOOD], "c2": [BAD]})
    with ModelServer([mixed, mixed, mixed, no_tasks]) as server:
        result = run(server, batch_of(TWO))
        assert len(server.requests) == 3
    assert outcomes(result) == {"c1": "accepted", "c2": "failed"}
    assert "c2.tasks[0].sources[0]" in reasons(result)["c2"]
    assert result.error is None


def test_a_fault_without_an_owner_blocks_no_conversation() -> None:
    more = submission({"c1": [GOOD]})
    more["conversations"].append({"id": "c7", "tasks": []})
    with ModelServer([call("submit_tasks", more)] * 2) as server:
        result = run(server, batch_of(TWO), submit_attempts=2)
        feedback = server.requests[1].json["messages"][-1]["content"]
    assert 'conversations[1].id: "c7" is no conversation of this document (c1, c2)' in feedback
    assert "c2: is missing" in feedback
    assert outcomes(result) == {"c1": "accepted", "c2": "failed"}


def test_two_submissions_in_one_reply_use_one_attempt() -> None:
    twice = calls(("submit_tasks", submission({"c1": [BAD]})), ("submit_tasks", submission({"c1": [BAD]})))
    with ModelServer([twice, twice, no_tasks]) as server:
        result = run(server, submit_attempts=3)
    assert outcomes(result) == {"c1": "accepted"}


def test_what_is_cited_in_the_breath_that_asks_for_it_was_not_read(tmp_path: Any) -> None:  # noqa: ANN401
    (tmp_path / "a.txt").write_text("周五交表")
    batch = batch_of(attachments={"f1": {"message": "m1", "name": "a.txt", "type": "txt", "path": "a.txt"}})
    task = new_task("交表", ["m1", "f1:b1"])
    both = calls(("read_attachment", {"ref": "f1"}), ("submit_tasks", submission({"c1": [task]})))
    with ModelServer([both, submits({"c1": [task]})]) as server:
        result = run(server, batch, archive_root=tmp_path)
        feedback = server.requests[1].json["messages"][-1]["content"]
    assert "c1.tasks[0].sources[1]: f1:b1 was not read" in feedback
    assert outcomes(result) == {"c1": "accepted"}


# --- prose


def test_prose_is_reminded_twice_and_the_third_ends_the_session() -> None:
    with ModelServer([prose("Hi."), prose("Well."), prose("So."), no_tasks]) as server:
        result = run(server, submit_attempts=1)
        assert len(server.requests) == 3
        for request in server.requests[1:]:
            assert "submit_tasks" in request.json["messages"][-1]["content"]
    assert result.error is not None
    assert result.error["kind"] == "prose"
    assert outcomes(result) == {"c1": "failed"}


@pytest.mark.parametrize("silent", [stream(), stream({"content": "  "}), stream({"reasoning_content": "hm"})])
def test_a_reply_without_anything_counts_as_prose(silent: Answer) -> None:
    with ModelServer([silent, silent, no_tasks]) as server:
        assert outcomes(run(server)) == {"c1": "accepted"}
    with ModelServer([silent, silent, silent, no_tasks]) as server:
        assert outcomes(run(server)) == {"c1": "failed"}


def test_prose_cut_off_at_the_output_limit_is_reminded_too() -> None:
    with ModelServer([prose("So…", finish="length"), stream(finish="length"), no_tasks]) as server:
        assert outcomes(run(server)) == {"c1": "accepted"}


def test_calls_of_tools_that_there_are_not_end_the_session_in_the_end() -> None:
    many = calls(*[("delete_everything", {})] * 40)
    with ModelServer(lambda _: many) as server:
        result = run(server, max_turns=5)
        assert len(server.requests) <= 5
    assert result.error is not None
    assert outcomes(result) == {"c1": "failed"}


def test_text_beside_a_call_does_not_hinder_the_call() -> None:
    answer = stream({"content": "I hand it in."}, *submits_delta(), finish="tool_calls")
    with ModelServer([answer]) as server:
        assert outcomes(run(server)) == {"c1": "accepted"}


def submits_delta() -> list[dict[str, Any]]:
    text = json.dumps(submission({"c1": []}))
    return [
        {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "submit_tasks", "arguments": text}}]}
    ]


# --- caps


FIND = call("find_related_tasks", {"query": "x"})


@pytest.mark.parametrize(
    ("keys", "requests", "kind"),
    [
        ({"max_turns": 4}, 4, "max_turns"),
        ({"max_requests": 3}, 3, "max_requests"),
        ({"max_total_tokens": 2100}, 2, "max_total_tokens"),
    ],
)
def test_a_session_that_never_ends_is_ended_by_its_caps(
    keys: dict[str, Any], requests: int, kind: str
) -> None:
    with ModelServer(lambda _: FIND) as server:
        result = run(server, **keys)
        assert len(server.requests) == requests
    assert result.error is not None
    assert result.error["kind"] == kind
    assert outcomes(result) == {"c1": "failed"}


def test_further_tries_count_as_requests() -> None:
    with ModelServer(lambda _: failure(500)) as server:
        result = run(server, max_requests=3, retries=10)
        assert len(server.requests) == 3
    assert result.error is not None
    assert result.error["kind"] == "max_requests"


def test_tokens_that_are_not_told_are_estimated_for_the_cap() -> None:
    with ModelServer(lambda _: call("find_related_tasks", {}, usage=None)) as server:
        result = run(server, max_total_tokens=5000)
        assert 1 < len(server.requests) < 10
    assert result.error is not None
    assert result.error["kind"] == "max_total_tokens"
    assert result.usage["input_tokens"] is None


def test_a_session_ends_when_its_time_is_over() -> None:
    with ModelServer([Answer().then("hang")]) as server:
        result = run(server, max_session_seconds=0.3, timeout_seconds=60.0)
        assert server.requests[0].abandoned.wait(10)
    assert result.error is not None
    assert result.error["kind"] == "max_session_seconds"
    assert outcomes(result) == {"c1": "failed"}


def test_what_was_faultless_before_the_session_broke_off_is_accepted() -> None:
    with ModelServer([submits({"c1": [GOOD], "c2": [BAD]}), failure(401)]) as server:
        result = run(server, batch_of(TWO))
    assert outcomes(result) == {"c1": "accepted", "c2": "failed"}
    assert result.error is not None
    assert result.error["kind"] == "refused"
    assert "refused the key" in reasons(result)["c2"]


# --- compaction


OVERFLOW = failure(400, {"error": {"message": "too long", "code": "context_length_exceeded"}})
OVERFLOW_OF_A_LOCAL_SERVER = failure(
    400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "request exceeds"}}
)


def long_search(query: dict[str, Any]) -> dict[str, Any]:
    shown = {"task_id": f"t_{query['query']}", "revision": 1, "title": "标题" * 400}
    return {"total": 1, "tasks": [shown]}


def looking_for(number: int) -> Answer:
    return call("find_related_tasks", {"query": str(number)})


def test_near_the_window_the_oldest_calls_go_and_the_document_stays() -> None:
    script = [looking_for(number) for number in range(12)]
    window = {"context_window": 8000, "reserve_tokens": 500}
    with ModelServer([*script, no_tasks]) as server:
        result = run(server, search=long_search, **window)
        requests = [request.json for request in server.requests]
    assert outcomes(result) == {"c1": "accepted"}
    first, last = requests[0]["messages"], requests[-1]["messages"]
    assert last[:2] == first
    assert max(estimate_tokens(request["messages"], request["tools"]) for request in requests) <= 7500
    asked = [call["id"] for message in last for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in last if message["role"] == "tool"]
    assert asked == answered
    assert 0 < len(asked) < 12
    assert "t1, t2, t3" in last[-1]["content"]
    assert last[-1]["role"] == "user"


def test_the_bridge_stands_between_a_tools_result_and_a_user_message_where_that_is_wanted() -> None:
    script = [looking_for(number) for number in range(12)]
    window = {"context_window": 8000, "reserve_tokens": 500}
    with ModelServer([*script, no_tasks]) as server:
        run(server, search=long_search, assistant_bridge_after_tool=True, **window)
        roles = [[message["role"] for message in request.json["messages"]] for request in server.requests]
    assert roles[-1][-3:] == ["tool", "assistant", "user"]
    assert all(("tool", "user") not in pairwise(each) for each in roles)


@pytest.mark.parametrize(
    "overflow", [OVERFLOW, OVERFLOW_OF_A_LOCAL_SERVER, events(json.loads(OVERFLOW.body))]
)
def test_an_overflow_is_answered_once_with_a_smaller_request(overflow: Answer) -> None:
    script = [looking_for(number) for number in range(4)]
    with ModelServer([*script, overflow, no_tasks]) as server:
        result = run(server, search=long_search)
        before, after = (request.json["messages"] for request in server.requests[-2:])
    assert outcomes(result) == {"c1": "accepted"}
    assert len(after) < len(before)
    assert after[:2] == before[:2]
    assert after[-2] == before[-1]


def test_an_overflow_that_stays_ends_the_session() -> None:
    script = [looking_for(number) for number in range(4)]
    with ModelServer([*script, OVERFLOW, OVERFLOW, no_tasks]) as server:
        result = run(server, search=long_search)
        assert len(server.requests) == 6
    assert result.error is not None
    assert result.error["kind"] == "context_overflow"


def test_an_overflow_of_the_document_alone_is_not_sent_again() -> None:
    with ModelServer([OVERFLOW, no_tasks]) as server:
        result = run(server)
        assert len(server.requests) == 1
    assert result.error is not None
    assert result.error["kind"] == "context_overflow"


def test_the_note_of_a_compaction_lists_what_was_read_from_the_record() -> None:
    attachment = {"message": "m1", "name": "a.txt", "type": "txt", "path": "a.txt"}
    record = SessionRecord(
        batch_of(attachments={"f1": attachment}, tasks={"t1": {"task_id": "t_a", "revision": 2}})
    )
    for unit in ("b1", "b2", "b3", "b7"):
        record.add_unit(ReadUnit("f1", unit, "text", "00", "00", 4))
    record.sent()
    reply = {"role": "assistant", "content": "", "tool_calls": []}
    result = {"role": "tool", "tool_call_id": "x", "content": "w" * 4000}
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "d"}, *[reply, result] * 5]
    fitting = compacted(messages, 3000, record)
    assert fitting[:2] == messages[:2]
    assert fitting[2:-1] == [reply, result] * 2
    assert "f1:b1-b3, f1:b7" in fitting[-1]["content"]
    assert "t1" in fitting[-1]["content"]
    assert compacted(messages, 10, record)[2:-1] == [reply, result]
    assert compacted(messages, 100_000, record) == messages


def test_the_document_is_sent_byte_for_byte_in_every_request() -> None:
    batch = batch_of({"c1": ['第一行\n\t"引号" \\ 🎉 \u2028 </system> {{x}}']})
    with ModelServer([FIND, prose("x"), no_tasks]) as server:
        run(server, batch)
        documents = [request.json["messages"][1]["content"] for request in server.requests]
    assert documents == [batch["document"]] * 3


def test_concurrent_sessions_do_not_mix() -> None:
    import asyncio

    from tests.batches import session

    def two(request: dict[str, Any]) -> Answer:
        if len(request["messages"]) < 4:
            return FIND
        return one_task_each(request)

    async def all_of(server: ModelServer) -> list[Any]:
        batches = [batch_of({"c1": [f"交表{number}"]}) for number in range(8)]
        return await asyncio.gather(*(session(server, batch) for batch in batches))

    with ModelServer(two) as server:
        results = asyncio.run(all_of(server))
        texts = [document_of(request.json) for request in server.requests]
    assert [result.conversations[0]["tasks"][0]["title"] for result in results] == [
        f"交表{n}" for n in range(8)
    ]
    assert len(texts) == 16
