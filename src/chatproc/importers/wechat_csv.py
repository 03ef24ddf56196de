"""WeChat as tables: MemoTrace's CSV, of all chats or of one, and the CSV of chatlog's API.

Such tables may be filtered by time and kind, so neighbours are linked only where the user says that they are
complete. A row may hold line breaks in quotation marks; a row whose marks do not close costs itself alone.
Never opens WeChat's databases.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message
from chatproc.importers.keys import message_key
from chatproc.importers.lines import first_lines, read_lines
from chatproc.importers.moments import day_of, second_of_day
from chatproc.importers.transcript import MAX_MESSAGE_CHARS, Stretch, find_files, recognizes_in
from chatproc.importers.values import milliseconds
from chatproc.importers.wechat_words import wechat_mentions
from chatproc.importers.wechat_xml import readable_app, readable_attribute, readable_notice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chatproc.importers.base import Reading, Source

_LOOKS_FOR = "*.csv with `localId`, `StrContent` or with `消息ID`, `内容` in its first line"
_FULL = ("localId", "TalkerId", "Type", "SubType", "IsSender", "CreateTime", "StrContent", "StrTime")
_ONE_CHAT = ("消息ID", "类型", "发送人", "时间", "内容")
_CHATLOG = ("Time", "SenderName", "Sender", "TalkerName", "Talker", "Content")
_FIELD = re.compile(r'"((?:[^"]|"")*+)"([^,]*)|([^,]*)')
_MOST_LINES = 5000
_SERVER_ID = re.compile(r"\d{12,20}")
_ID = re.compile(r"(?!0+$)\d{1,20}")
_FOLDER = re.compile(r"(.*)\((wxid_\w+|gh_\w+|\d+@chatroom)\)")
_ONE_CHAT_STEM = "_utf8"
_AGAIN = re.compile(r"(?:_utf8)?(?:\s?\(\d{1,3}\))?$")
_RECALL = re.compile(
    r"(?P<name>.{0,100}?)(?:撤回了?(?:一条|一則)?(?:消息|訊息)|recalled a message)[。.]?", re.DOTALL
)
_RECALLED_BY_SELF = frozenset({"你", "您", "You"})
_SELF = "我"
_EARLIEST = 2000
# As these programs write times, and as spreadsheets write them again.
_WRITTEN = re.compile(r"\s*(\d{4})[-/](\d{1,2})[-/](\d{1,2})[ T](\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d*)?\s*$")
# What MemoTrace calls a kind of message, by a part of it.
_NOTICES = ("系统", "撤回", "拍一拍")
_FILES = ("图片", "语音", "视频", "文件")
# WeChat's numbers of kinds.
_TEXT, _CARD, _PLACE, _APP = 1, 42, 48, 49
_WORDS = {3: "图片", 34: "语音", 43: "视频", 62: "视频", 47: "动画表情", 50: "通话"}
_WORDS_WITH_FILE = frozenset({3, 34, 43, 62})
_SYSTEM = frozenset({10000, 10002})
# What chatlog writes in place of a file.
_CHATLOG_FILE = re.compile(r"!?\[(?:图片|语音|视频|文件(?:\|(?P<name>[^\]\n]+))?)\](?:\([^)\n]*\))?")
_CHATLOG_SYSTEM = "系统消息"


@dataclass(frozen=True, slots=True)
class Row:
    """A row: the number of its first line, its text, its fields, and the names of the table's columns."""

    number: int
    text: str
    fields: list[str]
    columns: list[str]

    def __getitem__(self, name: str) -> str:
        """The field of a column without spaces around it, `""` where the row ends before it."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """The field of a column as it is."""
        place = self.columns.index(name) if name in self.columns else len(self.fields)
        return self.fields[place] if place < len(self.fields) else ""


def _columns(file: Path) -> list[str]:
    """The names of a table's columns: its first line."""
    return [name.strip() for name in _fields(next(iter(first_lines(file)), ""))]


def _is_memotrace(file: Path) -> bool:
    columns = set(_columns(file))
    return columns.issuperset(_FULL) or columns.issuperset(_ONE_CHAT)


def is_chatlog_csv(file: Path) -> bool:
    """Whether a file is the CSV of chatlog's API."""
    return file.is_file() and _columns(file)[: len(_CHATLOG)] == list(_CHATLOG)


def _fields(record: str) -> list[str]:
    """The fields of one row."""
    fields, at = [], 0
    while at <= len(record):
        found = _FIELD.match(record, at)
        if found is None:  # it matches the empty text
            break
        quoted, tail, plain = found.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"') + tail)
        at = found.end() + 1
    return fields


def _records(source: Source, reading: Reading, widths: range) -> Iterator[tuple[int, str] | None]:
    """The rows with the numbers of their first lines; `None`, and a line listed, where one does not close.

    A quotation mark that is lost or too much makes one row of parts of two: where a row of several lines has
    not as many fields as a row has, its first line alone is given up.
    """
    lines = read_lines(source, reading, listed=True)
    waiting: deque[tuple[int, str]] = deque()
    while True:
        length = _record_length(waiting, lines)
        if not waiting:
            return
        text = "\n".join(line for _, line in islice(waiting, length))
        if length == 1 or (length and len(_fields(text)) in widths):
            yield waiting[0][0], text
            for _ in range(length):
                waiting.popleft()
        else:
            number, line = waiting.popleft()
            reading.not_understand(source.name, number, line, "a quotation mark in it is not closed")
            yield None


def _record_length(waiting: deque[tuple[int, str]], lines: Iterator[tuple[int, str]]) -> int:
    """How many of the waiting lines make up the next row; 0 where its quotation marks do not close."""
    is_open, chars = False, 0
    for at in range(_MOST_LINES):
        if at == len(waiting):
            following = next(lines, None)
            if following is None:
                return 0
            waiting.append(following)
        line = waiting[at][1]
        chars += len(line)
        is_open ^= bool(line.count('"') % 2)
        if not is_open:
            return at + 1
        if chars > MAX_MESSAGE_CHARS:
            return 0
    return 0


class _Table:
    """A table while its rows pass by: what they share, whatever they mean."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self.source = source
        self.reading = reading
        self.stretches: dict[str, Stretch] = {}

    def rows(self, columns: list[str], required: tuple[str, ...]) -> Iterator[Row]:
        """Each row of a table; those without the required columns are listed."""
        fewest = 1 + max(map(columns.index, required))
        for record in _records(self.source, self.reading, range(fewest, len(columns) + 2)):
            if record is None:
                self.lose()
                continue
            number, text = record
            if number == 1 or not text.strip():
                continue
            row = Row(number, text, _fields(text), columns)
            if len(row.fields) < fewest:
                self.refuse(row, "fewer fields than columns")
            else:
                yield row

    def lose(self) -> None:
        """A row was not understood: nobody is known to follow those before it."""
        for stretch in self.stretches.values():
            stretch.lose()

    def refuse(self, row: Row, reason: str) -> None:
        """List a row that gave no message."""
        self.reading.not_understand(self.source.name, row.number, row.text, reason)
        self.lose()

    def message(self, conversation: Conversation, row: Row, sent_at: int) -> Message:
        """A message of a row, still empty."""
        return Message(
            conversation=conversation,
            key="",
            sent_at=sent_at,
            line=row.number,
            file=self.source.name,
            text="",
        )

    def put(self, message: Message) -> Message:
        """The message in its place."""
        if message.kind == "message":
            message.mentions = wechat_mentions(message.text)
        name = message.conversation.id
        if name not in self.stretches:
            self.stretches[name] = Stretch(unbroken=self.reading.complete)
        return self.stretches[name].put(message)

    def add_file(self, message: Message, name: str | None = None) -> None:
        """A file that such tables never hold."""
        message.attachments = [
            self.reading.attachment(self.source, 1, places=(), name=name, absent="not_exported")
        ]

    def notice(self, message: Message, text: str) -> None:
        """A notice, or that a message was taken back."""
        recall = _RECALL.fullmatch(text)
        message.sender_id = None
        message.sender_name = None
        if recall is None:
            message.kind, message.role, message.text = "system", "system", text
            return
        message.state, message.revision = "recalled", 1
        message.source["notice"] = text
        name = recall["name"].strip().strip('"“”「」')
        if name in _RECALLED_BY_SELF:
            message.role = "self"
        else:
            message.role, message.sender_name = "user", name or None

    def moment(self, number: str, written: str) -> int | None:
        """Milliseconds of a time as a number of unknown unit, else of one as it is written."""
        counted = milliseconds(number)
        if counted is not None:
            return counted
        found = _WRITTEN.match(written)
        if found is None:
            return None
        year, month, date, hour, minute, second = found.groups()
        day = day_of((year, month, date), "ymd", _EARLIEST)
        at = second_of_day(int(hour), int(minute), int(second or 0), "")
        return None if day is None or at is None else self.reading.clock_time(day, at)


def _find(path: Path) -> list[Source]:
    return find_files(path, ("*.csv",), _is_memotrace, _LOOKS_FOR)


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    columns = _columns(source.files[0])
    if set(columns).issuperset(_FULL):
        yield from _AllChats(source, reading).messages(columns)
    elif set(columns).issuperset(_ONE_CHAT):
        yield from _OneChat(source, reading).messages(columns)
    else:
        raise ConfigError(f"no table of MemoTrace: looked for {_LOOKS_FOR}", where=str(source.files[0]))


def _title(file: Path) -> tuple[str, str | None]:
    """A chat's id and name by the folder, which may hold the id in brackets, and the name of its file."""
    stem = _AGAIN.sub("", file.stem) or file.stem
    folder = _FOLDER.fullmatch(file.resolve().parent.name)
    if folder is not None:
        return folder[2], folder[1].strip() or stem
    return stem, stem


def _kind(identity: str) -> Literal["group", "unknown"]:
    return "group" if identity.endswith("@chatroom") else "unknown"


class _AllChats(_Table):
    """MemoTrace's table with WeChat's own columns and numbers.

    Old versions write a column more than their first line names: the server's id of a message, before the
    names; the names are then those of the chat and not of the sender.
    """

    def messages(self, columns: list[str]) -> Iterator[Message]:
        """All messages of the file."""
        names = columns.index("StrTime") + 1
        for row in self.rows(columns, _FULL):
            sent_at = self.moment(row["CreateTime"], row["StrTime"])
            if sent_at is None or sent_at <= 0:
                self.refuse(row, "no message with a time")
                continue
            rest = [field.strip() for field in row.fields[names:]]
            server_id = rest[0] if rest and _SERVER_ID.fullmatch(rest[0]) else ""
            message = self.message(self.conversation(row, rest[1:] if server_id else []), row, sent_at)
            self.add_identity(message, row, server_id)
            self.add_sender(message, row, rest, has_server_id=bool(server_id))
            self.add_content(message, row)
            yield self.put(message)

    def conversation(self, row: Row, chat_names: list[str]) -> Conversation:
        """The chat of a row: that of the file, or by its name, or by its number in the database."""
        file = self.source.files[0]
        name = next(filter(None, chat_names[:2]), None)
        identity, title = _title(file)
        if not chat_names and (identity != title or file.stem.endswith(_ONE_CHAT_STEM)):
            return Conversation("wechat", self.reading.account, identity, title, _kind(identity))
        talker = row["TalkerId"]
        return Conversation("wechat", self.reading.account, name or talker or identity, name, "unknown")

    def add_identity(self, message: Message, row: Row, server_id: str) -> None:
        """The key by the server's id, else by the number in the database: unique together with the time."""
        local_id = row["localId"]
        if server_id:
            message.message_id = server_id
            message.key = message_key(message.conversation, server_id)
        elif _ID.fullmatch(local_id):
            message.message_id = local_id
            message.key = message_key(message.conversation, f"{local_id}@{message.sent_at // 1000}")

    def add_sender(self, message: Message, row: Row, rest: list[str], *, has_server_id: bool) -> None:
        """Who wrote it, as far as the row says."""
        is_self = row["IsSender"] in ("1", "True")
        remark, nickname, sender = (*rest[1 if has_server_id else 0 :], "", "", "")[:3]
        if not has_server_id:
            message.sender_name = remark or nickname or None
            message.sender_id = sender or None
        elif not is_self:
            message.sender_name = sender or remark or nickname or None
        if is_self:
            message.role = "self"
        elif message.sender_id is None and message.sender_name is None:
            message.role = "unknown"

    def add_content(self, message: Message, row: Row) -> None:
        """What a row says, by WeChat's number of its kind."""
        content = row.raw("StrContent")
        kind, sub_kind = (_number(row[name]) for name in ("Type", "SubType"))
        message.source = {"type": kind, "subType": sub_kind}
        if kind == _TEXT:
            message.text = content
        elif kind in _SYSTEM:
            self.notice(message, readable_notice(content))
        elif kind in _WORDS:
            message.text = f"[{_WORDS[kind]}]"
            if kind in _WORDS_WITH_FILE:
                self.add_file(message)
        elif kind in (_CARD, _PLACE):
            word, attribute = ("名片", "nickname") if kind == _CARD else ("位置", "label")
            message.text = f"[{word}] {readable_attribute(content, attribute)}".rstrip()
        elif kind == _APP:
            app = readable_app(content, sub_kind)
            message.text = app.text
            if app.reply_to and message.message_id and _SERVER_ID.fullmatch(message.message_id):
                message.reply_to = message_key(message.conversation, app.reply_to)
            if app.is_file:
                self.add_file(message, app.title)
            if not app.is_whole:
                self.list_part(row, "the export does not hold the content of this message")
        else:
            message.text = content or f"[{kind if kind is not None else row['Type']}]"
            self.list_part(row, "an unknown type of message")

    def list_part(self, row: Row, reason: str) -> None:
        """List a row that gave not its whole message."""
        self.reading.not_understand(self.source.name, row.number, row.text, reason)


def _number(written: str) -> int | None:
    return int(written) if re.fullmatch(r"-?\d{1,12}", written) else None


class _OneChat(_Table):
    """MemoTrace's table of one chat, in words."""

    def messages(self, columns: list[str]) -> Iterator[Message]:
        """All messages of the file."""
        identity, name = _title(self.source.files[0])
        conversation = Conversation("wechat", self.reading.account, identity, name, _kind(identity))
        for row in self.rows(columns, _ONE_CHAT):
            sent_at = self.moment("", row["时间"])
            if sent_at is None or sent_at <= 0:
                self.refuse(row, "no message with a time")
                continue
            message = self.message(conversation, row, sent_at)
            if _ID.fullmatch(row["消息ID"]):
                message.message_id = row["消息ID"]
                message.key = message_key(conversation, message.message_id)
            self.add_sender(message, row["发送人"])
            self.add_content(message, row["类型"], row.raw("内容"))
            yield self.put(message)

    def add_sender(self, message: Message, name: str) -> None:
        """Who wrote it: a name, or the word for the account itself."""
        message.sender_name = name or None
        if name == _SELF:
            message.role, message.sender_name = "self", None
        elif not name:
            message.role = "unknown"

    def add_content(self, message: Message, kind: str, content: str) -> None:
        """What a row says, by MemoTrace's word for its kind."""
        message.source = {"type": kind}
        if any(part in kind for part in _NOTICES):
            self.notice(message, content)
            return
        message.text = content or (f"[{kind}]" if kind else "")
        if any(part in kind for part in _FILES) and "视频号" not in kind:
            self.add_file(message)


def read_chatlog_csv(source: Source, reading: Reading) -> Iterator[Message]:
    """The messages of the CSV of chatlog's API, which has no ids: keys are fingerprints."""
    table = _Table(source, reading)
    for row in table.rows(_columns(source.files[0]), _CHATLOG):
        sent_at = table.moment("", row["Time"])
        talker = row["Talker"]
        if sent_at is None or sent_at <= 0 or not talker:
            table.refuse(row, "no message with a talker and a time")
            continue
        kind: Literal["group", "private"] = "group" if talker.endswith("@chatroom") else "private"
        conversation = Conversation("wechat", reading.account, talker, row["TalkerName"] or None, kind)
        message = table.message(conversation, row, sent_at)
        message.sender_id = row["Sender"] or None
        message.sender_name = row["SenderName"] or None
        if message.sender_id == _CHATLOG_SYSTEM:
            message.sender_id = None
            table.notice(message, row.raw("Content"))
        else:
            message.text = row.raw("Content")
            held = _CHATLOG_FILE.match(message.text)
            if held is not None:
                table.add_file(message, held["name"])
            if message.sender_id is not None and message.sender_id == reading.account:
                message.role = "self"
            elif message.sender_id is None and message.sender_name is None:
                message.role = "unknown"
        yield table.put(message)


MEMOTRACE = Format("memotrace", _find, _read, _LOOKS_FOR, recognizes_in(("*.csv",), _is_memotrace))
