"""QQ through a OneBot v11 program (NapCat, LLOneBot, go-cqhttp …): the history of groups and friends.

Every run asks for the newest messages and goes back from there until it meets what it knows. What lies
between is a gap; the cursor keeps it with the place from which it is read downwards, so a run that ends
anywhere leaves no hole. Programs mean different things by the same parameters: an answer counts only for the
messages in it that are older than those before, and one without any ends the gap.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from chatproc.config import OnebotConnection
from chatproc.connectors.base import SyncError, Toolkit, pages_of
from chatproc.connectors.segments import said_in
from chatproc.connectors.web import Web
from chatproc.importers.base import Conversation, Message
from chatproc.importers.events import event_document
from chatproc.importers.keys import message_key
from chatproc.importers.values import identity, members, milliseconds, objects, string, whole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from chatproc.connectors.base import Page, Pull

__all__ = ["TOOLKIT"]

_MODULE = "connect/onebot"
_ROWS_A_PAGE = 100
_AUTH = {401, 403, 1401, 1403}
_SHOWN = 200


class _RefusedError(Exception):
    """The program answered, and said no."""


async def _pull(ask: Pull) -> AsyncIterator[Page]:
    config = cast("OnebotConnection", ask.config)
    async with Web(config.base_url, token=ask.secret()) as web:
        async for page in _Run(ask, config, web).pages():
            yield page


@dataclass(frozen=True, slots=True)
class _Row:
    """A message of the history, and how to ask for what is before it."""

    message: Message
    seq: int | None
    anchor: dict[str, Any]

    @property
    def time(self) -> int:
        return self.message.sent_at


class _Run:
    """One walk through all groups and friends of a connection."""

    def __init__(self, ask: Pull, config: OnebotConnection, web: Web) -> None:
        self._ask = ask
        self._config = config
        self._web = web
        blank = {"since": ask.since, "chats": {}, "told": {}}
        self._cursor: dict[str, Any] = {**blank, **copy.deepcopy(ask.cursor)}
        self._refused: dict[str, str] = {}

    def pages(self) -> AsyncIterator[Page]:
        """All that there is to read."""
        return pages_of(self._steps(), self._cursor, self._ask.cursor)

    async def _steps(self) -> AsyncIterator[list[bytes]]:
        """What is new in every chat, then the gaps."""
        chats = await self._chats()
        places = {chat: self._place(chat) for chat in chats}
        for chat in sorted(places, key=lambda chat: places[chat]["read"]):
            yield await self._new(chat, chats[chat])
        yield self._tell_refused()
        if chats and self._refused.keys() == chats.keys():
            raise SyncError(
                f"the program gives no history: {next(iter(self._refused.values()))}",
                fault="server",
                where=self._config.base_url,
            )
        for chat, place in places.items():
            while place["gaps"]:
                yield await self._close(chat, chats[chat], place["gaps"][-1])

    async def _chats(self) -> dict[str, str | None]:
        """Names of the chats that are read, by `group:…` or `user:…`."""
        groups, users = self._config.groups, self._config.users
        if groups or users:
            return dict.fromkeys([f"group:{name}" for name in groups] + [f"user:{name}" for name in users])
        try:
            listed = await self._call("get_group_list", {})
        except _RefusedError as no:
            raise SyncError(str(no), fault="server", where=self._config.base_url) from None
        if not isinstance(listed, list):
            raise self._nonsense("the list of groups is no list")
        ids = ((identity(item.get("group_id")), item) for item in objects(listed))
        return {f"group:{group}": identity(item.get("group_name")) for group, item in ids if group}

    def _place(self, chat: str) -> dict[str, Any]:
        place: dict[str, Any] = self._cursor["chats"].setdefault(chat, {"last": None, "gaps": [], "read": 0})
        return place

    async def _new(self, chat: str, name: str | None) -> list[bytes]:
        """The newest messages; a gap, where they do not reach down to what is known."""
        place = self._place(chat)
        try:
            rows, lines = await self._history(chat, name, None)
        except _RefusedError as no:
            self._refused[chat] = str(no)
            return []
        place["read"] = self._ask.now()
        last, since = place["last"], self._cursor["since"]
        new = [row for row in rows if _is_newer(row, last)]
        if rows and len(new) == len(rows) and new[0].time >= since:
            at = {"anchor": new[0].anchor, "mark": _mark(new, new[0])}
            place["gaps"].append({"top": at["mark"], "at": at, "below": last, "again": False})
        if new:
            place["last"] = _mark(new, new[-1])
        recalled = [row for row in rows if row.message.state == "recalled" and not _is_newer(row, last)]
        return lines + _lines([*recalled, *new], since)

    async def _close(self, chat: str, name: str | None, gap: dict[str, Any]) -> list[bytes]:
        """One step down into a gap."""
        place, at, since = self._place(chat), gap["at"], self._cursor["since"]
        try:
            rows, lines = await self._history(chat, name, at["anchor"] if at is not None else None)
        except _RefusedError as no:
            # Also what some programs say where nothing is before the anchor.
            rows, lines, why = [], [], str(no)
        else:
            why = "no older message came"
        older = [row for row in rows if at is None or _is_older(row, at["mark"])]
        if not older:
            is_known = at is None or any(row.message.key in at["mark"]["keys"] for row in rows)
            if not is_known and not gap["again"]:
                # The program was restarted and has forgotten its ids: down from the newest once more.
                gap |= {"at": None, "again": True}
                return lines
            place["gaps"].remove(gap)
            return lines if gap["below"] is None else [*lines, _told(chat, f"a gap stays open: {why}")]
        gap["at"] = {"anchor": older[0].anchor, "mark": _mark(older, older[0])}
        below = gap["below"]
        wanted = [row for row in older if _is_older(row, gap["top"]) and _is_newer(row, below)]
        if wanted:
            gap |= {"top": _mark(wanted, wanted[0]), "again": False}
        if older[0].time < since or any(not _is_newer(row, below) for row in older):
            place["gaps"].remove(gap)
        return lines + _lines(wanted, since)

    def _tell_refused(self) -> list[bytes]:
        """A line for each chat whose history is refused, once; it stops no other."""
        told = self._cursor["told"]
        self._cursor["told"] = dict(self._refused)
        return [_told(chat, why) for chat, why in self._refused.items() if chat not in told]

    async def _history(
        self, chat: str, name: str | None, anchor: dict[str, Any] | None
    ) -> tuple[list[_Row], list[bytes]]:
        """Messages in their order, and lines for the quarantine."""
        kind, _, number = chat.partition(":")
        action = "get_group_msg_history" if kind == "group" else "get_friend_msg_history"
        query = {
            f"{kind}_id": int(number) if number.isdecimal() else number,
            "count": self._ask.budget.page_size(_ROWS_A_PAGE),
            # The names of one wish: upwards from the anchor would be no way back.
            **({"reverse_order": True, "reverseOrder": True, **anchor} if anchor is not None else {}),
        }
        found = members(await self._call(action, query)).get("messages")
        if not isinstance(found, list):
            raise self._nonsense("the answer has no messages")
        rows, lines = [], []
        for value in found:
            row = self._row(value, kind, number, name) if isinstance(value, dict) else None
            if row is None:
                lines.append(json.dumps(value).encode())
            else:
                rows.append(row)
        is_numbered = all(row.seq is not None for row in rows)
        rows.sort(key=lambda row: (row.seq or 0, row.time) if is_numbered else (row.time, row.seq or 0))
        return rows, lines

    def _row(self, value: dict[str, Any], kind: str, number: str, name: str | None) -> _Row | None:
        sent_at, message_id = milliseconds(value.get("time")), identity(value.get("message_id"))
        if sent_at is None or message_id is None:
            return None
        own = identity(value.get("self_id"))
        type_: Literal["group", "private"] = "group" if kind == "group" else "private"
        conversation = Conversation(
            "qq",
            self._config.account_id or own or "",
            number,
            identity(value.get("group_name")) or name if kind == "group" else None,
            type_,
        )
        seq = _seq(value) if kind == "group" else None
        message = Message(
            conversation=conversation,
            key=message_key(conversation, f"#{seq}" if seq is not None else message_id),
            sent_at=sent_at,
            line=0,
            file="",
            text="",
            message_id=message_id,
            index=seq,
            predecessor=message_key(conversation, f"#{seq - 1}") if seq is not None and seq > 1 else None,
            source={"seq": seq} if seq is not None else {},
        )
        _add_sender(message, value, own)
        _add_content(message, value)
        anchor = {
            key: value[key]
            for key in ("message_seq", "message_id")
            if whole(_size(value.get(key))) is not None
        }
        return _Row(message, seq, anchor)

    async def _call(self, action: str, query: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        await self._ask.budget.request()
        said = await self._web.post(f"/{action}", query)
        if not isinstance(said, dict) or "retcode" not in said:
            raise self._nonsense("the answer is none of OneBot's")
        if said["retcode"] == 0:
            return said.get("data")
        words = next(filter(None, (string(said.get(name)) for name in ("wording", "message", "msg"))), "")
        shown = "".join(c if c.isprintable() else " " for c in words[:_SHOWN])
        if said["retcode"] in _AUTH:
            raise SyncError(f"the token is refused: {shown}", fault="auth", where=self._config.base_url)
        raise _RefusedError(f"{action} failed ({identity(said['retcode'])}): {shown}")

    def _nonsense(self, what: str) -> SyncError:
        return SyncError(what, fault="bad_data", where=self._config.base_url)


def _seq(value: dict[str, Any]) -> int | None:
    """The number that the server gave a message in its group; `message_id` is another one, of 32 bits."""
    real = whole(value.get("real_seq"))
    if real is not None:
        return real or None
    seq = whole(value.get("message_seq"))
    return seq if seq and identity(value.get("message_seq")) != identity(value.get("message_id")) else None


def _size(value: object) -> object:
    """The digits of a number that may be below zero."""
    return (identity(value) or "").removeprefix("-")


def _add_sender(message: Message, value: dict[str, Any], own: str | None) -> None:
    sender, anonymous = members(value.get("sender")), members(value.get("anonymous"))
    message.sender_id = identity(anonymous.get("flag") and anonymous.get("id")) or (
        identity(value.get("user_id")) or identity(sender.get("user_id"))
    )
    names = (anonymous.get("name"), sender.get("card"), sender.get("nickname"))
    message.sender_name = next(filter(None, map(identity, names)), None)
    if message.sender_id is not None and message.sender_id == own:
        message.role = "self"
    elif message.sender_id is None and message.sender_name is None:
        message.role = "unknown"


def _add_content(message: Message, value: dict[str, Any]) -> None:
    said = said_in(value.get("message")) or said_in(value.get("raw_message"))
    if said is None:
        # What was recalled stays in the history, empty.
        message.state, message.revision = "recalled", 1
        return
    message.text, message.mentions, message.attachments = said.text, said.mentions, said.attachments
    if said.replied is not None:
        message.source["reply"] = said.replied
        if message.index is None:
            message.reply_to = message_key(message.conversation, said.replied)


def _mark(rows: Sequence[_Row], row: _Row) -> dict[str, Any]:
    """A place in a history: that of a row, with the keys of all that came in the same second."""
    same = [other.message.key for other in rows if other.time == row.time]
    return {"seq": row.seq, "time": row.time, "keys": same}


def _is_newer(row: _Row, mark: dict[str, Any] | None) -> bool:
    if mark is None:
        return True
    if row.seq is not None and mark["seq"] is not None:
        # A later time under a lower number: the counting began anew.
        return bool(row.seq > mark["seq"] or row.time > mark["time"])
    return bool(row.time > mark["time"] or (row.time == mark["time"] and row.message.key not in mark["keys"]))


def _is_older(row: _Row, mark: dict[str, Any]) -> bool:
    if row.seq is not None and mark["seq"] is not None:
        return bool(row.seq < mark["seq"])
    return bool(row.time < mark["time"] or (row.time == mark["time"] and row.message.key not in mark["keys"]))


def _lines(rows: Sequence[_Row], since: int) -> list[bytes]:
    return [event_document(row.message, _MODULE)[0].encode() for row in rows if row.time >= since]


def _told(chat: str, why: str) -> bytes:
    """What stands in the quarantine for a history that cannot be read."""
    return json.dumps({"chat": chat, "why": why}, ensure_ascii=False).encode()


TOOLKIT = Toolkit("onebot", 60, OnebotConnection, _pull)
