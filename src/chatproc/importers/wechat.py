"""WeChat as chatlog's API and WeFlow's JSON tell it, as messages.

Both are windows on an account's own copy: neither says whose account it is, that a neighbour is there too, or
which message a quotation meant. What changes with the day of the export (display names) never enters a text.
Never opens WeChat's databases.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message, Source, beginning, single_files
from chatproc.importers.keys import Occurrences, message_key
from chatproc.importers.pieces import glimpse
from chatproc.importers.sequence import Neighbours
from chatproc.importers.values import identity, members, milliseconds, objects, string, whole
from chatproc.importers.wechat_csv import is_chatlog_csv, read_chatlog_csv
from chatproc.importers.wechat_words import APP_WORDS, wechat_mentions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from chatproc.importers.base import Origin, Reading
    from chatproc.importers.pieces import Piece

PLATFORM = "wechat"
_ROOM = "@chatroom"
_MAX_FORWARD_DEPTH = 8
_SYSTEM_TYPES = {10000, 10002}
_APP = 49
# What stands for a message of a type; those with a file beside them, and those that are a tip.
_WORDS = {3: "图片", 34: "语音", 42: "名片", 43: "视频", 47: "动画表情", 50: "通话"}
_FILE_TYPES = {3: "image/jpeg", 34: None, 43: None}
_APP_FILE, _APP_QUOTE, _APP_PAT = 6, 57, 62
_RECORD_WORDS = {"2": "图片", "4": "视频", "8": "文件", "37": "动画表情"}


def wechat_conversation(talker: str, name: str | None, account: str) -> Conversation:
    """The conversation with a talker: a room, or a person's own id."""
    kind: Literal["group", "private"] = "group" if talker.endswith(_ROOM) else "private"
    return Conversation(PLATFORM, account, talker, name, kind)


# ── chatlog ───────────────────────────────────────────────────────────────────────────────────────────


def chatlog_message(value: dict[str, Any], account: str, origin: Origin) -> Message | None:
    """The message in an object of chatlog's `GET /api/v1/chatlog?format=json`.

    `None`, and `origin.note` told, without a talker and a time.

    `seq` is a time with a counter of this account's copy, and two messages of one second may share it: the
    key is made of it and of what the message says, so that a row given twice is one message.
    """
    seq, talker = whole(value.get("seq")), identity(value.get("talker"))
    sent_at = _time(value.get("time"), seq)
    if sent_at is None or talker is None:
        origin.note("no message with a talker and a time")
        return None
    kind, sub_kind = whole(value.get("type")), whole(value.get("subType")) or 0
    message = Message(
        conversation=wechat_conversation(talker, identity(value.get("talkerName")), account),
        key="",
        sent_at=sent_at,
        line=origin.line,
        file=origin.file,
        text="",
        message_id=str(seq) if seq else None,
        source={"type": value.get("type"), "subType": value.get("subType")},
    )
    _add_chatlog_sender(message, value, kind)
    _add_chatlog_content(message, value, kind, sub_kind, origin)
    said = [value.get(name) for name in ("sender", "type", "subType", "content")]
    said += [members(value.get("contents")).get(name) for name in ("title", "md5", "path")]
    digest = hashlib.sha256(json.dumps([sent_at, seq, *said]).encode()).hexdigest()[:16]
    message.key = message_key(message.conversation, f"{seq or ''}~{digest}")
    return message


def _time(written: object, seq: int | None) -> int | None:
    """Milliseconds of `time`, which has its zone; else of `seq`, which begins with the second."""
    if isinstance(written, str):
        try:
            time = datetime.fromisoformat(written)
        except ValueError:
            time = None
        if time is not None and time.tzinfo is not None:
            found = round(time.timestamp() * 1000)
            return found if found > 0 else None
    return milliseconds(seq)


def _add_chatlog_sender(message: Message, value: dict[str, Any], kind: int | None) -> None:
    if kind in _SYSTEM_TYPES:
        message.kind, message.role = "system", "system"
        return
    message.sender_id = identity(value.get("sender"))
    message.sender_name = identity(value.get("senderName"))
    own = message.conversation.account
    if value.get("isSelf") is True or (own and message.sender_id == own):
        message.role = "self"
    elif message.sender_id is None and message.sender_name is None:
        message.role = "unknown"


def _add_chatlog_content(
    message: Message, value: dict[str, Any], kind: int | None, sub_kind: int, origin: Origin
) -> None:
    content, details = string(value.get("content")), members(value.get("contents"))
    if kind == 1 or kind in _SYSTEM_TYPES:
        message.text = content
    elif kind == _APP:
        _add_app(message, content, details, sub_kind, origin)
    elif kind == 48:  # noqa: PLR2004 - a place
        place = _joined(details, "label", "cityname", "x", "y")
        message.text = f"[位置] {place or content}".rstrip()
    elif kind in _WORDS:
        message.text = _joined_lines(f"[{_WORDS[kind]}]", content)
        if kind in _FILE_TYPES:
            path = string(details.get("path")).replace("\\", "/")
            message.attachments = [
                origin.attach(
                    1,
                    places=[path] if path else [],
                    name=None,
                    mime=_FILE_TYPES[kind],
                    absent="not_exported",
                )
            ]
    else:
        message.text = content
        origin.note("an unknown type of message")
    for name in ("md5", "rawmd5", "path", "voice", "cdnurl"):
        if details.get(name):
            message.source[name] = details[name]
    message.mentions = wechat_mentions(content)


def _add_app(message: Message, content: str, details: dict[str, Any], sub_kind: int, origin: Origin) -> None:
    title = string(details.get("title"))
    if sub_kind == _APP_QUOTE:
        message.text = _joined_lines(content, _quoted(details.get("refer"), depth=0))
        message.source["refer"] = details.get("refer")
    elif sub_kind == _APP_PAT:
        message.kind, message.text = "system", content or "[拍一拍]"
    elif sub_kind == _APP_FILE:
        message.text = _joined_lines("[文件]", content)
        message.attachments = [origin.attach(1, places=[], name=title or None, absent="not_exported")]
    elif isinstance(details.get("recordInfo"), dict):
        record = {"Title": title, "Desc": details.get("desc"), **members(details["recordInfo"])}
        lines = _record_lines(record, APP_WORDS.get(sub_kind, "分享"), title, depth=0)
        message.text = "\n".join(filter(None, [content, *lines]))
    else:
        word = APP_WORDS.get(sub_kind)
        if word is None:
            origin.note("an unknown type of message")
        said = [content, title, string(details.get("desc")), string(details.get("url"))]
        message.text = _joined_lines(f"[{word or '分享'}]", *said)


def _quoted(refer: object, *, depth: int) -> str:
    """The words that a quotation repeats: nothing says which message it was."""
    quoted = members(refer)
    if not quoted or depth > 1:
        return ""
    kind, sub_kind = whole(quoted.get("type")), whole(quoted.get("subType")) or 0
    said = string(quoted.get("content"))
    if kind == _APP and sub_kind != _APP_QUOTE:
        title = string(members(quoted.get("contents")).get("title"))
        said = _joined_lines(f"[{APP_WORDS.get(sub_kind, '分享')}]", said or title).replace("\n", " ")
    elif kind in _WORDS and not said:
        said = f"[{_WORDS[kind]}]"
    return f"[引用] {said}" if said else "[引用]"


def _record_lines(record: dict[str, Any], word: str, title: str, *, depth: int) -> list[str]:
    """A merged forward: its title, then one line a message with its sender and its own time."""
    indent = "  " * depth
    lines = [f"{indent}[{word}] {title or string(record.get('Title'))}".rstrip()]
    items = objects(members(record.get("DataList")).get("DataItems"))
    if not items or depth >= _MAX_FORWARD_DEPTH:
        return lines + [f"{indent}{line}" for line in string(record.get("Desc")).split("\n") if line]
    for item in items:
        said = _record_said(item, depth + 1)
        time = string(item.get("SourceTime"))
        head = f"{string(item.get('SourceName'))} ({time})" if time else string(item.get("SourceName"))
        lines.append(f"{indent}{head}: {said}" if head else f"{indent}{said}")
    return lines


def _record_said(item: dict[str, Any], depth: int) -> str:
    kind, title = string(item.get("DataType")), string(item.get("DataTitle"))
    inner = members(members(item.get("RecordXML")).get("RecordInfo"))
    if inner:
        return "\n".join(_record_lines(inner, "聊天记录", title, depth=depth)).lstrip()
    word = _RECORD_WORDS.get(kind)
    place = string(members(item.get("Location")).get("PoiName"))
    words = [
        f"[{word}]" if word else "",
        title,
        string(item.get("DataDesc")),
        place,
        string(item.get("Link")),
    ]
    return " ".join(dict.fromkeys(filter(None, words)))


def _joined(holder: dict[str, Any], *names: str) -> str:
    return " ".join(filter(None, (string(holder.get(name)) for name in names)))


def _joined_lines(*lines: str) -> str:
    return "\n".join(dict.fromkeys(filter(None, lines)))


def _find_chatlog(path: Path) -> list[Source]:
    return _found(
        path, _recognizes_chatlog, "chatlog answer", "`talker`, `seq`, `isChatRoom` or `TalkerName`"
    )


def _found(path: Path, recognizes: Callable[[Path], bool], what: str, marks: str) -> list[Source]:
    absence = ConfigError(f"no {what} here: looked for files with {marks}", where=str(path))
    return single_files(path, _tables_and_json(path), recognizes, absence)


def _tables_and_json(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.json"), *folder.glob("*.csv")])


def _recognizes_chatlog(path: Path) -> bool:
    if path.is_dir():
        return any(map(_recognizes_chatlog, _tables_and_json(path)))
    head = beginning(path)
    return all(mark in head for mark in (b'"talker"', b'"seq"', b'"isChatRoom"')) or is_chatlog_csv(path)


def _read_chatlog(source: Source, reading: Reading) -> Iterator[Message]:
    read = read_chatlog_csv if is_chatlog_csv(source.files[0]) else _read_answer
    return read(source, reading)


def _read_answer(source: Source, reading: Reading) -> Iterator[Message]:
    neighbours = Neighbours()
    found = False
    for piece in reading.walk(source.files[0], source.name, objects=("[]",), watched=("",)):
        if piece.kind in ("open", "scalars"):
            _refuse_error(piece, source)
            continue
        found = True
        value = reading.object_of(piece, source.name)
        message = None
        if value is not None:
            origin = reading.origin(source, source.name, piece.line, value)
            message = chatlog_message(value, reading.account, origin)
        if message is None:
            neighbours.lose_all()
            continue
        yield neighbours.link(message) if reading.complete else message
    if not found:
        raise ConfigError("no message in this chatlog answer: looked for a list", where=str(source.files[0]))


def _refuse_error(piece: Piece, source: Source) -> None:
    error = glimpse(piece).get("error")
    if error is not None:
        raise ConfigError(
            f"chatlog answered with an error, not with messages: {string(error)[:200]!r}",
            where=str(source.files[0]),
            hint="wait until chatlog is ready, save its answer again and import that",
        )


CHATLOG = Format(
    "chatlog",
    _find_chatlog,
    _read_chatlog,
    "what chatlog's API answers: JSON with `talker`, `seq` and `isChatRoom`, or CSV with `TalkerName`",
    _recognizes_chatlog,
)


# ── WeFlow ────────────────────────────────────────────────────────────────────────────────────────────

_SESSION, _MESSAGE = "session", "messages.[]"
# By a part of WeFlow's word for the type, since versions differ in the rest; the first that fits counts.
_WEFLOW_FILES = {
    "图片": "图片",
    "语音": "语音",
    "视频号": "",
    "视频": "视频",
    "文件": "文件",
    "动画表情": "动画表情",
}
_WEFLOW_UNKNOWN = ("未知", "其他")
_SOUND = re.compile(r"\.(?:wav|mp3|silk|amr|m4a|ogg|opus|aac)$", re.IGNORECASE)
_TRANSCRIPT = "[语音转文字]"


def _recognizes_weflow(path: Path) -> bool:
    if path.is_dir():
        return any(map(_recognizes_weflow, sorted(path.glob("*.json"))))
    head = beginning(path)
    return b'"weflow"' in head and b'"session"' in head


def _find_weflow(path: Path) -> list[Source]:
    return _found(path, _recognizes_weflow, "WeFlow export", "`weflow` and `session`")


def _read_weflow(source: Source, reading: Reading) -> Iterator[Message]:
    chat = _WeFlow(source, reading)
    for piece in reading.walk(source.files[0], source.name, objects=(_MESSAGE,)):
        value = reading.object_of(piece, source.name)
        message = None
        if value is not None:
            message = chat.message(value, reading.origin(source, source.name, piece.line, value))
        if message is None:
            chat.neighbours.lose_all()
            continue
        yield chat.neighbours.link(message) if reading.complete else message


class _WeFlow:
    """The chat of a WeFlow export while its messages pass by."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self.occurrences = Occurrences()
        self.neighbours = Neighbours()
        self.senders: dict[int, dict[str, Any]] = {}
        session: dict[str, Any] | None = None
        objects_wanted = (_SESSION, "senders.[]", _MESSAGE)
        for piece in reading.walk(source.files[0], source.name, objects=objects_wanted, outline=True):
            if piece.path == _SESSION:
                session = glimpse(piece)
            elif piece.path == "senders.[]":
                sender = glimpse(piece)
                self.senders[whole(sender.get("senderID")) or 0] = sender
        if session is None:
            raise ConfigError("not a WeFlow export: looked for `session`", where=str(source.files[0]))
        talker = next(filter(None, (identity(session.get(name)) for name in ("wxid", "accountId"))), None)
        names = (identity(session.get(name)) for name in ("displayName", "remark", "nickname"))
        name = next(filter(None, names), None)
        conversation = wechat_conversation(talker or name or source.files[0].stem, name, reading.account)
        if session.get("type") == "群聊" and conversation.type != "group":
            conversation = replace(conversation, type="group")
        self.conversation = conversation

    def message(self, value: dict[str, Any], origin: Origin) -> Message | None:
        """The message in an object; `None`, and listed, without a time."""
        sent_at = milliseconds(value.get("createTime"))
        if sent_at is None:
            origin.note("no message with a time")
            return None
        message = Message(
            conversation=self.conversation,
            key="",
            sent_at=sent_at,
            line=origin.line,
            file=origin.file,
            text="",
            message_id=identity(value.get("platformMessageId")),
            source={name: value[name] for name in ("type", "localType", "localId") if name in value},
        )
        kind = string(value.get("type"))
        if "系统" in kind or value.get("isSend", 0) is None:
            message.kind, message.role = "system", "system"
        else:
            self._add_sender(message, value)
        transcript = self._add_content(message, value, kind, origin)
        answered = identity(value.get("replyToMessageId"))
        if answered is not None:
            message.reply_to = message_key(self.conversation, answered)
        if message.message_id is not None:
            message.key = message_key(self.conversation, message.message_id)
        else:
            message.key = self.occurrences.key(message)
        if transcript:
            # The same message is in another export without it: what says more is the later revision.
            message.text, message.revision = f"{message.text} {transcript}", 1
        return message

    def _add_sender(self, message: Message, value: dict[str, Any]) -> None:
        listed = self.senders.get(whole(value.get("senderID")) or 0, {})
        message.sender_id = identity(value.get("senderUsername")) or identity(listed.get("accountId"))
        name = identity(value.get("senderDisplayName")) or identity(listed.get("displayName"))
        # Where WeFlow knew no name it wrote the id.
        message.sender_name = None if name == message.sender_id else name
        if whole(value.get("isSend")) == 1:
            message.role = "self"
        elif message.sender_id is None and message.sender_name is None:
            message.role = "unknown"

    def _add_content(self, message: Message, value: dict[str, Any], kind: str, origin: Origin) -> str:
        """Add text and files; what a spoken message says comes back, since not every export has it."""
        content = value.get("content")
        said = content if isinstance(content, str) else ""
        if content is not None and not isinstance(content, str):
            message.source["content"] = content
            origin.note("a content that is no text")
        for name in ("quotedSender", "quotedContent"):
            if value.get(name):
                message.source[name] = value[name]
        word = next((word for part, word in _WEFLOW_FILES.items() if part in kind), "")
        if not word:
            message.text, message.mentions = said, wechat_mentions(said)
            if not kind or kind.startswith(_WEFLOW_UNKNOWN):
                origin.note("an unknown type of message")
            return ""
        message.text = f"[{word}]"
        place = "" if said.startswith("[") or "\n" in said else said.strip().replace("\\", "/")
        if word == "语音" and not _SOUND.search(place):
            self._add_file(message, "", None, origin)
            transcript = said.removeprefix(_TRANSCRIPT).strip()
            return "" if transcript.startswith("[") else transcript
        name = place.rsplit("/", 1)[-1] or said.removeprefix("[文件]").strip()
        self._add_file(message, place, (name or None) if word == "文件" else None, origin)
        return ""

    @staticmethod
    def _add_file(message: Message, place: str, name: str | None, origin: Origin) -> None:
        places = [place] if place else []
        message.attachments = [origin.attach(1, places=places, name=name, absent="not_exported")]


WEFLOW = Format(
    "weflow", _find_weflow, _read_weflow, "*.json with `weflow` and `session`", _recognizes_weflow
)
