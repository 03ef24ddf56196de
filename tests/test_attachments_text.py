"""Plain text of attachments: charsets, blocks, and what is no text."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatproc.attachments.charset import NotTextError, decode
from chatproc.attachments.text import LONGEST_BLOCK, blocks

CHINESE = "关于校赛报名的通知:周五(7月3日)18:00 前交表。\n地点:A101\n"


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "gb18030", "gbk"])
def test_the_charset_is_found(charset: str) -> None:
    assert decode(CHINESE.encode(charset))[0] == CHINESE


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_found_by_its_zeros(charset: str) -> None:
    text = "Hand in the form by Friday.\n周五交表\n"
    assert decode(text.encode(charset))[0] == text


def test_control_characters_are_dropped_and_line_ends_are_one() -> None:
    text, _ = decode(b"a\x1b[31mred\r\nnext\rlast\x07\tend\x0cpage" + b" and words" * 20)
    assert text.startswith("a[31mred\nnext\nlast\tendpage and")
    assert decode("x\x85y".encode())[0] == "xy"


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)) * 3,
        b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + random.Random(1).randbytes(500),  # noqa: S311 - bytes for a test
        random.Random(2).randbytes(4000),  # noqa: S311
        b"text with a zero\x00 inside",
        b"\x01\x02\x03\x04\x05\x06",
        b"\xff\xfeodd",
    ],
)
def test_what_is_no_text_is_never_taken_for_text(content: bytes) -> None:
    with pytest.raises(NotTextError):
        decode(content)


def test_a_file_cut_inside_a_character_is_read_and_said_so() -> None:
    text, note = decode("周五交表".encode()[:-1])
    assert text == "周五交"
    assert "middle of a character" in note


def test_paragraphs_are_blocks() -> None:
    assert blocks("first\nline\n\n \nsecond\n\n\n") == ["first\nline", "second"]


def test_a_long_paragraph_is_cut_between_lines_and_a_long_line_inside() -> None:
    lines = [f"{number},row" for number in range(1000)]
    cut = blocks("\n".join(lines))
    assert "\n".join(cut).split("\n") == lines
    assert all(len(block) > LONGEST_BLOCK - 20 for block in cut[:-1])
    assert "".join(blocks("y" * 5000)) == "y" * 5000
    assert blocks("\n \n\t") == []


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("ab周\n \t"), max_size=6000) | st.text())
def test_blocks_are_stable_short_and_lose_no_word(text: str) -> None:
    found = blocks(text)
    assert found == blocks(text)
    assert all(0 < len(block) <= LONGEST_BLOCK and block.strip() for block in found)
    assert "".join("".join(found).split()) == "".join(text.split())


@settings(deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes_are_text_without_control_characters_or_refused(content: bytes) -> None:
    try:
        text, _ = decode(content)
    except NotTextError:
        return
    assert not any(mark < " " and mark not in "\n\t" for mark in text)
    text.encode()
