"""A scriptable model endpoint: a real HTTP server on loopback that speaks Chat Completions over SSE.

    with ModelServer([call("submit_tasks", {...})]) as server:
        ...  # server.base_url, then server.requests

A script is a list of answers, one per request, or a function from the request to an answer (a list may
hold such functions too). `stream` and its kin build whole answers; the methods of `Answer` cut, stop, reset
or hang them. A request beyond the list gets HTTP 400, which no client tries again.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Chunk = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What goes back for one request."""

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/event-stream"),)
    end: str = "close"
    """After the last piece: `close` (a whole body), `drop` (the connection closes inside the body), `reset`
    (RST) or `hang` (silence until the client or the server goes)."""

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def cut_every(self, size: int) -> Answer:
        """The same bytes in pieces of `size`, through UTF-8 sequences and JSON alike."""
        body = self.body
        return replace(self, pieces=tuple(body[at : at + size] for at in range(0, len(body), size)))

    def first(self, pieces: int) -> Answer:
        """The first pieces only (events, as `stream` makes them); negative: without the last ones."""
        return replace(self, pieces=self.pieces[:pieces])

    def only(self, size: int) -> Answer:
        """The first bytes only; negative: without the last ones."""
        return replace(self, pieces=(self.body[:size],))

    def then(self, end: str) -> Answer:
        return replace(self, end=end)

    def with_headers(self, **headers: str) -> Answer:
        added = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return replace(self, headers=self.headers + added)


# --- whole answers


def events(*objects: object, done: bool = True) -> Answer:
    """Any JSON values (or texts, sent as they are) as server-sent events, `[DONE]` at the end."""
    texts = [thing if isinstance(thing, str) else json.dumps(thing, ensure_ascii=False) for thing in objects]
    if done:
        texts.append("[DONE]")
    return Answer(tuple(f"data: {text}\n\n".encode() for text in texts))


def chunk(delta: Chunk | None = None, *, finish: str | None = None, **more: object) -> Chunk:
    """One object of a stream."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "model": "stand-in", "choices": [choice], **more}


USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "total_tokens": 1050,
    "prompt_tokens_details": {"cached_tokens": 200},
}


def stream(*deltas: Chunk, finish: str | None = "stop", usage: dict[str, Any] | None = USAGE) -> Answer:
    """A whole reply from its deltas; `usage` in a last chunk without choices, `None`: left out."""
    chunks: list[Chunk] = [chunk({"role": "assistant", "content": ""}), *(chunk(delta) for delta in deltas)]
    if finish:
        chunks.append(chunk(finish=finish))
    if usage:
        chunks.append({"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return events(*chunks)


def call_delta(name: str, arguments: object, *, index: int | None = 0, ident: str | None = "call_1") -> Chunk:
    """A tool call in one piece; `index` or `ident` `None`: the key is left out."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    piece: Chunk = {"type": "function", "function": {"name": name, "arguments": text}}
    if index is not None:
        piece["index"] = index
    if ident is not None:
        piece["id"] = ident
    return {"tool_calls": [piece]}


def call(name: str, arguments: object, **more: Any) -> Answer:  # noqa: ANN401 - passed on to `stream`
    """A reply that is one tool call."""
    return calls((name, arguments), **more)


def calls(*wanted: tuple[str, object], **more: Any) -> Answer:  # noqa: ANN401 - passed on to `stream`
    """A reply with several parallel tool calls."""
    deltas = [
        call_delta(name, arguments, index=index, ident=f"call_{index}")
        for index, (name, arguments) in enumerate(wanted)
    ]
    return stream(*deltas, **{"finish": "tool_calls", **more})


def prose(text: str, **more: Any) -> Answer:  # noqa: ANN401 - passed on to `stream`
    """A reply in words."""
    return stream({"content": text}, **more)


def failure(status: int, body: object = None, **headers: str) -> Answer:
    """An HTTP error with a JSON body."""
    content = {"error": {"message": f"failed with {status}"}} if body is None else body
    answer = Answer((json.dumps(content).encode(),), status, (("Content-Type", "application/json"),))
    return answer.with_headers(**headers)


def page(text: str = "<!DOCTYPE html><html><body>Gateway</body></html>", status: int = 200) -> Answer:
    """An HTML page, as proxies and portals give."""
    return Answer((text.encode(),), status, (("Content-Type", "text/html"),))


def redirect(location: str, status: int = 307) -> Answer:
    return Answer((), status, (("Location", location),))


EMPTY = Answer()
"""HTTP 200 without a byte."""


# --- what a stand-in model needs


def document_of(request: dict[str, Any]) -> dict[str, Any]:
    """The document in a request."""
    content = next(message["content"] for message in request["messages"] if message["role"] == "user")
    document: dict[str, Any] = json.loads(content)
    return document


def results_of(request: dict[str, Any]) -> list[str]:
    """The contents of all tool results in a request, in order."""
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


def new_task(title: str, sources: Sequence[str], **more: object) -> dict[str, Any]:
    """A task that passes the checker when its sources do."""
    return {
        "task_ref": None,
        "title": title,
        "event": title,
        "priority": "P2",
        "priority_reason": "",
        "status": "open",
        "time": {"start": None, "due": None, "original": None},
        "people": [],
        "location": None,
        "action_steps": [],
        "notes": "",
        "sources": list(sources),
        "quotes": [],
        **more,
    }


def submission(tasks: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Arguments of `submit_tasks` from tasks by conversation; an empty list gets a reason."""
    return {
        "conversations": [
            {"id": ref, "tasks": listed, "no_task_reason": None if listed else "chatter"}
            for ref, listed in tasks.items()
        ]
    }


def submits(tasks: dict[str, list[dict[str, Any]]]) -> Answer:
    """A reply that submits these tasks by conversation."""
    return call("submit_tasks", submission(tasks))


def no_tasks(request: dict[str, Any]) -> Answer:
    """A stand-in model that finds nothing, with a reason for each conversation."""
    return submits({conversation["id"]: [] for conversation in document_of(request)["conversations"]})


def one_task_each(request: dict[str, Any]) -> Answer:
    """A stand-in model that makes a task of the last new message with a text in each conversation."""
    found: dict[str, list[dict[str, Any]]] = {}
    for conversation in document_of(request)["conversations"]:
        messages = [message for segment in conversation["segments"] for message in segment["messages"]]
        new = [message for message in messages if message.get("text") and not message.get("history")]
        found[conversation["id"]] = [new_task(message["text"][:50], [message["id"]]) for message in new[-1:]]
    return submits(found)


# --- the server


@dataclass
class Request:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    abandoned: threading.Event = field(default_factory=threading.Event)
    """Set when the client went away before the answer was whole."""

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


Script = Iterable["Answer | Callable[[dict[str, Any]], Answer]"] | Callable[[dict[str, Any]], Answer]


class ModelServer:
    """The endpoint, up between `with` and its end."""

    def __init__(self, script: Script) -> None:
        self._script = script if callable(script) else iter(list(script))
        self._turn = threading.Lock()
        self.requests: list[Request] = []
        """The posted ones, in order of arrival."""
        self.arrived = threading.Event()
        """Set when a request is there whole."""
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The documents of all requests."""
        return [document_of(request.json) for request in self.requests]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: Request) -> Answer:
        with self._turn:
            self.requests.append(request)
            self.arrived.set()
            step = self._script if callable(self._script) else next(self._script, None)
        if step is None:
            return failure(400, {"error": {"message": "the script has no answer left"}})
        return step(request.json) if callable(step) else step


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = True
    owner: ModelServer

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        """`/v1/models`, for discovery."""
        body = json.dumps({"object": "list", "data": [{"id": "stand-in", "object": "model"}]}).encode()
        self._begin(Answer((body,), headers=(("Content-Type", "application/json"),)))
        self._send_pieces((body,))
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:
            # The client was killed in the middle of it: no request came.
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request("POST", self.path, headers, body)
        answer = self.server.owner.answer(request)
        try:
            self._begin(answer)
            self._send_pieces(answer.pieces)
            self._finish(answer.end, request)
        except OSError:
            request.abandoned.set()
            self.close_connection = True

    def _begin(self, answer: Answer) -> None:
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _send_pieces(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def _finish(self, end: str, request: Request) -> None:
        if end == "close":
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True
        if end == "hang":
            while not self.server.owner.stopping.is_set():
                if select.select([self.connection], [], [], 0.02)[0]:
                    request.abandoned.set()
                    return
        if end == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            with contextlib.suppress(OSError):
                self.connection.close()
