"""Who stands before whom, for exports that hold conversations without gaps.

Links only what the file itself proves; a message that was not understood breaks the chain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chatproc.importers.base import Message


class Neighbours:
    """Links each message to the one before it in the file, as long as time does not run backwards there.

    One object for all conversations of an export.
    """

    def __init__(self, *, ordered: bool = False) -> None:
        """Start with no message seen; `ordered`: the file's order is right whatever the clocks say."""
        self._ordered = ordered
        self._last: dict[str, tuple[int, str]] = {}
        self._count = 0

    def link(self, message: Message, index: int | None = None) -> Message:
        """Give a message its place; `index` orders messages where the platform's ids do so."""
        self._count += 1
        message.index = self._count if index is None else index
        name = message.conversation.id
        sent_at, key = self._last.get(name, (0, message.key))
        if key != message.key and (self._ordered or sent_at <= message.sent_at):
            message.predecessor = key
        self._last[name] = (message.sent_at, message.key)
        return message

    def lose(self, conversation_id: str) -> None:
        """A message of it was not understood: nobody is known to follow it."""
        self._last.pop(conversation_id, None)

    def lose_all(self) -> None:
        """A part was not understood at all, whatever conversation it belonged to."""
        self._last.clear()
