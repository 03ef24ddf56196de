"""The private folder of a reading process: held by a lock as long as the program lives, cleared by the next.

Whoever is killed cannot clear up. The lock goes with its holder, so a folder that nobody holds is a dead
program's. It must never touch a folder of another user, of a living program, or of another name.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path

_PREFIX = "chatproc-reading-process-"
_NAME = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Scratch:
    """A new folder that only this user can enter, in the system's place for such.

    Example:
        >>> scratch = Scratch()
        >>> (scratch.path / "x").touch()
        >>> scratch.clear()
        >>> scratch.path.exists()
        False
    """

    def __init__(self) -> None:
        """Make it, and hold it."""
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))  # 0700
            try:
                self._folder = os.open(self.path, _FOLDER)
            except FileNotFoundError:
                continue  # another program took it for a dead one's before it was held
            # Where folders cannot be locked, they cannot be cleared by others either.
            with contextlib.suppress(OSError):
                fcntl.flock(self._folder, fcntl.LOCK_EX)
            if _is_at(self.path, self._folder):
                return
            os.close(self._folder)

    def clear(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._folder)


def clear_abandoned() -> None:
    """Remove the folders that programs left behind when they were killed."""
    with contextlib.suppress(OSError):
        for place in Path(tempfile.gettempdir()).iterdir():
            if _NAME.fullmatch(place.name):
                with contextlib.suppress(OSError):
                    _clear_abandoned(place)


def _clear_abandoned(place: Path) -> None:
    folder = os.open(place, _FOLDER)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(folder).st_uid == os.geteuid() and _is_at(place, folder):
            shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(folder)


def _is_at(path: Path, folder: int) -> bool:
    """Whether an open folder is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(folder), path.lstat())
    except FileNotFoundError:
        return False
