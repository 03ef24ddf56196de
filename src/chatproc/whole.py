"""Files that are there whole or not at all: written under a hidden name beside their place, then renamed.

Whoever is killed cannot clear up. A lock on the hidden file goes with its writer, so one that nobody holds is
a dead program's. It must never touch a file that is being written, or one of another name or user.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from _typeshed import ReadableBuffer

_PREFIX = ".chatproc-"
_SUFFIX = ".tmp"
_NAME = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}" + re.escape(_SUFFIX))


@contextmanager
def whole_file(path: Path, *, new: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, which takes its place at the end; after an error there is none.

    It is readable by its owner alone, and lasts through a power cut.

    Args:
        path: Its place.
        new: Never replace a file that is there: a `FileExistsError` at the end.
    """
    descriptor, temporary = _held(path.parent)
    try:
        with io.BufferedWriter(_Named(descriptor, path)) as file:
            yield file
            file.flush()
            with _naming(path):
                os.fsync(file.fileno())
            # Before it is closed: the lock ends with that.
            if new:
                _link(temporary, path)
            else:
                temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


class _Named(io.FileIO):
    """An open file whose errors name its place; the system's do not."""

    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, "wb")
        self._path = path

    def write(self, content: ReadableBuffer, /) -> int:
        with _naming(self._path):
            return super().write(content)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _link(temporary: Path, path: Path) -> None:
    """Give the file its name unless there is one of that name."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links; between this look and the renaming is the only gap.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        temporary.replace(path)
    else:
        temporary.unlink()


def clear_abandoned(folder: Path) -> None:
    """Remove what programs left behind in a folder when they were killed."""
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            if _NAME.fullmatch(file.name):
                with contextlib.suppress(OSError):
                    _clear_abandoned(file)


def _held(folder: Path) -> tuple[int, Path]:
    """A new hidden file, open, that no other program takes for a dead one's."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=_PREFIX, suffix=_SUFFIX)
        # Where files cannot be locked, they cannot be cleared by others either.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_at(Path(name), descriptor):
            return descriptor, Path(name)
        os.close(descriptor)


def _clear_abandoned(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_uid == os.geteuid() and _is_at(file, descriptor):
            file.unlink()
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _sync(folder: Path) -> None:
    """Make a rename in it last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
