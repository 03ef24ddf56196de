"""Messages with what was said around them, as a person reads a conversation; reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatproc.store import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from chatproc.config import Config
    from chatproc.results import Json, Way


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Messages that are proven to follow each other, or one alone."""

    ways: list[Way]
    """In order."""
    asked: frozenset[str]
    """Keys of those that were asked for; the others stand around them."""
    more_before: bool
    """Whether the segment holds earlier messages."""
    more_after: bool
    """Whether it holds later ones."""

    def to_dict(self) -> Json:
        """The excerpt as a JSON document."""
        return {
            "messages": [way.to_dict() for way in self.ways],
            "asked": sorted(self.asked),
            "more_before": self.more_before,
            "more_after": self.more_after,
        }


def read_excerpts(config: Config, message_keys: Sequence[str], *, around: int = 3) -> list[Excerpt]:
    """Messages, each with those around it in its segment; what overlaps is one excerpt.

    Args:
        config: From `load_config`.
        message_keys: As the collector names them.
        around: How many messages before and after each.

    Raises:
        ChatprocError: No message has one of the keys.

    Example:
        >>> keys = task.record["source_message_keys"]  # doctest: +SKIP
        >>> [way.to_dict()["text"] for way in read_excerpts(config, keys)[0].ways]  # doctest: +SKIP
        ['@all', '请大家周五 17:00 前把报告交到 302', '收到']
    """
    known: dict[str, Way] = {}

    def way_of(key: str) -> Way:
        if key not in known:
            known[key] = explain(config, key)
        return known[key]

    excerpts: list[Excerpt] = []
    for key in message_keys:
        if not any(key in excerpt.asked for excerpt in excerpts):
            excerpts.append(_around(way_of, key, set(message_keys), around))
    return excerpts


def _around(way_of: Callable[[str], Way], key: str, wanted: set[str], around: int) -> Excerpt:
    middle = way_of(key)
    before = list(_walk(way_of, middle, "previous", wanted, around))
    after = list(_walk(way_of, middle, "next", wanted, around))
    ways = [*reversed(before), middle, *after]
    keys = {str(way.document["message_key"]) for way in ways}
    return Excerpt(
        ways=ways,
        asked=frozenset(keys & wanted),
        more_before=_neighbour(ways[0], "previous") is not None,
        more_after=_neighbour(ways[-1], "next") is not None,
    )


def _walk(
    way_of: Callable[[str], Way], way: Way, direction: str, wanted: set[str], around: int
) -> Iterator[Way]:
    """So many messages on, counted anew from each that was asked for."""
    left = around
    key = _neighbour(way, direction)
    while left and key is not None:
        way = way_of(key)
        yield way
        left = around if key in wanted else left - 1
        key = _neighbour(way, direction)


def _neighbour(way: Way, direction: str) -> str | None:
    segment = way.document["segment"]
    return None if segment is None else segment[direction]
