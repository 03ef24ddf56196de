"""DOCX to blocks that can be cited: the parts of the package that a reader of the document sees, in order.

A block is a paragraph or a table; notes and comments follow the block that refers to them. It must never open
an embedded file, follow a link, or give other blocks for the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.parsers import expat

from chatproc.attachments.docx_flow import Reader
from chatproc.attachments.docx_lists import Lists
from chatproc.attachments.docx_pieces import Body, Notes
from chatproc.attachments.docx_styles import Styles
from chatproc.attachments.ooxml import Package, mended
from chatproc.attachments.units import Unit, UnreadableError, clean

if TYPE_CHECKING:
    from chatproc.attachments.ooxml import Relation
    from chatproc.attachments.units import Limits

LONGEST_BLOCK = 10_000
"""Characters of one block; what is longer goes on in the next, so that any block fits into a reading."""

_GOES_ON = "[goes on] "
_KINDS = frozenset(
    {"aFChunk", "attachedTemplate", "frame", "image", "oleObject", "package", "subDocument", "video"}
)


def open_document(content: bytes, kind: str, limits: Limits) -> DocxDocument:
    """Read a DOCX (or DOCM, DOTX, DOTM) whole.

    Args:
        content: The file's bytes.
        kind: What the file is, by its content.
        limits: What it may take; the limits of the package itself stand in `ooxml`.

    Raises:
        UnreadableError: `encrypted`, `type_mismatch`, `truncated`, `corrupt`, `empty`, `too_large`, `memory`;
            nothing else is raised, whatever the bytes.

    Example:
        >>> from chatproc.attachments.units import Limits
        >>> open_document(b"PK and no more", "docx", Limits())
        Traceback (most recent call last):
        ...
        chatproc.attachments.units.UnreadableError: truncated: its zip container ends before the directory
    """
    del kind, limits
    return _opened(content, is_converted=False)


def open_converted(content: bytes) -> DocxDocument:
    """Read a DOCX that a converter made: what it filled in itself (today's date) is said to be that.

    Args:
        content: The file's bytes.

    Raises:
        UnreadableError: As `open_document`.
    """
    return _opened(content, is_converted=True)


def _opened(content: bytes, *, is_converted: bool) -> DocxDocument:
    reading = _read(content, is_converted=is_converted)
    if reading is None:
        raise UnreadableError("memory", "it needs more memory than a parser may take")
    if not reading.blocks:
        if reading.damage:
            raise UnreadableError("corrupt", "its XML is damaged before the first text")
        raise UnreadableError("empty", "the document holds no text")
    return DocxDocument(reading.blocks, reading.note())


def _read(content: bytes, *, is_converted: bool) -> Reading | None:
    """The reading; `None` when memory ran out: the fault's frames hold what filled it until this returns."""
    try:
        reading = Reading(Package(content), is_converted=is_converted)
        is_whole = not reading.damage
        return reading if is_whole else Reading(Package(content), is_converted=is_converted, mend=True)
    except MemoryError:
        return None


class DocxDocument:
    """Blocks of a document, from `b1`.

    Args:
        blocks: Their texts.
        note: What is said once about the whole.
    """

    def __init__(self, blocks: list[str], note: str) -> None:
        """Keep them."""
        self._blocks = blocks
        self.note = note

    @property
    def total(self) -> int:
        """Blocks in all."""
        return len(self._blocks)

    def unit(self, number: int) -> Unit:
        """The block of this number, from 1."""
        return Unit(f"b{number}", self._blocks[number - 1])

    def close(self) -> None:
        """Let go of the texts."""
        self._blocks = []


class Reading:
    """A whole document: its parts in the order in which they are told, and what was met on the way.

    Args:
        package: Its parts.
        is_converted: A converter made it.
        mend: Read parts without what XML forbids, after a first reading stumbled.
    """

    def __init__(self, package: Package, *, is_converted: bool = False, mend: bool = False) -> None:
        """Read all of it."""
        self.package = package
        self.is_converted = is_converted
        self.blocks: list[str] = []
        self.damage: list[str] = []
        self.notes = Notes()
        self.urls: set[str] = set()
        self.objects = 0
        self._mend = mend
        self._told: set[str] = set()
        main = self._main_part()
        self.relations = self.relations_of(main)
        self.styles = self._styles()
        self.lists = self._lists()
        for kind in ("footnotes", "endnotes", "comments"):
            for part in self._parts(kind):
                self._read(Reader(self, part, []), part)
        self._tell_parts("header")
        self._tell_main(main)
        self._tell_parts("footer")
        for block in self.notes.rest():
            self.tell(block)

    def note(self) -> str:
        """What is said once about the whole."""
        said = []
        if self.damage and self._mend:
            said.append("Its XML is damaged; what cannot be read is left out.")
        if self.objects:
            said.append(f"Embedded files are not opened ({self.objects}).")
        # Kinds come from the file: only those that are known are named, so that none of them can speak.
        outside = sorted({kind if kind in _KINDS else "other" for kind in self.package.outside})
        if outside:
            said.append(f"Links out of the file are not followed ({', '.join(outside)}).")
        return " ".join(said)

    def tell(self, text: str) -> None:
        """Give a text as the next block, or blocks where it is too long for one."""
        text = clean(text)
        if len(text) > LONGEST_BLOCK:
            self.blocks.extend(_pieces(text))
        elif text.strip():
            self.blocks.append(text)

    def content(self, name: str) -> bytes | None:
        """The bytes of a part, `None` when it is not there or damaged."""
        try:
            content = self.package.read(name)
        except UnreadableError as error:
            if error.code != "corrupt":
                raise
            self.damage.append(name)
            return None
        return mended(content) if content and self._mend else content

    def relations_of(self, part: str) -> dict[str, Relation]:
        """What a part points to; nothing where that is damaged."""
        try:
            return self.package.relations(part)
        except UnreadableError as error:
            if error.code != "corrupt":
                raise
            self.damage.append(part)
            return {}

    def once(self, name: str) -> bytes | None:
        """The bytes of a part that several places may show, the first time only."""
        if name in self._told:
            return None
        self._told.add(name)
        return self.content(name)

    def _main_part(self) -> str:
        roots = self.relations_of("").values()
        named = [root.target for root in roots if root.kind == "officeDocument" and not root.external]
        typed = self.package.parts_of_type(".main+xml") if not named else []
        for name in (*named, *typed, "word/document.xml"):
            if name.lower() in self.package.names():
                return name
        if any(name.startswith(("ppt/", "xl/")) for name in self.package.names()):
            raise UnreadableError("type_mismatch", "it is an Office package, but no Word document")
        raise UnreadableError("corrupt", "its package has no main document part")

    def _parts(self, kind: str) -> list[str]:
        found = [known.target for known in self.relations.values()
                 if known.kind == kind and not known.external]  # fmt: skip
        return list(dict.fromkeys(found))

    def _styles(self) -> Styles:
        for part in self._parts("styles"):
            try:
                return Styles(self.content(part))
            except expat.ExpatError:
                self.damage.append(part)
        return Styles()

    def _lists(self) -> Lists:
        for part in self._parts("numbering"):
            try:
                return Lists(self.content(part), self.styles)
            except expat.ExpatError:
                self.damage.append(part)
        return Lists(None, self.styles)

    def _read(self, reader: Reader, part: str) -> None:
        content = self.content(part)
        if not content:
            return
        try:
            reader.run(content)
        except expat.ExpatError:
            self.damage.append(part)
        reader.unwind()

    def _tell_parts(self, kind: str) -> None:
        """Headers or footers: those that say the same (of first, odd and even pages) once."""
        texts: dict[str, None] = {}
        for part in self._parts(kind):
            flow: list[str] = []
            self._read(Reader(self, part, flow), part)
            texts["\n".join(flow)] = None
        for text in texts:
            if text:
                self.tell(f"[{kind}: {text}]")

    def _tell_main(self, main: str) -> None:
        reader = Reader(self, main, Body(self))
        self._read(reader, main)
        if not reader.is_document and main not in self.damage:
            if not reader.begun:
                raise UnreadableError("corrupt", "its main document part has no bytes")
            raise UnreadableError("type_mismatch", "its main part is no Word document")


def _pieces(text: str) -> list[str]:
    """A long text cut between lines, or inside a line that is too long itself."""
    room = LONGEST_BLOCK - len(_GOES_ON)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = start + room
        if end < len(text):
            line_end = text.rfind("\n", start, end)
            end = line_end if line_end > start else end
        piece = text[start:end].strip()
        if piece:
            pieces.append(_GOES_ON + piece if pieces else piece)
        start = end
    return pieces
