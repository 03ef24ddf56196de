"""What all importers share: one message as understood from an export, and the reading of exports.

An importer is a small module that finds its exports under a path and turns each into `Message`s. Their keys
are made in `keys`, their events in `events`, the batch in `batch`. Never opens a chat program's database and
never guesses one message into another.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from chatproc.importers.pieces import CHUNK_BYTES, as_utf8, lines, loads, pieces
from chatproc.importers.report import ImportReport, Notes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path
    from zoneinfo import ZoneInfo

    from chatproc.errors import ConfigError
    from chatproc.importers.pieces import Piece, Readable

DateOrder = Literal["dmy", "mdy", "ymd"]


@dataclass(frozen=True, slots=True)
class Source:
    """One export: what becomes one batch file.

    Attributes:
        name: How it is named to a person: its file or folder name.
        root: The folder that attachment paths in it count from.
        files: The files that hold its messages and its description, in reading order.
    """

    name: str
    root: Path
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation as an export names it; `account` is the collecting account, `""` when unknown."""

    platform: str
    account: str
    id: str
    name: str | None
    type: Literal["group", "private", "channel", "thread", "mailbox", "unknown"]


@dataclass(slots=True, kw_only=True)
class Message:
    """One revision of one message as an importer understood it; `event` makes the event of it.

    Attributes:
        sent_at: Milliseconds since the epoch.
        index: Its place in the conversation. `None`: no place is known, it gets no sequence at all.
        predecessor: Key of the message just before it where that is proven, else `None`.
        reach: Where an export that begins earlier may know better which is the one before it: how far
            before it this one begins, in milliseconds. `None`: there is no doubt.
        source: Provenance beyond module, file and line.
    """

    conversation: Conversation
    key: str
    sent_at: int
    line: int
    file: str
    text: str
    message_id: str | None = None
    revision: int = 0
    state: Literal["normal", "edited", "recalled"] = "normal"
    kind: Literal["message", "system"] = "message"
    sender_id: str | None = None
    sender_name: str | None = None
    role: Literal["user", "self", "bot", "system", "unknown"] = "user"
    mentions: list[dict[str, Any]] = field(default_factory=list)
    reply_to: str | None = None
    attachments: list[dict[str, Any]] = field(default_factory=list)
    index: int | None = None
    predecessor: str | None = None
    reach: int | None = None
    source: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where one object of a chat program came from: a file of an export, or a page of a program's API.

    The functions that turn one object into a message take it, so that an import and a pull of the same
    message tell the same.

    Attributes:
        note: Told why the object gave no or not its whole message.
        attach: Makes an attachment of what the object says of it: `declared_attachment` where no file can
            be had, else it looks for the file.
        file: Name of the file, `""` for a page.
        line: Its line in the file.
    """

    note: Callable[[str], None]
    attach: Callable[..., dict[str, Any]]
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Format:
    """One importer: its name on the command line and its two functions.

    Attributes:
        name: As in `chatproc import NAME`.
        find: The exports at a path; raises `ConfigError` when there is none.
        read: The messages of one export.
        looks_for: What tells an export of this format, for a person: ``a folder with users.json``.
        recognizes: Whether a file or folder is surely an export of this format, by its content; reads no
            more of a file than its beginning.
    """

    name: str
    find: Callable[[Path], list[Source]]
    read: Callable[[Source, Reading], Iterator[Message]]
    looks_for: str
    recognizes: Callable[[Path], bool]


class Reading:
    """The settings of an import and what it noticed so far; one object for all files of one call."""

    def __init__(  # noqa: PLR0913 - each a setting of the command
        self,
        *,
        account: str,
        timezone: ZoneInfo,
        complete: bool,
        date_order: DateOrder | None,
        archive_root: Path | None,
        progress: Callable[[str, int, int], None] | None,
        out: Path | None = None,
    ) -> None:
        """Start with nothing noticed."""
        self.account = account
        self.timezone = timezone
        self.complete = complete
        self.date_order = date_order
        self.archive_root = archive_root
        self.progress = progress
        self.out = out
        self.files: list[str] = []
        self.messages = 0
        self.edits = 0
        self.recalls = 0
        self.attachments_present = 0
        self.attachments_missing = 0
        self._not_understood = Notes()
        self._repaired = Notes()
        self.timezone_assumed = False
        self._digests: dict[Path, str] = {}
        self._name = ""
        self._bytes_done = 0
        self._bytes_total = 0

    def begin(self, source: Source) -> None:
        """Start the count of bytes for one export, which is read for its digest, outline and messages."""
        self._name = source.name
        self._bytes_done = 0
        self._bytes_total = 3 * sum(path.stat().st_size for path in source.files)

    def tick(self, count: int) -> None:
        """Count bytes that were read."""
        self._bytes_done = min(self._bytes_done + count, self._bytes_total)
        if self.progress is not None:
            self.progress(self._name, self._bytes_done, self._bytes_total)

    def not_understand(self, file: str, line: int, text: str | bytes | dict[str, Any], reason: str) -> None:
        """List a part of an export that gave no or not its whole message: its text, or its object."""
        self._not_understood.add(file, line, text, reason)

    def repair(self, file: str, line: int, text: str | bytes, reason: str) -> None:
        """List a part of an export that was damaged in a known way and was mended."""
        self._repaired.add(file, line, text, reason)

    def object_of(self, piece: Piece, file: str) -> dict[str, Any] | None:
        """The object in a piece; `None`, and listed, when it is damaged or no object."""
        if piece.kind == "stray":
            self.not_understand(file, piece.line, piece.text, "no message: not an object")
            return None
        try:
            value, mended = loads(piece.text)
        except ValueError:
            self.not_understand(file, piece.line, piece.text, "damaged JSON")
            return None
        if mended is not None:
            self.repair(file, piece.line, piece.text, mended)
        return value

    def walk(
        self,
        path: Path,
        name: str,
        *,
        objects: Collection[str],
        watched: Collection[str] = (),
        outline: bool = False,
    ) -> Iterator[Piece]:
        """The pieces of one file; its damage is listed under `name`, but not by the walk for the outline."""
        with path.open("rb") as file:
            yield from self.walk_opened(file, name, objects=objects, watched=watched, outline=outline)

    def walk_opened(
        self,
        file: Readable,
        name: str,
        *,
        objects: Collection[str],
        watched: Collection[str] = (),
        outline: bool = False,
    ) -> Iterator[Piece]:
        """The pieces of a file that is open already, as one in an archive is."""
        try:
            yield from pieces(as_utf8(file), objects=objects, watched=watched, tick=self.tick)
        except ValueError as error:
            if not outline:
                self.not_understand(name, 0, "", f"damaged JSON: {error}")

    def lines(self, path: Path) -> Iterator[Piece]:
        """The lines of one file of JSON Lines, without the empty ones."""
        with path.open("rb") as file:
            yield from lines(as_utf8(file), tick=self.tick)

    def origin(self, source: Source, file: str, line: int, value: dict[str, Any]) -> Origin:
        """The origin of one object of an export: what it does not tell whole is listed with its place."""

        def note(reason: str) -> None:
            self.not_understand(file, line, value, reason)

        return Origin(note=note, attach=partial(self.attachment, source), file=file, line=line)

    def local_time(self, written: str) -> int | None:
        """Milliseconds of a time as an export writes it; without a zone it is read in the assumed one."""
        try:
            time = datetime.fromisoformat(written)
            if time.tzinfo is None:
                time = time.replace(tzinfo=self.timezone)
                self.timezone_assumed = True
            return round(time.timestamp() * 1000)
        except (ValueError, OverflowError):
            return None

    def clock_time(self, day: int, second: int) -> int:
        """Milliseconds of a day, counted as by `date.toordinal`, and a second of it on the assumed clock."""
        self.timezone_assumed = True
        time = datetime.fromordinal(day).replace(tzinfo=self.timezone)
        hour, rest = divmod(second, 3600)
        return round(time.replace(hour=hour, minute=rest // 60, second=rest % 60).timestamp() * 1000)

    def attachment(  # noqa: PLR0913 - one named field each
        self,
        source: Source,
        number: int,
        *,
        places: Iterable[str],
        name: str | None,
        mime: str | None = None,
        size: int | None = None,
        absent: Literal["missing", "not_exported", "expired"] = "missing",
    ) -> dict[str, Any]:
        """One attachment of a message, looked for in the export's folder.

        The declared name and size stand: they are the same in every export of the message, the names and
        sizes of exported copies are not.

        Args:
            source: The export.
            number: Its number in the message, from 1.
            places: Relative paths at which the file may lie.
            name: Its name as sent.
            mime: Its MIME type as declared.
            size: Its size as declared, in bytes.
            absent: The state when none of the places holds a file.
        """
        declared = declared_attachment(number, places=(), name=name, mime=mime, size=size, absent=absent)
        path = _file_inside(source.root, places)
        if path is None:
            self.attachments_missing += 1
            return declared
        self.attachments_present += 1
        return {
            **declared,
            "size": size or path.stat().st_size,
            "sha256": self._digest(path),
            "path": self._archive_path(source.root, path),
            "state": "present",
        }

    def report(self) -> ImportReport:
        """What was noticed, frozen."""
        return ImportReport(
            files=tuple(self.files),
            messages=self.messages,
            edits=self.edits,
            recalls=self.recalls,
            attachments_present=self.attachments_present,
            attachments_missing=self.attachments_missing,
            not_understood=self._not_understood.all(),
            repaired=self._repaired.all(),
            timezone_assumed=self.timezone_assumed,
        )

    def _archive_path(self, root: Path, path: Path) -> str:
        """Relative to the input's archive root where the export lies under it, else to the export."""
        if self.archive_root is not None and path.is_relative_to(self.archive_root.resolve()):
            return path.relative_to(self.archive_root.resolve()).as_posix()
        return path.relative_to(root.resolve()).as_posix()

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = sha256_of(path)
        return self._digests[path]


def declared_attachment(  # noqa: PLR0913 - one named field each, those of `Reading.attachment`
    number: int,
    *,
    places: Iterable[str],  # noqa: ARG001 - where there are files, they are looked for there
    name: str | None,
    mime: str | None = None,
    size: int | None = None,
    absent: Literal["missing", "not_exported", "expired"] = "missing",
) -> dict[str, Any]:
    """An attachment as a message declares it, without its file."""
    return {
        "id": f"a{number}",
        "name": name,
        "mime": mime,
        "size": size or None,
        "sha256": None,
        "path": None,
        "state": absent,
    }


def single_files(
    path: Path, candidates: Iterable[Path], is_export: Callable[[Path], bool], absence: ConfigError
) -> list[Source]:
    """The export that a path is, or each of the candidates in the folder that it is.

    Raises:
        ConfigError: `absence`, when the folder holds none.
    """
    if path.is_file():
        return [Source(path.name, path.parent, (path,))]
    found = [Source(file.name, path, (file,)) for file in candidates if is_export(file)]
    if not found:
        raise absence
    return found


def beginning(file: Path) -> bytes:
    """The first bytes of a file in UTF-8, enough to tell its format; none of what is no readable file."""
    if not file.is_file():
        return b""
    try:
        with file.open("rb") as opened:
            return as_utf8(opened).read(CHUNK_BYTES)
    except OSError:
        return b""


def _file_inside(root: Path, places: Iterable[str]) -> Path | None:
    """The first place that holds a regular file of the export; a path that leads out of it holds none."""
    inside = root.resolve()
    for place in places:
        try:
            path = (inside / place).resolve()
            if path.is_relative_to(inside) and path.is_file():
                return path
        except (OSError, ValueError):  # a name too long, a NUL in it, a loop of links
            continue
    return None


def sha256_of(path: Path, tick: Callable[[int], None] | None = None) -> str:
    """The SHA-256 of a file in hexadecimal; `tick` is told of bytes read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            if tick is not None:
                tick(len(chunk))
    return digest.hexdigest()
