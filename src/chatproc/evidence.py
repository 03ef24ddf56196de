"""The pages of attachments that a task rests on, read anew from the archive, if the bytes are the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from chatproc.errors import ChatprocError, EvidenceError

if TYPE_CHECKING:
    from chatproc.config import Config
    from chatproc.results import Json, Task


@dataclass(frozen=True, slots=True)
class EvidencePage:
    """One unit of an attachment that a task cites."""

    attachment_id: str
    name: str | None
    unit: str
    """`p2`: a page; `b3`: a block; `i1`: a picture."""
    text: str
    """As it was given to the model; of a picture what it is."""
    total: int
    """Units of the attachment."""
    note: str
    """What the reader says of the whole, may be empty."""

    def to_dict(self) -> Json:
        """The page as a JSON document."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def read_evidence(config: Config, task: Task, number: int) -> EvidencePage:
    """Read one entry of a task's `attachment_evidence` again.

    Args:
        config: Says where the archive lies and what a reading may take.
        task: From `get_task`.
        number: Of the entry, from 1.

    Raises:
        EvidenceError: The file is gone, is not the same any more, or cannot be read.
        ChatprocError: The task has no such entry.

    Example:
        >>> read_evidence(config, task, 1).text[:6]  # doctest: +SKIP
        '实验报告模板'
    """
    from chatproc.attachments import Archive, Limits, UnreadableError

    entries = task.record["attachment_evidence"]
    if not 1 <= number <= len(entries):
        raise ChatprocError(f"the task has no page {number} of an attachment", where=task.task_id)
    entry = entries[number - 1]
    asked = {
        "path": entry["path"],
        "sha256": entry["sha256"],
        "type": PurePosixPath(entry["name"] or "").suffix.lstrip("."),
    }
    limits = Limits(**config.attachments.model_dump())
    try:
        with Archive(config.input.archive_root, limits) as archive:
            place = int(entry["unit"].lstrip("pbi"))
            reading = archive.read(asked, place, 1)
            if place in reading.failed:
                raise reading.failed[place]
    except UnreadableError as error:
        raise EvidenceError(
            f"the page cannot be read: {error.words}",
            where=f"{entry['path'] or entry['name']}, {entry['unit']}",
        ) from None
    return EvidencePage(
        attachment_id=entry["attachment_id"],
        name=entry["name"],
        unit=entry["unit"],
        text="\n".join(unit.text for unit in reading.units),
        total=reading.total,
        note=reading.note,
    )
