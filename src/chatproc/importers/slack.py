"""A Slack workspace export, zip archive or folder, as messages.

Slack exports the whole of each channel, a file a day, so neighbours are linked. A message's `ts` names it in
its channel. Names that people change at will stay beside the text; previews of links, which Slack adds later,
are no part of it.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from chatproc.errors import ConfigError
from chatproc.importers.archive import Folder, opened_archive
from chatproc.importers.base import Conversation, Format, Message, Source
from chatproc.importers.keys import message_key
from chatproc.importers.sequence import Neighbours
from chatproc.importers.slack_text import attachment_text, block_text, mentions, plain_text, rich_markup
from chatproc.importers.values import LARGEST_EXACT, identity, members, objects, string, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chatproc.importers.archive import Archive
    from chatproc.importers.base import Origin, Reading

_Type = Literal["group", "private", "channel", "thread", "mailbox", "unknown"]
_LISTS: dict[str, _Type] = {
    "channels.json": "channel",
    "groups.json": "group",
    "mpims.json": "group",
    "dms.json": "private",
}
_USERS = ("users.json", "org_users.json")
_MARKS = frozenset((*_LISTS, *_USERS))
# Lists of an export that hold no messages.
_OTHER_LISTS = frozenset({"integration_logs.json", "canvases.json", "file_conversations.json"})
_DAY = re.compile(r"[^/]+/\d{4}-\d\d-\d\d\.json")
_TS = re.compile(r"(\d{1,11})\.(\d{1,6})")

# Subtypes that are messages of somebody.
_MESSAGES = frozenset(
    {
        "bot_message",
        "slackbot_response",
        "me_message",
        "thread_broadcast",
        "reply_broadcast",
        "file_share",
        "file_comment",
        "file_mention",
        "assistant_app_thread",
    }
)
# Subtypes that tell what happened, by how they begin.
_NOTICES = (
    "channel_",
    "group_",
    "pinned_item",
    "unpinned_item",
    "bot_add",
    "bot_remove",
    "bot_enable",
    "bot_disable",
    "reminder_",
    "joiner_notification",
    "sh_room_",
    "huddle_",
    "app_conversation_",
    "tombstone",
)
_SLACKBOT = "USLACKBOT"


def _find(path: Path) -> list[Source]:
    if path.is_file():
        with opened_archive(path, _MARKS):
            return [Source(path.name, path.parent, (path,))]
    if _is_root(path):
        return [Source(path.resolve().name, path, tuple(Folder(path).files.values()))]
    inner = sorted(entry for entry in path.iterdir() if entry.is_dir() or entry.suffix.lower() == ".zip")
    found = [source for entry in inner if _recognizes(entry) for source in _find(entry)]
    if not found:
        raise ConfigError(
            "no Slack export here: looked for users.json or channels.json beside folders of days",
            where=str(path),
            hint="give the zip archive that Slack made, or the folder that it unpacks to",
        )
    return found


def _is_root(folder: Path) -> bool:
    return any((folder / mark).is_file() for mark in _MARKS) and any(folder.glob("*/*-*-*.json"))


def _recognizes(path: Path) -> bool:
    if path.is_dir():
        return _is_root(path)
    try:
        with opened_archive(path, _MARKS) as archive:
            names = archive.names
    except (ConfigError, OSError):
        return False
    return bool(_MARKS & set(names)) and any(map(_DAY.fullmatch, names))


@contextmanager
def _opened(source: Source) -> Iterator[Archive | Folder]:
    if len(source.files) == 1:
        with opened_archive(source.files[0], _MARKS) as archive:
            yield archive
    else:
        yield Folder(source.root)


def _read(source: Source, reading: Reading) -> Iterator[Message]:
    with _opened(source) as files:
        export = _Export(files, source, reading)
        for name in files.names:
            if _DAY.fullmatch(name):
                yield from export.day(name)


class _Export:
    """A workspace while the days of its channels pass by."""

    def __init__(self, files: Archive | Folder, source: Source, reading: Reading) -> None:
        self.files = files
        self.source = source
        self.reading = reading
        self.neighbours = Neighbours()
        self.users: dict[str, dict[str, Any]] = {}
        self.conversations: dict[str, Conversation] = {}
        known = [name for name in files.names if name in _MARKS]
        if not known:
            raise ConfigError(
                "not a Slack export: looked for users.json or channels.json",
                where=str(source.files[0] if source.files else source.root),
            )
        for name in known:
            for value in self._listed(name):
                self._learn(name, value)
        for name, reason in files.refused:
            reading.not_understand(name, 0, "", reason)
        for name in files.names:
            if name not in _MARKS | _OTHER_LISTS and not _DAY.fullmatch(name):
                reading.not_understand(name, 0, "", "not a day of messages")

    def day(self, name: str) -> Iterator[Message]:
        """The messages of one channel's day."""
        conversation = self._conversation(name.split("/", maxsplit=1)[0])
        with self.files.open(name) as file:
            for piece in self.reading.walk_opened(file, name, objects=("[]",)):
                value = self.reading.object_of(piece, name)
                message = None
                if value is not None:
                    origin = self.reading.origin(self.source, name, piece.line, value)
                    message = _Event(self, conversation, origin).message(value)
                if message is None:
                    self.neighbours.lose(conversation.id)
                    continue
                # The change of an older message stands where it happened, not where the message does.
                if value is not None and message.message_id == value.get("ts"):
                    self.neighbours.link(message, _microseconds(message.message_id))
                yield message

    def user_name(self, user: str | None) -> str | None:
        """How a user calls himself today."""
        known = self.users.get(user or "", {})
        profile = members(known.get("profile"))
        names = (profile.get("display_name"), profile.get("real_name"), known.get("real_name"))
        return next(filter(None, map(identity, (*names, known.get("name")))), None)

    def handle(self, user: str) -> str:
        """The user's account name, which does not change with how he calls himself."""
        return identity(self.users.get(user, {}).get("name")) or user

    def _listed(self, name: str) -> Iterator[dict[str, Any]]:
        with self.files.open(name) as file:
            for piece in self.reading.walk_opened(file, name, objects=("[]",)):
                value = self.reading.object_of(piece, name)
                if value is not None:
                    yield value

    def _learn(self, name: str, value: dict[str, Any]) -> None:
        own = identity(value.get("id"))
        if own is None:
            self.reading.not_understand(name, 0, value, "no id")
        elif name in _USERS:
            kept = ("name", "real_name", "is_bot")
            profile = members(value.get("profile"))
            self.users[own] = {
                **{member: value.get(member) for member in kept},
                "profile": {member: profile.get(member) for member in ("display_name", "real_name")},
            }
        else:
            title = identity(value.get("name"))
            conversation = Conversation("slack", self.reading.account, own, title, _LISTS[name])
            for folder in filter(None, (own, title)):
                self.conversations.setdefault(folder, conversation)

    def _conversation(self, folder: str) -> Conversation:
        known = self.conversations.get(folder)
        if known is None:
            known = Conversation("slack", self.reading.account, folder, folder, "unknown")
            self.conversations[folder] = known
            self.reading.not_understand(folder, 0, "", "a folder that no list of channels names")
        return known


class _Event:
    """One object of a day: a message, or a change of one."""

    def __init__(self, export: _Export, conversation: Conversation, origin: Origin) -> None:
        self.export = export
        self.conversation = conversation
        self.origin = origin

    def message(self, value: dict[str, Any]) -> Message | None:
        """The message in it; `None`, and listed, without a `ts`."""
        subtype = value.get("subtype")
        if subtype == "message_changed":
            return self.message({**members(value.get("message")), "hidden": None})
        if subtype == "message_deleted":
            return self._withdrawn(value.get("deleted_ts"))
        ts, sent_at = string(value.get("ts")), _milliseconds(value.get("ts"))
        if sent_at is None or value.get("type", "message") != "message":
            self.origin.note("no message with a time")
            return None
        if subtype == "tombstone":
            return self._withdrawn(ts)
        message = self._begun(ts, sent_at, {"subtype": subtype} if subtype else {})
        self._add_sender(message, value)
        if string(subtype).startswith(_NOTICES):
            message.kind = "system"
        elif subtype is not None and string(subtype) not in _MESSAGES:
            self.origin.note("an unknown subtype of message")
        self._add_revision(message, value)
        self._add_content(message, value)
        thread = string(value.get("thread_ts"))
        if thread and thread != ts and _milliseconds(thread) is not None:
            message.reply_to = message_key(self.conversation, thread)
        return message

    def _begun(self, ts: str, sent_at: int, source: dict[str, Any]) -> Message:
        return Message(
            conversation=self.conversation,
            key=message_key(self.conversation, ts),
            sent_at=sent_at,
            line=self.origin.line,
            file=self.origin.file,
            text="",
            message_id=ts,
            source=source,
        )

    def _withdrawn(self, ts: object) -> Message | None:
        """A deleted message: whose it was is gone with it, and nothing follows."""
        sent_at = _milliseconds(ts)
        if sent_at is None:
            self.origin.note("a deletion that names no message")
            return None
        message = self._begun(string(ts), sent_at, {"subtype": "tombstone"})
        message.state, message.revision, message.role = "recalled", LARGEST_EXACT, "unknown"
        return message

    def _add_sender(self, message: Message, value: dict[str, Any]) -> None:
        user = identity(value.get("user")) or identity(members(value.get("comment")).get("user"))
        bot = identity(value.get("bot_id"))
        message.sender_id = user or bot
        profile = members(value.get("user_profile"))
        names = (
            self.export.user_name(user),
            identity(profile.get("display_name")) or identity(profile.get("real_name")),
            identity(value.get("username")),
            identity(members(value.get("bot_profile")).get("name")),
        )
        message.sender_name = next(filter(None, names), None)
        is_bot = self.export.users.get(user or "", {}).get("is_bot") is True
        if user == _SLACKBOT or is_bot or value.get("subtype") == "bot_message" or (bot and not user):
            message.role = "bot"
        elif user is not None and user == self.conversation.account:
            message.role = "self"
        elif user is None:
            message.role = "unknown"

    def _add_revision(self, message: Message, value: dict[str, Any]) -> None:
        edited = _microseconds(members(value.get("edited")).get("ts"))
        if edited is not None:
            message.state, message.revision = "edited", edited

    def _add_content(self, message: Message, value: dict[str, Any]) -> None:
        raw, handle = string(value.get("text")) or rich_markup(value.get("blocks")), self.export.handle
        text = plain_text(raw, handle)
        blocks = block_text(value.get("blocks"), handle)
        # An app's text may be a mere notice of its blocks.
        if blocks and blocks not in text:
            text = blocks if text in blocks else f"{text}\n{blocks}"
        attached = (attachment_text(item, handle) for item in objects(value.get("attachments")))
        text = "\n".join(filter(None, [text, *attached]))
        message.text = f"* {text}" if value.get("subtype") == "me_message" else text
        message.mentions = [
            {**mention, "name": self.export.user_name(mention["id"]) or mention["name"]}
            if "id" in mention
            else mention
            for mention in mentions(raw)
        ]
        files = objects(value.get("files")) or objects([value.get("file")])
        message.attachments = [self._file(place, item) for place, item in enumerate(files, 1)]

    def _file(self, place: int, item: dict[str, Any]) -> dict[str, Any]:
        own, name = identity(item.get("id")) or "", identity(item.get("name")) or identity(item.get("title"))
        gone = item.get("mode") in ("tombstone", "hidden_by_limit")
        # Slack exports addresses of files; these are where known programs put the files themselves.
        places = [f"__uploads/{own}/{name}", f"attachments/{own}/{name}", f"attachments/{own}-{name}"]
        return self.origin.attach(
            place,
            places=places if own and name else [],
            name=name,
            mime=identity(item.get("mimetype")),
            size=whole(item.get("size")),
            absent="expired" if gone else "not_exported",
        )


def _microseconds(ts: object) -> int | None:
    """A `ts` as the whole number that orders messages of a channel."""
    found = _TS.fullmatch(ts) if isinstance(ts, str) else None
    return int(found[1]) * 1_000_000 + int(found[2].ljust(6, "0")) if found else None


def _milliseconds(ts: object) -> int | None:
    microseconds = _microseconds(ts)
    return microseconds // 1000 if microseconds else None


SLACK = Format(
    "slack", _find, _read, "a zip or a folder with users.json, channels.json and folders of days", _recognizes
)
