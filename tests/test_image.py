"""Pictures: measured, turned upright, made small and plain; whatever is broken ends in one plain answer."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from chatproc.attachments import image
from chatproc.attachments.units import Limits, Unit, UnreadableError

FILES = Path(__file__).parent / "attachments"
SEES = Limits(vision=True)


def content_of(name: str) -> bytes:
    return (FILES / name).read_bytes()


def saved(picture: Image.Image, form: str, **options: Any) -> bytes:  # noqa: ANN401 - Pillow's options
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def opened(content: bytes, limits: Limits = SEES) -> image.Picture:
    return image.open_document(content, "png", limits)


def given_picture(unit: Unit) -> Image.Image:
    assert unit.image is not None
    picture = Image.open(io.BytesIO(unit.image))
    assert unit.mime == f"image/{(picture.format or '').lower()}"
    assert picture.mode == "RGB"
    return picture


def refusal(content: bytes, limits: Limits = SEES) -> str:
    with pytest.raises(UnreadableError) as caught:
        image.open_document(content, "jpg", limits)
    return caught.value.code


def near(one: Any, other: tuple[int, ...], allowed: int = 12) -> bool:  # noqa: ANN401 - Pillow's pixels
    return all(abs(a - b) <= allowed for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("name", "size", "form"),
    [
        ("hopper_orientation_6.jpg", (128, 128), "JPEG"),
        ("invalid-exif.jpg", (200, 200), "JPEG"),
        ("mode_16bit.png", (128, 64), "PNG"),
        ("testWebp_Alpha_Lossy.webp", (400, 301), "WEBP"),
        ("dispose_bgnd.gif", (100, 100), "GIF"),
        ("tiff_16bit_RGB.tiff", (100, 40), "TIFF"),
        ("testHEIF.heic", (800, 544), "HEIC"),
        ("truncated.heic", (16, 16), "HEIC"),
        ("hopper_16bit.pgm", (128, 128), "PNM"),
        ("pil_sample_cmyk.jpg", (100, 100), "JPEG"),
    ],
)
def test_a_picture_is_given_with_its_format_and_size(name: str, size: tuple[int, int], form: str) -> None:
    document = opened(content_of(name))
    unit = document.unit(1)
    assert document.total == 1
    assert unit.id == "i1"
    assert unit.text.startswith(f"Picture, {form}, {size[0]} × {size[1]} pixels")
    assert given_picture(unit).size == size


def test_a_bmp_is_read() -> None:
    unit = opened(saved(Image.new("RGB", (30, 20), "green"), "BMP")).unit(1)
    assert given_picture(unit).getpixel((1, 1)) == (0, 128, 0)


def test_a_model_that_does_not_see_is_told_what_there_is() -> None:
    unit = opened(content_of("testHEIF.heic"), Limits()).unit(1)
    assert unit.image is None
    assert unit.mime is None
    assert unit.text == "Picture, HEIC, 800 × 544 pixels. The model in use cannot see pictures."


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_exif_turns_the_picture_upright(orientation: int, form: str) -> None:
    """The stored picture is the upright one turned back; its red corner must come out at the top left."""
    upright = Image.new("RGB", (64, 32), "white")
    upright.paste("red", (0, 0, 16, 16))
    back = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    stored = upright
    if orientation in back:
        stored = upright.transpose(Image.Transpose(back[orientation]))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = given_picture(opened(saved(stored, form, exif=exif)).unit(1))
    assert picture.size == (64, 32)
    assert near(picture.getpixel((4, 4)), (255, 0, 0), 40)
    assert near(picture.getpixel((60, 28)), (255, 255, 255), 40)


def test_no_metadata_leaves() -> None:
    secret = b"GPS 31.2304 N secret"
    exif = Image.Exif()
    exif[0x010E] = secret.decode()
    photo = Image.effect_noise((200, 100), 90).convert("RGB")
    plain = Image.new("RGB", (200, 100), "blue")
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", secret.decode())
    for stored in (
        saved(photo, "JPEG", exif=exif, comment=secret, icc_profile=secret, dpi=(72, 72)),
        saved(plain, "PNG", exif=exif, pnginfo=text, icc_profile=secret, dpi=(72, 72)),
        saved(photo, "WEBP", exif=exif, xmp=secret, icc_profile=secret),
    ):
        assert secret[:8] in stored or zlib.compress(secret)[:4] in stored
        unit = opened(stored).unit(1)
        assert secret[:8] not in (unit.image or b"")
        picture = given_picture(unit)
        assert not picture.getexif()
        assert set(picture.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


def test_the_long_side_is_shrunk_and_no_side_vanishes() -> None:
    wide = opened(saved(Image.effect_noise((3000, 1500), 50), "PNG")).unit(1)
    assert given_picture(wide).size == (1568, 784)
    assert wide.text == "Picture, PNG, 3000 × 1500 pixels, given as 1568 × 784."
    assert given_picture(opened(saved(Image.new("L", (1, 100_000)), "PNG")).unit(1)).size == (1, 1568)
    small = Limits(vision=True, max_image_px=100)
    assert given_picture(opened(saved(Image.new("P", (300, 300)), "PNG"), small).unit(1)).size == (100, 100)


def test_what_is_transparent_is_white() -> None:
    for picture in (
        Image.new("RGBA", (20, 20), (0, 0, 0, 0)),
        Image.new("LA", (20, 20), (0, 0)),
        Image.new("RGBA", (4000, 4000), (0, 0, 0, 0)),
    ):
        assert given_picture(opened(saved(picture, "PNG")).unit(1)).getpixel((9, 9)) == (255, 255, 255)
    palette = Image.new("P", (20, 20), 0)
    assert given_picture(opened(saved(palette, "PNG", transparency=0)).unit(1)).getpixel((9, 9)) == (255,) * 3
    half = Image.new("RGBA", (20, 20), (255, 0, 0, 128))
    assert near(given_picture(opened(saved(half, "PNG")).unit(1)).getpixel((9, 9)), (255, 127, 127))


def test_cmyk_and_sixteen_bits_keep_their_brightness() -> None:
    red = opened(saved(Image.new("CMYK", (60, 60), (0, 255, 255, 0)), "JPEG", quality=95)).unit(1)
    assert near(given_picture(red).getpixel((30, 30)), (255, 0, 0))
    ramp = Image.frombytes("I;16", (256, 1), struct.pack("<256H", *(value * 257 for value in range(256))))
    picture = given_picture(opened(saved(ramp, "PNG")).unit(1))
    for value in (0, 100, 200, 255):
        assert near(picture.getpixel((value, 0)), (value,) * 3, 3)


def test_the_frames_of_a_tiff_are_units_and_of_a_moving_picture_only_the_first_is() -> None:
    document = opened(content_of("multipage.tiff"))
    colors = [given_picture(document.unit(number)).getpixel((5, 5)) for number in (1, 2, 3)]
    assert document.total == 3
    assert colors == [(0, 128, 0), (255, 0, 0), (0, 0, 255)]
    assert [document.unit(number).id for number in (3, 1)] == ["i3", "i1"]
    frames = [Image.new("RGB", (20, 20), color) for color in ("blue", "red")]
    moving = opened(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert moving.total == 1
    assert moving.note == "It has several pictures or moves: only the first is given."
    assert given_picture(moving.unit(1)).getpixel((5, 5)) == (0, 0, 255)


def test_a_picture_of_few_colours_stays_sharp_and_a_photo_gets_small() -> None:
    assert opened(saved(Image.new("RGB", (300, 300), "white"), "JPEG")).unit(1).mime == "image/png"
    photo = saved(Image.effect_noise((300, 300), 80), "PNG")
    unit = opened(photo).unit(1)
    assert unit.mime == "image/jpeg"
    assert len(unit.image or b"") < len(photo)


def test_the_same_bytes_give_the_same_picture() -> None:
    content = content_of("testHEIF.heic")
    assert opened(content).unit(1) == opened(content).unit(1)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (content_of("broken_data_stream.png"), "truncated"),
        (content_of("gen_progressive_trunc.jpg"), "truncated"),
        (content_of("testWebp_Alpha_Lossy.webp")[:2000], "truncated"),
        (content_of("dispose_bgnd.gif")[:200], "truncated"),
        (content_of("testHEIF.heic")[:6000], "truncated"),
        (saved(Image.new("RGB", (50, 50)), "BMP")[:900], "truncated"),
        (content_of("corrupted.heic"), "corrupt"),
        (content_of("crash-2020-10-test.tif"), "corrupt"),
        (content_of("oom-225817ca0f8c663be7ab4b9e717b02c661e66834.tif"), "corrupt"),
        (content_of("png_decompression_dos.png"), "too_large"),
        (content_of("decompression_bomb.ico"), "unsupported_type"),
        (content_of("crash-7d4c83eb92150fb8f1653a697703ae06ae7c4998.j2k"), "unsupported_type"),
        (content_of("gen_svg_xxe.svg"), "unsupported_type"),
        (b"not an image", "unsupported_type"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_class(content: bytes, code: str) -> None:
    for limits in (Limits(), SEES):
        assert refusal(content, limits) == code


def test_a_moving_picture_that_breaks_after_its_first_frame_gives_that() -> None:
    content = content_of("dispose_bgnd.gif")
    assert given_picture(opened(content[: len(content) * 2 // 3]).unit(1)).size == (100, 100)


def test_a_broken_frame_costs_itself_alone() -> None:
    frames = [Image.effect_noise((50, 50), 90) for _ in range(3)]
    content = bytearray(
        saved(frames[0], "TIFF", save_all=True, append_images=frames[1:], compression="tiff_lzw")
    )
    with Image.open(io.BytesIO(content)) as whole:
        whole.seek(1)
        place = whole.tag_v2[273][0]  # type: ignore[attr-defined]
    content[place : place + 200] = bytes(200)
    document = opened(bytes(content))
    with pytest.raises(UnreadableError, match=r"^corrupt"):
        document.unit(2)
    assert [given_picture(document.unit(number)).size for number in (1, 3)] == [(50, 50)] * 2


def test_more_frames_than_anybody_reads_are_refused() -> None:
    frames = [Image.new("1", (1, 1)) for _ in range(image.MOST_FRAMES + 1)]
    assert refusal(saved(frames[0], "TIFF", save_all=True, append_images=frames[1:])) == "too_many_pages"


FUZZED = [
    "hopper_orientation_6.jpg",
    "mode_16bit.png",
    "dispose_bgnd.gif",
    "multipage.tiff",
    "truncated.heic",
]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(FUZZED),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=20),
    st.integers(1),
)
def test_fuzzed_pictures_end_in_a_plain_answer(
    name: str, changes: list[tuple[int, int]], length: int
) -> None:
    content = bytearray(content_of(name))
    for place, value in changes:
        content[place % len(content)] = value
    try:
        document = opened(bytes(content[: length % len(content) + 1]))
        assert all(document.unit(number).image for number in range(1, document.total + 1))
    except UnreadableError:
        return  # nothing else is ever raised


# Bombs: in a process of their own, with the address space that the worker has

BOUNDED = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from chatproc.attachments import image
from chatproc.attachments.units import Limits, UnreadableError
try:
    answer = image.open_document(sys.stdin.buffer.read(), "png", Limits(vision=True)).unit(1).text
except UnreadableError as error:
    answer = error.code
peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(json.dumps({"answer": answer, "peak": int(peak[0]) // 1024}))
"""


def bounded(content: bytes) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BOUNDED],
        input=content,
        capture_output=True,
        timeout=30,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def png(width: int, height: int, bits: int, kind: int) -> bytes:
    """A PNG of zeros, whole and right however large."""
    row = b"\0" * (1 + (width * bits * {0: 1, 2: 3, 6: 4}[kind] + 7) // 8)
    press = zlib.compressobj(9)
    rows = b"".join([press.compress(row) for _ in range(height)] + [press.flush()])

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    head = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("side", "bits", "kind"), [(30_000, 1, 0), (9_400, 8, 0), (6_400, 8, 6)])
def test_a_bomb_is_measured_not_decoded(side: int, bits: int, kind: int) -> None:
    answer = bounded(png(side, side, bits, kind))
    assert answer["answer"] == "too_large"
    assert answer["peak"] < 150


def test_the_largest_picture_that_is_decoded_stays_within_the_memory_allowed() -> None:
    answer = bounded(png(6_300, 6_300, 8, 6))
    assert answer["answer"] == "Picture, PNG, 6300 × 6300 pixels, given as 1568 × 1568."
    assert answer["peak"] < 700


def test_a_photo_beyond_the_cap_is_shrunk_while_it_is_read() -> None:
    photo = saved(Image.new("RGB", (12_000, 9_000), "navy"), "JPEG")
    answer = bounded(photo)
    assert answer["answer"] == "Picture, JPEG, 12000 × 9000 pixels, given as 1568 × 1176."
    assert answer["peak"] < 200
