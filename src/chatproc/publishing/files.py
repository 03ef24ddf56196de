"""Replacing a file as a whole: readers see the old or the new one, and whoever may read it still may."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from chatproc.whole import clear_abandoned, whole_file

if TYPE_CHECKING:
    from pathlib import Path


def content_of(file: Path) -> bytes | None:
    """What is in a file; `None` where there is none.

    Raises:
        OSError: It cannot be read, or is a pipe or a device, which may have no end.
    """
    try:
        with open(file, "rb", opener=_without_waiting) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a file that can be replaced", str(file))
            return opened.read()
    except FileNotFoundError:
        return None


def _without_waiting(name: str, flags: int) -> int:
    """Open; of a pipe nobody may ever write the other end."""
    return os.open(name, flags | os.O_NONBLOCK)


def replace(file: Path, content: bytes) -> None:
    """Put a file in the place of another; a link stays one, a new file is its owner's alone.

    Raises:
        OSError: It cannot be written; the old one stands.
    """
    place = file.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    clear_abandoned(place.parent)
    with whole_file(place) as opened:
        if place.exists():
            os.fchmod(opened.fileno(), stat.S_IMODE(place.stat().st_mode))
        opened.write(content)
