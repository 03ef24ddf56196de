"""The JSON files of an export that is a folder or a zip archive, read in place.

Nothing is ever unpacked to disk, a name that leads out of the export is no file of it, and an archive that
would grow beyond all measure is refused before it is read.
"""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from chatproc.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from chatproc.importers.pieces import Readable

# JSON of chats packs to a tenth or a thirtieth. Small archives may do better without any harm.
MAX_EXPANSION = 250
FREE_BYTES = 100 << 20
_MAX_MEMBERS = 200_000
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)
_DRIVE = re.compile(r"[A-Za-z]:")
_MAC_EXTRAS = "__MACOSX/"


class Folder:
    """The JSON files of a folder, its own and those one level below."""

    def __init__(self, root: Path) -> None:
        """List them; a link that leads out of the folder is none of them."""
        self.refused: list[tuple[str, str]] = []
        self.files: dict[str, Path] = {}
        inside = root.resolve()
        for file in sorted([*root.glob("*.json"), *root.glob("*/*.json")]):
            name = file.relative_to(root).as_posix()
            if file.is_file() and file.resolve().is_relative_to(inside):
                self.files[name] = file
            elif not file.is_dir():
                self.refused.append((name, "a link that leads out of the export"))

    @property
    def names(self) -> list[str]:
        """Their names, sorted, relative to the folder."""
        return list(self.files)

    @contextmanager
    def open(self, name: str) -> Iterator[Readable]:
        """One of them, open for reading bytes."""
        with self.files[name].open("rb") as file:
            yield file


class Archive:
    """The JSON files of a zip archive, by their names below the folder that has the others in it."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, marks: frozenset[str]) -> None:
        """List them.

        Args:
            path: The archive, for its name and size.
            archive: The same, open.
            marks: Names of files that tell an export; their folder is its root.

        Raises:
            ConfigError: It would grow beyond all measure.
        """
        self.refused: list[tuple[str, str]] = []
        self._archive = archive
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if len(members) > _MAX_MEMBERS or total > FREE_BYTES + MAX_EXPANSION * path.stat().st_size:
            raise ConfigError(
                f"this archive would grow to {total} bytes in {len(members)} files: refused",
                where=str(path),
                hint="if it is a true export, unpack it yourself and give the folder",
            )
        found: dict[str, zipfile.ZipInfo] = {}
        for member in members:
            name = member.filename.replace("\\", "/")
            if member.is_dir() or name.startswith(_MAC_EXTRAS):
                continue
            reason = _unusable(member, name) or ("the name stands twice" if name in found else None)
            if reason is not None:
                self.refused.append((name, reason))
            elif name.endswith(".json"):
                found[name] = member
        prefix = _root(found, marks)
        self._members = {
            name.removeprefix(prefix): member for name, member in found.items() if name.startswith(prefix)
        }
        outside = (name for name in found if not name.startswith(prefix))
        self.refused += [(name, "not in the folder of the export") for name in outside]

    @property
    def names(self) -> list[str]:
        """Their names, sorted, relative to the export's root in the archive."""
        return sorted(self._members)

    @contextmanager
    def open(self, name: str) -> Iterator[Readable]:
        """One of them, open for reading bytes; `ValueError` where it is damaged."""
        with ExitStack() as stack:
            yield _Member(lambda: stack.enter_context(self._archive.open(self._members[name])))


class _Member:
    """A file in an archive, opened when it is first read; what is wrong with it is a `ValueError`."""

    def __init__(self, begin: Callable[[], Readable]) -> None:
        self._begin = begin
        self._file: Readable | None = None

    def read(self, size: int, /) -> bytes:
        try:
            if self._file is None:
                self._file = self._begin()
            return self._file.read(size)
        except _DAMAGE as error:
            raise ValueError(f"the archive is damaged here ({error})") from error


@contextmanager
def opened_archive(path: Path, marks: frozenset[str]) -> Iterator[Archive]:
    """A zip archive as an export.

    Raises:
        ConfigError: It is no zip archive, or one that would grow beyond all measure.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise ConfigError(f"not a zip archive: {error}", where=str(path)) from error
    with archive:
        yield Archive(path, archive, marks)


def _unusable(member: zipfile.ZipInfo, name: str) -> str | None:
    if name.startswith("/") or _DRIVE.match(name) or ".." in name.split("/"):
        return "a name that leads out of the export"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "a link"
    if member.flag_bits & 1:
        return "encrypted"
    if name.lower().endswith(".zip"):
        return "an archive in the archive"
    return None


def _root(names: dict[str, zipfile.ZipInfo], marks: frozenset[str]) -> str:
    """The folder that holds the files that tell an export, the outermost one: `""` or a name with a slash."""
    roots = {name[: -len(mark)] for name in names for mark in marks if name.split("/")[-1] == mark}
    return min(roots, key=lambda root: (root.count("/"), root), default="")
