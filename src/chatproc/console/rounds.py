"""The page of rounds: start one, watch it, stop it, and what came of those before.

A round that is started here is the round of `chatproc once`, by the same function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from chatproc.pipeline import arun_round
from chatproc.store import status

if TYPE_CHECKING:
    from starlette.responses import Response

    from chatproc.console.visit import Visit
    from chatproc.console.works import Work
    from chatproc.results import RoundReport


def listed(visit: Visit) -> Response:
    """The round at work, those of this console, and the last one of all.

    Args:
        visit: The request.
    """
    config = visit.config
    rounds = visit.console.works.of("round")
    return visit.show(
        "rounds.html",
        rounds=rounds,
        running=next((work for work in rounds if not work.over.is_set()), None),
        store=status(config).document,
        timezone=config.rules.timezone,
        is_configured=config.agent.is_configured,
    )


def start(visit: Visit) -> Response:
    """Start a round; while one of this console is at work, that is the one.

    Args:
        visit: The request.
    """
    config = visit.config

    async def work_through(work: Work) -> RoundReport:
        return await arun_round(config, progress=work.tell)

    visit.console.works.start("round", work_through)
    return visit.go("/rounds")


def stop(visit: Visit) -> Response:
    """Stop the round at work; what it committed stays.

    Args:
        visit: The request.
    """
    for work in visit.console.works.of("round"):
        if not work.over.is_set():
            work.stop()
    return visit.go("/rounds", "stopping")


def watched(visit: Visit) -> Response:
    """How far a work is, for the script of a page that shows it.

    Args:
        visit: The request.
    """
    work = visit.console.works.find(visit.place("number"))
    return JSONResponse({"over": True} if work is None else work.to_dict(), 404 if work is None else 200)
