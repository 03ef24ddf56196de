"""Example connector: a service that answers `GET URL?after=N&limit=M&since=T` with one JSON object a line.

    {"number": 41, "time": 1782871200, "room": "lab", "author": "王老师", "text": "周五前交报告"}

Lines come in the order of their numbers. A connector only fetches and turns into events: the cursor that it
gives with a page is stored together with the page's events, so a crash can neither lose nor double anything.
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Literal

from chatproc.config import ConnectionConfig
from chatproc.connectors.base import Page, SyncError, Toolkit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from chatproc.connectors.base import FaultClass, Pull

USUAL_PAGE = 200
PATIENCE = 30
LARGEST_ANSWER = 8 * 1024 * 1024


class LinesConnection(ConnectionConfig):
    """An entry under `[[connections]]`; the keys that every connection has are inherited."""

    toolkit: Literal["lines"]
    url: str


async def pull(ask: Pull) -> AsyncIterator[Page]:
    """Yield pages until the service has nothing newer."""
    after = ask.cursor.get("after", 0)
    more = True
    while more:
        # Before each request, also one that may fail. It raises when the day's budget is used up: let it.
        await ask.budget.request()
        size = ask.budget.page_size(USUAL_PAGE)
        lines = await asyncio.to_thread(_fetch, ask, after, size)
        before = after
        events: list[dict[str, Any] | bytes] = []
        for line in lines:
            number, event = _event(ask, line)
            after = max(after, number)
            events.append(event)
        more = len(lines) >= size and after > before
        yield Page(events=events, cursor={"after": after}, more=more)


def _event(ask: Pull, line: bytes) -> tuple[int, dict[str, Any] | bytes]:
    """A line's number and event; what is not understood goes on as it is, into the quarantine."""
    try:
        told = json.loads(line)
        number, room = int(told["number"]), str(told["room"])
        key = f"lines:{ask.config.id}:{number}"
        return number, {
            "schema": "chatproc.event/1",
            "event_id": key,
            "message_key": key,
            "revision": 0,
            "platform": "lines",
            "account_id": ask.config.account_id,
            "conversation": {"id": room, "name": room, "type": "group"},
            "sent_at": float(told["time"]),
            "sender": {"id": str(told["author"]), "name": str(told["author"])},
            "text": str(told["text"]),
            # No `sequence`: nothing proves that no line of a room is missing in between.
        }
    except (ValueError, KeyError, TypeError):
        return 0, line


def _fetch(ask: Pull, after: int, size: int) -> list[bytes]:
    """One request. Its time ends it, for a thread cannot be stopped from outside."""
    settings: Any = ask.config
    # The first sync reaches back `backfill_days`; later ones go on from the cursor.
    query = urllib.parse.urlencode({"after": after, "limit": size, "since": ask.since // 1000})
    request = urllib.request.Request(f"{settings.url}?{query}")  # noqa: S310 - the user's own URL
    secret = ask.secret()
    if secret is not None:
        request.add_header("Authorization", f"Bearer {secret}")
    try:
        with _OPENER.open(request, timeout=PATIENCE) as answer:
            body = answer.read(LARGEST_ANSWER + 1)
    except urllib.error.HTTPError as error:
        raise _refusal(error, settings.url) from None
    except (OSError, ValueError) as error:
        # The class and the place are enough: an error's own words may hold a secret.
        raise SyncError(f"no answer ({type(error).__name__})", fault="network", where=settings.url) from None
    if len(body) > LARGEST_ANSWER:
        raise SyncError("the answer is too long", fault="too_large", where=settings.url)
    return body.splitlines()


def _refusal(error: urllib.error.HTTPError, url: str) -> SyncError:
    """The class decides what becomes of the connection."""
    classes: dict[int, FaultClass] = {401: "auth", 403: "auth", 413: "too_large", 429: "rate"}
    fault = classes.get(error.code, "server")
    asked = error.headers.get("Retry-After", "")
    return SyncError(
        f"the service answered {error.code}",
        fault=fault,
        where=url,
        retry_after=float(asked) if asked.isdecimal() else None,
    )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another place."""

    def redirect_request(self, *_: object) -> None:
        """None: the answer stays the refusal that it is."""


_OPENER = urllib.request.build_opener(_NoRedirect)

TOOLKIT = Toolkit("lines", 60, LinesConnection, pull)
