"""The page of what was not taken in or does not fit: quarantined lines and oversized segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatproc.console.visit import number_of
from chatproc.refused import discard_quarantined, quarantine, retry_quarantined
from chatproc.store import status

if TYPE_CHECKING:
    from starlette.responses import Response

    from chatproc.console.visit import Visit

_PAGE = 50


def listed(visit: Visit) -> Response:
    """Refused lines page by page, and every oversized segment.

    Args:
        visit: The request.
    """
    config = visit.config
    lines = quarantine(config)
    begin = number_of(visit.asked("from")) or 0
    return visit.show(
        "refused.html",
        lines=[line.to_dict() for line in lines[begin : begin + _PAGE]],
        total=len(lines),
        begin=begin,
        next_begin=begin + _PAGE if begin + _PAGE < len(lines) else None,
        oversized=status(config).document["oversized"],
    )


def retry(visit: Visit) -> Response:
    """Take a line in again.

    Args:
        visit: The request.
    """
    answer = retry_quarantined(visit.config, number_of(visit.place("line")) or 0)
    return visit.go(visit.field("back"), f"retry_{answer['outcome']}")


def discard(visit: Visit) -> Response:
    """Take a line off the list for good.

    Args:
        visit: The request.
    """
    discard_quarantined(visit.config, number_of(visit.place("line")) or 0)
    return visit.go(visit.field("back"), "discarded")
