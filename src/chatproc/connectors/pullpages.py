"""Pages of ChatLab's Pull protocol: what an answer holds, and from where the next one is asked for.

What a server says of the next page is believed only as far as the page bears it out.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from chatproc.importers.values import members, milliseconds, string, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.importers.base import Message

__all__ = ["Spot", "answer_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """From where in a stretch of time the next page is asked for.

    Attributes:
        low: The first second of the stretch.
        since: What is asked for; a second before what is still to be read.
        end: The last second of the stretch; `None`: whatever there is.
        offset: How many messages from `since` on are left out.
        until: The server's own upper end for this walk, which keeps its pages from drifting.
        last: The second in which the last page ended.
        edge: Keys of messages without an id in that second, so that equal ones are counted on.
        is_rising: Whether the last page began with its oldest message.
    """

    low: int
    since: int
    end: int | None
    offset: int = 0
    until: int | None = None
    last: int | None = None
    edge: list[str] = field(default_factory=list)
    is_rising: bool = True

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Self:
        """From a cursor."""
        return cls(**kept)

    def as_json(self) -> dict[str, Any]:
        """For a cursor."""
        return asdict(self)

    def query(self) -> dict[str, str]:
        """The parameters of the request."""
        end = self.end + 1 if self.end is not None else self.until
        asked = {"since": self.since, "offset": self.offset, "end": end}
        return {name: str(value) for name, value in asked.items() if value}

    def goes_on(self, first: int) -> bool:
        """Whether a page that begins with this second follows the last one, and does not overlap it."""
        if not self.offset or self.last is None:
            return False
        return first >= self.last if self.is_rising else first <= self.last

    def next(
        self, sync: dict[str, Any], told: Sequence[Message], rows: int, *, has_more: bool, latest: int
    ) -> Self | None:
        """The place of the next page; `None`: there is none.

        Args:
            sync: The block of that name in the answer; `{}` when there is none.
            told: The messages of the page that an earlier one had not; in the server's order.
            rows: How many rows the page had.
            has_more: Whether there is a next page, as the server says it.
            latest: No second after this one is believed.
        """
        seconds = [message.sent_at // 1000 for message in told]
        is_beyond = self.end is not None and bool(seconds) and min(seconds) > self.end
        if not has_more or is_beyond:  # beyond: the server knows no `end`
            return None
        is_rising = all(earlier <= later for earlier, later in pairwise(seconds))
        since, offset = self._named(sync, seconds if is_rising else None, rows)
        if since > latest or (since, offset) == (self.since, self.offset):
            return None
        return replace(
            self,
            since=since,
            offset=offset,
            until=self.until or (milliseconds(sync.get("watermark")) or 0) // 1000 or None,
            last=seconds[-1] if seconds else self.last,
            edge=_edge(self.edge, told),
            is_rising=is_rising if seconds else self.is_rising,
        )

    def _named(self, sync: dict[str, Any], seconds: list[int] | None, rows: int) -> tuple[int, int]:
        """`since` and `offset` as the server names them, no further than the rows of the page reach.

        Args:
            sync: The block of that name.
            seconds: Of the rows that are new; none where the page does not rise.
            rows: How many rows the page had.
        """
        named, offset = (milliseconds(sync.get("nextSince")) or 0) // 1000, whole(sync.get("nextOffset"))
        is_new = bool(seconds) or not rows
        if seconds is not None and is_new and named > self.since:
            since = min([named, *seconds[-1:]])
            # Whole seconds: whether the server leaves its own `nextSince` out is not told.
            since = since if offset else since - 1
            if since > self.since:
                return since, offset or 0
        if offset is None or offset <= self.offset or not is_new:
            offset = self.offset + rows
        return self.since, offset if rows else self.offset


def _edge(edge: list[str], told: Sequence[Message]) -> list[str]:
    """The last key of each kind of equal messages in the last second."""
    if not told:
        return edge
    last = told[-1].sent_at // 1000
    keys = [message.key for message in told if message.message_id is None and message.sent_at // 1000 == last]
    return list({key.rpartition(".")[0]: key for key in keys}.values())


def answer_of(content: bytes) -> dict[str, Any]:
    """The answer as one object, from JSON or JSON Lines.

    Raises:
        ValueError: It is neither.
    """
    try:
        said = json.loads(content)
    except ValueError:
        said = None
    if isinstance(said, dict) and "_type" not in said:
        return said
    return _joined(content)


def _joined(content: bytes) -> dict[str, Any]:
    joined: dict[str, Any] = {"messages": [], "members": []}
    texts = [text for text in content.decode().split("\n") if text.strip() and not text.startswith("#")]
    if texts and string(members(json.loads(texts[0])).get("_type")) == "":
        raise ValueError
    for text in texts:
        try:
            line = members(json.loads(text))
        except ValueError:
            line = {}
        kind = line.get("_type")
        if kind == "header":
            joined["meta"] = line.get("meta")
        elif kind == "member":
            joined["members"].append(line)
        elif kind == "sync":
            joined["sync"] = line
        else:
            joined["messages"].append(line if kind == "message" else text)
    return joined
