"""What the IMAP connector says to a server and hears from it: a small part of RFC 3501, over asyncio.

It only ever looks: folders are opened with EXAMINE, mails are fetched with BODY.PEEK, so that nothing is
marked read, moved or deleted. Every answer is hostile input: its size is bounded, and what goes into an error
is cut and has no control characters. TLS certificates are always checked.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from chatproc.connectors.base import SyncError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from chatproc.connectors.base import FaultClass

__all__ = ["LARGEST_MAIL", "Folder", "Mail", "RefusedError", "Wire", "folder_name", "mailbox_name", "uid_set"]

LARGEST_MAIL = 128 << 20
_LARGEST_LINE = 16 << 20
_LARGEST_ANSWER = 2 * LARGEST_MAIL
_CHUNK = 1 << 20
_SILENCE = 60.0
_GOODBYE = 2.0
_SHOWN = 200

_Value: TypeAlias = "bytes | list[_Value]"

_LITERAL = re.compile(rb"\{(\d{1,19})\}$")
_TOKEN = re.compile(rb'[()]|"((?:[^"\\]|\\.)*)"|[^\s()"]+')
_STATUS = re.compile(rb"(?:\[([A-Za-z0-9-]+)(?: ([^\]]*))?\] ?)?(.*)", re.DOTALL)
_FAULTS: dict[str, FaultClass] = {
    **dict.fromkeys(("AUTHENTICATIONFAILED", "AUTHORIZATIONFAILED", "EXPIRED", "PRIVACYREQUIRED"), "auth"),
    **dict.fromkeys(("LIMIT", "OVERQUOTA", "THROTTLED"), "rate"),
    **dict.fromkeys(("UNAVAILABLE", "INUSE", "SERVERBUG"), "server"),
}


@dataclass(frozen=True, slots=True)
class Folder:
    """An opened folder; `uidnext` is 0 where the server does not say it."""

    uidvalidity: int
    uidnext: int


@dataclass(frozen=True, slots=True)
class Mail:
    """A fetched mail and when it arrived, as the server writes it (`b""` when it does not say)."""

    raw: bytes
    arrived: bytes


class RefusedError(Exception):
    """The server said no to a command.

    Attributes:
        code: The response code, such as `NONEXISTENT`; `""` without one.
        fault: The class that the code stands for; `None` where it says nothing about the connection.
    """

    def __init__(self, code: str, text: str) -> None:
        """Keep the code beside the server's words."""
        super().__init__(text)
        self.code = code
        self.fault = _FAULTS.get(code)


class Wire:
    """One connection to a server."""

    def __init__(self, place: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take over an open connection; `place` is its name in errors."""
        self.place = place
        self._reader = reader
        self._writer = writer
        self._number = 0
        self._heard = 0

    @classmethod
    async def connect(cls, host: str, port: int, *, tls: bool, ca_file: Path | None) -> Wire:
        """Connect, and check the server's certificate unless `tls` is off.

        Raises:
            SyncError: There is no such server, or its certificate is refused.
        """
        place = f"{host}:{port}"
        context = _trust(ca_file, place) if tls else None
        with _faults_of(place):
            async with asyncio.timeout(_SILENCE):
                reader, writer = await asyncio.open_connection(host, port, ssl=context)
        return cls(place, reader, writer)

    async def log_in(self, user: str, password: str) -> None:
        """Hear the greeting and log in.

        Raises:
            SyncError: `auth` when name and password are refused.
        """
        greeting = await self._response()
        if greeting[:2] == [b"*", b"PREAUTH"]:
            return
        if greeting[:2] != [b"*", b"OK"]:
            raise self._senseless(
                "no IMAP greeting", hint="host and port of an IMAP server; tls = true on 993"
            )
        capabilities = _words(await self._command(b"CAPABILITY"), b"CAPABILITY")
        try:
            if b"AUTH=PLAIN" in capabilities:
                plain = base64.b64encode(f"\0{user}\0{password}".encode())
                await self._command(b"AUTHENTICATE PLAIN", continuation=plain)
            else:
                await self._command(b"LOGIN %s %s" % (_quoted(user), _quoted(password)))
        except RefusedError as no:
            raise SyncError(
                f"the server refused to log in {user!r}: {no}",
                fault=no.fault or "auth",
                where=self.place,
                hint="user and password of the mail account; many providers want an app password here",
            ) from None

    async def examine(self, name: str) -> Folder:
        """Open a folder for looking only.

        Raises:
            RefusedError: There is no such folder.
        """
        answers = await self._command(b"EXAMINE " + _quoted(mailbox_name(name)))
        return Folder(_number_in(answers, b"UIDVALIDITY"), _number_in(answers, b"UIDNEXT"))

    async def folders(self) -> list[str]:
        """The names of all folders."""
        answers = await self._command(b'LIST "" "*"')
        names = [answer[-1] for answer in answers if answer[1:2] == [b"LIST"]]
        return sorted(folder_name(name) for name in names if isinstance(name, bytes))

    async def search(self, criteria: str) -> list[int]:
        """UIDs of mails in the opened folder, in ascending order.

        Raises:
            RefusedError: The server said no.
        """
        answers = await self._command(f"UID SEARCH {criteria}".encode())
        return sorted({int(word) for word in _words(answers, b"SEARCH") if word.isdigit()})

    async def sizes(self, uids: Sequence[int]) -> dict[int, int]:
        """Bytes of each of these mails that is still there.

        Raises:
            RefusedError: The server said no.
        """
        fetched = await self._fetch(uids, b"RFC822.SIZE")
        return {uid: _whole(values.get(b"RFC822.SIZE")) for uid, values in fetched.items()}

    async def mails(self, uids: Sequence[int]) -> dict[int, Mail]:
        """Those of these mails that are still there; none is marked as read.

        Raises:
            RefusedError: The server said no.
        """
        fetched = await self._fetch(uids, b"INTERNALDATE BODY.PEEK[]")
        found = {}
        for uid, values in fetched.items():
            raw, arrived = values.get(b"BODY[]"), values.get(b"INTERNALDATE")
            if isinstance(raw, bytes) and raw != b"NIL":
                found[uid] = Mail(raw, arrived if isinstance(arrived, bytes) else b"")
        return found

    async def log_out(self) -> None:
        """Say goodbye; a server that has gone already is no fault."""
        with contextlib.suppress(SyncError, TimeoutError):
            async with asyncio.timeout(_GOODBYE):
                await self._send(b"bye LOGOUT")
                await self._line()
        self.close()

    def close(self) -> None:
        """Let the connection go at once."""
        self._writer.transport.abort()

    async def _fetch(self, uids: Sequence[int], items: bytes) -> dict[int, dict[bytes, _Value]]:
        answers = await self._command(b"UID FETCH %s (UID %s)" % (uid_set(uids).encode(), items))
        asked = set(uids)
        found: dict[int, dict[bytes, _Value]] = {}
        for answer in answers:
            values = answer[-1]
            if _named(answer[1:], b"FETCH") and isinstance(values, list):
                pairs = _pairs(values)
                # A server may tell of changed flags at any time, of this mail or of another.
                if (uid := _whole(pairs.get(b"UID"))) in asked:
                    found.setdefault(uid, {}).update(pairs)
        return found

    async def _command(self, line: bytes, *, continuation: bytes | None = None) -> list[list[_Value]]:
        """Say one thing and hear all that is answered to it, the last answer left out.

        Raises:
            RefusedError: The server said no.
        """
        self._number += 1
        self._heard = 0
        tag = b"c%d" % self._number
        await self._send(tag + b" " + line)
        answers: list[list[_Value]] = []
        while True:
            answer = await self._response()
            if answer[0] == b"+":
                await self._send(b"*" if continuation is None else continuation)
                continuation = None
            elif answer[0] == tag:
                break
            else:
                answers.append(answer)
        if answer[1:2] != [b"OK"]:
            code, text = _status(answer)
            raise RefusedError(code, text)
        return answers

    async def _send(self, line: bytes) -> None:
        with _faults_of(self.place):
            self._writer.write(line + b"\r\n")
            async with asyncio.timeout(_SILENCE):
                await self._writer.drain()

    async def _response(self) -> list[_Value]:
        """One answer in its parts; of a status answer the words stay together."""
        line = await self._line()
        head = line.split(b" ", 2)
        if line.startswith(b"+"):
            return [b"+"]
        if len(head) > 1 and head[1].upper() in (b"OK", b"NO", b"BAD", b"BYE", b"PREAUTH"):
            answer: list[_Value] = [head[0], head[1].upper(), *head[2:]]
            if answer[1] == b"BYE":
                code, text = _status(answer)
                raise SyncError(
                    f"the server ended the connection: {text}",
                    fault=_FAULTS.get(code, "server"),
                    where=self.place,
                )
            return answer
        pieces: list[bytes] = [line]
        while (literal := _LITERAL.search(pieces[-1])) is not None:
            pieces[-1] = pieces[-1][: literal.start()]
            pieces += [await self._literal(int(literal[1])), await self._line()]
        try:
            return _parsed(pieces) or [b""]
        except ValueError:
            raise self._senseless("an answer that is no IMAP") from None

    async def _line(self) -> bytes:
        line = bytearray()
        while not line.endswith(b"\n"):
            with _faults_of(self.place):
                async with asyncio.timeout(_SILENCE):
                    try:
                        line += await self._reader.readuntil(b"\n")
                    except asyncio.LimitOverrunError as more:
                        line += await self._reader.readexactly(more.consumed)
            if len(line) > _LARGEST_LINE:
                raise self._too_much(_LARGEST_LINE)
        self._count(len(line))
        return bytes(line).rstrip(b"\r\n")

    async def _literal(self, size: int) -> bytes:
        self._count(size)
        pieces = []
        while size > 0:
            with _faults_of(self.place):
                async with asyncio.timeout(_SILENCE):
                    pieces.append(await self._reader.readexactly(min(size, _CHUNK)))
            size -= len(pieces[-1])
        return b"".join(pieces)

    def _count(self, size: int) -> None:
        """Bound what one command may bring."""
        self._heard += size
        if self._heard > _LARGEST_ANSWER:
            raise self._too_much(_LARGEST_ANSWER)

    def _too_much(self, limit: int) -> SyncError:
        return self._senseless(f"an answer of more than {limit >> 20} MB")

    def _senseless(self, what: str, hint: str | None = None) -> SyncError:
        return SyncError(f"the server gave {what}", fault="bad_data", where=self.place, hint=hint)


def _trust(ca_file: Path | None, place: str) -> ssl.SSLContext:
    """The system's authorities, and those of a file beside them."""
    context = ssl.create_default_context()
    try:
        if ca_file is not None:
            context.load_verify_locations(ca_file)
    except OSError as error:
        what = f"ca_file cannot be used: {error.strerror or 'no certificate in it'}: {ca_file}"
        raise SyncError(what, fault="network", where=place, hint="a file with certificates in PEM") from error
    return context


@contextlib.contextmanager
def _faults_of(place: str) -> Iterator[None]:
    """Say what a connection that fails means."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise SyncError(
            f"the server's certificate is refused: {error.verify_message}",
            fault="network",
            where=place,
            hint="host must be the name in the certificate; ca_file names the authority of a private one",
        ) from error
    except ssl.SSLError as error:
        raise SyncError(f"no TLS connection: {error.reason}", fault="network", where=place) from error
    except TimeoutError as error:
        what = f"the server was silent for {_SILENCE:.0f} seconds"
        raise SyncError(what, fault="network", where=place) from error
    except EOFError as error:
        what = "the server closed the connection in the middle"
        raise SyncError(what, fault="network", where=place) from error
    except socket.gaierror as error:
        what = f"no such server: {error.strerror}"
        raise SyncError(what, fault="network", where=place) from error
    except OSError as error:
        what = f"no connection: {os.strerror(error.errno) if error.errno else error}"
        raise SyncError(what, fault="network", where=place) from error


def _parsed(pieces: Sequence[bytes]) -> list[_Value]:
    """The parts of one answer: `pieces` are stretches of its lines with a literal between each two.

    Raises:
        ValueError: A bracket does not match.
    """
    found: list[_Value] = []
    open_lists = [found]
    for place, piece in enumerate(pieces):
        if place % 2:
            open_lists[-1].append(piece)
            continue
        for token in _TOKEN.finditer(piece):
            if token[0] == b"(":
                inner: list[_Value] = []
                open_lists[-1].append(inner)
                open_lists.append(inner)
            elif token[0] == b")":
                open_lists.pop()
                if not open_lists:
                    raise ValueError(")")
            else:
                quoted = token[1]
                open_lists[-1].append(
                    token[0] if quoted is None else re.sub(rb"\\(.)", rb"\1", quoted, flags=re.DOTALL)
                )
    if len(open_lists) > 1:
        raise ValueError("(")
    return found


def _pairs(values: list[_Value]) -> dict[bytes, _Value]:
    return {
        name.upper(): value
        for name, value in zip(values[::2], values[1::2], strict=False)
        if isinstance(name, bytes)
    }


def _whole(value: _Value | None) -> int:
    return int(value) if isinstance(value, bytes) and value.isdigit() else 0


def _words(answers: list[list[_Value]], name: bytes) -> list[bytes]:
    """What stands in all answers of a name: `* SEARCH 2 3 6`."""
    said = (answer[2:] for answer in answers if _named(answer, name))
    return [word.upper() for words in said for word in words if isinstance(word, bytes)]


def _named(answer: list[_Value], name: bytes) -> bool:
    word = answer[1] if len(answer) > 1 else b""
    return isinstance(word, bytes) and word.upper() == name


def _number_in(answers: list[list[_Value]], name: bytes) -> int:
    """The number of a response code: `* OK [UIDNEXT 4392] …`; 0 without one."""
    for answer in answers:
        text = answer[2] if len(answer) > 2 else b""  # noqa: PLR2004 - star, OK, text
        found = _STATUS.match(text) if isinstance(text, bytes) and answer[1] == b"OK" else None
        if found and (found[1] or b"").upper() == name and (found[2] or b"").isdigit():
            return int(found[2])
    return 0


def _status(answer: list[_Value]) -> tuple[str, str]:
    """The response code and the words of a status answer, fit to be shown."""
    text = answer[2] if len(answer) > 2 else b""  # noqa: PLR2004 - tag, NO, text
    found = _STATUS.match(text if isinstance(text, bytes) else b"")
    code, words = (found[1] or b"", found[3]) if found else (b"", b"")
    shown = "".join(c if c.isprintable() else " " for c in words.decode("utf-8", "replace"))
    return code.decode().upper(), shown.strip()[:_SHOWN] or "without a reason"


def _quoted(text: str) -> bytes:
    """A quoted string; line breaks cannot stand in one and would begin another command."""
    safe = re.sub(r"[\r\n\0]", "", text)
    return b'"%s"' % safe.replace("\\", "\\\\").replace('"', '\\"').encode()


def uid_set(uids: Iterable[int]) -> str:
    """UIDs as short as a command can say them.

    Example:
        >>> uid_set([1, 2, 3, 7, 9, 10])
        '1:3,7,9:10'
    """
    runs: list[list[int]] = []
    for uid in sorted(uids):
        if runs and uid == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], uid]
        else:
            runs.append([uid])
    return ",".join(":".join(map(str, run)) for run in runs)


def mailbox_name(folder: str) -> str:
    """A folder's name in the modified UTF-7 of IMAP.

    Example:
        >>> mailbox_name("工作 & more")
        '&XeVPXA- &- more'
    """

    def encoded(run: re.Match[str]) -> str:
        if run[0] == "&":
            return "&-"
        code = base64.b64encode(run[0].encode("utf-16-be", "surrogatepass"), b"+,").decode().rstrip("=")
        return f"&{code}-"

    return re.sub(r"&|[^\x20-\x7e]+", encoded, folder)


def folder_name(mailbox: bytes) -> str:
    """A folder's name from the modified UTF-7 of IMAP; what is none stays as it is.

    Example:
        >>> folder_name(b"&XeVPXA- &- more")
        '工作 & more'
    """

    def decoded(run: re.Match[bytes]) -> bytes:
        if not run[1]:
            return b"&"
        code = run[1] + b"=" * (-len(run[1]) % 4)
        try:
            return base64.b64decode(code, b"+,", validate=True).decode("utf-16-be").encode()
        except ValueError:
            return run[0]

    return re.sub(rb"&([^-&]*)-", decoded, mailbox).decode("utf-8", "replace")
