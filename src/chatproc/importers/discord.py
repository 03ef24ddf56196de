"""DiscordChatExporter's JSON, one file a channel or several parts of one, as messages.

An export may be limited or filtered without saying so, so neighbours are linked only where it is said to be
complete. Ids and times are Discord's own; nicknames and previews of links, which change with the day of the
export, never enter a text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Format, Message, Source, beginning
from chatproc.importers.keys import global_key
from chatproc.importers.pieces import glimpse
from chatproc.importers.sequence import Neighbours
from chatproc.importers.values import LARGEST_EXACT, identity, members, objects, string, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chatproc.importers.base import Origin, Reading

PLATFORM = "discord"
_MESSAGE = "messages.[]"
_MARKS = (b'"guild"', b'"channel"', b'"exportedAt"')
_PART = re.compile(r"(?P<base>.*?)(?: \[part (?P<part>\d{1,6})\])?\.json", re.DOTALL)
# Discord counts an id's milliseconds from the beginning of 2015.
_EPOCH_MS = 1_420_070_400_000
_MAX_ID = (1 << 63) - 1

_Type = Literal["group", "private", "channel", "thread", "mailbox", "unknown"]
# The exporter names the kinds it knows and numbers the others, as Discord does.
_SAID = frozenset({"Default", "Reply", "0", "19", "20", "23", "ChatInputCommand", "ContextMenuCommand"})
_REPLIES = frozenset({"Reply", "19"})
_NOTICES = frozenset(
    {
        "RecipientAdd",
        "RecipientRemove",
        "Call",
        "ChannelNameChange",
        "ChannelIconChange",
        "ChannelPinnedMessage",
        "GuildMemberJoin",
        "ThreadCreated",
        "ThreadStarterMessage",
        *map(str, (*range(1, 19), 21, 22, *range(24, 33), *range(36, 47))),
    }
)
_MARKUP = re.compile(r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w+):\d+)>")
_ALL = re.compile(r"(?<![A-Za-z0-9_])@(?:everyone|here)(?![A-Za-z0-9_])")
_ZONE = re.compile(r"(?:[+-]\d\d:?\d\d|Z)$")


def _find(path: Path) -> list[Source]:
    if path.is_file():
        return [Source(path.name, path.parent, (path,))]
    channels: dict[str, list[Path]] = {}
    for file in sorted(path.glob("*.json")):
        if _recognizes(file):
            channels.setdefault(_part_of(file)[0], []).append(file)
    if not channels:
        raise ConfigError(
            "no DiscordChatExporter export here: looked for *.json with `guild`, `channel` and `exportedAt`",
            where=str(path),
            hint="export as JSON and give the file or its folder",
        )
    return [
        Source(f"{base}.json", path, tuple(sorted(files, key=lambda file: _part_of(file)[1])))
        for base, files in channels.items()
    ]


def _part_of(file: Path) -> tuple[str, int]:
    """The name of an export and the number of one of its parts; the first one's file bears none."""
    found = _PART.fullmatch(file.name)
    return (found["base"], int(found["part"] or 1)) if found else (file.stem, 1)


def _recognizes(path: Path) -> bool:
    if path.is_dir():
        return any(map(_recognizes, sorted(path.glob("*.json"))))
    head = beginning(path)
    return all(mark in head for mark in _MARKS)


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    neighbours = Neighbours()
    expected = 1 if len(source.files) > 1 else _part_of(source.files[0])[1]
    for file in source.files:
        for missing in range(expected, _part_of(file)[1]):
            reading.not_understand(source.name, 0, "", f"part {missing} is not there")
            neighbours.lose_all()
        expected = _part_of(file)[1] + 1
        yield from _Part(file, source, reading).messages(neighbours)


class _Part:
    """One file of an export."""

    def __init__(self, file: Path, source: Source, reading: Reading) -> None:
        self.file = file
        self.source = source
        self.reading = reading
        channel = self._channel()
        kind = string(channel.get("type"))
        self.conversation = Conversation(
            platform=PLATFORM,
            account=reading.account,
            id=identity(channel.get("id")) or identity(channel.get("name")) or file.stem,
            name=identity(channel.get("name")),
            type=_conversation_type(kind),
        )

    def messages(self, neighbours: Neighbours) -> Iterator[Message]:
        """Its messages; how many there should be stands at its end."""
        count = 0
        counted: int | None = None
        walk = self.reading.walk(self.file, self.file.name, objects=(_MESSAGE,), watched=("",))
        for piece in walk:
            if piece.kind == "scalars":
                counted = whole(glimpse(piece).get("messageCount"))
            if piece.kind in ("open", "scalars"):
                continue
            count += 1
            value = self.reading.object_of(piece, self.file.name)
            message = None
            if value is not None:
                message = self._message(value, piece.line)
            if message is None:
                neighbours.lose_all()
                continue
            if self.reading.complete:
                neighbours.link(message, whole(value.get("id") if value else None, _MAX_ID))
            yield message
        if counted is not None and counted != count:
            reason = f"the file says that it holds {counted} messages, but it holds {count}"
            self.reading.not_understand(self.file.name, 0, "", reason)

    def _channel(self) -> dict[str, Any]:
        walk = self.reading.walk(self.file, self.file.name, objects=("channel",), outline=True)
        for piece in walk:
            return glimpse(piece)
        raise ConfigError("not a DiscordChatExporter export: looked for `channel`", where=str(self.file))

    def _message(self, value: dict[str, Any], line: int) -> Message | None:
        origin = self.reading.origin(self.source, self.file.name, line, value)
        number, kind = whole(value.get("id"), _MAX_ID), str(value.get("type"))
        sent_at = self._time(value.get("timestamp"), number)
        if number is None or sent_at is None:
            origin.note("no message with an id")
            return None
        message = Message(
            conversation=self.conversation,
            key=global_key(PLATFORM, str(number)),
            sent_at=sent_at,
            line=line,
            file=self.file.name,
            text="",
            message_id=str(number),
            source={"type": value.get("type")},
        )
        if kind not in _SAID:
            message.kind = "system"
            if kind not in _NOTICES:
                origin.note("an unknown type of message")
        _add_sender(message, members(value.get("author")))
        _add_content(message, value, origin)
        target = identity(members(value.get("reference")).get("messageId"))
        if kind in _REPLIES and target is not None:
            message.reply_to = global_key(PLATFORM, target)
        edited = self._time(value.get("timestampEdited"), None)
        if edited is not None:
            message.state, message.revision = "edited", min(edited, LARGEST_EXACT)
        return message

    def _time(self, written: object, number: int | None) -> int | None:
        """Milliseconds of a time with a zone, else of the id, which holds the moment of its making."""
        if isinstance(written, str) and _ZONE.search(written):
            found = self.reading.local_time(written)
            if found is not None and found >= 0:
                return found
        return (number >> 22) + _EPOCH_MS if number is not None else None


def _conversation_type(kind: str) -> _Type:
    if kind.startswith("Direct"):
        return "group" if "Group" in kind else "private"
    if "Thread" in kind:
        return "thread"
    return "channel" if kind.startswith("Guild") else "unknown"


def _add_sender(message: Message, author: dict[str, Any]) -> None:
    message.sender_id = identity(author.get("id"))
    message.sender_name = identity(author.get("nickname")) or identity(author.get("name"))
    if author.get("isBot") is True:
        message.role = "bot"
    elif message.sender_id is not None and message.sender_id == message.conversation.account:
        message.role = "self"
    elif message.sender_id is None and message.sender_name is None:
        message.role = "unknown"


def _add_content(message: Message, value: dict[str, Any], origin: Origin) -> None:
    people = objects(value.get("mentions"))
    content = string(value.get("content"))
    lines = [_plain(content, people)]
    lines += _beside(value, whole_embeds=message.role == "bot")
    attached = objects(value.get("attachments"))
    reference, forwarded = members(value.get("reference")), members(value.get("forwardedMessage"))
    if forwarded or reference.get("type") == "Forward":
        lines.append(f"[Forwarded] {_plain(string(forwarded.get('content')), people)}".rstrip())
        lines += _beside(forwarded, whole_embeds=True)
        attached += objects(forwarded.get("attachments"))
        message.source["forwarded"] = {
            "timestamp": forwarded.get("timestamp"),
            "message": reference.get("messageId"),
            "channel": reference.get("channelId"),
        }
    if value.get("interaction"):
        message.source["interaction"] = members(value["interaction"]).get("name")
    message.text = "\n".join(filter(None, lines))
    message.mentions = _mentions(content, people)
    message.attachments = [_attachment(place, item, origin) for place, item in enumerate(attached, 1)]


def _plain(content: str, people: list[dict[str, Any]]) -> str:
    """The text with each mention as the account's name, whether the exporter wrote a nickname or an id."""
    accounts = {identity(person.get("id")) or "": string(person.get("name")) for person in people}

    def shown(found: re.Match[str]) -> str:
        if found["user"]:
            return f"@{accounts.get(found['user']) or found['user']}"
        if found["role"]:
            return f"@{found['role']}"
        return f"#{found['channel']}" if found["channel"] else f":{found['emoji']}:"

    nicknames = {string(person.get("nickname")): string(person.get("name")) for person in people}
    known = [nickname for nickname in nicknames if nickname and nicknames[nickname]]
    if known:
        longest_first = "|".join(re.escape(nickname) for nickname in sorted(known, key=len, reverse=True))
        content = re.sub(f"@({longest_first})", lambda found: f"@{nicknames[found[1]]}", content)
    return _MARKUP.sub(shown, content)


def _mentions(content: str, people: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if _ALL.search(content):
        found["all"] = {"all": True}
    for person in people:
        own = identity(person.get("id"))
        name = identity(person.get("nickname")) or identity(person.get("name"))
        if own or name:
            found[own or f"~{name}"] = {"id": own, "name": name}
    for role in (markup["role"] for markup in _MARKUP.finditer(content) if markup["role"]):
        found.setdefault(role, {"id": role, "name": None})
    return list(found.values())


def _beside(value: dict[str, Any], *, whole_embeds: bool) -> list[str]:
    """What stands beside the text. People's embeds are previews of links, which Discord adds later."""
    lines = [f"[Sticker {string(item.get('name'))}]" for item in objects(value.get("stickers"))]
    embeds = objects(value.get("embeds"))
    return [*(line for item in embeds for line in _embed_lines(item) if whole_embeds), *lines]


def _embed_lines(embed: dict[str, Any]) -> list[str]:
    title, url = string(embed.get("title")), string(embed.get("url"))
    lines = [
        string(members(embed.get("author")).get("name")),
        f"{title} ({url})" if title and url else title or url,
        string(embed.get("description")),
    ]
    fields = (
        (string(field.get("name")), string(field.get("value"))) for field in objects(embed.get("fields"))
    )
    lines += [": ".join(filter(None, field)) for field in fields]
    lines.append(string(members(embed.get("footer")).get("text")))
    return list(filter(None, lines))


def _attachment(place: int, item: dict[str, Any], origin: Origin) -> dict[str, Any]:
    url = string(item.get("url"))
    local = bool(url) and "://" not in url
    return origin.attach(
        place,
        places=[url.replace("\\", "/")] if local else [],
        name=identity(item.get("fileName")),
        size=whole(item.get("fileSizeBytes")),
        absent="missing" if local else "not_exported",
    )


DISCORD = Format(
    "discord", _find, _read, "*.json with `guild`, `channel`, `exportedAt` and `messages`", _recognizes
)
