"""What a part of a Word document is put together from: paragraphs, tables, fields and notes as they grow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from chatproc.attachments.docx_sight import NOTHING_SAID, Look

if TYPE_CHECKING:
    from chatproc.attachments.docx import Reading


class Notes:
    """Footnotes, endnotes and comments: numbered as they are referred to, each told once."""

    def __init__(self) -> None:
        """None is known yet."""
        self._texts: dict[tuple[str, str], tuple[str, str]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._counts: dict[str, int] = {}
        self._due: list[tuple[str, str]] = []

    def keep(self, kind: str, note_id: str, author: str, text: str) -> None:
        """Keep the text of one note."""
        self._texts[kind, note_id] = author, text

    def refer(self, kind: str, note_id: str) -> str:
        """Count a reference to a note and give its mark."""
        key = kind, note_id
        if key not in self._numbers:
            self._counts[kind] = self._numbers[key] = self._counts.get(kind, 0) + 1
            if key in self._texts:
                self._due.append(key)
        return f"[{kind} {self._numbers[key]}]"

    def due(self) -> list[str]:
        """Notes that were referred to since the last call, as blocks."""
        if not self._due:
            return []
        keys, self._due = self._due, []
        return [self._block(key) for key in keys]

    def rest(self) -> list[str]:
        """Notes that nothing referred to, as blocks."""
        for kind, note_id in self._texts:
            self.refer(kind, note_id)
        return self.due()

    def _block(self, key: tuple[str, str]) -> str:
        author, text = self._texts[key]
        by = f" by {author}" if author else ""
        return f"[{key[0]} {self._numbers[key]}{by}: {text}]"


class Body(list[str]):
    """The document's own flow: what is appended is told at once, and the notes that it refers to after it."""

    def __init__(self, reading: Reading) -> None:
        """Begin empty; it stays so."""
        super().__init__()
        self._reading = reading

    def append(self, text: str) -> None:
        """Tell a paragraph or table."""
        self._reading.tell(text)
        for note in self._reading.notes.due():
            self._reading.tell(note)


@dataclass(slots=True)
class Paragraph:
    """A paragraph as it grows: pieces of text, the mark that stands open, the list it is in."""

    out: list[str] = field(default_factory=list)
    open: str = ""
    style: str | None = None
    list_id: str | None = None
    level: int = 0
    hidden: bool = False
    look: Look = NOTHING_SAID
    deleted: bool = False


def end_mark(paragraph: Paragraph) -> None:
    """Close the open mark; around nothing but blanks there is none."""
    out, begin = paragraph.out, f"[{paragraph.open}: "
    if out and out[-1] == begin:
        out.pop()
    elif len(out) > 1 and out[-2] == begin and out[-1].isspace():
        del out[-2]
    else:
        out.append("]")
    paragraph.open = ""


@dataclass(slots=True)
class Table:
    """A table as it grows: finished rows, the cells of the present row, the present cell's properties."""

    rows: list[str] = field(default_factory=list)
    row: list[str] = field(default_factory=list)
    cells: int = 0
    span: int = 1
    dropped_row: bool = False
    hidden_row: bool = False
    dropped_cell: bool = False
    look: Look = NOTHING_SAID
    ground: str = ""
    """Behind the present cell."""


@dataclass(slots=True)
class Field:
    """A field that began: where, what it instructs, and whether its result has begun."""

    paragraph: Paragraph
    position: int
    open: str
    is_locked: bool
    """Its result stays as it is, whoever opens the file."""
    instruction: list[str] = field(default_factory=list)
    result: bool = False
    value: str = ""
    url: str = ""
    live: str = ""
    """Its name, where its result is the converter's and not the author's."""


@dataclass(slots=True)
class Bracket:
    """A bracketed part of an equation."""

    begin: str = "("
    end: str = ")"
    begun: bool = False


class Frame(NamedTuple):
    """What stood around a table or a text box."""

    flow: list[str]
    paragraph: Paragraph | None
    table: Table | None


class Alternatives(NamedTuple):
    """Where one of several renderings may go: what was written when they began."""

    flow: list[str]
    written: int
    paragraph: Paragraph | None
    pieces: int
