"""An iCalendar file for programs that subscribe to one: written when a task changed, never read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatproc.errors import ChatprocError
from chatproc.publishing.files import content_of, replace
from chatproc.publishing.standing import for_a_file
from chatproc.shapes import shape

if TYPE_CHECKING:
    from chatproc.config import Config, IcsTarget
    from chatproc.publishing import Tally

_BEGINNING = shape([], "ics").encode().partition(b"END:")[0]


def publish_feed(config: Config, target: IcsTarget, tally: Tally) -> None:
    """Make the file say what the store says.

    Raises:
        ChatprocError: What stands there is somebody else's.
        OSError: It cannot be read or written.
    """
    tasks = for_a_file(config, target.keep_days)
    content = shape(tasks, "ics").encode()
    before = content_of(target.file)
    if before and not before.startswith(_BEGINNING):
        raise ChatprocError(
            "the file is no calendar of chatproc, so it is left as it is",
            where=str(target.file),
            hint="file of this entry of [[publish]] must be one that chatproc may replace: name another",
        )
    if content != before:
        replace(target.file, content)
        tally.writes += 1
    tally.tasks = len(tasks)
