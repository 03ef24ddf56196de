"""A task list of a CalDAV server: decisions made there into the store, revisions made here onto the server.

One request tells what changed there. A task is read only when it changed on a side, and written only on the
condition that it is as it was read: whoever changes it meanwhile is not overwritten.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from chatproc.credentials import read_target_secret
from chatproc.publishing.dav import Item, RefusedError, TaskList
from chatproc.publishing.items import There
from chatproc.publishing.memory import Memory, mark
from chatproc.publishing.standing import at_revision, pages, taken_over
from chatproc.shapes import shape

if TYPE_CHECKING:
    from chatproc.config import CaldavTarget, Config
    from chatproc.publishing import Tally
    from chatproc.results import Task

_log = logging.getLogger(__name__)
_OURS = re.compile(r"chatproc-[a-z2-7]{26}\.ics")


def publish_list(config: Config, target: CaldavTarget, tally: Tally) -> None:
    """Make both sides agree.

    Raises:
        CredentialError: The password is missing or refused.
        ChatprocError: The server cannot be asked; what was done stays done.
        OSError: The memory cannot be written.
    """
    with TaskList(target, read_target_secret(config, target)) as server:
        memory = Memory(config, target)
        try:
            _Round(config, target, tally, server, memory).work()
        finally:
            tally.requests = server.requests
            memory.keep()


class _Round:
    """One publish to one list."""

    def __init__(
        self, config: Config, target: CaldavTarget, tally: Tally, server: TaskList, memory: Memory
    ) -> None:
        self._config = config
        self._target = target
        self._tally = tally
        self._server = server
        self._memory = memory

    def work(self) -> None:
        """All tasks of the store, page by page."""
        self._etags = {name: etag for name, etag in self._server.etags().items() if _OURS.fullmatch(name)}
        for page in pages(self._config, sort="created"):
            unsure = [_file_of(task) for task in page if self._is_unsure(task)]
            items = self._server.items(unsure)
            for task in page:
                if _file_of(task) in items:
                    self._attempt(task, items[_file_of(task)])
                elif _file_of(task) not in self._etags:
                    self._create(task)
                elif self._is_unsure(task):
                    self._leave(task, "the list names it, but the server does not give it")
            self._memory.keep()
        self._tally.tasks = len(self._etags)

    def _is_unsure(self, task: Task) -> bool:
        """Whether a task that stands there has changed on a side since the last publish."""
        etag = self._etags.get(_file_of(task))
        return etag is not None and (
            not etag or self._memory.tasks.get(task.task_id) != (task.revision, mark(etag))
        )

    def _create(self, task: Task) -> None:
        """Write a task that does not stand there: open, and not deleted there since it changed last."""
        revision, _ = self._memory.tasks.get(task.task_id, (0, ""))
        if task.status != "open":
            self._memory.tasks.pop(task.task_id, None)
        elif revision < task.revision and self._put(task, shape([task], "ics"), instead_of=None):
            self._etags[_file_of(task)] = ""

    def _attempt(self, task: Task, item: Item) -> None:
        """Bring one task that stands there to what both sides say."""
        try:
            there = There(item.text, task.task_id)
        except ValueError as error:
            self._leave(task, f"what stands there cannot be read: {error}")
            return
        written, _ = self._memory.tasks.get(task.task_id, (None, ""))
        base = written if there.revision is None else there.revision
        if there.status is not None:
            told = task
            task = taken_over(self._config, self._target, told, there.status, base)
            self._tally.returned += task is not told
        if base == task.revision:
            self._memory.tasks[task.task_id] = (task.revision, mark(item.etag))
            return
        past = None if base is None else at_revision(self._config, task.task_id, base)
        self._put(task, there.with_revision(past, task), instead_of=item.etag)

    def _put(self, task: Task, text: str, *, instead_of: str | None) -> bool:
        try:
            etag = self._server.put(_file_of(task), text, instead_of=instead_of)
        except RefusedError as error:
            self._leave(task, str(error))
            return False
        self._memory.tasks[task.task_id] = (task.revision, mark(etag))
        self._tally.writes += 1
        return True

    def _leave(self, task: Task, why: str) -> None:
        _log.warning("%s: %s was not written: %s", self._target.name, task.task_id, why)
        self._tally.left += 1


def _file_of(task: Task) -> str:
    return f"chatproc-{task.task_id.removeprefix('t_')}.ics"
