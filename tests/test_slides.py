"""Presentations: every slide in its order, what is on it and beside it, and what a damaged one costs."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import pytest

from chatproc.attachments.slides import MOST_SLIDES, open_document
from chatproc.attachments.text import NOT_VISIBLE
from chatproc.attachments.units import Limits, UnreadableError

SAMPLES = Path(__file__).parent / "attachments"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
SPACES = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    f'xmlns:r="{OFFICE}"'
)
RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"


def relations(links: dict[str, tuple[str, str]]) -> str:
    inside = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for name, (kind, target) in links.items()
    )
    return f'<Relationships xmlns="{RELATIONSHIPS}">{inside}</Relationships>'


def presentation(slides: list[str], parts: dict[str, str] | None = None) -> bytes:
    """A package with these slides, the last one first in the package."""
    links = {f"r{number}": ("slide", f"slides/slide{number}.xml") for number in range(1, len(slides) + 1)}
    order = "".join(f'<p:sldId id="{number}" r:id="{name}"/>' for number, name in enumerate(links, start=256))
    written = {
        "_rels/.rels": relations({"r": ("officeDocument", "ppt/presentation.xml")}),
        "ppt/presentation.xml": f"<p:presentation {SPACES}><p:sldIdLst>{order}</p:sldIdLst>"
        '<p:sldSz cx="9144000" cy="6858000"/></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations(links),
        **{f"ppt/slides/slide{number}.xml": slides[number - 1] for number in range(len(slides), 0, -1)},
        **(parts or {}),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in written.items():
            package.writestr(name, text)
    return file.getvalue()


def slide(inside: str, attributes: str = "", root: str = "sld") -> str:
    return f"<p:{root} {SPACES} {attributes}><p:cSld><p:spTree>{inside}</p:spTree></p:cSld></p:{root}>"


def paragraph(text: str, size: str = "") -> str:
    return f"<a:p><a:r><a:rPr {f'sz={chr(34)}{size}{chr(34)}' if size else ''}/><a:t>{text}</a:t></a:r></a:p>"


def shape(inside: str, *, more: str = "", x: int = 0, kind: str = "") -> str:
    placeholder = f'<p:ph type="{kind}"/>' if kind else ""
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="n" {more}/><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr>'
        f'<p:spPr><a:xfrm><a:off x="{x}" y="0"/><a:ext cx="1000" cy="1000"/></a:xfrm></p:spPr>'
        f"<p:txBody>{inside}</p:txBody></p:sp>"
    )


def texts(content: bytes) -> list[str]:
    document = open_document(content, "pptx", Limits())
    units = [document.unit(number) for number in range(1, document.total + 1)]
    assert [unit.id for unit in units] == [f"p{number}" for number in range(1, len(units) + 1)]
    return [unit.text for unit in units]


def test_slides_come_in_the_order_of_the_presentation_with_their_paragraphs() -> None:
    first = slide(
        shape(paragraph("期末安排") + paragraph("周五<!-- --> 18:00")) + shape(paragraph("7"), kind="sldNum")
    )
    broken = "<a:p><a:r><a:t>a</a:t></a:r><a:br/><a:r><a:t>b</a:t></a:r></a:p>"
    assert texts(presentation([first, slide(shape(broken)), slide("")])) == [
        "期末安排\n周五 18:00",
        "a b",
        "[this slide has no text; pictures: 0]",
    ]


def test_tables_are_rows_with_tabs() -> None:
    def cell(*lines: str) -> str:
        return f"<a:tc><a:txBody>{''.join(map(paragraph, lines))}</a:txBody></a:tc>"

    rows = f"<a:tr>{cell('姓名')}{cell('截止')}</a:tr><a:tr>{cell('张', '三')}{cell('周五')}</a:tr>"
    frame = f"<p:graphicFrame><a:graphic><a:tbl>{rows}</a:tbl></a:graphic></p:graphicFrame>"
    assert texts(presentation([slide(frame)])) == ["姓名\t截止\n张 三\t周五"]


def test_what_a_person_does_not_see_of_a_slide_is_marked() -> None:
    inside = (
        shape(paragraph("seen"))
        + shape(paragraph("turned off"), more='hidden="1"')
        + shape(paragraph("beside"), x=9_200_000)
        + shape(paragraph("before"), x=-5000)
        + shape(paragraph("tiny", "100") + paragraph("small", "800"))
    )
    mark = NOT_VISIBLE
    shown = f"seen\n{mark}turned off\n{mark}beside\n{mark}before\n{mark}tiny\nsmall"
    hidden = f"[a hidden slide, not visible]\n{mark}all of it"
    content = presentation([slide(inside), slide(shape(paragraph("all of it")), 'show="0"')])
    assert texts(content) == [shown, hidden]


@pytest.mark.parametrize(
    ("properties", "is_seen"),
    [
        ("<a:noFill/>", False),
        ('<a:solidFill><a:srgbClr val="FF0000"><a:alpha val="0"/></a:srgbClr></a:solidFill>', False),
        ('<a:solidFill><a:srgbClr val="FF0000"><a:alpha val="4%"/></a:srgbClr></a:solidFill>', False),
        ('<a:solidFill><a:srgbClr val="FF0000"><a:alpha val="60000"/></a:srgbClr></a:solidFill>', True),
        ("<a:ln><a:noFill/></a:ln>", True),
    ],
)
def test_letters_without_a_colour_that_shows_are_marked(properties: str, *, is_seen: bool) -> None:
    words = f"<a:p><a:r><a:rPr>{properties}</a:rPr><a:t>x</a:t></a:r></a:p>"
    (text,) = texts(presentation([slide(shape(words))]))
    assert text == ("x" if is_seen else f"{NOT_VISIBLE}x")


def test_an_alternative_for_old_programs_is_not_told_twice() -> None:
    both = (
        f"<mc:AlternateContent><mc:Choice>{shape(paragraph('new'))}</mc:Choice>"
        f"<mc:Fallback>{shape(paragraph('old'))}</mc:Fallback></mc:AlternateContent>"
    )
    assert texts(presentation([slide(both)])) == ["new"]


def test_notes_comments_diagrams_pictures_and_the_master_are_told() -> None:
    picture = '<p:pic><p:nvPicPr><p:cNvPr id="1" name="n" descr="一张 流程图"/></p:nvPicPr></p:pic>'
    links = relations(
        {
            "n": ("notesSlide", "../notesSlides/n.xml"),
            "c": ("comments", "../comments/c.xml"),
            "d": ("diagramData", "../diagrams/d.xml"),
            "l": ("slideLayout", "../slideLayouts/l.xml"),
            "o": ("comments", "../../../../../etc/hostname"),
        }
    )
    parts = {
        "ppt/slides/_rels/slide1.xml.rels": links,
        "ppt/notesSlides/n.xml": slide(shape(paragraph("remember")), root="notes"),
        "ppt/comments/c.xml": f"<p:cmLst {SPACES}><p:cm><p:text>please</p:text></p:cm></p:cmLst>",
        "ppt/diagrams/d.xml": f"<dgm {SPACES}>{paragraph('step')}</dgm>",
        "ppt/slideLayouts/l.xml": slide(
            shape(paragraph("click to add"), kind="title") + shape(paragraph("confidential")),
            root="sldLayout",
        ),
    }
    found = texts(presentation([slide(shape(paragraph("title")) + picture)], parts))[0].split("\n")
    assert sorted(found) == sorted(
        [
            "title",
            "[picture: 一张 流程图]",
            "[speaker's notes] remember",
            "[comment] please",
            "[diagram] step",
            "[from its master] confidential",
        ]
    )


def test_a_date_field_shows_what_its_author_saw() -> None:
    assert "2011-12-19 10:20:04 AM" in texts((SAMPLES / "testPPT_autodate.pptx").read_bytes())[0]


def test_a_damaged_slide_costs_itself_alone() -> None:
    damaged = slide(shape(paragraph("kept")) + shape(paragraph("lost"))).replace("lost", "<<")
    content = presentation([damaged, slide(shape(paragraph("good")))])
    assert texts(content) == ["kept\n[the rest of this slide is damaged]", "good"]
    document = open_document(presentation(["x", ""]), "pptx", Limits())
    assert document.unit(1).text.startswith("[the rest")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"PK\x03\x04 half of a download", "truncated"),
        (b"no package", "type_mismatch"),
        (presentation([]), "empty"),
        (presentation([slide("")], {"ppt/presentation.xml": "<x"}), "empty"),
        (
            presentation(
                [], {"ppt/presentation.xml": f"<p:x {SPACES}>{'<p:sldId/>' * (MOST_SLIDES + 1)}</p:x>"}
            ),
            "too_many_pages",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_no_presentation_is_refused_by_its_class(content: bytes, code: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        open_document(content, "pptx", Limits())
    assert refused.value.code == code


def test_a_thousand_slides_open_as_fast_as_one() -> None:
    content = presentation([slide(shape(paragraph(f"slide {number}"))) for number in range(1, 1001)])
    begin = time.monotonic()
    document = open_document(content, "pptx", Limits())
    assert document.unit(1000).text == "slide 1000"
    assert time.monotonic() - begin < 2
