"""Watches the folders of batch files, so that a new one wakes the loop at once.

A tick reads them all the same: where watching is not possible, files only wait longer.
"""

from __future__ import annotations

import asyncio
import fnmatch
import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chatproc.config import Config
    from chatproc.loop.ticks import Loop

    Folders = dict[str, tuple[int, int]]

_GLOB = frozenset("*?[")
_DEBOUNCE_MS = 400
_TRY_AGAIN = 60.0

_log = logging.getLogger(__name__)


class Watch:
    """Nudges what a changed file concerns.

    Args:
        loop: Whose configuration counts, and who is woken.
    """

    def __init__(self, loop: Loop) -> None:
        """Nothing is watched yet."""
        self._loop = loop
        self._watched: Folders = {}
        self._changed = asyncio.Event()

    def look_again(self) -> None:
        """Follow the configuration, and folders that came, went or were replaced."""
        if folders_of(self._loop.config) != self._watched:
            self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._changed.clear()
            self._watched = folders_of(self._loop.config)
            if not self._watched:
                await self._changed.wait()
                continue
            # What came while no one watched.
            self._loop.want_round()
            try:
                await self._watch()
            except Exception as error:  # noqa: BLE001 - the library's own classes; ticks go on
                _log.warning("folders cannot be watched, files wait for the tick: %s", error)
                await asyncio.sleep(_TRY_AGAIN)

    async def _watch(self) -> None:
        from watchfiles import awatch

        async for changes in awatch(
            *self._watched,
            watch_filter=None,
            debounce=_DEBOUNCE_MS,
            stop_event=self._changed,
        ):
            self._wake({path for _, path in changes})

    def _wake(self, paths: Iterable[str]) -> None:
        config = self._loop.config
        batches = [path for path in paths if not _is_own(config, path)]
        if _any_matches(batches, config.input.paths):
            self._loop.want_round()
        for connection in config.connections:
            if _any_matches(batches, getattr(connection, "paths", ())):
                self._loop.nudge(connection.toolkit, connection.id, "watch")


def folders_of(config: Config) -> Folders:
    """The folders to watch that are there, each with what tells it from a later one of its name.

    Args:
        config: Says where batches lie, and whether to watch at all.
    """
    if not config.schedule.watch:
        return {}
    found: Folders = {}
    for pattern in _patterns(config):
        folder = _fixed_part(pattern)
        try:
            status = folder.stat()
        except OSError:
            continue
        found[str(folder)] = (status.st_dev, status.st_ino)
    return found


def _patterns(config: Config) -> list[str]:
    patterns = list(config.input.paths)
    for connection in config.connections:
        if connection.toolkit == "jsonl" and connection.enabled:
            patterns += connection.model_dump()["paths"]
    return patterns


def _fixed_part(pattern: str) -> Path:
    """The folder in which a glob begins to be one; for a plain file the folder that holds it."""
    path = Path(pattern)
    parts = []
    for part in path.parts:
        if _GLOB & set(part.replace("[[]", "")):
            break
        parts.append(part.replace("[[]", "["))
    fixed = Path(*parts)
    return fixed.parent if len(parts) == len(path.parts) and not fixed.is_dir() else fixed


def _is_own(config: Config, path: str) -> bool:
    """What this program or a collector in the middle of a file writes: waking for it would never end."""
    there = Path(path)
    own = there.is_relative_to(config.storage.output) or path.startswith(str(config.storage.state))
    return own or there.suffix == ".tmp" or there.name.startswith(".")


def _any_matches(paths: Iterable[str], globs: Iterable[str]) -> bool:
    """Whether a path may belong to a glob; a star that reaches too far only costs a look."""
    wide = [glob.replace("**/", "*") for glob in globs]
    return any(
        fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(path, f"{glob}/*")
        for path in paths
        for glob in wide
    )
