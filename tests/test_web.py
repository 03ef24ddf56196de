"""Asking a JSON API: every failure has its class, no token leaves the origin, no answer is too much."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.connectors import web
from chatproc.connectors.base import SyncError
from chatproc.connectors.matrix import TOOLKIT
from chatproc.connectors.web import Web
from tests import dovecot
from tests.pulls import Puller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "syt-very-secret"  # noqa: S105 - a token for the tests' own server


class Endpoint(ThreadingHTTPServer):
    """Gives the same answer to everything, and keeps what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = b"{}"
        self.length: int | None = None
        self.asked: list[tuple[str, str | None]] = []


class _Answering(BaseHTTPRequestHandler):
    server: Endpoint

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        self.send_response_only(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(self.server.length or len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def get(url: str) -> Any:  # noqa: ANN401 - any JSON
    async def ask() -> Any:  # noqa: ANN401
        async with Web(url, token=TOKEN) as server:
            return await server.get("/here", {"a": "b"})

    return asyncio.run(ask())


def fault_of(url: str) -> SyncError:
    with pytest.raises(SyncError) as caught:
        get(url)
    assert TOKEN not in repr(vars(caught.value)) + str(caught.value)
    return caught.value


def test_an_answer_is_its_json_and_the_token_is_sent(endpoint: Endpoint) -> None:
    endpoint.body = '{"x": "字"}'.encode()
    assert get(endpoint.url) == {"x": "字"}
    assert endpoint.asked == [("/here?a=b", f"Bearer {TOKEN}")]


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (400, "bad_data"),
        (401, "auth"),
        (403, "auth"),
        (404, "bad_data"),
        (413, "too_large"),
        (429, "rate"),
        (500, "server"),
        (503, "server"),
        (302, "bad_data"),
    ],
)
def test_each_status_has_its_class(endpoint: Endpoint, status: int, fault: str) -> None:
    endpoint.status = status
    endpoint.headers = {"Location": f"{endpoint.url}/elsewhere"}
    endpoint.body = b'{"error": "so\\u001b[31m it is"}'
    error = fault_of(endpoint.url)
    assert (error.fault, error.what) == (fault, f"the server answered {status}: so [31m it is")
    assert len(endpoint.asked) == 1, "no redirect is followed"


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "30"}, b"{}", 30),
        ({}, b'{"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 1500}', 1.5),
        ({"Retry-After": "soon"}, b"<html>", None),
        ({"Retry-After": "-5"}, b"[]", 0),
        ({}, b'{"retry_after_ms": 1%s}' % (b"0" * 400), None),
        # Counted from the server's own clock, which may be another one than ours.
        ({"Date": "Wed, 01 Jul 2020 08:00:00 GMT", "Retry-After": "Wed, 01 Jul 2020 08:01:30 GMT"}, b"", 90),
        (
            {"Date": "Wed, 01 Jul 2020 08:00:00 GMT", "Retry-After": "Wednesday, 01-Jul-20 08:00:05 GMT"},
            b"",
            5,
        ),
        ({"Date": "Wed, 01 Jul 2020 08:00:00 GMT", "Retry-After": "Wed, 01 Jul 2020 07:00:00 GMT"}, b"", 0),
        ({"Date": "now", "Retry-After": "Wed, 01 Jul 2020 07:00:00 GMT"}, b"", None),
        ({"Retry-After": "Wed, 01 Jul 2020 07:00:00 +99999"}, b"", None),
        ({}, b'{"retry_after_ms": "x"}', None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_kept(
    endpoint: Endpoint, headers: dict[str, str], body: bytes, seconds: float | None
) -> None:
    endpoint.status, endpoint.headers, endpoint.body = 429, headers, body
    assert fault_of(endpoint.url).retry_after == seconds


def test_a_date_to_wait_for_counts_from_now_where_the_server_tells_no_time(endpoint: Endpoint) -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    endpoint.status, endpoint.headers = 503, {"Retry-After": in_a_minute}
    wait = fault_of(endpoint.url).retry_after
    assert wait is not None
    assert 30 < wait <= 60


@pytest.mark.parametrize("body", [b"<html>", b"", b"\xff", b"[" * 100_000])
def test_an_answer_that_is_no_json_is_bad_data(endpoint: Endpoint, body: bytes) -> None:
    endpoint.body = body
    assert fault_of(endpoint.url).fault == "bad_data"


def test_an_answer_that_is_too_large_is_not_read_to_its_end(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "LARGEST_ANSWER", 1 << 20)
    endpoint.body = b'"' + b"x" * (3 << 20) + b'"'
    assert fault_of(endpoint.url).fault == "too_large"


def test_an_answer_that_breaks_off_is_the_networks(endpoint: Endpoint) -> None:
    endpoint.body, endpoint.length = b'{"x":', 100
    assert fault_of(endpoint.url).fault == "network"


def test_a_server_that_is_not_there_is_the_networks() -> None:
    error = fault_of(f"http://127.0.0.1:{dovecot.free_port()}")
    assert (error.fault, error.what[:14]) == ("network", "no connection:")


@pytest.mark.skipif(dovecot.why_not() is not None, reason="needs openssl")
def test_a_certificate_that_nobody_vouches_for_is_refused(endpoint: Endpoint, tmp_path: Path) -> None:
    dovecot.certificate(tmp_path / "cert", tmp_path / "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    endpoint.socket = context.wrap_socket(endpoint.socket, server_side=True)
    error = fault_of(f"https://127.0.0.1:{endpoint.server_port}")
    assert error.fault == "network"
    assert error.what == "the server's certificate is refused: self-signed certificate"
    assert endpoint.asked == []


STRANGE_EVENTS = [
    None,
    {},
    {"type": "m.room.message"},
    {"type": [], "event_id": {}, "content": "x", "unsigned": []},
    {"type": "m.room.message", "event_id": "$1", "origin_server_ts": 1, "sender": 3},
]
STRANGE_ROOM = {
    "timeline": {"events": STRANGE_EVENTS, "limited": True, "prev_batch": 3},
    "state": {"events": ["x", {"type": "m.room.name", "content": 5}]},
    "summary": {"m.heroes": [1, None, "@a:x"]},
}


def homeserver_says(endpoint: Endpoint, answer: dict[str, Any]) -> tuple[Puller, SyncError | None]:
    """A run against a homeserver that gives one answer to everything."""
    endpoint.body = json.dumps({"user_id": "@u:x", **answer}).encode()
    settings = {"toolkit": "matrix", "id": "m", "homeserver": endpoint.url, "user": "@u:x"}
    pull = Puller(TOOLKIT, settings, TOKEN)
    return pull, pull.run()


@pytest.mark.parametrize(
    "answer",
    [
        {"user_id": 7},
        {"next_batch": None},
        {"next_batch": "s1", "rooms": {"join": []}},
        {"next_batch": "s1", "rooms": {"join": {"!r": 1}}},
        {"next_batch": "s1", "rooms": {"join": {"!r": {"timeline": {"events": {"a": 1}}}}}},
    ],
)
def test_no_answer_of_a_homeserver_breaks_the_connector(endpoint: Endpoint, answer: dict[str, Any]) -> None:
    pull, fault = homeserver_says(endpoint, answer)
    assert fault is None or fault.fault == "bad_data"
    assert pull.lines == []


def test_strange_events_are_messages_or_stand_in_the_quarantine(endpoint: Endpoint) -> None:
    answer = {"next_batch": "s1", "rooms": {"join": {"!r": STRANGE_ROOM}}, "chunk": "no list", "end": 4}
    pull, fault = homeserver_says(endpoint, answer)
    assert fault is None
    assert len(pull.lines) == len(STRANGE_EVENTS)
    assert len(pull.quarantined) == len(STRANGE_EVENTS) - 1
