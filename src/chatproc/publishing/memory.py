"""What was published to a list, so that what a person deleted there is not written again.

A small file beside the store, one a target, replaced as a whole. It is a memory and no truth: where it is
lost, the list is read anew, and what was deleted there comes back once.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from chatproc.publishing.files import content_of, replace

if TYPE_CHECKING:
    from pathlib import Path

    from chatproc.config import CaldavTarget, Config

_LENGTH = 16
_FORM = "chatproc.published/1"


def mark(etag: str) -> str:
    """By what a version on the server is known again; nothing that a server says is kept as it is.

    Args:
        etag: As the server gave it; without one there is no mark.
    """
    return hashlib.sha256(etag.encode()).hexdigest()[:_LENGTH] if etag else ""


class Memory:
    """The revision and the mark of each task that stands, or stood, on a list.

    Args:
        config: Says where the store lies.
        target: Whose; another address has another memory.
    """

    def __init__(self, config: Config, target: CaldavTarget) -> None:
        """Read it."""
        self._file: Path = config.storage.state.parent / "published" / f"{target.name}.json"
        self._url = target.url
        self.tasks: dict[str, tuple[int, str]] = dict(self._read())
        self._kept = dict(self.tasks)

    def keep(self) -> None:
        """Write it, if it changed."""
        if self.tasks == self._kept:
            return
        document = {"schema": _FORM, "url": self._url, "tasks": self.tasks}
        replace(self._file, f"{json.dumps(document)}\n".encode())
        self._kept = dict(self.tasks)

    def _read(self) -> dict[str, tuple[int, str]]:
        try:
            document = json.loads(content_of(self._file) or b"{}")
            if document.get("schema") != _FORM or document.get("url") != self._url:
                return {}
            return {
                task_id: (revision, known)
                for task_id, (revision, known) in document["tasks"].items()
                if re.fullmatch("t_[a-z2-7]{26}", task_id)
                and isinstance(revision, int)
                and isinstance(known, str)
            }
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            return {}
