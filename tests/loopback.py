"""An HTTP server on loopback for connectors: it answers with what a test says, and keeps what was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, dict[str, str], bytes]


class Loopback(ThreadingHTTPServer):
    """Use as a context. `faults` are given first, each once; then `answer` decides."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.faults: list[Answer] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.tokens: list[str | None] = []

    def answer(self, path: str, query: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON, or an `Answer`
        raise NotImplementedError

    def asked_of(self, path: str) -> list[dict[str, Any]]:
        return [query for asked, query in self.asked if asked == path]

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


def fault(status: int, said: object = None, **headers: str) -> Answer:
    """An answer that is an error."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, json.dumps(said).encode()


class _Answering(BaseHTTPRequestHandler):
    server: Loopback

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        self._answer(place.path, dict(parse_qsl(place.query, keep_blank_values=True)))

    def do_POST(self) -> None:
        self._answer(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, path: str, query: dict[str, Any]) -> None:
        self.server.asked.append((path, query))
        self.server.tokens.append(self.headers.get("Authorization"))
        if self.server.faults:
            status, headers, body = self.server.faults.pop(0)
        else:
            said = self.server.answer(path, query)
            status, headers, body = said if isinstance(said, tuple) else (200, {}, json.dumps(said).encode())
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
