"""Stretches of a Matrix room's timeline as event lines: in order, linked, with the edits that count.

A server passes on every edit, also one by somebody who did not write the message; only the writer's own
counts. Never drops an event: what cannot be read becomes a notice in the sequence or a line of the
quarantine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chatproc.importers.base import Message, Origin, declared_attachment
from chatproc.importers.events import event_document
from chatproc.importers.keys import global_key
from chatproc.importers.matrix import PLATFORM, matrix_key, room_message
from chatproc.importers.values import exact_milliseconds, identity, members, objects, string

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from chatproc.importers.base import Conversation

__all__ = ["Stretch", "Timeline", "display_names", "linked"]

_MODULE = "connect/matrix"
_EDITS_REMEMBERED = 200
# More on one page would use up the requests of a day, and the page would never be over.
_EDITS_LOOKED_UP = 100


@dataclass(slots=True)
class Stretch:
    """What a stretch of a timeline gave.

    Attributes:
        lines: Event lines, and lines for the quarantine.
        oldest: The first event of it that is a message, with its writer's name: `linked` links it once
            it is known what stands before it.
        newest: Id and key of the last event of it that is a message.
    """

    lines: list[bytes] = field(default_factory=list)
    oldest: dict[str, Any] | None = None
    newest: dict[str, str] | None = None


class Timeline:
    """Reads the events of one page, of whatever rooms."""

    def __init__(
        self, edits: dict[str, str], fetch: Callable[[str, str], Awaitable[dict[str, Any] | None]]
    ) -> None:
        """Begin a page.

        Args:
            edits: Which message an edit belongs to, by the edit's id; kept in the cursor, because an edit
                that is redacted no longer says it.
            fetch: Asks for the event with an id in a room; `None` when it is not to be had.
        """
        self._edits = edits
        self._fetch = fetch
        self._writers: dict[str, str | None] = {}

    async def stretch(
        self,
        room: Conversation,
        events: Sequence[object],
        *,
        names: Mapping[str, str],
        before: str | None = None,
        until: int = 0,
    ) -> Stretch:
        """Read neighbours in the order in which they happened.

        Args:
            room: Where they are from.
            events: As the server gave them.
            names: Display names by user id.
            before: Key of the message just before the first of them, where that is proven.
            until: Messages sent before are left out; milliseconds.
        """
        found = Stretch()
        writers = {
            string(event.get("event_id")): string(event.get("sender")) for event in objects(list(events))
        }
        for event in events:
            if not isinstance(event, dict):
                found.lines.append(_as_it_is(event))
                continue
            message = await self._message(event, room, names, writers, found)
            if message is None:
                continue
            if _stands_at_its_own_place(message, event):
                message.predecessor, before = before, message.key
                found.oldest = found.oldest or {"event": event, "name": message.sender_name}
                found.newest = {"id": string(event.get("event_id")), "key": message.key}
            if message.sent_at >= until:
                found.lines.append(_line(message))
        return found

    async def _message(
        self,
        event: dict[str, Any],
        room: Conversation,
        names: Mapping[str, str],
        writers: Mapping[str, str],
        found: Stretch,
    ) -> Message | None:
        if (notice := _unread(event, room, names)) is not None:
            return notice
        notes: list[str] = []
        target = _edited(event)
        writer = None
        if target is not None:
            writer = writers.get(target) or await self._writer(room.id, target)
            if writer is None:
                notes.append("an edit of a message that is not to be had")
        message = _read(event, room, names, notes, writer) if not notes else None
        if message is None:
            if notes:
                found.lines.append(_as_it_is(event))
            return None
        if message.state == "edited" and target is not None:
            self._remember(string(event.get("event_id")), target)
        original = self._edits.get(message.message_id or "")
        if message.state == "recalled" and original is not None:
            return await self._without_edit(message, original, room, names) or message
        return message

    async def _writer(self, room_id: str, event_id: str) -> str | None:
        if event_id not in self._writers:
            if len(self._writers) == _EDITS_LOOKED_UP:
                return None
            found = await self._fetch(room_id, event_id)
            self._writers[event_id] = identity((found or {}).get("sender"))
        return self._writers[event_id]

    def _remember(self, edit: str, original: str) -> None:
        self._edits[edit] = original
        while len(self._edits) > _EDITS_REMEMBERED:
            del self._edits[next(iter(self._edits))]

    async def _without_edit(
        self, redaction: Message, original: str, room: Conversation, names: Mapping[str, str]
    ) -> Message | None:
        """What a message says after one of its edits was redacted: the edit before, or its first text."""
        event = await self._fetch(room.id, original)
        if event is None or not members(event.get("content")):
            return None
        relations = members(members(event.get("unsigned")).get("m.relations"))
        edit = members(members(relations.get("m.replace")).get("content"))
        content = members(edit.get("m.new_content")) or members(event.get("content"))
        relation = {"rel_type": "m.replace", "event_id": original}
        told = {
            "type": event.get("type"),
            "event_id": redaction.message_id,
            "sender": event.get("sender"),
            "origin_server_ts": redaction.sent_at,
            "content": {"m.new_content": content, "m.relates_to": relation},
        }
        return _read(told, room, names, [])


def linked(room: Conversation, kept: dict[str, Any], before: str, until: int) -> list[bytes]:
    """The oldest message of a stretch once more, now with the key of the one before it."""
    event, name = kept["event"], kept["name"]
    names = {string(event.get("sender")): name} if name else {}
    message = _unread(event, room, names) or _read(event, room, names, [])
    if message is None or message.sent_at < until:
        return []
    message.predecessor = before
    return [_line(message)]


def display_names(events: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Names of members by their user id."""
    found = {}
    for event in events:
        user, name = event.get("state_key"), members(event.get("content")).get("displayname")
        if event.get("type") == "m.room.member" and isinstance(user, str) and isinstance(name, str) and name:
            found[user] = name
    return found


def _read(
    event: dict[str, Any],
    room: Conversation,
    names: Mapping[str, str],
    notes: list[str],
    writer: str | None = None,
) -> Message | None:
    origin = Origin(note=notes.append, attach=declared_attachment)
    message = room_message(event, room, origin, writer=writer, names=names)
    if message is not None:
        message.index = message.sent_at if _stands_at_its_own_place(message, event) else None
    return message


def _unread(event: dict[str, Any], room: Conversation, names: Mapping[str, str]) -> Message | None:
    """The notice in place of an encrypted message, under a key of its own: it may yet come decrypted."""
    event_id, sent_at = identity(event.get("event_id")), exact_milliseconds(event.get("origin_server_ts"))
    is_encrypted = event.get("type") == "m.room.encrypted" and bool(members(event.get("content")))
    if event_id is None or sent_at is None or not is_encrypted:
        return None
    sender = identity(event.get("sender"))
    return Message(
        conversation=room,
        key=_key_of_unread(event_id),
        sent_at=sent_at,
        line=0,
        file="",
        text="[encrypted]",
        kind="system",
        message_id=event_id,
        sender_id=sender,
        sender_name=names.get(sender or ""),
        index=sent_at,
        source={"type": "m.room.encrypted"},
    )


def _key_of_unread(event_id: str) -> str:
    return global_key(PLATFORM, f"{event_id}~encrypted")


def _stands_at_its_own_place(message: Message, event: dict[str, Any]) -> bool:
    """Edits and redactions change another message; they are no links of the sequence."""
    event_id = string(event.get("event_id")).strip()
    return message.key in (matrix_key(event_id), _key_of_unread(event_id))


def _edited(event: dict[str, Any]) -> str | None:
    relation = members(members(event.get("content")).get("m.relates_to"))
    return identity(relation.get("event_id")) if relation.get("rel_type") == "m.replace" else None


def _line(message: Message) -> bytes:
    return event_document(message, _MODULE)[0].encode()


def _as_it_is(value: object) -> bytes:
    """What the server gave, for the quarantine."""
    return json.dumps(value).encode()
