"""The pages of coverage: what became of every message, by counts, by conversation and message by message."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from chatproc.console.visit import number_of
from chatproc.excerpt import read_excerpts
from chatproc.store import coverage, list_conversations, status

if TYPE_CHECKING:
    from starlette.responses import Response

    from chatproc.console.visit import Visit

_AROUND = 6
_CONVERSATIONS = 25
_MESSAGES = 50


def shown(visit: Visit) -> Response:
    """The ledger's counts and the conversations; with a message's key its way, and those around it.

    Args:
        visit: The request.
    """
    config = visit.config
    key = visit.asked_exactly("key")
    excerpt = read_excerpts(config, [key], around=_AROUND)[0] if key else None
    ways = [] if excerpt is None else [way.document for way in excerpt.ways]
    query, after = visit.asked("q"), number_of(visit.asked("after"))
    return visit.show(
        "coverage.html",
        store=status(config).document,
        key=key,
        excerpt=excerpt,
        ways=ways,
        way=next((way for way in ways if way["message_key"] == key), None),
        counted=Counter(way["outcome"] for way in ways),
        found=list_conversations(config, query=query or None, limit=_CONVERSATIONS, after=after),
        q=query,
        is_first=after is None,
    )


def conversation(visit: Visit) -> Response:
    """One conversation page by page: its counts, each a filter, and its messages with what became of them.

    Args:
        visit: The request.
    """
    names = {name: visit.asked_exactly(name) for name in ("platform", "account_id", "id")}
    outcome, after = visit.asked("outcome"), visit.asked_exactly("after")
    return visit.show(
        "conversation.html",
        ledger=coverage(
            visit.config,
            names["platform"],
            names["account_id"],
            names["id"],
            outcome=outcome or None,
            limit=_MESSAGES,
            after=after or None,
        ),
        names=names,
        outcome=outcome,
        is_first=not after,
    )
