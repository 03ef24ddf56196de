"""The pages of tasks: the list with its filters, one task with what it rests on, a user's changes to it."""

from __future__ import annotations

import getpass
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from chatproc.console.shown import now_in
from chatproc.console.visit import number_of
from chatproc.errors import ChatprocError, TaskConflict
from chatproc.evidence import read_evidence
from chatproc.excerpt import read_excerpts
from chatproc.tasks import get_task, list_tasks, task_history, update_task_priority, update_task_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.responses import Response

    from chatproc.console.visit import Visit
    from chatproc.results import Task, TaskRevision

    Json = dict[str, Any]

STATUSES = ("open", "completed", "cancelled", "superseded")
PRIORITIES = ("P0", "P1", "P2", "P3", "P4")
SORTS = ("due", "priority", "updated", "created")

_PAGE = 25
_EXCERPTS = 3
"""Sources of one task that are shown with what was said around them; the others are shown alone."""
_OTHERS = 100
"""Of those so many on a page."""
_NO_FIELDS_OF_A_CHANGE = {"processing", "context", "sources", "needs_review", "review_reasons"}


# ── the list ─────────────────────────────────────────────────────────────────────────────────────────


def start(visit: Visit) -> Response:
    """Where the console begins.

    Args:
        visit: The request.
    """
    return visit.go("/tasks")


def listed(visit: Visit) -> Response:
    """Tasks that pass the filters, page by page; with the first order what is overdue and due today first.

    Args:
        visit: The request.
    """
    config = visit.config
    now = now_in(config.rules.timezone)
    filters = _filters(visit)
    page = list_tasks(config, **_wanted(filters, now), limit=_PAGE, cursor=visit.asked("cursor") or None)
    terms = [
        {"name": name, "total": list_tasks(config, status="open", limit=1, **_term(name, now)).total}
        for name in ("overdue", "today", "week", "")
    ]
    return visit.show(
        "tasks.html",
        tasks=[_row(task, now) for task in page],
        total=page.total,
        at_least=page.at_least,
        next_cursor=page.next_cursor,
        is_first=not visit.asked("cursor"),
        filters=filters,
        is_filtered=any(filters[name] for name in ("q", "priority", "people", "platform", "conversation")),
        terms=terms,
        now=now,
        statuses=STATUSES,
        priorities=PRIORITIES,
        sorts=SORTS,
        new_request=lambda: str(uuid.uuid4()),
    )


def _filters(visit: Visit) -> Json:
    """What the address says, in terms of the form; what no form says is left out."""
    statuses = [status for status in visit.all_asked("status") if status in STATUSES]
    sort = visit.asked("sort")
    return {
        "q": visit.asked("q"),
        "term": visit.asked("term"),
        "status": statuses or ["open"],
        "priority": [priority for priority in visit.all_asked("priority") if priority in PRIORITIES],
        "people": visit.asked("people"),
        "platform": visit.asked("platform"),
        "conversation": visit.asked("conversation"),
        "sort": sort if sort in SORTS else "due",
    }


def _wanted(filters: Json, now: datetime) -> Json:
    return {
        "status": filters["status"],
        "priority": filters["priority"],
        "query": filters["q"] or None,
        "people": filters["people"] or None,
        "platform": filters["platform"] or None,
        "conversation": filters["conversation"] or None,
        "sort": filters["sort"],
        **_term(filters["term"], now),
    }


def _term(name: str, now: datetime) -> Json:
    """The filter of due times behind a name."""
    today = now.date()
    before = (now - timedelta(seconds=1)).isoformat()
    return {
        "overdue": {"due_to": before},
        "today": {"due_from": now.isoformat(), "due_to": today.isoformat()},
        "week": {"due_from": now.isoformat(), "due_to": (today + timedelta(days=7)).isoformat()},
    }.get(name, {})


def _row(task: Task, now: datetime) -> Json:
    return {"task": task, "term": term_of(task, now)}


def term_of(task: Task, now: datetime) -> str:
    """`overdue`, `today`, `later`, `undated`, or `over` of a task that is none any more.

    Args:
        task: As it is now.
        now: In the zone of the rules.
    """
    if task.status != "open":
        return "over"
    if task.due is None:
        return "undated"
    if len(task.due) == len("2026-07-01"):
        is_past = task.due < now.date().isoformat()
    else:
        is_past = datetime.fromisoformat(task.due) < now
    if is_past:
        return "overdue"
    return "today" if task.due[:10] == now.date().isoformat() else "later"


# ── one task ─────────────────────────────────────────────────────────────────────────────────────────


def one(visit: Visit) -> Response:
    """A task with its sources as they stand in their conversations, its evidence and its history.

    Args:
        visit: The request.
    """
    config = visit.config
    task = get_task(config, visit.place("task"))
    now = now_in(config.rules.timezone)
    sources = {source["message_key"]: source for source in task.sources}
    excerpts = read_excerpts(config, list(sources)[:_EXCERPTS])
    shown = {way.document["message_key"] for excerpt in excerpts for way in excerpt.ways}
    others = [source for key, source in sources.items() if key not in shown]
    page = number_of(visit.asked("sources")) or 1
    return visit.show(
        "task.html",
        task=task,
        record=task.record,
        term=term_of(task, now),
        now=now,
        excerpts=excerpts,
        sources=sources,
        others=others[(page - 1) * _OTHERS : page * _OTHERS],
        total_others=len(others),
        page=page,
        has_next=page * _OTHERS < len(others),
        evidence=_evidence(task),
        history=_history(task_history(config, task.task_id)),
        priorities=PRIORITIES,
        new_request=lambda: str(uuid.uuid4()),
    )


def _evidence(task: Task) -> list[Json]:
    """Each unit of an attachment that was read and cited, with what is quoted from it."""
    quotes = [quote for source in task.sources for quote in source["quotes"]]
    return [
        {
            **unit,
            "number": number,
            "quotes": [
                quote["text"]
                for quote in quotes
                if (quote["attachment_id"], quote["unit"]) == (unit["attachment_id"], unit["unit"])
            ],
        }
        for number, unit in enumerate(task.record["attachment_evidence"], 1)
    ]


def evidence(visit: Visit) -> Response:
    """A page of an attachment that a task rests on, with what is quoted from it.

    Args:
        visit: The request.
    """
    config = visit.config
    task = get_task(config, visit.place("task"))
    number = number_of(visit.place("number")) or 0
    page = read_evidence(config, task, number)
    return visit.show("evidence.html", task=task, page=page, quotes=_evidence(task)[number - 1]["quotes"])


def _history(revisions: Iterable[TaskRevision]) -> list[Json]:
    """Revisions with what each changed, the newest first."""
    told: list[Json] = []
    before: Json = {}
    for revision in revisions:
        changes = [
            {"field": field, "before": before.get(field), "after": value}
            for field, value in revision.task.items()
            if before and field not in _NO_FIELDS_OF_A_CHANGE and before.get(field) != value
        ]
        told.append({"revision": revision, "changes": changes})
        before = revision.task
    return told[::-1]


# ── a user's changes ─────────────────────────────────────────────────────────────────────────────────


def set_status(visit: Visit) -> Response:
    """Complete, cancel or reopen a task.

    Args:
        visit: The request.
    """
    status = visit.field("status")
    update_task_status(visit.config, visit.place("task"), status, **_change(visit))
    return visit.go(visit.field("back"), {"open": "reopened"}.get(status, status))


def set_priority(visit: Visit) -> Response:
    """Set how urgent a task is.

    Args:
        visit: The request.
    """
    update_task_priority(visit.config, visit.place("task"), visit.field("priority"), **_change(visit))
    return visit.go(visit.field("back"), "prioritised")


def _change(visit: Visit) -> Json:
    """Who changes what: a form is one request, however often it is sent."""
    revision = number_of(visit.field("revision"))
    if revision is None:
        raise TaskConflict("the form does not say which revision of the task it changes")
    return {
        "request_id": f"console:{visit.field('request')}",
        "actor": _user(),
        "expected_revision": revision,
        "note": visit.field("note").strip() or None,
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise ChatprocError("this system has no name for you", hint="set the variable LOGNAME") from None
