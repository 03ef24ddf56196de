"""The wire: every fault of an endpoint that model.md lists, over a real server on loopback."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatproc.agent import bounded
from chatproc.agent.client import ChatClient, Endpoint, Reply
from chatproc.config import AgentConfig
from chatproc.errors import ConfigError, CredentialError
from tests.batches import KEY, RULES, Waits, batch_of, outcomes, run, session
from tests.sse import (
    EMPTY,
    USAGE,
    Answer,
    ModelServer,
    call,
    call_delta,
    calls,
    chunk,
    events,
    failure,
    new_task,
    no_tasks,
    one_task_each,
    page,
    prose,
    redirect,
    stream,
    submission,
    submits,
)

WHOLE = submits({"c1": [new_task("交表", ["m1"])]})
UNFINISHED = WHOLE.first(-3)
"""Without the finish_reason, the usage and DONE."""
NOTHING: dict[str, list[dict[str, Any]]] = {"c1": []}


def title_of(result: Any) -> str:  # noqa: ANN401 - a SessionResult
    title: str = result.conversations[0]["tasks"][0]["title"]
    return title


# --- one request, tried again


PASSING = {
    "429": failure(429),
    "408": failure(408),
    "500": failure(500),
    "503 with a page": page(status=503),
    "529": failure(529),
    "reset before a byte": Answer().then("reset"),
    "reset inside the reply": UNFINISHED.then("reset"),
    "connection lost inside the reply": UNFINISHED.then("drop"),
    "connection lost inside an event": UNFINISHED.only(-9).then("drop"),
    "stream without finish_reason": stream(
        call_delta("submit_tasks", submission({"c1": [new_task("交表", ["m1"])]})), finish=None
    ),
    "stream ends after half the arguments": events(chunk(call_delta("submit_tasks", '{"conv')), done=False),
    "error object in the stream": events(
        chunk({"content": "x"}), {"error": {"message": "overloaded", "type": "server_error"}}
    ),
    "something else than JSON in the stream": events("not json at all"),
    "bytes that are not UTF-8": Answer((b"data: \xff\xfe\n\n",)),
    "empty body": EMPTY,
    "only DONE": events(),
    "HTML page instead of a stream": page(),
    "silence before a byte": Answer().then("hang"),
    "silence inside the reply": UNFINISHED.then("hang"),
    "connection lost inside an error": failure(500).only(-9).then("drop"),
    "silence inside an error": failure(429).only(-9).then("hang"),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_passing_fault_is_tried_again_and_the_reply_counts_once(fault: Answer) -> None:
    waits = Waits()
    with ModelServer([fault, WHOLE]) as server:
        result = run(server, waits=waits, timeout_seconds=0.3)
        assert server.requests[0].body == server.requests[1].body
    assert title_of(result) == "交表"
    assert result.usage["requests"] == 2
    assert len(waits.seconds) == 1
    assert result.error is None


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (failure(429), "rate_limited"),
        (failure(503), "server"),
        (EMPTY, "protocol"),
        (Answer().then("hang"), "timeout"),
        (Answer().then("reset"), "network"),
    ],
)
def test_a_fault_that_stays_ends_the_session_after_the_retries(fault: Answer, kind: str) -> None:
    waits = Waits()
    with ModelServer([fault] * 9) as server:
        result = run(server, waits=waits, timeout_seconds=0.2, retries=3)
        assert len(server.requests) == 4
    assert result.error is not None
    assert result.error["kind"] == kind
    assert outcomes(result) == {"c1": "failed"}
    assert "after 4 tries" in result.conversations[0]["reason"]
    assert len(waits.seconds) == 3


def test_backoff_grows_with_jitter() -> None:
    waits = Waits()
    with ModelServer([failure(500)] * 5) as server:
        run(server, waits=waits)
    for wait, longest in zip(waits.seconds, (1, 2, 4, 8), strict=True):
        assert longest / 2 <= wait <= longest


@pytest.mark.parametrize(("header", "wait"), [("7", 7.0), ("0", 0.0), ("60", 60.0)])
def test_retry_after_up_to_a_minute_is_honoured(header: str, wait: float) -> None:
    waits = Waits()
    with ModelServer([failure(429, Retry_After=header), no_tasks]) as server:
        run(server, waits=waits)
    assert waits.seconds == [wait]


def test_retry_after_as_a_date_is_honoured() -> None:
    waits = Waits()
    header = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    with ModelServer([failure(503, Retry_After=header), no_tasks]) as server:
        run(server, waits=waits)
    assert 0 < waits.seconds[0] <= 40


@pytest.mark.parametrize("header", ["61", "3600", "soon", "-", "nan", "inf"])
def test_a_retry_after_that_is_too_long_or_unreadable_gives_the_usual_backoff(header: str) -> None:
    waits = Waits()
    with ModelServer([failure(429, Retry_After=header), no_tasks]) as server:
        run(server, waits=waits)
    assert 0.5 <= waits.seconds[0] <= 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failure(400), "bad_request"),
        (failure(404), "bad_request"),
        (failure(401), "refused"),
        (failure(403), "refused"),
        (failure(402), "quota"),
        (failure(429, {"error": {"message": "out", "code": "insufficient_quota"}}), "quota"),
        (failure(429, {"error": {"message": "You exceeded your current quota", "type": "x"}}), "quota"),
        (events({"error": {"message": "out", "code": "insufficient_quota"}}), "quota"),
        (WHOLE.with_headers(Content_Encoding="gzip"), "protocol"),
        (failure(400).with_headers(Content_Encoding="gzip"), "protocol"),
        (
            stream(*[call_delta("search_tasks", "{}", index=None, ident=f"c{it}") for it in range(300)]),
            "protocol",
        ),
    ],
)
def test_what_will_not_pass_is_not_tried_again(answer: Answer, kind: str) -> None:
    with ModelServer([answer, no_tasks]) as server:
        result = run(server)
        assert len(server.requests) == 1
    assert result.error is not None
    assert result.error["kind"] == kind
    assert outcomes(result) == {"c1": "failed"}


def test_no_error_shows_the_key_or_a_control_character() -> None:
    echo = failure(400, {"error": {"message": f"bad key {KEY}\x1b[31m\nsecond line"}})
    with ModelServer([echo]) as server:
        result = run(server)
    text = json.dumps(result.to_dict())
    assert KEY not in text
    assert "\\u001b" not in text
    assert "second line" in text


def endless(start: Answer, piece: bytes) -> Answer:
    """Far more than any reply; the client goes in the middle of it."""
    return replace(start, pieces=(*start.pieces, *[piece * 1000] * 4000))


@pytest.mark.parametrize(
    "answer",
    [
        endless(EMPTY, b"data: one line with no end "),
        endless(EMPTY, b": nothing but comments, again and again\n"),
        endless(events(chunk({"content": "x"}), done=False), b"data: and an event that never ends\n"),
        endless(failure(400), b"and the page of an error"),
        endless(failure(503), b"and the page of an error"),
    ],
    ids=["a line", "comments", "an event", "an error", "an error that would pass"],
)
def test_an_endless_answer_is_given_up(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "LARGEST_ANSWER", 2 << 20)
    with ModelServer([answer, no_tasks]) as server:
        result = run(server)
        assert len(server.requests) == 1
    assert result.error == {
        "kind": "protocol",
        "reason": "an answer of more than 2 MB",
        "hint": "check agent.base_url",
    }


def test_a_reply_that_is_whole_counts_whatever_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "LARGEST_ANSWER", 2 << 20)
    with ModelServer([endless(WHOLE, b": and on and on\n")]) as server:
        assert title_of(run(server)) == "交表"


def test_a_server_that_is_not_there_is_a_failed_session() -> None:
    with ModelServer([]) as server:
        pass
    result = run(server, retries=1)
    assert result.error is not None
    assert result.error["kind"] == "network"


# --- what is sent, and to whom


def test_redirects_are_never_followed() -> None:
    with ModelServer([no_tasks]) as elsewhere, ModelServer([redirect(elsewhere.base_url)]) as server:
        result = run(server)
        assert len(server.requests) == 1
        assert not elsewhere.requests
    assert result.error is not None
    assert result.error["kind"] == "redirect"


def test_nothing_of_the_environment_reaches_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([no_tasks]) as elsewhere, ModelServer([failure(500), no_tasks]) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, elsewhere.base_url.removesuffix("/v1"))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.setenv("OPENAI_BASE_URL", elsewhere.base_url)
        for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET"):
            monkeypatch.setenv(f"OPENAI_{name}", "leak-of-the-environment")
        leak = "Authorization: Bearer leak\nX-Leak: leak-of-the-environment"
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", leak)
        run(server)
        assert not elsewhere.requests
        for request in server.requests:
            assert "leak" not in json.dumps(request.headers)
            assert request.headers["authorization"] == f"Bearer {KEY}"
            assert set(request.headers) <= {
                *("host", "accept", "accept-encoding", "connection", "user-agent"),
                *("content-type", "content-length", "authorization"),
            }


def test_a_request_holds_the_system_text_the_document_and_the_tools_and_nothing_else() -> None:
    batch = batch_of()
    with ModelServer([no_tasks]) as server:
        run(server, batch)
        body = server.requests[0].json
    assert list(body) == [
        "model",
        "messages",
        "stream",
        "tools",
        "tool_choice",
        "stream_options",
        "max_tokens",
    ]
    system, user = body["messages"]
    assert system["role"] == "system"
    assert system["content"].endswith(RULES)
    assert user == {"role": "user", "content": batch["document"]}
    assert body["stream"] is True
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == ["read_attachment", "find_related_tasks", "submit_tasks"]
    assert "qq:m1" not in server.requests[0].body.decode()
    assert "g_c1" not in server.requests[0].body.decode()


def test_an_endpoint_without_a_key_gets_no_authorization() -> None:
    with ModelServer([no_tasks]) as server:
        run(server, key=None)
        assert "authorization" not in server.requests[0].headers


def test_the_key_is_read_before_each_request() -> None:
    keys = iter(["first", "second"])
    with ModelServer([failure(500), no_tasks]) as server:
        run(server, key=lambda: next(keys))
        sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer first", "Bearer second"]


def test_a_missing_credential_is_the_callers_error() -> None:
    def none_found() -> str:
        raise CredentialError("no key")

    with ModelServer([no_tasks]) as server:
        with pytest.raises(CredentialError):
            run(server, key=none_found)
        assert not server.requests


def test_plain_http_to_another_machine_needs_leave() -> None:
    for url in ("http://example.org/v1", "http://localhost.example.org/v1", "http://10.0.0.1/v1"):
        with pytest.raises(ConfigError):
            ChatClient(Endpoint(url, "m", lambda: None), AgentConfig())
        ChatClient(Endpoint(url, "m", lambda: None), AgentConfig(allow_http=True))
    for url in ("http://127.0.0.1:1/v1", "http://[::1]:1/v1", "http://localhost/v1", "https://10.0.0.1/v1"):
        ChatClient(Endpoint(url, "m", lambda: None), AgentConfig())


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"tool_choice": ""}, {"tool_choice": None}),
        ({"max_tokens_field": "max_completion_tokens", "max_output_tokens": 7}, {"max_completion_tokens": 7}),
        ({"max_tokens_field": ""}, {"max_tokens": None, "max_completion_tokens": None}),
        ({"stream_usage": False}, {"stream_options": None}),
        ({"stream_usage": True}, {"stream_options": {"include_usage": True}}),
        ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        ({}, {"parallel_tool_calls": None}),
        ({"extra_body": {"top_k": 1, "seed": 7}}, {"top_k": 1, "seed": 7}),
    ],
)
def test_the_ways_of_an_endpoint_are_sent_as_configured(keys: dict[str, Any], sent: dict[str, Any]) -> None:
    with ModelServer([no_tasks]) as server:
        run(server, **keys)
        body = server.requests[0].json
    assert {name: body.get(name) for name in sent} == sent


def test_strict_tools_have_every_key_required_and_no_other_allowed() -> None:
    def check(schema: dict[str, Any]) -> int:
        if schema.get("type") != "object":
            return check(schema["items"]) if "items" in schema else 0
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])
        return 1 + sum(map(check, schema["properties"].values()))

    with ModelServer([no_tasks]) as server:
        run(server, strict_tools=True)
        functions = [tool["function"] for tool in server.requests[0].json["tools"]]
    assert all(function["strict"] for function in functions)
    assert sum(check(function["parameters"]) for function in functions) == 8
    start = functions[0]["parameters"]["properties"]["start"]
    assert start["type"] == ["integer", "null"]


def test_a_session_for_submitting_only_offers_only_that() -> None:
    with ModelServer([no_tasks]) as server:
        run(server, tools="submit", tool_choice="required")
        body = server.requests[0].json
    assert [tool["function"]["name"] for tool in body["tools"]] == ["submit_tasks"]
    assert body["tool_choice"] == "required"
    assert "read_attachment" not in body["messages"][0]["content"]


# --- replies in every shape


@pytest.mark.parametrize("end", ["close", "drop", "reset", "hang"])
def test_a_reply_with_its_finish_reason_is_whole_whatever_breaks_then(end: str) -> None:
    with ModelServer([WHOLE.first(-2).then(end)]) as server:
        result = run(server, timeout_seconds=0.3)
        assert len(server.requests) == 1
    assert title_of(result) == "交表"
    assert result.usage["input_tokens"] is None


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_reply_survives_any_fragmentation(size: int) -> None:
    with ModelServer([WHOLE.cut_every(size)]) as server:
        assert title_of(run(server)) == "交表"


def test_arguments_in_many_deltas_are_put_together() -> None:
    text = json.dumps(submission({"c1": [new_task("交表", ["m1"])]}), ensure_ascii=False)
    first = call_delta("submit_tasks", "")
    rest = [{"tool_calls": [{"index": 0, "function": {"arguments": mark}}]} for mark in text]
    with ModelServer([stream(first, *rest, finish="tool_calls")]) as server:
        assert title_of(run(server)) == "交表"


def halves_of(
    index: int | None, *, with_id: bool, with_name: bool, ident: str = "call_a"
) -> list[dict[str, Any]]:
    """One call in two deltas, of which the second may leave out or repeat index, id and name."""
    text = json.dumps(submission({"c1": [new_task("交表", ["m1"])]}), ensure_ascii=False)
    first = call_delta("submit_tasks", text[:40], index=index, ident=ident)
    second: dict[str, Any] = {"function": {"arguments": text[40:]}}
    if index is not None:
        second["index"] = index
    if with_id:
        second["id"] = ident
    if with_name:
        second["function"]["name"] = "submit_tasks"
    return [first, {"tool_calls": [second]}]


@pytest.mark.parametrize("index", [None, 0, 3])
@pytest.mark.parametrize("with_id", [True, False])
@pytest.mark.parametrize("with_name", [True, False])
def test_a_call_in_pieces_is_one_call_and_its_name_is_set_once(
    index: int | None,
    with_id: bool,  # noqa: FBT001 - a table
    with_name: bool,  # noqa: FBT001
) -> None:
    with ModelServer([stream(*halves_of(index, with_id=with_id, with_name=with_name))]) as server:
        assert title_of(run(server)) == "交表"


def test_an_id_that_changes_with_every_piece_is_still_one_call() -> None:
    first, second = halves_of(0, with_id=True, with_name=False)
    second["tool_calls"][0]["id"] = "call_b"
    with ModelServer([stream(first, second)]) as server:
        assert title_of(run(server)) == "交表"


@pytest.mark.parametrize("index", [None, 0])
@pytest.mark.parametrize("idents", [("call_a", "call_b"), (None, None)])
def test_whole_calls_without_index_or_with_equal_index_are_separate_calls(
    index: int | None, idents: tuple[str | None, str | None]
) -> None:
    deltas = [
        call_delta("find_related_tasks", {"query": word}, index=index, ident=ident)
        for word, ident in zip(("one", "two"), idents, strict=True)
    ]
    queries: list[str] = []

    def search(query: dict[str, Any]) -> dict[str, Any]:
        queries.append(query["query"])
        return {"total": 0, "tasks": []}

    with ModelServer([stream(*deltas, finish="tool_calls"), no_tasks]) as server:
        run(server, search=search)
        history = server.requests[1].json["messages"]
    assert queries == ["one", "two"]
    asked = history[2]["tool_calls"]
    assert len({call["id"] for call in asked}) == 2
    assert [message["tool_call_id"] for message in history[3:]] == [call["id"] for call in asked]


def test_parallel_calls_all_run_in_their_order() -> None:
    wanted = [("find_related_tasks", {"query": str(number)}) for number in range(5)]
    queries: list[str] = []

    def search(query: dict[str, Any]) -> dict[str, Any]:
        queries.append(query["query"])
        return {"total": 0, "tasks": []}

    with ModelServer([calls(*wanted), no_tasks]) as server:
        result = run(server, search=search)
    assert queries == ["0", "1", "2", "3", "4"]
    assert outcomes(result) == {"c1": "accepted"}


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=12), min_size=1), min_size=1, max_size=4),
    st.sampled_from(["index", "id", "both"]),
    st.data(),
)
def test_calls_come_back_whole_from_any_fragments(
    wanted: list[dict[str, str]], told_by: str, data: st.DataObject
) -> None:
    reply = Reply()
    for number, arguments in enumerate(wanted):
        text = json.dumps(arguments)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        for at, (start, end) in enumerate(pairwise([0, *cuts, len(text)])):
            piece: dict[str, Any] = {"function": {"arguments": text[start:end]}}
            if told_by != "id":
                piece["index"] = number
            if told_by != "index" and (at == 0 or data.draw(st.booleans())):
                piece["id"] = f"call_{number}"
            if at == 0 or data.draw(st.booleans()):
                piece["function"]["name"] = f"tool_{number}"
            reply.feed(chunk({"tool_calls": [piece]}))
    assert [call.name for call in reply.calls] == [f"tool_{number}" for number in range(len(wanted))]
    assert [json.loads(call.arguments) for call in reply.calls] == wanted


def test_arguments_given_as_an_object_are_taken() -> None:
    piece = {"index": 0, "id": "x", "function": {"name": "submit_tasks", "arguments": submission(NOTHING)}}
    with ModelServer([stream({"tool_calls": [piece]})]) as server:
        assert outcomes(run(server)) == {"c1": "accepted"}


def test_an_id_that_comes_again_in_another_turn_stays_unique_in_the_history() -> None:
    find = call("find_related_tasks", {"query": "x"})
    with ModelServer([find, find, find, no_tasks]) as server:
        assert outcomes(run(server)) == {"c1": "accepted"}
        history = server.requests[3].json["messages"]
    ids = [call["id"] for message in history for call in message.get("tool_calls", ())]
    assert len(set(ids)) == 3


def test_halves_of_a_character_in_two_deltas_are_joined() -> None:
    text = json.dumps(submission({"c1": [new_task("🎉交表", ["m1"])]}), ensure_ascii=False)
    at = text.index("🎉")
    pieces = [text[:at], "\ud83c", "\udf89", text[at + 1 :]]
    deltas = [json.dumps(chunk({"tool_calls": [{"index": 0, "function": {"arguments": p}}]})) for p in pieces]
    answer = events(chunk(call_delta("submit_tasks", "")), *deltas, chunk(finish="tool_calls"))
    with ModelServer([answer]) as server:
        assert title_of(run(server)) == "🎉交表"


def test_a_lone_half_of_a_character_in_arguments_is_replaced_and_goes_back_as_utf8() -> None:
    bad = '{"conversations":[{"id":"c1","tasks":[{"title":"\\ud800"}]}]}'
    with ModelServer([call("submit_tasks", bad), no_tasks]) as server:
        assert outcomes(run(server)) == {"c1": "accepted"}
        sent_back = server.requests[1].json["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent_back)["conversations"][0]["tasks"][0]["title"] == "\ufffd"


MALFORMED = {
    "half an object": '{"conversations": [',
    "a list": "[1, 2]",
    "a text": '"submit"',
    "a number that JSON has not": '{"conversations": NaN}',
    "nested too deeply": '{"conversations": ' + "[" * 500 + "]" * 500 + "}",
    "nested beyond reason": '{"conversations": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "a number of many digits": '{"conversations": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_arguments_are_fed_back_and_use_no_attempt(text: str) -> None:
    bad = call("submit_tasks", text)
    with ModelServer([bad, bad, bad, bad, no_tasks]) as server:
        assert outcomes(run(server)) == {"c1": "accepted"}
        for request in server.requests[1:]:
            assert request.json["messages"][-1]["content"].startswith("Not run: the arguments")
            arguments = request.json["messages"][-2]["tool_calls"][0]["function"]["arguments"]
            assert json.loads(arguments) == {}


def test_a_call_cut_off_at_the_output_limit_is_rejected_and_asked_again() -> None:
    whole_but_cut = call("submit_tasks", submission(NOTHING), finish="length")
    half = call("submit_tasks", '{"conversations":[{"id"', finish="length")
    with ModelServer([whole_but_cut, half, no_tasks]) as server:
        result = run(server, submit_attempts=1)
        feedback = [request.json["messages"][-1] for request in server.requests[1:]]
    assert outcomes(result) == {"c1": "accepted"}
    assert all(message["role"] == "tool" for message in feedback)
    assert all("cut off at the output limit" in message["content"] for message in feedback)


def test_a_call_of_a_tool_that_is_not_offered_is_answered_and_harmless() -> None:
    with ModelServer([call("delete_everything", {}), call("", {}), no_tasks]) as server:
        assert outcomes(run(server)) == {"c1": "accepted"}
        assert server.requests[1].json["messages"][-1]["role"] == "tool"


TEXT_CALL = json.dumps({"name": "submit_tasks", "arguments": submission(NOTHING)}, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        TEXT_CALL,
        f"\n  {TEXT_CALL}\n",
        f"```json\n{TEXT_CALL}\n```",
        f"```\n{TEXT_CALL}\n```\n",
        json.dumps({"name": "submit_tasks", "arguments": json.dumps(submission(NOTHING))}),
    ],
)
def test_an_object_in_the_text_that_is_a_call_and_nothing_else_is_that_call(text: str) -> None:
    with ModelServer([prose(text)]) as server:
        result = run(server)
        assert len(server.requests) == 1
    assert outcomes(result) == {"c1": "accepted"}


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is: {TEXT_CALL}",
        f"```json\n{TEXT_CALL}\n```\nDone.",
        f"<tool_call>{TEXT_CALL}</tool_call>",
        json.dumps({"name": "delete_tasks", "arguments": {}}),
        json.dumps({"name": "submit_tasks", "arguments": submission(NOTHING), "id": 1}),
        json.dumps({"name": "submit_tasks", "arguments": [1]}),
        json.dumps(submission(NOTHING)),
        f"[{TEXT_CALL}]",
        f"```json\n{TEXT_CALL}\n```\n```json\n{TEXT_CALL}\n```",
    ],
)
def test_any_other_text_is_prose_and_no_call(text: str) -> None:
    with ModelServer([prose(text), no_tasks]) as server:
        run(server)
        assert len(server.requests) == 2
        assert server.requests[1].json["messages"][-1]["role"] == "user"


def test_content_is_never_null_in_what_is_sent() -> None:
    null = stream({"content": None, **call_delta("find_related_tasks", {})}, finish="tool_calls")
    with ModelServer([null, stream(finish="stop"), no_tasks]) as server:
        run(server)
        messages = server.requests[-1].json["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert all(isinstance(message["content"], str) for message in messages)
    assert messages[2]["content"] == ""
    assert messages[4]["content"] == ""


@pytest.mark.parametrize("wanted", [True, False])
def test_reasoning_goes_back_where_that_is_wanted(wanted: bool) -> None:  # noqa: FBT001 - a table
    thinking = [{"reasoning_content": "Let me "}, {"reasoning_content": "see."}]
    answer = stream(*thinking, call_delta("find_related_tasks", {}), finish="tool_calls")
    with ModelServer([answer, no_tasks]) as server:
        run(server, send_back_reasoning=wanted)
        message = server.requests[1].json["messages"][2]
    assert message.get("reasoning_content") == ("Let me see." if wanted else None)
    assert message["content"] == ""


def test_chunks_of_wrong_types_break_nothing() -> None:
    odd: list[Any] = [
        *({}, [], 1, None, {"choices": None}, {"choices": [None]}, {"choices": [{"delta": 3}]}),
        {"choices": [{"delta": {"content": [1], "tool_calls": "x", "reasoning_content": {}}}]},
        {"choices": [{"delta": {"tool_calls": [None, {"function": None, "index": "0", "id": 5}]}}]},
        {"choices": [{"finish_reason": 7}], "usage": [1]},
    ]
    with ModelServer([events(*odd, *[chunk(finish="stop")]), no_tasks]) as server:
        result = run(server)
    assert outcomes(result) == {"c1": "accepted"}
    assert result.usage["input_tokens"] is None


# --- usage


def test_usage_is_added_up() -> None:
    with ModelServer([call("find_related_tasks", {}), no_tasks]) as server:
        assert run(server).usage == {
            "requests": 2,
            "input_tokens": 2000,
            "output_tokens": 100,
            "cached_tokens": 400,
        }


def test_usage_inside_a_choice_is_found() -> None:
    last = chunk(finish="tool_calls")
    last["choices"][0]["usage"] = USAGE
    answer = events(chunk(call_delta("submit_tasks", submission(NOTHING))), last)
    with ModelServer([answer]) as server:
        usage = run(server).usage
    assert (usage["input_tokens"], usage["output_tokens"]) == (1000, 50)


def test_missing_usage_is_unknown_and_never_zero() -> None:
    with ModelServer(
        [call("find_related_tasks", {}), call("submit_tasks", submission(NOTHING), usage=None)]
    ) as server:
        assert run(server).usage == {
            "requests": 2,
            "input_tokens": None,
            "output_tokens": None,
            "cached_tokens": None,
        }


def test_usage_without_a_word_on_the_cache_leaves_only_that_unknown() -> None:
    plain = {"prompt_tokens": 10, "completion_tokens": 0}
    with ModelServer([call("submit_tasks", submission(NOTHING), usage=plain)]) as server:
        usage = run(server).usage
    assert usage == {"requests": 1, "input_tokens": 10, "output_tokens": 0, "cached_tokens": None}


# --- ends


def test_cancelling_closes_the_connection_and_passes_on() -> None:
    async def cancel_while_the_model_thinks(server: ModelServer) -> None:
        task = asyncio.create_task(session(server, timeout_seconds=60.0))
        await asyncio.to_thread(server.arrived.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ModelServer([UNFINISHED.then("hang")]) as server:
        asyncio.run(cancel_while_the_model_thinks(server))
        assert server.requests[0].abandoned.wait(10)
        assert len(server.requests) == 1


def test_the_silence_limit_is_no_limit_of_the_whole_reply() -> None:
    answers = [call("find_related_tasks", {"query": str(number)}) for number in range(8)]
    with ModelServer([*answers, one_task_each]) as server:
        assert outcomes(run(server, timeout_seconds=0.5)) == {"c1": "accepted"}
