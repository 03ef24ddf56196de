"""What a Slack message shows in words: its text without Slack's markup, its blocks, what an app attached.

Never names a person by anything that the person can change; names stand beside the text, in the mentions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from chatproc.importers.values import members, objects, string

if TYPE_CHECKING:
    from collections.abc import Callable

    Handle = Callable[[str], str]

# Slack escapes the three characters of its markup, so what stands in angle brackets is always markup.
_MARKUP = re.compile(r"<([^<>\n]*)>")
_RICH_MARKS = {
    "user_id": "<@{}>",
    "usergroup_id": "<!subteam^{}>",
    "channel_id": "<#{}>",
    "range": "<!{}>",
    "name": ":{}:",
}
_BROADCASTS = {"here", "channel", "everyone", "group"}


def plain_text(text: str, handle: Handle) -> str:
    """A text as a reader sees it; links keep their target.

    Example:
        >>> plain_text("<@U2> ship &lt;b&gt; <https://e.test|doc>", lambda user: {"U2": "bo"}[user])
        '@bo ship <b> doc (https://e.test)'
    """
    parts = []
    end = 0
    for found in _MARKUP.finditer(text):
        parts += [_unescaped(text[end : found.start()]), _entity(found[1], handle)]
        end = found.end()
    return "".join(parts) + _unescaped(text[end:])


def mentions(text: str) -> list[dict[str, Any]]:
    """Those whom a text mentions, each once: users and groups of them by id, everybody as `all`."""
    found: dict[str, dict[str, Any]] = {}
    for markup in _MARKUP.finditer(text):
        target, _, label = markup[1].partition("|")
        name = _unescaped(label).removeprefix("@") or None
        if target.startswith("@") and target[1:]:
            found.setdefault(target, {"id": target[1:], "name": name})
        elif target.startswith("!subteam^") and target[9:]:
            found.setdefault(target, {"id": target[9:], "name": name})
        elif target[:1] == "!" and target[1:] in _BROADCASTS:
            found.setdefault("!", {"all": True})
    return list(found.values())


def block_text(blocks: object, handle: Handle) -> str:
    """The words of an app's blocks, a line each; rich text is left out: see `rich_markup`."""
    lines = [_block(block, handle) for block in objects(blocks)]
    return "\n".join(filter(None, lines))


def rich_markup(blocks: object) -> str:
    """The rich text in blocks, written as the text of a message is; one that has words says the same."""
    lines = [
        "".join(map(_markup_of, objects(line.get("elements"))))
        for block in objects(blocks)
        if block.get("type") == "rich_text"
        for part in objects(block.get("elements"))
        for line in (objects(part.get("elements")) if part.get("type") == "rich_text_list" else [part])
    ]
    return "\n".join(line.strip("\n") for line in lines)


def _markup_of(element: dict[str, Any]) -> str:
    """One stretch of rich text: words, a link, or somebody who is mentioned."""
    if string(element.get("url")):
        said = string(element.get("text"))
        return f"<{_escaped(string(element['url']))}{'|' if said else ''}{_escaped(said)}>"
    for member, mark in _RICH_MARKS.items():
        if string(element.get(member)):
            return mark.format(_escaped(string(element[member])))
    return _escaped(string(element.get("text")) or string(element.get("fallback")))


def attachment_text(item: dict[str, Any], handle: Handle) -> str:
    """The words that an app attached, or that were shared; nothing of the preview of a link."""
    preview = item.get("from_url") or item.get("original_url")
    if preview and item.get("is_share") is not True:
        return ""
    title, link = string(item.get("title")), string(item.get("title_link"))
    lines = [
        plain_text(string(item.get("pretext")), handle),
        f"{plain_text(title, handle)} ({link})" if title and link else plain_text(title, handle),
        plain_text(string(item.get("text")), handle),
        block_text(item.get("blocks"), handle),
        *(_field(field, handle) for field in objects(item.get("fields"))),
    ]
    said = "\n".join(filter(None, lines))
    return said or plain_text(string(item.get("fallback")), handle)


def _entity(markup: str, handle: Handle) -> str:
    target, _, label = markup.partition("|")
    label = _unescaped(label)
    if target.startswith("@"):
        return f"@{label.removeprefix('@') or handle(target[1:]) or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:].split('^')[0]}"
    address = _unescaped(target)
    if not label or label == address.removeprefix("mailto:"):
        return label or address
    return f"{label} ({address})"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _block(block: dict[str, Any], handle: Handle) -> str:
    parts = [_text_object(block.get("text"), handle)]
    parts += [_text_object(field, handle) for field in objects(block.get("fields"))]
    if block.get("type") in ("context", "actions"):
        for element in objects(block.get("elements")):
            parts.append(_text_object(element if "type" in element else None, handle))
            parts.append(_text_object(element.get("text"), handle))
    if block.get("type") == "image":
        parts += [_text_object(block.get("title"), handle), string(block.get("alt_text"))]
    return "\n".join(dict.fromkeys(filter(None, parts)))


def _text_object(value: object, handle: Handle) -> str:
    said = members(value)
    text = string(said.get("text"))
    return plain_text(text, handle) if said.get("type") == "mrkdwn" else text


def _field(field: dict[str, Any], handle: Handle) -> str:
    title, value = string(field.get("title")), plain_text(string(field.get("value")), handle)
    return ": ".join(filter(None, [title, value]))
