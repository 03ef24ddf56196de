"""A real Radicale on loopback, with one task list, and a person's program that edits what is on it."""

from __future__ import annotations

import functools
import re
import tempfile
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections import Counter
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import radicale
import radicale.config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

USER, PASSWORD = "wang", "pass: 密码"
_MAKE = """<?xml version="1.0"?><c:mkcalendar xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><set><prop>
<c:supported-calendar-component-set><c:comp name="VTODO"/></c:supported-calendar-component-set></prop></set>
</c:mkcalendar>"""


class Radicale:
    """The server; use as a context.

    Attributes:
        asked: How often each method was used by the program that is tested.
        before: Called with the method before the server sees a request; a status it gives is the answer.
        after: Called with the method once the server has done it, before the answer goes out.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.before: Callable[[str], str | None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        (folder / "users").write_text(f"{USER}:{PASSWORD}\n", encoding="utf-8")
        settings = radicale.config.load()
        settings.update(
            {
                "auth": {
                    "type": "htpasswd",
                    "htpasswd_filename": str(folder / "users"),
                    "htpasswd_encryption": "plain",
                    "delay": "0",
                },
                "storage": {"filesystem_folder": str(folder / "data"), "_filesystem_fsync": "False"},
                "logging": {"level": "critical"},
            },
            "the test",
            privileged=True,
        )
        self._application = radicale.Application(settings)
        self._server = make_server("127.0.0.1", 0, self._answer, _Threads, _Quiet)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.origin}/{USER}/tasks"
        serve = functools.partial(self._server.serve_forever, poll_interval=0.02)
        threading.Thread(target=serve, daemon=True).start()
        self.request("MKCALENDAR", "", _MAKE)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._folder.cleanup()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        if environ.get("HTTP_USER_AGENT") != "chatproc":
            return list(self._application(environ, start))
        self.asked[method] += 1
        refused = self.before(method)
        if refused is not None:
            headers = [("Location", self.origin)] if refused.startswith("3") else []
            start(refused, headers)
            return [b""]
        answer = list(self._application(environ, start))
        self.after(method)
        return answer

    # ── a person's program ─────────────────────────────────────────────────────────────────────────────

    def request(self, method: str, name: str, body: str = "", **headers: str) -> str:
        login = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self.url}/{name}",
            method=method,
            data=body.encode() if body else None,
            headers={"Authorization": f"Basic {login}", "Content-Type": "text/calendar", **headers},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback
            said: str = answer.read().decode()
        return said

    def names(self) -> list[str]:
        listed = self.request("PROPFIND", "", Depth="1")
        return sorted(re.findall(r"/([^/<]+\.ics)</", listed))

    def texts(self) -> dict[str, str]:
        """The calendar of each file, its lines unfolded."""
        return {name: self.request("GET", name).replace("\r\n ", "") for name in self.names()}

    def edit(self, name: str, *changes: tuple[str, str]) -> None:
        """Replace by regular expressions, as a program on a telephone does, which counts `SEQUENCE` up."""
        text = self.request("GET", name).replace("\r\n ", "")
        counted = re.sub(r"SEQUENCE:(\d+)", lambda found: f"SEQUENCE:{int(found[1]) + 1}", text)
        for pattern, into in changes:
            counted, times = re.subn(pattern, into.replace("\\", r"\\"), counted)
            assert times, pattern
        self.request("PUT", name, counted)

    def complete(self, name: str) -> None:
        self.edit(name, ("STATUS:NEEDS-ACTION", "STATUS:COMPLETED\r\nCOMPLETED:20260708T010203Z"))

    def delete(self, name: str) -> None:
        self.request("DELETE", name)


class _Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass
