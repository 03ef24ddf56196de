"""The text that LINE exports of one chat, from telephones and computers, in the languages of its users.

A line with a date begins a day, a line with a time and a tab a message; the lines of a message of several
stand in quotation marks on telephones, and what is in them is never taken for a message. An export is an
unbroken stretch of its chat, so neighbours are linked. Placeholders stay in the text as they are written.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message
from chatproc.importers.lines import first_lines, read_lines
from chatproc.importers.moments import ORDERS, DateOrders, day_of, part_of_day, second_of_day, weekday_of
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

    from chatproc.importers.base import DateOrder, Reading, Source

_LOOKS_FOR = "*.txt from LINE: dates on lines of their own, then lines of time, name and text between tabs"
_EARLIEST = 2011
_GROUP = 3
_LONGEST_DAY = 64
_LONGEST_NOTICE = 200
_MARK = re.compile(r"\[LINE\]\s*")
_TITLES = (
    re.compile(r"Chat history (?:with|in) (.+)"),
    re.compile(r"[與与]\s?(.+?)\s?的聊天(?:記錄|记录|紀錄)"),
    re.compile(r"(.+?)\s?的聊天(?:記錄|记录|紀錄)"),
    re.compile(r"(.+?)\s?との?トーク(?:履歴)?"),
    re.compile(r"(.+?)\s?のトーク(?:履歴)?"),
    re.compile(r"(.+?)\s?님과(?:의)? ?(?:카카오톡 )?대화"),
    re.compile(r"ประวัติการ(?:สนทนา|แชท)(?:กับ|ใน)\s?(.+)"),
)
_SAVED = re.compile(
    r"(?:Saved on|儲存日期|保存日期|保存日時|저장한 날짜|บันทึกวันที่|บันทึกเมื่อ)\s?[:：].*", re.IGNORECASE
)
_DAY = re.compile(
    r"(\d{4})\s?[./年년-]\s?(\d{1,2})\s?[./月월-]\s?(\d{1,2})[日일]?"
    r"\s*[(（]?\s*([^\W\d_][^\d()（）\t]{0,11}?)\s*[)）]?\s*"
)
_DAY_AFTER_NAME = re.compile(r"([^\W\d_][^\d\t]{0,11}?),?\s+(\d{1,2})[./-](\d{1,2})[./-](\d{4})\s*")
_TIME = r"(?P<before>[^\W\d_]{2})?\s?(?P<hour>\d{1,2}):(?P<minute>\d{2})\s?(?P<after>[AaPp]\.?[Mm]\.?)?"
_TABBED = re.compile(rf"{_TIME}\t(?P<rest>.*)", re.DOTALL)
_SPACED = re.compile(rf"{_TIME} (?P<rest>\S.*)", re.DOTALL)
# A quoted message is looked for so far; a person's own quotation mark opens none.
_MOST_QUOTED = 500
_MOST_LIKENESSES = 20
_FILES = re.compile(
    r"\[(?:照片|圖片|图片|相片|影片|视频|視頻|檔案|文件|語音訊息|语音消息|语音|写真|画像|動画|ファイル|ボイスメッセージ|音声"
    r"|Photos?|Images?|Videos?|Files?|Voice message|Audio|사진|동영상|파일|음성 ?메시지"
    r"|รูป|รูปภาพ|วิดีโอ|ไฟล์|ข้อความเสียง)\]",
    re.IGNORECASE,
)
_RECALL = re.compile(
    r"(?P<name>.*?)\s?(?:已?收回了?(?:一則)?訊息|撤回了?(?:一条|一則)?(?:消息|訊息)|が?メッセージの送信を取り消しました"
    r"|\bunsent a message|님이 메시지 (?:전송|보내기)를? ?취소했습니다"
    r"|(?:ได้)?ยกเลิก(?:การส่ง)?ข้อความ(?:แล้ว)?)[。.]?"
)
_SELF = frozenset({"", "您", "你", "You", "you", "คุณ"})
_EVERYONE = re.compile(r"@All(?=\s|$)")


@dataclass(frozen=True, slots=True)
class _Day:
    """A line that may begin a day."""

    numbers: tuple[str, str, str]
    written: str
    weekday: int | None
    is_year_first: bool

    def number(self, order: DateOrder) -> int | None:
        """Its day, where the date and the day of the week beside it fit."""
        order = "ymd" if self.is_year_first else order
        return day_of(self.numbers, order, _EARLIEST, self.weekday)


@dataclass(frozen=True, slots=True)
class _Head:
    """A line that may begin a message; without a tab in the rest it names no sender."""

    second: int
    sender: str | None
    text: str


def _day(line: str) -> _Day | None:
    if len(line) > _LONGEST_DAY:
        return None
    found = _DAY.fullmatch(line)
    if found is not None:
        year, month, day, name = found.groups()
        return _Day((year, month, day), line.strip(), weekday_of(name), is_year_first=True)
    found = _DAY_AFTER_NAME.fullmatch(line)
    if found is not None and weekday_of(found[1]) is not None:
        numbers = (found[2], found[3], found[4])
        return _Day(numbers, line.strip(), weekday_of(found[1]), is_year_first=False)
    return None


def _head(line: str, pattern: re.Pattern[str] = _TABBED) -> _Head | None:
    found = pattern.fullmatch(line)
    part = part_of_day(found["before"] or found["after"]) if found is not None else None
    if found is None or part is None:
        return None
    second = second_of_day(int(found["hour"]), int(found["minute"]), 0, part)
    if second is None:
        return None
    name, tab, text = found["rest"].partition("\t")
    return _Head(second, name.strip() or None, text) if tab else _Head(second, None, found["rest"])


def _is_export(file: Path) -> bool:
    lines = [line for line in first_lines(file) if line.strip()]
    if lines and _MARK.match(lines[0]):
        return True
    begun = next((at for at, line in enumerate(lines[:4]) if _day(line)), None)
    return begun is not None and any(_head(line) or _head(line, _SPACED) for line in lines[begun : begun + 2])


def _find(path: Path) -> list[Source]:
    return find_files(path, ("*.txt",), _is_export, _LOOKS_FOR)


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    yield from _Reader(source, reading, _outline(source, reading)).messages()


@dataclass(slots=True)
class _Outline:
    """What a walk of its own finds before the messages are read."""

    title: str
    order: DateOrder = "ymd"
    pattern: re.Pattern[str] = _TABBED
    needs_blank: bool = False
    senders: frozenset[str] = frozenset()


def _outline(source: Source, reading: Reading) -> _Outline:
    where = str(source.files[0])
    dates = DateOrders(_EARLIEST)
    passed = {order: Passed() for order in ORDERS}
    current: dict[DateOrder, int | None] = {}
    days = after_blank = tabbed = spaced = 0
    title, is_blank, is_ambiguous = None, True, False
    for number, line in read_lines(source, reading, listed=False):
        day = _day(line)
        if day is not None:
            days += 1
            after_blank += is_blank
            if day.is_year_first:
                current = dict.fromkeys(ORDERS, day.number("ymd"))
            else:
                is_ambiguous = True
                current = dates.add(day.numbers, day.written, day.weekday)
        elif (head := _head(line)) is not None:
            tabbed += 1
            for order, at in current.items():
                if at is not None:
                    passed[order].judge(at * 86_400 + head.second, head.sender)
        elif number == 1:
            title = _title(line)
        else:
            spaced += _head(line, _SPACED) is not None
        is_blank = not line.strip()
    if not days or not (tabbed or spaced):
        raise ConfigError(f"no message of LINE in it: looked for {_LOOKS_FOR}", where=where)
    outline = _Outline(title or _MARK.sub("", source.files[0].stem) or source.files[0].stem)
    outline.order = dates.order(reading.date_order, where) if is_ambiguous else "ymd"
    outline.pattern = _TABBED if tabbed else _SPACED
    outline.needs_blank = after_blank * 2 >= days
    outline.senders = passed[outline.order].senders
    return outline


def _title(line: str) -> str | None:
    if not _MARK.match(line) and not _TITLES[0].fullmatch(line):
        return None
    rest = _MARK.sub("", line).strip()
    for pattern in _TITLES:
        found = pattern.fullmatch(rest)
        if found is not None:
            return found[1]
    return rest or None


def _unquoted(lines: Iterable[tuple[int, str]], pattern: re.Pattern[str]) -> Iterator[tuple[int, str, bool]]:
    """Each line, and whether it goes on a message in quotation marks that is closed further down."""
    waiting: deque[tuple[int, str]] = deque()
    source = iter(lines)
    inside = 0
    while True:
        if not waiting:
            following = next(source, None)
            if following is None:
                return
            waiting.append(following)
        number, line = waiting.popleft()
        yield number, line, inside > 0
        if inside:
            inside -= 1
            continue
        head = _head(line, pattern)
        if head is not None and _opens(head.text):
            inside = _lines_to_close(waiting, source, pattern)


def _opens(text: str) -> bool:
    return text.startswith('"') and (len(text) == 1 or not text.rstrip().endswith('"'))


def _lines_to_close(
    waiting: deque[tuple[int, str]], source: Iterator[tuple[int, str]], pattern: re.Pattern[str]
) -> int:
    """How many lines further a quoted message is closed; 0 where the mark is a person's own."""
    likenesses = 0
    for at in range(_MOST_QUOTED):
        if at == len(waiting):
            following = next(source, None)
            if following is None:
                return 0
            waiting.append(following)
        line = waiting[at][1]
        head = _head(line, pattern)
        closes = line.rstrip().endswith('"')
        if head is None and closes:
            return at + 1
        likenesses += head is not None
        if head is not None and (closes or _opens(head.text) or likenesses > _MOST_LIKENESSES):
            return 0
    return 0


class _Reader:
    """The messages of one file while its lines pass by."""

    def __init__(self, source: Source, reading: Reading, outline: _Outline) -> None:
        self.source = source
        self.reading = reading
        self.outline = outline
        self.passed = Passed(outline.senders)
        self.stretch = Stretch(unbroken=True)
        self.draft: Draft | None = None
        self.day: int | None = None
        self.conversation = Conversation(
            "line",
            reading.account,
            outline.title,
            outline.title,
            "group" if len(outline.senders) >= _GROUP else "unknown",
        )

    def messages(self) -> Iterator[Message]:
        """All messages of the file."""
        pattern = self.outline.pattern
        if pattern is _SPACED:
            reason = "names and texts are not separated in this file: names stay in the texts"
            self.reading.not_understand(self.source.name, 0, "", reason)
        is_blank = True
        lines = read_lines(self.source, self.reading, listed=True)
        for number, line, is_quoted in _unquoted(lines, pattern):
            day, head = _day(line), _head(line, pattern)
            if is_quoted:
                if day is not None or head is not None:
                    self.note(number, line, LOOKS_LIKE_ONE)
                self.add(number, line)
            elif day is not None and self.begins_day(day, number, line, after_blank=is_blank):
                yield from self.whole()
            elif day is None and head is not None and self.begins_message(head, number, line):
                yield from self.whole()
                self.draft = Draft(self.message(head, number), [])
                self.draft.add(number, head.text, self.reading)
            else:
                self.add(number, line)
            is_blank = not line.strip()
        yield from self.whole()

    def note(self, number: int, line: str, reason: str) -> None:
        """List a line."""
        self.reading.not_understand(self.source.name, number, line, reason)

    def add(self, number: int, line: str) -> None:
        """A line that begins nothing: text of the message above it, or not understood."""
        if self.draft is not None:
            self.draft.add(number, line, self.reading)
        elif line.strip() and not (_SAVED.fullmatch(line) or (number == 1 and _title(line))):
            self.note(number, line, "text before the first message of a day")
            self.stretch.lose()

    def begins_day(self, day: _Day, number: int, line: str, *, after_blank: bool) -> bool:
        """Whether a line that looks like the beginning of a day is one; what is in doubt is listed."""
        found = day.number(self.outline.order)
        if found is None or found == self.day or (self.outline.needs_blank and not after_blank):
            self.note(number, line, "looks like the beginning of a day, but is text of the message above it")
            return False
        if self.day is not None and found < self.day:
            self.note(number, line, "a day before the one above it: taken as a day, it may be text")
        self.day = found
        return True

    def begins_message(self, head: _Head, number: int, line: str) -> bool:
        """Whether a line that looks like the beginning of a message is one; what is in doubt is listed."""
        if self.day is None:
            return False
        judged = self.passed.judge(self.day * 86_400 + head.second, head.sender)
        if judged != "message":
            self.note(number, line, OUT_OF_ORDER if judged == "late" else LOOKS_LIKE_ONE)
        return judged != "text"

    def message(self, head: _Head, number: int) -> Message:
        """The message that a line begins, still without its text."""
        message = Message(
            conversation=self.conversation,
            key="",
            sent_at=self.reading.clock_time(self.day or 0, head.second),
            line=number,
            file=self.source.name,
            text="",
            sender_name=head.sender,
        )
        if self.outline.pattern is _SPACED:
            message.role = "unknown"
        elif head.sender is None:
            message.kind, message.role = "system", "system"
        return message

    def whole(self) -> Iterator[Message]:
        """The message whose lines have all been read, if there is one."""
        draft, self.draft = self.draft, None
        if draft is None:
            return
        message, text = draft.message, draft.text
        if len(draft.lines) > 1 and text.startswith('"') and text.endswith('"'):
            text = text[1:-1]
        recall = _RECALL.fullmatch(text) if len(text) <= _LONGEST_NOTICE else None
        if recall is not None and message.sender_name in (None, recall["name"]):
            self.recall(message, text, recall["name"])
        else:
            message.text = text
            if _EVERYONE.search(text):
                message.mentions = [{"all": True}]
            if _FILES.fullmatch(text.strip()):
                message.attachments = [
                    self.reading.attachment(self.source, 1, places=(), name=None, absent="not_exported")
                ]
        yield self.stretch.put(message)

    def recall(self, message: Message, notice: str, name: str) -> None:
        """A notice in the place of a message that its sender took back."""
        message.state, message.revision, message.kind = "recalled", 1, "message"
        message.source["notice"] = notice
        if name in _SELF:
            message.role, message.sender_name = "self", None
        else:
            message.role, message.sender_name = "user", name


LINE = Format("line", _find, _read, _LOOKS_FOR, recognizes_in(("*.txt",), _is_export))
