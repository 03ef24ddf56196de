"""Mailboxes as files: mbox in all its variants, single `.eml` files, folders of them, Maildir.

Streams: one mail is held at a time. What a mail says is `mail.py`'s to decide. Never writes to a mailbox.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from chatproc.errors import ConfigError
from chatproc.importers.base import Format, Message, Source
from chatproc.importers.keys import REMEMBERED_FINGERPRINTS
from chatproc.importers.mail import attachment_store, mail_message, milliseconds
from chatproc.importers.mime import header_text
from chatproc.importers.pieces import CHUNK_BYTES
from chatproc.importers.report import SHOWN_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from chatproc.importers.base import Reading
    from chatproc.importers.mail import Mail

# The folder beside the batches for files that mails bring: no mailbox, whatever lies in it.
ATTACHMENTS = "mail-attachments"
# No server takes a larger one; what claims to be is a mailbox whose borders are lost.
MAX_MAIL_BYTES = 64 << 20
_HEAD_BYTES = 8 << 10
_LONGEST_BORDER = 300

_BORDER = b"\nFrom "
# `From someone Wed Jul  1 10:00:00 2026`, some with a zone before or behind the year, some without seconds.
_ENVELOPE = re.compile(
    rb"From [^\n]*?((?:[A-Z][a-z]{2},? +)?(?:[A-Z][a-z]{2} +\d{1,2}|\d{1,2} +[A-Z][a-z]{2})\b"
    rb"(?=[^\n]*\b\d{4}\b)[^\n]*\d\d?:\d\d[^\n]*)\r?\n"
)
_EXACT_ENVELOPE = re.compile(
    rb"From \S+ +[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d(?::\d\d)?"
    rb"(?: [A-Z+-][A-Z0-9]{2,4})? \d{4}(?: [+-]\d{4})?[ \t]*\r?\n"
)
# As Thunderbird writes it of late.
_BARE_ENVELOPE = re.compile(rb"From[ \t]*\r?\n")
_FIELD = re.compile(rb"(?:>?From [^\n]*\n)?[A-Za-z][!-9;-~]{0,80}[ \t]*:")
_KNOWN_FIELD = re.compile(
    rb"^(?:from|to|cc|sender|reply-to|subject|date|message-id|in-reply-to|references|received|return-path"
    rb"|delivered-to|envelope-to|mime-version|content-type|content-transfer-encoding|status|list-id"
    rb"|x-[a-z-]+|dkim-signature|authentication-results|arc-[a-z-]+)[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,10})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_HEAD_END = re.compile(rb"\n\r?\n")
_DELETED = re.compile(rb"^X-Mozilla-Status:[ \t]*[0-9a-f]{3}[89a-f]\r?$", re.IGNORECASE | re.MULTILINE)

# The box of a folder's counters, as pine and servers keep it.
_INTERNAL = re.compile(rb"^Subject:[ \t]*DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA", re.MULTILINE)
_LABELS = re.compile(rb"^X-Gmail-Labels:((?:[^\n]|\n[ \t])*)", re.IGNORECASE | re.MULTILINE)
# Spam, trash and drafts, as Google Takeout names them in the account's language.
_SPAM = "spam 垃圾邮件 垃圾郵件 迷惑メール 스팸함"
_TRASH = "trash bin 已删除邮件 垃圾桶 ゴミ箱 휴지통 papierkorb corbeille papelera lixeira cestino"
_DRAFTS = "drafts 草稿 下書き 임시보관함 entwürfe brouillons borradores rascunhos bozze"
_UNWANTED = frozenset(f"{_SPAM} {_TRASH} {_DRAFTS}".split())


class _Mbox:
    """One walk through an mbox: yields each mail with its line, its envelope's time and its bytes.

    A border is a `From ` line that carries a date and has a header field below it; one that is written
    exactly as such lines are needs no blank line before it. Where a `Content-Length` leads to a border, what
    looks like one before it is text.
    """

    def __init__(self, file: BinaryIO, tick: Callable[[int], None]) -> None:
        self.file = file
        self.tick = tick
        self.window = bytearray()
        self.line = 1
        self.is_over = False

    def mails(self) -> Iterator[tuple[int, int | None, bytes | None]]:
        self._read()
        self._drop(len(self.window) - len(self.window.lstrip(b"\r\n")))
        while self.window:
            line = self.line
            end, fits = self._end()
            raw = bytes(memoryview(self.window)[:end])
            self._drop(end)
            yield line, _envelope_time(raw), _unquoted(raw) if fits else None

    def _read(self) -> bool:
        more = self.file.read(CHUNK_BYTES)
        self.tick(len(more))
        self.window += more
        self.is_over = not more
        return bool(more)

    def _drop(self, count: int) -> None:
        self.line += self.window.count(b"\n", 0, count)
        del self.window[:count]

    def _has(self, count: int) -> bool:
        """Read on until the window holds so many bytes; False where the file ends before."""
        while len(self.window) < count and self._read():
            pass
        return len(self.window) >= count

    def _end(self) -> tuple[int, bool]:
        """Where the mail at the window's beginning ends, and whether it is of a size that can be read."""
        counted = self._end_by_length()
        if counted is not None:
            return counted, True
        at, fits = 0, True
        while True:
            found = self.window.find(_BORDER, at)
            if found < 0:
                at = max(0, len(self.window) - len(_BORDER))
                if len(self.window) > MAX_MAIL_BYTES:
                    self._drop(at)
                    at, fits = 0, False
                if not self._read():
                    return len(self.window), fits
            elif self._is_border(found + 1):
                return found + 1, fits
            else:
                at = found + 1

    def _is_border(self, at: int) -> bool:
        self._has(at + 2 * _LONGEST_BORDER)
        end = at + _LONGEST_BORDER
        if (match := _EXACT_ENVELOPE.match(self.window, at, end)) is not None:
            return _FIELD.match(self.window, match.end()) is not None
        is_apart = self.window.endswith((b"\n\n", b"\n\r\n"), 0, at)
        if not is_apart:
            return False
        match = _ENVELOPE.match(self.window, at, end) or _BARE_ENVELOPE.match(self.window, at, end)
        return match is not None and _KNOWN_FIELD.match(self.window, match.end()) is not None

    def _end_by_length(self) -> int | None:
        self._has(_HEAD_BYTES)
        head_end = _HEAD_END.search(self.window, 0, 4 * _HEAD_BYTES)
        length = _LENGTH.search(self.window, 0, head_end.end()) if head_end else None
        if head_end is None or length is None or int(length[1]) > MAX_MAIL_BYTES:
            return None
        at = head_end.end() + int(length[1])
        if not self._has(at):
            return None
        self._has(at + _LONGEST_BORDER)
        while at < len(self.window) and self.window[at] in b"\r\n":
            at += 1
        if at == len(self.window) and not self._has(at + 1):
            return at
        return at if self.window.startswith(b"From ", at) and self._is_border(at) else None


def _envelope_time(raw: bytes) -> int | None:
    match = _ENVELOPE.match(raw)
    time = milliseconds(match[1].decode("ascii", "replace"), None) if match else None
    return time[0] if time else None


def _unquoted(raw: bytes) -> bytes:
    """The mail without the quoting that keeps its lines from being borders."""
    return _QUOTED_FROM.sub(rb"\1", raw) if b"\n>From " in raw or b"\n>>" in raw else raw


def _left_out(head: bytes) -> str | None:
    """Why what a mailbox still holds is no mail of it, as its own program says."""
    if _DELETED.search(head) is not None:
        return "deleted in Thunderbird"
    if _INTERNAL.search(head) is not None:
        return "the mailbox's own data, no mail"
    labels = _LABELS.search(head)
    named = header_text(re.sub(rb"\s+", b" ", labels[1])) if labels else ""
    unwanted = sorted(_UNWANTED & {label.strip('" ').casefold() for label in named.split(",")})
    return f"labelled {unwanted[0]!r} in Gmail" if unwanted else None


class _Mailbox:
    """One mailbox while its mails pass by: knows which Message-IDs it has met."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self.source = source
        self.reading = reading
        folder = reading.out / ATTACHMENTS if reading.out is not None else None
        self.save = attachment_store(folder, reading.archive_root) if folder is not None else None
        self.met: dict[tuple[int, int], tuple[int, str, str]] = {}

    def message(self, raw: bytes, file: str, line: int, received_at: int | None) -> Message | None:
        """The message in a mail; `None`, and the mail listed, without a head or any time."""
        reading = self.reading
        head = _HEAD_END.split(raw[:_HEAD_BYTES], maxsplit=1)[0]
        if _KNOWN_FIELD.search(head) is None:
            reading.not_understand(file, line, raw[:SHOWN_CHARS], "no mail: it has no header fields")
            return None
        if reason := _left_out(head):
            reading.repair(file, line, raw[:SHOWN_CHARS], f"{reason}: left out")
            return None
        mail = mail_message(
            raw, account=reading.account, zone=reading.timezone, received_at=received_at, save=self.save
        )
        message = mail.message
        message.file, message.line = file, line
        if message.sent_at < 0:
            reading.not_understand(file, line, message.text, "a mail without any time")
            return None
        reading.timezone_assumed = reading.timezone_assumed or mail.timezone_assumed
        match self._known_as(mail):
            case "another":
                message.key += f"~{mail.fingerprint[:16]}"
                mail.mended.append("another mail has the same Message-ID: both are kept")
            case "copy":
                reading.repair(file, line, message.text, "a copy through another list: the first stands")
                return None
        if mail.mended:
            reading.repair(file, line, message.text, "; ".join(dict.fromkeys(mail.mended)))
        for attachment in message.attachments:
            reading.attachments_present += attachment["state"] == "present"
            reading.attachments_missing += attachment["state"] != "present"
        return message

    def _known_as(self, mail: Mail) -> Literal["new", "copy", "another"]:
        """What a mail is to those before it that have its id: the same again is as new.

        A list's copy and the direct one are two revisions, whatever the list made of it, if they were sent
        at the same time. Copies through two lists may differ below the last rule, and then the first stands.
        """
        message = mail.message
        key = hash(message.key)
        first = self.met.get((key, message.revision))
        if first is None:
            other = self.met.get((key, 1 - message.revision))
            if other is not None and other[0] != message.sent_at:
                return "another"
            self.met[key, message.revision] = (message.sent_at, mail.fingerprint, mail.core)
            if len(self.met) > REMEMBERED_FINGERPRINTS:
                del self.met[next(iter(self.met))]
            return "new"
        if first[1] == mail.fingerprint:
            return "new"
        return "copy" if message.revision == 0 and first[2] == mail.core else "another"


def _read_mbox(source: Source, reading: Reading) -> Iterator[Message]:
    mailbox = _Mailbox(source, reading)
    with source.files[0].open("rb") as file:
        # Twice: the count expects three readings, and an mbox needs no outline.
        for line, received_at, raw in _Mbox(file, lambda count: reading.tick(2 * count)).mails():
            if raw is None:
                reading.not_understand(source.name, line, "", f"a mail over {MAX_MAIL_BYTES >> 20} MiB")
            elif (message := mailbox.message(raw, source.name, line, received_at)) is not None:
                yield message


def _read_eml(source: Source, reading: Reading) -> Iterator[Message]:
    mailbox = _Mailbox(source, reading)
    for path in source.files:
        name = path.relative_to(source.root).as_posix()
        if path.stat().st_size > MAX_MAIL_BYTES:
            reading.not_understand(name, 0, "", f"a mail over {MAX_MAIL_BYTES >> 20} MiB")
            continue
        raw = path.read_bytes()
        reading.tick(2 * len(raw))
        message = mailbox.message(raw, name, 1, None)
        if message is not None:
            yield message


def _find_mbox(path: Path) -> list[Source]:
    if path.is_file() and _is_mbox(path):
        return [Source(path.name, path.parent, (path,))]
    found = [
        Source(file.relative_to(path).as_posix(), file.parent, (file,))
        for file in _files_below(path, "*")
        if _is_mbox(file)
    ]
    if not found:
        raise ConfigError(
            "no mbox here: looked for a file that begins with a `From ` line",
            where=str(path),
            hint="for single mails: chatproc import eml",
        )
    return found


def _find_eml(path: Path) -> list[Source]:
    if path.is_file():
        return [Source(path.name, path.parent, (path,))]
    files = _maildir(path) or _files_below(path, "*.eml")
    if not files:
        raise ConfigError(
            "no mails here: looked for *.eml and for a Maildir",
            where=str(path),
            hint="for a mailbox in one file: chatproc import mbox",
        )
    return [Source(path.resolve().name, path, tuple(files))]


def _files_below(path: Path, pattern: str) -> list[Path]:
    found = path.rglob(pattern) if path.is_dir() else ()
    return sorted(
        file for file in found if file.is_file() and ATTACHMENTS not in file.relative_to(path).parts[:-1]
    )


def _maildir(path: Path) -> list[Path]:
    """The mails of a Maildir and of the folders in it; none where it is no Maildir."""
    folders = [folder for folder in (path, *sorted(path.glob(".*"))) if (folder / "cur").is_dir()]
    places = [place for folder in folders for place in (folder / "cur", folder / "new") if place.is_dir()]
    return sorted(file for place in places for file in place.iterdir() if file.is_file())


def _head(file: Path) -> bytes:
    if not file.is_file():
        return b""
    try:
        with file.open("rb") as opened:
            return opened.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return b""


def _is_mbox(file: Path) -> bool:
    head = _head(file).lstrip(b"\r\n")
    match = _ENVELOPE.match(head)
    if match is None:
        bare = _BARE_ENVELOPE.match(head)
        return bare is not None and _KNOWN_FIELD.match(head, bare.end()) is not None
    return _FIELD.match(head, match.end()) is not None


def _is_eml(file: Path) -> bool:
    head = _head(file)
    fields = _HEAD_END.split(head, maxsplit=1)[0]
    return _FIELD.match(head) is not None and _KNOWN_FIELD.search(fields) is not None


def _recognizes_mbox(path: Path) -> bool:
    return any(map(_is_mbox, sorted(path.iterdir()))) if path.is_dir() else _is_mbox(path)


def _recognizes_eml(path: Path) -> bool:
    if path.is_dir():
        return bool(_maildir(path)) or any(map(_is_eml, sorted(path.glob("*.eml"))))
    return _is_eml(path) and not _is_mbox(path)


MBOX = Format(
    "mbox", _find_mbox, _read_mbox, "a file that begins with a `From ` line and a mail", _recognizes_mbox
)
EML = Format("eml", _find_eml, _read_eml, "*.eml, or a Maildir with `cur` and `new`", _recognizes_eml)
