"""Any bytes as what a model's endpoint answers, through the whole session: client, stream, reply, tools.

The first byte says how they come: with which status and type, whole or in pieces, cut off or not, behind
headers or as headers too. What must hold: the session ends, each of its conversations as accepted or failed,
with an error of the named kinds where there is one, and the key is in none of its words.
"""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.batches import KEY, batch_of, session
from tests.sse import (
    EMPTY,
    call,
    call_delta,
    calls,
    chunk,
    events,
    failure,
    new_task,
    page,
    prose,
    stream,
    submits,
)

if TYPE_CHECKING:
    from chatproc.agent.session import SessionResult

KINDS = {
    *("refused", "quota", "bad_request", "redirect", "context_overflow"),
    *("rate_limited", "server", "network", "timeout", "protocol"),
    *("prose", "max_turns", "max_requests", "max_total_tokens", "max_session_seconds"),
}
LONGEST_REASON = 1000
_STATUSES = (b"200 OK", b"200 OK", b"200 OK", b"200 OK", b"400 Bad", b"429 Busy", b"500 Broken", b"307 There")
_PIECES = (1 << 20, 1 << 20, 1000, 7)
_MOST_PIECES = 200
_REQUESTS = 3
_TASK = new_task("交表", ["m1"], quotes=[{"ref": "m1", "text": "周五前"}])


@cache
def samples() -> tuple[bytes, ...]:
    """What damage begins with: replies and failures as endpoints give them."""
    halves = [
        call_delta("search_tasks", text, ident=ident) for text, ident in (('{"qu', "a"), ('ery":""}', None))
    ]
    answers = [
        submits({"c1": [_TASK], "c2": []}),
        calls(("search_tasks", {"query": "表"}), ("submit_tasks", {"conversations": []})),
        stream({"reasoning_content": "so"}, *halves),
        call("open_attachment", {"ref": "a1"}, usage=None),
        events(
            json.dumps(chunk({"content": "\ud83d"})),
            json.dumps(chunk({"content": "\ude00"}, finish="length")),
        ),
        events(chunk({"content": "x"}), {"error": {"message": "overloaded", "code": "insufficient_quota"}}),
        prose('```json\n{"name": "submit_tasks", "arguments": {"conversations": []}}\n```'),
        EMPTY,
    ]
    whole = [bytes([shape]) + answer.body for answer in answers for shape in (0, 0x18)]
    refused = [b"\x04" + failure(400, {"error": {"message": f"no {KEY} here, context window"}}).body]
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\ndata: {\r\n0\r\n\r\n"
    return (*whole, *refused, b"\x05" + page().body, b"\x20" + page().body, b"\x40" + head)


def hostile_answer(content: bytes) -> None:
    """One session whose every request is answered with these bytes."""
    result = _endpoint().session_with(content)
    assert set(_outcomes(result).values()) <= {"accepted", "failed"}
    assert set(_outcomes(result)) == {"c1", "c2"}
    said = json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False)
    said.encode()
    assert KEY not in said
    if result.error is not None:
        reason = result.error["reason"] or ""
        assert result.error["kind"] in KINDS, result.error
        assert reason.isprintable(), reason
        assert len(reason) < LONGEST_REASON, reason


def _outcomes(result: SessionResult) -> dict[str, str]:
    return {conversation["ref"]: conversation["outcome"] for conversation in result.conversations}


class _Endpoint:
    """A server on loopback in the loop of the session itself, the same for all inputs."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._content = b""
        self._batch = batch_of({"c1": ["周五前交表"], "c2": ["好"]})
        server = self._loop.run_until_complete(asyncio.start_server(self._answer, "127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    def session_with(self, content: bytes) -> SessionResult:
        self._content = content
        limits: dict[str, Any] = {"retries": 0, "max_requests": _REQUESTS, "timeout_seconds": 2.0}
        return self._loop.run_until_complete(
            session(self, self._batch, max_session_seconds=9.0, **limits)  # type: ignore[arg-type]
        )

    async def _answer(self, asked: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        head = await asked.readuntil(b"\r\n\r\n")
        size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await asked.readexactly(int(size.split(b":")[1]))
        shape, body = self._content[:1], self._content[1:]
        number = shape[0] if shape else 0
        try:
            if not number & 0x40:
                answer.write(_head(number, len(body)))
            size_of_piece = max(_PIECES[number >> 3 & 3], len(body) // _MOST_PIECES)
            for at in range(0, len(body), size_of_piece):
                answer.write(body[at : at + size_of_piece])
                await answer.drain()
        except OSError:
            pass  # the client went away
        finally:
            answer.close()


@cache
def _endpoint() -> _Endpoint:
    return _Endpoint()


def _head(shape: int, size: int) -> bytes:
    kind = b"text/html" if shape & 0x20 else b"text/event-stream"
    length = b"Content-Length: %d\r\n" % (size + 9) if shape & 0x80 else b""
    return b"HTTP/1.1 %s\r\nContent-Type: %s\r\n%sConnection: close\r\n\r\n" % (
        _STATUSES[shape & 7],
        kind,
        length,
    )
