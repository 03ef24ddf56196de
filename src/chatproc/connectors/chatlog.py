"""WeChat through chatlog's HTTP API: one talker after the other, in closed windows of time.

For each talker the cursor has the newest second that was seen and the second from which the backfill goes on
downwards. What is new is read again from a while before the newest message, never from the clock: WeChat may
bring old messages late. A window is asked for whole: with `limit` and `offset` chatlog sorts only a part of
what it has and leaves rows out. Its bounds are full seconds that two windows share.
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, cast

from chatproc.config import ChatlogConnection
from chatproc.connectors.base import SyncError, Toolkit, pages_of
from chatproc.connectors.web import AnswerError, Web
from chatproc.connectors.windows import Window
from chatproc.importers.base import Message, Origin, declared_attachment
from chatproc.importers.events import event_document
from chatproc.importers.values import identity, members, objects, string, whole
from chatproc.importers.wechat import chatlog_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from chatproc.connectors.base import Page, Pull

__all__ = ["TOOLKIT"]

_MODULE = "connect/chatlog"
_ROWS_A_PAGE = 1000
_MARGIN = 600
_DAY = 86_400
# Nothing is recalled later than a few minutes after it was sent.
_RECENT_SECONDS, _RECENT_ROWS = 600, 200
_NOT_FOUND = 404
_NOTHING_THEN = "time range not found"
_RECALLED = ("撤回了", "recalled a message")
# What stands in the list of chats and is none: folders, and accounts that only publish.
_NO_CHATS = ("gh_", "@", "brandsessionholder", "brandservicesessionholder", "notifymessage", "newsapp")


async def _pull(ask: Pull) -> AsyncIterator[Page]:
    config = cast("ChatlogConnection", ask.config)
    async with Web(config.base_url, token=ask.secret()) as web:
        async for page in _Run(ask, config, web).pages():
            yield page


class _Run:
    """One walk through all talkers of a connection."""

    def __init__(self, ask: Pull, config: ChatlogConnection, web: Web) -> None:
        self._ask = ask
        self._config = config
        self._web = web
        self._now = ask.now() // 1000
        self._cursor: dict[str, Any] = {
            "since": ask.since // 1000,
            "talkers": {},
            **copy.deepcopy(ask.cursor),
        }

    def pages(self) -> AsyncIterator[Page]:
        """All that there is to read."""
        return pages_of(self._steps(), self._cursor, self._ask.cursor)

    async def _steps(self) -> AsyncIterator[list[bytes]]:
        """What is new of every talker, then the backfill."""
        listed = await self._listed()
        places = {name: self._place(name) for name in self._config.talkers or listed}
        self._forget_recent()
        for name in sorted(places, key=lambda name: places[name]["read"]):
            if not self._is_quiet(places[name], listed.get(name)):
                async for lines in self._new(name, listed.get(name)):
                    yield lines
        for name, place in places.items():
            if place["backfill"] is not None:
                async for lines in self._backfill(name):
                    yield lines

    def _place(self, name: str) -> dict[str, Any]:
        blank: dict[str, Any] = {
            "seen": None,
            "begun": self._now,
            "at": None,
            "read": 0,
            "listed": None,
            "backfill": self._now - _MARGIN,
            "window": None,
            "recent": [],
        }
        place: dict[str, Any] = self._cursor["talkers"].setdefault(name, blank)
        return place

    def _forget_recent(self) -> None:
        for place in self._cursor["talkers"].values():
            if (place["seen"] or 0) < self._now - 2 * _RECENT_SECONDS:
                place["recent"] = []

    async def _listed(self) -> dict[str, _Listed]:
        """The chats, by their id, as chatlog's list of chats has them."""
        said = await self._get("/api/v1/session", {"format": "json"})
        items = objects(members(said).get("items"))
        found = {identity(item.get("userName")): _Listed.of(item) for item in items}
        return {name: chat for name, chat in found.items() if name and not name.startswith(_NO_CHATS)}

    def _is_quiet(self, place: dict[str, Any], listed: _Listed | None) -> bool:
        """Whether nothing came since the last reading: the list names the same last message still."""
        return listed is not None and place["at"] is None and place["listed"] == listed.mark

    async def _new(self, name: str, listed: _Listed | None) -> AsyncIterator[list[bytes]]:
        """What came since, oldest first."""
        place = self._place(name)
        newest = min(place["begun"] if place["seen"] is None else place["seen"], self._now)
        low = newest - _MARGIN if place["at"] is None else place["at"]
        # The clocks of the two machines may differ: a message from the future is read, but not believed.
        top = self._now + _DAY
        window = Window(self._ask.budget, _ROWS_A_PAGE, self._config.window_minutes * 60)
        # Little can stand where the last run has been already.
        begin = max(low, min(place["read"], self._now)) if window.is_usual else low
        while low < top:
            high = begin + window.seconds
            high = top if high >= self._now else high
            lines, rows = await self._read(name, low, high, place)
            window.adapt(rows)
            low = begin = place["at"] = high
            if high < top:
                yield lines
        place["at"] = None
        place["read"] = self._now
        # The list may name a message that is not decrypted yet.
        is_there = listed is not None and (place["seen"] or 0) >= listed.second
        place["listed"] = listed.mark if listed is not None and is_there else None
        yield lines

    async def _backfill(self, name: str) -> AsyncIterator[list[bytes]]:
        """What was there before, newest first."""
        place = self._place(name)
        since = self._cursor["since"]
        window = Window(self._ask.budget, _ROWS_A_PAGE, place["window"] or self._config.window_minutes * 60)
        while (high := place["backfill"]) is not None:
            low = max(since, high - window.seconds)
            lines, rows = await self._read(name, low, high, place)
            window.adapt(rows)
            place["window"] = window.usual
            place["backfill"] = low if low > since else None
            if place["backfill"] is None and place["seen"] is None and name in self._config.talkers:
                lines.append(_told(name, "no message since the first sync's day; is it the chat's id?"))
            yield lines

    async def _read(self, name: str, low: int, high: int, place: dict[str, Any]) -> tuple[list[bytes], int]:
        """Event lines of a window, both ends included, and how many rows it held."""
        query = {"time": f"{low}~{high}", "talker": name, "format": "json"}
        try:
            said = await self._get("/api/v1/chatlog", query)
        except AnswerError as error:
            if error.status != _NOT_FOUND or not str(error.said.get("error")).startswith(_NOTHING_THEN):
                raise
            return [], 0
        if not isinstance(said, list):
            raise SyncError(
                "the answer is no list of messages", fault="bad_data", where=self._config.base_url
            )
        lines: list[bytes] = []
        told: list[tuple[int | None, Message]] = []
        for row in said:
            message = self._message(row)
            if message is None:
                lines.append(json.dumps(row).encode())
            elif message.sent_at >= self._cursor["since"] * 1000:
                told.append((whole(row.get("seq")), message))
        messages = [message for _, message in told] + _recalls(place["recent"], told)
        self._remember(place, told)
        return [*lines, *map(_line, messages)], len(said)

    def _message(self, row: object) -> Message | None:
        if not isinstance(row, dict):
            return None
        origin = Origin(note=lambda _reason: None, attach=declared_attachment)
        return chatlog_message(row, self._config.account_id, origin)

    def _remember(self, place: dict[str, Any], told: list[tuple[int | None, Message]]) -> None:
        """Keep the newest second, and which messages may be recalled yet."""
        recent = {entry[1]: entry for entry in place["recent"]}
        for seq, message in told:
            second = message.sent_at // 1000
            if second <= self._now + _DAY:
                place["seen"] = max(place["seen"] or 0, min(second, self._now))
            if seq is not None and message.kind == "message":
                recent[message.key] = [seq, message.key, message.sent_at, message.sender_id]
        begin = ((place["seen"] or 0) - _RECENT_SECONDS) * 1000
        kept = sorted((entry for entry in recent.values() if entry[2] >= begin), key=lambda entry: entry[2])
        place["recent"] = kept[-_RECENT_ROWS:]

    async def _get(self, path: str, query: dict[str, str]) -> Any:  # noqa: ANN401 - any JSON
        await self._ask.budget.request()
        return await self._web.get(path, query)


def _recalls(recent: list[list[Any]], told: list[tuple[int | None, Message]]) -> list[Message]:
    """Recalls of the messages in whose row a notice stands by now."""
    keys = {message.key for _, message in told}
    notices = {
        seq: message
        for seq, message in told
        if message.kind == "system" and any(word in message.text for word in _RECALLED)
    }
    return [
        Message(
            conversation=notices[seq].conversation,
            key=key,
            sent_at=sent_at,
            line=0,
            file="",
            text="",
            message_id=str(seq),
            revision=1,
            state="recalled",
            sender_id=sender,
            role="user" if sender else "unknown",
            source={"notice": notices[seq].text},
        )
        for seq, key, sent_at, sender in recent
        if seq in notices and key not in keys
    ]


@dataclass(frozen=True, slots=True)
class _Listed:
    """A chat in the list: the second of its last message, and a mark that changes with that message."""

    second: int
    mark: str

    @classmethod
    def of(cls, item: dict[str, Any]) -> Self:
        said = [item.get("nTime"), item.get("content")]
        mark = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
        try:
            moment = datetime.fromisoformat(string(item.get("nTime")))
        except ValueError:
            return cls(0, mark)
        return cls(int(moment.timestamp()) if moment.tzinfo is not None else 0, mark)


def _told(talker: str, why: str) -> bytes:
    """What stands in the quarantine for a talker that cannot be read."""
    return json.dumps({"talker": talker, "why": why}, ensure_ascii=False).encode()


def _line(message: Message) -> bytes:
    return event_document(message, _MODULE)[0].encode()


TOOLKIT = Toolkit("chatlog", 300, ChatlogConnection, _pull)
