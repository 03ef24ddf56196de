"""What a Feishu message shows in words: its body is JSON in a text, of another shape for each type.

A type or a tag that is not known keeps its words and is noted, never guessed into another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from chatproc.importers.pieces import loads
from chatproc.importers.values import identity, members, objects, string, strings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ALL = "@_all"
# A placeholder may be followed by Chinese at once, which `\b` would take for the same word.
_PLACEHOLDER = re.compile(r"@_user_\d+|@_all(?![A-Za-z0-9_])")
_MILLISECONDS = re.compile(r"[1-9][0-9]{11,12}")
_MAX_DEPTH = 24


@dataclass(slots=True)
class Body:
    """What the body of a message holds; `files` are keys with names, `notes` what was not understood."""

    text: str = ""
    system: bool = False
    mentions: list[dict[str, Any]] = field(default_factory=list)
    files: list[tuple[str, str | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def body_of(message: dict[str, Any]) -> Body:
    """The body of a message as the API gives it."""
    body = Body()
    kind = string(message.get("msg_type"))
    raw = members(message.get("body")).get("content")
    if kind == "merge_forward":
        return body
    content, mended = _content(raw)
    if content is None:
        body.text = string(raw)
        body.notes.append("a content that is no JSON object")
        return body
    if mended is not None:
        body.notes.append(f"mended in its content: {mended}")
    listed = objects(message.get("mentions"))
    people = {string(mention.get("key")): mention for mention in listed}
    words = _KINDS.get(kind)
    if words is None:
        body.text = _shown(f"[{kind}]", *_all_words(content, 0))
        body.notes.append("an unknown type of message")
    else:
        body.text = words(content, body)
    body.mentions = _mentions(body.text, people)
    body.text = _PLACEHOLDER.sub(lambda found: _mention_text(found[0], people), body.text)
    return body


def _content(raw: object) -> tuple[dict[str, Any] | None, str | None]:
    """The object in a body's text, and what had to be mended in it."""
    if not isinstance(raw, str):
        return (raw if isinstance(raw, dict) else None), None
    try:
        return loads(raw.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None, None


def _mentions(text: str, people: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whom the text mentions by a placeholder, and those that are listed without one."""
    used = dict.fromkeys(_PLACEHOLDER.findall(text))
    found: list[dict[str, Any]] = [{"all": True}] if _ALL in used or _ALL in people else []
    for key in dict.fromkeys([*used, *people]):
        person = people.get(key, {})
        own, name = identity(person.get("id")), identity(person.get("name"))
        if key != _ALL and (own or name):
            found.append({"id": own, "name": name})
    return found


def _mention_text(key: str, people: dict[str, dict[str, Any]]) -> str:
    if key == _ALL:
        return "@所有人"
    person = people.get(key, {})
    return f"@{identity(person.get('name')) or identity(person.get('id')) or key.removeprefix('@')}"


def _shown(*lines: str) -> str:
    return "\n".join(filter(None, lines))


def _post(content: dict[str, Any], body: Body) -> str:
    """A rich text, bare or by language; of several languages the first."""
    if "content" not in content:
        content = next((members(value) for value in content.values() if isinstance(value, dict)), {})
    paragraphs = content.get("content")
    lines = [
        "".join(_tag(element, body) for element in objects(paragraph))
        for paragraph in (paragraphs if isinstance(paragraphs, list) else [])
    ]
    return _shown(string(content.get("title")), *lines)


def _tag(element: dict[str, Any], body: Body) -> str:
    tag, text = string(element.get("tag")), string(element.get("text"))
    if tag in ("text", "md", "code_block"):
        return text
    words = _TAGS.get(tag)
    if words is not None:
        return words(element, body)
    body.notes.append("an unknown tag in a rich text")
    return _shown(*_all_words(element, 0))


def _link(element: dict[str, Any], _body: Body) -> str:
    text, href = string(element.get("text")), string(element.get("href"))
    return f"{text} ({href})" if href and href != text else text


def _at(element: dict[str, Any], _body: Body) -> str:
    who = string(element.get("user_id"))
    return who if who.startswith("@_") else f"@{string(element.get('user_name')) or who}"


def _file(word: str, key: str = "file_key") -> Callable[[dict[str, Any], Body], str]:
    def words(content: dict[str, Any], body: Body) -> str:
        body.files.append((string(content.get(key)), identity(content.get("file_name"))))
        return f"[{word}]"

    return words


def _named(word: str, *names: str) -> Callable[[dict[str, Any], Body], str]:
    def words(content: dict[str, Any], _body: Body) -> str:
        said = (_readable(name, identity(content.get(name))) for name in names)
        return " ".join(filter(None, [f"[{word}]", *said]))

    return words


def _readable(name: str, said: str | None) -> str | None:
    """A time as people and models read it; Feishu writes milliseconds since 1970."""
    if name.endswith("_time") and said and _MILLISECONDS.fullmatch(said):
        return datetime.fromtimestamp(int(said) // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return said


def _system(content: dict[str, Any], body: Body) -> str:
    """A notice: a template with the names of those whom it tells of."""
    body.system = True

    def filled(found: re.Match[str]) -> str:
        value = content.get(found[1])
        named = strings(value) + [string(item.get("name")) for item in objects(value)]
        return ", ".join(filter(None, named)) or string(value) or string(members(value).get("text"))

    template = string(content.get("template")) or string(content.get("text"))
    return re.sub(r"\{(\w+)\}", filled, template) if template else _shown(*_all_words(content, 0))


def _card(content: dict[str, Any], _body: Body) -> str:
    return _shown("[卡片]", *_all_words(content, 0))


def _todo(content: dict[str, Any], body: Body) -> str:
    due = _readable("due_time", identity(content.get("due_time")))
    return " ".join(filter(None, ["[任务]", _post(members(content.get("summary")), body), due]))


def _vote(content: dict[str, Any], _body: Body) -> str:
    options = (f"- {option}" for option in strings(content.get("options")))
    return _shown(f"[投票] {string(content.get('topic'))}".rstrip(), *options)


# Members of a card that a reader sees as words; the others are keys, colours and addresses.
_WORD_NAMES = frozenset({"text", "content", "title", "name", "placeholder", "subtitle", "alt"})


def _all_words(value: object, depth: int) -> Iterator[str]:
    """The words in a card, in its order."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _all_words(item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, str):
                if name in _WORD_NAMES and item.strip():
                    yield item
            else:
                yield from _all_words(item, depth + 1)


_TAGS: dict[str, Callable[[dict[str, Any], Body], str]] = {
    "a": _link,
    "at": _at,
    "img": _file("图片", "image_key"),
    "media": _file("视频"),
    "emotion": lambda element, _body: f"[{string(element.get('emoji_type'))}]",
    "hr": lambda _element, _body: "---",
}
_KINDS: dict[str, Callable[[dict[str, Any], Body], str]] = {
    "text": lambda content, _body: string(content.get("text")),
    "post": _post,
    "image": _file("图片", "image_key"),
    "file": _file("文件"),
    "folder": _file("文件夹"),
    "audio": _file("语音"),
    "media": _file("视频"),
    "sticker": lambda _content, _body: "[表情]",
    "interactive": _card,
    "system": _system,
    "todo": _todo,
    "vote": _vote,
    "location": _named("位置", "name", "longitude", "latitude"),
    "share_chat": _named("群名片", "chat_id"),
    "share_user": _named("名片", "user_id"),
    "hongbao": _named("红包", "text"),
    "video_chat": _named("视频会议", "topic"),
    "share_calendar_event": _named("日程", "summary", "start_time", "end_time"),
    "calendar": _named("日程", "summary", "start_time", "end_time"),
    "general_calendar": _named("日程", "summary", "start_time", "end_time"),
}
