"""Matrix room events as messages, and Element's JSON export of a room.

An edit and a redaction are revisions of the message that they name; a reaction or a vote is no message. What
an event tells never depends on its neighbours, so that an export and a pull of the room tell the same. Never
asks a server, and never passes on a key to encrypted content.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message, Source, beginning, single_files
from chatproc.importers.keys import global_key
from chatproc.importers.pieces import glimpse
from chatproc.importers.sequence import Neighbours
from chatproc.importers.values import (
    LARGEST_EXACT,
    exact_milliseconds,
    identity,
    members,
    objects,
    string,
    strings,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from chatproc.importers.base import Origin, Reading
    from chatproc.importers.pieces import Piece

PLATFORM = "matrix"
_MESSAGE = "messages.[]"
_MARKS = (b'"origin_server_ts"', b'"event_id"')
# Nothing follows a redaction: it is the last revision. Where only the emptied event is left, one before.
_REDACTED = LARGEST_EXACT
_EMPTIED = LARGEST_EXACT - 1
_POLL_STARTS = {"m.poll.start", "org.matrix.msc3381.poll.start"}
# No messages and no notices either: reactions, votes, the signalling of a call.
_SILENT = {
    "m.reaction",
    "m.poll.response",
    "org.matrix.msc3381.poll.response",
    "m.call.candidates",
    "m.call.answer",
    "m.call.select_answer",
    "m.call.negotiate",
}
_NOTICES = ("m.call.", "m.key.verification.", "m.poll.end", "org.matrix.msc3381.poll.end")
_FILES = {"m.image": "Image", "m.video": "Video", "m.audio": "Audio", "m.file": "File"}
_TEXTS = {"m.text", "m.notice", "m.emote", "m.server_notice"}
_PILL = re.compile(r"<a\s[^>]*?href=[\"']https://matrix\.to/#/(@[^\"'?]+)[^>]*>(.*?)</a>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_SHOWN_WORDS = 500


def matrix_key(event_id: str) -> str:
    """The key of a room event: its id is unique in all of Matrix."""
    return global_key(PLATFORM, event_id)


def room_message(
    event: dict[str, Any],
    room: Conversation,
    origin: Origin,
    *,
    writer: str | None = None,
    names: Mapping[str, str] | None = None,
) -> Message | None:
    """The message, or the revision of one, that a room event is.

    Args:
        event: The event as the client-server API or Element's export writes it, decrypted.
        room: The room; its `account` is the user who collects.
        origin: Where the event came from.
        writer: Who wrote the message that this event edits, where that is known: another's edit is refused.
        names: Display names by user id, for the name beside the id; they never enter a text.

    Returns:
        `None` for reactions, votes and the signalling of calls, which are no messages, and for what cannot
        be understood, which `origin.note` is told.
    """
    kind, event_id = string(event.get("type")), identity(event.get("event_id"))
    sent_at = exact_milliseconds(event.get("origin_server_ts"))
    if kind in _SILENT:
        return None
    if not kind or event_id is None or sent_at is None:
        origin.note("no event with a type, an id and a time")
        return None
    message = Message(
        conversation=room,
        key=matrix_key(event_id),
        sent_at=sent_at,
        line=origin.line,
        file=origin.file,
        text="",
        message_id=event_id,
        source={"type": kind},
    )
    _add_sender(message, event, names or {})
    if kind == "m.room.redaction":
        return _redaction(message, event, origin)
    if _is_emptied(event, kind):
        return _emptied(message, event, origin)
    if "state_key" in event:
        message.kind, message.text = "system", _state_text(event, kind)
        return message
    return _room_content(message, event, kind, origin, writer)


def _room_content(
    message: Message, event: dict[str, Any], kind: str, origin: Origin, writer: str | None
) -> Message | None:
    content = members(event.get("content"))
    relation = members(content.get("m.relates_to"))
    if kind == "m.room.encrypted":
        origin.note("encrypted, and nothing here can read it")
        return None
    if relation.get("rel_type") == "m.replace":
        target, content = identity(relation.get("event_id")), members(content.get("m.new_content"))
        if target is None or not content:
            origin.note("an edit without its message or its new content")
            return None
        if writer is not None and writer != message.sender_id:
            origin.note("an edit of another's message")
            return None
        message.key, message.message_id = matrix_key(target), target
        message.state, message.revision = "edited", min(message.sent_at, _EMPTIED - 1)
        message.source["edit"] = event.get("event_id")
    else:
        message.reply_to = _reply_to(relation)
    if kind == "m.room.message":
        _add_content(message, content, origin)
    elif kind == "m.sticker":
        message.text = f"[Sticker {string(content.get('body'))}".rstrip() + "]"
    elif kind in _POLL_STARTS:
        message.text = _poll_text(content)
    else:
        message.kind, message.text = "system", f"[{kind}] {_words(content)}".rstrip()
        if not kind.startswith(_NOTICES):
            origin.note("an unknown type of event")
    return message


def _add_sender(message: Message, event: dict[str, Any], names: Mapping[str, str]) -> None:
    message.sender_id = identity(event.get("sender"))
    if message.sender_id is None:
        message.role = "unknown"
        return
    message.sender_name = names.get(message.sender_id)
    if message.sender_id == message.conversation.account:
        message.role = "self"


def _redaction(message: Message, event: dict[str, Any], origin: Origin) -> Message | None:
    target = identity(event.get("redacts")) or identity(members(event.get("content")).get("redacts"))
    if target is None:
        origin.note("a redaction that names no event")
        return None
    message.key, message.message_id = matrix_key(target), target
    message.source["redaction"] = event.get("event_id")
    message.source["redacted_by"] = message.sender_id
    return _withdrawn(message, _REDACTED)


def _withdrawn(message: Message, revision: int) -> Message:
    message.state, message.revision = "recalled", revision
    # A moderator may have removed it, so whose message it was is not known.
    message.sender_id, message.sender_name, message.role = None, None, "unknown"
    return message


def _is_emptied(event: dict[str, Any], kind: str) -> bool:
    """Whether an event is what is left of a redacted message, which alone has no content."""
    redacted = bool(members(members(event.get("unsigned")).get("redacted_because")))
    return "state_key" not in event and (
        redacted or (kind in {"m.room.message", "m.sticker", *_POLL_STARTS} and not event.get("content"))
    )


def _emptied(message: Message, event: dict[str, Any], origin: Origin) -> Message:
    """What the redaction says, where the emptied event carries it, so that both tell the same."""
    redaction = members(members(event.get("unsigned")).get("redacted_because"))
    embedded = {**redaction, "type": "m.room.redaction", "redacts": message.message_id}
    told = room_message(embedded, message.conversation, replace(origin, note=lambda _reason: None))
    return told if told is not None else _withdrawn(message, _EMPTIED)


def _add_content(message: Message, content: dict[str, Any], origin: Origin) -> None:
    kind, body = string(content.get("msgtype")), string(content.get("body"))
    message.source["msgtype"] = kind
    if message.reply_to is not None:
        body = _without_quote(body)
    message.mentions = _mentions(content)
    if kind == "m.notice" and message.role == "user":
        message.role = "bot"
    if kind in _FILES:
        _add_file(message, content, _FILES[kind], body, origin)
    elif kind == "m.emote":
        message.text = f"* {body}"
    elif kind == "m.location":
        message.text = " ".join(filter(None, ["[Location]", body, string(content.get("geo_uri"))]))
    else:
        message.text = body
        if kind not in _TEXTS:
            origin.note("an unknown type of message")


def _add_file(message: Message, content: dict[str, Any], word: str, body: str, origin: Origin) -> None:
    name = string(content.get("filename")) or body
    caption = body if body != name else ""
    message.text = "\n".join(filter(None, [f"[{word}]", caption]))
    info = members(content.get("info"))
    # An encrypted file stands under `file`, with its key beside the address: the address alone is kept.
    address = string(content.get("url")) or string(members(content.get("file")).get("url"))
    message.source["url"] = address
    message.attachments = [
        origin.attach(
            1,
            places=[name] if name else [],
            name=name or None,
            mime=string(info.get("mimetype")) or None,
            size=whole(info.get("size")),
            absent="not_exported",
        )
    ]


def _without_quote(body: str) -> str:
    """The body of a reply without the quotation that old clients put before it."""
    lines = body.split("\n")
    quoted = next((place for place, line in enumerate(lines) if not line.startswith("> ")), len(lines))
    if quoted and quoted < len(lines) and not lines[quoted]:
        return "\n".join(lines[quoted + 1 :])
    return body


def _reply_to(relation: dict[str, Any]) -> str | None:
    answered = identity(members(relation.get("m.in_reply_to")).get("event_id"))
    if relation.get("rel_type") == "m.thread" and (answered is None or relation.get("is_falling_back")):
        answered = identity(relation.get("event_id"))
    return matrix_key(answered) if answered else None


def _mentions(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Those the message says it mentions; before it could say so, those that its text links to."""
    linked = {
        unquote(found[1]): html.unescape(_TAG.sub("", found[2])) or None
        for found in _PILL.finditer(string(content.get("formatted_body")))
    }
    said = content.get("m.mentions")
    if not isinstance(said, dict):
        return [{"id": user, "name": name} for user, name in linked.items()]
    everyone: list[dict[str, Any]] = [{"all": True}] if said.get("room") is True else []
    named = dict.fromkeys(strings(said.get("user_ids")))
    return everyone + [{"id": user, "name": linked.get(user)} for user in named]


def _poll_text(content: dict[str, Any]) -> str:
    poll = next(
        (members(content[name]) for name in ("m.poll", "org.matrix.msc3381.poll.start") if name in content),
        content,
    )
    answers = [_extensible(answer) for answer in objects(poll.get("answers"))]
    question = _extensible(members(poll.get("question")))
    return "\n".join([f"[Poll] {question}".rstrip(), *(f"- {answer}" for answer in answers)])


def _extensible(value: dict[str, Any]) -> str:
    """The words of a text in the form that polls use."""
    for name in ("m.text", "org.matrix.msc1767.text", "body"):
        said = value.get(name)
        if isinstance(said, list):
            said = next((item.get("body") for item in objects(said)), None)
        if isinstance(said, str):
            return said
    return ""


def _state_text(event: dict[str, Any], kind: str) -> str:
    content = members(event.get("content"))
    if kind == "m.room.member":
        member = identity(event.get("state_key")) or ""
        name = string(content.get("displayname"))
        who = f"{name} ({member})" if name else member
        reason = string(content.get("reason"))
        return " ".join(filter(None, ["member", string(content.get("membership")), who, reason]))
    return f"{kind.removeprefix('m.room.')}: {_words(content)}".rstrip(": ")


def _words(content: dict[str, Any]) -> str:
    said = (f"{name} {content[name]}" for name in sorted(content) if isinstance(content[name], (str, int)))
    return ", ".join(said)[:_SHOWN_WORDS]


# ── Element's export ──────────────────────────────────────────────────────────────────────────────────


def _find(path: Path) -> list[Source]:
    absence = ConfigError(
        "no Element export here: looked for *.json with `room_name` and `messages`",
        where=str(path),
        hint="export the room from Element as JSON and give the file or its folder",
    )
    return single_files(path, sorted(path.glob("*.json")), _recognizes, absence)


def _recognizes(path: Path) -> bool:
    if path.is_dir():
        return any(_recognizes(file) for file in sorted(path.glob("*.json")))
    head = beginning(path)
    return b'"messages"' in head and all(mark in head for mark in _MARKS)


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    outline = _Outline(source, reading)
    neighbours = Neighbours(ordered=True)
    writers: dict[str, str] = {}
    names: dict[str, str] = {}
    withdrawn: set[str] = set()
    for piece in _walk(source, reading):
        value = reading.object_of(piece, source.name)
        if value is None:
            neighbours.lose_all()
            continue
        _learn_name(value, names)
        event_id = identity(value.get("event_id")) or ""
        if event_id in outline.edited:
            writers[event_id] = string(value.get("sender"))
        message = room_message(
            value,
            outline.room,
            reading.origin(source, source.name, piece.line, value),
            writer=writers.get(_edited(value) or ""),
            names=names,
        )
        if message is None:
            if string(value.get("type")) not in _SILENT:
                neighbours.lose_all()
            continue
        if message.state == "recalled":
            if message.key in withdrawn:
                continue  # told by the emptied event already
            withdrawn.add(message.key)
        if message.key == matrix_key(event_id):
            neighbours.link(message)
        yield message


def _walk(
    source: Source, reading: Reading, *, watched: tuple[str, ...] = (), outline: bool = False
) -> Iterator[Piece]:
    return reading.walk(source.files[0], source.name, objects=(_MESSAGE,), watched=watched, outline=outline)


def _edited(event: dict[str, Any]) -> str | None:
    relation = members(members(event.get("content")).get("m.relates_to"))
    return identity(relation.get("event_id")) if relation.get("rel_type") == "m.replace" else None


def _learn_name(event: dict[str, Any], names: dict[str, str]) -> None:
    user, content = event.get("state_key"), members(event.get("content"))
    name = content.get("displayname")
    if event.get("type") == "m.room.member" and isinstance(user, str) and isinstance(name, str) and name:
        names[user] = name


class _Outline:
    """The room of an export, and which of its messages are edited: a walk of its own before the messages."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self.edited: set[str] = set()
        header: dict[str, Any] = {}
        room_id: str | None = None
        for piece in _walk(source, reading, watched=("",), outline=True):
            if piece.kind == "scalars":
                header.update(glimpse(piece))
            elif piece.kind == "open":
                continue
            elif b'"m.replace"' in piece.text or (room_id is None and b'"room_id"' in piece.text):
                value = glimpse(piece)
                room_id = room_id or identity(value.get("room_id"))
                self.edited.add(_edited(value) or "")
        name = identity(header.get("room_name"))
        if name is None and room_id is None:
            raise ConfigError(
                "not an Element export: looked for `room_name` and `messages`", where=str(source.files[0])
            )
        self.room = Conversation(PLATFORM, reading.account, room_id or name or "", name, "group")


MATRIX = Format(
    "matrix", _find, _read, "*.json with `room_name` and `messages` that have `event_id`", _recognizes
)
