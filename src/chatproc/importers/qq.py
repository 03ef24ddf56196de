"""QQ Chat Exporter's JSON (one file, or a manifest with chunks of JSON lines) as messages.

The export may be filtered by time or sender, so only a sequence number that follows on directly proves a
neighbour. What depends on the rest of the export (quoted text of replies, display names) never enters a
message's text: two overlapping exports must tell the same. Never reads QQ's own database.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message, Source, beginning
from chatproc.importers.keys import message_key
from chatproc.importers.pieces import MAX_PIECE_BYTES, Piece, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from chatproc.importers.base import Reading

_MANIFEST = "manifest.json"
_MESSAGE = "messages.[]"
_CHAT = "chatInfo"
_FOLDERS = {"image": "images", "video": "videos", "audio": "audios", "file": "files"}
_UNNAMED = frozenset({"", "0", "未知", "未知用户"})
_MAX_FORWARD_DEPTH = 8
_MAX_ID = (1 << 64) - 1
_MAX_SEQ = (1 << 53) - 1

_Type = Literal["group", "private", "channel", "thread", "mailbox", "unknown"]
_TYPES: dict[str, _Type] = {"group": "group", "private": "private", "temp": "private"}


def _find(path: Path) -> list[Source]:
    if path.is_file() and path.name == _MANIFEST:
        path = path.parent
    if path.is_file():
        return [Source(path.name, path.parent, (path,))]
    if (path / _MANIFEST).is_file():
        return [Source(path.resolve().name, path, (path / _MANIFEST, *_chunks(path)))]
    found = [Source(file.name, path, (file,)) for file in sorted(path.glob("*.json")) if _is_export(file)]
    if not found:
        raise ConfigError(
            f"no QQ Chat Exporter export here: looked for *.json and {_MANIFEST}",
            where=str(path),
            hint="export as JSON, or as chunked JSONL, and give the file or the folder",
        )
    return found


def _is_export(file: Path) -> bool:
    """Whether a file in a folder is worth a try: the chat's description stands near the beginning."""
    return b'"chatInfo"' in beginning(file)


def _chunks(folder: Path) -> list[Path]:
    """The chunk files in the manifest's order; a path that leads out of the export is none of it."""
    inside = folder.resolve()
    names = [str(entry.get("relativePath") or "") for entry in _listed_chunks(folder)]
    listed = dict.fromkeys(folder / name for name in names if name)
    files = list(listed) or sorted(folder.glob("chunks/*.jsonl"))
    return [file for file in files if file.is_file() and file.resolve().is_relative_to(inside)]


def _listed_chunks(folder: Path) -> list[dict[str, Any]]:
    try:
        manifest, _ = loads((folder / _MANIFEST).read_bytes())
    except ValueError as error:
        raise ConfigError("the manifest is no JSON object", where=str(folder / _MANIFEST)) from error
    chunked = manifest.get("chunked")
    listed = chunked.get("chunks") if isinstance(chunked, dict) else None
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    chat = _outline(source, reading)
    for file, piece in _walk(source, reading, outline=False):
        value = reading.object_of(piece, file)
        if value is None:
            chat.previous = None
            continue
        message = chat.message(value, piece.line, file)
        if message is not None:
            yield message


def _outline(source: Source, reading: Reading) -> _Chat:
    """The description of the chat and every sequence number in it: a walk of its own before the messages."""
    info: dict[str, Any] | None = None
    order = Order()
    for _file, piece in _walk(source, reading, outline=True):
        try:
            value, _ = loads(piece.text)
        except ValueError:
            continue  # listed when the messages are read
        if piece.path == _CHAT:
            info = value
        else:
            order.add(_integer(value.get("seq"), _MAX_SEQ), _integer(value.get("id"), _MAX_ID))
    if info is None:
        raise ConfigError(
            "not a QQ Chat Exporter export: looked for `chatInfo`",
            where=str(source.files[0]),
        )
    _list_missing_chunks(source, reading)
    order.seal()
    return _Chat(info, order, source, reading)


def _list_missing_chunks(source: Source, reading: Reading) -> None:
    if source.files[0].name != _MANIFEST:
        return
    for entry in _listed_chunks(source.root):
        name = str(entry.get("relativePath") or entry.get("fileName") or "")
        if source.root / name not in source.files:
            reading.not_understand(_MANIFEST, 0, name, "a chunk that the manifest names is not there")


def _walk(source: Source, reading: Reading, *, outline: bool) -> Iterator[tuple[str, Piece]]:
    """The pieces of all files, with the name of the file each stands in."""
    objects = (_CHAT, _MESSAGE) if outline else (_MESSAGE,)
    for path in source.files:
        name = path.relative_to(source.root).as_posix()
        if path.suffix == ".jsonl":
            found = _lines(path, reading)
        else:
            found = reading.walk(path, name, objects=objects, outline=outline)
        for piece in found:
            yield name, piece


def _lines(path: Path, reading: Reading) -> Iterator[Piece]:
    """Each line of a chunk is a message."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_PIECE_BYTES):
            number += 1
            reading.tick(len(line))
            if line.strip():
                yield Piece(_MESSAGE, "object", number, line)


class Order:
    """The sequence numbers of a conversation, compact: two numbers of eight bytes a message."""

    def __init__(self) -> None:
        """Start with none."""
        self._seqs = array("Q")
        self._ids = array("Q")

    def add(self, seq: int | None, number: int | None) -> None:
        """Note one message; one without a sequence number has no place."""
        if seq is not None and number is not None:
            self._seqs.append(seq)
            self._ids.append(number)

    def seal(self) -> None:
        """Sort, after the last `add`."""
        if any(later < earlier for earlier, later in pairwise(self._seqs)):
            by_seq = sorted(range(len(self._seqs)), key=self._seqs.__getitem__)
            self._seqs = array("Q", (self._seqs[place] for place in by_seq))
            self._ids = array("Q", (self._ids[place] for place in by_seq))

    def just_before(self, seq: int) -> int | None:
        """The id of the one message numbered `seq - 1`, where `seq` itself is one message too."""
        return self._only(seq - 1) if self._only(seq) is not None else None

    def nearest_before(self, seq: int, number: int) -> int | None:
        """The id of the message that stands before (`seq`, `number`), whatever the distance."""
        place = bisect_left(self._seqs, seq)
        end = bisect_right(self._seqs, seq)
        while place < end and self._ids[place] != number:
            place += 1
        return self._ids[place - 1] if 0 < place <= len(self._ids) else None

    def _only(self, seq: int) -> int | None:
        begin, end = bisect_left(self._seqs, seq), bisect_right(self._seqs, seq)
        ids = set(self._ids[begin:end])
        return ids.pop() if len(ids) == 1 else None


class _Chat:
    """The chat of an export while its messages pass by."""

    def __init__(self, info: dict[str, Any], order: Order, source: Source, reading: Reading) -> None:
        own = _identity(info.get("selfUin"))
        name = _identity(info.get("name"))
        self.account = reading.account or own or ""
        self.own = {
            identity for identity in (own, _identity(info.get("selfUid")), reading.account) if identity
        }
        self.conversation = Conversation(
            platform="qq",
            account=self.account,
            id=_identity(info.get("peerUid")) or _identity(info.get("peerUin")) or name or source.name,
            name=name,
            type=_TYPES.get(str(info.get("type")), "unknown"),
        )
        self.order = order
        self.source = source
        self.reading = reading
        # The message before in the file: its sequence number, time and id.
        self.previous: tuple[int, int, int] | None = None

    def message(self, value: dict[str, Any], line: int, file: str) -> Message | None:
        """The message in an object; `None`, and the object listed, without an id or a time."""
        number, sent_at = _identity(value.get("id")), self._time(value)
        if number is None or sent_at is None or sent_at < 0:
            self.reading.not_understand(file, line, value, "no message with an id and a time")
            self.previous = None
            return None
        message = Message(
            conversation=self.conversation,
            key=message_key(self.conversation, number),
            sent_at=sent_at,
            line=line,
            file=file,
            text="",
            message_id=number,
            source={"type": value.get("type"), "seq": value.get("seq")},
        )
        self._add_sender(message, _members(value.get("sender")))
        if value.get("system") is True:
            message.kind, message.role = "system", "system"
        self._add_place(message, value)
        if value.get("recalled") is True:
            # The export may still hold the text; its writer has withdrawn it.
            message.state, message.revision = "recalled", 1
        else:
            self._add_content(message, _members(value.get("content")))
        if value.get("type") == "error":
            message.kind = "system"
            self.reading.not_understand(file, line, value, "the exporter could not read this message")
        return message

    def _time(self, value: dict[str, Any]) -> int | None:
        milliseconds = _integer(value.get("timestamp"), _MAX_SEQ)
        if milliseconds:
            return milliseconds
        written = value.get("time")
        return self.reading.local_time(written) if isinstance(written, str) else None

    def _add_sender(self, message: Message, sender: dict[str, Any]) -> None:
        uin, uid = _identity(sender.get("uin")), _identity(sender.get("uid"))
        message.sender_id = uin or uid
        name = _identity(sender.get("name"))
        # Where the exporter knew no name it wrote the number.
        message.sender_name = None if name in (uin, uid) else name
        if {uin, uid} & self.own:
            message.role = "self"
        elif message.sender_id is None and message.sender_name is None:
            message.role = "unknown"
        names = {
            member: sender[member]
            for member in ("uid", "nickname", "groupCard", "remark")
            if sender.get(member)
        }
        if names:
            message.source["sender"] = names

    def _add_place(self, message: Message, value: dict[str, Any]) -> None:
        seq, number = _integer(value.get("seq"), _MAX_SEQ), _integer(value.get("id"), _MAX_ID)
        before, self.previous = self.previous, None
        if not seq or number is None:
            return
        self.previous = (seq, message.sent_at, number)
        message.index = seq
        neighbour = self._neighbour(seq, message.sent_at, number, before)
        if neighbour is not None and neighbour != number:
            message.predecessor = message_key(self.conversation, str(neighbour))

    def _neighbour(
        self, seq: int, sent_at: int, number: int, before: tuple[int, int, int] | None
    ) -> int | None:
        if self.conversation.type == "group":
            # The server counts a group's messages: one more is the very next.
            return (
                self.order.nearest_before(seq, number)
                if self.reading.complete
                else self.order.just_before(seq)
            )
        if before is None:
            return None
        # Elsewhere old clients counted for themselves: the numbers must follow in the file's order as well.
        before_seq, before_sent_at, before_number = before
        proven = seq == before_seq + 1 and sent_at >= before_sent_at
        return before_number if proven or self.reading.complete else None

    def _add_content(self, message: Message, content: dict[str, Any]) -> None:
        elements = _objects(content.get("elements"))
        texts = [self._text_of(element, message) for element in elements]
        message.text = "".join(texts) if elements else _string(content.get("text"))
        message.mentions = _mentions(elements) or _listed_mentions(_objects(content.get("mentions")))
        message.reply_to = self._reply_to(elements)
        resources = _objects(content.get("resources"))
        media = [element for element in elements if str(element.get("type")) in _FOLDERS]
        if not media:
            # Some versions list a file here alone.
            media, resources = [{"type": item.get("type"), "data": item} for item in resources], []
        message.attachments = [
            self._attachment(place, element, resources) for place, element in enumerate(media, 1)
        ]

    def _text_of(self, element: dict[str, Any], message: Message) -> str:
        text = _element_text(element, depth=0)
        if text is None:
            text = f"[{element.get('type')}] {_readable(_members(element.get('data')))}".rstrip()
            self.reading.not_understand(message.file, message.line, element, "unknown kind of content")
        return text

    def _reply_to(self, elements: list[dict[str, Any]]) -> str | None:
        for element in elements:
            if element.get("type") == "reply":
                data = _members(element.get("data"))
                target = _identity(data.get("referencedMessageId")) or _identity(data.get("messageId"))
                return message_key(self.conversation, target) if target else None
        return None

    def _attachment(
        self, place: int, element: dict[str, Any], resources: list[dict[str, Any]]
    ) -> dict[str, Any]:
        kind, data = element.get("type"), _members(element.get("data"))
        name = _identity(data.get("filename")) or _identity(data.get("fileName"))
        same = [item for item in resources if (item.get("type"), item.get("filename")) == (kind, name)]
        folder = _FOLDERS.get(str(kind), "files")
        places = [found for holder in (data, *same) for found in _places(holder, folder)]
        return self.reading.attachment(
            self.source,
            place,
            places=places,
            name=name,
            size=_integer(data.get("size"), _MAX_SEQ),
            absent="missing" if places else "not_exported",
        )


def _places(holder: dict[str, Any], folder: str) -> list[str]:
    """Where a file may lie in the export's folder: the exporter writes its path in several ways."""
    places = []
    local = _string(holder.get("localPath")).replace("\\", "/").lstrip("/")
    if local:
        name = local.rsplit("/", 1)[-1]
        places += [local, f"resources/{local}", f"resources/{folder}/{name}"]
    url = _string(holder.get("url"))
    if url.startswith("resources/"):
        places.append(url)
    return places


def _element_text(element: dict[str, Any], *, depth: int) -> str | None:
    """The words of one element as QQ shows it; `None` for a kind that is not known."""
    words = _WORDS.get(str(element.get("type")))
    return words(_members(element.get("data")), depth) if words is not None else None


def _said(data: dict[str, Any], _depth: int) -> str:
    return _string(data.get("text")) or _string(data.get("summary"))


def _face(data: dict[str, Any], _depth: int) -> str:
    return f"[{(_string(data.get('name')) or _string(data.get('id'))).strip('[]/')}]"


def _at(data: dict[str, Any], _depth: int) -> str:
    return "@" + _string(data.get("name")).removeprefix("@")


def _forward(data: dict[str, Any], depth: int) -> str:
    return "\n".join(_forward_lines(data, depth))


def _placeholder(word: str) -> Callable[[dict[str, Any], int], str]:
    return lambda _data, _depth: f"[{word}]"


def _card(word: str) -> Callable[[dict[str, Any], int], str]:
    return lambda data, _depth: f"[{word}] {_readable(data)}".rstrip()


def _summary(word: str) -> Callable[[dict[str, Any], int], str]:
    return lambda data, _depth: f"[{_string(data.get('summary')).strip('[]') or word}]"


def _readable(data: dict[str, Any]) -> str:
    """The words in an element's data, each once, one a line."""
    names = ("title", "name", "text", "summary", "msg", "description", "address", "url")
    return "\n".join(dict.fromkeys(filter(None, (_string(data.get(name)) for name in names))))


def _forward_lines(data: dict[str, Any], depth: int) -> list[str]:
    """A merged forward: its title, then one line a message with its sender and its own time."""
    indent = "  " * depth
    lines = [f"{indent}[聊天记录] {_string(data.get('title'))}".rstrip()]
    inner = _objects(data.get("messages"))
    if not inner or depth >= _MAX_FORWARD_DEPTH:
        preview = data.get("preview")
        said = [line for line in preview if isinstance(line, str)] if isinstance(preview, list) else []
        summary = _string(data.get("summary"))
        return lines + [f"{indent}{line}" for line in said or [summary] if line]
    for message in inner:
        sender = _members(message.get("sender"))
        name = _string(message.get("senderName")) or _string(sender.get("name")) or _string(sender.get("uin"))
        time = _string(message.get("time"))
        head = f"{name} ({time})" if time else name
        lines.append(f"{indent}{head}: {_inner_text(message, depth + 1).lstrip()}")
    return lines


def _inner_text(message: dict[str, Any], depth: int) -> str:
    content = _members(message.get("content"))
    elements = _objects(content.get("elements"))
    texts = [_element_text(element, depth=depth) for element in elements]
    if elements and None not in texts:
        return "".join(text or "" for text in texts)
    return _string(content.get("text")) or _string(message.get("text"))


def _mentions(elements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [_mention(_members(element.get("data"))) for element in elements if element.get("type") == "at"]
    return [mention for mention in found if mention is not None]


def _listed_mentions(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [_mention({**mention, "atType": 1 if mention.get("type") == "all" else 2}) for mention in listed]
    return [mention for mention in found if mention is not None]


def _mention(data: dict[str, Any]) -> dict[str, Any] | None:
    if data.get("uid") == "all" or data.get("atType") == 1:
        return {"all": True}
    identity = _identity(data.get("uin")) or _identity(data.get("uid"))
    name = _identity(data.get("name"))
    return {"id": identity, "name": name} if identity or name else None


def _identity(value: object) -> str | None:
    """An id or a name as text; `None` for the fillers that the exporter writes where it knows none."""
    text = str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    return None if text in _UNNAMED else text


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _members(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _integer(value: object, largest: int) -> int | None:
    """A whole number of at least 0, written as a number or as digits."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        number = int(value)
    except ValueError:
        return None
    return number if 0 <= number <= largest else None


# How each kind of element reads. A quoted message is linked, not repeated; files stand beside the text.
_WORDS: dict[str, Callable[[dict[str, Any], int], str]] = {
    "text": _said,
    "system": _said,
    "at": _at,
    "face": _face,
    "market_face": _face,
    "reply": lambda _data, _depth: "",
    "forward": _forward,
    "markdown": lambda data, _depth: _string(data.get("content")),
    "image": _placeholder("图片"),
    "video": _placeholder("视频"),
    "audio": _placeholder("语音"),
    "file": _placeholder("文件"),
    "json": _card("卡片"),
    "location": _card("位置"),
    "calendar": _card("日历"),
    "long_message": _card("长消息"),
    "av_record": _summary("通话"),
    "wallet": _summary("红包"),
    "live_gift": _summary("礼物"),
    "giphy": _summary("动图"),
    "inline_keyboard": _summary("按钮"),
    "action_bar": _summary("按钮"),
    "yolo_game_result": _summary("游戏"),
    "face_bubble": _summary("表情"),
    "tofu_record": _summary("互动"),
    "task_top_msg": _summary("置顶"),
    "recommended_msg": _summary("推荐"),
}


def _recognizes(path: Path) -> bool:
    if path.is_dir():
        return any(map(_recognizes, (path / _MANIFEST, *sorted(path.glob("*.json")))))
    return _is_export(path)


QCE = Format("qq-qce", _find, _read, "*.json with `metadata` and `chatInfo`, or manifest.json", _recognizes)
