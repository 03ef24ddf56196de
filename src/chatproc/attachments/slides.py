"""PPTX to pages: what stands on each slide, in its notes and comments, read from its XML.

Not from a picture of it: a converter without the right fonts draws, and then spells, other characters. It
must never follow a relationship out of the package.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.parsers import expat

from chatproc.attachments.docx_names import live_field
from chatproc.attachments.ooxml import Package, Pass
from chatproc.attachments.text import NOT_VISIBLE
from chatproc.attachments.units import Unit, UnreadableError, capped, clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from chatproc.attachments.units import Limits

MOST_SLIDES = 10_000

_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
_SHAPES = ("sp", "pic", "graphicFrame", "cxnSp")
_TINY = 100
"""Hundredths of a point: letters that nobody can read."""
_CLEAR = 10_000
"""Thousandths of a percent: a colour of which less shows is not seen."""
_ASIDES = {"diagramData": "[diagram] ", "chart": "[chart] ", "comments": "[comment] "}
"""What a slide points to and a person sees, with the words before each of its lines."""
_MOST_CHART = 200
"""Values of one chart that are told."""


def open_document(content: bytes, kind: str, limits: Limits) -> Slides:
    """Open a presentation.

    Args:
        content: The whole file.
        kind: `pptx`.
        limits: Nothing of it binds here: the package has its own caps.

    Raises:
        UnreadableError: `corrupt`, `empty`, `encrypted`, `too_large`, `too_many_pages`, `truncated`.
    """
    del kind, limits
    return Slides(content)


def open_converted(content: bytes) -> Slides:
    """Open a presentation that a converter made: what it filled in itself (today's date) is said to be that.

    Args:
        content: The whole file.

    Raises:
        UnreadableError: As `open_document`.
    """
    return Slides(content, is_converted=True)


class Slides:
    """An opened presentation; slides are read when they are asked for.

    Args:
        content: The whole file.
        is_converted: A converter made it.
    """

    note = ""

    def __init__(self, content: bytes, *, is_converted: bool = False) -> None:
        """Read which slides there are, in their order."""
        self._is_converted = is_converted
        self._package = Package(content)
        main = next(
            (
                relation.target
                for relation in self._package.relations("").values()
                if _leads_in(relation.kind)
            ),
            "ppt/presentation.xml",
        )
        relations = self._package.relations(main)
        ids: list[str] = []
        self._size = (0, 0)

        def slide(attributes: dict[str, str]) -> None:
            ids.append(attributes.get(f"{_R} id", ""))

        def size(attributes: dict[str, str]) -> None:
            self._size = (_whole(attributes.get("cx")), _whole(attributes.get("cy")))

        xml = self._package.read(main)
        if xml is None:
            raise UnreadableError("corrupt", "its package holds no presentation")
        with contextlib.suppress(expat.ExpatError):  # the slides named before the damage are there
            Pass({f"{_P} sldId": slide, f"{_P} sldSz": size}, {}).run(xml)
        if len(ids) > MOST_SLIDES:
            raise UnreadableError("too_many_pages", f"it has more than {MOST_SLIDES} slides")
        if not ids:
            raise UnreadableError("empty", "it has no slide")
        self._parts = [relations[name].target if name in relations else "" for name in ids]
        self._texts: dict[int, str] = {}
        self._layouts: dict[str, list[str]] = {}

    @property
    def total(self) -> int:
        """How many slides there are."""
        return len(self._parts)

    def unit(self, number: int) -> Unit:
        """One slide, from 1.

        Raises:
            UnreadableError: Its part is not there or is damaged from its beginning.
        """
        if number not in self._texts:
            self._texts[number] = capped(self._text(self._parts[number - 1]))
        return Unit(f"p{number}", self._texts[number])

    def close(self) -> None:
        """Nothing is held open."""

    def _text(self, part: str) -> str:
        xml = self._package.read(part) if part else None
        if xml is None:
            raise UnreadableError("corrupt", "the part of this slide is not there")
        reading = _Reading(self._size, is_converted=self._is_converted)
        is_whole = reading.run(xml)
        lines = reading.lines
        if reading.is_hidden:
            lines = ["[a hidden slide, not visible]", *(_marked(line) for line in lines)]
        if not is_whole:
            lines.append("[the rest of this slide is damaged]")
        for relation in self._package.relations(part).values():
            if relation.external:
                continue
            if relation.kind == "notesSlide":
                notes = _Reading((0, 0), is_converted=self._is_converted)
                notes.run(self._package.read(relation.target) or b"")
                lines += [f"[speaker's notes] {line}" for line in notes.lines]
            elif relation.kind == "slideLayout":
                lines += [f"[from its master] {line}" for line in self._of_layout(relation.target)]
            elif relation.kind in _ASIDES:
                mark = _ASIDES[relation.kind]
                lines += [mark + line for line in _plain(self._package.read(relation.target) or b"")]
        if not reading.has_words and len(lines) == len(reading.lines):
            lines.append(f"[this slide has no text; pictures: {reading.pictures}]")
        return "\n".join(lines)

    def _of_layout(self, part: str) -> list[str]:
        """What a layout, and the master behind it, write on each of their slides themselves."""
        if part not in self._layouts:
            reading = _Reading(self._size, takes_placeholders=False, is_converted=self._is_converted)
            reading.run(self._package.read(part) or b"")
            self._layouts[part] = reading.lines
            for relation in self._package.relations(part).values():
                if relation.kind == "slideMaster" and not relation.external:
                    self._layouts[part] = reading.lines + self._of_layout(relation.target)
        return self._layouts[part]


def _leads_in(kind: str) -> bool:
    return kind == "officeDocument"


def _whole(number: str | None) -> int:
    try:
        return int(number or 0)
    except ValueError:
        return 0


def _marked(line: str) -> str:
    return line if line.startswith(NOT_VISIBLE) else NOT_VISIBLE + line


def _one_line(words: list[str]) -> str:
    return " ".join(clean("".join(words)).split())


@dataclass(slots=True)
class _Shape:
    """One thing on a slide, while it is read."""

    is_picture: bool = False
    is_hidden: bool = False
    placeholder: str = ""
    """What a slide has its own words for: `title`, `dt`, … ; empty for everything else."""
    description: str = ""
    place: tuple[int, int] = (0, 0)
    size: tuple[int, int] = (0, 0)
    lines: list[str] = field(default_factory=list)


class _Reading:
    """One pass over a slide or its notes.

    Args:
        size: Of the slide, to tell what stands beside it; zeros when that does not matter.
        takes_placeholders: Not those of a layout, whose words are for its author.
        is_converted: A converter made it.
    """

    def __init__(
        self, size: tuple[int, int], *, takes_placeholders: bool = True, is_converted: bool = False
    ) -> None:
        self.lines: list[str] = []
        self.pictures = 0
        self.is_hidden = False
        self.has_words = False
        self._size = size
        self._takes_placeholders = takes_placeholders
        self._is_converted = is_converted
        self._shape = _Shape()
        self._groups = 0
        self._words: list[str] = []
        self._is_lost = False
        self._in_run = False
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._pass = Pass(self._starts(), self._ends())

    def run(self, xml: bytes) -> bool:
        """Read it; whether it was whole."""
        try:
            self._pass.run(xml)
        except expat.ExpatError:
            self._end_shape()
            return False
        return True

    def _starts(self) -> dict[str, Callable[[dict[str, str]], None]]:
        return {
            f"{_P} sld": self._slide,
            f"{_P} grpSp": lambda _: self._group(1),
            **{f"{_P} {name}": self._begin_shape(is_picture=name == "pic") for name in _SHAPES},
            f"{_P} cNvPr": self._properties,
            f"{_P} ph": self._placeholder,
            f"{_A} off": self._offset,
            f"{_A} ext": self._extent,
            f"{_A} p": lambda _: self._begin_paragraph(),
            f"{_A} rPr": self._run_properties,
            f"{_A} noFill": self._no_fill,
            f"{_A} alpha": self._alpha,
            f"{_A} ln": self._outline,
            f"{_A} fld": self._field,
            f"{_A} t": lambda _: self._pass.begin_text(self._words.append),
            f"{_A} br": lambda _: self._words.append(" "),
            f"{_A} tr": lambda _: self._begin_row(),
            f"{_A} tc": lambda _: self._begin_cell(),
            f"{_MC} Fallback": lambda _: self._pass.skip(),
        }

    def _ends(self) -> dict[str, Callable[[], None]]:
        return {
            f"{_P} grpSp": lambda: self._group(-1),
            **{f"{_P} {name}": self._end_shape for name in _SHAPES},
            f"{_A} t": self._end_text,
            f"{_A} rPr": self._end_run_properties,
            f"{_A} p": self._end_paragraph,
            f"{_A} tc": self._end_cell,
            f"{_A} tr": self._end_row,
        }

    def _slide(self, attributes: dict[str, str]) -> None:
        self.is_hidden = attributes.get("show") in {"0", "false"}

    def _group(self, step: int) -> None:
        self._groups += step

    def _begin_shape(self, *, is_picture: bool) -> Callable[[dict[str, str]], None]:
        def begin(_: dict[str, str]) -> None:
            self._end_shape()
            self._shape = _Shape(is_picture=is_picture)

        return begin

    def _properties(self, attributes: dict[str, str]) -> None:
        self._shape.is_hidden = self._shape.is_hidden or attributes.get("hidden") in {"1", "true"}
        self._shape.description = _one_line([attributes.get("descr", "")])

    def _placeholder(self, attributes: dict[str, str]) -> None:
        self._shape.placeholder = attributes.get("type", "obj")

    def _offset(self, attributes: dict[str, str]) -> None:
        self._shape.place = (_whole(attributes.get("x")), _whole(attributes.get("y")))

    def _extent(self, attributes: dict[str, str]) -> None:
        if "cx" in attributes:
            self._shape.size = (_whole(attributes.get("cx")), _whole(attributes.get("cy")))

    def _run_properties(self, attributes: dict[str, str]) -> None:
        self._in_run = True
        self._is_lost = self._is_lost or 0 < _whole(attributes.get("sz")) <= _TINY

    def _no_fill(self, _attributes: dict[str, str]) -> None:
        self._is_lost = self._is_lost or self._in_run

    def _alpha(self, attributes: dict[str, str]) -> None:
        shows = attributes.get("val", "").removesuffix("%")
        is_clear = shows.isdecimal() and int(shows[:9]) < (_CLEAR if "%" not in attributes["val"] else 10)
        self._is_lost = self._is_lost or (self._in_run and is_clear)

    def _outline(self, _attributes: dict[str, str]) -> None:
        if self._in_run:
            self._pass.skip()

    def _end_run_properties(self) -> None:
        self._in_run = False

    def _field(self, attributes: dict[str, str]) -> None:
        if self._is_converted and attributes.get("type", "").startswith("datetime"):
            self._words.append(live_field("DATE"))
            self._pass.skip()

    def _begin_paragraph(self) -> None:
        self._words.clear()
        self._is_lost = False

    def _end_paragraph(self) -> None:
        line = _one_line(self._words)
        self._words.clear()
        if not line:
            return
        line = _marked(line) if self._is_lost else line
        (self._shape.lines if self._cell is None else self._cell).append(line)

    def _end_text(self) -> None:
        self._pass.end_text()

    def _begin_row(self) -> None:
        self._row = []

    def _begin_cell(self) -> None:
        self._cell = []

    def _end_cell(self) -> None:
        if self._row is not None and self._cell is not None:
            self._row.append(" ".join(self._cell))
        self._cell = None

    def _end_row(self) -> None:
        line = "\t".join(self._row or []).rstrip("\t")
        if line.strip():
            self._shape.lines.append(line)
        self._row = None

    def _end_shape(self) -> None:
        shape, self._shape = self._shape, _Shape()
        self.pictures += shape.is_picture
        if shape.placeholder == "sldNum" or (shape.placeholder and not self._takes_placeholders):
            return
        self.has_words = self.has_words or bool(shape.lines)
        if shape.is_picture and shape.description:
            shape.lines.append(f"[picture: {shape.description}]")
        if shape.is_hidden or self._is_beside(shape):
            shape.lines = [_marked(line) for line in shape.lines]
        self.lines += shape.lines

    def _is_beside(self, shape: _Shape) -> bool:
        """Whether it stands off the slide altogether; in a group, places mean something else."""
        if self._groups or not all(self._size) or not any(shape.size):
            return False
        return any(
            place + size <= 0 or place >= whole
            for place, size, whole in zip(shape.place, shape.size, self._size, strict=True)
        )


def _plain(xml: bytes) -> list[str]:
    """The paragraphs, comments and first values of a part."""
    lines: list[str] = []
    words: list[str] = []
    values: list[str] = []

    def begin(into: list[str]) -> Callable[[dict[str, str]], None]:
        return lambda _: reading.begin_text(into.append)

    def end_text() -> None:
        reading.end_text()

    def end_value() -> None:
        reading.end_text()
        values.append(" ")

    def end_line() -> None:
        line = _one_line(words)
        words.clear()
        if line:
            lines.append(line)

    def end_comment() -> None:
        reading.end_text()
        end_line()

    reading = Pass(
        {f"{_A} t": begin(words), f"{_P} text": begin(words), f"{_C} v": begin(values)},
        {f"{_A} t": end_text, f"{_A} p": end_line, f"{_P} text": end_comment, f"{_C} v": end_value},
    )
    with contextlib.suppress(expat.ExpatError):  # what came before the damage stands
        reading.run(xml)
    told = " ".join("".join(values).split(" ")[:_MOST_CHART]).strip()
    return [*lines, told] if told else lines
