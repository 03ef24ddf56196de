"""What one session has truly shown to the model: messages, units that were read, tasks that were found.

Pure. Citations are held against it, not against the history of the conversation with the model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ReadUnit:
    """One unit of an attachment as it was sent to the model.

    Args:
        attachment: The attachment's ref, `f1`.
        unit: The unit within it, `b3`.
        text: The text of the unit; what can be quoted.
        attachment_sha256: Hex SHA-256 of the file.
        content_sha256: Hex SHA-256 of the bytes sent: the text in UTF-8, then the picture's file.
        length: How many bytes those are.
        is_picture: Whether it was sent as a picture, beside that text.
    """

    attachment: str
    unit: str
    text: str
    attachment_sha256: str
    content_sha256: str
    length: int
    is_picture: bool = False

    @property
    def ref(self) -> str:
        """How the model cites it: `f1:b3`."""
        return f"{self.attachment}:{self.unit}"


@dataclass(frozen=True, slots=True)
class ShownTask:
    """A stored task that the model saw, at the revision it saw.

    Args:
        task_id: `t_…`.
        revision: The one it saw.
        view: What it saw of it.
    """

    task_id: str
    revision: int
    view: Mapping[str, Any] = field(default_factory=dict)


class SessionRecord:
    """What one session has truly shown to the model; citations are held against it, not against the history.

    A unit or a found task counts only once the request that carries it went out (`sent`): what a model cites
    in the same breath in which it asks for it, it has not read.

    Args:
        batch: The batch as the core built it.
    """

    def __init__(self, batch: Mapping[str, Any]) -> None:
        """Begin with what the document shows."""
        self.messages: Mapping[str, Any] = batch["messages"]
        self.attachments: Mapping[str, Any] = batch["attachments"]
        self.conversations: Mapping[str, Any] = {entry["ref"]: entry for entry in batch["conversations"]}
        self.units: dict[str, ReadUnit] = {}
        self.tasks: dict[str, ShownTask] = {
            ref: ShownTask(task["task_id"], task["revision"], task["view"])
            for ref, task in batch["tasks"].items()
        }
        self._ref_of_task = {task.task_id: ref for ref, task in self.tasks.items()}
        self.senders = _senders(batch["document"])
        self.asked: set[tuple[str, str]] = set()
        """Kinds of questions with the places they were asked of: each is asked once."""
        self._units_to_send: dict[str, ReadUnit] = {}
        self._tasks_to_send: dict[str, ShownTask] = {}

    def add_unit(self, unit: ReadUnit) -> None:
        """Note a unit that goes out with the next request."""
        self._units_to_send[unit.ref] = unit

    def forget_units(self, attachment: str) -> None:
        """Take back what was read of an attachment: its file is another one now."""
        for units in (self.units, self._units_to_send):
            for ref in [ref for ref, unit in units.items() if unit.attachment == attachment]:
                del units[ref]

    def add_task(self, task_id: str, revision: int, view: Mapping[str, Any]) -> str:
        """Note a found task that goes out with the next request.

        Returns:
            Its ref, the same for the whole session.
        """
        if task_id not in self._ref_of_task:
            number = len(self._ref_of_task) + 1
            while f"t{number}" in self._ref_of_task.values():
                number += 1
            self._ref_of_task[task_id] = f"t{number}"
        ref = self._ref_of_task[task_id]
        self._tasks_to_send[ref] = ShownTask(task_id, revision, view)
        return ref

    def sent(self) -> None:
        """A request went out: what waited for it is now known to the model."""
        self.units |= self._units_to_send
        self.tasks |= self._tasks_to_send
        self._units_to_send.clear()
        self._tasks_to_send.clear()

    def receipts(self, conversation: str) -> list[dict[str, Any]]:
        """The read receipts of one conversation's attachments, in the order of reading."""
        receipts = []
        for unit in self.units.values():
            attachment = self.attachments[unit.attachment]
            if attachment["conversation"] == conversation:
                receipts.append(
                    {
                        "message_key": self.messages[attachment["message"]]["key"],
                        "attachment_id": attachment["id"],
                        "unit": unit.unit,
                        "attachment_sha256": unit.attachment_sha256,
                        "content_sha256": unit.content_sha256,
                        "length": unit.length,
                    }
                )
        return receipts


def _senders(document: str) -> dict[str, str]:
    """The names of senders as the document shows them, by message."""
    return {
        message["id"]: message["sender"]
        for conversation in json.loads(document)["conversations"]
        for segment in conversation["segments"]
        for message in segment["messages"]
        if "sender" in message
    }
