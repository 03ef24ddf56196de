"""What of a page's text a person would see: glyphs, and a picture of the page to hold them against.

Pure: both PDF readers give the same glyphs, one rule judges them. It must never drop text: what cannot be
seen is marked, and where nothing can be told, text counts as seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from PIL import Image, ImageChops

from chatproc.attachments.units import clean, without_unseen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MARK = "[not visible]"

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom in points, from the top left corner of the page as it is shown."""


class Ink(NamedTuple):
    """How a glyph is painted.

    Args:
        size: Of the font, on the page, in points.
        color: 0xRRGGBB, `None` where it is not known.
        painted: It is filled or stroked, and not wholly transparent.
        solid: Nothing shines through.
    """

    size: float
    color: int | None
    painted: bool
    solid: bool


class Glyph(NamedTuple):
    """One character (a ligature may be several) and where it stands."""

    text: str
    box: Box
    ink: Ink


Line: TypeAlias = list[Glyph]


def _covers_nothing(_box: Box) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class View:
    """A page as it is shown.

    Args:
        width: In points.
        height: In points.
        picture: The page in RGB, `None` where it could not be painted.
        is_scan: A picture fills the page: text that is not painted lies under it to be found by a search.
        covered: Whether something was painted over a box after its text.
    """

    width: float
    height: float
    picture: Image.Image | None = None
    is_scan: bool = False
    covered: Callable[[Box], bool] = field(default=_covers_nothing)


@dataclass(frozen=True, slots=True)
class Seen:
    """The text of a page.

    Args:
        text: Its lines; each run that nobody sees on a line of its own, after `MARK`.
        recognised: The lines under a scan, as somebody's text recognition left them.
        is_hiding: There is text that nobody sees (recognised text does not count).
        visible: Characters that are seen.
    """

    text: str
    recognised: str
    is_hiding: bool
    visible: int


class _Sight(Enum):
    SEEN = 1
    HIDDEN = 2
    RECOGNISED = 3


_SMALLEST = 2.0
"""Points: smaller letters are nobody's to read."""

_LONGEST_PIECE = 12
"""Glyphs judged together: a word, or a few characters of a script without spaces."""

_PALE = 0xE0
"""On white paper, a colour whose every part is at least so light does not show."""

_FAINT = 24
"""Of 255: two colours that are no further apart are one to the eye."""

_FAR = 64
"""Of 255: thin strokes blend with the paper; further from its ink no pixel of a letter is."""

_MOST_INK = 0.6
"""Share of a word's box at most that its letters fill."""

_SMALLEST_DRAWN = 9.0
"""Pixels: smaller letters are drawn too faint to be looked for by colour."""


def look(lines: Iterable[Line], view: View) -> Seen:
    """Judge every piece of a page's text, and write down the page with what is not seen marked."""
    seen: list[str] = []
    recognised: list[str] = []
    is_hiding = False
    visible = 0
    for line in lines:
        under: list[str] = []
        for sight, text in _stretches(line, view):
            words = one_line(text)
            if not words:
                continue
            if sight is _Sight.RECOGNISED:
                under.append(words)
            elif sight is _Sight.HIDDEN:
                is_hiding = True
                seen.append(f"{MARK} {words}")
            else:
                visible += len(without_unseen(words)[0])
                seen.append(words)
        if under:
            recognised.append(" ".join(under))
    return Seen("\n".join(seen), "\n".join(recognised), is_hiding, visible)


_LINE_ENDS = str.maketrans(dict.fromkeys("\n\u2028\u2029", " "))


def one_line(text: str) -> str:
    r"""Text on one line: nothing in it can begin a line of its own.

    Example:
        >>> one_line("a\u2028b\nc\x07 ")
        'a b c'
    """
    return clean(text).translate(_LINE_ENDS).strip()


def _stretches(line: Line, view: View) -> Iterator[tuple[_Sight, str]]:
    """The line in stretches of one sight; pieces that cannot be judged go with their neighbour."""
    judged = [(_sight(piece, view), "".join(glyph.text for glyph in piece)) for piece in _pieces(line, view)]
    last = next((sight for sight, _ in judged if sight is not None), _Sight.SEEN)
    text = ""
    for sight, part in judged:
        if sight is not None and sight is not last:
            yield last, text
            text = ""
            last = sight
        text += part
    yield last, text


def _pieces(line: Line, view: View) -> Iterator[Line]:
    """Words, as long as their ink and their being on the page stay the same."""
    piece: Line = []
    for glyph in line:
        ends = piece and (
            glyph.ink != piece[0].ink
            or glyph.text.isspace() != piece[0].text.isspace()
            or len(piece) >= _LONGEST_PIECE
            or _is_outside(glyph.box, view) != _is_outside(piece[0].box, view)
        )
        if ends:
            yield piece
            piece = []
        piece.append(glyph)
    if piece:
        yield piece


def _is_outside(box: Box, view: View) -> bool:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return not (0 <= x <= view.width and 0 <= y <= view.height)


def _sight(piece: Line, view: View) -> _Sight | None:
    """Whether a piece is seen; `None` where its neighbours tell better (blanks, dots, dashes)."""
    ink = piece[0].ink
    text = "".join(glyph.text for glyph in piece)
    if text.isspace():
        return None
    if _is_outside(piece[0].box, view):
        return _Sight.HIDDEN
    if not ink.painted:
        return _Sight.RECOGNISED if view.is_scan else _Sight.HIDDEN
    if ink.size < _SMALLEST:
        return _Sight.HIDDEN
    if not any(character.isalnum() for character in text):
        return None
    hidden = _is_pale(ink) if view.picture is None else _is_lost(piece, view, view.picture)
    return _Sight.HIDDEN if hidden else _Sight.SEEN


def _is_pale(ink: Ink) -> bool:
    return ink.color is not None and min(_parts(ink.color)) >= _PALE


def _parts(color: int) -> tuple[int, int, int]:
    return color >> 16 & 0xFF, color >> 8 & 0xFF, color & 0xFF


def _is_lost(piece: Line, view: View, picture: Image.Image) -> bool:
    """Whether the picture of the page shows nothing of the piece."""
    scale = picture.width / view.width
    boxes = [glyph.box for glyph in piece]
    box = (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )
    left, top = max(0, int(box[0] * scale)), max(0, int(box[1] * scale))
    right = min(picture.width, max(left + 1, int(box[2] * scale + 1)))
    bottom = min(picture.height, max(top + 1, int(box[3] * scale + 1)))
    if left >= right or top >= bottom:
        return False
    part = picture.crop((left, top, right, bottom))
    extremes = cast("tuple[tuple[int, int], ...]", part.getextrema())
    if all(high - low < _FAINT for low, high in extremes):
        return True
    ink = piece[0].ink
    if ink.color is None:
        return False
    distances = _distances(part, ink.color)
    if sum(distances[:_FAINT]) > _MOST_INK * part.width * part.height:
        return True
    is_drawn_clearly = ink.solid and ink.size * scale >= _SMALLEST_DRAWN
    return is_drawn_clearly and not any(distances[:_FAR]) and view.covered(box)


def _distances(part: Image.Image, color: int) -> list[int]:
    """How many pixels are how far from a colour, 0 to 255, in the part of it that differs most."""
    red, green, blue = ImageChops.difference(part, Image.new("RGB", part.size, _parts(color))).split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue).histogram()
