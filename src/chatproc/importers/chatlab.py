"""ChatLab's exchange format, JSON and JSON Lines, as messages.

ChatLab writes what its sources gave it: of many messages there is no id, and of none is it certain that its
neighbour is there too. What depends on the rest of a file never enters a message's text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message, Source, beginning, single_files
from chatproc.importers.keys import Occurrences, message_key
from chatproc.importers.pieces import Piece, glimpse
from chatproc.importers.sequence import Neighbours
from chatproc.importers.values import identity, members, milliseconds, objects, string, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from chatproc.importers.base import Origin, Reading

_HEADER, _META, _MEMBER, _MESSAGE = "chatlab", "meta", "members.[]", "messages.[]"
_LINES = {"header": _META, "member": _MEMBER, "message": _MESSAGE}
_LINE_TYPE = re.compile(rb'\s*\{\s*"_type"\s*:\s*"(\w+)"')
_HEADER_MARK = re.compile(rb'"chatlab"\s*:\s*\{')
_NO_PLATFORM = re.compile(r"[^a-z0-9_-]+")
_Type = Literal["group", "private", "channel", "thread", "mailbox", "unknown"]
_TYPES: dict[str, _Type] = {"group": "group", "private": "private"}

_SYSTEM, _RECALL = 80, 81
# What a message of a type shows where its content is empty.
_WORDS = {
    0: "",
    1: "[图片]",
    2: "[语音]",
    3: "[视频]",
    4: "[文件]",
    5: "[表情]",
    7: "[链接]",
    8: "[位置]",
    20: "[红包]",
    21: "[转账]",
    22: "[拍一拍]",
    23: "[通话]",
    24: "[分享]",
    25: "[回复]",
    26: "[转发]",
    27: "[名片]",
    _SYSTEM: "",
    _RECALL: "[撤回了一条消息]",
    99: "",
}
_FILES = (1, 2, 3, 4)


def chatlab_conversation(meta: dict[str, Any], account: str, fallback: str) -> Conversation:
    """The conversation that a header describes.

    Args:
        meta: `meta` of the header, or of a page.
        account: The collecting account; `""`: the owner that the header names.
        fallback: Names the conversation where the header gives neither an id nor a name.

    Example:
        >>> chatlab_conversation({"name": "群", "platform": "QQ", "groupId": "7"}, "", "file").id
        '7'
    """
    name = identity(meta.get("name"))
    return Conversation(
        platform=_NO_PLATFORM.sub("-", string(meta.get("platform")).lower()).strip("-")[:32] or "unknown",
        account=account or identity(meta.get("ownerId")) or "",
        id=identity(meta.get("groupId")) or name or fallback,
        name=name,
        type=_TYPES.get(string(meta.get("type")), "unknown"),
    )


def chatlab_message(
    value: dict[str, Any],
    conversation: Conversation,
    origin: Origin,
    *,
    occurrences: Occurrences,
    names: Mapping[str, str] | None = None,
) -> Message | None:
    """The message in an object of `messages`; `None`, and `origin.note` told, without a time.

    Args:
        value: The object.
        conversation: From `chatlab_conversation`.
        origin: Where the object came from.
        occurrences: Numbers equal messages without ids: one for a whole file, or for pages without a gap.
        names: Names of members by id, for mentions and senders that the message itself does not name.
    """
    sent_at = milliseconds(value.get("timestamp"))
    if sent_at is None:
        origin.note("no message with a time")
        return None
    kind = whole(value.get("type"))
    message = Message(
        conversation=conversation,
        key="",
        sent_at=sent_at,
        line=origin.line,
        file=origin.file,
        text="",
        message_id=identity(value.get("platformMessageId")),
        source={"type": value.get("type")},
    )
    _add_sender(message, value, names or {})
    if kind == _SYSTEM or (kind == _RECALL and message.message_id is None):
        message.kind = "system"
    answered = identity(value.get("replyToMessageId"))
    if answered is not None:
        message.reply_to = message_key(conversation, answered)
    _add_content(message, value, kind, origin)
    if message.message_id is None:
        message.key = occurrences.key(message)
        return message
    message.key = message_key(conversation, message.message_id)
    if kind == _RECALL:
        # The same id may stand for the text in another file; its writer has withdrawn it.
        message.state, message.revision = "recalled", 1
        message.text, message.attachments, message.mentions, message.reply_to = "", [], [], None
    return message


def _add_sender(message: Message, value: dict[str, Any], names: Mapping[str, str]) -> None:
    message.sender_id = identity(value.get("sender"))
    nickname, account_name = identity(value.get("groupNickname")), identity(value.get("accountName"))
    name = nickname or account_name or names.get(message.sender_id or "")
    # Where a converter knew no name it wrote the id.
    message.sender_name = None if name == message.sender_id else name
    if message.sender_id is not None and message.sender_id == message.conversation.account:
        message.role = "self"
    elif message.sender_id is None and message.sender_name is None:
        message.role = "unknown"
    if whole(value.get("type")) == _SYSTEM:
        message.role = "system"


def _add_content(message: Message, value: dict[str, Any], kind: int | None, origin: Origin) -> None:
    content = value.get("content")
    said = content if isinstance(content, str) else ""
    if content is not None and not isinstance(content, str):
        message.source["content"] = content
        origin.note("a content that is no text")
    message.text = said
    if not said.strip():
        message.text = _WORDS.get(kind if kind is not None else 99, f"[{kind}]")
    if kind not in _WORDS:
        origin.note("an unknown type of message")
    attached = objects(value.get("attachments"))
    if attached:
        message.attachments = [_attachment(place, item, origin) for place, item in enumerate(attached, 1)]
    elif kind in _FILES:
        message.attachments = [_content_file(said, kind, origin)]


def _attachment(place: int, item: dict[str, Any], origin: Origin) -> dict[str, Any]:
    path = string(item.get("filePath")) or string(item.get("path"))
    return origin.attach(
        place,
        places=[path.replace("\\", "/")] if path else [],
        name=identity(item.get("fileName")) or identity(item.get("name")),
        mime=string(item.get("mimeType")) or string(item.get("mime")) or None,
        size=whole(item.get("fileSize")) or whole(item.get("size")),
        absent="missing" if path else "not_exported",
    )


def _content_file(said: str, kind: int | None, origin: Origin) -> dict[str, Any]:
    """The file of a message whose content may be its place, its name or a mere word for it."""
    place = "" if said.startswith("[") or "\n" in said else said.strip()
    path = place.replace("\\", "/")
    name = path.rsplit("/", 1)[-1] if kind == 4 and path else None  # noqa: PLR2004 - the type of files
    return origin.attach(1, places=[path] if path else [], name=name, absent="not_exported")


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────


def _find(path: Path) -> list[Source]:
    absence = ConfigError(
        "no ChatLab file here: looked for *.json and *.jsonl that begin with a `chatlab` header",
        where=str(path),
        hint="give the file, or the folder that holds it",
    )
    return single_files(path, _candidates(path), _recognizes, absence)


def _candidates(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.json"), *folder.glob("*.jsonl")])


def _recognizes(path: Path) -> bool:
    if path.is_dir():
        return any(map(_recognizes, _candidates(path)))
    return bool(_HEADER_MARK.search(beginning(path)))


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    conversation, names = _outline(source, reading)
    occurrences, neighbours = Occurrences(), Neighbours()
    for piece in _walk(source, reading, (_MESSAGE,)):
        value = reading.object_of(piece, source.name)
        message = None
        if value is not None:
            origin = reading.origin(source, source.name, piece.line, value)
            message = chatlab_message(value, conversation, origin, occurrences=occurrences, names=names)
        if message is None:
            neighbours.lose_all()
            continue
        yield neighbours.link(message) if reading.complete else message


def _outline(source: Source, reading: Reading) -> tuple[Conversation, dict[str, str]]:
    """The conversation, and the names of its members: they may follow the messages."""
    meta: dict[str, Any] = {}
    names: dict[str, str] = {}
    found = False
    for piece in _walk(source, reading, (_HEADER, _META, _MEMBER), outline=True):
        value = glimpse(piece)
        found = True
        if piece.path == _META:
            meta = {**members(value.get("meta")), **value} if "meta" in value else value
        elif piece.path == _MEMBER:
            name = identity(value.get("groupNickname")) or identity(value.get("accountName"))
            if name is not None:
                names[identity(value.get("platformId")) or ""] = name
    if not found:
        raise ConfigError(
            "not a ChatLab file: looked for a `chatlab` header",
            where=str(source.files[0]),
        )
    return chatlab_conversation(meta, reading.account, source.files[0].stem), names


def _walk(
    source: Source, reading: Reading, wanted: tuple[str, ...], *, outline: bool = False
) -> Iterator[Piece]:
    if _LINE_TYPE.match(beginning(source.files[0])):
        return _line_pieces(source, reading, wanted, outline=outline)
    return reading.walk(source.files[0], source.name, objects=wanted, outline=outline)


def _line_pieces(
    source: Source, reading: Reading, wanted: tuple[str, ...], *, outline: bool
) -> Iterator[Piece]:
    for line in reading.lines(source.files[0]):
        kind = _LINE_TYPE.match(line.text)
        path = _LINES.get(kind[1].decode() if kind else string(glimpse(line).get("_type")))
        if line.text.lstrip().startswith(b"#"):
            continue
        if path in wanted:
            yield Piece(path, "object", line.line, line.text)
        elif path is None and not outline:
            reading.not_understand(source.name, line.line, line.text, "no line of a known type")


CHATLAB = Format(
    "chatlab", _find, _read, "*.json or *.jsonl that begins with a `chatlab` header", _recognizes
)
