"""The text that WhatsApp exports of one chat, on Android and on iPhones, in the language of the telephone.

A line with date, time and, but for notices, a sender begins a message; which of day, month and year stands
where, and how the lines of the file are written, is decided from the file as a whole. An export is an
unbroken stretch of its chat, so neighbours are linked. Placeholders stay in the text as they are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message
from chatproc.importers.lines import first_lines, read_lines
from chatproc.importers.moments import MARKS, ORDERS, DateOrders, day_of, part_of_day, second_of_day, unmarked
from chatproc.importers.transcript import (
    LOOKS_LIKE_ONE,
    OUT_OF_ORDER,
    Draft,
    Passed,
    Stretch,
    find_files,
    recognizes_in,
)
from chatproc.importers.whatsapp_words import (
    DELETED,
    DELETED_BY_ADMIN,
    EDITED,
    FILE_ATTACHED,
    FILE_MARKED,
    KIND_OMITTED,
    MEDIA_OMITTED,
    TITLES,
    VOTES,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chatproc.importers.base import DateOrder, Reading, Source

_LOOKS_FOR = "*.txt with lines like `01/07/2026, 09:05 - Name: text` or `[01.07.26, 09:05:00] Name: text`"
_EARLIEST = 2009
_LONGEST_NAME = 100
_GROUP = 3

# Every repeat is bounded: a line of a million marks must not cost a million squared.
_M = f"[{MARKS}]{{0,4}}"
_DATE = (
    rf"(?P<a>\d{{1,4}}){_M}(?P<sep>[./\-年])\s?{_M}(?P<b>\d{{1,2}}){_M}(?:(?P=sep)|月)\s?{_M}(?P<c>\d{{1,4}})"
    r"日?\.?(?:\s?г\.)?"
)
_TIME = (
    rf"{_M}(?P<before>[^\W\d][^\d\[\]:\n]{{0,14}}?)?\s{{0,3}}{_M}(?P<hour>\d{{1,2}})(?:[:.٫]|\s?h\s?)(?P<minute>\d{{2}})"
    rf"(?:[:.](?P<second>\d{{2}}))?(?:\s{{0,3}}{_M}(?P<after>[^\W\d][^\d\[\]:\n]{{0,14}}?))?{_M}"
)
_GAP = rf"[,،]?{_M}\s{{1,3}}"
_ANDROID = re.compile(rf"{_M}{_DATE}{_GAP}{_TIME}\s{{1,3}}[-–] ?(?P<rest>.*)", re.DOTALL)
_IPHONE = re.compile(rf"{_M}\[{_M}{_DATE}{_GAP}{_TIME}\s?\]{_M} ?(?P<rest>.*)", re.DOTALL)
# Vietnamese has the time first.
_ANDROID_TIME_FIRST = re.compile(rf"{_M}{_TIME}{_GAP}{_DATE}\s{{1,3}}[-–] ?(?P<rest>.*)", re.DOTALL)
_IPHONE_TIME_FIRST = re.compile(rf"{_M}\[{_M}{_TIME}{_GAP}{_DATE}\s?\]{_M} ?(?P<rest>.*)", re.DOTALL)
_IN_BRACKETS = (_IPHONE, _IPHONE_TIME_FIRST)
_TIME_FIRST = (_ANDROID_TIME_FIRST, _IPHONE_TIME_FIRST)
_FORMS = (_ANDROID, _IPHONE, *_TIME_FIRST)
# Words between date and time.
_AT = frozenset({"à", "às", "as", "um", "kl", "klo", "o", "at", "u", "في"})
# Words for the hour, behind it.
_HOURS = frozenset({"ч.", "ч"})
_QUOTES = re.compile('["“”„«»「」『』]')
_MENTION = re.compile("@\u2068~?\\s?([^\u2068\u2069\n]+)\u2069")
_NUMBERED = re.compile(r"^\d{6,8}-(?=\D)")
_AGAIN = re.compile(r"\s?\(\d{1,3}\)$")
# Signal's tools write so; WhatsApp has seconds wherever it has brackets and such dates.
_SIGNAL = re.compile(r"\[\d{4}-\d\d-\d\d, \d\d:\d\d\] ")


# In brackets, time first, what parts the date, with seconds, with a part of the day.
_Shape = tuple[bool, bool, str, bool, bool]


@dataclass(frozen=True, slots=True)
class _Head:
    """A line that may begin a message.

    Attributes:
        shape: How it is written; the same for all messages of a file.
        numbers: The numbers of its date, as they stand.
        second: Seconds since midnight.
        rest: What follows on date and time.
    """

    shape: _Shape
    numbers: tuple[str, str, str]
    date: str
    second: int
    rest: str


def _head(line: str) -> _Head | None:
    found = next(filter(None, (form.fullmatch(line) for form in _FORMS)), None)
    if found is None:
        return None
    before = (found["before"] or "").strip(" .\u202f\u00a0")
    part = part_of_day("" if before.casefold() in _AT else before)
    after = part_of_day("" if found["after"] in _HOURS else found["after"])
    if part is None or after is None:
        return None
    second = second_of_day(int(found["hour"]), int(found["minute"]), int(found["second"] or 0), part or after)
    if second is None:
        return None
    return _Head(
        (
            found.re in _IN_BRACKETS,
            found.re in _TIME_FIRST,
            found["sep"],
            found["second"] is not None,
            bool(part or after),
        ),
        (found["a"], found["b"], found["c"]),
        unmarked(line[found.start("a") : found.end("c")]),
        second,
        found["rest"],
    )


def _sender_and_text(rest: str, known: frozenset[str]) -> tuple[str | None, str]:
    """Who wrote what; nobody, where the line is a notice."""
    end = rest.find(": ")
    if end < 0 and rest.endswith(":"):
        end = len(rest) - 1
    if 0 < end <= _LONGEST_NAME and len(_QUOTES.findall(rest[:end])) % 2 == 0:
        name = _name(rest[:end])
        if name:
            return name, rest[end + 2 :]
    # Some copies have lost the space; a notice may hold a colon too, so only for names that are known.
    end = rest.find(":")
    if 0 < end <= _LONGEST_NAME and _name(rest[:end]) in known:
        return _name(rest[:end]), rest[end + 1 :]
    return None, rest


def _name(written: str) -> str:
    """A name without marks, and without the sign of one who is not in the telephone's address book."""
    return unmarked(unmarked(written).removeprefix("~"))


def _is_export(file: Path) -> bool:
    """The first line that is not empty begins a message, and not as those of Signal do."""
    first = next((line for line in first_lines(file) if unmarked(line)), "")
    return _head(first) is not None and _SIGNAL.match(first) is None


def _find(path: Path) -> list[Source]:
    return find_files(path, ("*.txt",), _is_export, _LOOKS_FOR)


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    yield from _Reader(source, reading, _outline(source, reading)).messages()


@dataclass(frozen=True, slots=True)
class _Outline:
    """What a walk of its own finds before the messages are read."""

    shape: _Shape
    order: DateOrder
    senders: frozenset[str]


def _outline(source: Source, reading: Reading) -> _Outline:
    where = str(source.files[0])
    shape = None
    dates = DateOrders(_EARLIEST)
    passed = {order: Passed() for order in ORDERS}
    for _, line in read_lines(source, reading, listed=False):
        head = _head(line)
        if head is None or head.shape != (shape or head.shape):
            continue
        shape = head.shape
        sender, _ = _sender_and_text(head.rest, frozenset())
        for order, day in dates.add(head.numbers, head.date).items():
            if day is not None:
                passed[order].judge(day * 86_400 + head.second, sender)
    if shape is None:
        raise ConfigError(f"no message of WhatsApp in it: looked for {_LOOKS_FOR}", where=where)
    order = dates.order(reading.date_order, where)
    return _Outline(shape, order, passed[order].senders)


def _title(file: Path) -> str:
    """The chat's title by the names of its file and, where that says nothing, of its folder."""
    stem = _AGAIN.sub("", file.stem)
    name = file.resolve().parent.name if stem == "_chat" else stem
    for pattern in TITLES:
        found = pattern.fullmatch(_AGAIN.sub("", name))
        if found is not None:
            return found[1].strip()
    return name or stem


class _Reader:
    """The messages of one file while its lines pass by."""

    def __init__(self, source: Source, reading: Reading, outline: _Outline) -> None:
        self.source = source
        self.reading = reading
        self.outline = outline
        self.passed = Passed(outline.senders)
        self.stretch = Stretch(unbroken=True)
        self.draft: Draft | None = None
        title = _title(source.files[0])
        self.conversation = Conversation(
            "whatsapp",
            reading.account,
            title,
            title,
            "group" if len(outline.senders) >= _GROUP else "unknown",
        )

    def messages(self) -> Iterator[Message]:
        """All messages of the file."""
        for number, line in read_lines(self.source, self.reading, listed=True):
            head = _head(line)
            sender, text = (
                _sender_and_text(head.rest, self.outline.senders) if head is not None else (None, "")
            )
            message = self.begun(number, line, head, sender) if head is not None else None
            if message is not None:
                yield from self.whole()
                self.draft = Draft(message, [])
                self.draft.add(number, text, self.reading)
            elif self.draft is not None:
                self.draft.add(number, line, self.reading)
            elif unmarked(line):
                self.reading.not_understand(self.source.name, number, line, "text before the first message")
        yield from self.whole()

    def begun(self, number: int, line: str, head: _Head, sender: str | None) -> Message | None:
        """The message that a line begins; none where it only looks so. What is in doubt is listed."""
        day = day_of(head.numbers, self.outline.order, _EARLIEST)
        if day is None or head.shape != self.outline.shape:
            judged = "text"
        else:
            judged = self.passed.judge(day * 86_400 + head.second, sender)
        if judged != "message":
            reason = OUT_OF_ORDER if judged == "late" else LOOKS_LIKE_ONE
            self.reading.not_understand(self.source.name, number, line, reason)
        if day is None or judged == "text":
            return None
        message = Message(
            conversation=self.conversation,
            key="",
            sent_at=self.reading.clock_time(day, head.second),
            line=number,
            file=self.source.name,
            text="",
            sender_name=sender,
        )
        if sender is None:
            message.kind, message.role = "system", "system"
        return message

    def whole(self) -> Iterator[Message]:
        """The message whose lines have all been read, if there is one."""
        draft, self.draft = self.draft, None
        if draft is None:
            return
        message = draft.message
        self.add_content(message, draft.text)
        yield self.stretch.put(message)

    def add_content(self, message: Message, text: str) -> None:
        """What a message says: text, a file, a notice, or that it was deleted."""
        bare = unmarked(text)
        if message.kind == "message" and (
            bare.rstrip(".").casefold() in DELETED or DELETED_BY_ADMIN.fullmatch(bare)
        ):
            message.state, message.revision = "recalled", 1
            message.source["notice"] = bare
            return
        edited = EDITED.search(text)
        if edited is not None:
            message.state, message.revision = "edited", 1
            text = text[: edited.start()]
        text = VOTES.sub(r"\1", text)
        if message.kind == "message":
            text = self.add_file(message, text)
            if self.is_notice(text) and not message.attachments:
                message.kind, message.role = "system", "system"
        message.text = text.removeprefix("\u200e")
        message.mentions = [{"id": None, "name": found[1].strip()} for found in _MENTION.finditer(text)]

    def add_file(self, message: Message, text: str) -> str:
        """Take in the file that a message is or carries; gives the text beside it."""
        first, _, caption = text.partition("\n")
        attached = FILE_ATTACHED.fullmatch(first)
        if attached is not None:
            message.attachments = [self.attachment(attached["name"])]
            return caption
        marked = FILE_MARKED.search(text)
        if marked is not None:
            message.attachments = [self.attachment(marked["name"])]
            return text[: marked.start()].rstrip()
        bare = unmarked(text)
        if bare.startswith("<") and bare.endswith(">") and bare[1:-1].casefold() in MEDIA_OMITTED:
            message.attachments = [self.left_out(None)]
        elif self.outline.shape[0] and (omitted := KIND_OMITTED.search(text)):
            name, bullet, _ = text[: omitted.start()].partition("•")
            message.attachments = [self.left_out(unmarked(name) if bullet else None)]
        return text

    def attachment(self, name: str) -> dict[str, Any]:
        """A file beside the chat. The number that iPhones put before its name is another in each export."""
        return self.reading.attachment(self.source, 1, places=(name,), name=_NUMBERED.sub("", name))

    def left_out(self, name: str | None) -> dict[str, Any]:
        """A file that the export was made without."""
        return self.reading.attachment(self.source, 1, places=(), name=name, absent="not_exported")

    def is_notice(self, text: str) -> bool:
        """Whether an iPhone wrote a text itself: it marks such lines, notices among them."""
        is_marked = self.outline.shape[0] and text.startswith("\u200e")
        return is_marked and "\n" not in text and "://" not in text


WHATSAPP = Format("whatsapp", _find, _read, _LOOKS_FOR, recognizes_in(("*.txt",), _is_export))
