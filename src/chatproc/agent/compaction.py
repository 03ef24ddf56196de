"""Compaction: a session that nears the context window leaves out its oldest calls, never the document.

Pure. It must never split a call from its result and never touch the first request; what was read is told from
the session's record, for the history that told it is what goes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.agent.record import SessionRecord

Message: TypeAlias = dict[str, Any]
"""One message as the wire carries it."""

_CHARS_PER_TOKEN = 4
_TOKENS_PER_PICTURE = 2000
"""What a picture of the usual size costs at most endpoints, on the high side."""

_FIRST_REQUEST = 2
"""The system text and the document."""


def estimate_tokens(messages: Sequence[Message], tools: Sequence[Message] = ()) -> int:
    """A guess at what messages cost, on the high side: four ASCII characters, or one other, are a token.

    Example:
        >>> estimate_tokens([{"role": "user", "content": "周五交表"}])
        12
    """
    return _tokens([*messages, *tools])


def _tokens(messages: Sequence[Message]) -> int:
    counted = [_without_pictures(message) for message in messages]
    pictures = sum(_pictures(message) for message in messages)
    text = json.dumps(counted, ensure_ascii=False)
    wide = sum(mark > "\x7f" for mark in text)
    return wide + (len(text) - wide) // _CHARS_PER_TOKEN + pictures * _TOKENS_PER_PICTURE


def _pictures(message: Message) -> int:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return sum(part["type"] == "image_url" for part in parts)


def _without_pictures(message: Message) -> Message:
    """The message as far as its length in characters tells what it costs."""
    if not _pictures(message):
        return message
    return {**message, "content": [part for part in message["content"] if part["type"] != "image_url"]}


def compacted(messages: list[Message], budget: int, record: SessionRecord) -> list[Message]:
    """The messages as they fit a budget.

    Args:
        messages: System, document, then replies of the model each followed by what answered it.
        budget: Tokens, by `estimate_tokens`.
        record: The session's record.

    Returns:
        The same list when it fits. Else the first request, as many of the latest replies with their results
        as fit (at least the last), and a list of the evidence already read.
    """
    if _tokens(messages) <= budget:
        return messages
    first, exchanges = messages[:_FIRST_REQUEST], _exchanges(messages[_FIRST_REQUEST:])
    if len(exchanges) <= 1:
        return messages
    note = _note(record)
    left = budget - _tokens(first) - _tokens([{"role": "user", "content": note}])
    kept: list[Message] = exchanges[-1]
    for exchange in reversed(exchanges[:-1]):
        if _tokens(exchange + kept) > left:
            break
        kept = exchange + kept
    return first + _with_note(kept, note)


def _exchanges(messages: list[Message]) -> list[list[Message]]:
    """Each reply of the model with everything that answered it."""
    exchanges: list[list[Message]] = []
    for message in messages:
        if message["role"] == "assistant" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    return exchanges


def _with_note(messages: list[Message], note: str) -> list[Message]:
    """The note as the last words of the user: two user messages in a row are not taken everywhere."""
    last = messages[-1]
    if last["role"] == "user" and isinstance(last["content"], list):
        return [*messages[:-1], {**last, "content": [*last["content"], {"type": "text", "text": note}]}]
    if last["role"] == "user":
        return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{note}"}]
    return [*messages, {"role": "user", "content": note}]


def _note(record: SessionRecord) -> str:
    lines = ["Earlier calls of this session were left out to save room. They count as done."]
    if record.units:
        lines.append(f"Read so far, and citable (read again for the words): {_listed(record.units)}.")
    else:
        lines.append("No unit of an attachment was read so far.")
    if record.tasks:
        lines.append(f"Earlier tasks shown so far, valid as task_ref: {_listed(record.tasks)}.")
    return "\n".join(lines)


def _listed(refs: Sequence[str] | dict[str, Any]) -> str:
    """Refs in a row, runs of units of one file drawn together: `f1:b1-b7`."""
    drawn: list[tuple[str, int, int]] = []
    for ref in refs:
        stem = ref.rstrip("0123456789")
        number = int(ref[len(stem) :])
        if drawn and ":" in stem and drawn[-1][0] == stem and drawn[-1][2] + 1 == number:
            drawn[-1] = (stem, drawn[-1][1], number)
        else:
            drawn.append((stem, number, number))
    return ", ".join(
        f"{stem}{start}" if start == end else f"{stem}{start}-{stem.rpartition(':')[2]}{end}"
        for stem, start, end in drawn
    )
