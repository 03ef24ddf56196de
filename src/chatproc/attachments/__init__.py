"""Attachments of a batch, opened from the archive and given as citable units, page by page.

Read only, and only what lies under the archive root: it must never write, move, execute or follow a link out.
It imports no parser: those run in the reading process (`isolation`, `worker`).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Self

from chatproc.attachments.isolation import Reader
from chatproc.attachments.paging import Extracts, File, Pager, Reading
from chatproc.attachments.units import Limits, Unit, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

__all__ = ["Archive", "Extracts", "Limits", "Reading", "Unit", "UnreadableError"]


class Archive:
    """The files that messages refer to, for one session. Close it, or its reading process stays.

    Args:
        root: `input.archive_root`; `None`: there is none, every attachment is missing.
        limits: What one document and one reading may take.
        extracts: What other sessions of the round extracted.
        reader: The reading process; made from the limits when left out.

    Example:
        >>> Archive(None).read({"name": "a.txt", "type": "txt", "path": "a.txt", "available": True})
        Traceback (most recent call last):
        ...
        chatproc.attachments.units.UnreadableError: missing: no archive_root is configured
    """

    def __init__(
        self,
        root: Path | None,
        limits: Limits | None = None,
        *,
        extracts: Extracts | None = None,
        reader: Reader | None = None,
    ) -> None:
        """Open nothing yet."""
        self._root = root
        limits = limits or Limits()
        self._max_file_mb = limits.max_file_mb
        self._reader = reader or Reader(limits)
        self._pager = Pager(limits, extracts or Extracts(), self._reader)

    def __enter__(self) -> Self:
        """The archive itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End the reading process, also while another thread waits for it: that one gets a `crashed`."""
        self._reader.close()

    def read(self, attachment: Mapping[str, Any], start: int = 1, count: int | None = None) -> Reading:
        """Give some units of one attachment, the same for the same bytes.

        Args:
            attachment: Its entry in the batch: `name`, `type`, `path`, `sha256`, `available`.
            start: The first unit, from 1.
            count: How many at most; as many as a reading may give when left out.

        Raises:
            UnreadableError: It cannot be read; nothing else is raised.
        """
        content = self._bytes(attachment)
        sha256 = hashlib.sha256(content).hexdigest()
        expected = attachment.get("sha256")
        if expected and str(expected).lower() != sha256:
            raise UnreadableError("changed", "the file is not the one that was collected")
        if not content:
            raise UnreadableError("empty", "the file has no bytes")
        named = str(attachment.get("type") or "file").lower()
        return self._pager.read(File(content, sha256, named), start, count)

    def _bytes(self, attachment: Mapping[str, Any]) -> bytes:
        path = attachment.get("path")
        if not path or not attachment.get("available", True):
            raise UnreadableError("missing", "the archive has no file for it")
        if self._root is None:
            raise UnreadableError("missing", "no archive_root is configured")
        try:
            return _read_file(*_inside(self._root, str(path)), self._max_file_mb)
        except (FileNotFoundError, NotADirectoryError):
            raise UnreadableError("missing", "the file is not in the archive") from None
        except OSError as error:
            raise UnreadableError("missing", f"the file cannot be opened ({error.strerror})") from None


def _inside(root: Path, path: str) -> tuple[Path, Path]:
    """The root, and the file that a relative path names seen from there, links followed in both."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise UnreadableError("outside_archive", "its path leaves the archive")
    try:
        resolved_root = root.resolve(strict=True)
        resolved = (resolved_root / path).resolve(strict=True)
    except (RuntimeError, ValueError):
        raise UnreadableError("outside_archive", "its path leads nowhere") from None
    if not resolved.is_relative_to(resolved_root):
        raise UnreadableError("outside_archive", "its path leaves the archive")
    return resolved_root, resolved.relative_to(resolved_root)


def _read_file(root: Path, path: Path, max_file_mb: int) -> bytes:
    """The bytes of a regular file under a root; no pipe or device is waited for."""
    most = max_file_mb * 1024 * 1024
    with open(_opened(root, path), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError("outside_archive", "it is no regular file")
        if status.st_size > most:
            raise UnreadableError("too_large", f"it is larger than {max_file_mb} MB")
        content = file.read(most + 1)
    if len(content) > most:
        raise UnreadableError("too_large", f"it is larger than {max_file_mb} MB")
    return content


def _opened(root: Path, path: Path) -> int:
    """A descriptor of the file, reached folder by folder: a link that came in since then ends it."""
    folder = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    here = os.open(root, folder)
    try:
        for name in path.parts[:-1]:
            above, here = here, os.open(name, folder, dir_fd=here)
            os.close(above)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(path.name or ".", flags, dir_fd=here)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise UnreadableError("outside_archive", "its path leaves the archive") from None
        raise
    finally:
        os.close(here)
