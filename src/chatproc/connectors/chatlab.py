"""Sources that speak ChatLab's Pull protocol: `/sessions` and the messages of each, by time.

For each session the cursor has the newest second that was seen, the second from which the backfill goes on
downwards, and, where a run ended between two pages of a stretch, the place of the next page. Servers say
`since` and `end` in seconds and disagree on whether they belong to the stretch: both are asked for with a
second more and cut here. A page that brings nothing new ends a stretch, whatever the server promises.
"""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from chatproc.config import ChatlabConnection
from chatproc.connectors.base import SyncError, Toolkit, pages_of
from chatproc.connectors.pullpages import Spot, answer_of
from chatproc.connectors.web import Web
from chatproc.connectors.windows import Window
from chatproc.importers.base import Conversation, Origin, declared_attachment
from chatproc.importers.chatlab import chatlab_conversation, chatlab_message
from chatproc.importers.events import event_document
from chatproc.importers.keys import Occurrences
from chatproc.importers.values import identity, members, milliseconds, objects, string

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from chatproc.connectors.base import Page, Pull
    from chatproc.importers.base import Message

__all__ = ["TOOLKIT"]

_MODULE = "connect/chatlab"
_ROWS_A_PAGE = 1000
# A page that comes again must differ from a page of equal messages.
_FEWEST = 20
_OVERLAP = 60
_DAY = 86_400
_SHORTEST = 3600
_EMPTY_PAGES = 10
_LIST_PAGES = 1000
_SHOWN = 30


async def _pull(ask: Pull) -> AsyncIterator[Page]:
    config = cast("ChatlabConnection", ask.config)
    async with Web(config.base_url, token=ask.secret()) as web:
        async for page in _Run(ask, config, web).pages():
            yield page


class _Run:
    """One walk through all sessions of a connection."""

    def __init__(self, ask: Pull, config: ChatlabConnection, web: Web) -> None:
        self._ask = ask
        self._config = config
        self._web = web
        self._now = ask.now() // 1000
        blank = {"since": ask.since // 1000, "sessions": {}, "told": []}
        self._cursor: dict[str, Any] = {**blank, **copy.deepcopy(ask.cursor)}

    def pages(self) -> AsyncIterator[Page]:
        """All that there is to read."""
        return pages_of(self._steps(), self._cursor, self._ask.cursor)

    async def _steps(self) -> AsyncIterator[list[bytes]]:
        """What is new of every session, then the backfill."""
        listed = await self._listed()
        wanted, unknown = self._wanted(listed)
        yield unknown
        places = {session: self._place(session) for session in wanted}
        for session in sorted(places, key=lambda session: places[session]["read"]):
            if not self._is_quiet(places[session], listed[session]):
                async for lines in self._new(session, listed[session]):
                    yield lines
        for session, place in places.items():
            if place["backfill"] is not None:
                async for lines in self._backfill(session, listed[session]):
                    yield lines

    async def _listed(self) -> dict[str, dict[str, Any]]:
        """The server's list of sessions, by their id."""
        found: dict[str, dict[str, Any]] = {}
        query: dict[str, str] = {"format": "chatlab"}
        for _ in range(_LIST_PAGES):
            said = await self._get("/sessions", query)
            inner = members(members(said).get("data"))
            lists = (said, members(said).get("sessions"), inner.get("sessions"), members(said).get("data"))
            listed = next((value for value in lists if isinstance(value, list)), None)
            if listed is None:
                raise self._nonsense("the answer is no list of sessions")
            named = {identity(item.get("id")) or "": item for item in objects(listed)}
            is_new = not named.keys() <= found.keys()
            found |= named
            page = members(members(said).get("page")) or members(inner.get("page"))
            cursor = string(page.get("nextCursor"))
            if page.get("hasMore") is not True or not cursor or not is_new:
                break
            query["cursor"] = cursor
        return {session: item for session, item in found.items() if session}

    def _wanted(self, listed: dict[str, dict[str, Any]]) -> tuple[list[str], list[bytes]]:
        """The sessions that are read; and a line, once, for each that is not there."""
        if not self._config.sources:
            return list(listed), []
        by_name = {identity(item.get("name")): session for session, item in listed.items()}
        wanted, lines, unknown = [], [], []
        for source in self._config.sources:
            session = source if source in listed else by_name.get(source)
            if session is not None:
                wanted.append(session)
                continue
            unknown.append(source)
            if source not in self._cursor["told"]:
                there_are = [f"{name} ({session})" for name, session in by_name.items()][:_SHOWN]
                lines.append(_told(source, "not in the server's list of sessions", there_are=there_are))
        self._cursor["told"] = unknown
        return list(dict.fromkeys(wanted)), lines

    def _place(self, session: str) -> dict[str, Any]:
        blank: dict[str, Any] = {
            "conversation": None,
            "seen": None,
            "begun": self._now,
            "read": 0,
            "listed": None,
            "new_at": None,
            "backfill": self._now - _OVERLAP,
            "backfill_at": None,
            "window": _DAY,
        }
        place: dict[str, Any] = self._cursor["sessions"].setdefault(session, blank)
        return place

    def _is_quiet(self, place: dict[str, Any], listed: dict[str, Any]) -> bool:
        """Whether nothing came since the last reading: the list says of the session what it said then."""
        return place["new_at"] is None and place["listed"] is not None and place["listed"] == _mark(listed)

    async def _new(self, session: str, listed: dict[str, Any]) -> AsyncIterator[list[bytes]]:
        """What came since."""
        place = self._place(session)
        # The clocks of the two machines may differ: a message from the future is read, but not believed.
        newest = min(place["begun"] if place["seen"] is None else place["seen"], self._now)
        async for lines in self._stretch(session, listed, "new_at", newest - _OVERLAP, None):
            yield lines
        if place["new_at"] is not None:
            return
        place["read"] = self._now
        last = (milliseconds(listed.get("lastMessageAt")) or 0) // 1000
        is_there = (place["seen"] or 0) >= last
        place["listed"] = _mark(listed) if is_there else None
        yield []

    async def _backfill(self, session: str, listed: dict[str, Any]) -> AsyncIterator[list[bytes]]:
        """What was there before, newest stretch first."""
        place = self._place(session)
        since = self._cursor["since"]
        window = Window(self._ask.budget, _ROWS_A_PAGE, place["window"], shortest=_SHORTEST)
        while (high := place["backfill"]) is not None:
            begun = place["backfill_at"]
            low = begun["low"] if begun is not None else max(since, high - window.seconds)
            found = 0
            async for lines in self._stretch(session, listed, "backfill_at", low, high):
                found += len(lines)
                yield lines
            if place["backfill_at"] is not None:
                return
            window.adapt(found)
            place["window"] = window.usual
            place["backfill"] = low if low > since else None
            yield []

    async def _stretch(
        self, session: str, listed: dict[str, Any], slot: str, low: int, high: int | None
    ) -> AsyncIterator[list[bytes]]:
        """The pages of a stretch of time, both ends included; its place stands in `slot` of the cursor."""
        place = self._place(session)
        spot = Spot.of(place[slot]) if place[slot] is not None else Spot(low=low, since=low - 1, end=high)
        occurrences = Occurrences()
        occurrences.go_on_after(spot.edge)
        keys: set[str] = set()
        pages: set[bytes] = set()
        empty = stale = 0
        while True:
            limit = max(_FEWEST, self._ask.budget.page_size(_ROWS_A_PAGE))
            said = await self._messages(session, spot, limit)
            conversation = await self._conversation(session, listed, members(said.get("meta")))
            rows = said["messages"]
            digest = hashlib.sha256(json.dumps(rows).encode()).digest()
            if not spot.goes_on(_second(rows)):
                occurrences = Occurrences()
            told: list[Message] = []
            lines: list[bytes] = []
            if digest not in pages:
                told, lines = self._read(said, conversation, occurrences, spot, place)
            pages.add(digest)
            new = [message for message in told if message.key not in keys]
            keys.update(message.key for message in new)
            empty, stale = (0 if rows else empty + 1), (stale + 1 if rows and not new else 0)
            following = spot.next(
                members(said.get("sync")),
                new,
                len(rows),
                has_more=stale <= 1 and _has_more(said, limit),
                latest=self._now + _DAY,
            )
            place[slot] = following.as_json() if following is not None else None
            yield lines
            # A server that has nothing for long stretches is asked on in the next run.
            if following is None or empty >= _EMPTY_PAGES:
                return
            spot = following

    def _read(
        self,
        said: dict[str, Any],
        conversation: Conversation,
        occurrences: Occurrences,
        spot: Spot,
        place: dict[str, Any],
    ) -> tuple[list[Message], list[bytes]]:
        """The messages of a page in their order, and the event lines of those in the stretch."""
        names = {
            identity(member.get("platformId")) or "": identity(member.get("groupNickname"))
            or identity(member.get("accountName"))
            or ""
            for member in objects(said.get("members"))
        }
        origin = Origin(note=lambda _reason: None, attach=declared_attachment)
        lines: list[bytes] = []
        told: list[Message] = []
        for row in said["messages"]:
            message = None
            if isinstance(row, dict):
                message = chatlab_message(row, conversation, origin, occurrences=occurrences, names=names)
            if message is None:
                lines.append(json.dumps(row).encode())
                continue
            told.append(message)
            second = message.sent_at // 1000
            if second < spot.low or (spot.end is not None and second > spot.end):
                continue
            if second <= self._now + _DAY:
                place["seen"] = max(place["seen"] or 0, min(second, self._now))
            lines.append(event_document(message, _MODULE)[0].encode())
        return told, lines

    async def _conversation(self, session: str, listed: dict[str, Any], meta: dict[str, Any]) -> Conversation:
        """The conversation of a session: once known, its id never changes, whatever its name becomes."""
        place = self._place(session)
        if place["conversation"] is None:
            if not meta:
                meta = await self._meta(session)
            kind = {"groupId": session} if listed.get("type") == "group" else {}
            of_list = {
                "name": listed.get("name"),
                "platform": listed.get("platform"),
                "type": listed.get("type"),
            }
            found = chatlab_conversation({**of_list, **kind, **meta}, self._config.account_id, session)
            taken = [other["conversation"] for other in self._cursor["sessions"].values()]
            names = {
                (other["platform"], other["account"], other["id"]) for other in taken if other is not None
            }
            # Two friends may have one name.
            is_taken = (found.platform, found.account, found.id) in names
            place["conversation"] = {
                "platform": found.platform,
                "account": found.account,
                "id": session if is_taken else found.id,
                "name": found.name,
                "type": found.type,
            }
        elif meta:
            place["conversation"]["name"] = identity(meta.get("name")) or place["conversation"]["name"]
        return Conversation(**place["conversation"])

    async def _meta(self, session: str) -> dict[str, Any]:
        """What a session says of itself; only the very first page must have it."""
        try:
            said = await self._messages(session, Spot(low=0, since=0, end=None), 1)
        except SyncError as error:
            if error.fault != "too_large":
                raise
            return {}
        return members(said.get("meta"))

    async def _messages(self, session: str, spot: Spot, limit: int) -> dict[str, Any]:
        query = {"format": "chatlab", "limit": str(limit), **spot.query()}
        said = await self._get(f"/sessions/{quote(session, safe='')}/messages", query, is_page=True)
        if not isinstance(said, dict) or not isinstance(said.get("messages"), list):
            raise self._nonsense("the answer has no messages")
        return said

    async def _get(self, path: str, query: dict[str, str], *, is_page: bool = False) -> Any:  # noqa: ANN401 - any JSON
        await self._ask.budget.request()
        return await self._web.get(path, query, read=answer_of if is_page else json.loads)

    def _nonsense(self, what: str) -> SyncError:
        return SyncError(what, fault="bad_data", where=self._config.base_url)


def _second(rows: list[Any]) -> int:
    """The second of the first row; 0 where it says none."""
    return (milliseconds(members(rows[0]).get("timestamp")) or 0) // 1000 if rows else 0


def _has_more(said: dict[str, Any], limit: int) -> bool:
    """Whether the server has a next page; one that says nothing of it may yet know `limit`."""
    sync = members(said.get("sync"))
    return sync["hasMore"] in (True, 1, "true") if "hasMore" in sync else len(said["messages"]) == limit


def _mark(listed: dict[str, Any]) -> str | None:
    """What the list says of a session's last message; `None` where it does not."""
    last = listed.get("lastMessageAt")
    return json.dumps([last, listed.get("messageCount")]) if last is not None else None


def _told(source: str, why: str, **more: object) -> bytes:
    """What stands in the quarantine for a session that cannot be read."""
    return json.dumps({"source": source, "why": why, **more}, ensure_ascii=False).encode()


TOOLKIT = Toolkit("chatlab", 300, ChatlabConnection, _pull)
