"""`jsonl`: batches of an outside collector, found by globs.

The core reads such files itself and keeps its place in each of them, so there is nothing to pull: a run hands
the globs to the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatproc.config import JsonlConnection
from chatproc.connectors.base import Toolkit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from chatproc.connectors.base import Page, Pull


async def _pull(_: Pull) -> AsyncIterator[Page]:
    """Nothing: the files are the core's."""
    return
    yield  # what makes it an iterator


TOOLKIT = Toolkit("jsonl", 0, JsonlConnection, _pull)
