"""Dates and times as people's devices write them: parts of the day, digits of all scripts, order of dates.

Pure. An order that the dates of a file do not prove is never guessed.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from chatproc.errors import ConfigError

if TYPE_CHECKING:
    from chatproc.importers.base import DateOrder

# Marks of the direction of writing, which devices put around dates and names.
MARKS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
_UNMARKED = dict.fromkeys(map(ord, MARKS))
# Without dots, spaces and apostrophes.
_BEFORE_NOON = "am vorm πμ ص قبلازظهر قظ 上午 清晨 早上 凌晨 午前 오전 पूर्वाह्न öö дп проб de sa pg fm"
_AFTER_NOON = "pm nachm μμ م بعدازظهر بظ 下午 傍晚 午後 오후 अपराह्न ös пп слоб du ch ptg em"
_PARTS: dict[str, str] = {
    **dict.fromkeys(_BEFORE_NOON.split(), "am"),
    **dict.fromkeys(_AFTER_NOON.split(), "pm"),
    "中午": "noon",
    "晚上": "night",
    "深夜": "night",
    "半夜": "night",
}
_WEEK = re.compile("^(?:星期|禮拜|礼拜|週|周)|(?:曜日?|요일)$|[.\\s]")
_WEEKDAYS = (
    ("mon", "monday", "一", "月", "월", "จ", "จันทร์"),
    ("tue", "tuesday", "二", "火", "화", "อ", "อังคาร"),
    ("wed", "wednesday", "三", "水", "수", "พ", "พุธ"),
    ("thu", "thursday", "四", "木", "목", "พฤ", "พฤหัสบดี"),
    ("fri", "friday", "五", "金", "금", "ศ", "ศุกร์"),
    ("sat", "saturday", "六", "土", "토", "ส", "เสาร์"),
    ("sun", "sunday", "日", "天", "일", "อา", "อาทิตย์"),
)
_BETWEEN_LETTERS = re.compile(r"[.\s\u2019'\u200c]+")
_ARABIC_DIGIT = re.compile("[\u0660-\u0669]")
ORDERS: tuple[DateOrder, ...] = ("dmy", "mdy", "ymd")
# Hours on a clock of 12 that mean the second half of the day: at noon it may be one o'clock, at night eleven.
_SECOND_HALF = {"pm": range(12), "noon": range(1, 6), "night": range(6, 12)}
# Years of the Buddhist calendar, 543 ahead.
_BUDDHIST = 2400
_LATEST = 2199


def unmarked(text: str) -> str:
    """The text without marks of direction, its ends without spaces."""
    return (text if text.isascii() else text.translate(_UNMARKED)).strip()


def weekday_of(written: str) -> int | None:
    """The day of the week, Monday 0, of its name in English, Chinese, Japanese, Korean or Thai.

    Example:
        >>> [weekday_of(name) for name in ("Tuesday", "Wed", "星期六", "金曜日", "일요일", "mié")]
        [1, 2, 5, 4, 6, None]
    """
    name = _WEEK.sub("", written.strip().casefold())
    for number, names in enumerate(_WEEKDAYS):
        if name in names:
            return number
    return None


@lru_cache
def part_of_day(written: str | None) -> str | None:
    """`am`, `pm`, `noon` or `night` for a word that parts the day; `""` for none, `None` for another word.

    Example:
        >>> [part_of_day(word) for word in ("p.\u202fm.", "下午", "ص", "", "Bob")]
        ['pm', 'pm', 'am', '', None]
    """
    if not written or not written.strip():
        return ""
    word = _BETWEEN_LETTERS.sub("", unmarked(written)).casefold()
    return _PARTS.get(word)


def second_of_day(hour: int, minute: int, second: int, part: str) -> int | None:
    """The seconds since midnight of a time on a clock of 12 or 24 hours; `None` where there is no such time.

    Example:
        >>> [second_of_day(hour, 5, 0, part) for hour, part in ((12, "am"), (12, "pm"), (3, "pm"), (25, ""))]
        [300, 43500, 54300, None]
    """
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004 - a clock's
        return None
    if hour == 12 and part in ("am", "night"):  # noqa: PLR2004 - midnight on a clock of 12 hours
        hour = 0
    elif hour in _SECOND_HALF.get(part, ()):
        hour += 12
    return (hour * 60 + minute) * 60 + second


class DateOrders:
    """Which of day, month and year stands where in the dates of one file, decided from all of them."""

    def __init__(self, earliest: int) -> None:
        """Start with no date seen; no message of the program is from before the year `earliest`."""
        self._earliest = earliest
        self._example = ""
        self._has_dates = False
        self._misfits = dict.fromkeys(ORDERS, 0)
        self._backwards = dict.fromkeys(ORDERS, 0)
        self._first: dict[DateOrder, int] = {}
        self._last = dict.fromkeys(ORDERS, 0)
        self._is_short = True
        self._arabic = True

    def add(
        self, numbers: tuple[str, str, str], written: str, weekday: int | None = None
    ) -> dict[DateOrder, int | None]:
        """Take in the three numbers of one date, in the order of the file; its day in each order."""
        days = {order: day_of(numbers, order, self._earliest, weekday) for order in ORDERS}
        self._example = self._example or written
        if not any(days.values()):
            return days  # no date in any order says nothing of the order
        self._has_dates = True
        self._is_short = self._is_short and max(map(len, numbers)) <= 2  # noqa: PLR2004 - digits
        self._arabic = self._arabic and bool(_ARABIC_DIGIT.search("".join(numbers)))
        for order, day in days.items():
            if day is None:
                self._misfits[order] += 1
                continue
            self._first.setdefault(order, day)
            self._backwards[order] += day < self._last[order]
            self._last[order] = day
        return days

    def order(self, given: DateOrder | None, where: str) -> DateOrder:
        """The order: the one given, or the one that the dates prove.

        Every date must be one in that order, and chats run forwards in time.

        Raises:
            ConfigError: They prove none, or contradict the given one.
        """
        if not self._has_dates:
            raise ConfigError(f"no date from {self._earliest} on in it: {self._example}", where=where)
        best = min(ORDERS, key=self._faults)
        if given is not None:
            if self._misfits[given] > self._misfits[best]:
                raise ConfigError(
                    f"the dates are not in the order {given}: {self._example}",
                    where=where,
                    hint="leave --date-order out, or give the order of the file's dates",
                )
            return given
        rivals = [other for other in ORDERS if other != best and self._may_be(other, best)]
        if rivals == ["mdy"] and best == "dmy" and self._arabic:
            rivals = []  # no country that writes these digits puts the month first
        if rivals:
            raise ConfigError(
                f"the order of day and month cannot be told from the dates in it, like {self._example}",
                where=where,
                hint="say it: --date-order dmy (day first), mdy (month first) or ymd (year first)",
            )
        return best

    def _faults(self, order: DateOrder) -> tuple[int, int]:
        return self._misfits[order], self._backwards[order]

    def _may_be(self, other: DateOrder, best: DateOrder) -> bool:
        """Whether the dates leave room for the other order; one date against their course is no proof."""
        if other == "ymd" and self._is_short and self._misfits[best] == 0:
            # Years of two digits hardly ever come first, so only if that puts the dates closer together.
            return self._misfits[other] == 0 and self._span(other) < self._span(best)
        if self._backwards[other] < self._backwards[best]:
            return self._misfits[other] <= self._misfits[best] + 1
        return self._faults(other) <= self._faults(best)

    def _span(self, order: DateOrder) -> int:
        return self._last[order] - self._first[order]


@lru_cache(maxsize=4096)
def day_of(
    numbers: tuple[str, str, str], order: DateOrder, earliest: int, weekday: int | None = None
) -> int | None:
    """The day of a date in an order, counted as `date.toordinal` does; `None` where it is no such date.

    Args:
        numbers: As they stand.
        order: Which of them is which.
        earliest: The first year that is believed.
        weekday: The day of the week written beside it, Monday 0.

    Example:
        >>> day_of(("31", "12", "25"), "dmy", 2009) == date(2025, 12, 31).toordinal()
        True
    """
    year, month, day = (numbers[order.index(letter)] for letter in "ymd")
    if len(year) == 3 or max(len(month), len(day)) > 2:  # noqa: PLR2004 - digits
        return None
    count = int(year)
    if len(year) <= 2:  # noqa: PLR2004 - digits
        count += 2000
    elif count >= _BUDDHIST:
        count -= 543
    if not earliest <= count <= _LATEST:
        return None
    try:
        found = date(count, int(month), int(day))
    except ValueError:
        return None
    return found.toordinal() if weekday in (None, found.weekday()) else None
