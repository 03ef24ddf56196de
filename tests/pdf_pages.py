"""Small PDF files for tests, written object by object."""

from __future__ import annotations

import io

HELVETICA = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def stream(content: bytes, entries: bytes = b"") -> bytes:
    """A stream object."""
    return b"<<%s/Length %d>>\nstream\n" % (entries, len(content)) + content + b"\nendstream"


def file(objects: dict[int, bytes]) -> bytes:
    """A file of these objects; object 1 is its catalogue."""
    out = io.BytesIO()
    out.write(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places = {}
    for number, content in objects.items():
        places[number] = out.tell()
        out.write(b"%d 0 obj\n" % number + content + b"\nendobj\n")
    begin, count = out.tell(), max(objects) + 1
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % count)
    for number in range(1, count):
        out.write(b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 65535 f \n")
    out.write(b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (count, begin))
    return out.getvalue()


def page(  # noqa: PLR0913 - the parts of a page
    content: bytes,
    *,
    filters: bytes = b"",
    entries: bytes = b"/MediaBox[0 0 612 792]",
    resources: bytes = b"",
    more: dict[int, bytes] | None = None,
    catalog: bytes = b"",
) -> bytes:
    """A file of one page with the font /F; `more` are further objects, from 6 on."""
    return file(
        {
            1: b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog,
            2: b"<</Type/Pages/Count 1/Kids[5 0 R]>>",
            3: HELVETICA,
            4: stream(content, filters),
            5: b"<</Type/Page/Parent 2 0 R%s/Resources<</Font<</F 3 0 R>>%s>>/Contents 4 0 R>>"
            % (entries, resources),
            **(more or {}),
        }
    )


def pages(count: int, *, contents: list[bytes] | None = None) -> bytes:
    """A file of many pages; page n shows `contents[n % len]`."""
    texts = contents or [b"BT /F 12 Tf 72 700 Td (page text) Tj ET"]
    first = 4 + len(texts)
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Count %d/Kids[" % count
        + b" ".join(b"%d 0 R" % (first + index) for index in range(count))
        + b"]>>",
        3: HELVETICA,
    }
    for index, text in enumerate(texts):
        objects[4 + index] = stream(text)
    for index in range(count):
        objects[first + index] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]"
            b"/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>" % (4 + index % len(texts))
        )
    return file(objects)


def gray_picture(width: int, height: int, samples: bytes | None = None, entries: bytes = b"") -> bytes:
    """A picture object of grey samples, 8 bit; a chequered one when none are given."""
    if samples is None:
        samples = bytes((x // 4 + y // 4) % 2 * 255 for y in range(height) for x in range(width))
    return stream(
        samples,
        b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceGray/BitsPerComponent 8%s"
        % (width, height, entries),
    )
