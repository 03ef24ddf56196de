"""What every parser gives: documents of numbered units, limits to keep, and one error with a code.

Types and a few pure functions, known to both sides of the worker's border. It must never import a parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

Code: TypeAlias = Literal[
    "encrypted",
    "unsupported_type",
    "type_mismatch",
    "corrupt",
    "truncated",
    "empty",
    "no_text_scanned",
    "too_large",
    "too_many_pages",
    "timeout",
    "memory",
    "crashed",
    "missing",
    "outside_archive",
    "converter_missing",
    "changed",
]
"""Why an attachment cannot be read, named after what was hit."""

CODES: frozenset[str] = frozenset(get_args(Code))

LONGEST_UNIT = 20_000
"""Characters of one unit's text at most; a parser that cuts says so at the end of the text."""

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")
_CUT = "\n[cut: the text goes on]"


class UnreadableError(Exception):
    """One attachment, or one unit of it, that cannot be read.

    Args:
        code: The class of what was hit.
        words: Why, for the model and for a person; never text of the file.

    Example:
        >>> str(UnreadableError("encrypted", "it wants a password"))
        'encrypted: it wants a password'
    """

    def __init__(self, code: Code, words: str) -> None:
        """Keep both as attributes."""
        super().__init__(f"{code}: {words}")
        self.code: Code = code
        self.words = words


@dataclass(frozen=True, slots=True)
class Unit:
    """One citable piece.

    Args:
        id: `p3` page, `b7` block, `i1` image: a letter and the number within the document, from 1.
        text: Its text; beside a picture what the picture is (its size, what was done to it), may be empty.
        image: The picture, encoded, where the unit is one and the model sees.
        mime: The picture's type.
    """

    id: str
    text: str
    image: bytes | None = None
    mime: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one document may take. `[attachments]` of the configuration, and whether the model sees.

    Args:
        max_file_mb: Larger files are refused, in MiB.
        max_memory_mb: Address space of the worker, in MiB.
        timeout_seconds: Wall clock of one answer of the worker.
        max_chars_per_read: Characters of text that one reading returns.
        max_images_per_read: Pictures that one reading returns.
        max_image_px: Long side of a picture as sent, in pixels.
        vision: The model sees: parsers give pictures, and pages without text as pictures.
    """

    max_file_mb: int = 50
    max_memory_mb: int = 1024
    timeout_seconds: float = 30.0
    max_chars_per_read: int = 12_000
    max_images_per_read: int = 4
    max_image_px: int = 1568
    vision: bool = False


class Document(Protocol):
    """An opened document. What `open_document(content, kind, limits)` of every parser module returns."""

    @property
    def total(self) -> int:
        """Units in all, known without reading them where the format allows."""

    @property
    def note(self) -> str:
        """What the reader is told once about the whole: a second reader, hidden text. May be empty."""

    def unit(self, number: int) -> Unit:
        """One unit, the same for the same bytes for ever.

        Args:
            number: From 1 to `total`.

        Raises:
            UnreadableError: This unit cannot be read; others may be.
        """

    def close(self) -> None:
        """Let go of everything; called once."""


def clean(text: str) -> str:
    r"""Drop what no reader sees: control characters but `\n` and `\t`, noncharacters, lone surrogates.

    Line ends of every kind become `\n`.

    Example:
        >>> clean("a\x07b\r\nc\x0bd\re")
        'ab\ncd\ne'
    """
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


_BLANKS = re.compile("[\xad\u061c\u200b\u200e\u200f\u2060\ufeff]")
"""Characters without a width that programs leave behind: where a line may break, which way a text runs."""

_UNSEEN = re.compile(
    "[\u115f\u1160\u17b4\u17b5\u180b-\u180f\u202a-\u202e\u2061-\u206f\u3164\ufe00-\ufe0e\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that show nothing and do something: turn the order of others, or carry a text of their own.

Not among them are those that change what is shown: the joiners of emoji and of scripts (U+200C, U+200D) and
the mark that colours an emoji (U+FE0F).
"""


def without_unseen(text: str) -> tuple[str, int]:
    r"""The text without characters that show nothing, and how many of them are more than blanks.

    Example:
        >>> without_unseen("12\u200b月\u202e5日\U000e0041")
        ('12月5日', 2)
    """
    return _UNSEEN.subn("", _BLANKS.sub("", text))


def seen(text: str) -> str:
    r"""The text of a unit as a person sees it: without characters that show nothing, with words that say so.

    Example:
        >>> seen("周五\u202e交表"), seen("周五\ufeff交表")
        ('周五交表\n[left out: 1 character that shows nothing]', '周五交表')
    """
    kept, left_out = without_unseen(text)
    if not kept.strip():
        left_out = len(text) - len(kept)
    if not left_out:
        return kept
    what = "1 character that shows" if left_out == 1 else f"{left_out} characters that show"
    return f"{kept}\n[left out: {what} nothing]".lstrip("\n")


def capped(text: str) -> str:
    r"""The text of a unit, cut at `LONGEST_UNIT` with words that say so.

    Example:
        >>> capped("short"), capped("a" * 30_000)[-24:]
        ('short', '\n[cut: the text goes on]')
    """
    return text if len(text) <= LONGEST_UNIT else text[: LONGEST_UNIT - len(_CUT)] + _CUT
