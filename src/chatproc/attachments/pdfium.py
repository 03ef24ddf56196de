"""The second PDF reader, PDFium: what it finds where the first reader fails or gives no real characters.

It must only run inside the worker. It is built without JavaScript and is never asked to follow anything.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pypdfium2  # type: ignore[import-untyped]
import pypdfium2.raw as pdfium  # type: ignore[import-untyped]

from chatproc.attachments.image import measured
from chatproc.attachments.sight import Box, Glyph, Ink, Line, View
from chatproc.attachments.units import UnreadableError

if TYPE_CHECKING:
    from PIL import Image

MOST_CHARACTERS = 100_000
"""Of one page; more is no page that anybody reads."""

_FILLED = frozenset({0, 1, 2, 4, 5, 6})
"""Text render modes that paint."""


class SecondReader:
    """A PDF as PDFium opens it.

    Args:
        content: The whole file.

    Raises:
        UnreadableError: `encrypted`, or `corrupt`.
    """

    def __init__(self, content: bytes) -> None:
        """Open without a password."""
        try:
            self._document = pypdfium2.PdfDocument(content)
        except pypdfium2.PdfiumError as error:
            if error.err_code == pdfium.FPDF_ERR_PASSWORD:
                raise UnreadableError("encrypted", "it wants a password") from None
            raise UnreadableError("corrupt", "no reader can open it") from None
        self.total = len(self._document)

    def close(self) -> None:
        """Let go of the document."""
        self._document.close()

    def lines(self, number: int) -> tuple[list[Line], View]:
        """The lines of a page in reading order, and the page without a picture.

        Raises:
            UnreadableError: `corrupt`, or `too_large`.
        """
        page = self._page(number)
        text = page.get_textpage()
        try:
            if text.count_chars() > MOST_CHARACTERS:
                raise UnreadableError(
                    "too_large", f"page {number} has more than {MOST_CHARACTERS} characters"
                )
            width, height = page.get_size()
            return _lines(text, page), View(width, height)
        finally:
            text.close()
            page.close()

    def is_blank(self, number: int) -> bool:
        """Whether nothing at all is drawn on a page."""
        page = self._page(number)
        try:
            return next(page.get_objects(max_depth=1), None) is None
        finally:
            page.close()

    def picture(self, number: int, longest: int) -> Image.Image:
        """A page in RGB, its long side so many pixels.

        Raises:
            UnreadableError: `corrupt`, or `too_large`: of a picture on it.
        """
        page = self._page(number)
        try:
            for drawn in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE]):
                measured(*drawn.get_px_size())
            scale = longest / max(*page.get_size(), 1.0)
            picture: Image.Image = page.render(scale=scale).to_pil().convert("RGB")
        finally:
            page.close()
        return picture

    def _page(self, number: int) -> pypdfium2.PdfPage:
        try:
            return self._document[number - 1]
        except (pypdfium2.PdfiumError, IndexError):
            raise UnreadableError("corrupt", f"page {number} is broken") from None


def _lines(text: pypdfium2.PdfTextPage, page: pypdfium2.PdfPage) -> list[Line]:
    lines: list[Line] = [[]]
    shape = _Shape(page)
    surrogate = 0
    for index in range(text.count_chars()):
        code = pdfium.FPDFText_GetUnicode(text, index)
        if code in {0x0A, 0x0D}:
            if lines[-1]:
                lines.append([])
            continue
        if 0xD800 <= code < 0xDC00:  # noqa: PLR2004 - the first half of a character
            surrogate = code
            continue
        if surrogate and 0xDC00 <= code < 0xE000:  # noqa: PLR2004 - its second half
            code = 0x10000 + ((surrogate - 0xD800) << 10) + (code - 0xDC00)
        surrogate = 0
        if code in {0x02, 0xFFFE}:
            continue  # a hyphen that only broke a word at the end of a line
        box = shape.box(text, index)
        lines[-1].append(Glyph(chr(code), box, _ink(text, index, box)))
    return [line for line in lines if line]


class _Shape:
    """Turns PDF's coordinates, from the bottom left of an unturned page, into those of the page as shown."""

    def __init__(self, page: pypdfium2.PdfPage) -> None:
        self._turn = page.get_rotation()
        self._left, self._bottom, self._right, self._top = page.get_cropbox()
        self._rectangle = pdfium.FS_RECTF()

    def box(self, text: pypdfium2.PdfTextPage, index: int) -> Box:
        pdfium.FPDFText_GetLooseCharBox(text, index, self._rectangle)
        rectangle = self._rectangle
        x0, y0 = self._shown(rectangle.left, rectangle.top)
        x1, y1 = self._shown(rectangle.right, rectangle.bottom)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    def _shown(self, x: float, y: float) -> tuple[float, float]:
        if self._turn == 90:  # noqa: PLR2004 - degrees, as is what follows
            return y - self._bottom, x - self._left
        if self._turn == 180:  # noqa: PLR2004
            return self._right - x, y - self._bottom
        if self._turn == 270:  # noqa: PLR2004
            return self._top - y, self._right - x
        return x - self._left, self._top - y


def _ink(text: pypdfium2.PdfTextPage, index: int, box: Box) -> Ink:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    pdfium.FPDFText_GetFillColor(text, index, red, green, blue, alpha)
    drawn = pdfium.FPDFText_GetTextObject(text, index)
    is_painted = not drawn or pdfium.FPDFTextObj_GetTextRenderMode(drawn) in _FILLED
    color = red.value << 16 | green.value << 8 | blue.value
    size = round(max(box[3] - box[1], 0.0), 1)
    return Ink(size, color, is_painted and alpha.value > 0, alpha.value == 255)  # noqa: PLR2004
