"""Workbooks and CSV files: what is in their cells, in blocks of rows, within bounds."""

from __future__ import annotations

import datetime as dt
import io
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.comments import Comment
from openpyxl.styles import Font, PatternFill

from chatproc.attachments import sheet
from chatproc.attachments.sheet import LONGEST_BLOCK, open_document
from chatproc.attachments.text import NOT_VISIBLE
from chatproc.attachments.units import Limits, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from openpyxl import Workbook

SAMPLES = Path(__file__).parent / "attachments"


def texts(content: bytes, kind: str = "xlsx") -> list[str]:
    document = open_document(content, kind, Limits())
    units = [document.unit(number) for number in range(1, document.total + 1)]
    assert [unit.id for unit in units] == [f"b{number}" for number in range(1, len(units) + 1)]
    return [unit.text for unit in units]


def saved(workbook: Workbook) -> bytes:
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def rewritten(content: bytes, part: str, change: Callable[[bytes], bytes]) -> bytes:
    """The package with one part changed."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name == part else old.read(name))
    return file.getvalue()


def test_each_sheet_is_a_block_of_rows_with_tabs() -> None:
    workbook = openpyxl.Workbook()
    names = workbook.active
    names.title = "名单"
    names.append(["姓名", "截止", "时间", "完成", "人数", None, "备注"])
    names.append(["张三", dt.date(2026, 7, 3), dt.time(18, 0), True, 3.0, None, "两行\n一格\t内"])
    names.append([])
    names.append(["李四", dt.datetime(2026, 7, 3, 18, 30), None, False, 0.1 + 0.2])  # noqa: DTZ001 - as cells have it
    names["E2"].number_format = "0"
    names["E4"].number_format = "0.0%"
    workbook.create_sheet("空")
    workbook.create_sheet("第二").append(["only"])
    assert texts(saved(workbook)) == [
        (
            '[sheet 1 of 3 "名单", rows 1–4]\n姓名\t截止\t时间\t完成\t人数\t\t备注\n'
            "张三\t2026-07-03\t18:00\tTRUE\t3\t\t两行 一格 内\n李四\t2026-07-03 18:30\t\tFALSE\t30%"
        ),
        '[sheet 3 of 3 "第二", row 1]\nonly',
    ]


def test_what_a_person_does_not_see_of_a_workbook_is_marked() -> None:
    workbook = openpyxl.Workbook()
    first = workbook.active
    for row in (["a", "b", "c"], ["d", "e", "f"], ["white", "on blue", "theme"], ["none", "x", "y"]):
        first.append(row)
    first.row_dimensions[2].hidden = True
    first.column_dimensions["B"].hidden = True
    first["A3"].font = Font(color="FFFFFFFF")
    first["B3"].font = first["C4"].font = Font(color="FFFFFFFF")
    first["B3"].fill = first["C4"].fill = PatternFill("solid", fgColor="FF0000FF")
    first["A4"].number_format = ";;;"
    secret = workbook.create_sheet("secret")
    secret.append(["s"])
    secret.append(["t"])
    secret.sheet_state = "veryHidden"
    mark = NOT_VISIBLE
    assert texts(saved(workbook)) == [
        (
            f'[sheet 1 of 2 "Sheet", rows 1–4]\na\t{mark}b\tc\n{mark}d\t{mark}e\tf\n'
            f"{mark}white\t{mark}on blue\ttheme\n{mark}none\t{mark}x\ty"
        ),
        f'[sheet 2 of 2 "secret", a hidden sheet, not visible, rows 1–2]\n{mark}s\n{mark}t',
    ]


@pytest.mark.parametrize(
    ("ink", "ground", "is_seen"),
    [
        ("FFFEFEFE", None, False),
        ("FFFFFFFF", "FFFDFDFD", False),
        ("FF0000FF", "FF0000F0", False),
        ("FF000000", "FF000000", False),
        ("FF808080", None, True),
        ("FFFFFFFF", "FF0000FF", True),
        ("FF000000", "FFFFFF00", True),
    ],
)
def test_a_cell_in_the_colour_of_its_ground_is_marked(ink: str, ground: str | None, *, is_seen: bool) -> None:
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = "x"
    workbook.active["A1"].font = Font(color=ink)
    if ground:
        workbook.active["A1"].fill = PatternFill("solid", fgColor=ground)
    assert texts(saved(workbook))[0].endswith("\nx" if is_seen else f"\n{NOT_VISIBLE}x")


def test_values_are_those_that_were_stored_and_formulas_without_one_are_said() -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append([1, 2, "=A1+B1", "=A1*B1"])
    stored = rewritten(
        saved(workbook),
        "xl/worksheets/sheet1.xml",
        lambda xml: xml.replace(b"<f>A1+B1</f><v></v>", b"<f>A1+B1</f><v>3</v>").replace(
            b"<f>A1+B1</f><v />", b"<f>A1+B1</f><v>3</v>"
        ),
    )
    document = open_document(stored, "xlsx", Limits())
    assert document.unit(1).text.endswith("\n1\t2\t3")
    assert document.note == "Sheet 1 has 1 formulas without a stored value: left empty."


def test_comments_and_text_boxes_are_told_too() -> None:
    workbook = openpyxl.Workbook()
    workbook.active["B2"] = "x"
    workbook.active["B2"].comment = Comment("请周五前\n完成", "boss")
    assert texts(saved(workbook))[1] == (
        "[comments and text boxes of the workbook, row 1]\n[comment on B2: 请周五前 完成]"
    )
    boxes = texts((SAMPLES / "testEXCEL_textbox.xlsx").read_bytes())
    assert boxes == [
        "[comments and text boxes of the workbook, row 1]\n[text box: this is some autoshape text]"
    ]


def test_a_long_sheet_goes_on_in_further_blocks_that_repeat_its_first_row() -> None:
    workbook = openpyxl.Workbook()
    for number in range(1, 2001):
        workbook.active.append([f"row {number}", "some words in a cell"])
    found = texts(saved(workbook))
    assert all(len(text) < LONGEST_BLOCK + 1500 for text in found)
    assert all("\n[its first row: row 1\tsome words in a cell]\n" in text for text in found[1:])
    lines = [line for text in found for line in text.split("\n") if not line.startswith("[")]
    assert lines == [f"row {number}\tsome words in a cell" for number in range(1, 2001)]


def test_a_merged_cell_is_told_once() -> None:
    workbook = openpyxl.Workbook()
    workbook.active["A1"] = "merged"
    workbook.active.merge_cells("A1:C3")
    assert texts(saved(workbook))[0].count("merged") == 1


def test_a_damaged_sheet_costs_itself_alone() -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["lost"])
    workbook.create_sheet("good").append(["kept"])
    damaged = rewritten(
        saved(workbook), "xl/worksheets/sheet1.xml", lambda xml: xml.replace(b"<row", b"<<row")
    )
    first, second = texts(damaged)
    assert "cannot be read" in first
    assert second.endswith("\nkept")


def test_a_strict_workbook_is_read_without_a_converter() -> None:
    strict = (SAMPLES / "testEXCEL.strict.xlsx").read_bytes()
    first, _ = texts(strict)
    assert first.startswith('[sheet 1 of 3 "First Sheet", rows 1–4]\nTest spreadsheet')


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_what_lies_beyond_the_columns_that_are_read_is_said(kind: str) -> None:
    row = [f"c{number}" for number in range(sheet.MOST_COLUMNS + 1)]
    workbook = openpyxl.Workbook()
    workbook.active.append(row)
    content = saved(workbook) if kind == "xlsx" else ",".join(row).encode()
    document = open_document(content, kind, Limits())
    assert row[-2] in document.unit(1).text
    assert row[-1] not in document.unit(1).text
    assert "only the first 512 columns are read" in document.note


def test_a_row_of_millions_of_cells_is_read_to_its_last_column_that_is_read() -> None:
    document = open_document(b"a," * 1_000_000, "csv", Limits())
    assert document.unit(1).text.count("a\t") == sheet.MOST_COLUMNS - 1


def test_a_row_beyond_the_last_ends_the_sheet() -> None:
    rows = f'<row r="1">{cell("A1", "a")}</row><row r="99999999999">{cell("A99999999999", "z")}</row>'
    assert "a\n[this sheet cannot be read" in texts(sheet_of(rows))[0]


def sheet_of(rows: str) -> bytes:
    """A workbook whose sheet has these rows, as XML."""
    return rewritten(
        saved(openpyxl.Workbook()),
        "xl/worksheets/sheet1.xml",
        lambda _: (
            '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
            f'<dimension ref="A1:XFD1048576"/><sheetData>{rows}</sheetData></worksheet>'
        ).encode(),
    )


def cell(place: str, value: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (f'<row r="1">{cell("A1", "a")}</row><row r="1048576">{cell("A1048576", "z")}</row>', "a\nz"),
        (f'<row r="1">{cell("A1", "a")}{cell("XFD1", "far")}</row>', "a"),
    ],
)
def test_a_sheet_that_claims_to_be_huge_is_read_in_seconds(rows: str, expected: str) -> None:
    begin = time.monotonic()
    assert texts(sheet_of(rows))[0].split("\n", 1)[1] == expected
    assert time.monotonic() - begin < 10


def test_cells_are_counted_and_the_cut_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet, "MOST_CELLS", 100)
    workbook = openpyxl.Workbook()
    for number in range(200):
        workbook.active.append([number])
    document = open_document(saved(workbook), "xlsx", Limits())
    assert document.unit(1).text.endswith("\n49\n[cut: the sheet goes on]")
    assert document.note == "Only its first 100 cells are read."
    rows = open_document(b"a,b\n" * 200, "csv", Limits())
    assert rows.unit(1).text.count("a\tb") == 33
    assert rows.note == "Only its first 100 cells are read."


def test_an_unbounded_sheet_ends_at_the_cap_in_seconds() -> None:
    rows = "".join(f'<row r="{number}">{cell(f"A{number}", "x")}</row>' for number in range(1, 400_001))
    begin = time.monotonic()
    document = open_document(sheet_of(rows), "xlsx", Limits())
    assert time.monotonic() - begin < 30
    assert document.note == f"Only its first {sheet.MOST_CELLS} cells are read."


def bomb(size: int) -> bytes:
    return rewritten(saved(openpyxl.Workbook()), "xl/worksheets/sheet1.xml", lambda xml: xml + b" " * size)


def laughs(_: bytes) -> bytes:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    return (
        f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a0 "haha">{entities}]>'
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f'<sheetData><row r="1">{cell("A1", "&a9;")}</row></sheetData></worksheet>'
    ).encode()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (b"no workbook", "type_mismatch"),
        (b"PK\x03\x04 half of a download", "truncated"),
        (saved(openpyxl.Workbook()), "empty"),
        (saved(openpyxl.Workbook())[:-2000], "truncated"),
        (rewritten(saved(openpyxl.Workbook()), "xl/workbook.xml", lambda _: b"<x"), "corrupt"),
        (bomb(80 * 1024 * 1024), "too_large"),
        (rewritten(saved(openpyxl.Workbook()), "xl/worksheets/sheet1.xml", laughs), "corrupt"),
    ],
)
def test_what_is_no_workbook_is_refused_by_its_class(content: bytes, code: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        open_document(content, "xlsx", Limits())
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("姓名,截止\n张三,周五\n".encode("gbk"), "姓名\t截止\n张三\t周五"),
        ("姓名\t截止\n张三\t周五\n".encode("utf-16"), "姓名\t截止\n张三\t周五"),
        (b"a;b,c\nd;e\n", "a\tb,c\nd\te"),
        (b"sep=|\na|b\n", "a\tb"),
        (b'a,"b, with ""quotes"""\n"two\nlines",c\n', 'a\tb, with "quotes"\ntwo lines\tc'),
        (b"only one column\nof words, here\n", "only one column\nof words\there"),
        (b'"an open quote, to the end\nof the file', "an open quote, to the end of the file"),
        (b"\n\na,b\n,,\n", "a\tb"),
    ],
)
def test_csv_is_rows_whatever_parts_its_cells(content: bytes, lines: str) -> None:
    assert texts(content, "csv")[0].split("\n", 1)[1] == lines


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from('ab,;\t|"\n 周'), max_size=300))
def test_csv_of_any_marks_is_read_the_same_each_time_and_loses_no_letter(text: str) -> None:
    if not set(text) & set("ab周"):
        return
    found = texts(text.encode(), "csv")
    assert found == texts(text.encode(), "csv")
    joined = "".join(line for block in found for line in block.split("\n")[1:])
    for letter in "ab周":
        assert joined.count(letter) == text.count(letter)
