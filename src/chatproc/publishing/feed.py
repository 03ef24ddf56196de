"""An iCalendar file for programs that subscribe to one: written when a task changed, never read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatproc.publishing.files import content_of, replace
from chatproc.publishing.standing import for_a_file
from chatproc.shapes import shape

if TYPE_CHECKING:
    from chatproc.config import Config, IcsTarget
    from chatproc.publishing import Tally


def publish_feed(config: Config, target: IcsTarget, tally: Tally) -> None:
    """Make the file say what the store says."""
    tasks = for_a_file(config, target.keep_days)
    content = shape(tasks, "ics").encode()
    if content != content_of(target.file):
        replace(target.file, content)
        tally.writes += 1
    tally.tasks = len(tasks)
