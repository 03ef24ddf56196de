"""Sheets: XLSX workbooks and CSV files to blocks of rows, each row one line with tabs between its cells.

Values as they were stored, nothing calculated. It must never hold more rows than a reader could want:
what lies beyond the caps is left out and said.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import io
import re
import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.parsers import expat

from chatproc.attachments.charset import NO_CHARSET, NotTextError, decode
from chatproc.attachments.ooxml import Package, Pass
from chatproc.attachments.text import NOT_VISIBLE, Blocks
from chatproc.attachments.units import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from openpyxl import Workbook

    from chatproc.attachments.units import Document, Limits

LONGEST_BLOCK = 6000
"""Characters of rows in one block, about: a sheet that has more goes on in the next block."""

MOST_CELLS = 100_000
"""Cells that are read of one file, empty ones between others included."""

MOST_COLUMNS = 512
"""Columns that are read of one row."""

_LONGEST_CELL = 2000
_LONGEST_HEAD = 500
_LONGEST_NAME = 100
_DELIMITERS = ",;\t|"
_LINES_FOR_A_GUESS = 50
_LAST_ROW = 1_048_576
_UNREADABLE_SHEET = "[this sheet cannot be read: its content is damaged]"
_CUT = "[cut: the sheet goes on]"
_WIDE = f"Of its rows only the first {MOST_COLUMNS} columns are read."


class _Row(NamedTuple):
    """One row that has something in it: its number in the sheet, from 1, and its line."""

    number: int
    line: str


def open_document(content: bytes, kind: str, limits: Limits) -> Document:
    """Read a workbook or a CSV file.

    Args:
        content: The whole file.
        kind: `xlsx` or `csv`.
        limits: Nothing of it binds here: packages have their own caps.

    Raises:
        UnreadableError: `empty`, `corrupt`, `encrypted`, `too_large`, `truncated`, `type_mismatch`.
    """
    del limits
    return _workbook(content) if kind == "xlsx" else _csv(content)


class _Allowance:
    """How many cells may still be read of this file, and whether more was met."""

    def __init__(self) -> None:
        self.left = MOST_CELLS
        self.is_wide = False
        """A row had a value beyond the columns that are read."""

    def takes(self, cells: int) -> bool:
        """Whether a row of so many cells may be read."""
        self.left -= cells + 1
        return self.left >= 0

    def notes(self) -> list[str]:
        """What is to be said of what was not read."""
        cut = [f"Only its first {MOST_CELLS} cells are read."] if self.left < 0 else []
        return [*cut, _WIDE] if self.is_wide else cut


def _workbook(content: bytes) -> Blocks:
    import openpyxl

    if _is_strict(content):
        content = _transitional(content)
    try:
        workbook = openpyxl.load_workbook(
            io.BytesIO(content), read_only=True, data_only=True, keep_links=False
        )
    except MemoryError:
        raise
    except Exception as error:  # openpyxl raises whatever its parts raise
        raise UnreadableError("corrupt", "its parts make no workbook") from error
    texts, notes = _sheets(workbook)
    texts.extend(_blocks("comments and text boxes of the workbook", _asides(Package(content))))
    if not texts:
        raise UnreadableError("empty", "its sheets have no cell with a value, no comment and no text box")
    return Blocks(tuple(texts), " ".join(notes))


def _is_strict(content: bytes) -> bool:
    """Whether the workbook is in the other spelling of the format, which openpyxl takes for an empty one.

    Raises:
        UnreadableError: It is no package, wants a password, inflates to too much (all of it is inflated:
            the directory may lie), or declares entities.
    """
    package = Package(content)
    for name in package.names():
        if name.endswith((".xml", ".rels", ".vml")) and b"<!ENTITY" in (package.read(name) or b""):
            raise UnreadableError("corrupt", "its XML declares entities, which no office program writes")
    return _STRICT in (Package(content).read("xl/workbook.xml") or b"")[:_LONGEST_OPENING]


_STRICT = b'="http://purl.oclc.org/ooxml/spreadsheetml/main"'
_STRICT_NAMES = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w{1,30})/")
_LONGEST_OPENING = 4096


def _transitional(content: bytes) -> bytes:
    """A strict workbook in the spelling that openpyxl knows; only its XML, which is all that is read."""
    package = Package(content)
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        for name in dict.fromkeys(old.namelist()):
            if name.endswith((".xml", ".rels", ".vml")):
                xml = package.read(name) or b""
                new.writestr(name, _STRICT_NAMES.sub(rb"http://schemas.openxmlformats.org/\1/2006/", xml))
    return file.getvalue()


def _sheets(workbook: Workbook) -> tuple[list[str], list[str]]:
    """The blocks of all sheets in their order, and what to say about them."""
    texts: list[str] = []
    notes: list[str] = []
    allowance = _Allowance()
    sheets: list[Any] = workbook.worksheets
    for place, sheet in enumerate(sheets, start=1):
        about = _About.of(sheet)
        name = " ".join(sheet.title.split())[:_LONGEST_NAME]
        seen = "" if sheet.sheet_state == "visible" else ", a hidden sheet, not visible"
        title = f'sheet {place} of {len(sheets)} "{name}"{seen}'
        if about is None:
            texts.append(f"[{title}]\n{_UNREADABLE_SHEET}")
            continue
        texts.extend(_blocks(title, _cells(sheet, about, allowance), mark="" if not seen else NOT_VISIBLE))
        if about.valueless:
            notes.append(f"Sheet {place} has {about.valueless} formulas without a stored value: left empty.")
    return texts, notes + allowance.notes()


class _About(NamedTuple):
    """What openpyxl does not tell of a sheet that it streams."""

    hidden_rows: frozenset[int]
    hidden_columns: tuple[tuple[int, int], ...]
    valueless: int
    """Formulas that no program ever calculated."""

    @classmethod
    def of(cls, sheet: Any) -> _About | None:  # noqa: ANN401 - openpyxl's streamed sheet has no public type
        """Look through the sheet's own XML; `None` when its part cannot be read."""
        try:
            with sheet._get_source() as source:  # noqa: SLF001 - the part's name is not told otherwise
                xml: bytes = source.read()
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - whatever zipfile raises for a damaged or missing part
            return None
        rows = frozenset(
            int(number.group(1))
            for row in _ROW.finditer(xml)
            if _IS_HIDDEN.search(row.group()) and (number := _ROW_NUMBER.search(row.group()))
        )
        columns = tuple(
            (int(first.group(1)), int(last.group(1)))
            for column in _COLUMN.finditer(xml)
            if _IS_HIDDEN.search(column.group())
            and (first := _FIRST.search(column.group()))
            and (last := _LAST.search(column.group()))
        )
        return cls(rows, columns, sum(1 for _ in _VALUELESS.finditer(xml)))

    def hides_column(self, number: int) -> bool:
        """Whether a column, from 1, is hidden."""
        return any(first <= number <= last for first, last in self.hidden_columns)


_ROW = re.compile(rb"<(?:\w{1,20}:)?row\b[^>]{1,2000}>")
_COLUMN = re.compile(rb"<(?:\w{1,20}:)?col\b[^>]{1,2000}>")
_IS_HIDDEN = re.compile(rb"""\s(?:hidden|zeroHeight)\s*=\s*["'](?:1|true)["']""")
_ROW_NUMBER = re.compile(rb"""\sr\s*=\s*["'](\d{1,7})["']""")
_FIRST = re.compile(rb"""\smin\s*=\s*["'](\d{1,5})["']""")
_LAST = re.compile(rb"""\smax\s*=\s*["'](\d{1,5})["']""")
_VALUELESS = re.compile(rb"<f\b[^>]{0,500}(?:/>|>[^<]{0,9000}</f>)\s*(?:<v\s*/>|<v></v>)?\s*</c>")


def _cells(sheet: Any, about: _About, allowance: _Allowance) -> Iterator[_Row]:  # noqa: ANN401 - as above
    """The rows of a sheet that have a value, as lines."""
    looks: dict[Any, _Look] = {}
    sheet.reset_dimensions()  # what the file says of its size is often wrong, or a trap
    try:
        for number, row in enumerate(sheet.iter_rows(), start=1):
            if number > _LAST_ROW:
                yield _Row(number, _UNREADABLE_SHEET)
                return
            filled = [cell for cell in row[:MOST_COLUMNS] if cell.value is not None]
            allowance.is_wide |= any(cell.value is not None for cell in row[MOST_COLUMNS:])
            if not filled:
                continue
            if not allowance.takes(filled[-1].column):
                yield _Row(number, _CUT)
                return
            shown: list[str] = []
            for cell in filled:
                shown.extend([""] * (cell.column - 1 - len(shown)))
                look = looks.get(cell.style_array) or looks.setdefault(cell.style_array, _Look.of(cell))
                text = _shown(cell.value, is_percent=look.is_percent)
                hidden = look.is_invisible or about.hides_column(cell.column)
                shown.append(NOT_VISIBLE + text if hidden and text else text)
            line = "\t".join(shown)
            if line.strip():
                yield _Row(number, NOT_VISIBLE + line if number in about.hidden_rows else line)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - what came before the damage stands
        yield _Row(0, _UNREADABLE_SHEET)


_COMMENTS = re.compile(r"xl/(?:comments/)?comments?[^/]*\.xml")
_DRAWINGS = re.compile(r"xl/drawings/drawing[^/]*\.xml")
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SHAPES = "http://schemas.openxmlformats.org/drawingml/2006/main"


def _asides(package: Package) -> Iterator[_Row]:
    """What is written on the sheets and not in a cell."""
    number = 0
    for name in package.names():
        if not (_COMMENTS.fullmatch(name) or _DRAWINGS.fullmatch(name)):
            continue
        for line in _texts(package.read(name) or b""):
            number += 1
            yield _Row(number, line)


def _texts(xml: bytes) -> list[str]:
    """The comments of a part with their cells, or the paragraphs of its text boxes."""
    lines: list[str] = []
    words: list[str] = []
    place = ""

    def begin(attributes: dict[str, str]) -> None:
        nonlocal place
        words.clear()
        place = attributes.get("ref", "")

    def end() -> None:
        text = _shown("".join(words))
        if text:
            lines.append(f"[comment on {place[:20]}: {text}]" if place else f"[text box: {text}]")
        words.clear()

    def begin_text(_attributes: dict[str, str]) -> None:
        reading.begin_text(words.append)

    def end_text() -> None:
        reading.end_text()

    reading = Pass(
        {
            f"{_MAIN} comment": begin,
            f"{_MAIN} t": begin_text,
            f"{_SHAPES} p": begin,
            f"{_SHAPES} t": begin_text,
        },
        {
            f"{_MAIN} comment": end,
            f"{_MAIN} t": end_text,
            f"{_SHAPES} p": end,
            f"{_SHAPES} t": end_text,
        },
    )
    with contextlib.suppress(expat.ExpatError):  # what came before the damage stands
        reading.run(xml)
    return lines


class _Look(NamedTuple):
    """What a cell's style does to its value."""

    is_percent: bool
    is_invisible: bool

    @classmethod
    def of(cls, cell: Any) -> _Look:  # noqa: ANN401 - openpyxl's cells of three kinds
        """Read it from a cell; a style that is not there does nothing."""
        try:
            form = str(cell.number_format)
            font, fill = cell.font, cell.fill
            ink = _parts(None if font is None else font.color)
            is_filled = fill is not None and fill.fill_type not in {None, "none"}
            ground = _parts(fill.fgColor) if is_filled and fill.fill_type == "solid" else None
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return cls(is_percent=False, is_invisible=False)
        if ink is None:
            is_lost = False
        elif ground is not None and min(ground) < _PALE:
            is_lost = all(abs(one - other) < _FAINT for one, other in zip(ink, ground, strict=True))
        else:
            is_lost = min(ink) >= _PALE and (ground is not None or not is_filled)
        return cls("%" in form, form.strip() == ";;;" or is_lost)


_PALE = 0xE0
"""On white paper, a colour whose every part is at least so light does not show."""

_FAINT = 24
"""Of 255: two colours that are no further apart are one to the eye."""


def _parts(color: Any) -> tuple[int, int, int] | None:  # noqa: ANN401 - openpyxl's colours of three kinds
    """Red, green and blue, where a colour says them, or is the theme's white."""
    if color is None:
        return None
    if color.type == "theme" and color.theme == 0 and not color.tint:
        return 255, 255, 255
    if color.type != "rgb":
        return None
    digits = str(color.rgb)[-6:]
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def _shown(value: object, *, is_percent: bool = False) -> str:
    """A value on one line, as a person would write it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        return (
            f"{value * 100:.12g}%"
            if is_percent
            else f"{value:.15g}"
            if isinstance(value, float)
            else str(value)
        )
    if isinstance(value, dt.datetime):
        text = value.isoformat(" ", "seconds" if value.second else "minutes")
        return text.removesuffix(" 00:00")
    if isinstance(value, dt.time):
        return value.isoformat("seconds" if value.second else "minutes")
    text = " ".join(str(value)[: _LONGEST_CELL + 1].split())
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}…"


def _blocks(title: str, rows: Iterable[_Row], mark: str = "") -> Iterator[str]:
    """Cut rows into blocks, each with where it stands; later ones repeat the sheet's first row."""
    lines: list[str] = []
    length = 0
    head = ""
    first = last = 0

    def block() -> str:
        again = (
            f"\n[its first row: {head[:_LONGEST_HEAD]}]" if first > 1 and head and lines[0] != head else ""
        )
        span = f"row {first}" if first == last else f"rows {first}–{last}"
        return "\n".join((f"[{title}, {span}]{again}", *lines))

    for row in rows:
        line = mark + row.line
        if lines and length + len(line) > LONGEST_BLOCK:
            yield block()
            lines.clear()
            length = 0
        if not lines:
            first = row.number
        head = head or line
        lines.append(line)
        length += len(line) + 1
        last = row.number or last
    if lines:
        yield block()


def _csv(content: bytes) -> Blocks:
    try:
        text, note = decode(content)
    except NotTextError:
        raise UnreadableError("type_mismatch", NO_CHARSET) from None
    allowance = _Allowance()
    texts = tuple(_blocks("table", _records(text, allowance)))
    if not texts:
        raise UnreadableError("empty", "the file has no value")
    return Blocks(texts, " ".join([note, *allowance.notes()]).strip())


def _records(text: str, allowance: _Allowance) -> Iterator[_Row]:
    """The rows of a CSV file that have a value, as lines."""
    declared = re.match(r"sep=([^\s\"])\n", text)
    if declared:
        text = text[declared.end() :]
    delimiter = declared.group(1) if declared else _delimiter(text)
    # A cell may be as long as the file: an open quote is no error, it is shown as it is.
    csv.field_size_limit(max(len(text), 1))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    for number, cells in enumerate(reader, start=1):
        allowance.is_wide |= len(cells) > MOST_COLUMNS
        if not allowance.takes(min(len(cells), MOST_COLUMNS)):
            yield _Row(number, _CUT)
            return
        line = "\t".join(_shown(cell) for cell in cells[:MOST_COLUMNS]).rstrip("\t")
        if line.strip():
            yield _Row(number, line)


def _delimiter(text: str) -> str:
    """The mark that most of the first lines have equally often, outside of quotes; a comma when none has."""
    lines = [
        re.sub(r'"[^"]*"', "", line) for line in text.split("\n", _LINES_FOR_A_GUESS)[:_LINES_FOR_A_GUESS]
    ]
    lines = [line for line in lines if line.strip()]

    def agreement(mark: str) -> tuple[int, int]:
        counts = [line.count(mark) for line in lines]
        usual = max(set(counts), key=lambda count: (counts.count(count), count), default=0)
        return (counts.count(usual), usual) if usual else (0, sum(counts))

    return max(_DELIMITERS, key=agreement)
