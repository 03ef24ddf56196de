"""A block in a Markdown note: written between two marks, ticked by a person, read back before it is written.

Everything outside the marks is the person's and stays byte for byte. Inside, the boxes alone are read, in a
quotation or a numbered list too; the rest is written anew. A file whose marks are damaged is left as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chatproc.errors import ChatprocError
from chatproc.publishing.files import content_of, replace
from chatproc.publishing.standing import for_a_file, taken_over
from chatproc.shapes import shape
from chatproc.tasks import get_task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chatproc.config import Config, MarkdownTarget
    from chatproc.publishing import Tally
    from chatproc.results import Task

_LINE = re.compile(
    r"[\s>]*(?:[-*+]|[0-9]{1,9}[.)]) \[(?P<box>[ xX-])\] .*?(?:\br(?P<revision>[1-9]\d{0,8})\) )?"
    r"(?<!\\)\^chatproc-(?P<id>[a-z2-7]{26})(?!\S).*"  # plugins add their dates at the end
)
_STATUSES = {" ": "open", "x": "completed", "X": "completed", "-": "cancelled"}
_TRIES = 3


def publish_note(config: Config, target: MarkdownTarget, tally: Tally) -> None:
    """Take over what was ticked, then make the block say what the store says.

    Raises:
        ChatprocError: The file is no UTF-8, its marks are damaged, or it changes all the time.
        OSError: It cannot be read or written.
    """
    for _ in range(_TRIES):
        before = content_of(target.file)
        head, block, tail = _parts(before, target)
        tasks = for_a_file(config, target.keep_days)
        returned = _take_over(config, target, block, {task.task_id: task for task in tasks})
        if returned:
            tasks = for_a_file(config, target.keep_days)
        tally.returned += returned
        begin, end = _marks(target)
        content = f"{head}{begin}\n{shape(tasks, 'md')}{end}{tail}".encode()
        if content == before:
            break
        if content_of(target.file) == before:  # nobody wrote meanwhile
            replace(target.file, content)
            tally.writes += 1
            break
    else:
        raise ChatprocError("another program keeps changing the note", where=str(target.file))
    tally.tasks = len(tasks)


def _marks(target: MarkdownTarget) -> tuple[str, str]:
    return f"<!-- chatproc:begin {target.name} -->", f"<!-- chatproc:end {target.name} -->"


def _parts(content: bytes | None, target: MarkdownTarget) -> tuple[str, str, str]:
    """What stands before the block, the block without its marks, and what stands after it."""
    if content is None:
        return "", "", "\n"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ChatprocError(
            "the note is not UTF-8", where=str(target.file), hint="save it as UTF-8"
        ) from None
    begin, end = _marks(target)
    counts = text.count(begin), text.count(end)
    if counts == (0, 0):
        border = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        return text + border, "", "\n"
    head, _, rest = text.partition(begin)
    block, found, tail = rest.partition(end)
    if counts != (1, 1) or not found:
        raise ChatprocError(
            "the marks of the block are damaged, so the note is left as it is",
            where=str(target.file),
            hint=f"there must be one line {begin} and below it one line {end}, or neither",
        )
    return head, block, tail


def _take_over(config: Config, target: MarkdownTarget, block: str, known: dict[str, Task]) -> int:
    """How many statuses the boxes changed."""
    changed = 0
    for task_id, there, revision in _boxes(block):
        task = known.get(task_id) or _unlisted(config, task_id)
        if task is not None:
            changed += taken_over(config, target, task, there, revision) is not task
    return changed


def _boxes(block: str) -> Iterator[tuple[str, str, int | None]]:
    """Task, status and written revision of each box."""
    for line in block.splitlines():
        if found := _LINE.fullmatch(line):
            revision = found["revision"]
            yield f"t_{found['id']}", _STATUSES[found["box"]], None if revision is None else int(revision)


def _unlisted(config: Config, task_id: str) -> Task | None:
    """A task that the note no longer shows; `None` for one of another store."""
    try:
        return get_task(config, task_id)
    except ChatprocError:
        return None
