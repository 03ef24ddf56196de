"""The type of a file, by content first and by name second.

Pure. It reads a few marks and the directory of a zip, never what is inside; it must never trust a name over a
content that says otherwise.
"""

from __future__ import annotations

import io
import zipfile
from typing import NamedTuple

from chatproc.attachments.charset import NotTextError, decode
from chatproc.attachments.units import UnreadableError

_LONGEST_JUNK = 64 * 1024
"""Bytes before the `%PDF-` of a file that is named pdf: cut-off headers, banners."""

_LARGEST_TYPES = 1024 * 1024
_MOST_MEMBERS = 100_000
_LONGEST_END = 66_000
"""Within so many bytes of its end a zip says where its table of contents is."""

_LONGEST_OPENING = 2048


class Sniffed(NamedTuple):
    """The kind that a parser is chosen by, and what to say about it (may be empty)."""

    kind: str
    note: str


_SPOKEN = {
    "pdf": "PDF",
    "docx": "a DOCX document",
    "xlsx": "an XLSX workbook",
    "pptx": "a PPTX presentation",
    "doc": "an old Word document",
    "xls": "an old Excel workbook",
    "ppt": "an old PowerPoint presentation",
    "wps": "a Works document",
    "wri": "a Word document of DOS or Write",
    "wordml": "a Word document in XML",
    "rtf": "RTF",
    "odt": "an ODT document",
    "ods": "an ODS workbook",
    "odp": "an ODP presentation",
    "html": "HTML",
    "mhtml": "a saved web page or a mail",
    "png": "a PNG image",
    "jpeg": "a JPEG image",
    "webp": "a WebP image",
    "gif": "a GIF image",
    "bmp": "a BMP image",
    "tiff": "a TIFF image",
    "heic": "a HEIC image",
    "ppm": "a PNM image",
    "csv": "plain text",
    "md": "plain text",
    "txt": "plain text",
}

_SAME = {
    **dict.fromkeys(("htm", "xhtml", "shtml"), "html"),
    **dict.fromkeys(("jpg", "jpe", "jfif"), "jpeg"),
    **dict.fromkeys(("tif",), "tiff"),
    **dict.fromkeys(("heif", "hif"), "heic"),
    **dict.fromkeys(("pgm", "pbm", "pnm"), "ppm"),
    **dict.fromkeys(("docm", "dotx", "dotm"), "docx"),
    **dict.fromkeys(("xlsm", "xltx", "xltm"), "xlsx"),
    **dict.fromkeys(("pptm", "potx", "ppsx"), "pptx"),
    **dict.fromkeys(("dot",), "doc"),
    **dict.fromkeys(("xlt", "et"), "xls"),
    **dict.fromkeys(("pps", "pot", "dps"), "ppt"),
    **dict.fromkeys(("mht",), "mhtml"),
    **dict.fromkeys(("tsv",), "csv"),
    **dict.fromkeys(("markdown",), "md"),
}
"""Suffixes that mean a kind of another name."""

_WORD_ANYWAY = frozenset({"doc", "wps", "wpd"})
"""Names under which old word processors wrote files that have no mark, or that of Word."""

_PLAIN = frozenset(
    {
        *("txt", "text", "md", "markdown", "rst", "org", "tex", "log", "srt", "vtt", "ics", "vcf", "eml"),
        *("csv", "tsv", "json", "jsonl", "ndjson", "yaml", "yml", "toml", "ini", "cfg", "conf", "xml"),
        *("py", "js", "ts", "java", "c", "h", "cpp", "go", "rs", "sql", "sh", "bat", "ps1", "diff", "patch"),
    }
)
"""Names that promise plain text."""

_OTHERS = (
    (b"PK", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"RIFF", "a sound or a film"),
    (b"ID3", "a sound"),
    (b"OggS", "a sound or a film"),
    (b"fLaC", "a sound"),
    (b"#!AMR", "a sound"),
    (b"\x02#!SILK", "a sound"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"\x00\x00\x00\x0cjP", "a JPEG 2000 image"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (b"8BPS", "a Photoshop image"),
    (b"SQLite format 3", "a database"),
)
"""Contents that have a name and no parser here."""


def sniff(content: bytes, named: str) -> Sniffed:
    """Tell what a file is.

    Args:
        content: The whole file.
        named: The lower-case suffix of its name; `file` when there is none.

    Returns:
        The kind, and words when it is not what the name promises.

    Raises:
        UnreadableError: It is nothing that is read here: `encrypted`, `truncated`, `type_mismatch` (the name
            promises a kind that the content is not), `unsupported_type`.

    Example:
        >>> sniff(b"%PDF-1.7", "docx")
        Sniffed(kind='pdf', note='Named docx, its content is PDF.')
    """
    kind = _binary_kind(content, named) or _text_kind(content, named)
    return Sniffed(kind, _mismatch(kind, named))


def _mismatch(kind: str, named: str) -> str:
    promised = _SAME.get(named, named)
    is_plain = _SPOKEN[kind] == "plain text"
    if named == "file" or promised == kind or (is_plain and named in _PLAIN):
        return ""
    if kind == "doc" and named in _WORD_ANYWAY:
        return ""
    return f"Named {_shown(named)}, its content is {_SPOKEN[kind]}."


_MARKS: tuple[tuple[str, dict[int, bytes]], ...] = (
    ("pdf", {0: b"%PDF-"}),
    ("pdf", {0: b"\xef\xbb\xbf%PDF-"}),
    ("png", {0: b"\x89PNG\r\n\x1a\n"}),
    ("jpeg", {0: b"\xff\xd8\xff"}),
    ("gif", {0: b"GIF87a"}),
    ("gif", {0: b"GIF89a"}),
    ("tiff", {0: b"II*\0"}),
    ("tiff", {0: b"MM\0*"}),
    ("webp", {0: b"RIFF", 8: b"WEBP"}),
    *(("heic", {4: b"ftyp" + brand}) for brand in (b"heic", b"heix", b"hevc", b"heim", b"mif1", b"msf1")),
    ("bmp", {0: b"BM", 6: b"\0\0\0\0"}),
    *(("ppm", {0: b"P" + kind + blank}) for kind in (b"4", b"5", b"6") for blank in (b"\n", b" ", b"\t")),
    ("rtf", {0: b"{\\rtf"}),
    ("wri", {0: b"1\xbe\0\0"}),
    ("wri", {0: b"2\xbe\0\0"}),
    ("package", {0: b"PK\x03\x04"}),
    ("compound", {0: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"}),
)
"""What a kind has where."""


def _binary_kind(content: bytes, named: str) -> str | None:
    """The kind of a file that begins with a mark, `None` when it may be a text."""
    for kind, marks in _MARKS:
        if all(content.startswith(mark, at) for at, mark in marks.items()):
            if kind == "package":
                return _package_kind(content, named)
            return _compound_kind(content, named) if kind == "compound" else kind
    junk = _LONGEST_JUNK if named == "pdf" else 0
    return "pdf" if b"%PDF-" in content[:junk] else None


def _package_kind(content: bytes, named: str) -> str:
    """The kind of a zip file: what its table of contents says it holds."""
    if content.count(b"PK\x01\x02") > _MOST_MEMBERS:
        raise UnreadableError("too_large", f"its package has more than {_MOST_MEMBERS} parts")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            names = package.namelist()
            types = _member(package, "[Content_Types].xml")
            mimetype = _member(package, "mimetype")
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, RuntimeError):
        return _broken_package_kind(content, named)
    for text, mark, kind in (
        (mimetype, b"opendocument.text", "odt"),
        (mimetype, b"opendocument.spreadsheet", "ods"),
        (mimetype, b"opendocument.presentation", "odp"),
        (types, b"wordprocessingml.document.main", "docx"),
        (types, b"wordprocessingml.template.main", "docx"),
        (types, b"word.document.macroEnabled", "docx"),
        (types, b"spreadsheetml.sheet.main", "xlsx"),
        (types, b"excel.sheet.macroEnabled", "xlsx"),
        (types, b"presentationml.", "pptx"),
        (types, b"wordprocessingml.", "docx"),
        (types, b"spreadsheetml.", "xlsx"),
    ):
        if mark in text:
            return kind
    for folder, kind in (("word/", "docx"), ("xl/", "xlsx"), ("ppt/", "pptx")):
        if any(name.startswith(folder) for name in names):
            return kind
    raise _other_type(named, "a zip archive")


def _member(package: zipfile.ZipFile, name: str) -> bytes:
    """The beginning of a small member; a long one is cut, a missing or broken one is empty."""
    try:
        with package.open(name) as member:
            return member.read(_LARGEST_TYPES)
    except (KeyError, zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError, RuntimeError):
        return b""


def _broken_package_kind(content: bytes, named: str) -> str:
    """A zip whose table of contents cannot be read: most often it is not there, half of a download."""
    if b"[Content_Types].xml" in content or b"word/" in content or _SAME.get(named, named) in _PACKAGES:
        if b"PK\x05\x06" in content[-_LONGEST_END:]:
            raise UnreadableError("corrupt", "the table of contents of its package is broken")
        raise UnreadableError("truncated", "its end is missing; the file is only a part of itself")
    raise _other_type(named, "a broken zip archive")


_PACKAGES = frozenset({"docx", "xlsx", "pptx", "odt", "ods", "odp"})


def _compound_kind(content: bytes, named: str) -> str:
    """The kind of an old Office file: the streams that its directory names."""
    for stream, kind in (
        ("EncryptedPackage", "encrypted"),
        ("WordDocument", "doc"),
        ("Workbook", "xls"),
        ("Book", "xls"),
        ("PowerPoint Document", "ppt"),
        ("MatOST", "wps"),
    ):
        if _has_stream(content, stream):
            if kind == "encrypted":
                raise UnreadableError("encrypted", "it wants a password")
            return kind
    if named in {"doc", "wps", "xls", "ppt"}:
        return named
    raise _other_type(named, "an old Office file of an unknown kind")


def _has_stream(content: bytes, name: str) -> bool:
    """Whether a directory entry has this name: its text, zeros up to 64 bytes, then its length."""
    text = (name + "\0").encode("utf-16-le")
    entry = text.ljust(64, b"\0") + len(text).to_bytes(2, "little")
    return entry in content


def _text_kind(content: bytes, named: str) -> str:
    """The kind of a file of readable characters."""
    try:
        text, _ = decode(content)
    except NotTextError:
        found = next((name for mark, name in _OTHERS if content.startswith(mark)), None)
        if found is None and named in _WORD_ANYWAY:
            return "doc"
        if found is None:
            found = "no plain text in a known charset" if named in _PLAIN else "of no known type"
        raise _other_type(named, found) from None
    opening = text[:_LONGEST_OPENING].lstrip().lower()
    if "<?mso-application" in opening or "<w:worddocument" in opening:
        return "wordml"
    if opening.startswith(("mime-version:", "from: ", "message-id:")) and named in {"mht", "mhtml", "doc"}:
        return "mhtml"
    if opening.startswith("<svg") or (opening.startswith("<?xml") and "<svg" in opening):
        raise _other_type(named, "an SVG image")
    if named not in _PLAIN and (opening.startswith(("<!doctype html", "<html")) or "<html" in opening):
        return "html"
    if opening.startswith(("<!doctype html", "<html")):
        return "html"
    promised = _SAME.get(named, named)
    return promised if promised in {"csv", "md", "html"} else "txt"


def _other_type(named: str, found: str) -> UnreadableError:
    """What to say of a content that is not read: whether the name promised something else."""
    promised = _SAME.get(named, named)
    if (promised in _SPOKEN or promised in _PLAIN) and not found.startswith(f"a {promised}"):
        return UnreadableError("type_mismatch", f"named {_shown(named)}, but the content is {found}")
    what = found if named == "file" else f"type {_shown(named)}, {found},"
    return UnreadableError("unsupported_type", f"{what} is not read by this version")


def _shown(named: str) -> str:
    """A type as the document shows it, fit for a sentence."""
    return named if named.isalnum() and named.isascii() and len(named) <= 10 else "unknown"  # noqa: PLR2004
