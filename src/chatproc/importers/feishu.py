"""Feishu's and Lark's messages, as the API `im/v1/messages` gives them, as messages.

A page is a part of a chat, so neighbours are linked only where the export is said to be complete. What stands
inside a merged forward is its text and no message of the chat. Never asks the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message, Source, beginning, single_files
from chatproc.importers.feishu_text import Body, body_of
from chatproc.importers.keys import global_key
from chatproc.importers.pieces import glimpse
from chatproc.importers.sequence import Neighbours
from chatproc.importers.values import LARGEST_EXACT, identity, members, milliseconds, objects, string

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chatproc.importers.base import Origin, Reading
    from chatproc.importers.pieces import Piece

PLATFORM = "feishu"
_MESSAGES = ("data.items.[]", "items.[]", "[]")
_PAGES = ("", "data")
_MARKS = (b'"message_id"', b'"msg_type"', b'"body"')
_FORWARD = "merge_forward"
_MAX_FORWARD_DEPTH = 8


def _find(path: Path) -> list[Source]:
    absence = ConfigError(
        "no Feishu messages here: looked for *.json with `message_id`, `msg_type` and `body`",
        where=str(path),
        hint="save the answers of the API im/v1/messages as JSON and give the file or its folder",
    )
    return single_files(path, sorted(path.glob("*.json")), _recognizes, absence)


def _recognizes(path: Path) -> bool:
    if path.is_dir():
        return any(map(_recognizes, sorted(path.glob("*.json"))))
    head = beginning(path)
    return all(mark in head for mark in _MARKS)


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    outline = _Outline(source, reading)
    neighbours = Neighbours()
    for piece in _walk(source, reading):
        if piece.kind in ("open", "scalars"):
            continue
        value = reading.object_of(piece, source.name)
        if value is not None and identity(value.get("upper_message_id")) is not None:
            if identity(value["upper_message_id"]) not in outline.forwards:
                reason = "part of a forwarded message that is not here"
                reading.not_understand(source.name, piece.line, value, reason)
            continue
        message = None
        if value is not None:
            origin = reading.origin(source, source.name, piece.line, value)
            message = _message(value, outline, reading.account, origin)
        if message is None:
            neighbours.lose_all()
            continue
        yield neighbours.link(message) if reading.complete else message


def _walk(source: Source, reading: Reading, *, outline: bool = False) -> Iterator[Piece]:
    return reading.walk(source.files[0], source.name, objects=_MESSAGES, watched=_PAGES, outline=outline)


class _Outline:
    """What the messages of a file say of each other: a walk of its own before the messages."""

    def __init__(self, source: Source, reading: Reading) -> None:
        # The messages inside each forward, and the names by which mentions know the people.
        self.forwards: dict[str, list[dict[str, Any]]] = {}
        self.names: dict[str, str] = {}
        inner: list[dict[str, Any]] = []
        page: dict[str, Any] = {}
        found = False
        for piece in _walk(source, reading, outline=True):
            value = glimpse(piece) if piece.kind != "open" else {}
            if piece.kind == "scalars":
                page.update(value)
            elif piece.kind == "object":
                found = True
                self._learn_names(value)
                if value.get("msg_type") == _FORWARD:
                    self.forwards.setdefault(identity(value.get("message_id")) or "", [])
                if value.get("upper_message_id"):
                    inner.append(value)
        for value in inner:
            self.forwards.get(identity(value["upper_message_id"]) or "", []).append(value)
        self._judge(page, source, reading, found=found)

    def _learn_names(self, value: dict[str, Any]) -> None:
        for mention in objects(value.get("mentions")):
            own, name = identity(mention.get("id")), identity(mention.get("name"))
            if own and name:
                self.names[own] = name

    def _judge(self, page: dict[str, Any], source: Source, reading: Reading, *, found: bool) -> None:
        if page.get("code") not in (None, 0):
            raise ConfigError(
                f"Feishu answered with an error, not with messages: {string(page.get('msg'))[:200]!r}",
                where=str(source.files[0]),
            )
        if not found and "has_more" not in page:
            raise ConfigError(
                "no Feishu messages: looked for `items` with `message_id`", where=str(source.files[0])
            )
        if page.get("has_more") is True:
            reading.not_understand(source.name, 0, "", "there are more messages than this page holds")


def _message(value: dict[str, Any], outline: _Outline, account: str, origin: Origin) -> Message | None:
    own, sent_at = identity(value.get("message_id")), milliseconds(value.get("create_time"))
    if own is None or sent_at is None:
        origin.note("no message with an id and a time")
        return None
    chat = identity(value.get("chat_id"))
    message = Message(
        conversation=Conversation(PLATFORM, account, chat or origin.file or "unknown", None, "unknown"),
        key=global_key(PLATFORM, own),
        sent_at=sent_at,
        line=origin.line,
        file=origin.file,
        text="",
        message_id=own,
        source={name: value[name] for name in ("msg_type", "thread_id", "root_id") if value.get(name)},
    )
    _add_sender(message, members(value.get("sender")), outline.names)
    parent = identity(value.get("parent_id"))
    if parent is not None:
        message.reply_to = global_key(PLATFORM, parent)
    if value.get("deleted") is True:
        message.state, message.revision, message.reply_to = "recalled", LARGEST_EXACT, None
        return message
    updated = milliseconds(value.get("update_time"))
    if value.get("updated") is True and updated is not None:
        message.state, message.revision = "edited", updated
    body = body_of(value)
    if value.get("msg_type") == _FORWARD:
        inner = outline.forwards.get(own, [])
        body.text = "\n".join(_forward_lines(own, outline.forwards, {own}, depth=0))
        # A list of messages holds the forward without its messages: this says more, so it is the later.
        message.revision += bool(inner)
    _add_body(message, body, origin)
    return message


def _add_sender(message: Message, sender: dict[str, Any], names: dict[str, str]) -> None:
    message.sender_id = identity(sender.get("id"))
    message.sender_name = names.get(message.sender_id or "")
    kind = sender.get("sender_type")
    if kind == "app":
        message.role = "bot"
    elif message.sender_id is not None and message.sender_id == message.conversation.account:
        message.role = "self"
    elif message.sender_id is None or kind in ("anonymous", "unknown"):
        message.role = "unknown"


def _add_body(message: Message, body: Body, origin: Origin) -> None:
    message.kind = "system" if body.system else "message"
    message.text, message.mentions = body.text, body.mentions
    for reason in body.notes:
        origin.note(reason)
    message.attachments = [
        origin.attach(place, places=[name or key, key], name=name, absent="not_exported")
        for place, (key, name) in enumerate(body.files, 1)
    ]
    keys = [key for key, _ in body.files]
    if keys:
        message.source["keys"] = keys


def _forward_lines(
    own: str, forwards: dict[str, list[dict[str, Any]]], told: set[str], *, depth: int
) -> list[str]:
    """A merged forward: one line a message inside, with its sender's id; none is told twice."""
    indent = "  " * depth
    lines = [f"{indent}[合并转发]"]
    for value in forwards.get(own, []):
        inner = identity(value.get("message_id")) or ""
        sender = identity(members(value.get("sender")).get("id")) or "?"
        said = body_of(value).text
        if value.get("msg_type") == _FORWARD and inner not in told and depth < _MAX_FORWARD_DEPTH:
            told.add(inner)
            said = "\n".join(_forward_lines(inner, forwards, told, depth=depth + 1)).lstrip()
        lines.append(f"{indent}{sender}: {said}")
    return lines


FEISHU = Format(
    "feishu", _find, _read, "*.json with messages that have `message_id`, `msg_type` and `body`", _recognizes
)
