"""Who may talk to the console: one browser of this machine, and only from the console's own pages.

Every request passes the gate before any page sees it. The gate knows no page, no store and no configuration.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENTRANCE = "/enter"
"""Where the address with the token leads."""

_HTTP = 80

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # `no-referrer` would make browsers send `Origin: null` with the console's own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_ENTERED = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>chatproc</title>'
    '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
    '<meta http-equiv="refresh" content="0; url=/"><p><a href="/">chatproc</a></p></html>'
)
_CLOSED = (
    "This page belongs to the person who started `chatproc console`.\n"
    "Open the address that the program shows; it works once. If it was used before, end the program with "
    "Ctrl-C and start it again.\n"
)


class Gate:
    """The secrets of one process, and the checks that they make possible.

    Args:
        port: On which the console listens; part of every name and address that counts.
    """

    def __init__(self, port: int) -> None:
        """Make new secrets; those of another process are worth nothing here."""
        names = ("127.0.0.1", "localhost")
        # Of port 80 browsers leave the number out.
        self._hosts = tuple(name if port == _HTTP else f"{name}:{port}" for name in names)
        self._cookie_name = f"chatproc_console_{port}"  # cookies do not tell ports apart
        self._cookie = secrets.token_urlsafe(32)
        self._token: str | None = secrets.token_urlsafe(32)
        self.form_token = secrets.token_urlsafe(32)
        """Stands in each form of the console's own pages."""
        self.address = f"http://{self._hosts[0]}{ENTRANCE}?token={self._token}"
        """Opens the console, once."""

    def enter(self, query: bytes) -> bool:
        """Whether a query holds the token. It is used up by that.

        Args:
            query: Of the request.
        """
        given = parse_qs(query.decode("latin-1")).get("token", [""])[0]
        right = self._token is not None and _same(given, self._token)
        if right:
            self._token = None
        return right

    def knows(self, headers: dict[str, str]) -> bool:
        """Whether a request brings the cookie.

        Args:
            headers: By lower-case name.
        """
        return _same(cookie_parser(headers.get("cookie", "")).get(self._cookie_name, ""), self._cookie)

    def is_own_host(self, headers: dict[str, str]) -> bool:
        """Whether the browser asks for the console's own name, not for one that was bent to this machine.

        Args:
            headers: By lower-case name.
        """
        return headers.get("host", "") in self._hosts

    def is_own_page(self, headers: dict[str, str]) -> bool:
        """Whether a browser says that the request comes from a page of the console.

        Args:
            headers: By lower-case name. `Origin` and `Sec-Fetch-Site` must say so where given; one must be.
        """
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is None and site is None:
            return False
        own = f"http://{headers['host']}"
        return (origin is None or origin == own) and (site is None or site == "same-origin")

    def is_own_form(self, token: str) -> bool:
        """Whether a form was made by this process.

        Args:
            token: What the form holds.
        """
        return _same(token, self.form_token)

    @property
    def cookie_header(self) -> str:
        """Sets the cookie for as long as the browser is open."""
        return f"{self._cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"


def _same(given: str, right: str) -> bool:
    return secrets.compare_digest(given.encode(), right.encode())


class Guarded:
    """An application behind the gate.

    Args:
        app: What only the right browser reaches.
        gate: Says which one that is.
    """

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        """Keep both."""
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then let it through, or answer it here."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        app = self._app if refusal is None else refusal

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _with_own(message["headers"])
            await send(message)

        await app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """The answer to a request that goes no further."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if not self._gate.is_own_host(headers):
            return PlainTextResponse("This is not the console's address.\n", 421)
        if scope["path"] == ENTRANCE and scope["method"] == "GET" and self._gate.enter(scope["query_string"]):
            # A page, not a redirect: the browser then comes from here and sends a strict cookie.
            return HTMLResponse(_ENTERED, headers={"set-cookie": self._gate.cookie_header})
        if not self._gate.knows(headers):
            return PlainTextResponse(_CLOSED, 403)
        if scope["path"] == ENTRANCE:
            return HTMLResponse(_ENTERED)
        if scope["method"] not in {"GET", "HEAD"} and not self._gate.is_own_page(headers):
            return PlainTextResponse("This request does not come from a page of the console.\n", 403)
        return None


def _with_own(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name.decode("latin-1").lower() not in _HEADERS]
    return kept + [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
