"""What exports share that are written for people: no ids, a line that begins each message, lines that go on.

Keys and places are made so that two overlapping exports of one chat tell the same. Whether a line begins a
message is for the format to say; how a line that merely looks so is judged is said here, once for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from chatproc.errors import ConfigError
from chatproc.importers.base import single_files
from chatproc.importers.keys import Occurrences

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from chatproc.importers.base import Message, Reading, Source

MAX_MESSAGE_CHARS = 1 << 20
# Clocks set back an hour in autumn, and messages that arrive late, are no sign of anything.
_LATE = 3600
_MOST_KNOWN = 100_000
_PLACES = 100_000

LOOKS_LIKE_ONE = "looks like the beginning of a message, but is text of the one before it"
OUT_OF_ORDER = "earlier than the message above it: taken as a message, it may be text of that one"


class Passed:
    """The times and senders of the messages passed so far, to judge a line by that may begin the next.

    People paste chats into chats. A line that goes back in time and names a sender who nowhere else in the
    file has a message in the course of time is pasted text; one that names a known sender may be either.
    """

    def __init__(self, known: frozenset[str] | None = None) -> None:
        """Start with no message passed; `known`: the senders found in a walk before."""
        self._known = known
        self._found: set[str] = set()
        self._last = 0

    def judge(self, second: int, sender: str | None) -> Literal["message", "late", "text"]:
        """What a line is that gives a time, in seconds, and a sender."""
        forwards = second >= self._last - _LATE
        if forwards:
            if sender is not None and len(self._found) < _MOST_KNOWN:
                self._found.add(sender)
        elif self._known is not None and sender not in self._known:
            return "text"
        self._last = second
        return "message" if forwards else "late"

    def begin(self) -> None:
        """Another conversation begins: its times have nothing to do with those before."""
        self._last = 0

    @property
    def senders(self) -> frozenset[str]:
        """The senders of messages in the course of time."""
        return frozenset(self._found)


@dataclass(slots=True)
class Draft:
    """A message whose lines are still being read; `message.text` is made of them when it is whole."""

    message: Message
    lines: list[str]
    chars: int = 0
    is_cut: bool = False

    def add(self, number: int, line: str, reading: Reading) -> None:
        """Take in a further line; beyond what any message holds the rest is listed and left out."""
        self.chars += len(line) + 1
        if self.chars <= MAX_MESSAGE_CHARS:
            self.lines.append(line)
        elif not self.is_cut:
            self.is_cut = True
            reason = f"a message longer than {MAX_MESSAGE_CHARS} characters: from here on it is left out"
            reading.not_understand(self.message.file, number, line, reason)

    @property
    def text(self) -> str:
        """Its lines, without the empty ones that separate messages."""
        return "\n".join(self.lines).rstrip("\n")


class Stretch:
    """Keys, places and neighbours of the messages of one conversation of an export, in its order."""

    def __init__(self, *, unbroken: bool) -> None:
        """Start before the first; `unbroken`: whoever follows in the export follows in the chat."""
        self._unbroken = unbroken
        self._occurrences = Occurrences()
        self._first: int | None = None
        self._place = (0, 0)
        self._previous: tuple[int, str] | None = None

    def put(self, message: Message) -> Message:
        """Give the next message its place and, unless it has one, its key.

        Its place is counted within its second or minute, and so is the same in every export. In the first
        one equal messages may be missing, so that numbers among equals and neighbours are in doubt there.
        """
        if not message.key:
            message.key = self._occurrences.key(message)
        if self._first is None:
            self._first = message.sent_at
        at, count = self._place
        self._place = message.sent_at, count + 1 if at == message.sent_at else 1
        message.index = message.sent_at // 1000 * _PLACES + min(self._place[1], _PLACES - 1)
        if self._unbroken and self._previous is not None and self._previous[1] != message.key:
            message.predecessor = self._previous[1]
            if self._previous[0] == self._first:
                message.reach = max(message.sent_at - self._first, 0)
        self._previous = message.sent_at, message.key
        return message

    def lose(self) -> None:
        """Something was not understood here: nobody is known to follow the message before it."""
        self._previous = None


def find_files(
    path: Path, patterns: tuple[str, ...], is_export: Callable[[Path], bool], looks_for: str
) -> list[Source]:
    """The export that a path is, or all those in a folder that it is.

    Raises:
        ConfigError: There is none; it says what was looked for.
    """
    files = sorted({file for pattern in patterns for file in path.glob(pattern) if file.is_file()})
    absence = ConfigError(f"no export here: looked for {looks_for}", where=str(path))
    return single_files(path, files, is_export, absence)


def recognizes_in(patterns: tuple[str, ...], is_export: Callable[[Path], bool]) -> Callable[[Path], bool]:
    """Tells of a file whether it is an export, and of a folder whether it holds one."""

    def recognizes(path: Path) -> bool:
        if path.is_dir():
            return any(is_export(file) for pattern in patterns for file in sorted(path.glob(pattern)))
        return is_export(path)

    return recognizes
