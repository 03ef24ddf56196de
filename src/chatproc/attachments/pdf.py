"""PDF: pages as units, read by MuPDF first and by PDFium where that fails or gives no real characters.

PyMuPDF (AGPL) is imported in this module alone. It must only run inside the worker; it opens pages one by
one, follows no link, runs no script, and marks what a person who looks at the page would not see.
"""
# mypy: untyped-calls-exclude="pymupdf"

from __future__ import annotations

import unicodedata
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pymupdf
from PIL import Image
from pymupdf import mupdf

from chatproc.attachments.image import encoded
from chatproc.attachments.pdfium import MOST_CHARACTERS, SecondReader
from chatproc.attachments.sight import MARK, Box, Glyph, Ink, Line, Seen, View, look, one_line
from chatproc.attachments.units import Code, Limits, Unit, UnreadableError, capped

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_PAGES = 200_000
"""A file that announces more is not opened. 50,000 pages open as fast as one."""

_MOST_PROBED = 64
"""Pages looked at, at most, to tell on opening whether a file has any text."""

_LARGEST_CONTENT = 16 * 1024 * 1024
"""Inflated bytes of what a page draws."""

_LARGEST_PAINTED = 4 * 1024 * 1024
"""Inflated bytes beyond which a page is not painted just to see what is hidden on it."""

_LARGEST_PICTURE = 160_000_000
"""Bytes of one picture on a page when it is decoded: 40 million pixels of four parts."""

_MOST_PAINTED = 4_000_000
"""Pixels of a page painted to be looked at."""

_SHARPEST, _COARSEST = 2.0, 0.7
"""Pixels per point of such a page; coarser, its letters could not be told from the paper."""

_FILLING = 0.5
"""Share of a page from which on a picture fills it."""

_FEW_CHARACTERS = 100
"""Beside a picture that fills the page, so little text may be a stamp on a scan."""

_SUSPICIOUS, _MEANINGLESS = 0.02, 0.3
"""Shares of characters that mean nothing: to ask the second reader, to give up on the text."""

_MOST_NOTES, _LONGEST_NOTE = 200, 1000
"""Annotations, form fields and links of a page; characters of one."""

_HIDDEN_FLAGS = 2 | 32
"""An annotation's `Hidden` and `NoView`."""

_PUSH_BUTTON = 1
"""A form field that has no value."""

_UNREADABLE = "the page's fonts do not say what its characters mean; its text cannot be read"

pymupdf.TOOLS.mupdf_display_errors(on=False)
pymupdf.TOOLS.mupdf_display_warnings(on=False)


class Pdf:
    """An opened PDF.

    Args:
        content: The whole file, beginning with `%PDF-`.
        limits: `vision` and `max_image_px` are kept.

    Raises:
        UnreadableError: No page can be read.
    """

    def __init__(self, content: bytes, limits: Limits) -> None:
        """Open it with the first reader, with the second when that finds nothing."""
        self._content = content
        self._limits = limits
        self._second: SecondReader | None = None
        self._notes: list[str] = []
        self._first = self._opened()
        self.total = self._first.total if self._first else self._second_reader().total
        if self.total > MOST_PAGES:
            raise UnreadableError("too_many_pages", f"it has {self.total} pages")
        self._last: tuple[int, _Page] | None = None
        self._probe()

    @property
    def note(self) -> str:
        """What is to be said of the whole file."""
        return " ".join(self._notes)

    def unit(self, number: int) -> Unit:
        """A page.

        Raises:
            UnreadableError: This page cannot be read.
        """
        page = self._page(number)
        with _plainly("corrupt", f"page {number} is broken"):
            return self._written(number, page)

    def close(self) -> None:
        """Let go of both readers."""
        if self._first:
            self._first.close()
        if self._second:
            self._second.close()

    def _opened(self) -> _FirstReader | None:
        try:
            first = _FirstReader(self._content)
        except UnreadableError as error:
            met = _broken(self._content) if error.code == "corrupt" else error
            self._take_second(met, "The first reader cannot open it; read with the second.")
            return None
        if first.total == 0:
            first.close()
            self._take_second(_broken(self._content), "The first reader finds no page; read with the second.")
            return None
        if first.is_repaired:
            cut = "It is cut off: pages may be missing."
            self._notes.append(cut if _is_cut(self._content) else "It is damaged: parts may be missing.")
        if first.embedded:
            self._notes.append(f"Files inside it that are not read: {first.embedded}.")
        return first

    def _take_second(self, error: UnreadableError, note: str) -> None:
        """Open the file with the second reader, or say what the first one met."""
        try:
            second = self._second_reader()
        except UnreadableError as second_error:
            raise (second_error if second_error.code == "encrypted" else error) from None
        if second.total == 0:
            raise error
        self._notes.append(note)

    def _second_reader(self) -> SecondReader:
        if self._second is None:
            self._second = SecondReader(self._content)
        return self._second

    def _probe(self) -> None:
        """Look at the first pages until one has text; refuse a file in which nothing can be read."""
        refusal: UnreadableError | None = None
        is_scanned = is_blank = False
        for number in range(1, min(self.total, _MOST_PROBED) + 1):
            try:
                page = self._page(number)
            except UnreadableError as error:
                refusal = refusal or error
                continue
            if page.has_words or (self._limits.vision and not page.is_blank):
                return
            is_scanned = is_scanned or not page.is_blank
            is_blank = is_blank or page.is_blank
        if is_scanned and self.total <= _MOST_PROBED:
            raise UnreadableError("no_text_scanned", "its pages are pictures without text")
        if refusal and not is_scanned and not is_blank:
            raise refusal
        if self._first is None and not is_scanned:
            raise _broken(self._content)

    def _page(self, number: int) -> _Page:
        """A page, read anew unless it is the one read last."""
        if self._last is None or self._last[0] != number:
            with _plainly("corrupt", f"page {number} is broken"):
                self._last = (number, self._read(number))
        return self._last[1]

    def _read(self, number: int) -> _Page:
        """A page as the reader gives it that makes more of it."""
        if self._first is None:
            return self._second_page(number, "")
        try:
            first = self._first.page(number)
        except UnreadableError as error:
            if error.code in {"too_large", "memory"}:
                raise
            return self._second_page(number, "the first reader cannot read this page")
        doubt = _doubt(first.raw)
        if first.raw.strip() and doubt < _SUSPICIOUS:
            return first
        return self._better(number, first, doubt)

    def _better(self, number: int, first: _Page, doubt: float) -> _Page:
        """What the second reader makes of a page of which the first makes little, if that is better."""
        try:
            lines, view = self._second_reader().lines(number)
        except UnreadableError:
            return first
        raw = _raw(lines)
        if not raw.strip() or _doubt(raw) > doubt / 2 or (first.is_mute and doubt > _MEANINGLESS):
            return first
        if abs(view.width - first.view.width) < 1 and abs(view.height - first.view.height) < 1:
            view = first.view
        why = "gives characters that mean nothing" if first.raw.strip() else "finds no text"
        return first._replace(raw=raw, view=view, lines=lines, reader=f"the first reader {why}")

    def _second_page(self, number: int, why: str) -> _Page:
        second = self._second_reader()
        lines, view = second.lines(number)
        is_blank = not lines and second.is_blank(number)
        return _Page(lines, _raw(lines), view, (), is_blank=is_blank, reader=why)

    def _written(self, number: int, page: _Page) -> Unit:
        """A page as its unit: remarks, text with marks, what was recognised; the picture beside it."""
        is_meaningless = bool(page.raw.strip()) and _doubt(page.raw) > _MEANINGLESS
        seen = look([] if is_meaningless else page.lines, page.view)
        parts = [f"[{remark}]" for remark in _remarks(page, seen, is_meaningless=is_meaningless)]
        parts += [seen.text, *page.beside]
        if seen.recognised:
            parts.append(
                f"{MARK} Under the picture of the page, as text recognition left it:\n{seen.recognised}"
            )
        text = "\n".join(part for part in parts if part)
        is_picture = not page.is_blank and (page.view.is_scan or not seen.visible)
        if not is_picture or seen.visible >= _FEW_CHARACTERS:
            return Unit(f"p{number}", capped(text or "[blank page]"))
        if self._limits.vision:
            return self._pictured(number, text)
        unseen = (
            "the page is also a picture, which the model in use cannot see" if text else "scanned, no text"
        )
        return Unit(f"p{number}", capped(f"{text}\n[{unseen}]".lstrip()))

    def _pictured(self, number: int, text: str) -> Unit:
        """A page as a picture, with the little text it has; with that alone when the picture is too much."""
        try:
            picture = (self._first or self._second_reader()).picture(number, self._limits.max_image_px)
        except UnreadableError as error:
            if not text:
                raise
            return Unit(f"p{number}", capped(f"{text}\n[no picture of the page: {error.words}]"))
        image, mime = encoded(picture)
        return Unit(f"p{number}", capped(f"{text}\n[the page is given as a picture]".lstrip()), image, mime)


class _Page(NamedTuple):
    """A page as a reader gives it.

    Args:
        lines: Its glyphs in reading order.
        raw: Its text, to be judged.
        view: The page as it is shown.
        beside: Lines for annotations, form fields and links.
        is_blank: Nothing is drawn on it.
        reader: Why it is the second reader's, empty when it is not.
        is_unseen: It could not be painted, so hidden text was not looked for by sight.
        is_mute: A font of it numbers its glyphs and does not say what they mean: any reader can only guess.
    """

    lines: list[Line]
    raw: str
    view: View
    beside: tuple[str, ...]
    is_blank: bool = False
    reader: str = ""
    is_unseen: bool = False
    is_mute: bool = False

    @property
    def has_words(self) -> bool:
        """Whether there is anything to read."""
        return bool(self.raw.strip() or self.beside)


def open_document(content: bytes, kind: str, limits: Limits) -> Pdf:
    """Open a PDF.

    Args:
        content: The whole file; what comes before its `%PDF-` is passed over.
        kind: Always `pdf`.
        limits: `vision` and `max_image_px` are kept.

    Raises:
        UnreadableError: `empty`, `encrypted`, `truncated`, `corrupt`, `too_large`, `too_many_pages`,
            `memory`, or, only where the model does not see, `no_text_scanned`.
    """
    del kind
    if not content:
        raise UnreadableError("empty", "the file has no bytes")
    begin = content.find(b"%PDF-")
    if begin < 0:
        raise UnreadableError("corrupt", "it does not begin as a PDF does")
    return Pdf(content[begin:], limits)


class _FirstReader:
    """A PDF as MuPDF opens it."""

    def __init__(self, content: bytes) -> None:
        with _plainly("corrupt", "the first reader cannot open it"):
            self._document = pymupdf.open(stream=content, filetype="pdf")
            if self._document.needs_pass:
                raise UnreadableError("encrypted", "it wants a password")
            self.total: int = self._document.page_count if self._document.is_pdf else 0
            self.is_repaired: bool = self._document.is_repaired
        self.embedded = 0
        with suppress(Exception):  # a broken list of files is no reason not to read the pages
            self.embedded = self._document.embfile_count()

    def close(self) -> None:
        self._document.close()

    def page(self, number: int) -> _Page:
        with _plainly("corrupt", f"page {number} is broken"):
            page = self._document.load_page(number - 1)
            size = _content_size(self._document, page)
            if size > _LARGEST_CONTENT:
                raise UnreadableError("too_large", f"page {number} draws more than 16 MiB")
            lines = _lines(page, pymupdf.TEXT_IGNORE_ACTUALTEXT)
            if _doubt(_raw(lines)) >= _SUSPICIOUS:
                lines = min((lines, _lines(page, 0)), key=lambda some: _doubt(_raw(some)))
            view = _view(page, is_painted=bool(lines) and size <= _LARGEST_PAINTED)
            raw = _raw(lines)
            beside = tuple(_beside(page, raw))
            is_blank = not raw.strip() and not page.get_bboxlog()
            return _Page(
                lines,
                raw,
                view,
                beside,
                is_blank=is_blank,
                is_unseen=view.picture is None,
                is_mute=_is_mute(self._document, page),
            )

    def picture(self, number: int, longest: int) -> Image.Image:
        with _plainly("corrupt", f"page {number} cannot be painted"):
            page = self._document.load_page(number - 1)
            for picture in page.get_image_info():
                if _decoded_size(picture) > _LARGEST_PICTURE:
                    size = f"{picture['width']} × {picture['height']}"
                    raise UnreadableError("too_large", f"page {number} is a picture of {size} pixels")
            return _painted(page, longest / max(page.rect.width, page.rect.height, 1.0))


def _content_size(document: pymupdf.Document, page: pymupdf.Page) -> int:
    """Bytes of what a page draws, inflated, counted no further than one beyond what is allowed."""
    contents = mupdf.pdf_dict_get(mupdf.pdf_page_from_fz_page(page.this).obj(), mupdf.PDF_ENUM_NAME_Contents)
    if not contents.m_internal:
        return 0
    stream = mupdf.pdf_open_contents_stream(mupdf.pdf_document_from_fz_document(document.this), contents)
    return int(mupdf.fz_skip(stream, _LARGEST_CONTENT + 1))


def _is_mute(document: pymupdf.Document, page: pymupdf.Page) -> bool:
    """Whether a font of a page numbers its glyphs without a table that says which characters they are."""
    return any(
        encoding.startswith("Identity") and document.xref_get_key(xref, "ToUnicode")[0] == "null"
        for xref, _, _, _, _, encoding, *_ in page.get_fonts(full=True)
    )


def _lines(page: pymupdf.Page, flags: int) -> list[Line]:
    """The lines of a page without its annotations, what lies outside the page included."""
    text_page = mupdf.FzStextPage(mupdf.FzRect(mupdf.FzRect.Fixed_INFINITE))
    options = mupdf.FzStextOptions(flags | pymupdf.TEXT_PRESERVE_WHITESPACE)
    device = mupdf.fz_new_stext_device(text_page, options)
    mupdf.fz_run_page_contents(page.this, device, mupdf.FzMatrix(), mupdf.FzCookie())
    mupdf.fz_close_device(device)
    text = pymupdf.TextPage(text_page)
    if len(text.extractText()) > MOST_CHARACTERS:
        raise UnreadableError("too_large", f"a page has more than {MOST_CHARACTERS} characters")
    lines = [line for block in text.extractRAWDICT()["blocks"] for line in block.get("lines", ())]
    _drop_clips(lines)
    drawn = frozenset(font[3] for font in page.get_fonts(full=True) if font[2] == "Type3")
    return [_joined(row, drawn) for row in _rows(lines)]


_CLIP = 64
"""A span's flag: its letters are a clipping path."""


def _drop_clips(lines: list[dict[str, Any]]) -> None:
    """Take out letters that only clip where the same letters are painted as well: they are listed twice."""
    spans = [span for line in lines for span in line["spans"]]
    painted = {
        (char["c"], char["bbox"])
        for span in spans
        if not span["char_flags"] & _CLIP
        for char in span["chars"]
    }
    for span in spans:
        if span["char_flags"] & _CLIP:
            span["chars"] = [char for char in span["chars"] if (char["c"], char["bbox"]) not in painted]


def _rows(lines: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Lines, each with the pieces that were taken for lines of their own: cells, spaced words."""
    row: list[dict[str, Any]] = []
    for line in lines:
        if row and not _on_one_row(row[0], line):
            yield row
            row = []
        row.append(line)
    if row:
        yield row


_LEVEL = (1.0, 0.0)
_OFFSET = 1.5
"""Points between a letter and the same letter printed over it."""
_SAME_HEIGHT = 0.6


def _on_one_row(one: dict[str, Any], other: dict[str, Any]) -> bool:
    if one["dir"] != _LEVEL or other["dir"] != _LEVEL or one["wmode"] or other["wmode"]:
        return False
    top, bottom = max(one["bbox"][1], other["bbox"][1]), min(one["bbox"][3], other["bbox"][3])
    height = min(one["bbox"][3] - one["bbox"][1], other["bbox"][3] - other["bbox"][1])
    return bottom - top > _SAME_HEIGHT * height and not (_is_right_to_left(one) or _is_right_to_left(other))


def _is_right_to_left(line: dict[str, Any]) -> bool:
    return any(
        unicodedata.bidirectional(char["c"][:1]) in {"R", "AL"}
        for span in line["spans"]
        for char in span["chars"]
    )


def _joined(row: list[dict[str, Any]], drawn: frozenset[str]) -> Line:
    """The glyphs of a row from left to right, a tab where a gap is wide, a blank where it is not."""
    joined: Line = []
    for line in sorted(_once(row), key=lambda piece: piece["bbox"][0]) if len(row) > 1 else row:
        glyphs = [glyph for span in line["spans"] for glyph in _glyphs(span, drawn)]
        if not glyphs:
            continue
        if joined and not joined[-1].text.isspace():
            last = joined[-1]
            gap = glyphs[0].box[0] - last.box[2]
            box = (last.box[2], last.box[1], max(last.box[2], glyphs[0].box[0]), last.box[3])
            joined.append(Glyph("\t" if gap > last.ink.size else " ", box, last.ink))
        joined += glyphs
    return joined


def _once(row: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pieces of a row without those that are printed over themselves, as to make them bold."""
    pieces: dict[str, list[dict[str, Any]]] = {}
    for line in row:
        text = "".join(char["c"] for span in line["spans"] for char in span["chars"])
        same = pieces.setdefault(text, [])
        if not any(_is_near(line["bbox"], other["bbox"]) for other in same):
            same.append(line)
    return [line for same in pieces.values() for line in same]


def _is_near(one: Box, other: Box) -> bool:
    return abs(one[0] - other[0]) < _OFFSET and abs(one[1] - other[1]) < _OFFSET


def _glyphs(span: dict[str, Any], drawn: frozenset[str]) -> Iterator[Glyph]:
    """The characters of a span. Letters that are drawn by a program (Type 3) or clip have no known colour."""
    alpha = span["alpha"]
    ink = Ink(span["size"], span["color"], alpha > 0, alpha == 255)  # noqa: PLR2004
    if span["font"] in drawn or span["char_flags"] & _CLIP:
        ink = Ink(span["size"], None, painted=True, solid=False)
    for char in span["chars"]:
        yield Glyph(char["c"], char["bbox"], ink)


def _view(page: pymupdf.Page, *, is_painted: bool) -> View:
    """The page as it is shown, painted where that is wanted and cheap."""
    width, height = max(page.rect.width, 1.0), max(page.rect.height, 1.0)
    pictures = page.get_image_info()
    areas = [abs((x1 - x0) * (y1 - y0)) for x0, y0, x1, y1 in (picture["bbox"] for picture in pictures)]
    is_scan = any(area > _FILLING * width * height for area in areas)
    scale = min(_SHARPEST, (_MOST_PAINTED / (width * height)) ** 0.5)
    is_cheap = is_painted and all(_decoded_size(picture) <= _LARGEST_PICTURE for picture in pictures)
    painted = _painted(page, scale) if is_cheap and scale >= _COARSEST else None
    return View(width, height, painted, is_scan, _Covers(page))


def _decoded_size(picture: dict[str, Any]) -> int:
    return int(picture["width"]) * int(picture["height"]) * max(1, int(picture["colorspace"]))


def _painted(page: pymupdf.Page, scale: float) -> Image.Image:
    pixels = page.get_pixmap(matrix=pymupdf.Matrix(scale, scale), colorspace=pymupdf.csRGB, alpha=False)
    return Image.frombytes("RGB", (pixels.width, pixels.height), pixels.samples)


class _Covers:
    """Tells whether something was painted over a box after its text. It lists what was when first asked."""

    def __init__(self, page: pymupdf.Page) -> None:
        self._page = page
        self._painted: list[tuple[bool, Box]] | None = None

    def __call__(self, box: Box) -> bool:
        if self._painted is None:
            self._painted = list(_painted_boxes(self._page))
        left, top, right, bottom = box[0] + 1, box[1] + 1, box[2] - 1, box[3] - 1
        is_covered = False
        for is_text, (x0, y0, x1, y1) in self._painted:
            if is_text:
                is_covered = is_covered and not (x0 < right and left < x1 and y0 < bottom and top < y1)
            elif x0 <= left and right <= x1 and y0 <= top and bottom <= y1:
                is_covered = True
        return is_covered


def _painted_boxes(page: pymupdf.Page) -> Iterator[tuple[bool, Box]]:
    """What a page paints, in order: whether it is text, and its box on the page as it is shown."""
    turn = page.rotation_matrix
    for kind, rectangle, *_ in islice(page.get_bboxlog(), MOST_CHARACTERS):
        if not kind.startswith("stroke-path"):
            x0, y0, x1, y1 = pymupdf.Rect(rectangle) * turn
            yield kind.endswith("text"), (x0, y0, x1, y1)


def _beside(page: pymupdf.Page, raw: str) -> Iterator[str]:
    """Annotations, form fields and links, each on a line of its own and said to be one."""
    for annotation in islice(_annotations(page), _MOST_NOTES):
        words = one_line(annotation.info.get("content", "")) or one_line(annotation.get_text())
        author = one_line(annotation.info.get("title", ""))[:_MOST_NOTES]
        if words:
            hidden = f"{MARK} " if annotation.flags & _HIDDEN_FLAGS else ""
            by = f" by {author}" if author else ""
            yield f"{hidden}[annotation{by}: {words[:_LONGEST_NOTE]}]"
    for widget in islice(page.widgets(), _MOST_NOTES):
        if widget.field_type == _PUSH_BUTTON:
            continue
        name, value = one_line(str(widget.field_name or "")), one_line(str(widget.field_value or ""))
        hidden = f"{MARK} " if widget.field_display == 1 else ""
        yield f"{hidden}[form field {name[:_MOST_NOTES]}: {value[:_LONGEST_NOTE] or 'empty'}]"
    targets = (one_line(str(link.get("uri") or "")) for link in page.get_links())
    for target in islice(dict.fromkeys(targets), _MOST_NOTES):
        if target and target not in raw:
            yield f"[link: {target[:_LONGEST_NOTE]}]"


def _annotations(page: pymupdf.Page) -> Iterator[pymupdf.Annot]:
    """All of them; `page.annots()` passes over those that are no objects of their own."""
    annotation = page.first_annot
    while annotation:
        yield annotation
        annotation = annotation.next


@contextmanager
def _plainly(code: Code, words: str) -> Iterator[None]:
    """Turn whatever MuPDF throws at a broken file into one plain answer."""
    try:
        yield
    except UnreadableError:
        raise
    except MemoryError:
        raise UnreadableError("memory", "reading it takes more memory than allowed") from None
    except Exception as error:  # noqa: BLE001 - its Python layer raises whatever comes to its mind
        if "alloc" in str(error) and "failed" in str(error):
            raise UnreadableError("memory", "reading it takes more memory than allowed") from None
        raise UnreadableError(code, words) from None


def _broken(content: bytes) -> UnreadableError:
    if _is_cut(content):
        return UnreadableError("truncated", "its end is missing; the file is only a part of itself")
    return UnreadableError("corrupt", "no reader finds a page in it")


def _is_cut(content: bytes) -> bool:
    return b"%%EOF" not in content[-2048:]


def _raw(lines: list[Line]) -> str:
    return "\n".join("".join(glyph.text for glyph in line) for line in lines)


_NOT_CHARACTERS = frozenset({"Cc", "Cn", "Co", "Cs"})
_MOST_ACCENTS, _FEWEST_ACCENTS = 0.4, 8


def _doubt(text: str) -> float:
    """The share of characters that can mean nothing.

    Unmapped, unassigned, private and control characters; all of them where the bytes of another charset were
    taken for accented letters.
    """
    characters = [character for character in text if not character.isspace()]
    if not characters:
        return 0.0
    wrong = sum(
        character == "\ufffd" or unicodedata.category(character) in _NOT_CHARACTERS
        for character in characters
    )
    letters = [character for character in characters if character.isalpha()]
    accents = sum("\xa1" <= character <= "\xff" for character in letters)
    is_other_charset = accents > _MOST_ACCENTS * len(letters) and accents > _FEWEST_ACCENTS
    return 1.0 if is_other_charset else wrong / len(characters)


def _remarks(page: _Page, seen: Seen, *, is_meaningless: bool) -> Iterator[str]:
    if page.reader:
        yield f"read with a second reader: {page.reader}"
    if is_meaningless:
        yield _UNREADABLE
    if page.is_unseen and seen.text:
        yield "the page was not painted: covered or cut off text, if there is any, is not marked"
