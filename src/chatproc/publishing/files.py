"""Replacing a file as a whole: readers see the old or the new one, and whoever may read it still may."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from chatproc.whole import clear_abandoned, whole_file

if TYPE_CHECKING:
    from pathlib import Path


def content_of(file: Path) -> bytes | None:
    """What is in a file; `None` where there is none."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


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
