"""`check --ping`: what an endpoint does is found out by doing it, over a real loopback server."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.agent.ping import Ping, _told_context, ping_endpoint
from chatproc.config import AgentConfig
from chatproc.errors import ModelError
from tests import sse

if TYPE_CHECKING:
    from collections.abc import Callable


def ping(script: Callable[[dict[str, Any]], sse.Answer], **settings: object) -> tuple[Ping, sse.ModelServer]:
    with sse.ModelServer(script) as server:
        agent = AgentConfig.model_validate({"base_url": server.base_url, "model": "stand-in", **settings})
        return ping_endpoint(agent, lambda: "sk-test"), server


def wish_of(request: dict[str, Any]) -> str:
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else json.dumps(content)


def capable(request: dict[str, Any]) -> sse.Answer:
    """A model that does everything that it is asked."""
    wish, choice = wish_of(request), request.get("tool_choice")
    if isinstance(choice, dict):
        return sse.call(choice["function"]["name"], {"word": "green"})
    if "twice" in wish:
        return sse.calls(("report", {"word": "red"}), ("report", {"word": "green"}))
    if "image_url" in wish:
        return sse.call("report", {"word": "Red"})
    if "code word" in wish:
        return sse.call("report", {"word": wish.split("code word is ")[1].split(".")[0]})
    if "hello" in wish and choice != "required":
        return sse.prose("Hello.")
    return sse.call("report", {"word": "blue"})


def test_an_endpoint_that_does_everything_needs_one_line_for_its_eyes() -> None:
    found, server = ping(capable)
    assert found.answers == {
        "tool call": "yes",
        "usage": "yes",
        "tool_choice required": "yes",
        "tool_choice object": "obeyed",
        "parallel calls": "yes",
        "image": "yes",
        "keeps 6000 tokens": "yes",
    }
    assert found.lines == ["vision = true"]
    assert all(request.json["stream"] for request in server.requests)
    assert all(request.headers["authorization"] == "Bearer sk-test" for request in server.requests)


def plain(request: dict[str, Any]) -> sse.Answer:
    """A small server: no usage, no pictures, one call a reply, a window of 4096 tokens, no object form."""
    if "image_url" in wish_of(request):
        return sse.failure(400, {"error": {"message": "no pictures here"}})
    if request.get("tool_choice") != "required":
        return sse.prose("I would call it.", usage=None)
    return sse.call("report", {"word": "blue"}, usage=None)


def test_an_endpoint_that_does_little_is_told_in_lines_that_load() -> None:
    found, _ = ping(plain, vision=True)
    assert found.answers["tool call"] == "no"
    assert found.answers["usage"] == "no"
    assert found.answers["tool_choice object"] == "ignored"
    assert found.answers["image"] == "refused: HTTP 400: no pictures here"
    assert found.answers["keeps 6000 tokens"] == "no"
    lines = tomllib.loads("\n".join(found.lines))
    assert lines == {
        "tool_choice": "required",
        "vision": False,
        "context_window": 4096,
        "reserve_tokens": 1024,
    }
    AgentConfig.model_validate(lines)


@pytest.mark.parametrize(
    ("refused", "line"),
    [
        ("max_tokens", 'max_tokens_field = "max_completion_tokens"'),
        ("stream_options", "stream_usage = false"),
    ],
)
def test_a_field_that_is_refused_is_spelled_otherwise(refused: str, line: str) -> None:
    def picky(request: dict[str, Any]) -> sse.Answer:
        if refused in request:
            return sse.failure(400, {"error": {"message": f"unknown field {refused}"}})
        return capable(request)

    found, _ = ping(picky, vision=True)
    assert found.lines == [line]


def test_an_endpoint_that_refuses_the_key_is_an_error_of_one_request() -> None:
    with sse.ModelServer([sse.failure(401)]) as server:
        agent = AgentConfig(base_url=server.base_url, model="stand-in")
        with pytest.raises(ModelError, match="refused the key"):
            ping_endpoint(agent, lambda: "sk-test")
    assert len(server.requests) == 1


def test_refusals_of_single_things_do_not_end_the_tour() -> None:
    def narrow(request: dict[str, Any]) -> sse.Answer:
        if request.get("tool_choice") == "auto" and wish_of(request).startswith(
            "Call the tool `report` with the word"
        ):
            return capable(request)
        return sse.failure(
            400, {"error": {"message": "maximum context length is 10", "code": "context_length_exceeded"}}
        )

    found, _ = ping(narrow)
    assert found.answers["tool call"] == "yes"
    assert str(found.answers["parallel calls"]).startswith("refused: ")
    assert str(found.answers["keeps 6000 tokens"]).startswith("refused: ")


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ({"data": [{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 8192}]}, 8192),
        ({"data": [{"id": "m", "meta": {"n_ctx_train": 131072, "n_ctx": 4096}}]}, 4096),
        ({"data": [{"id": "m"}]}, None),
        ({"data": [{"id": "m", "context_length": "8k"}, 7]}, None),
        ({"error": "no such page"}, None),
        ([], None),
    ],
)
def test_the_window_that_a_list_of_models_tells_is_read(listed: object, told: int | None) -> None:
    assert _told_context(listed, "m") == told
