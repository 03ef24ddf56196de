"""Cuts a large JSON document into its messages without ever holding it whole, and mends known damage.

Each message comes out as the bytes of one object with its line number, so that a damaged one costs itself
alone. Never decides what a message means, and never guesses beyond the two repairs that are named here.
"""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

CHUNK_BYTES = 1 << 20
# No message of a chat is longer; what claims to be is damage (a lost quote) and must not fill the memory.
MAX_PIECE_BYTES = 32 << 20

# Everything up to and with the next bracket that stands outside a string. Possessive, so linear.
_RUN = re.compile(
    rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+([{}\[\]])',
    re.DOTALL,
)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# A whole object of few levels at once; a deeper one, or one that the window cuts, goes bracket by bracket.
_LEVEL = rb'[{\[][^"{}\[\]]*+(?:(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"%s)[^"{}\[\]]*+)*+[}\]]'
_FLAT_OBJECT = re.compile(_LEVEL % (b"|" + _LEVEL % (b"|" + _LEVEL % b"")), re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|.)", re.DOTALL)
_STRING_OR_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|:\s*([^\s",:\[\]{}][^",\n}]*)', re.DOTALL)
# Raw control characters inside strings are common in exports and hurt nobody.
_LENIENT = json.JSONDecoder(strict=False)
_BARE_VALUE = re.compile(r"\s*(?:true|false|null|-?\d[\d.eE+-]*)\s*")


class Readable(Protocol):
    """What can be read in pieces: a file, one in an archive, one in another encoding."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, `b""` at the end."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a document.

    Attributes:
        path: Where it stands: keys joined by dots, `[]` for the elements of a list, `""` for the whole.
        kind: `open` (a watched object begins), `scalars` (members of a watched object that are no objects
            or lists, a fragment of its text), `object` (a wanted object, whole) or `stray` (something else
            in a list of wanted objects).
        line: The line it begins at, from 1.
        text: Its bytes; `b""` for `open`.
    """

    path: str
    kind: Literal["open", "scalars", "object", "stray"]
    line: int
    text: bytes


def as_utf8(file: Readable) -> Readable:
    """The same document in UTF-8, whether it was written so or in UTF-16, with or without a mark.

    Example:
        >>> import io
        >>> as_utf8(io.BytesIO('{"a": 1}'.encode("utf-16"))).read(100)
        b'{"a": 1}'
    """
    head = file.read(4)
    rest = _Prefixed(head, file)
    if head.startswith(b"\xef\xbb\xbf"):
        return _Prefixed(head[3:], file)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _Recoded(rest, "utf-16")
    # JSON begins with an ASCII character, and so does the next one as a rule.
    if head[:1] and head[1:2] == b"\0":
        return _Recoded(rest, "utf-16-le")
    if head[:1] == b"\0":
        return _Recoded(rest, "utf-16-be")
    return rest


class _Prefixed:
    """A file after bytes that were read from it already."""

    def __init__(self, head: bytes, file: Readable) -> None:
        self._head = head
        self._file = file

    def read(self, size: int, /) -> bytes:
        head, self._head = self._head, b""
        return head + self._file.read(max(size - len(head), 0)) if head else self._file.read(size)


class _Recoded:
    """A text file's bytes in UTF-8; half a surrogate pair stays what it is, for `loads` to mend."""

    def __init__(self, file: Readable, encoding: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        self._file = file

    def read(self, size: int, /) -> bytes:
        while chunk := self._file.read(size):
            if text := self._decoder.decode(chunk):
                return text.encode("utf-8", "surrogatepass")
        return b""


def pieces(
    file: Readable,
    *,
    objects: Collection[str],
    watched: Collection[str] = (),
    tick: Callable[[int], None] | None = None,
) -> Iterator[Piece]:
    """Walk a JSON document and yield the parts asked for, in the order of the file.

    Args:
        file: The document, UTF-8, open for reading bytes.
        objects: Paths of the objects to yield whole.
        watched: Paths of the objects whose scalar members to yield.
        tick: Told the number of bytes of each read.

    Yields:
        The pieces. A document that ends inside a wanted object yields what there is of it.

    Raises:
        ValueError: A text in it has no end within reason, or it ends before its last bracket and outside of
            a wanted object.

    Example:
        >>> import io
        >>> document = io.BytesIO(b'{"name": "x", "messages": [{"id": 1}]}')
        >>> [piece.text for piece in pieces(document, objects=["messages.[]"])]
        [b'{"id": 1}']
    """
    walk = _Walk(file, frozenset(objects), frozenset(watched), tick)
    yield from walk.pieces()


def lines(file: Readable, *, tick: Callable[[int], None] | None = None) -> Iterator[Piece]:
    """The lines of a file that are not empty, each as an object without a path.

    A line longer than any message is cut, which leaves a damaged one.
    """
    rest, number = b"", 0
    more = True
    while more:
        chunk = file.read(CHUNK_BYTES)
        more = bool(chunk)
        if tick is not None:
            tick(len(chunk))
        *whole, rest = (rest + chunk).split(b"\n")
        if rest and (not more or len(rest) > MAX_PIECE_BYTES):
            whole.append(rest)
            rest = b""
        for line in whole:
            number += 1
            if line.strip():
                yield Piece("", "object", number, line)


class _Walk:
    """One walk through one document: a window of bytes and the stack of open brackets."""

    def __init__(
        self,
        file: Readable,
        objects: frozenset[str],
        watched: frozenset[str],
        tick: Callable[[int], None] | None,
    ) -> None:
        self.file = file
        self.objects = objects
        self.lists = {path.removesuffix(".[]") for path in objects if path.endswith(".[]")}
        self.watched = watched
        self.tick = tick
        self.window = b""
        self.at = 0
        self.line = 1
        self.counted = 0
        self.open_paths: list[str] = []
        self.in_list: list[bool] = []
        self.ends_inside_piece = False

    def pieces(self) -> Iterator[Piece]:
        while (run := self._next_run()) is not None:
            before, bracket, begin = run
            if bracket in b"{[":
                yield from self._scalars(before, begin)
                path = self._path_of_child(before)
                if path in self.objects and (bracket == b"{" or self._is_among_objects()):
                    yield self._whole(path, "object" if bracket == b"{" else "stray")
                    continue
                self.open_paths.append(path)
                self.in_list.append(bracket == b"[")
                if bracket == b"{" and path in self.watched:
                    yield Piece(path, "open", self._line_at(self.at), b"")
            elif self.open_paths:
                yield from self._scalars(before, begin)
                self.open_paths.pop()
                self.in_list.pop()
        if self.open_paths and not self.ends_inside_piece:
            raise ValueError("the file breaks off before its end")

    def _next_run(self) -> tuple[bytes, bytes, int] | None:
        """The text before the next bracket, the bracket, and where that text begins."""
        while (match := _RUN.match(self.window, self.at)) is None:
            if not self._read_more(self.at):
                return None
        begin, self.at = self.at, match.end()
        return self.window[begin : match.start(1)], match[1], begin

    def _read_more(self, keep_from: int) -> bool:
        """Drop what lies before `keep_from` and read on. False at the end of the file."""
        if len(self.window) - keep_from > 2 * MAX_PIECE_BYTES:
            raise ValueError(f"no end of what begins at line {self.line}")
        self._line_at(keep_from)
        self.window = self.window[keep_from:]
        self.at -= keep_from
        self.counted -= keep_from
        # Growing reads keep the repeated search of one very long string linear.
        more = self.file.read(max(CHUNK_BYTES, min(len(self.window), MAX_PIECE_BYTES)))
        if self.tick is not None:
            self.tick(len(more))
        self.window += more
        return bool(more)

    def _whole(self, path: str, kind: Literal["object", "stray"]) -> Piece:
        """The object or list whose opening bracket was just read, up to its end."""
        begin = self.at - 1
        line = self._line_at(begin)
        flat = _FLAT_OBJECT.match(self.window, begin)
        if flat is not None:
            self.at = flat.end()
            return Piece(path, kind, line, flat[0])
        depth = 1
        head = b""
        while depth:
            match = _RUN.match(self.window, self.at)
            if match is not None:
                self.at = match.end()
                depth += 1 if match[1] in b"{[" else -1
                continue
            if len(self.window) - begin > MAX_PIECE_BYTES:
                head = head or self.window[begin : begin + CHUNK_BYTES]
                begin = self.at
            more = self._read_more(begin)
            begin = 0
            if not more:
                self.at = len(self.window)
                self.ends_inside_piece = True
                break
        return Piece(path, kind, line, head or self.window[begin : self.at])

    def _scalars(self, before: bytes, begin: int) -> Iterator[Piece]:
        """What stands before a bracket, where somebody wants to know."""
        if not self.open_paths:
            return
        path = self.open_paths[-1]
        if self._is_among_objects():
            stray = before.strip(b", \t\r\n")
            if stray:
                yield Piece(f"{path}.[]", "stray", self._line_at(begin + before.find(stray)), stray)
        elif not self.in_list[-1] and path in self.watched and before.strip():
            yield Piece(path, "scalars", self._line_at(begin), before)

    def _is_among_objects(self) -> bool:
        return bool(self.in_list) and self.in_list[-1] and self.open_paths[-1] in self.lists

    def _path_of_child(self, before: bytes) -> str:
        if not self.open_paths:
            return ""
        parent = self.open_paths[-1]
        name = "[]" if self.in_list[-1] else _key_at_end(before)
        return f"{parent}.{name}" if parent else name

    def _line_at(self, position: int) -> int:
        if position > self.counted:
            self.line += self.window.count(b"\n", self.counted, position)
            self.counted = position
        return self.line


def _key_at_end(before: bytes) -> str:
    """The key that stands before a bracket: `"messages": ` gives `messages`."""
    key = ""
    end = 0
    for string in _STRING.finditer(before):
        key, end = string[0][1:-1].decode("utf-8", "replace"), string.end()
    return key if before[end:].strip() == b":" else "?"


def scalars(fragment: bytes) -> dict[str, Any]:
    """The members in a `scalars` piece; a key at its end that waits for an object or a list is left out.

    Raises:
        ValueError: The fragment is no part of an object.

    Example:
        >>> scalars(b', "name": "x", "id": 3, "messages": ')
        {'name': 'x', 'id': 3}
    """
    text = fragment.strip()
    if text.endswith(b":"):
        text = text[: max((string.start() for string in _STRING.finditer(text)), default=0)]
    value, _ = loads(b"{" + text.strip(b", \t\r\n") + b"}")
    return value


def glimpse(piece: Piece) -> dict[str, Any]:
    """The object, or the scalar members, in a piece; nothing where it is damaged, for whoever only looks.

    Example:
        >>> glimpse(Piece("", "scalars", 1, b', "name": "x", "messages": '))
        {'name': 'x'}
    """
    try:
        return scalars(piece.text) if piece.kind == "scalars" else loads(piece.text)[0]
    except ValueError:
        return {}


def loads(text: bytes) -> tuple[dict[str, Any], str | None]:
    r"""Read one JSON object, mending what is known to be written wrongly.

    Mended are bytes that are no UTF-8, `\xNN` escapes (Telegram Desktop writes them for control characters)
    and a bare path where a string belongs.

    Returns:
        The object, and what was mended in words, `None` when nothing had to be.

    Raises:
        ValueError: It is no JSON object, or it is damaged in another way.

    Example:
        >>> loads(rb'{"text": "a\x01"}')
        ({'text': 'a\x01'}, 'escape \\xNN')
    """
    mended = []
    try:
        document = text.decode("utf-8")
    except UnicodeDecodeError:
        document = text.decode("utf-8", "replace")
        mended.append("bytes that are no UTF-8")
    value = _try_loads(document)
    if value is None:
        document, count = _mend_escapes(document)
        mended += ["escape \\xNN"] if count else []
        value = _try_loads(document)
    if value is None:
        document = _STRING_OR_VALUE.sub(_quote_bare_value, document)
        mended.append("a path without quotes")
        value = _try_loads(document)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - the text is wrong, not a type in the program
    return value, ", ".join(mended) or None


def _try_loads(document: str) -> object:
    try:
        return _LENIENT.decode(document)
    except (ValueError, RecursionError):
        return None


def _mend_escapes(document: str) -> tuple[str, int]:
    count = 0

    def mend(match: re.Match[str]) -> str:
        nonlocal count
        if match[1] is None:
            return match[0]
        count += 1
        return f"\\u00{match[1]}"

    return _ESCAPE.sub(mend, document), count


def _quote_bare_value(match: re.Match[str]) -> str:
    if match[1] is None or _BARE_VALUE.fullmatch(match[1]):
        return match[0]
    return ": " + json.dumps(match[1].rstrip(), ensure_ascii=False)
