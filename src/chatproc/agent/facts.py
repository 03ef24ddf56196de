"""Facts in a text: numbers, dates, clock times, addresses, telephone numbers; whether sources hold them.

Pure. It knows the usual ways to write one fact ("三点", "3点", "15:00"), no more; must never raise, whatever
a text holds. Words are no facts: what a text says beside them is not judged here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_LONGEST = 200_000
"""Characters of one text that are looked at."""

_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
_CHINESE = "零〇一二两三四五六七八九十百千万亿"
_TO_TENS = "零〇一二两三四五六七八九十"
_SIMPLIFIED = str.maketrans(
    "週禮點時兩個號樓層鐘頁歲萬億後頭兒壹贰貳叁參肆伍陆陸柒捌玖拾佰仟：",
    "周礼点时两个号楼层钟页岁万亿后头儿一二二三三四五六六七八九十百千:",
) | str.maketrans({"廿": "二十", "卅": "三十"})
"""Traditional and formal characters that facts are written with."""
_WORDS = {
    word: number
    for number, word in re.findall(
        r"(\d+) (\w+)",
        "1 one 2 two 3 three 4 four 5 five 6 six 7 seven 8 eight 9 nine 10 ten 11 eleven 12 twelve "
        "20 twenty 30 thirty 100 hundred 1 first 2 second 3 third",
    )
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

_NUM = rf"(?:\d{{1,2}}|[{_TO_TENS}]{{1,3}})"
_PART = r"(?P<part>上午|早上|早晨|清晨|凌晨|中午|下午|傍晚|晚上|晚间|夜里|今晚|明晚|后晚|am|pm)?"
_PATH = r"[^\s，。、；！？（）()《》【】<>\"'“”]"
_ADDRESS = re.compile(
    rf"[a-z][a-z0-9+.-]*://{_PATH}+|www\.{_PATH}+|[\w.+-]+@[\w-]+\.[\w.-]+"
    rf"|(?<![\w.@-])(?:[a-z0-9-]+\.)+(?:[a-z]{{2,}}/{_PATH}+|(?:com|cn|net|org|edu|gov|info|top|xyz)\b)"
)
_FULL_DATE = re.compile(r"(?<!\d)(?P<y>\d{4})[-/.年]\s?(?P<m>\d{1,2})[-/.月]\s?(?P<d>\d{1,2})(?!\d)[日号]?")
_MONTH_DAY = re.compile(rf"(?P<m>{_NUM})\s?月\s?(?P<d>{_NUM})\s?[日号]?")
_ENGLISH_DATE = re.compile(
    rf"\b(?P<m>{'|'.join(_MONTHS)})[a-z]*\.?\s(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<m2>{'|'.join(_MONTHS)})[a-z]*\b"
)
_WEEKDAY = re.compile(
    r"(?:周|星期|礼拜)(?P<c>[一二三四五六日天])"
    rf"|\b(?P<e>{'|'.join(_WEEKDAYS)}|mon|tues?|weds?|thu(?:rs?)?|fri|sat|sun)\b"
)
_RELATIVE = re.compile(
    r"(?P<today>今(?:[天日晚早]|儿)|today|tonight)|(?P<after>大?后天|day after tomorrow)"
    r"|(?P<tomorrow>明(?:[天日晚早]|儿)|tomorrow|tmrw?)|(?P<yesterday>昨[天日晚]|yesterday)"
)
_NAMED = re.compile(r"中午|正午|午夜|零点|\bnoon\b|\bmidnight\b")
_CLOCK = re.compile(
    rf"{_PART}\s?(?<!\d)(?:(?P<h>\d{{1,2}}):(?P<min>\d{{2}})(?::\d{{2}})?(?!\d)"
    rf"|(?P<h2>{_NUM})\s?[点時时](?P<more>半|一刻|三刻|\d{{1,2}}分?|[{_TO_TENS}]{{1,3}}分?|钟|整)?)"
    r"\s?(?P<half>am|pm|a\.m\.|p\.m\.)?"
    r"|(?<!\d)(?P<h3>\d{1,2})\s?(?P<half3>am|pm|a\.m\.|p\.m\.)(?![a-z])"
)
_PAIR = re.compile(r"(?<![\d./-])(?P<one>\d{1,2})[/.-](?P<two>\d{1,2})(?![\d/]|[.-]\d)")
_DAY = re.compile(rf"(?<![\d{_CHINESE}])(?P<d>{_NUM})\s?[号日](?![楼线门机])")
_TELEPHONE = re.compile(r"\+?\d(?:[ ()-]{0,2}\d){6,}")
_SPELLED = re.compile(rf"[{_CHINESE[:4]}{_CHINESE[5:12]}]{{7,}}")
_NUMBER = re.compile(r"\d+(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?")
_SCALED = re.compile(rf"(\d+(?:\.\d+)?)\s?([{''.join(_UNITS)}k])")
_COUNTED = re.compile(
    rf"(?<![第{_CHINESE}])(?P<n>[{_CHINESE}]{{1,9}})(?:楼|层|室|班|元|块钱|人|页|小时|分钟|岁)"
)
_CHINESE_RUN = re.compile(rf"[{_CHINESE}]{{1,12}}")
_ENUMERATION = re.compile(
    r"\s*(?:\(?\d{1,2}\s?[.)、:：](?!\d)|[一二三四五六七八九十]{1,3}[、.]|step \d{1,2}\b:?)\s*"
)
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[ ().+-]+(?=\d)")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text[:_LONGEST]).casefold().translate(_SIMPLIFIED)


def _value(digits: str) -> int:
    """A number in digits of either kind: `17`, `十七`, `一七`, `两千零五`."""
    if digits.isdecimal():
        return int(digits[:18])
    if not any(letter in _UNITS for letter in digits):
        return int("".join(str(_DIGITS.get(letter, 0)) for letter in digits) or "0")
    total = section = digit = 0
    for letter in digits:
        if letter in _DIGITS:
            digit = _DIGITS[letter]
        elif (unit := _UNITS.get(letter, 1)) >= _UNITS["万"]:
            total, section, digit = total + max(section + digit, 1) * unit, 0, 0
        else:
            section, digit = section + max(digit, 1) * unit, 0
    return total + section + digit


def _plain(number: str) -> str:
    """A number as it is compared: no separators, no zeros before or behind."""
    number = number.replace(",", "")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return number.lstrip("0") or "0"


def _minutes(found: re.Match[str]) -> set[int]:
    """The minutes of the day that a clock time may mean."""
    hour = _value(found["h"] or found["h2"] or found["h3"])
    more = (found["more"] or "").removesuffix("分")
    minute = int(found["min"] or 0)
    if more in {"半", "一刻", "三刻"}:
        minute = {"半": 30, "一刻": 15, "三刻": 45}[more]
    elif more not in {"", "钟", "整"}:
        minute = _value(more)
    half = (found["half"] or found["half3"] or found["part"] or "").replace(".", "")
    noon = 12
    hours = {hour, hour + noon} if hour < noon else {hour, hour - noon}
    if half in {"pm", "下午", "傍晚", "晚上", "晚间", "夜里", "今晚", "明晚", "后晚", "中午"}:
        hours = {hour if hour >= noon else hour + noon} | ({hour} if half == "中午" else set())
    elif (half and hour < noon) or (found["h"] and hour > noon):
        hours = {hour}
    return {(hour * 60 + minute) % 1440 for hour in hours}


def _dates(text: str) -> Iterator[tuple[re.Match[str], int | None, int, int]]:
    """Days of a month with the place where they stand: year, month, day."""
    for found in _FULL_DATE.finditer(text):
        yield found, int(found["y"]), int(found["m"]), int(found["d"])
    for found in _MONTH_DAY.finditer(text):
        yield found, None, _value(found["m"]), _value(found["d"])
    for found in _ENGLISH_DATE.finditer(text):
        month = _MONTHS.index(found["m"] or found["m2"]) + 1
        yield found, None, month, int(found["d"] or found["d2"])


def _weekday(found: re.Match[str]) -> int:
    if found["e"]:
        return next(place for place, name in enumerate(_WEEKDAYS) if name.startswith(found["e"][:3]))
    return "一二三四五六日".index("日" if found["c"] == "天" else found["c"])


@dataclass(slots=True)
class Held:
    """What sources hold of facts, and times that may be named beside them."""

    texts: list[str] = field(default_factory=list)
    digits: list[str] = field(default_factory=list)
    numbers: set[str] = field(default_factory=set)
    clocks: set[int] = field(default_factory=set)
    dates: set[tuple[int, int]] = field(default_factory=set)
    years: set[int] = field(default_factory=set)
    days: set[int] = field(default_factory=set)
    weekdays: set[int] = field(default_factory=set)
    relative: set[str | None] = field(default_factory=set)

    def add(self, text: str) -> None:
        """Take in the text of a source."""
        text = _folded(text)
        self.texts.append(text)
        self.digits.append(_BETWEEN_DIGITS.sub("", text))
        self.digits += [_digits(found[0]) for found in _SPELLED.finditer(text)]
        for found in _NUMBER.finditer(text):
            self.numbers |= {_plain(found[0]), *map(_plain, re.findall(r"\d+", found[0]))}
        for found in _SCALED.finditer(text):
            self.numbers.add(_plain(f"{float(found[1][:12]) * (_UNITS.get(found[2]) or 1000):f}"))
        for found in _CHINESE_RUN.finditer(_WEEKDAY.sub(" ", text)):
            self.numbers |= {str(_value(found[0])), *(str(_DIGITS[c]) for c in found[0] if c in _DIGITS)}
        self.numbers |= {_WORDS[word] for word in re.findall(r"[a-z]+", text) if word in _WORDS}
        for found in _CLOCK.finditer(text):
            self.clocks |= _minutes(found)
        self.clocks |= {minutes for word, minutes in _NAMED_CLOCKS if word in text}
        self.weekdays |= {_weekday(found) for found in _WEEKDAY.finditer(text)}
        self.relative |= {found.lastgroup for found in _RELATIVE.finditer(text)}
        for _, year, month, day in _dates(text):
            self.dates.add((month, day))
            self.years |= set() if year is None else {year}

    def add_moment(self, text: str | None) -> None:
        """Take in a time that a source's words mean, as `2026-07-03` or RFC 3339."""
        if text is None:
            return
        moment: date = datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
        self.dates.add((moment.month, moment.day))
        self.days.add(moment.day)
        self.years.add(moment.year)
        self.weekdays.add(moment.weekday())
        if isinstance(moment, datetime):
            self.clocks.add(moment.hour * 60 + moment.minute)

    def has_date(self, year: int | None, month: int, day: int) -> bool:
        """Whether a day of a month is held, as a date or as its numbers."""
        by_number = {str(month), str(day)} <= self.numbers
        dated = (month, day) in self.dates or by_number
        return dated and (year is None or year in self.years or str(year) in self.numbers)


_NAMED_CLOCKS = (("中午", 720), ("正午", 720), ("noon", 720), ("midnight", 0), ("午夜", 0), ("零点", 0))


def unheld(text: str, held: Held) -> list[str]:
    """The facts of a text that are not held, in its own words.

    Example:
        >>> held = Held()
        >>> held.add("周五下午三点交到302")
        >>> unheld("15:00 前交到 302", held), unheld("16:00 前交到 305", held)
        ([], ['16:00', '305'])
    """
    text = _folded(text)
    text = text[found.end() :] if (found := _ENUMERATION.match(text)) else text
    missing: list[tuple[int, str]] = []
    for pattern, is_held in _KINDS:
        kept = []
        for found in pattern.finditer(text):
            verdict = is_held(found, held)
            if verdict is None:
                kept.append(found)
            elif not verdict:
                missing.append((found.start(), found[0].strip()))
        text = _without(text, pattern, kept)
    return [fact for _, fact in sorted(missing)]


def _without(text: str, pattern: re.Pattern[str], kept: Iterable[re.Match[str]]) -> str:
    """The text with what was judged blanked out, so that no later kind reads it again."""
    starts = {found.start() for found in kept}
    return pattern.sub(lambda found: found[0] if found.start() in starts else " " * len(found[0]), text)


def _holds_address(found: re.Match[str], held: Held) -> bool:
    address = re.sub(r"^https?://", "", found[0]).rstrip("./,;:!?")
    return any(address in text for text in held.texts)


def _holds_date(found: re.Match[str], held: Held) -> bool:
    return all(held.has_date(year, month, day) for _, year, month, day in _dates(found[0]))


def _holds_weekday(found: re.Match[str], held: Held) -> bool | None:
    if found["e"] in {"sat", "sun"} and _weekday(found) not in held.weekdays:
        return None  # a verb and a star, as likely as days
    return _weekday(found) in held.weekdays


def _holds_clock(found: re.Match[str], held: Held) -> bool | None:
    spoken = found["h2"] and not found["h2"].isdecimal()
    if spoken and not (found["part"] or found["more"]):
        return None  # 三点建议: three of something
    return bool(_minutes(found) & held.clocks)


def _holds_pair(found: re.Match[str], held: Held) -> bool:
    one, two = int(found["one"]), int(found["two"])
    numbers = {_plain(found["one"]), _plain(found["two"])} <= held.numbers
    return numbers or _plain(found[0]) in held.numbers or bool({(one, two), (two, one)} & held.dates)


def _holds_day(found: re.Match[str], held: Held) -> bool | None:
    if not found["d"].isdecimal() and _value(found["d"]) <= 1:
        return None
    return str(_value(found["d"])) in held.numbers or _value(found["d"]) in held.days


def _holds_telephone(found: re.Match[str], held: Held) -> bool:
    digits = "".join(filter(str.isdecimal, found[0]))
    parts = {_plain(part) for part in re.findall(r"\d+", found[0])}
    return parts <= held.numbers or any(digits in text for text in held.digits)


def _digits(chinese: str) -> str:
    """The digits of a telephone number in Chinese numerals, 一三九 and so on."""
    return "".join(str(_DIGITS[letter]) for letter in chinese)


def _holds_number(found: re.Match[str], held: Held) -> bool:
    return _plain(found[0]) in held.numbers or any(found[0] in text for text in held.digits)


def _holds_counted(found: re.Match[str], held: Held) -> bool | None:
    value = _value(found["n"])
    return None if value <= 1 else str(value) in held.numbers


_KINDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Held], bool | None]], ...] = (
    (_ADDRESS, _holds_address),
    (_FULL_DATE, _holds_date),
    (_MONTH_DAY, _holds_date),
    (_ENGLISH_DATE, _holds_date),
    (_WEEKDAY, _holds_weekday),
    (_RELATIVE, lambda found, held: None if found.lastgroup in held.relative else False),
    (_CLOCK, _holds_clock),
    (_NAMED, lambda found, held: any(word == found[0] and at in held.clocks for word, at in _NAMED_CLOCKS)),
    (_SPELLED, lambda found, held: any(_digits(found[0]) in text for text in held.digits)),
    (_TELEPHONE, _holds_telephone),
    (_PAIR, _holds_pair),
    (_DAY, _holds_day),
    (_NUMBER, _holds_number),
    (_COUNTED, _holds_counted),
)
