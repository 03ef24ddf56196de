"""What a mailing list adds to a mail: a mark in the subject, a footer below the text.

Copies of one mail through two lists must tell the same, so what is surely a list's own is taken off the text
and kept beside it. Never takes a person's words: a footer is a block below a rule in which every line speaks
of the list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chatproc.importers.mime import header_text

if TYPE_CHECKING:
    from chatproc.importers.mime import Part

_FIELDS = ("list-id", "list-post", "mailing-list")
_MOST_LINES = 14
_LONGEST_LINE = 300
_LONGEST_REST = 40

_RULE = re.compile(r"[ \t]*(?:--|[-_=*~]{3,})[ \t]*")
_PLACE = re.compile(r"<?(?:https?://|mailto:)\S+|<?[^\s<>@]+@[^\s<>@]+\.[^\s<>@]+>?")
_OF_A_LIST = re.compile(
    r"unsubscri|mailing[ -]list|subscribed to|subscription|majordomo|listinfo|list (?:info|archive)"
    r"|send (?:an|the) (?:e-?mail|line)|body of a message to|google groups|this group|this discussion"
    r"|more options|please read the faq|退订|邮件列表|郵件列表",
    re.IGNORECASE,
)
_SURELY_A_LIST = re.compile(
    r"unsubscri|mailing[ -]list|subscribed to|majordomo|listinfo|退订|邮件列表|郵件列表", re.IGNORECASE
)
_MARK = re.compile(r"\[([^\[\]]{1,80})\]\s*")
_MARK_NUMBER = re.compile(r"[\s:#-]*\d+$")
_LOCAL_PART = re.compile(r"([^\s<>:@]+)@")


def is_list_copy(part: Part) -> bool:
    """Whether a mail came through a mailing list."""
    return any(name in part.fields for name in _FIELDS)


def without_mark(subject: str, part: Part) -> str:
    r"""The subject without the list's own name in brackets.

    Example:
        >>> from chatproc.importers.mime import read_mail
        >>> mail = read_mail(b"List-Id: Builders <dev.x.test>\n\n")
        >>> without_mark("Re: [dev] [draft] Plan", mail)
        'Re: [draft] Plan'
    """
    names = _names(part)
    for mark in _MARK.finditer(subject):
        if _MARK_NUMBER.sub("", mark[1]).strip().casefold() in names:
            return subject[: mark.start()] + subject[mark.end() :]
    return subject


def _names(part: Part) -> set[str]:
    described, _, identity = header_text(part.field("list-id")).partition("<")
    posts = header_text(part.field("list-post")) + " " + header_text(part.field("mailing-list"))
    names = [described.strip("\"' "), identity.partition(".")[0], *_LOCAL_PART.findall(posts)]
    return {name.casefold() for name in names if name}


def split_footer(text: str) -> tuple[str, str]:
    r"""A text, and the footer of a list below it; `""` where none is surely one.

    Example:
        >>> split_footer("Room 302\n____\ndev mailing list\ndev@x.test\n")
        ('Room 302', 'dev mailing list\ndev@x.test')
    """
    above, below = split_at_rule(text)
    lines = [line for line in below.splitlines() if line.strip()]
    is_footer = _SURELY_A_LIST.search(below) and len(lines) <= _MOST_LINES and all(map(_is_of_list, lines))
    return (above, below.strip()) if is_footer else (text, "")


def split_at_rule(text: str) -> tuple[str, str]:
    """What stands above the last line that is a rule, and what stands below; `""` without a rule."""
    lines = text.split("\n")
    for place in range(len(lines) - 1, max(-1, len(lines) - 3 * _MOST_LINES), -1):
        is_rule = _RULE.fullmatch(lines[place]) is not None
        if is_rule and any(line.strip() for line in lines[place + 1 :]):
            return "\n".join(lines[:place]).rstrip(), "\n".join(lines[place + 1 :])
    return text, ""


def _is_of_list(line: str) -> bool:
    if len(line) > _LONGEST_LINE:
        return False
    rest, places = _PLACE.subn("", line)
    return _OF_A_LIST.search(line) is not None or (places > 0 and len(rest.strip()) <= _LONGEST_REST)
