r"""iCalendar (RFC 5545): a task is a `VTODO` with a UID of its own for ever and its revision as `SEQUENCE`.

Times of day are written in UTC, so that no zone has to be described; a date stays a date. The same revision
gives the same bytes. Folding is the library's; escaping is ours, as its own takes `\N` for a line break.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from icalendar import Calendar, Todo, vCategory, vText

from chatproc.plaintext import one_line
from chatproc.shapes.telling import facts, moment, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.results import Json, Task

REVISION = "X-CHATPROC-REVISION"
"""The property that says which revision was written; programs may count `SEQUENCE` up themselves."""

STATUSES = {
    "open": "NEEDS-ACTION",
    "completed": "COMPLETED",
    "cancelled": "CANCELLED",
    "superseded": "CANCELLED",
}
_PRIORITIES = {"P0": 1, "P1": 3, "P2": 5, "P3": 7, "P4": 9}
_ESCAPES = str.maketrans({"\\": r"\\", ";": r"\;", ",": r"\,", "\n": r"\n"})
_SUPERSEDED = "superseded: its messages were edited or recalled and no longer hold it"


def text(tasks: Sequence[Task]) -> str:
    """A calendar of all the tasks, superseded ones as cancelled."""
    return calendar([todo(task) for task in tasks])


def calendar(todos: Sequence[Todo]) -> str:
    """A calendar that holds these."""
    whole = Calendar()
    whole.add("prodid", "-//chatproc//chatproc//EN")
    whole.add("version", "2.0")
    for one in todos:
        whole.add_component(one)
    return str(whole.to_ical(), "utf-8")


def uid(task_id: str) -> str:
    """The UID of a task, the same in every calendar."""
    return f"{task_id}@chatproc"


def todo(task: Task) -> Todo:
    """One task; everything in it follows from its revision."""
    record = task.record
    updated = datetime.fromisoformat(task.updated_at).astimezone(UTC).replace(microsecond=0)
    start, due = _span(record["time"])
    about = {
        "uid": uid(task.task_id),
        "dtstamp": updated,
        "last-modified": updated,
        "sequence": task.revision,
        REVISION: str(task.revision),
        "summary": _Text(title(task)),
        "description": _Text(_description(task)) or None,
        "location": _Text(one_line(record["location"] or "")) or None,
        "categories": _categories(record["owner"]),
        "priority": _PRIORITIES[task.priority],
        "dtstart": start,
        "due": due,
        "status": STATUSES[task.status],
        "completed": updated if task.status == "completed" else None,
        "percent-complete": 100 if task.status == "completed" else None,
    }
    made = Todo()
    for name, value in about.items():
        if value is not None:
            made.add(name, value, encode=not isinstance(value, _Text | vCategory))
    return made


class _Text(vText):
    """Text of a property, escaped as RFC 5545 (3.3.11) says."""

    def to_ical(self) -> bytes:
        """The text as it is written."""
        return self.translate(_ESCAPES).encode()


def _description(task: Task) -> str:
    note = [_SUPERSEDED] if task.status == "superseded" else []
    return "\n".join([*note, *(f"{name}: {words}" for name, words in facts(task))])


def _categories(owner: Json) -> vCategory:
    place = owner["conversation"]["name"] or owner["conversation"]["id"]
    written = vCategory([])
    written.cats = [_Text(one_line(name)) for name in (owner["platform"], place) if one_line(name)]
    return written


def _span(time: Json) -> tuple[date | None, date | None]:
    """Start and due as RFC 5545 wants them: of one kind, and the start before the due."""
    start, due = moment(time["start"]), moment(time["due"])
    zone = ZoneInfo(time["timezone"])
    if start is not None and due is not None:
        if isinstance(start, datetime) and not isinstance(due, datetime):
            start = start.astimezone(zone).date()
        elif isinstance(due, datetime) and not isinstance(start, datetime):
            start = datetime(start.year, start.month, start.day, tzinfo=zone)
    try:
        start, due = _utc(start), _utc(due)
    except OverflowError:  # an hour from the first or the last year, which UTC has no number for
        start, due = (when and date(when.year, when.month, when.day) for when in (start, due))
    return (None if start is not None and due is not None and start >= due else start), due


def _utc(when: date | None) -> date | None:
    return when.astimezone(UTC) if isinstance(when, datetime) else when
