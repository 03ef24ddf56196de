"""Texts as they are compared and shown: folded for quotes, kept encodable, cut short and quoted for faults.

Pure.
"""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = Any
"""A value that came out of a JSON parser: anything at all."""

_LONGEST_SHOWN = 60
_LONGEST_CLUSTER = 32
"""Characters that are normalised as one piece: text that stacks thousands of accents stays cheap."""


class Folded:
    """A source as quotes are compared: NFKC, white space as one space, each place traced to the original.

    Args:
        source: The original.
    """

    def __init__(self, source: str) -> None:
        """Fold it once."""
        self.source = source
        self.spans: list[tuple[int, int]] = []
        pieces: list[str] = []
        for start, end, folded in _fold(source):
            pieces.append(folded)
            self.spans.extend([(start, end)] * len(folded))
        self.text = "".join(pieces)

    def wording_of(self, quote: str) -> str | None:
        """The original text of the first place where a quote occurs once both are folded."""
        wanted = "".join(folded for _, _, folded in _fold(quote)).strip()
        at = self.text.find(wanted) if wanted else -1
        if at < 0:
            return None
        return self.source[self.spans[at][0] : self.spans[at + len(wanted) - 1][1]]


def _fold(text: str) -> Iterator[tuple[int, int, str]]:
    """Cut a text where NFKC may be applied piece by piece; runs of white space become one space."""
    start = 0
    blank = False
    while start < len(text):
        end = start + 1
        folded = unicodedata.normalize("NFKC", text[start])
        limit = min(len(text), start + _LONGEST_CLUSTER)
        while end < limit and (joined := _joined(folded, text[end])) is not None:
            folded = joined
            end += 1
        if not folded.strip():
            if not blank:
                yield start, end, " "
            blank = True
        else:
            yield start, end, " ".join(folded.split()) if any(map(str.isspace, folded)) else folded
            blank = False
        start = end


def _joined(folded: str, following: str) -> str | None:
    """The two as one piece when they compose, `None` when they stand apart."""
    if following < "\u0300":
        return None
    alone = unicodedata.normalize("NFKC", following)
    together = unicodedata.normalize("NFKC", folded + following)
    if unicodedata.combining(alone[0]) or together != folded + alone:
        return together
    return None


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs joined, and lone ones, which UTF-8 cannot carry, replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shown(value: Json) -> str:
    """A value for a fault: short, on one line, quoted."""
    if isinstance(value, str):
        short = value if len(value) <= _LONGEST_SHOWN else f"{value[: _LONGEST_SHOWN - 1]}…"
        return json.dumps(encodable(short), ensure_ascii=False)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"
