"""What of the store is published, and how a decision made elsewhere gets into it.

A decision has a request id that follows from where it was made, the revision that was seen there and what was
decided: however often it is read there, it counts once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from chatproc.results import Task
from chatproc.tasks import get_task, list_tasks, task_history, update_task_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chatproc.config import Config, Target

_PAGE = 1000


def pages(config: Config, **filters: object) -> Iterator[list[Task]]:
    """All tasks, page by page, with the filters of `list_tasks`."""
    cursor = None
    while True:
        page = list_tasks(config, limit=_PAGE, cursor=cursor, **filters)  # type: ignore[arg-type]
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


def for_a_file(config: Config, keep_days: int) -> list[Task]:
    """Open tasks by their due, then those that were completed or cancelled in the last days."""
    today = datetime.now(ZoneInfo(config.rules.timezone)).date()
    kept_from = (today - timedelta(days=min(keep_days, today.toordinal() - 1))).isoformat()
    over = ["completed", "cancelled"]
    return [
        *(task for page in pages(config, status="open") for task in page),
        *(
            task
            for page in pages(config, status=over, updated_from=kept_from, sort="updated")
            for task in page
        ),
    ]


def at_revision(config: Config, task_id: str, revision: int) -> Task | None:
    """A task as it was; `None` where it never had that revision."""
    for past in task_history(config, task_id):
        if past.revision == revision:
            return Task(task_id, revision, past.at, past.task, [])
    return None


def taken_over(config: Config, target: Target, task: Task, there: str, base: int | None) -> Task:
    """The task after what a person set at a target.

    Args:
        config: From `load_config`.
        target: Where.
        task: As the store has it.
        there: The status that stands there: `open`, `completed` or `cancelled`.
        base: The revision that was written there; `None`: not known, and then nothing is reopened, for it may
            be what stood there before.

    Returns:
        The same object where nothing was set.
    """
    if there == seen(task) or task.status == "superseded":
        return task
    past = None if base is None else at_revision(config, task.task_id, base)
    if there == (seen(past) if past else "open"):
        return task
    revision = past.revision if past else task.revision
    update_task_status(
        config,
        task.task_id,
        there,
        request_id=f"publish:{target.name}:{task.task_id}:{revision}:{there}",
        actor=f"publish/{target.name}",
        note=f"set in {target.kind} {target.name}",
    )
    return get_task(config, task.task_id)


def seen(task: Task) -> str:
    """The status as targets show it: for them a superseded task is called off."""
    return "cancelled" if task.status == "superseded" else task.status
