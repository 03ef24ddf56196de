"""What is asked of the store as a whole: counts, soundness, a copy, what became of its messages.

Reads only, beside a round too; nothing heavy is imported: `status` is to be there at once.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from chatproc import _core
from chatproc.errors import ChatprocError
from chatproc.given import told, wall_clock
from chatproc.results import Backup, Conversations, Coverage, Status, Verdict, Way

if TYPE_CHECKING:
    from pathlib import Path

    from chatproc.config import Config
    from chatproc.given import Watch


def status(config: Config) -> Status:
    """Counts of what the store holds, cheap: reads no batch. Without a store all are zero.

    Args:
        config: From `load_config`.
    """
    found = _core.status(config.storage.state)
    if config.connections:
        from chatproc.loop.standing import stand

        found["connections"] = stand(config, found["connections"], wall_clock())
    else:
        found["connections"] = []
    return Status(found)


def verify(config: Config, *, progress: Watch = None) -> Verdict:
    """Compare the whole store and the exported files with what was written; reads only, asks no one.

    Works beside a round. What it compares, and what it cannot see, is told in docs/verify.md. Without a store
    there is nothing to look at, and nothing is broken.

    Args:
        config: From `load_config`.
        progress: Told how many rows were looked at.

    Returns:
        What was looked at and what was found; its `exit_code` is that of `chatproc verify`.

    Raises:
        StoreVersionError: Another version of the program wrote the store.
        ChatprocError: The state file cannot be opened at all.

    Example:
        >>> verify(config).breaks  # doctest: +SKIP
        []
    """
    found = _core.verify(config.storage.state, config.storage.output, told(progress, "verify", "rows"))
    return Verdict(**found)


def backup(config: Config, file: str | Path, *, progress: Watch = None) -> Backup:
    """Copy the whole store, as it is at one moment, to one file that only its owner can read.

    Works beside a round and while connections are pulled; waits for no one and keeps no one waiting. The copy
    stands under its name whole and durable, or not at all. How to go back to it is told in
    docs/reliability.md.

    Args:
        config: From `load_config`.
        file: Where the copy goes; no file may have that name.
        progress: Told how many pages are copied.

    Raises:
        ConfigError: A file with that name is there already.
        ChatprocError: There is no store yet, or it is damaged.
        OSError: The copy cannot be written.

    Example:
        >>> backup(config, "/mnt/stick/2026-07-01.db").bytes  # doctest: +SKIP
        4096000
    """
    unique = f"{os.getpid()}-{time.time_ns()}"
    copied = _core.backup(config.storage.state, file, unique, told(progress, "backup", "pages"))
    return Backup(**copied)


def explain(config: Config, message_key: str) -> Way:
    """Tell one message's whole way: where it was read, its segment, its commits, its tasks, its outcome.

    Args:
        config: From `load_config`.
        message_key: As the collector names it.

    Raises:
        ChatprocError: No message has that key.

    Example:
        >>> explain(config, "qq:10000:999000:7550123").why  # doctest: +SKIP
        'stand-in read it and found no task: only talk'
    """
    way = _core.explain(config.storage.state, message_key, config.rules.timezone)
    if way is None:
        raise ChatprocError(
            f"no message has the key {message_key!r}",
            where=str(config.storage.state),
            hint="new batches are read by `chatproc once`; lines that were refused: `chatproc quarantine`",
        )
    return Way(way)


def coverage(  # noqa: PLR0913 - a conversation has three names, a page three bounds
    config: Config,
    platform: str,
    account_id: str,
    conversation_id: str,
    *,
    outcome: str | None = None,
    limit: int = 50,
    after: str | None = None,
) -> Coverage:
    """Tell what became of the messages of one conversation: the counts of all, and a page of them with why.

    Args:
        config: From `load_config`.
        platform: Of the conversation, as the collector names it.
        account_id: Whose conversation it is.
        conversation_id: The platform's id of it.
        outcome: Only messages with this outcome, a word of `status`.
        limit: Messages of a page, 1 to 1000.
        after: `next_after` of the page before.

    Raises:
        ChatprocError: There is no such conversation, outcome or message to go on after.

    Example:
        >>> coverage(config, "qq", "10000", "999000").outcomes["read-no-task"]  # doctest: +SKIP
        17
    """
    query = {
        "platform": platform,
        "account_id": account_id,
        "conversation_id": conversation_id,
        "outcome": outcome,
        "limit": limit,
        "after": after,
    }
    found = _core.coverage(config.storage.state, query, config.rules.timezone)
    if found is None:
        raise ChatprocError(
            f"{platform!r}, account {account_id!r}, has no conversation {conversation_id!r}",
            where=str(config.storage.state),
            hint="list_conversations(config) gives those that there are",
        )
    return Coverage(**found)


def list_conversations(
    config: Config, *, query: str | None = None, limit: int = 50, after: int | None = None
) -> Conversations:
    """List the conversations that the store holds messages of, by name.

    Args:
        config: From `load_config`.
        query: Part of a name or id.
        limit: Conversations of a page, 1 to 1000.
        after: `next_after` of the page before.

    Raises:
        ChatprocError: The page cannot be understood.

    Example:
        >>> [it["name"] for it in list_conversations(config).conversations]  # doctest: +SKIP
        ['课程群']
    """
    wanted = {"query": query, "limit": limit, "after": after}
    return Conversations(**_core.conversations(config.storage.state, wanted))
