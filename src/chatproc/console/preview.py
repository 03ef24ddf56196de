"""The page of what the next round would send: groups, sizes, price, and the exact request documents."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from chatproc.pipeline import preview

if TYPE_CHECKING:
    from starlette.responses import Response

    from chatproc.config import Config
    from chatproc.console.visit import Visit
    from chatproc.console.works import Work
    from chatproc.results import Preview

LIMITS = (5, 20, 100)

_PATIENCE = 0.1
"""Seconds in which a small project is read, so that its page needs no second look."""


def looked(visit: Visit) -> Response:
    """Look at the next groups; what takes longer is looked at in the background.

    Args:
        visit: The request.
    """
    known = visit.console.works.find(visit.asked("work"))
    if known is None or known.kind != "preview":
        limit = int(visit.asked("limit")) if visit.asked("limit") in map(str, LIMITS) else LIMITS[0]
        known = _start(visit, visit.config, limit)
        if not known.over.wait(_PATIENCE):
            return visit.go(f"/preview?work={known.number}")
    return visit.show(
        "preview.html",
        work=known,
        found=known.result if known.over.is_set() else None,
        limits=LIMITS,
        limit=known.about["limit"],
    )


def _start(visit: Visit, config: Config, limit: int) -> Work:
    async def look(work: Work) -> Preview:
        return await asyncio.to_thread(preview, config, limit=limit, full=True, progress=work.tell)

    return visit.console.works.start("preview", look, limit=limit)
