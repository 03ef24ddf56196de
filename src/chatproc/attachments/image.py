"""Pictures: JPEG, PNG, WebP, GIF, BMP, TIFF, HEIC and PNM, made small and plain for a model that sees.

It measures before it decodes and keeps nothing of a file but its pixels: no metadata ever leaves. It must
only run inside the worker, and never opens a format that is not listed here.
"""

from __future__ import annotations

import io
import struct
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

import pillow_heif
from PIL import Image, UnidentifiedImageError

from chatproc.attachments.units import Limits, Unit, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "HEIF")
"""What is opened, in Pillow's names. ICO, JPEG 2000, PSD, EPS, SVG and the rest are not: their readers start
other readers or programs, and nobody sends them."""

MOST_PIXELS = 40_000_000
"""Of one frame as it is decoded. A JPEG may be larger: its decoder shrinks while it reads."""

MOST_FRAMES = 500
"""Of one TIFF."""

_FEW_COLORS = 64
_QUALITY = 85
_SMOOTH = frozenset({"L", "RGB", "RGBA", "LA", "CMYK"})
"""Modes that can be shrunk as they are, which takes less memory than to convert them first."""

_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""EXIF's orientation to what turns the picture upright."""

Image.MAX_IMAGE_PIXELS = None  # every frame is measured here, by one rule, before it is decoded
pillow_heif.register_heif_opener(thumbnails=False)


class Picture:
    """An opened picture: one frame, or the frames of a TIFF as `i1`, `i2` and so on.

    Args:
        source: The picture as Pillow opened it, not decoded.
        content: The whole file.
        limits: What it may take; a frame is only given where the model sees.
    """

    def __init__(self, source: Image.Image, content: bytes, limits: Limits) -> None:
        """Decode the first frame, so that a broken file is refused when it is opened."""
        self._source = source
        self._content = content
        self._limits = limits
        self._format = {"MPO": "JPEG", "HEIF": "HEIC", "PPM": "PNM"}.get(source.format or "", source.format)
        with _plainly(content):
            self.total = _frames(source) if source.format == "TIFF" else 1
        self._first = self._read(1)
        self.note = "It has several pictures or moves: only the first is given." if _is_moving(source) else ""

    def unit(self, number: int) -> Unit:
        """One frame, upright, at most `max_image_px` long, without metadata.

        Raises:
            UnreadableError: This frame is broken or too large.
        """
        return self._first if number == 1 else self._read(number)

    def close(self) -> None:
        """Let go of the picture."""
        self._source.close()

    def _read(self, number: int) -> Unit:
        with _plainly(self._content):
            if self.total > 1:
                self._source.seek(number - 1)
            width, height = self._source.size
            upright, is_turned = decoded(self._source, self._limits.max_image_px)
            image, mime = encoded(upright) if self._limits.vision else (None, None)
        words = f"Picture, {self._format}, {width} × {height} pixels"
        words += ", turned upright" if is_turned else ""
        if image is None:
            return Unit(f"i{number}", f"{words}. The model in use cannot see pictures.")
        return Unit(f"i{number}", f"{words}, given as {upright.width} × {upright.height}.", image, mime)


def open_document(content: bytes, kind: str, limits: Limits) -> Picture:
    """Open a picture.

    Args:
        content: The whole file.
        kind: What it was taken for; only said in errors, the content decides.
        limits: `max_image_px` and `vision` are kept.

    Raises:
        UnreadableError: `empty`, `unsupported_type`, `too_large`, `truncated`, `corrupt`, `too_many_pages`.
    """
    if not content:
        raise UnreadableError("empty", "the file has no bytes")
    try:
        with _plainly(content):
            source = Image.open(io.BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        raise _unopened(content, kind) from None
    return Picture(source, content, limits)


def decoded(source: Image.Image, longest: int) -> tuple[Image.Image, bool]:
    """The pixels of a picture's current frame: RGB of 8 bit, upright, on white, shrunk.

    Args:
        source: A picture that may not have been decoded yet.
        longest: Of its long side, in pixels.

    Returns:
        The picture, and whether its EXIF data turned it.

    Raises:
        UnreadableError: `too_large`: more than `MOST_PIXELS`.
    """
    if source.format in {"JPEG", "MPO"}:
        source.draft(None, (longest, longest))
    measured(*source.size)
    source.load()
    turn = _turn(source)  # only now: to look for EXIF, a PNG decodes itself
    if source.mode in _SMOOTH and "transparency" not in source.info:
        picture = _eight_bit(_shrunk(source, longest))
    else:
        picture = _shrunk(_eight_bit(source), longest)
    return (picture if turn is None else picture.transpose(turn)), turn is not None


def measured(width: int, height: int) -> None:
    """Refuse more pixels than may be decoded.

    Raises:
        UnreadableError: `too_large`.
    """
    if width * height > MOST_PIXELS:
        raise UnreadableError("too_large", f"the picture has {width} × {height} pixels")


def encoded(picture: Image.Image) -> tuple[bytes, str]:
    """A picture as bytes without metadata, with their type: PNG for few colours, JPEG for a photo.

    Args:
        picture: RGB of 8 bit.
    """
    picture = picture.copy()
    picture.info.clear()
    file = io.BytesIO()
    if picture.getcolors(_FEW_COLORS) is not None:
        picture.save(file, "PNG", optimize=True)
        return file.getvalue(), "image/png"
    picture.save(file, "JPEG", quality=_QUALITY, optimize=True)
    return file.getvalue(), "image/jpeg"


def _eight_bit(source: Image.Image) -> Image.Image:
    """RGB of 8 bit: wider samples scaled, palettes and CMYK resolved, what is transparent on white."""
    mode = source.mode
    if mode.startswith("I;16"):
        return source.convert("I").point(lambda value: value * (1 / 256)).convert("L").convert("RGB")
    if mode in {"I", "F"}:
        return _spread(source).convert("RGB")
    if mode in {"RGBA", "LA", "PA", "RGBa", "La"} or "transparency" in source.info:
        return _on_white(source.convert("RGBA"))
    return source if mode == "RGB" else source.convert("RGB")


def _spread(source: Image.Image) -> Image.Image:
    """Samples without a known range, from their darkest to their brightest over 8 bit."""
    low, high = cast("tuple[float, float]", source.getextrema())
    scale = 255 / ((high - low) or 1.0)
    return source.convert("F").point(lambda value: value * scale + (-low * scale)).convert("L")


def _on_white(picture: Image.Image) -> Image.Image:
    white = Image.new("RGB", picture.size, "white")
    white.paste(picture, mask=picture.getchannel("A"))
    return white


def _shrunk(picture: Image.Image, longest: int) -> Image.Image:
    """At most so long; a new picture, or the same when it is small enough."""
    long_side = max(picture.size)
    if long_side <= longest:
        return picture
    size = tuple(max(1, round(side * longest / long_side)) for side in picture.size)
    return picture.resize(cast("tuple[int, int]", size), Image.Resampling.LANCZOS, reducing_gap=2.0)


def _turn(source: Image.Image) -> Image.Transpose | None:
    """What turns the picture upright. EXIF data that cannot be read say nothing."""
    if source.format == "HEIF":
        return None  # libheif has turned it
    try:
        return _TURNS.get(source.getexif().get(_ORIENTATION, 1))
    except (ValueError, TypeError, KeyError, IndexError, OSError, SyntaxError, struct.error):
        return None


def _frames(source: Image.Image) -> int:
    """Frames of a TIFF, counted by their directories alone."""
    count = 1
    while count <= MOST_FRAMES:
        try:
            source.seek(count)
        except EOFError:
            source.seek(0)
            return count
        count += 1
    raise UnreadableError("too_many_pages", f"it has more than {MOST_FRAMES} pictures")


def _is_moving(source: Image.Image) -> bool:
    """Whether a picture that is no TIFF has more frames; one that breaks after its first has none."""
    with suppress(Exception):
        return source.format != "TIFF" and bool(getattr(source, "is_animated", False))
    return False


@contextmanager
def _plainly(content: bytes) -> Iterator[None]:
    """Turn whatever a decoder throws at a broken file into one plain answer."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (UnreadableError, UnidentifiedImageError):
        raise
    except MemoryError:
        raise UnreadableError("memory", "decoding it takes more memory than allowed") from None
    except Exception as error:  # noqa: BLE001 - decoders raise whatever comes to their mind
        raise _broken(content, error) from None


def _broken(content: bytes, error: Exception) -> UnreadableError:
    if "too large" in str(error):
        return UnreadableError("too_large", "what comes beside its pixels inflates beyond measure")
    if _is_cut(content):
        return UnreadableError("truncated", "the picture's end is missing")
    return UnreadableError("corrupt", "the picture's data are broken")


def _unopened(content: bytes, kind: str) -> UnreadableError:
    """Why no decoder took the file: its beginning is that of a known format, or it is none."""
    if _is_known(content):
        return _broken(content, ValueError())
    shown = kind if kind.isalnum() and kind.isascii() else "unknown"
    return UnreadableError("unsupported_type", f"pictures of type {shown} are not read by this version")


_BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"P4", b"P5", b"P6")


def _is_known(content: bytes) -> bool:
    is_webp = content.startswith(b"RIFF") and content[8:12] == b"WEBP"
    return is_webp or content[4:8] == b"ftyp" or content.startswith(_BEGINNINGS)


def _is_cut(content: bytes) -> bool:
    """Whether the format's own end is missing: an end mark, or as many bytes as it announces."""
    for beginning, end, last in (
        (b"\x89PNG", b"IEND", 64),
        (b"\xff\xd8", b"\xff\xd9", 1024),
        (b"GIF8", b";", 64),
    ):
        if content.startswith(beginning):
            return end not in content[-last:]
    if content.startswith(b"RIFF"):
        return int.from_bytes(content[4:8], "little") + 8 > len(content)
    if content.startswith(b"BM"):
        return int.from_bytes(content[2:6], "little") > len(content)
    return content[4:8] == b"ftyp" and _boxes_are_cut(content)


def _boxes_are_cut(content: bytes) -> bool:
    """Whether the last box of a HEIC file announces more bytes than there are."""
    position = 0
    while position + 8 <= len(content):
        if not content[position + 4 : position + 8].isalnum():
            return False  # no box at all: broken, not cut
        size = int.from_bytes(content[position : position + 4], "big")
        if size == 1:
            size = int.from_bytes(content[position + 8 : position + 16], "big")
        if size == 0:
            return False  # to the end of the file
        position += max(size, 8)
    return position != len(content)
