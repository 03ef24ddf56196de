"""A service of JSON lines on loopback, for the example connector: real HTTP, with faults when told.

with LinesServer(messages(30)) as server:
    server.script.append(Fault(503))
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.project import ROOT, START

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def install(folder: Path) -> Path:
    """Install the example as a person does, into a folder of its own."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    source = ROOT / "examples" / "connector-lines"
    subprocess.run([*command, "--target", str(folder), str(source)], check=True, capture_output=True)
    return folder


def messages(count: int, begin: int = 1) -> list[dict[str, Any]]:
    """Lines as the service gives them, a minute apart, in a room of their own each."""
    return [
        {
            "number": number,
            "time": START + 60 * number,
            "room": f"room{number}",
            "author": "王老师",
            "text": f"交作业 {number}",
        }
        for number in range(begin, begin + count)
    ]


@dataclass(frozen=True)
class Fault:
    """What the service does instead of answering: a status, or silence until the client goes."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)


HANG = Fault()


class LinesServer:
    """The service, up between `with` and its end."""

    def __init__(self, lines: Iterable[dict[str, Any] | str] = ()) -> None:
        self.lines = list(lines)
        self.script: list[Fault | None] = []
        """One for each coming request; `None`: answer it. Beyond the list all are answered."""
        self.token: str | None = None
        self.requests: list[dict[str, str]] = []
        self.arrived = threading.Semaphore(0)
        """Released once for each request that is there."""
        self.stopping = threading.Event()
        self._turn = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/messages"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, query: dict[str, str]) -> Fault | None:
        with self._turn:
            self.requests.append(query)
            self.arrived.release()
            return self.script.pop(0) if self.script else None

    def wait_for(self, count: int, seconds: float = 30.0) -> None:
        """Until so many more requests have come."""
        for _ in range(count):
            assert self.arrived.acquire(timeout=seconds), "no request came"

    def page(self, query: dict[str, str]) -> bytes:
        after, limit = int(query["after"]), int(query["limit"])
        known = [line for line in self.lines if isinstance(line, str) or line["number"] > after]
        texts = [line if isinstance(line, str) else json.dumps(line) for line in known[:limit]]
        return "".join(f"{text}\n" for text in texts).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: LinesServer

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news."""


class _Connection(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        owner = self.server.owner
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        fault = owner.take(query)
        if fault is HANG:
            while not owner.stopping.is_set():
                if select.select([self.connection], [], [], 0.02)[0]:
                    return
            return
        if fault is None and owner.token not in {None, self.headers.get("Authorization")}:
            fault = Fault(401)
        body = b"" if fault is not None else owner.page(query)
        self.send_response(200 if fault is None else fault.status)
        for name, value in (fault.headers if fault is not None else {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
