"""What all importers share: one message as understood from an export, its keys, its event, the batch file.

An importer is a small module that finds its exports under a path and turns each into `Message`s; everything
else happens here. Never opens a chat program's database, never guesses one message into another, and never
leaves a half-written batch behind.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from chatproc.importers.pieces import CHUNK_BYTES, as_utf8, lines, loads, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from zoneinfo import ZoneInfo

    from chatproc.importers.pieces import Piece, Readable

DateOrder = Literal["dmy", "mdy", "ymd"]

SCHEMA = "chatproc.event/1"
MAX_KEY_CHARS = 512
SHOWN_CHARS = 200
# Milliseconds: what begins here has a year of five digits in some zone, and the core refuses it.
END_OF_TIME = 253_402_207_200_000
MAX_SOURCE_DEPTH = 24
# Equal messages of one second stand close together; this bounds the memory for a file of any size.
REMEMBERED_FINGERPRINTS = 200_000
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


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


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did.

    Attributes:
        files: The batch files written.
        messages: Events written, edits, recalls and system messages among them.
        edits: Messages whose text is a later revision.
        recalls: Messages that were withdrawn.
        attachments_present: Attachments found in the export.
        attachments_missing: Attachments that the export names but does not hold.
        not_understood: Parts that gave no or not their whole message, each with file, line, text and reason.
        repaired: Known damage that was mended, in the same form.
        timezone_assumed: At least one time had no zone and was read in the zone of `timezone`.
    """

    files: tuple[str, ...] = ()
    messages: int = 0
    edits: int = 0
    recalls: int = 0
    attachments_present: int = 0
    attachments_missing: int = 0
    not_understood: tuple[dict[str, Any], ...] = ()
    repaired: tuple[dict[str, Any], ...] = ()
    timezone_assumed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The document of `chatproc import --json`."""
        return {
            "files": list(self.files),
            "messages": self.messages,
            "edits": self.edits,
            "recalls": self.recalls,
            "attachments": {"present": self.attachments_present, "missing": self.attachments_missing},
            "not_understood": list(self.not_understood),
            "repaired": list(self.repaired),
            "timezone_assumed": self.timezone_assumed,
        }


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
        self.not_understood: list[dict[str, Any]] = []
        self.repaired: list[dict[str, Any]] = []
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
        self.not_understood.append(_note(file, line, text, reason))

    def repair(self, file: str, line: int, text: str | bytes, reason: str) -> None:
        """List a part of an export that was damaged in a known way and was mended."""
        self.repaired.append(_note(file, line, text, reason))

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
            not_understood=tuple(self.not_understood),
            repaired=tuple(self.repaired),
            timezone_assumed=self.timezone_assumed,
        )

    def _archive_path(self, root: Path, path: Path) -> str:
        """Relative to the input's archive root where the export lies under it, else to the export."""
        if self.archive_root is not None and path.is_relative_to(self.archive_root.resolve()):
            return path.relative_to(self.archive_root.resolve()).as_posix()
        return path.relative_to(root.resolve()).as_posix()

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = _sha256_of(path)
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


class Occurrences:
    """Numbers equal messages of a format without ids, so that two of one second stay two."""

    def __init__(self) -> None:
        """Start with no message seen."""
        self._seen: dict[bytes, int] = {}

    def go_on_after(self, keys: Iterable[str]) -> None:
        """Count on from keys that were given before, as those of the second in which a page was cut."""
        for key in keys:
            stem, _, number = key.rpartition(".")
            self._seen[_sha256_of_key(stem)[:16]] = int(number)

    def key(self, message: Message) -> str:
        """The key of a message that has no id of its own.

        Made of what every export of the message shows: conversation, time, sender, kind, text, attachments.
        """
        fields = [
            message.sent_at,
            message.sender_id or message.sender_name,
            message.kind,
            unicodedata.normalize("NFC", message.text),
            [attachment["name"] for attachment in message.attachments],
        ]
        fingerprint = hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:32]
        key = message_key(message.conversation, f"~{fingerprint}")
        digest = _sha256_of_key(key)[:16]
        number = self._seen.pop(digest, 0) + 1
        self._seen[digest] = number
        if len(self._seen) > REMEMBERED_FINGERPRINTS:
            del self._seen[next(iter(self._seen))]
        return f"{key}.{number}"


def message_key(conversation: Conversation, message_id: str) -> str:
    """The key of a message through all its revisions, from the platform's own id within its conversation.

    Example:
        >>> message_key(Conversation("qq", "10000", "999000", None, "group"), "7550123")
        'qq:10000:999000:7550123'
    """
    return _joined_key(conversation.platform, conversation.account, conversation.id, message_id)


def global_key(platform: str, message_id: str) -> str:
    """The key of a message whose id is unique on its whole platform, whoever collects it from wherever.

    Example:
        >>> global_key("discord", "1519337717564051496")
        'discord:1519337717564051496'
    """
    return _joined_key(platform, message_id)


def _joined_key(*parts: str) -> str:
    key = ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)
    if len(key) > MAX_KEY_CHARS - 16:
        return f"{parts[0]}:{_sha256_of_key(key).hex()}"
    return key


def _sha256_of_key(key: str) -> bytes:
    # A conversation's title may hold half of a surrogate pair.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def beginning(file: Path) -> bytes:
    """The first bytes of a file in UTF-8, enough to tell its format; none of what is no readable file."""
    try:
        with file.open("rb") as opened:
            return as_utf8(opened).read(CHUNK_BYTES)
    except OSError:
        return b""


def write_batch(form: Format, source: Source, reading: Reading, out: Path) -> Path:
    """Write the events of one export as one batch file, whole or not at all.

    The name holds the first 12 characters of the source's SHA-256: the same export overwrites itself.

    Raises:
        OSError: A file cannot be read or written.
    """
    reading.begin(source)
    path = out / f"{form.name}-{_source_digest(source, reading)[:12]}.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    # A temporary file of tempfile is readable by its owner alone, and so is what it becomes.
    descriptor, temporary = tempfile.mkstemp(dir=out, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.writelines(
                event_line(message, form, reading)
                for message in form.read(source, reading)
                if _has_time(message, reading)
            )
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(out)
    reading.files.append(str(path))
    return path


def _has_time(message: Message, reading: Reading) -> bool:
    if 0 <= message.sent_at < END_OF_TIME:
        return True
    reading.not_understand(message.file, message.line, message.text, "a time outside the years 1970 to 9999")
    return False


def event_line(message: Message, form: Format, reading: Reading) -> bytes:
    """One line of a batch: the message as a `chatproc.event/1`, counted in the report."""
    reading.messages += 1
    reading.edits += message.state == "edited"
    reading.recalls += message.state == "recalled"
    document, whole = event_document(message, f"import/{form.name}")
    if not whole:
        reading.repair(message.file, message.line, message.text, "half of a surrogate pair")
    return f"{document}\n".encode()


def event_document(message: Message, module: str) -> tuple[str, bool]:
    """The `chatproc.event/1` of a message as JSON, and whether all of its text could be kept.

    Halves of surrogate pairs are no text and become U+FFFD. The `event_id` is that of the document, so
    nothing may be added to it.
    """
    body = _event(message, module)
    document = _COMPACT.encode(body)
    whole = True
    try:
        document.encode()
    except UnicodeEncodeError:
        whole = False
        document = _COMPACT.encode(_without_surrogates(body))
    # Of two deliveries that differ only in their link the one with the larger id wins: a proven neighbour
    # must win over an export that merely begins here, and what reaches further back over what does not.
    link = "1" if message.reach is None else f"0g{message.reach:016}"
    prefix = link if message.predecessor else "0"
    event_id = prefix + hashlib.sha256(document.encode()).hexdigest()
    return f'{{"schema":"{SCHEMA}","event_id":"{event_id}",{document[1:]}', whole


def _event(message: Message, module: str) -> dict[str, Any]:
    conversation = message.conversation
    event: dict[str, Any] = {
        "message_key": message.key,
        "revision": message.revision,
        "state": message.state,
        "kind": message.kind,
        "platform": conversation.platform,
        "account_id": conversation.account,
        "conversation": {"id": conversation.id, "name": conversation.name, "type": conversation.type},
        "message_id": message.message_id,
        "sent_at": message.sent_at // 1000 if message.sent_at % 1000 == 0 else message.sent_at / 1000,
        "sender": {"id": message.sender_id, "name": message.sender_name, "role": message.role},
        "text": message.text,
        "mentions": message.mentions,
        "reply_to": message.reply_to,
        "attachments": message.attachments,
    }
    if message.index is not None:
        # Without a proven neighbour the predecessor is left out: null would say that this is the first.
        link = {"predecessor": message.predecessor} if message.predecessor else {}
        event["sequence"] = {"index": message.index, **link}
    place = {"file": message.file, "line": message.line} if message.file else {}
    event["source"] = {"module": module, **place, **_storable(message.source, 0)}
    return event


def _storable(value: Any, depth: int) -> Any:  # noqa: ANN401 - any JSON value
    """Foreign values for an event's provenance: what no event may bear (infinite, deep) as its words."""
    if isinstance(value, (dict, list)):
        if depth > MAX_SOURCE_DEPTH:
            return str(value)[:SHOWN_CHARS]
        if isinstance(value, list):
            return [_storable(item, depth + 1) for item in value]
        return {name: _storable(item, depth + 1) for name, item in value.items()}
    bounded = not isinstance(value, (int, float)) or abs(value) < 1 << 63
    return value if bounded else str(value)


def _without_surrogates(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _note(file: str, line: int, text: str | bytes | dict[str, Any], reason: str) -> dict[str, Any]:
    if isinstance(text, bytes):
        text = text[: 4 * SHOWN_CHARS].decode("utf-8", "replace")
    shown: str = _without_surrogates(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False))
    if len(shown) > SHOWN_CHARS:
        shown = shown[:SHOWN_CHARS] + "…"
    return {"file": file, "line": line, "text": shown, "reason": reason}


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


def _source_digest(source: Source, reading: Reading) -> str:
    """SHA-256 of the one file, or of the sorted relative paths with the hashes of the files."""
    digests = {path: _sha256_of(path, reading.tick) for path in source.files}
    if len(digests) == 1:
        return next(iter(digests.values()))
    listed = sorted((path.relative_to(source.root).as_posix(), digest) for path, digest in digests.items())
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def _sha256_of(path: Path, tick: Callable[[int], None] | None = None) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            if tick is not None:
                tick(len(chunk))
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make the rename last through a power cut; systems without folder descriptors do so by themselves."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
