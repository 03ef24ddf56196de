"""What every format tells of a task, in plain words of one line each: the formats only escape and arrange.

No character that a reader could obey unseen is left; what is visible stays as it was written.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

from chatproc.plaintext import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chatproc.results import Json, Task

_LONGEST = 500
_DATE = len("2026-07-13")

IS_OVER = {"completed", "cancelled", "superseded"}
"""Statuses of tasks that stand on no active list."""


def title(task: Task) -> str:
    """The short action."""
    return one_line(task.title) or task.task_id


def facts(task: Task) -> Iterator[tuple[str, str]]:
    """Name and words of everything else that a person wants to know, what is empty left out."""
    record = task.record
    told = [
        ("about", record["event"]),
        ("priority", record["priority_reason"]),
        ("as written", record["time"]["original"]),
        ("place", record["location"]),
        ("people", ", ".join(map(_person, record["people"]))),
        *(("step", step) for step in record["action_steps"]),
        ("notes", record["notes"]),
        *(("source", _source(source)) for source in record["sources"]),
    ]
    for name, words in told:
        line = one_line(words or "")
        if line:
            yield name, line


def moment(text: str | None) -> date | datetime | None:
    """A time of a task: a `date` where it is one, else a `datetime` with its offset."""
    if text is None:
        return None
    return date.fromisoformat(text) if len(text) == _DATE else datetime.fromisoformat(text)


def spoken(text: str | None) -> str:
    """A time of a task for a person: `2026-07-13`, or `2026-07-13 12:00+08:00`."""
    when = moment(text)
    return "" if when is None else when.isoformat(*(" ", "minutes") if isinstance(when, datetime) else ())


def _person(person: Json) -> str:
    return f"{person['name']} ({person['role']})" if person["role"] else str(person["name"])


def _source(source: Json) -> str:
    """Who said it, when and where, and the quotes; without one, how the message begins."""
    sender = source["sender"]["name"] or source["sender"]["id"] or "unknown sender"
    place = source["conversation"]["name"] or source["conversation"]["id"]
    quotes = [quote["text"] for quote in source["quotes"]] or [_cut(source["text"])]
    said = " … ".join(one_line(quote) for quote in quotes)
    return f"{source['sent_at_local']} {one_line(sender)}, {one_line(place)}: “{said}”"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
