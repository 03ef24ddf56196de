"""todo.txt: a task a line, `(B) 2026-07-06 title due:2026-07-13 id:t_…`.

Its readers obey `x ` and `(A) ` at the beginning, dates behind them, and words such as `+project`, `@context`
and `key:value`. Priority and dates of our own stand in front of every title, so that nothing of it begins a
line; in its words `+`, `@` and `:` are written wide. The day alone is due: the format knows no clock time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chatproc.shapes.telling import IS_OVER, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.results import Task

_LETTERS = {"P0": "A", "P1": "B", "P2": "C", "P3": "D", "P4": "E"}
_DAY = len("2026-07-13")
_CLOCK_OR_LINK = re.compile(r"\d+:\d\d(?::\d\d)?|https?://\S+")
_WIDE = str.maketrans("+@", "＋＠")


def text(tasks: Sequence[Task]) -> str:
    """A line for each task; cancelled and superseded ones are crossed off like completed ones."""
    return "".join(f"{_line(task)}\n" for task in tasks)


def _line(task: Task) -> str:
    letter = _LETTERS[task.priority]
    begun = min(source["sent_at_local"] for source in task.sources)[:_DAY]
    words = [f"({letter})", begun]
    more = [f"id:{task.task_id}"]
    if task.due is not None:
        more.insert(0, f"due:{task.due[:_DAY]}")
    if task.status in IS_OVER:
        words = ["x", max(task.updated_at[:_DAY], begun), begun]
        more += [f"pri:{letter}", f"status:{task.status}"]
    return " ".join([*words, *map(_word, title(task).split()), *more])


def _word(word: str) -> str:
    word = word[0].translate(_WIDE) + word[1:]
    return word if _CLOCK_OR_LINK.fullmatch(word) else word.replace(":", "：")
