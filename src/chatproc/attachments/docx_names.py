"""Names of WordprocessingML and its neighbours, in both spellings, transitional and strict; their attributes.

Pure. It must never know what is done with an element.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chatproc.attachments.ooxml import Attributes

_Told = TypeVar("_Told")

WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main ",
    "http://purl.oclc.org/ooxml/wordprocessingml/main ",
)
MATH = (
    "http://schemas.openxmlformats.org/officeDocument/2006/math ",
    "http://purl.oclc.org/ooxml/officeDocument/math ",
)
DRAWING = (
    "http://schemas.openxmlformats.org/drawingml/2006/main ",
    "http://purl.oclc.org/ooxml/drawingml/main ",
)
PLACED = (
    "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing ",
    "http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing ",
)
PICTURE = (
    "http://schemas.openxmlformats.org/drawingml/2006/picture ",
    "http://purl.oclc.org/ooxml/drawingml/picture ",
)
CHART = (
    "http://schemas.openxmlformats.org/drawingml/2006/chart ",
    "http://purl.oclc.org/ooxml/drawingml/chart ",
)
DIAGRAM = (
    "http://schemas.openxmlformats.org/drawingml/2006/diagram ",
    "http://purl.oclc.org/ooxml/drawingml/diagram ",
)
COMPATIBILITY = ("http://schemas.openxmlformats.org/markup-compatibility/2006 ",)
SHAPE = ("urn:schemas-microsoft-com:vml ",)
OFFICE = ("urn:schemas-microsoft-com:office:office ",)
RELATION = (
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships ",
    "http://purl.oclc.org/ooxml/officeDocument/relationships ",
)
_OFF = {"0", "false", "off"}
_LARGEST_NUMBER = 1_000_000


def live_field(name: str) -> str:
    """What stands for a date, a time or a file name that a converter filled in: its own, not the author's.

    Example:
        >>> live_field("DATE")
        '[DATE: filled in whenever the file is opened]'
    """
    return f"[{name}: filled in whenever the file is opened]"


def in_each(uris: tuple[str, ...], table: Mapping[str, _Told]) -> dict[str, _Told]:
    """A table by full names, for each spelling of the namespace."""
    return {uri + name: told for uri in uris for name, told in table.items()}


def word(attributes: Attributes, name: str) -> str | None:
    """An attribute of WordprocessingML."""
    value = attributes.get(WORD[0] + name)
    return attributes.get(WORD[1] + name) if value is None else value


def is_on(attributes: Attributes) -> bool:
    """Whether a toggle such as `<w:vanish/>` is set."""
    return (word(attributes, "val") or "1") not in _OFF


def number(text: str | None, default: int = 0) -> int:
    """A whole number of an attribute, kept between 0 and a million.

    Example:
        >>> number("12"), number("-3"), number("x", 1), number(None, 7)
        (12, 0, 1, 7)
    """
    if text is None or not re.fullmatch(r"[+-]?[0-9]{1,12}", text):
        return default
    return min(max(int(text), 0), _LARGEST_NUMBER)
