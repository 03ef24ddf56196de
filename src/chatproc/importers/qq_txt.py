"""The text that QQ for Windows exports from its message manager: one chat, or all of them in sections.

A line with a time and a sender begins a message; in the program's own files an empty line stands before it.
Such a text may be filtered and has neither ids nor numbers, so neighbours are linked only where the user
says that it is complete. Never reads QQ's own database.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message
from chatproc.importers.lines import first_lines, read_lines
from chatproc.importers.moments import day_of, part_of_day, second_of_day
from chatproc.importers.transcript import (
    LOOKS_LIKE_ONE,
    OUT_OF_ORDER,
    Draft,
    Passed,
    Stretch,
    find_files,
    recognizes_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from chatproc.importers.base import Reading, Source

_LOOKS_FOR = "*.txt from QQ's message manager, with `消息对象` in its head"
_TITLE = "消息记录"
_RULE = re.compile(r"={40,}\s*")
_GROUPING = re.compile(r"消息分组[:：]\s*(.*)")
_CHAT = re.compile(r"消息对象[:：]\s*(.*)")
_HEAD = re.compile(
    r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})\s{1,3}(上午|下午)?\s{0,3}(\d{1,2}):(\d{2}):(\d{2})"
    r"(?:\s{0,3}([AaPp][Mm]))?\s{1,3}(\S.{0,300})"
)
_SENDER = re.compile(r"(?:【[^】]*】)?(.*?)\s?(?:\((\d{4,12})\)|<([^<>\s]+@[^<>\s]+)>)\s*")
_SECTION_HEADS = ("RGRCR", "RCR")
_SYSTEM = frozenset({"10000", "1000000"})
_RECALL = re.compile(r"(?:.{0,80}?)撤回了(?:一条|.{0,80}?的)消息[。.]?", re.DOTALL)
_FILES = re.compile(r"\[(?:图片|视频|语音|文件|闪照)\]")
_EVERYONE = re.compile(r"@全体成员(?=\s|$)")
_PRIVATE = frozenset({"我的好友", "特别关心"})
_EARLIEST = 1999


@dataclass(frozen=True, slots=True)
class _Section:
    """Where a conversation begins in the file; the names are `None` where the file does not say."""

    grouping: str | None
    chat: str | None


@dataclass(frozen=True, slots=True)
class _Head:
    """A line that may begin a message."""

    number: int
    line: str
    day: int
    second: int
    name: str
    id: str | None
    after_blank: bool

    @property
    def sender(self) -> str:
        return self.id or self.name


_Token = _Section | _Head | tuple[int, str]


def _is_export(file: Path) -> bool:
    lines = [line for line in first_lines(file)[:12] if line.strip()]
    return any(map(_CHAT.match, lines)) or bool(lines and lines[0].startswith(_TITLE + "（"))


def _find(path: Path) -> list[Source]:
    return find_files(path, ("*.txt",), _is_export, _LOOKS_FOR)


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    outline = _outline(source, reading)
    if not outline.heads:
        raise ConfigError(
            "no message of QQ's text export in it: looked for lines like `2026-07-01 9:04:05 Name(10001)`",
            where=str(source.files[0]),
        )
    yield from _Reader(source, reading, outline).messages()


@dataclass(slots=True)
class _Outline:
    """What a walk of its own finds before the messages are read."""

    heads: int = 0
    after_blank: int = 0
    senders: frozenset[str] = frozenset()


def _outline(source: Source, reading: Reading) -> _Outline:
    outline, passed = _Outline(), Passed()
    for token in _tokens(source, reading, listed=False):
        if isinstance(token, _Head):
            outline.heads += 1
            outline.after_blank += token.after_blank
            if token.after_blank:
                passed.judge(token.day * 86_400 + token.second, token.sender)
        elif isinstance(token, _Section):
            passed.begin()
    outline.senders = passed.senders
    return outline


def _tokens(source: Source, reading: Reading, *, listed: bool) -> Iterator[_Token]:
    """The file as sections, lines that may begin a message, and other lines."""
    is_begun, is_blank = False, True
    for part in _sections(read_lines(source, reading, listed=listed)):
        if isinstance(part, _Section):
            is_begun, is_blank = True, True
            yield part
            continue
        number, line = part
        head = _head(number, line, after_blank=is_blank)
        is_blank = not line.strip()
        # Some copies of such files have lost the rules around the head.
        chat = None if is_begun else _CHAT.fullmatch(line)
        if chat is not None:
            is_blank = True
            yield _Section(None, chat[1].strip())
        else:
            is_begun = is_begun or head is not None
            yield head or part


def _sections(lines: Iterable[tuple[int, str]]) -> Iterator[_Section | tuple[int, str]]:
    """The lines, and in place of the lines of a section's head what it says."""
    held: list[tuple[int, str]] = []
    kinds, grouping = "", None
    for number, line in lines:
        kind = _kind(line)
        if kind and any(shape.startswith(kinds + kind) for shape in _SECTION_HEADS):
            held.append((number, line))
            kinds += kind
        else:
            yield from held
            held, kinds = ([(number, line)], kind) if kind == "R" else ([], "")
            if not held:
                yield number, line
        if kinds in _SECTION_HEADS:
            said = [
                text.replace("：", ":").split(":", 1)[1].strip()
                for _, text in held
                if ":" in text or "：" in text
            ]
            grouping = said[0] if len(said) > 1 else grouping
            yield _Section(grouping, said[-1])
            held, kinds = [], ""
    yield from held


def _kind(line: str) -> str:
    """`R` for a rule, `G` for a grouping, `C` for a chat, `""` for any other line."""
    for kind, pattern in (("R", _RULE), ("G", _GROUPING), ("C", _CHAT)):
        if pattern.fullmatch(line):
            return kind
    return ""


def _head(number: int, line: str, *, after_blank: bool) -> _Head | None:
    found = _HEAD.fullmatch(line)
    if found is None:
        return None
    year, _, month, date, part, hour, minute, second, latin_part, who = found.groups()
    day = day_of((year, month, date), "ymd", _EARLIEST)
    at = second_of_day(int(hour), int(minute), int(second), part_of_day(part or latin_part) or "")
    if day is None or at is None:
        return None
    sender = _SENDER.fullmatch(who)
    name, number_or_mail = (sender[1], sender[2] or sender[3]) if sender is not None else (who.strip(), None)
    return _Head(number, line, day, at, name, number_or_mail, after_blank=after_blank)


class _Reader:
    """The messages of one file while its lines pass by."""

    def __init__(self, source: Source, reading: Reading, outline: _Outline) -> None:
        self.source = source
        self.reading = reading
        self.passed = Passed(outline.senders)
        # The program's own files have an empty line before each message; copies may have lost them.
        self.needs_blank = outline.after_blank * 2 >= outline.heads
        self.draft: Draft | None = None
        self.begin(_Section(None, None))

    def begin(self, section: _Section) -> None:
        """Another conversation begins here."""
        self.section = section
        self.conversation: Conversation | None = None
        self.has_ids = False
        self.stretch = Stretch(unbroken=self.reading.complete)
        self.passed.begin()

    def messages(self) -> Iterator[Message]:
        """All messages of the file."""
        for token in _tokens(self.source, self.reading, listed=True):
            if isinstance(token, tuple):
                self.add(*token)
            elif isinstance(token, _Section):
                yield from self.whole()
                self.begin(token)
            elif self.begins_message(token):
                yield from self.whole()
                self.draft = Draft(self.message(token), [])
            else:
                self.add(token.number, token.line)
        yield from self.whole()

    def add(self, number: int, line: str) -> None:
        """A line that begins nothing: text of the message above it, or not understood."""
        if self.draft is not None:
            self.draft.add(number, line, self.reading)
        elif line.strip() and not line.startswith(_TITLE):
            self.reading.not_understand(self.source.name, number, line, "text before the first message")

    def begins_message(self, head: _Head) -> bool:
        """Whether a line that looks like the beginning of a message is one; what is in doubt is listed."""
        is_odd = (self.needs_blank and not head.after_blank) or (self.has_ids and head.id is None)
        judged = "text" if is_odd else self.passed.judge(head.day * 86_400 + head.second, head.sender)
        if judged != "message":
            reason = OUT_OF_ORDER if judged == "late" else LOOKS_LIKE_ONE
            self.reading.not_understand(self.source.name, head.number, head.line, reason)
        return judged != "text"

    def message(self, head: _Head) -> Message:
        """The message that a line begins, still without its text."""
        is_system = head.id in _SYSTEM
        if head.id is not None and not is_system:
            self.has_ids = True
        if self.conversation is None:
            self.conversation = self.named_conversation(head, is_system=is_system)
        message = Message(
            conversation=self.conversation,
            key="",
            sent_at=self.reading.clock_time(head.day, head.second),
            line=head.number,
            file=self.source.name,
            text="",
            sender_id=head.id,
            sender_name=head.name or None,
        )
        if is_system:
            message.kind, message.role = "system", "system"
        elif head.id is not None and head.id == self.reading.account:
            message.role = "self"
        return message

    def named_conversation(self, head: _Head, *, is_system: bool) -> Conversation:
        """The conversation of a section; members of groups alone are shown with their numbers."""
        name = self.section.chat
        grouping = self.section.grouping or ""
        kind: Literal["group", "private", "unknown"] = "unknown"
        if "群" in grouping or (head.id is not None and not is_system):
            kind = "group"
        elif grouping in _PRIVATE:
            kind = "private"
        return Conversation("qq", self.reading.account, name or self.source.files[0].stem, name, kind)

    def whole(self) -> Iterator[Message]:
        """The message whose lines have all been read, if there is one."""
        draft, self.draft = self.draft, None
        if draft is None:
            return
        message, text = draft.message, draft.text
        shows_number = message.sender_id is not None and message.sender_name == message.sender_id
        if _RECALL.fullmatch(text) and (message.kind == "system" or shows_number):
            message.state, message.revision = "recalled", 1
            message.source["notice"] = text
        else:
            message.text = text
            if _EVERYONE.search(text):
                message.mentions = [{"all": True}]
            message.attachments = [
                self.reading.attachment(self.source, number, places=(), name=None, absent="not_exported")
                for number, _ in enumerate(_FILES.finditer(text), 1)
            ]
        yield self.stretch.put(message)


QQ_TXT = Format("qq-txt", _find, _read, _LOOKS_FOR, recognizes_in(("*.txt",), _is_export))
