"""Plain text: bytes to characters, characters to blocks that can be cited.

Pure: it must give the same blocks for the same bytes for ever, and never take a binary file for text.
"""

from __future__ import annotations

import codecs
import re

LONGEST_BLOCK = 2000
"""Characters of one block at most."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOST_CONTROLS = 0.02
_LONGEST_SEQUENCE = 4
_RAREST_ZERO = 8
"""UTF-16 without a mark is believed when at least one byte in so many is a zero."""


class NotTextError(ValueError):
    """The bytes are no plain text in a charset that is known here."""


def decode(content: bytes) -> tuple[str, str]:
    r"""Read bytes as UTF-8, UTF-16 or GB18030 text.

    Args:
        content: The whole file.

    Returns:
        The text, control characters dropped and line ends as `\n`, and a note for the reader (may be empty).

    Raises:
        NotTextError: They are no text.

    Example:
        >>> decode("周五交表".encode("gb18030"))[0]
        '周五交表'
    """
    text, note = _characters(content)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    kept = _CONTROLS.sub("", text)
    if len(text) - len(kept) - text.count("\f") > len(text) * _MOST_CONTROLS + 1:
        raise NotTextError("too many control characters")
    return kept, note


def _characters(content: bytes) -> tuple[str, str]:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _strictly(content, "utf-16"), ""
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\0" in content:
        return _strictly(content, _utf16_without_mark(content)), ""
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        whole, rest = content[: error.start], content[error.start :]
        if error.reason == "unexpected end of data" and whole and len(rest) < _LONGEST_SEQUENCE:
            return whole.decode("utf-8"), "The file ends in the middle of a character."
    return _strictly(content, "gb18030"), "Read as GB18030."


def _strictly(content: bytes, charset: str) -> str:
    try:
        return content.decode(charset)
    except UnicodeDecodeError as error:
        raise NotTextError(f"not {charset}") from error


def _utf16_without_mark(content: bytes) -> str:
    """Which byte order puts the zeros of Latin letters and line ends where they are."""
    head = content[:4096]
    zeros_first, zeros_second = head[0::2].count(0), head[1::2].count(0)
    fewer, more = sorted((zeros_first, zeros_second))
    if len(content) % 2 or fewer > more // 10 or more * _RAREST_ZERO < len(head):
        raise NotTextError("binary")
    return "utf-16-be" if zeros_first > zeros_second else "utf-16-le"


def blocks(text: str) -> list[str]:
    r"""Cut a text into blocks: paragraphs, or runs of lines of a paragraph that is too long for one.

    Args:
        text: Text with `\n` as line end.

    Returns:
        Blocks of at most `LONGEST_BLOCK` characters, none of them blank.

    Example:
        >>> blocks("first\nline\n\nsecond")
        ['first\nline', 'second']
    """
    found: list[str] = []
    lines: list[str] = []
    length = 0

    def end_block() -> None:
        nonlocal length
        if lines:
            found.append("\n".join(lines))
            lines.clear()
            length = 0

    for line in text.split("\n"):
        if not line.strip():
            end_block()
            continue
        for start in range(0, len(line), LONGEST_BLOCK):
            piece = line[start : start + LONGEST_BLOCK].rstrip()
            if not piece:
                continue
            if lines and length + 1 + len(piece) > LONGEST_BLOCK:
                end_block()
            length += len(piece) + bool(lines)
            lines.append(piece)
    end_block()
    return found
