"""Tasks as text in the formats that other programs read: pure, tasks in, one text out.

Titles, quotes and names are hostile: each format's module says what its readers obey and takes exactly that
from them. Nothing here reads a file, a store or a clock.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chatproc.results import Task

FORMATS = {
    "ics": "chatproc.shapes.icalendar_text",
    "md": "chatproc.shapes.markdown",
    "csv": "chatproc.shapes.csv_text",
    "todo.txt": "chatproc.shapes.todo_txt",
}
"""The module of each format; each has `text(tasks)`."""


def shape(tasks: Sequence[Task], form: str) -> str:
    """Tasks in one of `FORMATS`.

    Args:
        tasks: In the order in which they are to stand.
        form: Which format.

    Example:
        >>> shape([], "md")
        ''
    """
    text: Callable[[Sequence[Task]], str] = importlib.import_module(FORMATS[form]).text
    return text(tasks)
