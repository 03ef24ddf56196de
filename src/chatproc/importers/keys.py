"""Keys of messages: the platform's own id with its scope, or a fingerprint where an export shows no id."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chatproc.importers.base import Conversation, Message

MAX_KEY_CHARS = 512
# Equal messages of one second stand close together; this bounds the memory for a file of any size.
REMEMBERED_FINGERPRINTS = 200_000


class Occurrences:
    """Numbers equal messages of a format without ids, so that two of one second stay two."""

    def __init__(self) -> None:
        """Start with no message seen."""
        self._seen: dict[bytes, int] = {}

    def go_on_after(self, keys: Iterable[str]) -> None:
        """Count on from keys that were given before, as those of the second in which a page was cut."""
        for key in keys:
            stem, _, number = key.rpartition(".")
            self._seen[_sha256_of_key(stem)[:16]] = int(number)

    def key(self, message: Message) -> str:
        """The key of a message that has no id of its own.

        Made of what every export of the message shows: conversation, time, sender, kind, text, attachments.
        """
        fields = [
            message.sent_at,
            message.sender_id or message.sender_name,
            message.kind,
            unicodedata.normalize("NFC", message.text),
            [attachment["name"] for attachment in message.attachments],
        ]
        fingerprint = hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:32]
        key = message_key(message.conversation, f"~{fingerprint}")
        digest = _sha256_of_key(key)[:16]
        number = self._seen.pop(digest, 0) + 1
        self._seen[digest] = number
        if len(self._seen) > REMEMBERED_FINGERPRINTS:
            del self._seen[next(iter(self._seen))]
        return f"{key}.{number}"


def message_key(conversation: Conversation, message_id: str) -> str:
    """The key of a message through all its revisions, from the platform's own id within its conversation.

    Example:
        >>> message_key(Conversation("qq", "10000", "999000", None, "group"), "7550123")
        'qq:10000:999000:7550123'
    """
    return _joined_key(conversation.platform, conversation.account, conversation.id, message_id)


def global_key(platform: str, message_id: str) -> str:
    """The key of a message whose id is unique on its whole platform, whoever collects it from wherever.

    Example:
        >>> global_key("discord", "1519337717564051496")
        'discord:1519337717564051496'
    """
    return _joined_key(platform, message_id)


def _joined_key(*parts: str) -> str:
    key = ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)
    if len(key) > MAX_KEY_CHARS - 16:
        return f"{parts[0]}:{_sha256_of_key(key).hex()}"
    return key


def _sha256_of_key(key: str) -> bytes:
    # A conversation's title may hold half of a surrogate pair.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
