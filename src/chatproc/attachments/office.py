"""Old and foreign office files: converted by LibreOffice, then read like what they became.

One run, one folder: a fresh profile and all files lie in it and go with it. It must never let a document run
a macro, fetch anything or choose its own import filter, and never believe LibreOffice's exit code.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from chatproc.attachments.ooxml import Package
from chatproc.attachments.units import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chatproc.attachments.units import Document, Limits, Unit

CONVERSION_SECONDS = 110.0
"""Wall clock of one conversion; less than the reading process has, so that the answer is this module's."""

_LARGEST_OUTPUT = 4
"""A converted file may be so many times as large as a file that is read."""

_STARTS_AGAIN = 81
"""LibreOffice's exit code after laying out a new profile: the very same command has to be given again."""


class _Target(NamedTuple):
    """What a kind is converted to, by which filter, and where that filter lives."""

    suffix: str
    output_filter: str
    library: str
    package: str


_TEXT = _Target("docx", "MS Word 2007 XML", "libswlo.so", "libreoffice-writer")
_SLIDES = _Target("pptx", "Impress MS PowerPoint 2007 XML", "libsdlo.so", "libreoffice-impress")
_SHEET = _Target("xlsx", "Calc MS Excel 2007 XML", "libsclo.so", "libreoffice-calc")


class _Way(NamedTuple):
    """How one content is converted: the import filter is chosen by us, never guessed from hostile bytes."""

    spoken: str
    suffix: str
    input_filter: str
    target: _Target


_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PACKAGES = {
    "odt": _Way("ODT", "odt", "writer8", _TEXT),
    "ods": _Way("ODS", "ods", "calc8", _SHEET),
    "odp": _Way("ODP", "odp", "impress8", _SLIDES),
    "pptx": _Way("PPTX", "pptx", "Impress MS PowerPoint 2007 XML", _SLIDES),
}
_STREAMS = (
    ("worddocument", _Way("DOC", "doc", "MS Word 97", _TEXT)),
    ("workbook", _Way("XLS", "xls", "MS Excel 97", _SHEET)),
    ("book", _Way("an old XLS", "xls", "MS Excel 5.0/95", _SHEET)),
    ("powerpoint document", _Way("PPT", "ppt", "MS PowerPoint 97", _SLIDES)),
    ("matost", _Way("Works", "wps", "MS_Works", _TEXT)),
    ("mn0", _Way("Works", "wps", "MS_Works", _TEXT)),
    ("contents", _Way("Works", "wps", "MS_Works", _TEXT)),
)
"""What a stream at the root of an OLE file means; the first that is there counts."""
_OLD_WORD = _Way("an old DOC", "doc", "MS WinWord 6.0", _TEXT)
_OTHERS = {
    "rtf": _Way("RTF", "rtf", "Rich Text Format", _TEXT),
    "wri": _Way("Write", "wri", "MS_Write", _TEXT),
    "wps": _Way("Works", "wps", "MS_Works", _TEXT),
    "wordml": _Way("Word XML", "xml", "MS Word 2003 XML", _TEXT),
    "doc": _Way("WordPerfect", "wpd", "WordPerfect", _TEXT),
}
"""By kind, for contents that are neither a zip nor an OLE file."""
_SHEET_XML = _Way("Excel XML", "xml", "MS Excel 2003 XML Orcus", _SHEET)


@dataclass(frozen=True, slots=True)
class _Converted:
    """The document that a file became, with a word about how."""

    document: Document
    about: str

    @property
    def total(self) -> int:
        return self.document.total

    @property
    def note(self) -> str:
        return f"{self.about} {self.document.note}".strip()

    def unit(self, number: int) -> Unit:
        return self.document.unit(number)

    def close(self) -> None:
        self.document.close()


def open_document(content: bytes, kind: str, limits: Limits) -> Document:
    """Convert a file and open what it became: a DOCX, a PPTX for slides, an XLSX for sheets.

    A PPTX is converted only when it is in the spelling that `slides` does not know (strict Open XML).

    Args:
        content: The whole file.
        kind: `doc rtf odt wps wri wordml`, `ppt pptx odp`, `xls ods`; only believed where the content is
            neither an OLE file nor a package. `mhtml` is read as the page that it holds.
        limits: Of the reader that comes after; `max_file_mb` bounds what LibreOffice may write.

    Raises:
        UnreadableError: `converter_missing encrypted unsupported_type corrupt truncated timeout crashed
            too_large`, and what the reader raises.
    """
    if kind == "mhtml":
        from chatproc.attachments import text

        return text.open_document(content, kind, limits)
    if kind == "pptx" and content.startswith(b"PK") and not _is_strict(content):
        from chatproc.attachments import slides

        return slides.open_document(content, kind, limits)
    way = _way(content, kind)
    return _Converted(_converted(content, way, limits), f"Converted from {way.spoken} by LibreOffice.")


def _is_strict(content: bytes) -> bool:
    return b"http://purl.oclc.org/ooxml/" in (Package(content).read("ppt/presentation.xml") or b"")[:4096]


def _converted(content: bytes, way: _Way, limits: Limits) -> Document:
    """What a file becomes, opened."""
    converted = convert(content, way, limits.max_file_mb * 1024 * 1024 * _LARGEST_OUTPUT)
    if way.target is _SHEET:
        from chatproc.attachments import sheet

        return sheet.open_document(converted, "xlsx", limits)
    if way.target is _SLIDES:
        from chatproc.attachments import slides

        return slides.open_converted(converted)
    from chatproc.attachments import docx

    return docx.open_converted(converted)


def _way(content: bytes, kind: str) -> _Way:
    """How to convert it, by what it is."""
    if content.startswith(_OLE):
        return _way_of_compound(content)
    if content.startswith(b"PK") and kind in _PACKAGES:
        package = Package(content)
        if b"encryption-data" in (package.read("META-INF/manifest.xml") or b""):
            raise _encrypted()
        return _PACKAGES[kind]
    if kind == "wordml" and b"office:spreadsheet" in content[:4096]:
        return _SHEET_XML
    way = _OTHERS.get(kind)
    if way is None:
        raise UnreadableError("unsupported_type", "its content is of no kind that can be converted")
    return way


def _way_of_compound(content: bytes) -> _Way:
    compound = _Compound(content)
    if "encryptedpackage" in compound.streams:
        raise _encrypted()
    for stream, way in _STREAMS:
        if stream not in compound.streams:
            continue
        if stream == "worddocument" and 0 < compound.version() < _FIRST_WORD_97:
            return _OLD_WORD
        return way
    if compound.is_cut():
        raise _truncated()
    if not compound.streams:
        raise UnreadableError("corrupt", "the directory of its OLE container is damaged")
    raise UnreadableError("unsupported_type", "it is an OLE file that holds no document")


def _truncated() -> UnreadableError:
    return UnreadableError("truncated", "its end is missing; the file is only a part of itself")


def _encrypted() -> UnreadableError:
    return UnreadableError("encrypted", "it wants a password")


def convert(content: bytes, way: _Way, most: int) -> bytes:
    """Let LibreOffice convert a file.

    Args:
        content: The whole file.
        way: How.
        most: Bytes that the outcome may have.

    Raises:
        UnreadableError: There is no outcome; see `open_document`.
    """
    program = _program(way.target)
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="chatproc-office-"))  # 0700
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        source = folder / f"document.{way.suffix}"
        source.write_bytes(content)
        _write_profile(folder / "profile")
        before = _peak()
        ended = _run(_command(program, folder, source, way), folder)
        is_full = _is_full(before)
        # Whatever it said and however it ended: it converted when there is an outcome.
        outcome = folder / "out" / f"document.{way.target.suffix}"
        size = outcome.stat().st_size if outcome.is_file() else 0
        if size > most:
            raise UnreadableError("too_large", "what it converts to is too large")
        if size and ended is not None:
            return outcome.read_bytes()
    if is_full and ended is not None:
        raise UnreadableError("memory", "converting it takes more memory than a file may")
    raise _failure(content, ended)


def _program(target: _Target) -> Path:
    """LibreOffice itself, without the script that starts it."""
    names = ("soffice", "libreoffice")
    found = next(filter(None, map(shutil.which, names)), None)
    for place in (found, "/Applications/LibreOffice.app/Contents/MacOS/soffice"):
        if place is None or not Path(place).exists():
            continue
        script = Path(place).resolve()
        binary = script.with_name("soffice.bin")
        if not binary.exists():
            return script
        if (binary.with_name("libsofficeapp.so").exists()) and not binary.with_name(target.library).exists():
            break
        return binary
    raise UnreadableError(
        "converter_missing", f"reading it takes LibreOffice: install the package {target.package}"
    )


def _command(program: Path, folder: Path, source: Path, way: _Way) -> list[str]:
    return [
        str(program),
        f"-env:UserInstallation={(folder / 'profile').as_uri()}",
        "--headless",
        "--norestore",
        "--nolockcheck",
        "--nologo",
        f"--infilter={way.input_filter}",
        "--convert-to",
        f"{way.target.suffix}:{way.target.output_filter}",
        "--outdir",
        str(folder / "out"),
        str(source),
    ]


_SETTINGS = (
    ("Office.Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Office.Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Office.Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Office.Common/Security/Scripting", "DisableActiveContent", "true"),
    ("Office.Writer/Content/Update", "Link", "0"),
    ("Office.Calc/Content/Update", "Link", "2"),
    ("Office.Calc/Formula/Load", "OOXMLRecalcMode", "1"),
    ("Office.Calc/Formula/Load", "ODFRecalcMode", "1"),
    ("Inet/Settings", "ooInetProxyType", "2"),
    ("Inet/Settings", "ooInetHTTPProxyName", "127.0.0.1"),
    ("Inet/Settings", "ooInetHTTPProxyPort", "9"),
    ("Inet/Settings", "ooInetHTTPSProxyName", "127.0.0.1"),
    ("Inet/Settings", "ooInetHTTPSProxyPort", "9"),
    ("Inet/Settings", "ooInetNoProxy", ""),
)
"""No link of a document is followed, no macro runs, nothing is calculated anew: values stay as their author's
program stored them. Should a request leave all the same, it goes to a proxy that is not there."""


def _write_profile(profile: Path) -> None:
    """A profile that nobody has used, with nothing in it but the settings."""
    items = "".join(
        f'<item oor:path="/org.openoffice.{path}"><prop oor:name="{name}" oor:op="fuse">'
        f"<value>{escape(value)}</value></prop></item>\n"
        for path, name, value in _SETTINGS
    )
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<oor:items xmlns:oor="http://openoffice.org/2001/registry" '
        'xmlns:xs="http://www.w3.org/2001/XMLSchema" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n{items}</oor:items>\n',
        encoding="utf-8",
    )


def _run(command: list[str], folder: Path) -> int | None:
    """Run it to its end, a second time when it asks for it.

    Returns:
        How it ended; `None` when its time was up.
    """
    deadline = time.monotonic() + CONVERSION_SECONDS
    ended: int | None = _STARTS_AGAIN
    for _ in range(2):
        # It stays in the group of the reading process, whose end is its end: no session of its own.
        process = subprocess.Popen(  # noqa: S603 - our own words; the document's name is ours too
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
        )
        try:
            ended = process.wait(deadline - time.monotonic())
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()
            process.wait()
        if ended != _STARTS_AGAIN:
            break
    return ended


def _environment(folder: Path) -> dict[str, str]:
    """What LibreOffice needs, and nothing of whoever runs this."""
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "SAL_USE_VCLPLUGIN": "svp",
    }


def _peak() -> int:
    """Bytes that the largest process that this one waited for held."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def _is_full(before: int) -> bool:
    """Whether a process since then held most of the address space that it may have."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return most != resource.RLIM_INFINITY and _peak() > max(before, most * _FULL)


_FULL = 0.6
"""Share of the address space; the rest goes to its libraries and to what it asked for in vain."""


def _failure(content: bytes, ended: int | None) -> UnreadableError:
    """Why there is no outcome: what is wrong with the file, else how LibreOffice ended."""
    if ended is None or ended == -signal.SIGXCPU:
        return UnreadableError("timeout", "converting it takes too long")
    if ended == -signal.SIGXFSZ:
        return UnreadableError("too_large", "what it converts to is too large")
    compound = _Compound(content) if content.startswith(_OLE) else None
    if compound is not None and compound.is_encrypted():
        return _encrypted()
    if _is_cut_rtf(content) if compound is None else compound.is_cut():
        return _truncated()
    if ended < 0:
        return UnreadableError("crashed", "LibreOffice crashed over it")
    return UnreadableError("corrupt", "LibreOffice cannot make sense of it")


def _is_cut_rtf(content: bytes) -> bool:
    return content.startswith(b"{\\rtf") and not content.rstrip(b"\0\r\n\t ").endswith(b"}")


_FIRST_WORD_97 = 0x6A
"""The lowest version number in a Word file that the filter of Word 97 reads."""
_WORD_ENCRYPTED = 0x0100
_EXCEL_PASSWORD = 0x002F
_SMALL_STREAM = 4096
_LAST_SECTOR = 0xFFFFFFF9
_NO_ENTRY = 0xFFFFFFFF
_MOST_ENTRIES = 10_000
_STREAM, _ROOT = 2, 5


class _Compound:
    """The root folder of an OLE file, as far as it is there: enough to tell what it is.

    Broken chains end; nothing here raises.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._sector = 4096 if self._number(30, 2) == 12 else 512  # noqa: PLR2004 - the power of two
        self._tables = list(self._table_sectors())
        self._entries = self._directory()
        self.streams: dict[str, tuple[int, int]] = dict(self._root_streams())
        """Where each stream at the root begins and how long it is; names in lower case."""

    def version(self) -> int:
        """The version number of a Word file, 0 when it is not there."""
        head = self._head("worddocument")
        return int.from_bytes(head[2:4], "little")

    def is_encrypted(self) -> bool:
        """Whether it says that it wants a password."""
        flags = int.from_bytes(self._head("worddocument")[10:12], "little")
        if flags & _WORD_ENCRYPTED or "encryptedsummary" in self.streams:
            return True
        return any(self._has_password_record(self._head(name)) for name in ("workbook", "book"))

    def is_cut(self) -> bool:
        """Whether the directory, or a stream at the root, would end behind the end of the file."""
        end = len(self._content) + self._sector
        return (self._number(48) + 2) * self._sector > end or any(
            size >= _SMALL_STREAM and (start + 1) * self._sector + size > end
            for start, size in self.streams.values()
        )

    @staticmethod
    def _has_password_record(head: bytes) -> bool:
        place = 0
        while place + 4 <= len(head):
            kind, length = struct.unpack_from("<HH", head, place)
            if kind == _EXCEL_PASSWORD:
                return True
            place += 4 + length
        return False

    def _number(self, place: int, size: int = 4) -> int:
        piece = self._content[place : place + size]
        return int.from_bytes(piece, "little") if len(piece) == size else _NO_ENTRY

    def _table_sectors(self) -> Iterator[int]:
        """The sectors that say which sector follows which."""
        for place in range(76, 512, 4):
            yield self._number(place)
        here, seen = self._number(68), set[int]()
        while here <= _LAST_SECTOR and here not in seen and (here + 1) * self._sector < len(self._content):
            seen.add(here)
            begin = (here + 1) * self._sector
            for place in range(begin, begin + self._sector - 4, 4):
                yield self._number(place)
            here = self._number(begin + self._sector - 4)

    def _chain(self, first: int) -> Iterator[int]:
        per_table = self._sector // 4
        seen = set[int]()
        while first <= _LAST_SECTOR and first not in seen:
            seen.add(first)
            yield first
            table, place = divmod(first, per_table)
            if table >= len(self._tables) or self._tables[table] > _LAST_SECTOR:
                return
            first = self._number((self._tables[table] + 1) * self._sector + place * 4)

    def _directory(self) -> list[bytes]:
        entries: list[bytes] = []
        for sector in self._chain(self._number(48)):
            begin = (sector + 1) * self._sector
            piece = self._content[begin : begin + self._sector]
            entries += [piece[at : at + 128] for at in range(0, len(piece) - 127, 128)]
            if len(entries) > _MOST_ENTRIES or not piece:
                break
        return entries

    def _root_streams(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Walk the tree of the root's own entries: what embedded documents have in theirs does not count."""
        if not self._entries or self._entries[0][66] != _ROOT:
            return
        waiting = [int.from_bytes(self._entries[0][76:80], "little")]
        seen = set[int]()
        while waiting:
            number = waiting.pop()
            if number >= len(self._entries) or number in seen:
                continue
            seen.add(number)
            entry = self._entries[number]
            left, right = struct.unpack_from("<II", entry, 68)
            waiting += [left, right]
            if entry[66] == _STREAM:
                length = max(min(int.from_bytes(entry[64:66], "little"), 64) - 2, 0)
                name = entry[:length].decode("utf-16-le", "replace")
                yield name.lower(), struct.unpack_from("<II", entry, 116)

    def _head(self, name: str) -> bytes:
        """The beginning of a stream, some of it at least; empty when there is none."""
        start, size = self.streams.get(name, (0, 0))
        if size >= _SMALL_STREAM:
            begin = (start + 1) * self._sector
            return self._content[begin : begin + min(size, self._sector)]
        if not size:
            return b""
        # Small ones share the root's stream, 64 bytes a piece.
        sector, place = divmod(start * 64, self._sector)
        root = int.from_bytes(self._entries[0][116:120], "little")
        for number, found in enumerate(self._chain(root)):
            if number == sector:
                begin = (found + 1) * self._sector + place
                return self._content[begin : begin + min(size, 64)]
        return b""
