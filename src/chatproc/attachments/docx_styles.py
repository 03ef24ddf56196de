"""What `styles.xml` says that a reader sees: hidden text, colours and sizes, the list of a paragraph.

Pure. It must never follow a circle of styles that are based on each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatproc.attachments.docx_names import WORD, in_each, is_on, number, word
from chatproc.attachments.docx_sight import NOTHING_SAID, SOME_GROUND, Look, ground, ink, is_tiny
from chatproc.attachments.ooxml import Pass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chatproc.attachments.ooxml import Attributes, Start

_MOST_ANCESTORS = 20
_DEEPEST_LEVEL = 8


@dataclass(slots=True)
class _Style:
    based_on: str | None = None
    list_id: str | None = None
    level: int | None = None
    hidden: bool | None = None
    look: Look = NOTHING_SAID


class Styles:
    """Styles of a document.

    Args:
        xml: `styles.xml`; `None` when there is none.

    Raises:
        expat.ExpatError: Not well-formed.
    """

    def __init__(self, xml: bytes | None = None) -> None:
        """Read them."""
        sheet = _Sheet()
        if xml is not None:
            sheet.run(xml)
        self._styles: Mapping[str, _Style] = sheet.styles
        self._defaults = sheet.defaults
        self._hidden: dict[str, bool] = {}
        self._looks: dict[tuple[str, bool], Look] = {}
        self.usual: Look = self.look(sheet.default_style)
        """Of text whose paragraph names no style."""

    def hides(self, style_id: str) -> bool:
        """Whether text in this style is hidden."""
        known = self._hidden.get(style_id)
        if known is None:
            found = (style.hidden for style in self._line(style_id) if style.hidden is not None)
            known = self._hidden[style_id] = next(found, False)
        return known

    def look(self, style_id: str, *, alone: bool = False) -> Look:
        """How text in this style is shown.

        Args:
            style_id: Of a paragraph, a table or a run.
            alone: Without what the document says of all its text: for what is laid over a paragraph's style.
        """
        known = self._looks.get((style_id, alone))
        if known is None:
            known = NOTHING_SAID
            for style in self._line(style_id):
                known = known.over(style.look) if style.look is not NOTHING_SAID else known
            if not alone and self._defaults.look is not NOTHING_SAID:
                known = known.over(self._defaults.look)
            self._looks[style_id, alone] = known
        return known

    def list_of(self, style_id: str) -> tuple[str, int | None] | None:
        """The list that paragraphs in this style belong to, and the level where the style says it."""
        for style in self._line(style_id):
            if style.list_id is not None:
                return style.list_id, style.level
        return None

    def _line(self, style_id: str | None) -> list[_Style]:
        """The style and those it is based on, nearest first; a circle ends."""
        line: list[_Style] = []
        while style_id is not None and len(line) < _MOST_ANCESTORS:
            style = self._styles.get(style_id)
            if style is None:
                break
            line.append(style)
            style_id = style.based_on
        return line


class _Sheet:
    """One pass over `styles.xml`."""

    def __init__(self) -> None:
        self.styles: dict[str, _Style] = {}
        self.defaults = _Style()
        """What is said of all text, before any style."""
        self.default_style = ""
        self._style = self.defaults
        self._is_part = False
        """Within what a table's style says of some of its cells."""
        starts: dict[str, Start] = {
            "style": self._begin,
            "basedOn": self._based_on,
            "numId": self._list_id,
            "ilvl": self._level,
            "vanish": self._vanish,
            "color": lambda attributes: self._shows(Look(ink=ink(attributes))),
            "sz": lambda attributes: self._shows(Look(tiny=is_tiny(attributes))),
            "shd": lambda attributes: self._shows(Look(ground=ground(attributes))),
            "tblStylePr": lambda _: self._part(begins=True),
            "pPrChange": lambda _: self._pass.skip(),
            "rPrChange": lambda _: self._pass.skip(),
        }
        self._pass = Pass(
            in_each(WORD, starts), in_each(WORD, {"tblStylePr": lambda: self._part(begins=False)})
        )

    def run(self, xml: bytes) -> None:
        self._pass.run(xml)

    def _begin(self, attributes: Attributes) -> None:
        style_id = word(attributes, "styleId") or ""
        self._style = self.styles[style_id] = _Style()
        if word(attributes, "type") == "paragraph" and word(attributes, "default") in {"1", "true", "on"}:
            self.default_style = style_id

    def _based_on(self, attributes: Attributes) -> None:
        self._style.based_on = word(attributes, "val")

    def _list_id(self, attributes: Attributes) -> None:
        self._style.list_id = word(attributes, "val")

    def _level(self, attributes: Attributes) -> None:
        self._style.level = min(number(word(attributes, "val")), _DEEPEST_LEVEL)

    def _vanish(self, attributes: Attributes) -> None:
        if not self._is_part:
            self._style.hidden = is_on(attributes)

    def _shows(self, look: Look) -> None:
        style = self._style
        if not self._is_part:
            style.look = look.over(style.look)
        elif look.ground:
            style.look = style.look._replace(ground=SOME_GROUND)

    def _part(self, *, begins: bool) -> None:
        self._is_part = begins
