"""Whether a person sees a text of a DOCX: its colour, its size, the ground behind it.

Pure. Paper is white unless something says otherwise; what cannot be told counts as seen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from chatproc.attachments.docx_names import number, word

if TYPE_CHECKING:
    from chatproc.attachments.ooxml import Attributes

_TINIEST = 3
"""Half points: text smaller than this cannot be read."""

_PALE = 0xE0
"""On white paper, a colour whose every part is at least so light does not show."""

_FAINT = 24
"""Of 255: two colours that are no further apart are one to the eye."""

_HEX = re.compile(r"[0-9A-Fa-f]{6}")
_PAPER = frozenset({"background1", "light1"})
_HIGHLIGHTS = {
    "black": "000000", "blue": "0000FF", "cyan": "00FFFF", "green": "00FF00", "magenta": "FF00FF",
    "red": "FF0000", "yellow": "FFFF00", "darkBlue": "000080", "darkCyan": "008080", "darkGreen": "008000",
    "darkMagenta": "800080", "darkRed": "800000", "darkYellow": "808000", "darkGray": "808080",
    "lightGray": "C0C0C0",
}  # fmt: skip

SOME_GROUND = "some"
"""A ground of a colour that is not told."""


class Look(NamedTuple):
    """How a text is shown, `""` and `None` where nothing says so.

    Args:
        ink: Its colour, as six hexadecimal digits.
        ground: The colour behind it, or `SOME_GROUND`; never a pale one.
        tiny: It is too small to be read.
    """

    ink: str = ""
    ground: str = ""
    tiny: bool | None = None

    def over(self, other: Look) -> Look:
        """This look, with the other's where this one says nothing."""
        return Look(
            self.ink or other.ink, self.ground or other.ground, other.tiny if self.tiny is None else self.tiny
        )

    def is_lost(self) -> bool:
        """Whether a person sees nothing of it."""
        if self.tiny:
            return True
        ink = _parts(self.ink)
        if ink is None:
            return False
        ground = _parts(self.ground)
        if ground is not None:
            return all(abs(one - other) < _FAINT for one, other in zip(ink, ground, strict=True))
        return not self.ground and min(ink) >= _PALE


NOTHING_SAID = Look()


def ink(attributes: Attributes) -> str:
    """The colour that `<w:color/>` gives."""
    if word(attributes, "themeColor") in _PAPER and not word(attributes, "themeShade"):
        return "FFFFFF"
    color = word(attributes, "val") or ""
    return color if _HEX.fullmatch(color) else "000000"


def is_tiny(attributes: Attributes) -> bool:
    """Whether the size that `<w:sz/>` gives is too small to be read."""
    return number(word(attributes, "val"), _TINIEST) < _TINIEST


def ground(attributes: Attributes) -> str:
    """The colour that `<w:shd/>` puts behind a text; `""` for none or one as pale as paper."""
    pattern = word(attributes, "val") or "clear"
    theme = word(attributes, "themeFill")
    fill = (word(attributes, "color") if pattern == "solid" else word(attributes, "fill")) or "auto"
    if theme and not (theme in _PAPER and not word(attributes, "themeFillShade")):
        return SOME_GROUND
    if pattern not in {"clear", "nil", "solid"}:
        return SOME_GROUND
    parts = _parts("FFFFFF" if theme or fill == "auto" else fill)
    return "" if parts is None or min(parts) >= _PALE else fill


def highlight(attributes: Attributes) -> str:
    """The colour that `<w:highlight/>` puts behind a text."""
    return _HIGHLIGHTS.get(word(attributes, "val") or "", "")


def _parts(color: str) -> tuple[int, int, int] | None:
    if not _HEX.fullmatch(color):
        return None
    return int(color[:2], 16), int(color[2:4], 16), int(color[4:], 16)
