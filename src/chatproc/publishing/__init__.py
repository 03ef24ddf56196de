"""`publish`: tasks to where people look for them, and what they decide there back into the store.

A target is read first, then written; one that stands as it should costs no write. Everything of the store
goes through the public functions, everything of a task through `chatproc.shapes`.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from chatproc.errors import ChatprocError, ConfigError, CredentialError
from chatproc.results import PublishReport

if TYPE_CHECKING:
    from chatproc.config import Config, Target
    from chatproc.results import Json

_log = logging.getLogger(__name__)


@dataclass
class Tally:
    """What one target came to, counted while it is at work."""

    tasks: int = 0
    """That stand there now."""
    writes: int = 0
    """Tasks written to a server; files replaced."""
    returned: int = 0
    """Statuses that were set there and are in the store now."""
    left: int = 0
    """Tasks that could not be written; the next publish tries again."""
    requests: int = 0


def publish(config: Config, target: str | None = None) -> PublishReport:
    """Publish to one target of `[[publish]]`, or to all.

    Args:
        config: From `load_config`.
        target: Its name; `None`: all.

    Returns:
        How each came out; its `exit_code` is that of `chatproc publish`. A target that fails keeps no other
        from its turn.

    Raises:
        ConfigError: No target has that name.

    Example:
        >>> publish(config, "phone").targets[0]["writes"]  # doctest: +SKIP
        0
    """
    names = [entry.name for entry in config.publish]
    if target is not None and target not in names:
        there = ", ".join(names) or "there is none"
        raise ConfigError(
            f"no target is called {target!r}", where=str(config.file), hint=f"[[publish]]: {there}"
        )
    wanted = [entry for entry in config.publish if target in {None, entry.name}]
    return PublishReport([_one(config, entry) for entry in wanted])


def _one(config: Config, target: Target) -> Json:
    tally = Tally()
    error = None
    try:
        _work(config, target, tally)
    except (ChatprocError, OSError) as failure:
        kind = "auth" if isinstance(failure, CredentialError) else "failed"
        told = failure if isinstance(failure, ChatprocError) else _of_the_system(failure)
        error = {"class": kind, "text": str(told), "hint": told.hint}
        _log.debug("%s failed", target.name, exc_info=failure)
    outcome = "failed" if error else "part" if tally.left else "done"
    return {
        "name": target.name,
        "kind": target.kind,
        "outcome": outcome,
        **asdict(tally),
        "error": error,
    }


def _of_the_system(failure: OSError) -> ChatprocError:
    """A failure of the system in words, without its number."""
    return ChatprocError(failure.strerror or type(failure).__name__, where=failure.filename)


def _work(config: Config, target: Target, tally: Tally) -> None:
    from chatproc.config import CaldavTarget, MarkdownTarget

    if isinstance(target, CaldavTarget):
        from chatproc.publishing.tasklist import publish_list

        publish_list(config, target, tally)
    elif isinstance(target, MarkdownTarget):
        from chatproc.publishing.vault import publish_note

        publish_note(config, target, tally)
    else:
        from chatproc.publishing.feed import publish_feed

        publish_feed(config, target, tally)
