"""The page of connections: how each stands, why it is not synced now, and a sync at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import unquote

from chatproc.schedule import connections, sync_connections

if TYPE_CHECKING:
    from starlette.responses import Response

    from chatproc.console.visit import Visit
    from chatproc.console.works import Work
    from chatproc.results import SyncReport


def listed(visit: Visit) -> Response:
    """Every configured connection.

    Args:
        visit: The request.
    """
    works = visit.console.works.of("sync")
    return visit.show(
        "connections.html",
        states=connections(visit.config).connections,
        running=next((work for work in works if not work.over.is_set()), None),
        works=[work for work in works if work.over.is_set()][:5],
    )


def sync(visit: Visit) -> Response:
    """Sync one connection now.

    Args:
        visit: The request.
    """
    config = visit.config
    name, force = unquote(visit.field("connection")), visit.field("force") == "yes"

    async def work_through(_work: Work) -> SyncReport:
        return await asyncio.to_thread(sync_connections, config, name, force=force)

    visit.console.works.start("sync", work_through, connection=name)
    return visit.go("/connections")
