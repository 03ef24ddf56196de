"""What a OneBot v11 message says: its segments, or its string with CQ codes, as text, mentions and files.

Nothing that changes from one answer to the next enters: no addresses of files, no display names.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chatproc.importers.base import declared_attachment
from chatproc.importers.values import identity, members, objects, string, whole

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Said", "said_in"]

_MAX_FORWARD_DEPTH = 8
_CQ = re.compile(r"\[CQ:([A-Za-z0-9_.-]+)((?:,[^\[\],]*)*)\]")
_ESCAPES = (("&#91;", "["), ("&#93;", "]"), ("&#44;", ","), ("&amp;", "&"))
_FILES = {"image": "图片", "record": "语音", "video": "视频", "file": "文件", "onlinefile": "文件"}


@dataclass(slots=True)
class Said:
    """What a message says.

    Attributes:
        text: Its text; a word in brackets for what is no text.
        mentions: As in an event.
        attachments: As in an event.
        replied: The `message_id` of the message that it answers.
    """

    text: str = ""
    mentions: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    replied: str | None = None


def said_in(message: object) -> Said | None:
    """What a `message` says; `None`: nothing at all, as after a recall."""
    segments = _segments(message)
    if not segments:
        return None
    said = Said()
    said.text = "".join(_text_of(segment, said) for segment in segments)
    return said


def _text_of(segment: dict[str, Any], said: Said) -> str:
    kind, data = string(segment.get("type")), members(segment.get("data"))
    if kind == "at":
        target = identity(data.get("qq")) or ""
        said.mentions.append({"all": True} if target == "all" else {"id": target, "name": None})
    elif kind == "reply":
        said.replied = identity(data.get("id"))
    elif kind in _FILES:
        said.attachments.append(_attachment(len(said.attachments) + 1, data))
    return _words_of(kind, data, 0)


def _words_of(kind: str, data: dict[str, Any], depth: int) -> str:
    if kind in _FILES:
        name = _file_name(data) if kind in ("file", "onlinefile") else ""
        return f"[{_FILES[kind]}] {name}".rstrip() if name else f"[{_FILES[kind]}]"
    words = _WORDS.get(kind)
    return words(data, depth) if words is not None else f"[{kind or 'unknown'}]"


def _segments(message: object) -> list[dict[str, Any]]:
    """The segments of a message in any of its forms."""
    if isinstance(message, dict):
        return [message]
    if isinstance(message, str):
        return _from_codes(message)
    return objects(message)


def _from_codes(text: str) -> list[dict[str, Any]]:
    segments: list[dict[str, Any]] = []
    end = 0
    for code in _CQ.finditer(text):
        segments += _plain(text[end : code.start()])
        pairs = [pair.partition("=") for pair in code[2].split(",")[1:]]
        data = {name: _unescaped(value) for name, _, value in pairs}
        segments.append({"type": code[1], "data": data})
        end = code.end()
    return segments + _plain(text[end:])


def _plain(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "data": {"text": _unescaped(text)}}] if text else []


def _unescaped(text: str) -> str:
    for code, character in _ESCAPES:
        text = text.replace(code, character)
    return text


def _attachment(number: int, data: dict[str, Any]) -> dict[str, Any]:
    size = whole(data.get("file_size")) or whole(data.get("fileSize"))
    return declared_attachment(
        number, places=(), name=_file_name(data) or None, size=size, absent="not_exported"
    )


def _file_name(data: dict[str, Any]) -> str:
    """A file's name as sent; an address or a content in its place is none."""
    named = (string(data.get(name)) for name in ("name", "file_name", "fileName", "file"))
    name = next(filter(None, named), "")
    return "" if "://" in name else name.replace("\\", "/").rsplit("/", 1)[-1]


def _forward(data: dict[str, Any], depth: int) -> str:
    """A merged forward: one line a message, with its sender."""
    inner = objects(data.get("content"))
    if not inner or depth >= _MAX_FORWARD_DEPTH:
        return "[聊天记录]"
    indent = "  " * (depth + 1)
    lines = ["[聊天记录]"]
    for item in inner:
        node = members(item.get("data")) if item.get("type") == "node" else item
        sender = members(node.get("sender"))
        name = (
            identity(sender.get("nickname")) or identity(node.get("nickname")) or identity(node.get("name"))
        )
        content = node.get("message") if "message" in node else node.get("content")
        words = "".join(
            _words_of(string(segment.get("type")), members(segment.get("data")), depth + 1)
            for segment in _segments(content)
        )
        lines.append(f"{indent}{name or ''}: {words}")
    return "\n".join(lines)


def _card(data: dict[str, Any], _depth: int) -> str:
    """The words on a card: its prompt, and what its parts say."""
    inner = data.get("data")
    try:
        card = members(json.loads(inner)) if isinstance(inner, str) else members(inner)
    except (ValueError, RecursionError):
        card = {}
    said = [string(card.get("prompt"))]
    for part in members(card.get("meta")).values():
        said += [string(members(part).get(name)) for name in ("title", "desc", "jumpUrl", "qqdocurl")]
    return "[卡片] " + "\n".join(dict.fromkeys(filter(None, said)))


def _named(word: str, *names: str) -> Callable[[dict[str, Any], int], str]:
    def words(data: dict[str, Any], _depth: int) -> str:
        return f"[{word}] {' '.join(filter(None, (identity(data.get(name)) for name in names)))}".rstrip()

    return words


_WORDS: dict[str, Callable[[dict[str, Any], int], str]] = {
    "text": lambda data, _depth: string(data.get("text")),
    "markdown": lambda data, _depth: string(data.get("content")),
    "at": lambda data, _depth: (
        "@全体成员" if data.get("qq") == "all" else f"@{identity(data.get('qq')) or ''}"
    ),
    "reply": lambda _data, _depth: "",
    "face": _named("表情", "id"),
    "mface": lambda data, _depth: f"[{string(data.get('summary')).strip('[]') or '表情'}]",
    "forward": _forward,
    "node": lambda data, depth: _forward({"content": [{"type": "node", "data": data}]}, depth),
    "json": _card,
    "miniapp": _card,
    "xml": _named("卡片"),
    "location": _named("位置", "title", "content"),
    "share": _named("分享", "title", "url"),
    "music": _named("音乐", "title", "url"),
    "contact": _named("名片", "type", "id"),
    "poke": _named("戳一戳"),
    "shake": _named("戳一戳"),
    "dice": _named("骰子", "result"),
    "rps": _named("猜拳", "result"),
    "flashtransfer": _named("闪传"),
}
