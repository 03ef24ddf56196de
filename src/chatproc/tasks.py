"""Tasks as people use them: listed, read, and given a status or a priority."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatproc import _core
from chatproc.given import wall_clock
from chatproc.results import Task, TaskEvent, TaskPage, TaskRevision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.config import Config
    from chatproc.results import Json


def list_tasks(  # noqa: PLR0913 - the filters of the contract
    config: Config,
    *,
    status: str | Sequence[str] | None = None,
    priority: str | Sequence[str] | None = None,
    query: str | None = None,
    people: str | Sequence[str] | None = None,
    platform: str | None = None,
    conversation: str | None = None,
    due_from: str | None = None,
    due_to: str | None = None,
    updated_from: str | None = None,
    sort: str = "due",
    limit: int = 20,
    cursor: str | None = None,
) -> TaskPage:
    """List and search tasks.

    Args:
        config: From `load_config`.
        status: One status or several: `open completed cancelled superseded`.
        priority: One priority or several: `P0` … `P4`.
        query: Words, all of which must occur in title, event, people, location, notes or source texts; case
            does not matter, and two Chinese characters, or one, are enough.
        people: Parts of names.
        platform: Of any source.
        conversation: The platform's id of any source's conversation.
        due_from: RFC 3339 or `YYYY-MM-DD` (the day's start in `rules.timezone`).
        due_to: RFC 3339 or `YYYY-MM-DD` (the day's end).
        updated_from: RFC 3339 or `YYYY-MM-DD`.
        sort: `due` (tasks without one last), `priority`, `updated` or `created` (newest first).
        limit: Tasks of a page, 1 to 1000.
        cursor: `next_cursor` of the page before.

    Returns:
        The page: a list of `Task` with `next_cursor`, `total` and `at_least`.

    Raises:
        ChatprocError: A filter cannot be understood.

    Example:
        >>> [task.title for task in list_tasks(config, query="报告", status="open")]  # doctest: +SKIP
        ['交实验报告']
    """
    wanted = {
        "status": _several(status),
        "priority": _several(priority),
        "query": query,
        "people": _several(people),
        "platform": platform,
        "conversation": conversation,
        "due_from": due_from,
        "due_to": due_to,
        "updated_from": updated_from,
        "sort": sort,
        "limit": limit,
        "cursor": cursor,
    }
    page = _core.search(config.storage.state, wanted, config.rules.timezone)
    return TaskPage(
        [_task(row) for row in page["tasks"]],
        next_cursor=page["cursor"],
        total=page["total"],
        at_least=page["at_least"],
    )


def get_task(config: Config, task_id: str) -> Task:
    """One task as it is now.

    Args:
        config: From `load_config`.
        task_id: `t_…`.

    Raises:
        ChatprocError: No task has that id.
    """
    return _task(_core.task(config.storage.state, task_id, config.rules.timezone))


def task_history(config: Config, task_id: str) -> list[TaskRevision]:
    """Every revision of a task, the first one first, with who made it and why.

    Args:
        config: From `load_config`.
        task_id: `t_…`.

    Raises:
        ChatprocError: No task has that id.
    """
    return [TaskRevision(**revision) for revision in _core.history(config.storage.state, task_id)]


def update_task_status(  # noqa: PLR0913 - the contract's arguments
    config: Config,
    task_id: str,
    status: str,
    *,
    request_id: str,
    actor: str,
    expected_revision: int | None = None,
    note: str | None = None,
) -> TaskEvent:
    """Set a task's status for a user. What a user set, no model changes.

    Works while a round is at work. The same request again gets the first answer and changes nothing.

    Args:
        config: From `load_config`.
        task_id: `t_…`.
        status: `completed`, `cancelled` or `open`.
        request_id: Tells this request from every other, for ever; 1 to 256 characters.
        actor: Who wants it, for the history.
        expected_revision: Refuse when the task has another revision.
        note: Why, for the history.

    Returns:
        The event that is published.

    Raises:
        TaskConflict: Another revision than expected, a superseded task, or a request id that asked for
            something else before.
        ChatprocError: Unknown task or status.

    Example:
        >>> event = update_task_status(  # doctest: +SKIP
        ...     config, "t_…", "completed", request_id="r1", actor="me"
        ... )
        >>> event.task["status_by"]  # doctest: +SKIP
        'user'
    """
    wish = _wish(task_id, status, request_id, actor, expected_revision, note)
    return TaskEvent(**_core.update_status(config.storage.state, wish, wall_clock(), config.rules.timezone))


def update_task_priority(  # noqa: PLR0913 - the contract's arguments
    config: Config,
    task_id: str,
    priority: str,
    *,
    request_id: str,
    actor: str,
    expected_revision: int | None = None,
    note: str | None = None,
) -> TaskEvent:
    """Set a task's priority for a user; everything else is as in `update_task_status`.

    Args:
        config: From `load_config`.
        task_id: `t_…`.
        priority: `P0` … `P4`.
        request_id: Tells this request from every other, for ever.
        actor: Who wants it.
        expected_revision: Refuse when the task has another revision.
        note: Why, for the history.
    """
    wish = _wish(task_id, priority, request_id, actor, expected_revision, note)
    return TaskEvent(**_core.update_priority(config.storage.state, wish, wall_clock(), config.rules.timezone))


def _wish(  # noqa: PLR0913, PLR0917 - one for each field
    task_id: str, value: str, request_id: str, actor: str, expected_revision: int | None, note: str | None
) -> Json:
    return {
        "task_id": task_id,
        "value": value,
        "request_id": request_id,
        "actor": actor,
        "expected_revision": expected_revision,
        "note": note,
    }


def _task(row: Json) -> Task:
    return Task(
        task_id=row["task_id"],
        revision=row["revision"],
        updated_at=row["updated"],
        record=row["record"],
        attachments=row["attachments"],
    )


def _several(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
