"""MIME: the bytes of one mail as a tree of parts, its headers and texts decoded as readers of mail show them.

Written for mail as it is, not as it should be: wrong charset labels, boundaries that never close, eight-bit
headers, words cut in the middle of a character. Pure, linear in the size of the mail, and it never fails.
"""

from __future__ import annotations

import binascii
import codecs
import re
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote_to_bytes

from chatproc.attachments.charset import NotTextError, decode

MAX_DEPTH = 20
MAX_PARTS = 1000
_MAX_HEADER_BYTES = 64 << 10
_LONGEST_MARK = 200
_HEAD_OF_PAGE = 4096

_HEADER = re.compile(rb"([!-9;-~]{1,100})[ \t]*:", re.DOTALL)
_WORD = re.compile(rb"=\?([!->@-~]{1,60})\?([bBqQ])\?([^?]*+)\?=")
_PARAMETER = re.compile(rb';\s*+([^\s=;"]++)\s*+=\s*+("(?:[^"\\]|\\.)*+"?|[^;]*+)', re.DOTALL)
_NUMBERED = re.compile(r"([^*]++)(?:\*(\d{1,3}))?(\*)?")
_NO_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
_DECLARED = re.compile(rb"""charset\s*=\s*["']?\s*([A-Za-z0-9_-]{3,20})""", re.IGNORECASE)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")

# What mailers write, and the charset that they mean by it: the first that fits.
_LATIN = ("cp1252", "latin-1")
_MEANT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gb2312", "gb_2312-80", "gbk", "x-gbk", "cp936", "windows-936"), ("gb18030",)),
    **dict.fromkeys(("big5", "x-x-big5", "cn-big5"), ("cp950", "big5hkscs")),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "ks_c_5601", "ksc5601"), ("cp949",)),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis"), ("cp932", "shift_jisx0213")),
    **dict.fromkeys(("iso-2022-jp", "csiso2022jp"), ("iso2022_jp", "iso2022_jp_2004", "iso2022_jp_ext")),
    "euc-jp": ("euc_jp", "euc_jisx0213"),
    "hz-gb-2312": ("hz",),
    **dict.fromkeys(("iso-8859-1", "latin1", "iso8859-1", "windows-1252"), _LATIN),
}
_LABELS_OF_NOTHING = frozenset(
    {"", "us-ascii", "ascii", "ansi_x3.4-1968", "unknown", "x-unknown", "unknown-8bit", "x-user-defined"}
)
# Codecs that are no charsets of mail.
_NO_CHARSETS = frozenset(
    {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem", "utf-7"}
)
_FEWEST_WIDE = 3
_LINE_FEED = b"\n"


@dataclass(frozen=True, slots=True)
class _Bytes:
    """A stretch of the mail, not copied before it is read."""

    raw: bytes
    begin: int
    end: int

    def copied(self) -> bytes:
        return self.raw[self.begin : self.end]

    def view(self) -> memoryview:
        return memoryview(self.raw)[self.begin : self.end]


@dataclass(frozen=True)
class Part:
    """One part of a mail, the mail itself the first.

    Attributes:
        fields: Header fields by lower-case name, unfolded, in the order of the mail.
        stretch: Its body as it stands.
        parts: The parts of a multipart, or the one mail in a `message/rfc822`.
        usual: Its type where none is written.
    """

    fields: dict[str, list[bytes]]
    stretch: _Bytes
    parts: tuple[Part, ...] = ()
    usual: str = "text/plain"

    @cached_property
    def _typed(self) -> tuple[str, dict[str, str]]:
        return parameters(self.field("content-type"))

    @cached_property
    def _disposed(self) -> tuple[str, dict[str, str]]:
        return parameters(self.field("content-disposition"))

    def field(self, name: str) -> bytes:
        """The first field of that name; `b""` without one."""
        return self.fields.get(name, [b""])[0]

    @property
    def type(self) -> str:
        """As `text/plain`, lower case."""
        written = self._typed[0]
        return written if written.count("/") == 1 else self.usual

    @property
    def disposition(self) -> str:
        """`attachment`, `inline` or `""`."""
        return self._disposed[0]

    @property
    def charset(self) -> str:
        """As labelled, lower case; `""` without a label."""
        words = self._typed[1].get("charset", "").split()
        return words[0].strip("'\"").lower() if words else ""

    def name(self, charset: str = "") -> str | None:
        """The file's name as sent, without the folders it lay in; `charset` as in `header_text`."""
        named = (("content-disposition", "filename"), ("content-type", "name"))
        written = (parameters(self.field(field), charset)[1].get(name) for field, name in named)
        name = next(filter(None, written), "")
        return re.split(r"[/\\]", name)[-1].strip() or None

    def parameter(self, name: str) -> str:
        """A parameter of its type; `""` without one."""
        return self._typed[1].get(name, "")

    def content(self) -> bytes:
        """The body with its transfer encoding undone; its line ends are LF, however it came."""
        encoding = self.field("content-transfer-encoding").strip().lower()
        if encoding == b"base64":
            return _base64(self.stretch.view())
        body = self.stretch.copied().replace(b"\r\n", b"\n")
        if encoding == b"quoted-printable":
            return binascii.a2b_qp(body)
        return body

    def text(self) -> tuple[str, str]:
        """The body as text, its lines ended by LF, and what had to be mended (may be empty)."""
        content, label = self.content(), self.charset
        if not label and self.type == "text/html":
            declared = _DECLARED.search(content, 0, _HEAD_OF_PAGE)
            label = declared[1].decode("ascii").lower() if declared else ""
        text, note = decoded(content, label)
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if self.parameter("format").lower() == "flowed":
            text = _unflowed(text, joined=self.parameter("delsp").lower() == "yes")
        return text, note


def read_mail(raw: bytes) -> Part:
    r"""The tree of a mail.

    Example:
        >>> mail = read_mail(b"Subject: =?gb2312?B?1twg?=\r\n =?gb2312?B?zuU=?=\r\n\r\nbody\r\n")
        >>> header_text(mail.field("subject")), mail.text()[0]
        ('周 五', 'body\n')
    """
    begin = len(codecs.BOM_UTF8) if raw.startswith(codecs.BOM_UTF8) else 0
    return _Tree().part(_Bytes(raw, begin, len(raw)), 0, "text/plain")


class _Tree:
    """Counts the parts while a mail is taken apart: one of a million parts is an attack."""

    def __init__(self) -> None:
        self.count = 0

    def part(self, whole: _Bytes, depth: int, usual: str) -> Part:
        self.count += 1
        fields, body = _fields(whole)
        leaf = Part(fields, body, (), usual)
        if depth >= MAX_DEPTH:
            return leaf
        if leaf.type.startswith("multipart/"):
            inner = "message/rfc822" if leaf.type == "multipart/digest" else "text/plain"
            cut = _cut(body, leaf.parameter("boundary"))
            parts = [self.part(piece, depth + 1, inner) for piece in cut if self.count < MAX_PARTS]
            # Without any boundary in it the body is what the writer has to say.
            return Part(fields, body, tuple(parts), usual) if parts else _plain(fields, body)
        if leaf.type == "message/rfc822":
            content = leaf.content() if leaf.field("content-transfer-encoding") else b""
            stretch = _Bytes(content, 0, len(content)) if content else body
            return Part(fields, body, (self.part(stretch, depth + 1, "text/plain"),), usual)
        return leaf


def _plain(fields: dict[str, list[bytes]], body: _Bytes) -> Part:
    return Part({**fields, "content-type": [b"text/plain"]}, body)


def _fields(whole: _Bytes) -> tuple[dict[str, list[bytes]], _Bytes]:
    """The header fields and the body; a line that is no field ends them as a blank one does."""
    raw, at, end = whole.raw, whole.begin, whole.end
    found: list[tuple[str, list[bytes]]] = []
    while at < end:
        stop = raw.find(b"\n", at, end) + 1 or end
        line = raw[at:stop].rstrip(b"\r\n")
        if not line:
            at = stop
            break
        if line[0] in b" \t" and found:
            found[-1][1].append(line)
        elif (match := _HEADER.match(line)) is not None:
            found.append((match[1].decode("ascii").lower(), [line[match.end() :]]))
        elif not (at == whole.begin and line.startswith((b"From ", b">From "))):
            break
        at = stop
    fields: dict[str, list[bytes]] = {}
    for name, lines in found:
        fields.setdefault(name, []).append(b"".join(lines)[:_MAX_HEADER_BYTES].strip())
    return fields, _Bytes(raw, at, end)


def _cut(body: _Bytes, boundary: str) -> list[_Bytes]:
    """The parts between the boundaries; one that never closes goes to the end."""
    raw, end = body.raw, body.end
    mark = b"--" + boundary.encode("utf-8", "replace")
    pieces: list[_Bytes] = []
    begin = None
    at = raw.find(mark, body.begin, end) if boundary else -1
    while at >= 0:
        after = at + len(mark)
        if at == body.begin or raw[at - 1] in _LINE_FEED:
            stop = raw.find(b"\n", after, end) + 1 or end
            rest = raw[after : min(stop, after + _LONGEST_MARK)].strip()
            if rest in (b"", b"--"):
                if begin is not None:
                    pieces.append(_Bytes(raw, begin, _line_end_before(raw, begin, at)))
                begin, after = stop if not rest else None, stop
                if rest:
                    break
        at = raw.find(mark, after, end)
    if begin is not None:
        pieces.append(_Bytes(raw, begin, end))
    return pieces


def _line_end_before(raw: bytes, begin: int, at: int) -> int:
    """The line end before a boundary belongs to the boundary."""
    for ending in (b"\r\n", b"\n"):
        if at - len(ending) >= begin and raw.startswith(ending, at - len(ending)):
            return at - len(ending)
    return max(begin, at)


def parameters(field: bytes, charset: str = "") -> tuple[str, dict[str, str]]:
    """What stands before the first semicolon, lower case, and the parameters, RFC 2231 undone.

    Args:
        field: The unfolded field.
        charset: As in `header_text`.

    Example:
        >>> parameters(b"attachment; filename*0*=gb18030''%B1%A8; filename*1*=%B1%ED.xlsx")
        ('attachment', {'filename': '报表.xlsx'})
    """
    first, _, _ = field.partition(b";")
    plain: dict[str, str] = {}
    numbered: dict[str, dict[int, tuple[bytes, bool]]] = {}
    for match in _PARAMETER.finditer(field):
        key = _NUMBERED.fullmatch(match[1].decode("ascii", "replace").lower())
        if key is None:
            continue
        value = _unquoted(match[2])
        if key[2] is None and key[3] is None:
            plain.setdefault(key[1], header_text(value, charset))
        else:
            pieces = numbered.setdefault(key[1], {})
            pieces.setdefault(int(key[2] or 0), (value, key[3] is not None))
    extended = {name: _extended(pieces) for name, pieces in numbered.items()}
    return first.decode("ascii", "replace").strip().lower(), {**plain, **extended}


def _unquoted(value: bytes) -> bytes:
    if not value.startswith(b'"'):
        return value.strip()
    return value[1:].removesuffix(b'"').replace(b'\\"', b'"').replace(b"\\\\", b"\\")


def _extended(pieces: dict[int, tuple[bytes, bool]]) -> str:
    """The value of `name*0*`, `name*1` …, whose first piece may say its charset."""
    values = []
    label = b""
    for place, (value, is_encoded) in sorted(pieces.items()):
        rest = value
        if is_encoded and place == min(pieces) and value.count(b"'") >= 2:  # noqa: PLR2004 - charset'language'
            label, _, rest = value.split(b"'", 2)
        values.append(unquote_to_bytes(rest) if is_encoded else rest)
    text, _ = decoded(b"".join(values), label.decode("ascii", "replace").lower())
    return _CONTROLS.sub("", text)


def header_text(field: bytes, charset: str = "") -> str:
    """A header field as a reader sees it: RFC 2047 undone, also where a word ends inside a character.

    Args:
        field: The unfolded field.
        charset: What eight-bit characters in it are likely to be, as the mail's body is labelled.

    Example:
        >>> header_text("[分子药件成功] 测试".encode("gbk"))
        '[分子药件成功] 测试'
    """
    if field.isascii() and b"=?" not in field:
        return _CONTROLS.sub("", field.decode("ascii").replace("\t", " ")).strip()
    texts: list[str] = []
    run: list[bytes] = []
    label = ""
    at = 0

    def end_run() -> None:
        if run:
            texts.append(decoded(b"".join(run), label)[0])
            run.clear()

    for word in _WORD.finditer(field):
        between = field[at : word.start()]
        name = word[1].decode("ascii", "replace").partition("*")[0].lower()
        if between.strip() or not run:
            end_run()
            texts.append(decoded(between, charset)[0])
        elif name != label:
            end_run()
        label = name
        run.append(_word_bytes(word[2], word[3]))
        at = word.end()
    end_run()
    texts.append(decoded(field[at:], charset)[0])
    return _CONTROLS.sub("", "".join(texts).replace("\t", " ").replace("\n", " ")).strip()


def _word_bytes(encoding: bytes, written: bytes) -> bytes:
    if encoding in b"bB":
        return _base64(written)
    return binascii.a2b_qp(written.replace(b" ", b"_"), header=True)


def _base64(written: bytes | memoryview) -> bytes:
    """Base64 as far as it goes: foreign characters and missing padding are overlooked."""
    try:
        return binascii.a2b_base64(written)
    except binascii.Error:
        digits = _NO_BASE64.sub(b"", written)
        digits = digits[: len(digits) - 1] if len(digits) % 4 == 1 else digits
        return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))


def decoded(content: bytes, label: str) -> tuple[str, str]:
    """Bytes as text, by their label where that can be, and what had to be mended (may be empty).

    Example:
        >>> decoded("报表".encode("utf-8"), "iso-8859-1")
        ('报表', 'UTF-8 that was labelled iso-8859-1')
    """
    names = _charsets(label)
    if content.isascii() and not names:
        return content.decode("ascii"), ""
    mislabelled = _as_mislabelled_utf8(content, names)
    if mislabelled is not None:
        return mislabelled, f"UTF-8 that was labelled {label}"
    for name in names:
        try:
            return content.decode(name), ""
        except UnicodeError:
            continue
    if names and names[0] != "utf-8":
        return content.decode(names[0], "replace"), f"bytes that are no {label}"
    try:
        text, note = decode(content)
    except NotTextError:
        return content.decode("latin-1" if not names else "utf-8", "replace"), "text of an unknown charset"
    return text, f"text without a right charset label. {note}" if names or note else ""


def _charsets(label: str) -> tuple[str, ...]:
    """The charsets that a label may mean; none for one that says nothing or that nobody knows."""
    if label in _LABELS_OF_NOTHING:
        return ()
    if label in _MEANT:
        return _MEANT[label]
    try:
        name = codecs.lookup(label).name
        "".encode(name)
    except (LookupError, ValueError, TypeError):
        return ()
    return () if name in _NO_CHARSETS else (name,)


def _as_mislabelled_utf8(content: bytes, names: tuple[str, ...]) -> str | None:
    """UTF-8 under another label: long enough that it can be nothing else."""
    if not names or names[0].startswith(("utf", "iso2022", "hz")) or content.isascii():
        return None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    wide = sum(character >= "\u0800" for character in text)
    return text if names == _LATIN or wide >= _FEWEST_WIDE else None


def _unflowed(text: str, *, joined: bool) -> str:
    """Paragraphs of `format=flowed` (RFC 3676) on one line again."""
    paragraphs: list[list[str]] = []
    depth_before, is_open = 0, False
    for written in text.split("\n"):
        bare = written.lstrip(">")
        depth = len(written) - len(bare)
        bare = bare.removeprefix(" ")
        is_signature = bare == "-- "
        if not is_open or depth != depth_before or is_signature:
            paragraphs.append([">" * depth + " " if depth else ""])
        depth_before, is_open = depth, bare.endswith(" ") and not is_signature
        paragraphs[-1].append(bare[:-1] if is_open and joined else bare)
    return "\n".join(map("".join, paragraphs))
