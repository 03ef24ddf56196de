"""The page of coverage: what became of every message, by counts, and message by message in a conversation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from chatproc.excerpt import read_excerpts
from chatproc.store import status

if TYPE_CHECKING:
    from starlette.responses import Response

    from chatproc.console.visit import Visit

_AROUND = 6


def shown(visit: Visit) -> Response:
    """The ledger's counts; with a message's key that message's way, and those before and after it.

    Args:
        visit: The request.
    """
    config = visit.config
    key = visit.asked("key")
    excerpt = read_excerpts(config, [key], around=_AROUND)[0] if key else None
    ways = [] if excerpt is None else [way.document for way in excerpt.ways]
    return visit.show(
        "coverage.html",
        store=status(config).document,
        key=key,
        excerpt=excerpt,
        ways=ways,
        way=next((way for way in ways if way["message_key"] == key), None),
        counted=Counter(way["outcome"] for way in ways),
    )
