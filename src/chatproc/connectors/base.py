"""What a connector is: it fetches pages of a source and turns them into events; it stores nothing.

The loop owns everything else: when to sync, the budget, the lease, the cursor and its events, which are
committed together. A page that fails moves no cursor, so a connector may be asked for the same page again.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from chatproc.errors import ChatprocError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from chatproc.config import ConnectionConfig

__all__ = ["Budget", "BudgetSpentError", "FaultClass", "Page", "Pull", "SyncError", "Toolkit", "pages_of"]

Cursor: TypeAlias = dict[str, Any]
"""A connector's own place in its source; any JSON object. Empty before the first sync."""

FaultClass: TypeAlias = Literal["auth", "rate", "network", "server", "too_large", "bad_data", "bug"]

FAULTS: frozenset[str] = frozenset(get_args(FaultClass))
"""Their names."""


@dataclass(frozen=True, slots=True)
class Page:
    """What one step through a source gave.

    Attributes:
        events: Documents of `chatproc.event/1`. Each is checked like any line of a batch: what is no event
            goes into the quarantine and stops nothing. `bytes` are a line as it is: so a connector hands
            over an entry of the source that it does not understand.
        cursor: The place behind this page; stored in the same transaction as the events.
        more: Whether the source has more for this run.
    """

    events: Sequence[dict[str, Any] | bytes]
    cursor: Cursor
    more: bool = False


async def pages_of(steps: AsyncIterator[list[bytes]], cursor: Cursor, stored: Cursor) -> AsyncIterator[Page]:
    """Each step's lines with the place behind them; what changes nothing is no page.

    Args:
        steps: Lines of events, step by step. Each step moves `cursor`, in place.
        cursor: The connector's place, as the steps move it.
        stored: The place that is stored by now.
    """
    async for lines in steps:
        if lines or cursor != stored:
            stored = copy.deepcopy(cursor)
            yield Page(lines, stored, more=True)
    yield Page([], copy.deepcopy(cursor), more=False)


class SyncError(ChatprocError):
    """A source that could not be read, with the class that decides what becomes of the connection.

    Attributes:
        fault: `auth`: stop until the configuration or the credential changes. `rate`: wait `retry_after`.
            `network`, `server`: try again with growing waits. `too_large`: ask for half of it. `bad_data`:
            the answer makes no sense. `bug`: ours.
        retry_after: Seconds that the source asked to wait, if it did.

    Example:
        >>> SyncError("the server is busy", fault="rate", retry_after=30).fault
        'rate'
    """

    def __init__(
        self,
        what: str,
        *,
        fault: FaultClass,
        where: str | None = None,
        hint: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Say what happened; never with a secret or a message's text in it."""
        super().__init__(what, where=where, hint=hint)
        self.fault = fault
        self.retry_after = retry_after


class BudgetSpentError(Exception):
    """The day's requests or items are used up. No fault: the run ends and keeps its place."""


class Budget(Protocol):
    """What a run may still use. Given to `pull` by the loop."""

    async def request(self) -> None:
        """Reserve one request; to be awaited before each one, also before one that may fail.

        Raises:
            BudgetSpentError: None is left. To be let through.
        """

    def page_size(self, usual: int) -> int:
        """How many items to ask for at once; at least 1.

        It is `usual`, or less where the source found that too large or fewer items are left for the day.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """Everything that a connector is told.

    Attributes:
        config: The entry under `[[connections]]`, checked by the toolkit's own model.
        cursor: From the last page that was stored; `{}` before the first.
        budget: What may still be used.
        since: Milliseconds since 1970; how far back the first sync reaches.
        now: The wall clock, milliseconds since 1970.
        secret: Reads the connection's password or token anew; `None` when none is configured. Raises
            `CredentialError`.
        archive_root: `input.archive_root`; attachment paths are relative to it.
        timezone: `rules.timezone`, an IANA name.
    """

    config: ConnectionConfig
    cursor: Cursor
    budget: Budget
    since: int
    now: Callable[[], int]
    secret: Callable[[], str | None]
    archive_root: Path | None = None
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Toolkit:
    """One kind of source: how it is called, configured and pulled.

    Attributes:
        name: Lower case, as in `toolkit = "imap"`.
        minimum_interval: Seconds; no connection of it syncs more often by itself.
        settings: The model that checks an entry under `[[connections]]`.
        pull: Yields pages until the source has no more for now. Closing it early must leave nothing open.

    Example:
        >>> async def pull(ask):
        ...     yield Page(events=[], cursor={"seen": 1})
        >>> from chatproc.config import ConnectionConfig
        >>> Toolkit("nothing", 60, ConnectionConfig, pull).name
        'nothing'
    """

    name: str
    minimum_interval: int
    settings: type[ConnectionConfig]
    pull: Callable[[Pull], AsyncIterator[Page]] = field(repr=False)
