"""One task as it stands on a server: what a person set there, and how a newer revision is put into it.

A calendar that comes from a server is taken line by line and never interpreted further than its status and
its number: what is not ours goes back as it came.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from icalendar.parser import Contentline, Contentlines

from chatproc.shapes.icalendar_text import REVISION, todo, uid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.results import Task

_OF_A_FIELD = ("SUMMARY", "DESCRIPTION", "LOCATION", "CATEGORIES", "PRIORITY")
_OF_EVERY_REVISION = ("DTSTAMP", "LAST-MODIFIED", "SEQUENCE", REVISION)
_SPAN = ("DTSTART", "DUE")
_AT_THE_END = ("COMPLETED", "PERCENT-COMPLETE")
_STATUSES = {
    "NEEDS-ACTION": "open",
    "IN-PROCESS": "open",
    "COMPLETED": "completed",
    "CANCELLED": "cancelled",
}


class There:
    """A task's calendar as the server gave it.

    Args:
        text: The calendar.
        task_id: Whose it must be.

    Raises:
        ValueError: It holds no such task.
    """

    def __init__(self, text: str, task_id: str) -> None:
        """Find the task's own lines."""
        self._lines = [str(line) for line in Contentlines.from_ical(text) if line]  # type: ignore[no-untyped-call]
        names = [line.upper() for line in self._lines]
        if names.count("BEGIN:VTODO") != 1 or names.count("END:VTODO") != 1:
            raise ValueError("not one task")
        self._begin, self._end = names.index("BEGIN:VTODO"), names.index("END:VTODO")
        self._own = _own_lines(self._lines[self._begin + 1 : self._end])
        if _value(self._own, "UID") != uid(task_id):
            raise ValueError("another task")

    @property
    def status(self) -> str | None:
        """`open`, `completed` or `cancelled`; `None`: a word that means nothing."""
        ended = "COMPLETED" if _value(self._own, "COMPLETED") else "NEEDS-ACTION"
        return _STATUSES.get((_value(self._own, "STATUS") or ended).upper())

    @property
    def revision(self) -> int | None:
        """Which revision was written there last; `None`: a program dropped the property that says so."""
        return _number(_value(self._own, REVISION))

    def with_revision(self, base: Task | None, task: Task) -> str:
        """The calendar with what changed from one revision to another.

        Args:
            base: What was written; `None`: not known, and then every field of ours is written.
            task: What is to stand there.
        """
        old = {} if base is None else _properties(base)
        new = _properties(task)
        changed = [name for name in _OF_A_FIELD if base is None or old.get(name) != new.get(name)]
        if base is None or any(old.get(name) != new.get(name) for name in _SPAN):
            changed += [*_SPAN, "DURATION"]  # one of them alone could contradict the other
        if self.status != _STATUSES[_status(new)]:
            changed += ["STATUS", *_AT_THE_END]
        elif _status(new) == "COMPLETED":
            changed += [name for name in _AT_THE_END if _value(self._own, name) is None]
        counted = max(task.revision, _number(_value(self._own, "SEQUENCE")) or 0)
        new["SEQUENCE"] = f"SEQUENCE:{counted}"
        gone = {*changed, *_OF_EVERY_REVISION}
        added = [new[name] for name in (*_OF_EVERY_REVISION, *changed) if name in new]
        kept = _without(self._lines[self._begin + 1 : self._end], gone)
        lines = [*self._lines[: self._begin + 1], *added, *kept, *self._lines[self._end :]]
        return "".join(f"{_folded(line)}\r\n" for line in lines)


def _folded(line: str) -> str:
    return str(Contentline(line).to_ical(), "utf-8")  # type: ignore[no-untyped-call]


def _properties(task: Task) -> dict[str, str]:
    """The lines of ours, by name."""
    lines = [str(line) for line in todo(task).content_lines() if line]
    return {_name(line): line for line in lines if _name(line) not in {"BEGIN", "END"}}


def _status(properties: dict[str, str]) -> str:
    return properties["STATUS"].partition(":")[2]


def _own_lines(lines: Sequence[str]) -> list[str]:
    """The lines of the task itself, not those of its alarms."""
    return [line for line, depth in _with_depth(lines) if depth == 0]


def _without(lines: Sequence[str], names: set[str]) -> list[str]:
    return [line for line, depth in _with_depth(lines) if depth or _name(line) not in names]


def _with_depth(lines: Sequence[str]) -> list[tuple[str, int]]:
    found, depth = [], 0
    for line in lines:
        depth += _name(line) == "BEGIN"
        found.append((line, depth))
        depth -= _name(line) == "END" and depth > 0
    return found


def _name(line: str) -> str:
    return re.split("[;:]", line, maxsplit=1)[0].upper()


def _value(lines: Sequence[str], name: str) -> str | None:
    """The value of a property without quotes in its parameters."""
    for line in lines:
        if _name(line) == name:
            return line.partition(":")[2].strip()
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text) else None
