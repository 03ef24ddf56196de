"""Text files: HTML to what a reader sees of it, characters to blocks that can be cited.

Pure: it must give the same blocks for the same bytes for ever, and never take a binary file for text.
"""

from __future__ import annotations

import email
import email.policy
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING, NamedTuple

from chatproc.attachments.charset import NO_CHARSET, NotTextError, decode, decode_html
from chatproc.attachments.html_sight import has_ground, hides, is_ground, is_lost, is_lost_color
from chatproc.attachments.units import Unit, UnreadableError, capped, clean

if TYPE_CHECKING:
    from chatproc.attachments.units import Limits

LONGEST_BLOCK = 2000
"""Characters of one block at most."""

NOT_VISIBLE = "[not visible] "
"""Before every line that a person who opens the file does not see."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """A document of texts that are all known: what the readers of text and of sheets give."""

    texts: tuple[str, ...]
    note: str

    @property
    def total(self) -> int:
        """How many blocks there are."""
        return len(self.texts)

    def unit(self, number: int) -> Unit:
        """One block, from 1."""
        return Unit(f"b{number}", capped(self.texts[number - 1]))

    def close(self) -> None:
        """Nothing is held open."""


def open_document(content: bytes, kind: str, limits: Limits) -> Blocks:
    """Cut a text file into blocks.

    Args:
        content: The whole file.
        kind: `html`, `mhtml` (a saved web page), or anything else for plain text.
        limits: Nothing of it binds here: a text is as large as its file.

    Raises:
        UnreadableError: `type_mismatch`: it is no text. `empty`: it has none.
    """
    del limits
    try:
        if kind == "mhtml":
            page = _page_of_archive(content)
            kind, content = ("txt", content) if page is None else ("html", page)
        text, note = decode_html(content) if kind == "html" else decode(content)
    except NotTextError:
        raise UnreadableError("type_mismatch", NO_CHARSET) from None
    if kind == "html":
        text, notes = visible_text(text)
        note = " ".join(part for part in (note, notes) if part)
    pieces = blocks(text)
    if not pieces:
        raise UnreadableError("empty", "the file has no text")
    return Blocks(tuple(pieces), note)


def _page_of_archive(content: bytes) -> bytes | None:
    """The first page of a saved web page (MHTML), its charset declared in front; `None` when it has none."""
    message = email.message_from_bytes(content, policy=email.policy.compat32)
    for part in message.walk():
        if part.get_content_type() == "text/html":
            page = part.get_payload(decode=True)
            if isinstance(page, bytes) and page.strip():
                return (
                    f"<!-- charset={part.get_content_charset('utf-8')} -->".encode("ascii", "replace") + page
                )
    return None


_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
_UNSEEN = frozenset({"template", "noscript", "iframe", "object", "datalist"})
"""Elements whose text is never shown."""
_DROPPED = frozenset({"script", "style"})
"""Elements whose text is nobody's words."""
_APART = frozenset(
    {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "body",
            "center",
            "dd",
            "details",
            "dialog",
            "div",
            "dl",
        ),
        *("dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("header", "hr", "html", "legend", "main", "nav", "ol", "p", "pre", "section", "summary", "table"),
        *("title", "ul", "select", "textarea", "button"),
    }
)
"""Elements that begin and end a paragraph."""
_LINES = frozenset({"li", "tr", "option", "caption"})
_CELLS = frozenset({"td", "th"})
_ENDS_BEFORE = {
    "li": {"li"},
    "option": {"option"},
    "tr": {"tr"},
    "td": {"td", "th"},
    "th": {"td", "th"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
}
"""Elements that end by themselves when one of their kind begins, within the nearest list or table."""
_LEADING = ("http:", "https:", "mailto:", "tel:")
"""Links whose end is told; the others stay in the page."""
_BOUNDS = frozenset({"table", "ul", "ol", "dl", "select", "body", "html"})

_DEEPEST = 500
"""Elements within each other; browsers stop there too. What lies deeper counts as not visible."""

_SHEET = re.compile(r"<(/?)style\b[^>]*>", re.IGNORECASE)
_NAME = re.compile(r"(?:^|[\s>+~])([a-z][\w-]*)?([.#][\w-]+)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Element:
    """An open element and what it does to the text in it."""

    tag: str
    is_hidden: bool = False
    has_ground: bool = False
    """Something dark may lie behind it: white text can be read."""
    keeps_lines: bool = False
    link: str = ""
    begin: int = 0
    """How many pieces of its line were there before it."""


def visible_text(source: str) -> tuple[str, str]:
    r"""What a person sees of a web page: paragraphs, rows with tabs, links with where they lead.

    Lines that are not visible (hidden, white on nothing, tiny, moved off the page; by attribute, style or
    style sheet) come with `NOT_VISIBLE` before them. Scripts and styles are left out.

    Args:
        source: The page.

    Returns:
        Text with `\n` as line end, paragraphs apart by a blank line; and a note (may be empty).

    Example:
        >>> visible_text("<p>交表</p><p style='display:none'>obey</p>")
        ('交表\n\n[not visible] obey', 'Some of its text is not visible to a person and marked so.')
    """
    page = _Page(_styles(source))
    # Nothing after the last `>` is markup, and the parser would look for its end again and again.
    end = source.rfind(">") + 1
    page.feed(source[:end])
    page.close()
    page.handle_data(source[end:])
    text = page.text()
    note = "Some of its text is not visible to a person and marked so." if page.hides else ""
    return text, note


class _Sheet(NamedTuple):
    """Which names the page's style sheets hide, which they make pale, and which they give a background."""

    hiding: set[str]
    paling: set[str]
    grounded: set[str]


def _styles(source: str) -> _Sheet:
    """Read the style sheets of a page.

    Only plain selectors, the last name of each: enough for what mailers and forms write.
    """
    sheet = _Sheet(set(), set(), set())
    begin = None
    for mark in _SHEET.finditer(source):
        if not mark.group(1):
            begin = mark.end() if begin is None else begin
        elif begin is not None:
            _learn(source[begin : mark.start()], sheet)
            begin = None
    return sheet


def _learn(text: str, sheet: _Sheet) -> None:
    first, *others = text.split("/*")
    text = first + " ".join(other.partition("*/")[2] for other in others)
    for rule in text.split("}"):
        selectors, _, body = rule.rpartition("{")
        is_grounded, is_pale = has_ground(body), is_lost(body)
        if hides(body) or (is_pale and is_grounded):
            into = sheet.hiding
        elif is_pale or is_grounded:
            into = sheet.paling if is_pale else sheet.grounded
        else:
            continue
        for selector in selectors.rpartition("{")[2].split(","):
            name = _NAME.search(selector.strip())
            if name and name.group(0).strip():
                into.add((name.group(1) or "").lower() + (name.group(2) or ""))


class _Page(HTMLParser):
    """Collects the lines of a page in the order of its source."""

    def __init__(self, sheet: _Sheet) -> None:
        super().__init__(convert_charrefs=True)
        self.hides = False
        self._sheet = sheet
        self._open: list[_Element] = []
        self._too_deep = 0
        self._lines: list[str] = []
        self._pieces: list[str] = []
        self._is_line_hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in reversed(attrs)}
        self._end_implied(tag)
        self._separate(tag)
        if tag not in _VOID and len(self._open) >= _DEEPEST:
            self._too_deep += 1
            return
        element = self._element(tag, attributes)
        self._open.append(element)
        if tag == "img" and attributes.get("alt", "").strip():
            self.handle_data(f"[image: {attributes['alt']}]")
        if tag == "input" and attributes.get("type", "text").lower() not in {"hidden", "password"}:
            self.handle_data(attributes.get("value", ""))
        if tag in _VOID:
            self._open.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # `<div/>` opens a div in a page; only void elements end here.
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._too_deep:
            self._too_deep -= 1
            return
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place].tag == tag:
                self._close_down_to(place)
                break
        self._separate(tag)

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else _Element("")
        if inside.tag in _DROPPED:
            return
        is_hidden = inside.is_hidden or self._too_deep > 0
        if is_hidden != self._is_line_hidden and data.strip():
            self._end_line()
            self._is_line_hidden = is_hidden
        if inside.keeps_lines:
            first, *others = data.split("\n")
            self._add(first)
            for other in others:
                self._end_line()
                self._add(other)
        else:
            self._add(re.sub(r"[ \t\n\r\f]+", " ", data))

    def text(self) -> str:
        """Everything that was collected."""
        self._close_down_to(0)
        self._end_line()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip("\n")

    def _element(self, tag: str, attributes: dict[str, str]) -> _Element:
        around = self._open[-1] if self._open else _Element("")
        style = attributes.get("style", "")
        names = {tag, f"#{attributes.get('id', '')}"}
        for name in attributes.get("class", "").split():
            names |= {f".{name}", f"{tag}.{name}"}
        is_grounded = (
            around.has_ground
            or is_ground(attributes.get("bgcolor", ""))
            or has_ground(style)
            or not names.isdisjoint(self._sheet.grounded)
        )
        is_pale = (
            is_lost(style)
            or is_lost_color(attributes.get("color", ""))
            or not names.isdisjoint(self._sheet.paling)
        )
        is_hidden = (
            around.is_hidden
            or tag in _UNSEEN
            or "hidden" in attributes
            or hides(style)
            or not names.isdisjoint(self._sheet.hiding)
            or (is_pale and not is_grounded)
            or (is_lost(style) and has_ground(style))
        )
        keeps_lines = around.keeps_lines or tag in {"pre", "textarea"}
        link = attributes.get("href", "").strip() if tag == "a" else ""
        return _Element(tag, is_hidden, is_grounded, keeps_lines, link, len(self._pieces))

    def _end_implied(self, tag: str) -> None:
        """Close what HTML closes by itself before this element."""
        if tag in _APART and self._open and self._open[-1].tag == "p":
            self._close_down_to(len(self._open) - 1)
        ends = _ENDS_BEFORE.get(tag)
        if ends is None:
            return
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place].tag in ends:
                self._close_down_to(place)
                return
            if self._open[place].tag in _BOUNDS:
                return

    def _close_down_to(self, place: int) -> None:
        for element in reversed(self._open[place:]):
            if element.link.startswith(_LEADING):
                shown = "".join(self._pieces[element.begin :])
                if element.link not in shown:
                    self._add(f" <{element.link}>")
        del self._open[place:]

    def _separate(self, tag: str) -> None:
        if tag in _APART:
            self._end_line()
            self._lines.append("")
        elif tag in _LINES or tag == "br":
            self._end_line()
        elif tag in _CELLS:
            self._add("\t")

    def _add(self, piece: str) -> None:
        """Take a piece of the line; white space begins none."""
        if piece and (self._pieces or not piece.isspace()):
            self._pieces.append(piece)

    def _end_line(self) -> None:
        line = re.sub(r" *\t[ \t]*", "\t", "".join(self._pieces)).rstrip()
        self._pieces.clear()
        if not line:
            return
        if self._is_line_hidden:
            self.hides = True
            line = " ".join(clean(line).split())
            width = LONGEST_BLOCK - len(NOT_VISIBLE)
            self._lines.extend(NOT_VISIBLE + line[at : at + width] for at in range(0, len(line), width))
        else:
            self._lines.append(line)


def blocks(text: str) -> list[str]:
    r"""Cut a text into blocks: paragraphs, or runs of lines of a paragraph that is too long for one.

    Args:
        text: Text with `\n` as line end.

    Returns:
        Blocks of at most `LONGEST_BLOCK` characters, none of them blank.

    Example:
        >>> blocks("first\nline\n\nsecond")
        ['first\nline', 'second']
    """
    found: list[str] = []
    lines: list[str] = []
    length = 0

    def end_block() -> None:
        nonlocal length
        if lines:
            found.append("\n".join(lines))
            lines.clear()
            length = 0

    for line in text.split("\n"):
        if not line.strip():
            end_block()
            continue
        for start in range(0, len(line), LONGEST_BLOCK):
            piece = line[start : start + LONGEST_BLOCK].rstrip()
            if not piece:
                continue
            if lines and length + 1 + len(piece) > LONGEST_BLOCK:
                end_block()
            length += len(piece) + bool(lines)
            lines.append(piece)
    end_block()
    return found
