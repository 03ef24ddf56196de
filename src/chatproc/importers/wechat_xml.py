"""The words in the XML that WeChat stores for cards, files, quotations and notices.

The XML is other people's: it is searched for known elements and never parsed as a document, so that nothing
in it can expand or refer to anything. What is not found is absent.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from chatproc.importers.wechat_words import APP_WORDS

_QUOTE, _FILE, _RECORD = 57, 6, 19
_TAG = re.compile(r"<[^<>]*>")
_ELEMENT = re.compile(r"\s*<[a-zA-Z?!]")


@dataclass(frozen=True, slots=True)
class App:
    """What a card, file or quotation says.

    Attributes:
        text: As a reader sees it.
        title: Its title; of a file, its name.
        is_file: It stands for a file.
        reply_to: The server's id of the message that it quotes.
        is_whole: The XML was there.
    """

    text: str
    title: str | None
    is_file: bool
    reply_to: str | None
    is_whole: bool


def readable_app(xml: str, sub_kind: int | None) -> App:
    """The words of a message of WeChat's kind 49.

    Example:
        >>> readable_app("<msg><appmsg><title>好的</title><type>57</type></appmsg></msg>", None).text
        '好的'
    """
    head, _, quoted = xml.partition("<refermsg>")
    kind = (
        sub_kind
        if sub_kind in APP_WORDS or sub_kind == _QUOTE
        else _whole(_element(head, "type")) or sub_kind
    )
    title, description, url = (_element(head, name) for name in ("title", "des", "url"))
    word = APP_WORDS.get(kind or 0, "分享")
    if kind == _QUOTE:
        text = title or "[引用]"
    else:
        text = "\n".join(dict.fromkeys(filter(None, [f"[{word}] {title}".rstrip(), description, url])))
    return App(
        text=text,
        title=title or None,
        is_file=kind == _FILE,
        reply_to=_element(quoted, "svrid") if kind == _QUOTE and _whole(_element(quoted, "svrid")) else None,
        is_whole=bool(xml.strip()),
    )


def readable_attribute(xml: str, name: str) -> str:
    """The value of the first attribute of that name, `""` where there is none."""
    _, found, rest = xml.partition(f' {name}="')
    value, closed, _ = rest.partition('"')
    return html.unescape(value).strip() if found and closed else ""


def readable_notice(content: str) -> str:
    """A notice without the elements around and in it."""
    return html.unescape(_TAG.sub("", content)).strip() if _ELEMENT.match(content) else content


def _element(xml: str, name: str) -> str:
    """The text of the first element of that name, `""` where there is none."""
    _, found, rest = xml.partition(f"<{name}>")
    text, closed, _ = rest.partition(f"</{name}>")
    if not (found and closed):
        return ""
    text = text.strip()
    if text.startswith("<![CDATA[") and text.endswith("]]>"):
        return text[9:-3].strip()
    return html.unescape(text)


def _whole(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,20}", text) else 0
