"""What `check --ping` asks: real tool calls to the endpoint, one for each thing it may or may not do.

It sends its own few sentences and a red square, never a chat. It decides nothing: it says what was seen and
which config lines suit that.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import openai

from chatproc.agent.client import ChatClient, Endpoint, Reply, _OverflowError
from chatproc.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from chatproc.config import AgentConfig

MaxTokensField = Literal["max_tokens", "max_completion_tokens", ""]

YES, NO = "yes", "no"

_KEPT_TOKENS = 6000
# Each line is some 12 tokens; the word to find again stands before them all.
_FILLER = "".join(f"Line {number}: nothing to see here, go on reading.\n" for number in range(500))
_CODE_WORD = "heliotrope"


@dataclass(frozen=True)
class Ping:
    """What the endpoint was seen to do.

    Attributes:
        answers: By what was tried: `yes`, `no`, `refused: …` in the endpoint's words, or a number.
        lines: TOML lines for `[agent]` that suit it, where the configuration says something else.
    """

    answers: dict[str, str | int]
    lines: list[str]

    def to_dict(self) -> dict[str, object]:
        """The same as plain JSON values."""
        return {"answers": self.answers, "lines": self.lines}


def ping_endpoint(agent: AgentConfig, api_key: Callable[[], str | None]) -> Ping:
    """Try the configured endpoint: some seven small requests, one of them of 6,000 tokens.

    Args:
        agent: Which endpoint, and how requests are written.
        api_key: Gives the key.

    Raises:
        ModelError: It does not even answer a simple request; `kind` says why.
        CredentialError: There is no key.

    Example:
        >>> ping_endpoint(config.agent, lambda: None).answers["tool call"]  # doctest: +SKIP
        'yes'
    """
    with _base_url(agent) as base_url:
        return asyncio.run(_ping(agent, Endpoint(base_url, agent.model, api_key)))


@contextmanager
def _base_url(agent: AgentConfig) -> Iterator[str]:
    if not agent.is_local:
        yield agent.base_url
        return
    from chatproc.agent.local import serve

    with serve(agent.local_model, threads=agent.local_threads, context=agent.context_window) as base_url:
        yield base_url


async def _ping(agent: AgentConfig, endpoint: Endpoint) -> Ping:
    # Refusals are what is looked for: one further try is enough, and no cap may end the tour.
    patient = agent.model_copy(update={"retries": 1, "max_requests": 1000})
    async with ChatClient(endpoint, patient) as client:
        trial = _Trial(client)
        await trial.simple_call()
        await trial.required()
        if not agent.is_local:
            await trial.object_form()
            await trial.parallel_calls()
            await trial.image()
            await trial.long_text()
            await trial.told_context()
        return Ping(trial.answers, trial.lines())


class _Trial:
    """One tour; each step fills in its answers."""

    def __init__(self, client: ChatClient) -> None:
        self.client = client
        self.agent = client.agent
        self.max_tokens_field: MaxTokensField = self.agent.max_tokens_field
        self.stream_usage = self.agent.stream_usage
        self.answers: dict[str, str | int] = {}

    async def simple_call(self) -> None:
        """The call that all else rests on; spelled otherwise where the endpoint refuses the spelling."""
        wish = "Call the tool `report` with the word blue."
        field, usage = self.agent.max_tokens_field, self.agent.stream_usage
        other: MaxTokensField = "max_completion_tokens" if field == "max_tokens" else "max_tokens"
        spellings = [(field, usage), (other, usage), (field, False), (other, False)]
        while True:
            self.max_tokens_field, self.stream_usage = spellings.pop(0)
            try:
                reply = await self.client.reply_to(self._body(wish))
                break
            except ModelError as error:
                if error.kind != "bad_request" or not spellings:
                    raise
        self.answers["tool call"] = YES if _words(reply) == ["blue"] else NO
        self.answers["usage"] = YES if reply.tokens("prompt_tokens") is not None else NO

    async def required(self) -> None:
        """`required` calls even where the words ask for none."""
        reply = await self._reply("Say hello in one short sentence.", tool_choice="required")
        self.answers["tool_choice required"] = reply if isinstance(reply, str) else _yes(bool(reply.calls))

    async def object_form(self) -> None:
        """The object form names one of two tools; many endpoints take it for `auto`."""
        wanted = {"type": "function", "function": {"name": "note"}}
        reply = await self._reply(
            "Call the tool `report` with the word green.", tool_choice=wanted, tools=("report", "note")
        )
        names = [] if isinstance(reply, str) else [call.name for call in reply.calls]
        seen = "obeyed" if names[:1] == ["note"] else "ignored"
        self.answers["tool_choice object"] = reply if isinstance(reply, str) else seen

    async def parallel_calls(self) -> None:
        """Two calls in one reply."""
        wish = "Call the tool `report` twice in this one reply: with the word red, and with the word green."
        reply = await self._reply(wish)
        several = not isinstance(reply, str) and len(reply.calls) > 1
        self.answers["parallel calls"] = reply if isinstance(reply, str) else _yes(several)

    async def image(self) -> None:
        """A red square: an endpoint may take a picture and see nothing."""
        picture = {"type": "image_url", "image_url": {"url": _red_square()}}
        wish = {"type": "text", "text": "Call the tool `report` with the colour of this picture, one word."}
        reply = await self._reply([wish, picture])
        sees = not isinstance(reply, str) and "red" in " ".join(_words(reply)).lower()
        self.answers["image"] = reply if isinstance(reply, str) else _yes(sees)

    async def long_text(self) -> None:
        """Servers with a small window drop the beginning without a word."""
        wish = f"The code word is {_CODE_WORD}.\n{_FILLER}Call the tool `report` with the code word."
        reply = await self._reply(wish)
        kept = not isinstance(reply, str) and _CODE_WORD in " ".join(_words(reply)).lower()
        name = f"keeps {_KEPT_TOKENS} tokens"
        self.answers[name] = reply if isinstance(reply, str) else _yes(kept)

    async def told_context(self) -> None:
        """The window as the list of models tells it, where it does."""
        try:
            # The client's own connection, so that the key goes where it goes and nowhere else.
            listed = await self.client._openai.get("/models", cast_to=object)  # noqa: SLF001
        except (openai.APIError, httpx2.RequestError, ValueError):
            return
        told = _told_context(listed, self.client.endpoint.model)
        if told is not None:
            self.answers["context told"] = told

    def lines(self) -> list[str]:
        """The config lines that differ from what is configured."""
        wanted: dict[str, object] = {}
        if self.max_tokens_field != self.agent.max_tokens_field:
            wanted["max_tokens_field"] = self.max_tokens_field
        if self.stream_usage != self.agent.stream_usage:
            wanted["stream_usage"] = self.stream_usage
        required = self.answers["tool_choice required"] == YES
        if self.answers["tool call"] == NO and required and self.agent.tool_choice != "required":
            wanted["tool_choice"] = "required"
        if self.agent.tool_choice == "required" and not required:
            wanted["tool_choice"] = "auto"
        if "image" in self.answers and (sees := self.answers["image"] == YES) != self.agent.vision:
            wanted["vision"] = sees
        told = self.answers.get("context told")
        if self.answers.get(f"keeps {_KEPT_TOKENS} tokens", YES) != YES:
            wanted["context_window"] = 4096
        elif isinstance(told, int) and told < self.agent.context_window:
            wanted["context_window"] = told
        if int(str(wanted.get("context_window", 1 << 30))) <= self.agent.reserve_tokens:
            wanted["reserve_tokens"] = int(str(wanted["context_window"])) // 4
        return [f"{name} = {json.dumps(value)}" for name, value in wanted.items()]

    async def _reply(self, wish: str | list[dict[str, Any]], **more: Any) -> Reply | str:  # noqa: ANN401
        """A reply, or the endpoint's refusal in words."""
        try:
            return await self.client.reply_to(self._body(wish, **more))
        except (ModelError, _OverflowError) as error:
            return f"refused: {error.what if isinstance(error, ModelError) else error}"

    def _body(
        self,
        wish: str | list[dict[str, Any]],
        *,
        tool_choice: str | dict[str, Any] = "",
        tools: tuple[str, ...] = ("report",),
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.client.endpoint.model,
            "messages": [{"role": "user", "content": wish}],
            "stream": True,
            "tools": [_tool(name) for name in tools],
        }
        if tool_choice := tool_choice or self.agent.tool_choice:
            body["tool_choice"] = tool_choice
        if self.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if self.max_tokens_field:
            body[self.max_tokens_field] = min(self.agent.max_output_tokens, 2048)
        return {**body, **self.agent.extra_body}


def _told_context(listed: object, model: str) -> int | None:
    """The window of a model in an answer of `/models`, under the names that servers give it."""
    entries = listed.get("data") if isinstance(listed, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("id") != model:
            continue
        more = entry.get("meta")
        places = {**(more if isinstance(more, dict) else {}), **entry}
        for name in ("n_ctx", "max_model_len", "context_length", "context_window", "max_context_length"):
            if isinstance(places.get(name), int) and places[name] > 0:
                return int(places[name])
    return None


def _yes(seen: bool) -> str:  # noqa: FBT001 - the answer's own word
    return YES if seen else NO


def _tool(name: str) -> dict[str, Any]:
    word = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    described = {"name": name, "description": f"{name.title()} one word.", "parameters": word}
    return {"type": "function", "function": described}


def _words(reply: Reply) -> list[str]:
    """The words that the reply's calls carry; arguments that are no JSON carry none."""
    found = []
    for call in reply.calls:
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            continue
        if isinstance(arguments, dict) and isinstance(arguments.get("word"), str):
            found.append(arguments["word"])
    return found


def _red_square(side: int = 64) -> str:
    """A PNG as a data URL."""
    rows = (b"\0" + b"\xff\0\0" * side) * side
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(rows),
        b"IEND": b"",
    }
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks.items()
    )
    return "data:image/png;base64," + base64.b64encode(png).decode()
