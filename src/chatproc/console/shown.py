"""How pages are made: templates that escape whatever they are given, and the few ways to word a value.

Every text passes `plain` and is escaped after that, wherever a template shows it; only `verbatim`, for files
of the user that are edited, leaves out the first. No text is ever taken for markup.
"""

from __future__ import annotations

import difflib
import functools
import itertools
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from chatproc.plaintext import escaped_json, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chatproc.console.texts import Say


class Piece(NamedTuple):
    """A part of a text, and whether it is quoted."""

    text: str
    marked: bool


def page(template: str, values: Mapping[str, Any]) -> str:
    """A page as HTML.

    Args:
        template: Its file.
        values: What it shows.
    """
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("chatproc.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_fit,
    )
    for filter_ in (verbatim, query, day, moment, since, amount):
        environment.filters[filter_.__name__] = filter_
    environment.filters["exact_json"] = escaped_json
    environment.globals["pieces"] = pieces
    return environment


def _fit(value: object) -> object:
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def verbatim(text: str) -> Markup:
    """A text as it is, for a field in which it is edited; a browser drops the first line break of one.

    Args:
        text: Of a file of the user.
    """
    return Markup("\n") + escape(text)


def query(fields: Mapping[str, Any]) -> str:
    """A query of those fields that say something.

    Args:
        fields: By name; several values in a list.
    """
    return urlencode({name: value for name, value in fields.items() if value}, doseq=True)


def pieces(text: str, quotes: Sequence[str]) -> list[Piece]:
    """A text cut where quotes of it begin and end.

    Args:
        text: Of a message.
        quotes: What to mark, each wherever it stands.

    Example:
        >>> [(piece.text, piece.marked) for piece in pieces("by Friday, 302", ["Friday"])]
        [('by ', False), ('Friday', True), (', 302', False)]
    """
    marked = bytearray(len(text))
    for quote in filter(None, quotes):
        start = text.find(quote)
        while start >= 0:
            marked[start : start + len(quote)] = b"\1" * len(quote)
            start = text.find(quote, start + len(quote))
    borders = [at for at in range(1, len(text)) if marked[at] != marked[at - 1]]
    cuts = [0, *borders, len(text)]
    return [Piece(text[a:b], bool(marked[a])) for a, b in itertools.pairwise(cuts) if a < b]


def diff_of(before: str, after: str) -> list[tuple[str, str]]:
    r"""What an edit changes, line by line: pairs of `added`, `removed`, `same` or `gap`, and the line.

    Args:
        before: The text as it is.
        after: As it would be.

    Example:
        >>> diff_of("a\nb\n", "a\nc\n")
        [('same', 'a'), ('removed', 'b'), ('added', 'c')]
    """
    kinds = {"+": "added", "-": "removed", " ": "same", "@": "gap"}
    old, new = (text.removesuffix("\n").split("\n") for text in (before, after))
    lines = difflib.unified_diff(old, new, lineterm="")
    return [
        (kinds[line[0]], "" if line[0] == "@" else line[1:])
        for number, line in enumerate(lines)
        if number > 2  # noqa: PLR2004 - two names and the first gap
    ]


def day(value: str, say: Say, now: datetime) -> str:
    """A due time in words that a person plans with.

    Args:
        value: RFC 3339 or `YYYY-MM-DD`.
        say: Says the texts.
        now: In the zone of the rules.
    """
    when = date.fromisoformat(value[:10])
    clock = f" {value[11:16]}" if len(value) > len("2026-07-01") else ""
    distance = when - now.date()
    names = {-1: "day.yesterday", 0: "day.today", 1: "day.tomorrow"}
    if distance.days in names:
        return say(names[distance.days]) + clock
    weekday = say(f"day.weekday_{when.weekday()}")
    year = f"{when.year}-" if abs(distance) > timedelta(days=300) else ""
    return f"{year}{when:%m-%d} {weekday}{clock}"


def moment(value: object) -> str:
    """A time that was: date, clock time, no more.

    Args:
        value: RFC 3339; nothing when it never was.
    """
    return str(value)[:16].replace("T", " ") if value else "–"


def since(seconds: float, zone: str) -> str:
    """Unix seconds as RFC 3339.

    Args:
        seconds: Since 1970.
        zone: `rules.timezone`.
    """
    return datetime.fromtimestamp(seconds, ZoneInfo(zone)).isoformat()


def amount(value: object) -> str:
    """A count with its thousands apart; what is not known says so.

    Args:
        value: A number, or `None`.
    """
    if value is None:
        return "?"
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,}"


def now_in(zone: str) -> datetime:
    """This moment in a zone, to the second.

    Args:
        zone: `rules.timezone`.
    """
    return datetime.now(ZoneInfo(zone)).replace(microsecond=0)
