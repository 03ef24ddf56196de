"""CSV for spreadsheets (RFC 4180, UTF-8 with its mark, which Excel needs for Chinese): a task a row.

A spreadsheet takes a cell that begins with `= + - @`, or their wide forms, for a formula. Such a cell gets an
apostrophe in front, and so does one that begins with an apostrophe. Where a spreadsheet parts cells at `;`,
what follows one begins a cell too. Cells have one line. To have the text as it was, take one apostrophe from
the beginning and from behind each `;`.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

from chatproc.plaintext import one_line
from chatproc.shapes.telling import facts, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.results import Task

_OBEYED = re.compile(r"(^|;)(?=\s*['=+\-@＝＋－＠])")
_LISTED = ("about", "people", "place", "as written", "priority", "step", "notes", "source")
_COLUMNS = (
    "task_id", "revision", "status", "priority", "due", "start", "title",
    "about", "people", "place", "as_written", "priority_reason", "steps", "notes", "sources", "updated_at",
)  # fmt: skip


def text(tasks: Sequence[Task]) -> str:
    """The table, with a line of its columns."""
    out = io.StringIO()
    rows = csv.writer(out, quoting=csv.QUOTE_ALL)
    rows.writerow(_COLUMNS)
    rows.writerows([_cell(value) for value in _values(task)] for task in tasks)
    return f"\ufeff{out.getvalue()}"


def _values(task: Task) -> list[str]:
    told: dict[str, list[str]] = {name: [] for name in _LISTED}
    for name, words in facts(task):
        told[name].append(words)
    time = task.record["time"]
    return [
        *(task.task_id, str(task.revision), task.status, task.priority),
        *(time["due"] or "", time["start"] or "", title(task)),
        *(" | ".join(told[name]) for name in _LISTED),
        task.updated_at,
    ]


def _cell(value: str) -> str:
    return _OBEYED.sub(r"\1'", one_line(value))
