"""Telegram Desktop's `result.json`, of one chat or of the whole account, as messages.

Such an export holds whole conversations (or one unbroken span of them), so neighbours are linked. A name or
a count that changes with the day of the export (votes, reactions, members' names) never enters a message's
text: two overlapping exports must tell the same. Never reads Telegram's own storage.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message, Source, beginning
from chatproc.importers.keys import Occurrences, message_key
from chatproc.importers.pieces import scalars

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chatproc.importers.base import Reading
    from chatproc.importers.pieces import Piece

# The chats of an export, each with its list of messages below it.
_CHATS = ("", "chats.list.[]", "left_chats.list.[]")
_MESSAGES = {f"{chat}.messages.[]".lstrip("."): chat for chat in _CHATS}
_MARK = re.compile(rb'"date_unixtime"|"type":\s*"(?:message|service)"')
_OWNER = "personal_information"

_Type = Literal["group", "private", "channel", "thread", "mailbox", "unknown"]
_TYPES: dict[str, _Type] = {
    "saved_messages": "private",
    "personal_chat": "private",
    "bot_chat": "private",
    "private_group": "group",
    "private_supergroup": "group",
    "public_supergroup": "group",
    "private_channel": "channel",
    "public_channel": "channel",
}

# Chats whose messages have the same numbers for everybody; elsewhere each account counts for itself.
_GLOBAL = frozenset({"private_supergroup", "public_supergroup", "private_channel", "public_channel"})

# Members of a message that are read below or say nothing that a reader of the chat could see in words.
_KNOWN = frozenset(
    {
        "id",
        "type",
        "date",
        "date_unixtime",
        "edited",
        "edited_unixtime",
        "from",
        "from_id",
        "actor",
        "actor_id",
        "author",
        "action",
        "title",
        "text",
        "text_entities",
        "reply_to_message_id",
        "reply_to_peer_id",
        "forwarded_from",
        "forwarded_from_id",
        "saved_from",
        "via_bot",
        "photo",
        "photo_file_size",
        "file",
        "file_name",
        "file_size",
        "mime_type",
        "media_type",
        "thumbnail",
        "thumbnail_file_size",
        "width",
        "height",
        "duration_seconds",
        "sticker_emoji",
        "performer",
        "reactions",
        "media_spoiler",
        "self_destruct_period_seconds",
        "live_location_period_seconds",
        "contact_information",
        "contact_vcard",
        "contact_vcard_file_size",
        "location_information",
        "place_name",
        "address",
        "poll",
        "game_title",
        "game_description",
        "game_link",
        "invoice_information",
        "todo_list",
        "inline_bot_buttons",
    }
)
# What a service message says in words; names and the rest stay in its provenance.
_SERVICE_WORDS = (
    "title",
    "new_title",
    "information_text",
    "message_id",
    "game_message_id",
    "invoice_message_id",
    "discard_reason",
    "duration_seconds",
    "duration",
    "score",
    "amount",
    "currency",
    "period",
    "schedule_date",
    "emoticon",
)
_PROVENANCE = ("author", "forwarded_from", "saved_from", "via_bot", "reply_to_peer_id", "sticker_emoji")
_HEAD = frozenset({"id", "type", "date", "date_unixtime", "actor", "actor_id", "text", "text_entities"})


def _find(path: Path) -> list[Source]:
    file = path / "result.json" if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(
            "no Telegram export here",
            where=str(path),
            hint="export from Telegram Desktop as machine-readable JSON and give its result.json",
        )
    return [Source(file.name, file.parent, (file,))]


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    owner, headers = _outline(source, reading)
    chats = {chat: iter(headers[chat]) for chat in _CHATS}
    current: dict[str, _Chat] = {}
    for piece in _walk(source, reading, outline=False):
        if piece.kind == "open":
            conversation = _conversation(next(chats[piece.path], {}), owner, source, reading)
            current[piece.path] = _Chat(conversation, owner, source, reading)
        elif piece.path in _MESSAGES:
            chat = current[_MESSAGES[piece.path]]
            value = reading.object_of(piece, source.name)
            if value is None:
                chat.previous = None  # who stood here is unknown, so nobody follows them
            else:
                yield from chat.messages(value, piece.line)


def _walk(source: Source, reading: Reading, *, outline: bool) -> Iterator[Piece]:
    return reading.walk(
        source.files[0], source.name, objects={*_MESSAGES, _OWNER}, watched=_CHATS, outline=outline
    )


def _outline(source: Source, reading: Reading) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """The owner and the description of every chat: a walk of its own, for they may follow the messages."""
    owner = reading.account
    headers: dict[str, list[dict[str, Any]]] = {chat: [] for chat in _CHATS}
    found = False
    for piece in _walk(source, reading, outline=True):
        if piece.kind == "open":
            headers[piece.path].append({})
        elif piece.kind == "scalars":
            _describe(headers[piece.path][-1], piece, source, reading)
        elif piece.path == _OWNER:
            number = (reading.object_of(piece, source.name) or {}).get("user_id")
            owner = owner or (f"user{number}" if number else "")
        else:
            found = True
    if not found and not headers["chats.list.[]"] and "type" not in (headers[""] or [{}])[0]:
        raise ConfigError(
            "not a Telegram export: looked for `messages` or `chats.list`",
            where=str(source.files[0]),
        )
    return owner, headers


def _describe(header: dict[str, Any], piece: Piece, source: Source, reading: Reading) -> None:
    try:
        header.update(scalars(piece.text))
    except ValueError:
        reading.not_understand(source.name, piece.line, piece.text, "damaged JSON in a chat's description")


def _conversation(header: dict[str, Any], owner: str, source: Source, reading: Reading) -> Conversation:
    """The chat; whose account this is, only exports of a whole one say.

    Where that makes no difference it is left out: the chat is the same in an export of it alone.
    """
    name = _text_or_none(header.get("name"))
    return Conversation(
        platform="telegram",
        account=reading.account if header.get("type") in _GLOBAL else owner,
        # An export without id and title still has one conversation; its place is all that names it.
        id=_text_or_none(header.get("id")) or name or f"{source.root.resolve().name}/{source.files[0].stem}",
        name=name,
        type=_TYPES.get(str(header.get("type")), "unknown"),
    )


class _Chat:
    """One chat of an export while its messages pass by: knows the one before."""

    def __init__(self, conversation: Conversation, owner: str, source: Source, reading: Reading) -> None:
        self.conversation = conversation
        self.owner = owner
        self.source = source
        self.reading = reading
        self.occurrences = Occurrences()
        self.previous: str | None = None
        self.ordinal = 0

    def messages(self, value: dict[str, Any], line: int) -> Iterator[Message]:
        """The message in an object; none, and the object listed, where there is nothing to date it by."""
        self.ordinal += 1
        kind, sent_at = value.get("type"), self._time(value, "date")
        number = _integer(value.get("id"))
        if kind not in ("message", "service") or sent_at is None or sent_at < 0:
            reason = "unsupported by Telegram's export" if kind == "unsupported" else "no message with a time"
            self.reading.not_understand(self.source.name, line, value, reason)
            # Its place is known all the same: what follows it does not follow the one before it.
            self.previous = self._key_of(number) if number is not None else None
            return
        message = Message(
            conversation=self.conversation,
            key="",
            sent_at=sent_at,
            line=line,
            file=self.source.name,
            text="",
            message_id=str(number) if number is not None else None,
            index=number if number is not None else self.ordinal,
        )
        self._add_sender(message, value)
        self._add_revision(message, value)
        if kind == "service":
            message.kind, message.text = "system", _service_text(value)
            message.source = {"service": {name: value[name] for name in sorted(set(value) - _HEAD)}}
        else:
            self._add_content(message, value)
        message.key = self._key_of(number) if number is not None else self.occurrences.key(message)
        message.predecessor = self.previous if self.previous != message.key else None
        self.previous = message.key
        yield message

    def _key_of(self, number: int) -> str:
        return message_key(self.conversation, str(number))

    def _time(self, value: dict[str, Any], name: str) -> int | None:
        """Milliseconds of `date` or `edited`; the Unix time beside it needs no zone."""
        seconds = _integer(value.get(f"{name}_unixtime"))
        if seconds is not None:
            return seconds * 1000
        written = value.get(name)
        return self.reading.local_time(written) if isinstance(written, str) else None

    def _add_sender(self, message: Message, value: dict[str, Any]) -> None:
        who = "actor" if value.get("type") == "service" else "from"
        message.sender_id = _text_or_none(value.get(f"{who}_id"))
        message.sender_name = _text_or_none(value.get(who))
        own = self.owner
        if message.sender_id is not None and own and message.sender_id in (own, f"user{own}"):
            message.role = "self"
        elif message.sender_id is None and message.sender_name is None:
            message.role = "unknown"

    def _add_revision(self, message: Message, value: dict[str, Any]) -> None:
        edited = self._time(value, "edited")
        # Old exports write 1970 for a message that was never edited.
        if edited is not None and edited >= message.sent_at:
            message.state = "edited"
            message.revision = edited // 1000

    def _add_content(self, message: Message, value: dict[str, Any]) -> None:
        message.source = {name: value[name] for name in _PROVENANCE if value.get(name)}
        parts = value.get("text") or value.get("text_entities") or ""
        message.text = _plain_text(parts)
        message.mentions = _mentions(parts)
        extra = _words_beside_the_text(value)
        target = _integer(value.get("reply_to_message_id"))
        if target is not None and not value.get("reply_to_peer_id"):
            message.reply_to = self._key_of(target)
        message.attachments = self._attachments(value)
        unknown = sorted(set(value) - _KNOWN)
        if unknown:
            message.source["unknown"] = {name: value[name] for name in unknown}
            if not (message.text or extra or message.attachments):
                extra = [f"[{name}]" for name in unknown]
                self.reading.not_understand(self.source.name, message.line, value, "unknown content")
        message.text = "\n".join(filter(None, [message.text, *extra]))

    def _attachments(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        if value.get("media_type") == "sticker":
            return []  # its emoji is in the text, its picture says no more
        named = [
            member for member in ("photo", "file", "contact_vcard") if isinstance(value.get(member), str)
        ]
        return [self._attachment(number, member, value) for number, member in enumerate(named, 1)]

    def _attachment(self, number: int, member: str, value: dict[str, Any]) -> dict[str, Any]:
        path: str = value[member].replace("\\", "/")
        excluded = "(File " in path and path.endswith(")")
        name = _text_or_none(value.get("file_name")) if member == "file" else None
        if name is None and member == "file" and "media_type" not in value and not excluded:
            # Exports before file_name: the copy's name is the file's own. Photos, voices and the like are
            # numbered anew by each export, so their copies' names say nothing.
            name = path.rsplit("/", 1)[-1]
        return self.reading.attachment(
            self.source,
            number,
            places=[] if excluded else [path],
            name=name,
            mime={"photo": "image/jpeg", "contact_vcard": "text/vcard"}.get(
                member, _text_or_none(value.get("mime_type")) or ""
            )
            or None,
            size=_integer(value.get("photo_file_size" if member == "photo" else f"{member}_size")),
            absent="not_exported" if excluded and "unavailable" not in path else "missing",
        )


def _plain_text(parts: object) -> str:
    """The text of a message, which is a string or a list of strings and entities; links keep their target."""
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list):
        return ""
    return "".join(_part_text(part) for part in parts)


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    text = str(part.get("text") or "")
    href = part.get("href")
    return f"{text} ({href})" if href and href != text else text


def _mentions(parts: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in parts if isinstance(parts, list) else []:
        if not isinstance(part, dict):
            continue
        name = _text_or_none(part.get("text"))
        if part.get("type") == "mention" and name is not None:
            found.append({"id": None, "name": name})
        elif part.get("type") == "mention_name" and part.get("user_id"):
            found.append({"id": f"user{part['user_id']}", "name": name})
    return found


def _words_beside_the_text(value: dict[str, Any]) -> list[str]:
    """What a message shows apart from text and files, one line each; counts that change are left out."""
    lines = []
    if value.get("media_type") == "sticker":
        lines.append(f"[Sticker {value.get('sticker_emoji') or ''}".rstrip() + "]")
    contact = value.get("contact_information")
    if isinstance(contact, dict):
        lines.append(f"[Contact] {_joined(contact, 'first_name', 'last_name', 'phone_number')}")
    if "location_information" in value or "place_name" in value:
        place = _joined(value, "place_name", "address")
        point = value.get("location_information")
        point = _joined(point, "latitude", "longitude") if isinstance(point, dict) else ""
        lines.append(" ".join(filter(None, ["[Location]", place, f"({point})" if point else ""])))
    poll = value.get("poll")
    if isinstance(poll, dict):
        lines.append(f"[Poll] {_plain_text(poll.get('question'))}")
        lines += _choices(poll.get("answers"))
    todo = value.get("todo_list")
    if isinstance(todo, dict):
        lines.append(f"[Checklist] {_plain_text(todo.get('title'))}")
        lines += _choices(todo.get("items") or todo.get("answers"))
    if "game_title" in value:
        lines.append(f"[Game] {_joined(value, 'game_title', 'game_description', 'game_link')}")
    invoice = value.get("invoice_information")
    if invoice:
        details = _joined(invoice, "title", "description", "amount", "currency")
        lines.append(f"[Invoice] {details}".rstrip())
    if value.get("media_type") == "audio_file":
        lines.append(f"[Audio] {_joined(value, 'performer', 'title')}".rstrip())
    return lines


def _choices(items: object) -> list[str]:
    listed = items if isinstance(items, list) else []
    return [f"- {_plain_text(item.get('text'))}" for item in listed if isinstance(item, dict)]


def _joined(value: object, *names: str) -> str:
    if isinstance(value, str):
        return value  # some versions write the object as a string
    members = value if isinstance(value, dict) else {}
    return " ".join(str(members[name]) for name in names if members.get(name) not in (None, ""))


def _service_text(value: dict[str, Any]) -> str:
    """A readable line for a service message: `pin message: message_id 5`."""
    action = str(value.get("action") or "service message").replace("_", " ")
    details = [f"{name} {value[name]}" for name in _SERVICE_WORDS if value.get(name) not in (None, "")]
    said = _plain_text(value.get("text"))
    return ": ".join(filter(None, [action, ", ".join(details), said]))


def _text_or_none(value: object) -> str | None:
    if value is None or isinstance(value, (dict, list, bool)):
        return None
    return str(value) or None


def _integer(value: object) -> int | None:
    """A whole number as Telegram writes it: a number or a string of digits, within 53 bits."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        number = int(value)
    except ValueError:
        return None
    return number if abs(number) < 1 << 53 else None


def _recognizes(path: Path) -> bool:
    file = path / "result.json" if path.is_dir() else path
    head = beginning(file)
    return b'"messages"' in head and bool(_MARK.search(head))


TELEGRAM = Format(
    "telegram", _find, _read, "result.json with `chats` or with `type`, `id` and `messages`", _recognizes
)
