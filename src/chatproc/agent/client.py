"""The wire: Chat Completions over `openai`'s client, always streaming, as a model for Pydantic AI's loop.

A key and a chat go to the configured origin only: no redirect is followed, no proxy, header or address of the
environment is used. A reply is taken as the model gave it or asked for again, never completed by guessing.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias
from urllib.parse import urlsplit

import httpx2
import openai
from openai import AsyncOpenAI, AsyncStream
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from chatproc.agent.bounded import MOST_CALLS, UnboundedError, bound
from chatproc.agent.compaction import Message, compacted, estimate_tokens
from chatproc.agent.texts import encodable
from chatproc.agent.tools import SessionTools, strict_schema
from chatproc.errors import ConfigError, ModelError, without_secret

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType

    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

    from chatproc.config import AgentConfig

Sleep: TypeAlias = "Callable[[float], Awaitable[None]]"
"""Waits so many seconds."""

_LONGEST_RETRY_AFTER = 60.0
_FIRST_BACKOFF = 1.0
_LONGEST_BACKOFF = 30.0
_LONGEST_EXPLANATION = 300
_DEEPEST = 32
_MOST_TOKENS = 10**12
_SENT_HEADERS = {
    "host",
    "connection",
    "accept",
    "accept-encoding",
    "content-type",
    "content-length",
    "user-agent",
}
"""What a request carries beside the key; the SDK would add the machine's system, versions and counters."""

_BRIDGE = "Noted."
_CUT_OFF = "Not run: the reply was cut off at the output limit. Call again, with shorter texts."


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Whom to ask.

    Args:
        base_url: Up to `/v1`.
        model: The model's name there.
        api_key: Gives the key, or `None` when none is wanted; asked before each request.
    """

    base_url: str
    model: str
    api_key: Callable[[], str | None]


@dataclass(slots=True)
class Usage:
    """What a session took. A count is `None`, unknown, as soon as one reply did not tell it; never zero."""

    requests: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cached_tokens: int | None = 0
    counted_tokens: int = 0
    """Input and output for the cap, with an estimate where a reply did not tell."""

    def add(self, reply: Reply, estimated_input: int) -> None:
        """Count one whole reply."""
        given, taken = reply.tokens("prompt_tokens"), reply.tokens("completion_tokens")
        self.input_tokens = _sum(self.input_tokens, given)
        self.output_tokens = _sum(self.output_tokens, taken)
        self.cached_tokens = _sum(self.cached_tokens, reply.cached_tokens())
        self.counted_tokens += estimated_input if given is None else given
        self.counted_tokens += estimate_tokens([reply.as_message()]) if taken is None else taken

    def lose(self) -> None:
        """Count a reply that broke: how much it took is not known."""
        self.input_tokens = self.output_tokens = self.cached_tokens = None

    def to_dict(self) -> dict[str, int | None]:
        """The counts, as the core stores them."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
        }


def _sum(total: int | None, part: int | None) -> int | None:
    return None if total is None or part is None else total + part


# --- a reply, put together from its pieces


@dataclass(slots=True)
class Call:
    """One tool call as it came: its name set once, its arguments as text."""

    id: str
    index: int | None
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Reply:
    """One answer of the model, fed with the objects of the stream."""

    content: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    begun: bool = False

    def feed(self, chunk: object) -> None:
        """Take one object of the stream; what is not understood in it is left aside."""
        if not isinstance(chunk, dict):
            return
        self.begun = True
        self._take_usage(chunk.get("usage"))
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        self._take_usage(choice.get("usage"))
        if isinstance(choice.get("finish_reason"), str) and choice["finish_reason"]:
            self.finish_reason = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        self.content += _string(delta.get("content"))
        self.reasoning += _string(delta.get("reasoning_content"))
        calls = delta.get("tool_calls")
        for piece in calls if isinstance(calls, list) else ():
            if isinstance(piece, dict):
                self._take_call(piece)

    def _take_usage(self, usage: object) -> None:
        if isinstance(usage, dict) and usage:
            self.usage = usage

    def _take_call(self, piece: dict[str, Any]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        name = _string(function.get("name"))
        arguments = function.get("arguments")
        text = (
            json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else _string(arguments)
        )
        index = piece.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call = self._call_of(index, _string(piece.get("id")), name, text)
        call.name = call.name or name
        call.arguments += text

    def _call_of(self, index: int | None, ident: str, name: str, text: str) -> Call:
        """The call that a piece goes on with, or a new one.

        Endpoints leave out the index, give every call the same one, repeat the name in each piece, or give
        each piece an id of its own. What begins a call is a new id together with a name.
        """
        for call in self.calls:
            if ident and call.id == ident:
                return call
        at_index = [call for call in self.calls if index is None or call.index is None or call.index == index]
        latest = at_index[-1] if at_index else None
        if latest is None:
            begins = True
        elif ident and latest.id:
            begins = bool(name)
        else:
            begins = bool(name and text.lstrip().startswith("{") and _is_object(latest.arguments))
        if begins or latest is None:
            if len(self.calls) == MOST_CALLS:
                raise UnboundedError(f"a reply with more than {MOST_CALLS} calls")
            latest = Call(ident, index)
            self.calls.append(latest)
        latest.id = latest.id or ident
        return latest

    def mend_halves(self) -> None:
        """Join the halves of characters that the endpoint cut in two."""
        self.content = encodable(self.content)
        self.reasoning = encodable(self.reasoning)
        for call in self.calls:
            call.id, call.name, call.arguments = map(encodable, (call.id, call.name, call.arguments))

    def tokens(self, name: str) -> int | None:
        """One count of the usage, `None` when it was not told."""
        return _count((self.usage or {}).get(name))

    def cached_tokens(self) -> int | None:
        """The input tokens that the endpoint had in its cache, `None` when it was not told."""
        details = (self.usage or {}).get("prompt_tokens_details")
        cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
        return self.tokens("prompt_cache_hit_tokens") if cached is None else cached

    def as_message(self) -> Message:
        """The reply for an estimate of its size."""
        return {"role": "assistant", "content": self.content + "".join(call.arguments for call in self.calls)}

    def read_call_in_text(self, names: Sequence[str]) -> None:
        """Take a text that is a call and nothing else for the call it is."""
        fenced = re.fullmatch(r"```(?:json)?\s*\n(.*?)\n?\s*```", self.content.strip(), re.DOTALL)
        call = _parsed(fenced[1] if fenced else self.content)
        if self.calls or not isinstance(call, dict) or set(call) != {"name", "arguments"}:
            return
        arguments = call["arguments"]
        if call["name"] in names and isinstance(arguments, (dict, str)):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            self.calls.append(Call("", None, call["name"], text))
            self.content = ""


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
        return value
    return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _parsed(text: str) -> Any:  # noqa: ANN401 - JSON can be anything
    """A JSON value, `None` when the text is none."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _is_object(text: str) -> bool:
    return isinstance(_parsed(text), dict)


def _arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """The arguments of a call, or what keeps them from being any."""
    try:
        value = json.loads(text or "{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return {}, f"Not run: the arguments are not valid JSON ({error}). Call again with one JSON object."
    if not isinstance(value, dict):
        return {}, "Not run: the arguments must be one JSON object."
    if _is_deep(value):
        return {}, "Not run: the arguments are nested too deeply."
    if "\\u" in text:
        value = json.loads(encodable(json.dumps(value, ensure_ascii=False)))
    return value, None


def _is_deep(value: object) -> bool:
    """Whether a value is nested deeper than any tool's arguments are."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [part for outer in level for part in _parts_of(outer)]
    return bool(level)


def _parts_of(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


# --- one request, tried until it is answered


class _PassingError(Exception):
    """A failure that may be gone at the next try."""

    def __init__(self, kind: str, what: str, retry_after: float | None = None) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what
        self.retry_after = retry_after


class _OverflowError(Exception):
    """The request is larger than the model's context."""


class ChatClient:
    """Sends requests to one endpoint and brings whole replies.

    Args:
        endpoint: Whom to ask.
        agent: `timeout_seconds`, `retries`, `max_requests`, `max_total_tokens`, `allow_http`.
        sleep: How to wait between tries.

    Raises:
        ConfigError: Plain http to another machine without leave.
    """

    def __init__(self, endpoint: Endpoint, agent: AgentConfig, sleep: Sleep = asyncio.sleep) -> None:
        """Open no connection yet."""
        if not (agent.allow_http or _is_private(endpoint.base_url)):
            raise ConfigError(
                "plain http would show chats and key to the network",
                where=endpoint.base_url,
                hint="use https, or set agent.allow_http = true",
            )
        self.endpoint = endpoint
        self.agent = agent
        self.sleep = sleep
        self.usage = Usage()
        self._key: str | None = None
        silence = agent.timeout_seconds or None
        self._http = httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(silence),
            event_hooks={"request": [self._bare_headers], "response": [bound]},
        )
        self._openai = AsyncOpenAI(
            api_key="set by _bare_headers",
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=httpx2.Timeout(silence),
            http_client=self._http,
        )

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        await self._openai.close()

    async def _bare_headers(self, request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _SENT_HEADERS]:
            del request.headers[name]
        request.headers["user-agent"] = "chatproc"
        request.headers["accept-encoding"] = "identity"
        self._key = self.endpoint.api_key()
        if self._key:
            request.headers["authorization"] = f"Bearer {self._key}"

    async def reply_to(self, body: dict[str, Any]) -> Reply:
        """Send one request, again where that may help.

        Raises:
            ModelError: There is no answer; `kind` says of which class.
            _OverflowError: The request is too large for the model.
        """
        for attempt in range(self.agent.retries + 1):
            if self.usage.requests >= self.agent.max_requests:
                raise self._error("max_requests", f"the session used its {self.agent.max_requests} requests")
            self.usage.requests += 1
            try:
                return await self._try(body)
            except _PassingError as error:
                if attempt == self.agent.retries:
                    raise self._error(error.kind, f"{error.what} (after {attempt + 1} tries)") from None
                await self.sleep(_backoff(attempt, error.retry_after))
        raise AssertionError  # the last try returns or raises

    async def _try(self, body: dict[str, Any]) -> Reply:
        reply = Reply()
        try:
            return await self._stream(body, reply)
        except _PassingError:
            if reply.begun:
                # Tokens were made and never counted: from here on the sum is unknown, never too low.
                self.usage.lose()
            raise

    async def _stream(self, body: dict[str, Any], reply: Reply) -> Reply:
        try:
            await self._feed(body, reply)
        except openai.APIStatusError as error:
            self._refused(error)
        except (openai.APIConnectionError, httpx2.RequestError, UnboundedError) as error:
            # What breaks after the finish_reason breaks a reply that is whole.
            if reply.finish_reason is None:
                raise self._silence_or_break(error) from None
        except openai.APIError as error:
            self._error_in_stream(error)
        except (ValueError, RecursionError):
            raise _PassingError("protocol", "the stream holds something else than JSON") from None
        if not reply.begun:
            raise _PassingError("protocol", "the answer is no stream of events (empty, or a page)")
        if reply.finish_reason is None:
            raise _PassingError("network", "the stream ended in the middle of a reply")
        return reply

    async def _feed(self, body: dict[str, Any], reply: Reply) -> None:
        stream = await self._openai.post(
            "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=AsyncStream[object]
        )
        async with stream:
            async for chunk in stream:
                reply.feed(chunk)

    def _silence_or_break(self, error: Exception) -> Exception:
        """What broke on the way; of httpx2's own kind where it broke inside the body of an HTTP error."""
        if isinstance(error, UnboundedError):
            return self._error("protocol", str(error), "check agent.base_url")
        if isinstance(error, (openai.APITimeoutError, httpx2.TimeoutException)):
            return _PassingError("timeout", f"nothing came for {self.agent.timeout_seconds:g} s")
        return _PassingError("network", f"no connection ({_cause(error)})")

    def _refused(self, error: openai.APIStatusError) -> NoReturn:
        """An HTTP status that is no success."""
        status = error.status_code
        explanation = self._explanation(error.body, error.message)
        if _is_overflow(error.body, explanation) and status in {400, 413, 422, 500}:
            raise _OverflowError(explanation) from None
        if status in {401, 403}:
            hint = "check the key, and whether it may use this model"
            raise self._error("refused", f"the endpoint refused the key (HTTP {status})", hint) from None
        if status == 402 or _is_quota(error.body, explanation):  # noqa: PLR2004 - Payment Required
            what = f"the account's quota is used up (HTTP {status}: {explanation})"
            raise self._error("quota", what) from None
        if status in {408, 429} or status >= 500:  # noqa: PLR2004 - server errors
            kind = "rate_limited" if status == 429 else "server"  # noqa: PLR2004 - Too Many Requests
            retry_after = _retry_after(error.response.headers.get("retry-after"))
            raise _PassingError(kind, f"HTTP {status}: {explanation}", retry_after) from None
        if 300 <= status < 400:  # noqa: PLR2004 - redirects
            hint = "write the address that it redirects to as agent.base_url, if you trust it"
            what = f"the endpoint redirects (HTTP {status}); a chat is never sent on"
            raise self._error("redirect", what, hint) from None
        raise self._error("bad_request", f"HTTP {status}: {explanation}") from None

    def _error_in_stream(self, error: openai.APIError) -> NoReturn:
        """An error object where a piece of the reply was due."""
        explanation = self._explanation(error.body, error.message)
        if _is_overflow(error.body, explanation):
            raise _OverflowError(explanation) from None
        if _is_quota(error.body, explanation):
            raise self._error("quota", f"the account's quota is used up ({explanation})") from None
        raise _PassingError("server", f"an error in the stream: {explanation}") from None

    def _explanation(self, body: object, message: str) -> str:
        """The endpoint's own words: one short line, the key taken out."""
        fields = body.get("error", body) if isinstance(body, dict) else body
        words = fields.get("message") if isinstance(fields, dict) else None
        text = words if isinstance(words, str) else message
        text = without_secret(text, self._key)
        if "<" in text and re.search(r"<(!doctype|html|body|head)\b", text, re.IGNORECASE):
            return "an HTML page"
        text = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
        return text if len(text) <= _LONGEST_EXPLANATION else f"{text[:_LONGEST_EXPLANATION]}…"

    def _error(self, kind: str, what: str, hint: str | None = None) -> ModelError:
        return ModelError(what, where=self.endpoint.base_url, hint=hint, kind=kind)


def _is_private(base_url: str) -> bool:
    """Whether nobody on the network can read along: https, or this very machine."""
    parts = urlsplit(base_url)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def _cause(error: BaseException) -> str:
    """The class of what broke, without text of the endpoint."""
    return type(error.__cause__ or error).__name__


def _backoff(attempt: int, retry_after: float | None) -> float:
    """Seconds to wait: what the endpoint asked for, or doubling, with jitter to keep sessions apart."""
    if retry_after is not None:
        return retry_after
    longest = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2.0**attempt)
    return random.uniform(longest / 2, longest)  # noqa: S311 - jitter is no secret


def _retry_after(header: str | None) -> float | None:
    """The seconds of a Retry-After header; more than a minute is not waited for."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return None
    return max(0.0, seconds) if seconds <= _LONGEST_RETRY_AFTER else None


def _code_of(body: object) -> str:
    """`code` and `type` of an error object, in lower case."""
    fields = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(fields, dict):
        return ""
    return f"{fields.get('code')} {fields.get('type')}".lower()


_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (length|window|size)"
    r"|prompt is too long|input is too long",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|insufficient[ _]balance|exceeded your current quota|billing_(hard_limit|not_active)",
    re.IGNORECASE,
)


def _is_overflow(body: object, explanation: str) -> bool:
    return bool(_OVERFLOW.search(f"{_code_of(body)} {explanation}"))


def _is_quota(body: object, explanation: str) -> bool:
    return bool(_QUOTA.search(f"{_code_of(body)} {explanation}"))


# --- the model that Pydantic AI asks


class ChatModel(Model[AsyncOpenAI]):
    """Puts a session's history on the wire and a reply into it.

    What goes out is exactly the history of this session, in the words of this package: the notes, frames and
    repairs that the library adds for its own features are left out.

    Args:
        client: Sends the requests.
        tools: The session's tools; its record learns what was sent.
    """

    def __init__(self, client: ChatClient, tools: SessionTools) -> None:
        """A model for one session."""
        super().__init__()
        self.client = client
        self.agent = client.agent
        self.tools = tools
        self._ids: set[str] = set()

    @property
    def model_name(self) -> str:
        """The model's name at the endpoint."""
        return self.client.endpoint.model

    @property
    def system(self) -> str:
        """The kind of endpoint."""
        return "chat-completions"

    def prepare_messages(
        self, messages: list[ModelMessage], model_request_parameters: ModelRequestParameters | None = None
    ) -> list[ModelMessage]:
        """The history as it is."""
        del model_request_parameters
        return messages

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One reply to the history so far."""
        del model_settings
        if self.client.usage.counted_tokens >= self.agent.max_total_tokens:
            what = f"the session used its {self.agent.max_total_tokens} tokens"
            raise ModelError(what, where=self.client.endpoint.base_url, kind="max_total_tokens")
        definitions = model_request_parameters.function_tools
        wire = wire_messages(messages, send_back_reasoning=self.agent.send_back_reasoning)
        tools = [_wire_tool(tool, strict=self.agent.strict_tools) for tool in definitions]
        reply = await self._reply_to(wire, tools)
        reply.mend_halves()
        reply.read_call_in_text([tool.name for tool in definitions])
        return self._response(reply)

    async def _reply_to(self, messages: list[Message], tools: list[Message]) -> Reply:
        """Send the history as it fits the window, and once more with half of that when it does not."""
        budget = self.agent.context_window - self.agent.reserve_tokens - estimate_tokens(tools)
        fitting = compacted(messages, budget, self.tools.record)
        try:
            return await self._send(fitting, tools)
        except _OverflowError as overflow:
            smaller = compacted(messages, min(budget, estimate_tokens(fitting)) // 2, self.tools.record)
            explanation = str(overflow)
        try:
            if len(smaller) < len(fitting):
                return await self._send(smaller, tools)
        except _OverflowError as overflow:
            explanation = str(overflow)
        raise ModelError(
            f"the request is larger than the model's context ({explanation})",
            where=self.client.endpoint.base_url,
            hint="lower processing.max_input_chars, or use a model with a longer context",
            kind="context_overflow",
        )

    async def _send(self, messages: list[Message], tools: list[Message]) -> Reply:
        if self.agent.assistant_bridge_after_tool:
            messages = _bridged(messages)
        reply = await self.client.reply_to(self._body(messages, tools))
        self.tools.record.sent()
        self.client.usage.add(reply, estimate_tokens(messages, tools))
        return reply

    def _body(self, messages: list[Message], tools: list[Message]) -> dict[str, Any]:
        agent = self.agent
        body: dict[str, Any] = {
            "model": self.model_name,
            "messages": messages,
            "stream": True,
            "tools": tools,
        }
        if agent.tool_choice:
            body["tool_choice"] = agent.tool_choice
        if agent.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = agent.parallel_tool_calls
        if agent.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if agent.max_tokens_field:
            body[agent.max_tokens_field] = agent.max_output_tokens
        return {**body, **agent.extra_body}

    def _response(self, reply: Reply) -> ModelResponse:
        parts: list[ModelResponsePart] = []
        if reply.reasoning:
            parts.append(ThinkingPart(reply.reasoning))
        # A blank text keeps a reply without anything in the loop, where it counts as prose.
        if reply.content or not reply.calls:
            parts.append(TextPart(reply.content or " "))
        rejected: dict[str, str] = {}
        for call in reply.calls:
            ident = self._own_id(call.id)
            arguments, fault = _arguments(call.arguments)
            if reply.finish_reason == "length":
                arguments, fault = {}, _CUT_OFF
            if fault is not None:
                rejected[ident] = fault
            parts.append(ToolCallPart(call.name, arguments, tool_call_id=ident))
        self.tools.new_reply(rejected)
        return ModelResponse(
            parts,
            usage=RequestUsage(
                input_tokens=reply.tokens("prompt_tokens") or 0,
                output_tokens=reply.tokens("completion_tokens") or 0,
            ),
            model_name=self.model_name,
        )

    def _own_id(self, ident: str) -> str:
        """The call's id; one that is missing or was used before is replaced (nine digits suit everywhere)."""
        number = len(self._ids)
        while not ident or ident in self._ids:
            number += 1
            ident = f"{number:09d}"
        self._ids.add(ident)
        return ident


def _wire_tool(tool: ToolDefinition, *, strict: bool) -> Message:
    function: Message = {"name": tool.name, "description": tool.description or ""}
    function["parameters"] = (
        strict_schema(tool.parameters_json_schema) if strict else tool.parameters_json_schema
    )
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def wire_messages(history: list[ModelMessage], *, send_back_reasoning: bool) -> list[Message]:
    """A history as messages of Chat Completions; `content` is always a text, never null."""
    wire: list[Message] = []
    for message in history:
        if isinstance(message, ModelRequest):
            wire.extend(_wire_request(message))
        else:
            wire.append(_wire_response(message, send_back_reasoning=send_back_reasoning))
    return wire


def _wire_request(request: ModelRequest) -> list[Message]:
    """What the program says in one turn; the pictures of all its results in one message at the end."""
    wire: list[Message] = []
    pictures: list[Message] = []
    for part in request.parts:
        match part:
            case SystemPromptPart():
                wire.append({"role": "system", "content": part.content})
            case UserPromptPart(content=str(content)) | RetryFeedbackPart(content=str(content)):
                wire.append({"role": "user", "content": content})
            case UserPromptPart(content=content):
                pictures += [_wire_part(piece) for piece in content]
            case ToolReturnPart():
                content = part.model_response_str(wrap_if_error=False)
                wire.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": content})
            case _:
                raise TypeError(f"a session has no {type(part).__name__}")
    if pictures:
        wire.append({"role": "user", "content": pictures})
    return wire


def _wire_part(piece: UserContent) -> Message:
    """A name, or a picture, as a part of a message."""
    match piece:
        case str():
            return {"type": "text", "text": piece}
        case BinaryContent():
            return {"type": "image_url", "image_url": {"url": piece.data_uri}}
        case _:
            raise TypeError(f"a session has no {type(piece).__name__}")


def _wire_response(response: ModelResponse, *, send_back_reasoning: bool) -> Message:
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    message: Message = {"role": "assistant", "content": "" if text.isspace() else text}
    reasoning = "".join(part.content for part in response.parts if isinstance(part, ThinkingPart))
    if reasoning and send_back_reasoning:
        message["reasoning_content"] = reasoning
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if calls:
        message["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "type": "function",
                "function": {"name": call.tool_name, "arguments": call.args_as_json_str()},
            }
            for call in calls
        ]
    return message


def _bridged(messages: list[Message]) -> list[Message]:
    """An assistant message wherever a user message would follow a tool's result."""
    bridged: list[Message] = []
    for message in messages:
        if message["role"] == "user" and bridged and bridged[-1]["role"] == "tool":
            bridged.append({"role": "assistant", "content": _BRIDGE})
        bridged.append(message)
    return bridged
