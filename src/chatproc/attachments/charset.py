"""Bytes to characters: in the charset that they are marked with, that is possible, that is likely.

Pure: it must give the same characters for the same bytes for ever, and never take a binary file for text.
"""

from __future__ import annotations

import codecs
import re
from functools import cache

from chatproc.attachments.units import clean

NO_CHARSET = "the content is no plain text in a charset that is known here"

_MOST_CONTROLS = 0.02
_LONGEST_SEQUENCE = 4
_RAREST_ZERO = 8
"""UTF-16 without a mark is believed when at least one byte in so many is a zero, or by its characters."""

_SAMPLE = 4096
"""Characters that a guess is made from."""
_FEWEST_FOR_A_GUESS = 20
"""Characters beyond ASCII below which a file is GB18030 when it can be: too few to tell it from others."""
_COMMON = 0.9
_UNCOMMON = 0.75
_FEWEST_KANA = 0.2
_FEWEST_SYLLABLES = 0.95
_LONGEST_WORD = 10
"""Syllables of Korean words, on average at most."""
_ALONE = re.compile(rb"(?<![\x80-\xff])[\x80\x85\x91-\x97\xa0-\xff](?![\x80-\xff])")
"""A byte beyond ASCII that stands alone, and is a letter or a sign in Windows-1252."""
_LATIN = re.compile(rb"[A-Za-z]")
_MOSTLY_ALONE = 0.6
_FEWEST_LATIN = 3
"""Letters of ASCII for each byte beyond it."""
_FEWEST_WHOLE = 50
"""UTF-8 with broken places is still UTF-8 when so many whole characters stand against each of them."""


class NotTextError(ValueError):
    """The bytes are no plain text in a charset that is known here."""


def decode(content: bytes) -> tuple[str, str]:
    r"""Read bytes as text: in the charset that they are marked with, that is possible, that is likely.

    UTF-8, UTF-16 (its byte order known by its zeros or its characters) and GB18030 (so GBK and GB2312); Big5,
    Shift-JIS and EUC-JP only when GB18030 would give rare characters where they give common ones: short texts
    of theirs are read as GB18030, wrongly, rather than short texts of GB18030 as theirs. EUC-KR where all is
    Korean words, Windows-1252 where single letters beyond ASCII stand between others.

    Args:
        content: The whole file.

    Returns:
        The text, control characters dropped and line ends as `\n`, and a note for the reader (may be empty).

    Raises:
        NotTextError: They are no text.

    Example:
        >>> decode("周五交表".encode("gb18030"))
        ('周五交表', 'Read as GB18030.')
    """
    text, note = _characters(content)
    return _cleaned(text), note


def _cleaned(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    kept = clean(text)
    if len(text) - len(kept) - text.count("\f") > len(text) * _MOST_CONTROLS + 1:
        raise NotTextError("too many control characters")
    return kept


def _characters(content: bytes) -> tuple[str, str]:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _strictly(content, "utf-16"), ""
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\0" in content:
        return _strictly(content, _utf16_without_mark(content)), "Read as UTF-16."
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        whole, rest = content[: error.start], content[error.start :]
        if error.reason == "unexpected end of data" and whole and len(rest) < _LONGEST_SEQUENCE:
            return whole.decode("utf-8"), "The file ends in the middle of a character."
    return _not_utf8(content)


def _not_utf8(content: bytes) -> tuple[str, str]:
    """Which of the older charsets it is, or UTF-8 with a few broken places."""
    mended = content.decode("utf-8", "replace")
    broken = mended.count("\ufffd")
    if sum(map(_is_wide, mended)) - broken > broken * _FEWEST_WHOLE:
        return mended, f"Read as UTF-8; {broken} broken characters are shown as \ufffd."
    korean = _possibly(content, "euc_kr")
    if korean is not None and _is_korean(korean):
        return korean, "Read as EUC-KR."
    chinese = _possibly(content, "gb18030")
    likely = 0.0 if chinese is None else _commonness(chinese, _common_simplified())
    if likely < _UNCOMMON:
        for charset, spoken, common in (
            ("utf-16-le", "UTF-16", _common_chinese()),
            ("utf-16-be", "UTF-16", _common_chinese()),
            ("euc_jp", "EUC-JP", _common_japanese()),
            ("big5", "Big5", _common_traditional()),
            ("cp932", "Shift-JIS", _common_japanese()),
        ):
            text = _possibly(content, charset)
            if text is None or _commonness(text, common) < _COMMON or not _is_enough(text, charset):
                continue
            return text, f"Read as {spoken}."
        if _is_western(content):
            return content.decode("cp1252"), "Read as Windows-1252."
    if chinese is None:
        raise NotTextError("no charset fits")
    return chinese, "Read as GB18030."


def _possibly(content: bytes, charset: str) -> str | None:
    try:
        return content.decode(charset)
    except UnicodeDecodeError:
        return None


def _strictly(content: bytes, charset: str) -> str:
    text = _possibly(content, charset)
    if text is None:
        raise NotTextError(f"not {charset}")
    return text


def _is_wide(character: str) -> bool:
    return character > "\x7f"


def _commonness(text: str, common: frozenset[str]) -> float:
    """The share of common characters among those beyond ASCII, in the text's beginning."""
    wide = list(filter(_is_wide, text[:_SAMPLE]))
    return sum(character in common for character in wide) / len(wide) if wide else 0.0


def _is_mostly_wide(text: str) -> bool:
    return sum(map(_is_wide, text[:_SAMPLE])) * 2 >= len(text[:_SAMPLE])


def _is_enough(text: str, charset: str) -> bool:
    """Whether there is enough of it to believe a charset that is not the first guess."""
    wide = list(filter(_is_wide, text[:_SAMPLE]))
    if charset in {"cp932", "euc_jp"}:
        kana = sum("\u3041" <= character <= "\u30fe" for character in wide)
        return len(wide) >= _FEWEST_FOR_A_GUESS and kana >= len(wide) * _FEWEST_KANA
    return len(wide) >= _FEWEST_FOR_A_GUESS


def _is_korean(text: str) -> bool:
    """Whether what stands beyond ASCII is Korean, in words apart: Chinese has no blanks."""
    head = text[:_SAMPLE]
    wide = list(filter(_is_wide, head))
    syllables = sum("\uac00" <= character <= "\ud7a3" for character in wide)
    is_enough = len(wide) >= _FEWEST_FOR_A_GUESS and syllables >= len(wide) * _FEWEST_SYLLABLES
    return is_enough and head.count(" ") * _LONGEST_WORD >= len(wide)


def _is_western(content: bytes) -> bool:
    """Whether what stands beyond ASCII is single letters, few and among letters of ASCII."""
    head = content[:_SAMPLE]
    alone = len(_ALONE.findall(head))
    beyond = sum(byte > 0x7F for byte in head)  # noqa: PLR2004 - ASCII
    letters = len(_LATIN.findall(head))
    is_likely = alone >= beyond * _MOSTLY_ALONE and letters >= beyond * _FEWEST_LATIN
    return is_likely and _possibly(content, "cp1252") is not None


def _square(charset: str, leads: range, trails: list[range]) -> set[str]:
    """The characters of a rectangle of a two-byte charset."""
    pairs = (bytes((lead, trail)) for lead in leads for span in trails for trail in span)
    return set("".join(pair.decode(charset, "ignore") for pair in pairs))


@cache
def _common_simplified() -> frozenset[str]:
    """The signs and the 3755 commonest characters of GB 2312."""
    trails = [range(0xA1, 0xFF)]
    return frozenset(
        _square("gb2312", range(0xA1, 0xA4), trails) | _square("gb2312", range(0xB0, 0xD8), trails)
    )


@cache
def _common_traditional() -> frozenset[str]:
    """The signs and the 5401 commonest characters of Big5."""
    return frozenset(_square("big5", range(0xA1, 0xC7), [range(0x40, 0x7F), range(0xA1, 0xFF)]))


def _common_chinese() -> frozenset[str]:
    return _common_simplified() | _common_traditional()


@cache
def _common_japanese() -> frozenset[str]:
    """The signs, the kana and the 2965 commonest characters of Shift-JIS."""
    trails = [range(0x40, 0xFD)]
    return frozenset(
        _square("cp932", range(0x81, 0x84), trails) | _square("cp932", range(0x88, 0x99), trails)
    )


def _utf16_without_mark(content: bytes) -> str:
    """Which byte order puts the zeros of Latin letters and line ends in place, or gives common characters."""
    if len(content) % 2:
        raise NotTextError("binary")
    head = content[:_SAMPLE]
    zeros_first, zeros_second = head[0::2].count(0), head[1::2].count(0)
    fewer, more = sorted((zeros_first, zeros_second))
    if fewer <= more // 10 and more * _RAREST_ZERO >= len(head):
        return "utf-16-be" if zeros_first > zeros_second else "utf-16-le"
    for charset in ("utf-16-le", "utf-16-be"):
        text = _possibly(content, charset)
        if text is not None and _commonness(text, _common_chinese()) >= _COMMON and _is_mostly_wide(text):
            return charset
    raise NotTextError("binary")


_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_-]{3,20})""")
_CHARSETS = {
    **dict.fromkeys((b"gb2312", b"gbk", b"gb18030", b"x-gbk"), "gb18030"),
    **dict.fromkeys((b"big5", b"big5-hkscs", b"x-x-big5"), "big5hkscs"),
    **dict.fromkeys((b"shift_jis", b"shift-jis", b"sjis", b"x-sjis"), "cp932"),
    **dict.fromkeys((b"iso-8859-1", b"latin1", b"windows-1252", b"us-ascii"), "cp1252"),
    **{name: name.decode() for name in (b"utf-8", b"euc-jp", b"euc-kr", b"iso-2022-jp", b"windows-1251")},
}
"""What pages declare, and the charset that browsers read it as."""


def decode_html(content: bytes) -> tuple[str, str]:
    """Read the bytes of a web page: as what it declares when that is possible, else like any text.

    Args:
        content: The whole page.

    Returns:
        The source, and a note for the reader (may be empty).

    Raises:
        NotTextError: They are no text.

    Example:
        >>> decode_html('<meta charset=big5><p>報名表'.encode("big5"))[0]
        '<meta charset=big5><p>報名表'
    """
    declared = _DECLARED.search(content[:_SAMPLE])
    charset = _CHARSETS.get(declared.group(1).lower()) if declared else None
    marked = content.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = None if charset is None or marked else _possibly(content, charset)
    return decode(content) if text is None else (_cleaned(text), "")
