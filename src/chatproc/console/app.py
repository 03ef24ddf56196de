"""Which path leads to which page, and what a page that fails becomes."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from chatproc.console import connections, coverage, preview, refused, rounds, rules, settings, tasks
from chatproc.console.security import Guarded
from chatproc.console.texts import LANGUAGES
from chatproc.console.visit import LANGUAGE_COOKIE, Console, NotAFormError, Visit
from chatproc.errors import ChatprocError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from chatproc.console.security import Gate
    from chatproc.console.works import Works

    Page = Callable[[Visit], Response]

_log = logging.getLogger(__name__)

_PAGES: dict[str, Page] = {
    "/": tasks.start,
    "/tasks": tasks.listed,
    "/tasks/{task}": tasks.one,
    "/tasks/{task}/evidence/{number}": tasks.evidence,
    "/preview": preview.looked,
    "/rounds": rounds.listed,
    "/works/{number}": rounds.watched,
    "/connections": connections.listed,
    "/refused": refused.listed,
    "/coverage": coverage.shown,
    "/coverage/conversation": coverage.conversation,
    "/rules": rules.edited,
    "/rules/drafts/{number}": rules.looked,
    "/settings": settings.edited,
}
_ACTS: dict[str, Page] = {
    "/tasks/{task}/status": tasks.set_status,
    "/tasks/{task}/priority": tasks.set_priority,
    "/rounds/start": rounds.start,
    "/rounds/stop": rounds.stop,
    "/connections/sync": connections.sync,
    "/refused/{line}/retry": refused.retry,
    "/refused/{line}/discard": refused.discard,
    "/rules/drafts": rules.draft,
    "/rules/drafts/{number}/save": rules.save,
    "/settings": settings.save,
}


def make_app(config_file: Path, gate: Gate, works: Works) -> ASGIApp:
    """The console's application, behind its gate.

    Args:
        config_file: Read again for each request.
        gate: Says who may come in.
        works: What runs in the background.
    """
    console = Console(config_file, gate, works)
    routes: list[Route | Mount] = [
        *(Route(path, _endpoint(console, page), methods=["GET"]) for path, page in _PAGES.items()),
        *(Route(path, _endpoint(console, act), methods=["POST"]) for path, act in _ACTS.items()),
        Route("/language", _endpoint(console, _choose_language), methods=["POST"]),
        Mount("/static", StaticFiles(packages=[("chatproc.console", "static")])),
    ]
    app = Starlette(routes=routes)
    app.add_exception_handler(404, _endpoint(console, _nowhere))
    return Guarded(app, gate)


def _endpoint(console: Console, page: Page) -> Callable[..., Awaitable[Response]]:
    async def answer(request: Request, _error: Exception | None = None) -> Response:
        try:
            visit = await Visit.read(console, request)
        except NotAFormError:
            return PlainTextResponse("This form is not of this console: load the page anew.\n", 403)
        return await run_in_threadpool(_answered, visit, page)

    return answer


def _answered(visit: Visit, page: Page) -> Response:
    """The page, or one that tells why there is none."""
    try:
        return page(visit)
    except (ChatprocError, OSError) as error:
        return visit.fault(error)
    except Exception as error:  # noqa: BLE001 - a fault of ours costs one page
        _log.warning("a page of the console failed: %s", type(error).__name__)
        _log.debug("%s", "".join(traceback.format_exception(error)))
        hint = "this is a fault of chatproc; with -vv the program shows where it came from"
        return visit.fault(ChatprocError(type(error).__name__, hint=hint), status=500)


def _nowhere(visit: Visit) -> Response:
    return visit.show("nowhere.html", status=404)


def _choose_language(visit: Visit) -> Response:
    response = visit.go(visit.field("back"))
    if visit.field("language") in LANGUAGES:
        response.set_cookie(
            LANGUAGE_COOKIE, visit.field("language"), max_age=10**8, httponly=True, samesite="strict"
        )
    return response
