"""The `chatproc.event/1` of a message, the same whether it was imported or pulled."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from chatproc.importers.values import without_surrogates

if TYPE_CHECKING:
    from chatproc.importers.base import Message

SCHEMA = "chatproc.event/1"
MAX_SOURCE_DEPTH = 24
_LONGEST_WORDS = 200
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def event_document(message: Message, module: str) -> tuple[str, bool]:
    """The `chatproc.event/1` of a message as JSON, and whether all of its text could be kept.

    Halves of surrogate pairs are no text and become U+FFFD. The `event_id` is that of the document, so
    nothing may be added to it.
    """
    body = _event(message, module)
    document = _COMPACT.encode(body)
    whole = True
    try:
        document.encode()
    except UnicodeEncodeError:
        whole = False
        document = _COMPACT.encode(without_surrogates(body))
    # Of two deliveries that differ only in their link the one with the larger id wins: a proven neighbour
    # must win over an export that merely begins here, and what reaches further back over what does not.
    link = "1" if message.reach is None else f"0g{message.reach:016}"
    prefix = link if message.predecessor else "0"
    event_id = prefix + hashlib.sha256(document.encode()).hexdigest()
    return f'{{"schema":"{SCHEMA}","event_id":"{event_id}",{document[1:]}', whole


def _event(message: Message, module: str) -> dict[str, Any]:
    conversation = message.conversation
    event: dict[str, Any] = {
        "message_key": message.key,
        "revision": message.revision,
        "state": message.state,
        "kind": message.kind,
        "platform": conversation.platform,
        "account_id": conversation.account,
        "conversation": {"id": conversation.id, "name": conversation.name, "type": conversation.type},
        "message_id": message.message_id,
        "sent_at": message.sent_at // 1000 if message.sent_at % 1000 == 0 else message.sent_at / 1000,
        "sender": {"id": message.sender_id, "name": message.sender_name, "role": message.role},
        "text": message.text,
        "mentions": message.mentions,
        "reply_to": message.reply_to,
        "attachments": message.attachments,
    }
    if message.index is not None:
        # Without a proven neighbour the predecessor is left out: null would say that this is the first.
        link = {"predecessor": message.predecessor} if message.predecessor else {}
        event["sequence"] = {"index": message.index, **link}
    place = {"file": message.file, "line": message.line} if message.file else {}
    event["source"] = {"module": module, **place, **_storable(message.source, 0)}
    return event


def _storable(value: Any, depth: int) -> Any:  # noqa: ANN401 - any JSON value
    """Foreign values for an event's provenance: what no event may bear (infinite, deep) as its words."""
    if isinstance(value, (dict, list)):
        if depth > MAX_SOURCE_DEPTH:
            return str(value)[:_LONGEST_WORDS]
        if isinstance(value, list):
            return [_storable(item, depth + 1) for item in value]
        return {name: _storable(item, depth + 1) for name, item in value.items()}
    bounded = not isinstance(value, (int, float)) or abs(value) < 1 << 63
    return value if bounded else str(value)
