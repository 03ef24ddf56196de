"""Lines that could not be taken in: listed, tried again, taken off the list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatproc import _core
from chatproc.pipeline import Writer
from chatproc.results import QuarantinedLine

if TYPE_CHECKING:
    from chatproc.config import Config
    from chatproc.results import Json


def quarantine(config: Config) -> list[QuarantinedLine]:
    """All refused lines, in the order in which they were met.

    Args:
        config: From `load_config`.
    """
    return [_quarantined(line) for line in _core.quarantine(config.storage.state)]


def quarantined_line(config: Config, line_id: int) -> QuarantinedLine:
    """One refused line.

    Args:
        config: From `load_config`.
        line_id: Its number in the quarantine.

    Raises:
        ChatprocError: No line has that number.
    """
    return _quarantined(_core.quarantined(config.storage.state, line_id))


def retry_quarantined(config: Config, line_id: int) -> Json:
    """Take a refused line in again; what is known may have changed since.

    Args:
        config: From `load_config`.
        line_id: Its number in the quarantine.

    Returns:
        `id`, `outcome` (`accepted`, `repeat` or `refused`), `reason` and `explanation` when still refused.

    Raises:
        StateLockedError: A round is at work.
        ChatprocError: No line has that number.
    """
    quarantined_line(config, line_id)
    with Writer(config) as writer:
        return writer.store.retry(line_id, config.input.max_line_bytes)


def discard_quarantined(config: Config, line_id: int) -> None:
    """Take a refused line off the list for good; when it comes again it is a repeat.

    Args:
        config: From `load_config`.
        line_id: Its number in the quarantine.

    Raises:
        StateLockedError: A round is at work.
        ChatprocError: No line has that number.
    """
    quarantined_line(config, line_id)
    with Writer(config) as writer:
        writer.store.discard(line_id)


def _quarantined(line: tuple[Json, bytes | None]) -> QuarantinedLine:
    return QuarantinedLine(**line[0], bytes=line[1])
