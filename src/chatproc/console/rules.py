"""The pages of the rules: edit, look at what an edit would change and cost, save.

A draft is kept by the console until it is saved; the file changes only with the last step.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatproc.console.shown import diff_of
from chatproc.edits import read_rules_text, save_rules
from chatproc.errors import ChatprocError, FileChangedError
from chatproc.pipeline import preview

if TYPE_CHECKING:
    from starlette.responses import Response

    from chatproc.config import Config
    from chatproc.console.visit import Visit
    from chatproc.console.works import Work

_LOOKED_AT = 200
"""Groups whose price is counted; where more would be pending, the rest is reckoned from these."""


@dataclass(frozen=True)
class Consequence:
    """What a draft would make pending, beside what is pending now."""

    pending_now: int
    pending_then: int
    price_now: float | None
    price_then: float | None
    tokens_then: float | None
    is_reckoned: bool
    """Whether there are too many groups to have looked at each."""


def edited(visit: Visit) -> Response:
    """The rules in a field.

    Args:
        visit: The request.
    """
    file = read_rules_text(visit.config.rules.file)
    draft = visit.console.works.find(visit.asked("draft"))
    text = draft.about["text"] if draft is not None and draft.kind == "rules" else file.text
    return visit.show("rules.html", file=file, text=text)


def draft(visit: Visit) -> Response:
    """Keep a draft, and find out in the background what it would change.

    Args:
        visit: The request.
    """
    config = visit.config
    text = visit.field("text").replace("\r\n", "\n")

    async def find_out(work: Work) -> Consequence:
        return await asyncio.to_thread(_consequence, config, text, work)

    work = visit.console.works.start("rules", find_out, text=text, sha256=visit.field("sha256"))
    work.over.wait(0.1)
    return visit.go(f"/rules/drafts/{work.number}")


def _consequence(config: Config, text: str, work: Work) -> Consequence:
    now = preview(config, limit=_LOOKED_AT, progress=work.tell)
    then = preview(config, limit=_LOOKED_AT, rules=text, progress=work.tell)
    return Consequence(
        pending_now=now.pending,
        pending_then=then.pending,
        price_now=_of_all([group["estimated_price"] for group in now.groups], now.pending),
        price_then=_of_all([group["estimated_price"] for group in then.groups], then.pending),
        tokens_then=_of_all([group["estimated_tokens"] for group in then.groups], then.pending),
        is_reckoned=then.pending > len(then.groups) or now.pending > len(now.groups),
    )


def _of_all(parts: list[float | None], pending: int) -> float | None:
    """The sum of a count over all pending groups, the unseen ones taken for average; `None`: not known."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return round(sum(known) * pending / len(known), 4) if known else 0.0


def looked(visit: Visit) -> Response:
    """A draft against the file as it is now, and what it would make pending.

    Args:
        visit: The request.
    """
    work = _draft(visit)
    file = read_rules_text(visit.config.rules.file)
    return visit.show(
        "draft.html",
        work=work,
        file=file,
        diff=diff_of(file.text, work.about["text"]),
        is_conflict=file.sha256 != work.about["sha256"],
        found=work.result if work.over.is_set() else None,
    )


def save(visit: Visit) -> Response:
    """Save a draft over the file that its look showed; where that changed since, look again.

    Args:
        visit: The request.
    """
    work = _draft(visit)
    file, text = visit.config.rules.file, work.about["text"]
    try:
        save_rules(file, text, expected_sha256=visit.field("sha256"))
    except FileChangedError:
        if read_rules_text(file).text != text:  # else the button was pressed twice
            return visit.go(f"/rules/drafts/{work.number}")
    return visit.go("/rules", "rules_saved")


def _draft(visit: Visit) -> Work:
    work = visit.console.works.find(visit.place("number"))
    if work is None or work.kind != "rules":
        raise ChatprocError("this draft is not kept any more", hint="begin again on the page of the rules")
    return work
