"""Attachments of a batch, opened from the archive and given as citable units of text.

Read only, and only what lies under the archive root: it must never write, move, execute or follow a link out.
Only plain text is read so far; every other type is refused by name.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from chatproc.attachments.text import NotTextError, blocks, decode

if TYPE_CHECKING:
    from collections.abc import Mapping


class UnreadableError(Exception):
    """One attachment that cannot be read, with the code and the words that the model is told.

    Args:
        code: One of the codes of docs, such as `missing` or `unsupported_type`.
        words: Why, for the model and for a person.
    """

    def __init__(self, code: str, words: str) -> None:
        """Keep both as attributes."""
        super().__init__(f"{code}: {words}")
        self.code = code
        self.words = words


@dataclass(frozen=True, slots=True)
class Unit:
    """One citable piece: `b3` and its text."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Extract:
    """What an attachment says: its units in order, the SHA-256 of its bytes in hex, a note (may be empty)."""

    units: tuple[Unit, ...]
    sha256: str
    note: str


class Archive:
    """The files that messages refer to.

    Args:
        root: `input.archive_root`; `None`: there is none, every attachment is missing.
        max_file_mb: Larger files are refused, in MiB.
        max_chars_per_read: Characters of text that one reading may return.

    Example:
        >>> Archive(None).read({"name": "a.txt", "type": "txt", "path": "a.txt", "available": True})
        Traceback (most recent call last):
        ...
        chatproc.attachments.UnreadableError: missing: no archive_root is configured
    """

    def __init__(self, root: Path | None, *, max_file_mb: int = 50, max_chars_per_read: int = 12_000) -> None:
        """Open nothing yet."""
        self.root = root
        self.max_bytes = max_file_mb * 1024 * 1024
        self.max_chars_per_read = max_chars_per_read

    def read(self, attachment: Mapping[str, Any]) -> Extract:
        """Open one attachment and cut it into units, the same for the same bytes.

        Args:
            attachment: Its entry in the batch: `name`, `type`, `path`, `sha256`, `available`.

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
        kind = str(attachment.get("type") or "file").lower()
        units, note = _units(content, kind)
        return Extract(units, sha256, note)

    def _bytes(self, attachment: Mapping[str, Any]) -> bytes:
        path = attachment.get("path")
        if not path or not attachment.get("available", True):
            raise UnreadableError("missing", "the archive has no file for it")
        if self.root is None:
            raise UnreadableError("missing", "no archive_root is configured")
        try:
            return _read_file(_inside(self.root, str(path)), self.max_bytes)
        except (FileNotFoundError, NotADirectoryError):
            raise UnreadableError("missing", "the file is not in the archive") from None
        except OSError as error:
            raise UnreadableError("missing", f"the file cannot be opened ({error.strerror})") from None


def _inside(root: Path, path: str) -> Path:
    """The file that a relative path names, links followed, certainly under the root."""
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
    return resolved


def _read_file(path: Path, max_bytes: int) -> bytes:
    """The bytes of a regular file; no pipe or device is waited for, no link that came since is followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 - opened by descriptor
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError("outside_archive", "it is no regular file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise UnreadableError("too_large", f"it is larger than {max_bytes // (1024 * 1024)} MB")
    return content


_TEXT_TYPES = frozenset(
    {
        *("txt", "text", "md", "markdown", "rst", "org", "tex", "log", "srt", "vtt", "ics", "vcf"),
        *("csv", "tsv", "json", "jsonl", "ndjson", "yaml", "yml", "toml", "ini", "cfg", "conf", "xml"),
        *("py", "js", "ts", "java", "c", "h", "cpp", "go", "rs", "sql", "sh", "bat", "ps1", "diff", "patch"),
    }
)
"""Names that promise plain text."""

_WRITTEN_AS_TEXT = (
    ("%pdf-", "PDF"),
    ("{\\rtf", "RTF"),
    ("<!doctype html", "HTML"),
    ("<html", "HTML"),
    ("<?mso-application", "Office XML"),
    ("<svg", "an SVG image"),
)
"""Formats that may consist of readable characters and are no plain text all the same."""

_BINARY = (
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "a zip package (DOCX, XLSX, PPTX, ZIP)"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF file (WebP, WAV, AVI)"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\x1f\x8b", "a gzip file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
)
"""Names for content that turned out not to be text."""


def _units(content: bytes, kind: str) -> tuple[tuple[Unit, ...], str]:
    """The blocks of a plain text, by content first and name second."""
    try:
        text, note = decode(content)
    except NotTextError:
        found = next((name for magic, name in _BINARY if content.startswith(magic)), "no plain text")
        raise _other_type(kind, found) from None
    opening = text[:1024].lower()
    for mark, name in _WRITTEN_AS_TEXT:
        if opening.lstrip().startswith(mark) or (kind not in _TEXT_TYPES and mark in opening):
            raise _other_type(kind, name)
    if kind in {"html", "htm"}:
        raise _other_type(kind, "HTML")
    pieces = blocks(text)
    if not pieces:
        raise UnreadableError("empty", "the file has no text")
    if kind not in _TEXT_TYPES and kind != "file":
        note = f"Named {_plain(kind)}, its content is plain text. {note}".strip()
    units = tuple(Unit(f"b{number}", piece) for number, piece in enumerate(pieces, start=1))
    return units, note


def _other_type(kind: str, found: str) -> UnreadableError:
    if kind in _TEXT_TYPES:
        return UnreadableError("type_mismatch", f"named {kind}, but the content is {found}")
    what = found if kind == "file" else f"files of type {_plain(kind)}"
    return UnreadableError("unsupported_type", f"{what} cannot be read by this version")


def _plain(kind: str) -> str:
    """A type as the document shows it, fit for a sentence."""
    return kind if kind.isalnum() and kind.isascii() and len(kind) <= 10 else "unknown"  # noqa: PLR2004
