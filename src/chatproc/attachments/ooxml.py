"""An Office package: its parts, what they point to, and one hardened pass over the XML of a part.

It must never inflate more than `MAX_XML` bytes, follow a target out of the package, or resolve an entity.
"""

from __future__ import annotations

import codecs
import io
import posixpath
import re
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import unquote
from xml.parsers import expat

from chatproc.attachments.units import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_XML = 64 * 1024 * 1024
"""Bytes of XML that one document may inflate to, counted while inflating: the directory may lie."""

MAX_PARTS = 10_000
"""Parts of one package; counted before the directory is read, which would cost memory for each."""

MAX_RELATIONS = 20_000
"""Relationships of one part."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_DIRECTORY_ENTRY = b"PK\x01\x02"
_DIRECTORY_END = b"PK\x05\x06"
_ENCRYPTED_MEMBER = 0x1
_RELATIONSHIP = "http://schemas.openxmlformats.org/package/2006/relationships Relationship"
_CONTENT_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types "
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//|\\\\")
_NO_MEMORY = expat.errors.codes[expat.errors.XML_ERROR_NO_MEMORY]
_ILLEGAL_CONTROLS = bytes([*range(9), 0xB, 0xC, *range(0xE, 0x20)])
_REFERENCE = re.compile(rb"&#(?:x([0-9A-Fa-f]+)|([0-9]+));")
_LAST_CHARACTER = 0x10FFFF

Attributes: TypeAlias = "dict[str, str]"
Start: TypeAlias = "Callable[[Attributes], None]"
End: TypeAlias = "Callable[[], None]"


class Relation(NamedTuple):
    """What a part points to: the last word of its type, a part name or a URL, whether it leads outside."""

    kind: str
    target: str
    external: bool


class Package:
    """The parts of an Office file.

    Args:
        content: The whole file.

    Raises:
        UnreadableError: `encrypted`, `type_mismatch`, `truncated`, `corrupt` or `too_large`.
    """

    def __init__(self, content: bytes) -> None:
        """Read the directory; inflate nothing."""
        _refuse_other_containers(content)
        self._left = MAX_XML
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _DAMAGE as error:
            raise UnreadableError("corrupt", "the directory of its zip container is damaged") from error
        infos = self._zip.infolist()
        if sum(info.file_size for info in infos if info.filename.endswith((".xml", ".rels"))) > MAX_XML:
            raise _too_large()
        # Part names are the same in either case, and some writers use the other slash.
        self._parts = {info.filename.replace("\\", "/").lstrip("/").lower(): info for info in infos}
        self.outside: list[str] = []
        """Kinds of relationships that lead outside, other than links to click on; none is followed."""

    def names(self) -> list[str]:
        """Names of all parts, in lower case, in the directory's order."""
        return list(self._parts)

    def read(self, name: str) -> bytes | None:
        """The bytes of a part; `None` when there is no such part.

        Raises:
            UnreadableError: `too_large` when the document has inflated enough, `encrypted`, `corrupt`.
        """
        info = self._parts.get(name.lower())
        if info is None:
            return None
        if info.flag_bits & _ENCRYPTED_MEMBER:
            raise UnreadableError("encrypted", "its parts want a password")
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise UnreadableError("corrupt", "a part is compressed in a way that no office program writes")
        try:
            with self._zip.open(info) as part:
                content = part.read(self._left + 1)
        except _DAMAGE as error:
            raise UnreadableError("corrupt", "a part of its zip container is damaged") from error
        if len(content) > self._left:
            raise _too_large()
        self._left -= len(content)
        return content

    def relations(self, part: str) -> dict[str, Relation]:
        """What a part points to, by id; `part` is `""` for the package itself.

        Raises:
            UnreadableError: As `read`; also `too_large` for more than `MAX_RELATIONS`.
        """
        folder, name = posixpath.split(part)
        content = self.read(posixpath.join(folder, "_rels", f"{name}.rels"))
        found: dict[str, Relation] = {}

        def relationship(attributes: Attributes) -> None:
            kind = attributes.get("Type", "").rpartition("/")[2]
            target = attributes.get("Target", "")
            external = attributes.get("TargetMode") == "External" or bool(_URL.match(target))
            if not external:
                inside = _resolve(folder, target)
                external, target = inside is None, inside or target
            if external and kind != "hyperlink":
                self.outside.append(kind)
            found[attributes.get("Id", "")] = Relation(kind, target, external)
            if len(found) > MAX_RELATIONS:
                raise UnreadableError("too_large", f"a part has more than {MAX_RELATIONS} relationships")

        if content:
            try:
                Pass({_RELATIONSHIP: relationship}, {}).run(content)
            except expat.ExpatError as error:
                raise UnreadableError("corrupt", "the relationships of its parts are damaged") from error
        return found

    def parts_of_type(self, ending: str) -> list[str]:
        """Names of the parts whose content type ends so, by `[Content_Types].xml`."""
        found: list[str] = []

        def override(attributes: Attributes) -> None:
            if attributes.get("ContentType", "").endswith(ending):
                found.append(attributes.get("PartName", "").lstrip("/"))

        content = self.read("[Content_Types].xml")
        if content:
            try:
                Pass({f"{_CONTENT_TYPES}Override": override}, {}).run(content)
            except expat.ExpatError:
                return found
        return found


_DAMAGE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, NotImplementedError,
    OSError, RuntimeError, ValueError, IndexError, OverflowError,
)  # fmt: skip
"""What `zipfile` raises for bytes that are no zip file, or no more."""


def _too_large() -> UnreadableError:
    return UnreadableError("too_large", f"its XML inflates to more than {MAX_XML // 1024 // 1024} MiB")


def _refuse_other_containers(content: bytes) -> None:
    if content.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in content:
            raise UnreadableError("encrypted", "it wants a password")
        raise UnreadableError("type_mismatch", "it is an old Office file, no zip package")
    if not content:
        raise UnreadableError("empty", "the file has no bytes")
    if not content.startswith(b"PK"):
        raise UnreadableError("type_mismatch", "it is no zip package")
    if _DIRECTORY_END not in content:
        raise UnreadableError("truncated", "its zip container ends before the directory")
    if content.count(_DIRECTORY_ENTRY) > MAX_PARTS:
        raise UnreadableError("too_large", f"its package has more than {MAX_PARTS} parts")


def _resolve(folder: str, target: str) -> str | None:
    """The part that a target names, seen from a folder; `None` when it leaves the package."""
    path = unquote(target.partition("#")[0]).replace("\\", "/")
    steps: list[str] = [] if path.startswith("/") else [step for step in folder.split("/") if step]
    for step in path.split("/"):
        if step == "..":
            if not steps:
                return None
            steps.pop()
        elif step not in {"", "."}:
            steps.append(step)
    return "/".join(steps)


def mended(xml: bytes) -> bytes:
    r"""XML without the characters that XML forbids, written or referred to, and without broken UTF-8.

    Example:
        >>> mended(b"<a>x&#1;\x02y\xff</a>").decode()
        '<a>xy\ufffd</a>'
    """
    if _encoding(xml) != "utf-8":
        return xml
    xml = xml.translate(None, _ILLEGAL_CONTROLS).decode("utf-8", "replace").encode()
    return _REFERENCE.sub(lambda found: found.group() if _is_legal(found) else b"", xml)


def _is_legal(reference: re.Match[bytes]) -> bool:
    hexadecimal, decimal = reference.groups()
    digits = (hexadecimal or decimal).lstrip(b"0")[:8] or b"0"
    code = int(digits, 16 if hexadecimal else 10)
    return (
        code in {0x9, 0xA, 0xD}
        or 0x20 <= code <= 0xD7FF  # noqa: PLR2004 - the ranges of XML 1.0
        or 0xE000 <= code <= 0xFFFD  # noqa: PLR2004
        or 0x10000 <= code <= _LAST_CHARACTER  # noqa: PLR2004
    )


class Pass:
    """One pass over a part: calls what stands for an element when it begins and when it ends.

    Text between elements is not listened to; `begin_text` sends it to a list until `end_text`.

    Args:
        starts: What to call with the attributes, by `namespace name`.
        ends: What to call without arguments.
        on_entity: Called in place of a reference to something outside of the part, which is never read.
    """

    def __init__(
        self, starts: Mapping[str, Start], ends: Mapping[str, End], on_entity: End | None = None
    ) -> None:
        """Nothing is read yet."""
        self._parser = _parser("utf-8")
        self._on_entity = on_entity
        find_start, find_end = starts.get, ends.get

        def start(name: str, attributes: Attributes) -> None:
            action = find_start(name)
            if action is not None:
                action(attributes)

        def end(name: str) -> None:
            action = find_end(name)
            if action is not None:
                action()

        self._told = start, end

    def run(self, xml: bytes) -> None:
        """Read the whole part at once: in slices, expat would read a long token again for each.

        Raises:
            expat.ExpatError: It is not well-formed; what came before has been told.
            UnreadableError: `corrupt`: it declares entities of its own.
            MemoryError: Its elements stand too deep within each other.
        """
        self._parser = parser = _parser(_encoding(xml))
        parser.ExternalEntityRefHandler = self._skip_entity
        parser.StartElementHandler, parser.EndElementHandler = self._told
        try:
            parser.Parse(xml, True)
        except expat.ExpatError as error:
            if error.code == _NO_MEMORY:
                raise MemoryError from error
            raise

    def begin_text(self, into: Callable[[str], object]) -> None:
        """Send text there from here on."""
        self._parser.CharacterDataHandler = into

    def end_text(self) -> None:
        """Send text nowhere."""
        self._parser.CharacterDataHandler = None

    def skip(self, watched: frozenset[str] = frozenset(), then: Callable[[bool], None] | None = None) -> None:
        """Leave out the element that just began, with all that is in it.

        Args:
            watched: Names to look for in it.
            then: Called at its end with whether one of them was there.
        """
        parser = self._parser
        before = parser.StartElementHandler, parser.EndElementHandler
        depth = 1
        seen = False

        def start(name: str, _attributes: Attributes) -> None:
            nonlocal depth, seen
            depth += 1
            seen = seen or name in watched

        def end(_name: str) -> None:
            nonlocal depth
            depth -= 1
            if not depth:
                parser.StartElementHandler, parser.EndElementHandler = before
                if then is not None:
                    then(seen)

        parser.CharacterDataHandler = None
        parser.StartElementHandler, parser.EndElementHandler = start, end

    def _skip_entity(self, *_names: str | None) -> int:
        if self._on_entity is not None:
            self._on_entity()
        return 1


def _parser(encoding: str) -> expat.XMLParserType:
    parser = expat.ParserCreate(encoding, " ")
    parser.buffer_text = True
    parser.EntityDeclHandler = _refuse_internal_entity
    return parser


def _encoding(xml: bytes) -> str:
    """UTF-16 or UTF-8, all that a part may be in: what it declares would be looked up among all codecs."""
    if xml.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in xml[:2]:
        return "utf-16be" if xml.startswith(b"\0") else "utf-16le"
    return "utf-8"


def _refuse_internal_entity(
    _name: str,
    _is_parameter: bool,  # noqa: FBT001
    value: str | None,
    _base: str | None,
    _system: str | None,
    _public: str | None,
    _notation: str | None,
) -> None:
    if value is not None:
        raise UnreadableError(
            "corrupt", "its XML declares entities of its own, which no office program writes"
        )
