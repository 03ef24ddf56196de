"""What `numbering.xml` says that a reader sees: labels of lists.

Pure but for the running numbers of `Lists`. It must never expand a label beyond `LONGEST_LABEL`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from chatproc.attachments.docx_names import WORD, in_each, is_on, number, word
from chatproc.attachments.ooxml import Pass

if TYPE_CHECKING:
    from chatproc.attachments.docx_styles import Styles
    from chatproc.attachments.ooxml import Attributes, Start

LONGEST_LABEL = 40
"""Characters of one label."""

_DEEPEST_LEVEL = 8
_LARGEST_ROMAN = 3_999
_LARGEST_COUNTED = 9_999
_LETTERS = 26
_PRIVATE = ("\ue000", "\uf8ff")


class ListPlace(NamedTuple):
    """Where a paragraph stands: which list, which level (0 to 8)."""

    list_id: str
    level: int


@dataclass(slots=True)
class _Level:
    start: int = 1
    numerals: str = "decimal"
    pattern: str = ""
    legal: bool = False
    restarts: bool = True
    style: str | None = None


@dataclass(slots=True)
class _List:
    abstract: str = ""
    starts: dict[int, int] = field(default_factory=dict)
    levels: dict[int, _Level] = field(default_factory=dict)


class Lists:
    """Lists of a document, and how far each has counted.

    Args:
        xml: `numbering.xml`; `None` when there is none.
        styles: Styles that lists may refer to.

    Raises:
        expat.ExpatError: Not well-formed.
    """

    def __init__(self, xml: bytes | None, styles: Styles) -> None:
        """Read them; nothing is counted yet."""
        self._styles = styles
        self._abstract: dict[str, dict[int, _Level]] = {}
        self._links: dict[str, str] = {}
        self._lists: dict[str, _List] = {}
        self._counted: dict[str, dict[int, int]] = {}
        self._begun: set[str] = set()
        self._places: dict[str, ListPlace | None] = {}
        if xml is not None:
            self._read(xml)

    def _read(self, xml: bytes) -> None:  # noqa: C901 - a line or two for each element
        abstract = ""
        current: _List | None = None
        level = _Level()
        index = 0

        def begin_abstract(attributes: Attributes) -> None:
            nonlocal abstract, current
            abstract, current = word(attributes, "abstractNumId") or "", None
            self._abstract[abstract] = {}

        def begin_list(attributes: Attributes) -> None:
            nonlocal current
            current = self._lists[word(attributes, "numId") or ""] = _List()

        def belongs_to(attributes: Attributes) -> None:
            if current is not None:
                current.abstract = word(attributes, "val") or ""

        def begin_level(attributes: Attributes) -> None:
            nonlocal level, index
            index = number(word(attributes, "ilvl"))
            level = _Level()
            levels = self._abstract.setdefault(abstract, {}) if current is None else current.levels
            if index <= _DEEPEST_LEVEL:
                levels[index] = level

        def override(attributes: Attributes) -> None:
            nonlocal index
            index = number(word(attributes, "ilvl"))

        def start_override(attributes: Attributes) -> None:
            if current is not None and index <= _DEEPEST_LEVEL:
                current.starts[index] = number(word(attributes, "val"))

        def start(attributes: Attributes) -> None:
            level.start = number(word(attributes, "val"))

        def numerals(attributes: Attributes) -> None:
            level.numerals = word(attributes, "val") or "decimal"

        def pattern(attributes: Attributes) -> None:
            level.pattern = (word(attributes, "val") or "")[:LONGEST_LABEL]

        def legal(attributes: Attributes) -> None:
            level.legal = is_on(attributes)

        def restart(attributes: Attributes) -> None:
            level.restarts = word(attributes, "val") != "0"

        def style(attributes: Attributes) -> None:
            level.style = word(attributes, "val")

        def link(attributes: Attributes) -> None:
            self._links[abstract] = word(attributes, "val") or ""

        starts: dict[str, Start] = {
            "abstractNum": begin_abstract, "num": begin_list, "abstractNumId": belongs_to, "lvl": begin_level,
            "lvlOverride": override, "startOverride": start_override, "start": start, "numFmt": numerals,
            "lvlText": pattern, "isLgl": legal, "lvlRestart": restart, "pStyle": style, "numStyleLink": link,
        }  # fmt: skip
        Pass(in_each(WORD, starts), {}).run(xml)

    def place_of_style(self, style_id: str) -> ListPlace | None:
        """Where a paragraph stands by its style alone; `None` when it is in no list."""
        if style_id not in self._places:
            self._places[style_id] = self._find_place(style_id)
        return self._places[style_id]

    def _find_place(self, style_id: str) -> ListPlace | None:
        found = self._styles.list_of(style_id)
        if found is None:
            return None
        list_id, level = found
        if level is None:
            levels = self._levels(list_id)
            level = next((index for index, known in levels.items() if known.style == style_id), 0)
        return ListPlace(list_id, level)

    def label(self, place: ListPlace) -> str:
        """Count one paragraph and give its label, such as `2.1` or `•`; empty when it is in no list."""
        known = self._lists.get(place.list_id)
        levels = self._levels(place.list_id)
        here = levels.get(place.level)
        if known is None or here is None:
            return ""
        counted = self._counted.setdefault(known.abstract, {})
        if place.list_id not in self._begun:
            self._begun.add(place.list_id)
            counted.update({level: start - 1 for level, start in known.starts.items()})
        counted[place.level] = counted.get(place.level, here.start - 1) + 1
        for level in [deeper for deeper in counted if deeper > place.level]:
            if levels.get(level, here).restarts:
                del counted[level]
        if here.numerals == "bullet":
            return _bullet(here.pattern)

        def counter(found: re.Match[str]) -> str:
            index = int(found.group(1)) - 1
            level = levels.get(index, here)
            value = counted.setdefault(index, level.start) if index <= place.level else level.start
            return numeral(value, "decimal" if here.legal else level.numerals)

        return re.sub(r"%([1-9])", counter, here.pattern)[:LONGEST_LABEL].strip()

    def _levels(self, list_id: str) -> dict[int, _Level]:
        known = self._lists.get(list_id)
        if known is None:
            return {}
        levels = self._abstract.get(known.abstract, {})
        link = self._links.get(known.abstract)
        if not levels and link is not None:
            linked = self._styles.list_of(link)
            other = self._lists.get(linked[0]) if linked is not None else None
            levels = self._abstract.get(other.abstract, {}) if other is not None else {}
        return {**levels, **known.levels} if known.levels else levels


def _bullet(pattern: str) -> str:
    shown = pattern.strip()
    return "•" if not shown or _PRIVATE[0] <= shown[0] <= _PRIVATE[1] else shown


_SEQUENCES = {
    "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "decimalEnclosedCircleChinese": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
    "decimalEnclosedParen": "⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽⑾⑿⒀⒁⒂⒃⒄⒅⒆⒇",
    "decimalEnclosedFullstop": "⒈⒉⒊⒋⒌⒍⒎⒏⒐⒑⒒⒓⒔⒕⒖⒗⒘⒙⒚⒛",
    "ideographEnclosedCircle": "㊀㊁㊂㊃㊄㊅㊆㊇㊈㊉",
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸",
    "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥",
}
_COUNTED = {
    "chineseCounting": "〇一二三四五六七八九十百千",
    "chineseCountingThousand": "零一二三四五六七八九十百千",
    "ideographLegalTraditional": "零壹貳參肆伍陸柒捌玖拾佰仟",
    "chineseLegalSimplified": "零壹贰叁肆伍陆柒捌玖拾佰仟",
    "taiwaneseCounting": "〇一二三四五六七八九十百千",
    "taiwaneseCountingThousand": "零一二三四五六七八九十百千",
    "japaneseCounting": "〇一二三四五六七八九十百千",
}
_DIGITS = {
    "ideographDigital": "〇一二三四五六七八九",
    "taiwaneseDigital": "〇一二三四五六七八九",
    "japaneseDigitalTenThousand": "〇一二三四五六七八九",
    "decimalFullWidth": "0123456789",
    "decimalFullWidth2": "0123456789",
}
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
    (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def numeral(value: int, numerals: str) -> str:  # noqa: PLR0911 - one for each family
    """A number as a list shows it; what has no such sign is decimal.

    Example:
        >>> [numeral(14, kind) for kind in ("decimal", "upperRoman", "lowerLetter", "chineseCounting")]
        ['14', 'XIV', 'n', '十四']
    """
    if numerals == "none":
        return ""
    if numerals == "decimalZero":
        return f"{value:02}"
    if numerals in _SEQUENCES and 0 < value <= len(_SEQUENCES[numerals]):
        return _SEQUENCES[numerals][value - 1]
    if numerals in _DIGITS:
        return "".join(_DIGITS[numerals][int(digit)] for digit in str(value))
    if numerals in _COUNTED and 0 < value <= _LARGEST_COUNTED:
        return _counted(value, _COUNTED[numerals])
    if numerals in {"upperRoman", "lowerRoman"} and 0 < value <= _LARGEST_ROMAN:
        roman = _roman(value)
        return roman.upper() if numerals == "upperRoman" else roman
    if numerals in {"upperLetter", "lowerLetter"} and 0 < value <= _LETTERS * LONGEST_LABEL:
        # After z comes aa, then bb.
        letters = chr(ord("a") + (value - 1) % _LETTERS) * ((value - 1) // _LETTERS + 1)
        return letters.upper() if numerals == "upperLetter" else letters
    return str(value)


def _roman(value: int) -> str:
    found = []
    for worth, sign in _ROMAN:
        count, value = divmod(value, worth)
        found.append(sign * count)
    return "".join(found)


def _counted(value: int, signs: str) -> str:
    """A number up to 9999 in Chinese: 十四, 一百零五."""
    zero, digits, units = signs[0], signs[:10], signs[10:]
    found = ""
    gap = False
    for place in (3, 2, 1, 0):
        digit = value // 10**place % 10
        if digit:
            found += (zero if gap and found else "") + digits[digit] + (units[place - 1] if place else "")
            gap = False
        else:
            gap = True
    one_ten = digits[1] + units[0]
    return found.removeprefix(digits[1]) if found.startswith(one_ten) and digits[1] == "一" else found
