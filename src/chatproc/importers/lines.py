"""The lines of a text export as characters: which encoding it is in, and its lines one at a time.

A file of any size is read in bounded memory. Bytes that are no characters are shown as U+FFFD and listed,
never dropped. Knows nothing of what a line means.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatproc.importers.pieces import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from chatproc.importers.base import Reading, Source

# Longer than any message of the programs whose exports are lines; the rest of such a line is listed.
MAX_LINE_BYTES = 1 << 20
_SAMPLE_BYTES = 1 << 16
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
# Common enough that Chinese of a few lines holds some, and rare where one charset is taken for the other.
_COMMON = frozenset(
    "的一是不了我在有人這这他們们來来你好上下中大午月日年時时間间說说話话個个要會会就明天請请"
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the characters of a file are written.

    Attributes:
        name: Python's name of it.
        mark: Bytes of the byte order mark before the text.
    """

    name: str
    mark: int = 0

    @property
    def newline(self) -> bytes:
        """The bytes that end a line; in none of these encodings they are part of another character."""
        return "\n".encode(self.name)


def encoding_of(path: Path) -> Encoding:
    """The encoding of a text: by its mark, by its zeros, or what most of its first lines beyond ASCII fit.

    UTF-8 and UTF-16; else GB18030 (so GBK and GB 2312), or Big5 where that gives commoner characters.
    """
    with path.open("rb") as file:
        head = file.read(_SAMPLE_BYTES)
        for mark, name in _BOMS:
            if head.startswith(mark):
                return Encoding(name, len(mark))
        wide = _utf16_without_mark(head)
        if wide is not None:
            return Encoding(wide)
        while head.isascii() and (more := file.read(CHUNK_BYTES)):
            head = more
        sample = _beyond_ascii(head, file.read(_SAMPLE_BYTES))
    return Encoding(_likeliest(sample))


def read_lines(source: Source, reading: Reading, *, listed: bool) -> Iterator[tuple[int, str]]:
    """The lines of an export's one file with their numbers, without their ends.

    Args:
        source: The export.
        reading: Told the bytes read.
        listed: List what is damaged; of several walks of a file only one should.
    """
    path = source.files[0]
    encoding = encoding_of(path)
    with path.open("rb") as file:
        file.seek(encoding.mark)
        for number, (raw, cut) in enumerate(_raw_lines(file, encoding.newline, reading.tick), 1):
            try:
                text = raw.decode(encoding.name)
            except UnicodeDecodeError:
                text = raw.decode(encoding.name, "replace")
                if listed and not cut:
                    reason = f"not {encoding.name}: what is no character is shown as \ufffd"
                    reading.not_understand(source.name, number, text, reason)
            if listed and cut:
                reason = f"a line longer than {MAX_LINE_BYTES} bytes: {cut} bytes at its end are left out"
                reading.not_understand(source.name, number, text, reason)
            yield number, text.removesuffix("\r")


def first_lines(path: Path) -> list[str]:
    """The lines in the beginning of a file, to tell its format; none of what is no readable file."""
    if not path.is_file():
        return []
    try:
        encoding = encoding_of(path)
        with path.open("rb") as file:
            file.seek(encoding.mark)
            head = file.read(_SAMPLE_BYTES)
    except OSError:
        return []
    return [line.removesuffix("\r") for line in head.decode(encoding.name, "replace").split("\n")]


def _raw_lines(file: BinaryIO, newline: bytes, tick: Callable[[int], None]) -> Iterator[tuple[bytes, int]]:
    """Each line's bytes up to the longest, and how many bytes of it are left out."""
    rest, cut = b"", 0
    while chunk := file.read(CHUNK_BYTES):
        tick(len(chunk))
        *whole, rest = _split(rest + chunk, newline)
        for raw in whole:
            yield raw[:MAX_LINE_BYTES], cut + max(len(raw) - MAX_LINE_BYTES, 0)
            cut = 0
        cut += max(len(rest) - MAX_LINE_BYTES, 0)
        rest = rest[:MAX_LINE_BYTES]
    if rest or cut:
        yield rest, cut


def _split(text: bytes, newline: bytes) -> list[bytes]:
    """The text cut at its newlines; those of two bytes begin at even places alone."""
    if len(newline) == 1:
        return text.split(newline)
    found, start, place = [], 0, text.find(newline)
    while place >= 0:
        if place % 2:
            place = text.find(newline, place + 1)
            continue
        found.append(text[start:place])
        start = place + 2
        place = text.find(newline, start)
    return [*found, text[start:]]


def _utf16_without_mark(head: bytes) -> str | None:
    """UTF-16 by the zeros of its digits and spaces, all on one side, and by its line ends."""
    low, high = head[0::2].count(0), head[1::2].count(0)
    if high > 4 * low and len(_split(head, b"\n\0")) > 1:
        return "utf-16-le"
    if low > 4 * high and len(_split(head, b"\0\n")) > 1:
        return "utf-16-be"
    return None


def _beyond_ascii(head: bytes, more: bytes) -> list[bytes]:
    """Whole lines with bytes beyond ASCII, from the first such on."""
    first = _BEYOND_ASCII.search(head)
    begin = head.rfind(b"\n", 0, first.start()) + 1 if first is not None else 0
    lines = (head[begin:] + more)[:_SAMPLE_BYTES].split(b"\n")
    return [line for line in (lines[:-1] or lines) if not line.isascii()]


def _likeliest(sample: list[bytes]) -> str:
    if not sample:
        return "utf-8"
    fits = {name: list(_decoded(sample, name)) for name in ("utf-8", "gb18030", "big5")}
    if len(fits["utf-8"]) * 2 >= len(sample) or len(fits["utf-8"]) >= len(fits["gb18030"]):
        return "utf-8"
    return max(("gb18030", "big5"), key=lambda name: (_commonness(fits[name]), len(fits[name])))


def _decoded(sample: list[bytes], name: str) -> Iterator[str]:
    for line in sample:
        try:
            yield line.decode(name)
        except UnicodeDecodeError:
            continue


def _commonness(texts: list[str]) -> int:
    return sum(character in _COMMON for text in texts for character in text)
