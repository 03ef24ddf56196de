r"""Markdown as Obsidian and its like read it: a checkbox a task, its sources below, a block id at its end.

A backslash stands before every sign that CommonMark, GFM, Obsidian or a common plugin obeys in the midst of a
line: in `\[\[a\]\]`, `\<b\>`, `\#tag`, `\%\%`, `a\:\: b` no two signs of a mark stand side by side. Nothing
hostile begins a line, and nothing of it ends the line of the checkbox.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chatproc.shapes.telling import facts, spoken, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.results import Task

BOXES = {"open": " ", "completed": "x", "cancelled": "-", "superseded": "-"}
"""What stands in the box; `-` is how Obsidian's themes write a task that was called off."""

_OBEYED = re.compile(
    r"[\\`*_{}\[\]<>#^~|=$%@&!]"
    r"|:(?![\d\s])|(?<=:):"  # links that are made of bare addresses, `field:: value` of Dataview
    r"|(?<=[Ww]{3})\."
)


def text(tasks: Sequence[Task]) -> str:
    """The list."""
    return "".join(f"{line}\n" for task in tasks for line in lines(task))


def lines(task: Task) -> list[str]:
    """The lines of one task: its checkbox with its block id, and below it what it rests on."""
    # The revision tells a later reader what it was that a person ticked.
    told = [task.priority, *([f"due {spoken(task.due)}"] if task.due else []), f"r{task.revision}"]
    head = f"- [{BOXES[task.status]}] {escaped(title(task))} ({', '.join(told)}) ^{block_id(task.task_id)}"
    return [head, *(f"    - {name}: {escaped(words)}" for name, words in facts(task))]


def block_id(task_id: str) -> str:
    """The name under which other notes can link to a task; Obsidian takes letters, digits and hyphens.

    Args:
        task_id: `t_…`.

    Example:
        >>> block_id("t_mzxw6ytboi2xk4tsnf3gk3dpne")
        'chatproc-mzxw6ytboi2xk4tsnf3gk3dpne'
    """
    return f"chatproc-{task_id.removeprefix('t_')}"


def escaped(line: str) -> str:
    r"""Text of one line that shows as it is.

    Args:
        line: Without control characters.

    Example:
        >>> print(escaped("see [[a]] at http://b 12:00"))
        see \[\[a\]\] at http\://b 12:00
    """
    return _OBEYED.sub(r"\\\g<0>", line)
