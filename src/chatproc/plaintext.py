r"""Hostile text made fit to be shown: without control sequences, turned lines or unseen characters.

Pure. Whatever shows text of messages, names, files or a model takes it through here first.
"""

from __future__ import annotations

import json
import re

_SEQUENCES = re.compile(
    # Titles, links and other strings, when they end; else only what begins them, or a message could hide.
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\n\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor, modes
    r"|\x1b[ -/]*[0-~]?"  # two-character commands
)
# Controls but for line feed and tab; what turns the direction of text; what takes no room and so hides or
# splits words (joiners and variation selectors stay: emoji and several scripts need them); tag characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_LINE_BREAKS = re.compile("\r\n|[\r\x85\u2028\u2029]")


def plain(text: str) -> str:
    r"""Text that a terminal shows and does not obey.

    Args:
        text: Anything, hostile or not.

    Returns:
        The text without control and escape sequences, without characters that turn the direction of the line
        and without invisible ones. Of the controls only line feed and tab remain.

    Example:
        >>> plain("\x1b[31mred\x1b[0m \u202etxt.exe")
        'red txt.exe'
    """
    return _UNSEEN.sub("", _SEQUENCES.sub("", _LINE_BREAKS.sub("\n", text)))


def one_line(text: str) -> str:
    r"""`plain`, on one line.

    Args:
        text: Anything, hostile or not.

    Example:
        >>> one_line("a\n  b\tc")
        'a b c'
    """
    return " ".join(plain(text).split())


def escaped_json(text: str) -> str:
    r"""JSON text that says the same, with what a terminal could obey written as escapes.

    Args:
        text: Valid JSON.

    Example:
        >>> escaped_json('"\u202e"')
        '"\\u202e"'
    """
    return re.sub("[\u2028\u2029]", _escaped, _UNSEEN.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
