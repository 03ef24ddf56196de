"""A connector whose sources are functions of the test, found as any other: through its entry point."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal

from chatproc.config import ConnectionConfig
from chatproc.connectors.base import Page, Pull, Toolkit
from tests.project import START, event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

SOURCES: dict[str, Callable[[Pull], AsyncIterator[Page]]] = {}
"""By the id of the connection."""


class ScriptedConnection(ConnectionConfig):
    toolkit: Literal["scripted"]


async def _pull(ask: Pull) -> AsyncIterator[Page]:
    async with contextlib.aclosing(SOURCES[ask.config.id](ask)) as pages:  # type: ignore[type-var]
        async for page in pages:
            yield page


TOOLKIT = Toolkit("scripted", 60, ScriptedConnection, _pull)


def installed(folder: Path) -> Path:
    """What an installer writes for it."""
    about = folder / "scripted-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[chatproc.connectors]\nscripted = tests.scripted:TOOLKIT\n")
    return folder


def message(source: str, number: int) -> dict[str, Any]:
    """The n-th message of a source, in a conversation of its own: no message is like another."""
    key = f"{source}-{number}"
    return event(key, f"消息 {number}", conversation=key, sent_at=START + number % 1_000_000)
