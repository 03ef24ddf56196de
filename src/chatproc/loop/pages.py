"""What a connector may hand over: a page is looked at before the store gets it.

A cursor is read again at every look at a connection: one that cannot be read back would lock it for ever.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from chatproc.connectors.base import Page, SyncError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chatproc.connectors.base import Cursor

MOST_EVENTS = 10_000
"""Events of a page; a run can only stop between two of them."""

LARGEST_CURSOR = 4 * 1024 * 1024
"""Bytes of its JSON."""

DEEPEST_CURSOR = 100
"""Arrays and objects inside each other; the store reads no more than 127."""

_LEAST, _MOST = -(2**63), 2**64 - 1


def lines_of(page: Page) -> list[bytes]:
    """The events of a page as lines of a batch.

    Args:
        page: As a connector yielded it.

    Raises:
        SyncError: It is no page.
    """
    if not isinstance(page, Page) or not isinstance(page.more, bool):
        raise _bug("gave something that is no page")
    lines = [_line(event) for event in islice(page.events, MOST_EVENTS + 1)]
    if len(lines) > MOST_EVENTS:
        raise _bug(f"gave more than {MOST_EVENTS} events in one page")
    return lines


def cursor_of(page: Page) -> Cursor:
    """The place behind a page, as JSON gives it back.

    Args:
        page: As a connector yielded it.

    Raises:
        SyncError: It is no cursor, or one that the store could not read again.
    """
    if not isinstance(page.cursor, dict):
        raise _bug("gave a cursor that is no JSON object")
    try:
        text = json.dumps(page.cursor, ensure_ascii=False, allow_nan=False).encode()
        cursor: Cursor = json.loads(text, parse_int=_whole)
    except (TypeError, ValueError, RecursionError) as error:
        raise _bug(f"gave a cursor that JSON cannot carry ({type(error).__name__})") from error
    if len(text) > LARGEST_CURSOR or _depth(cursor) > DEEPEST_CURSOR:
        raise _bug("gave a cursor that is too large or too deep")
    return cursor


def _line(event: dict[str, Any] | bytes) -> bytes:
    """What is no text becomes no UTF-8, which the core refuses as such."""
    if isinstance(event, bytes):
        return event
    if not isinstance(event, dict):
        raise _bug("gave an event that is neither a document nor bytes")
    try:
        return json.dumps(event, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise _bug(f"gave an event that JSON cannot carry ({type(error).__name__})") from error


def _whole(digits: str) -> int:
    number = int(digits)
    if not _LEAST <= number <= _MOST:
        raise ValueError
    return number


def _depth(cursor: Cursor) -> int:
    depth = 0
    level: list[Iterable[Any]] = [cursor.values()]
    while level:
        depth += 1
        inside = [child for values in level for child in values if isinstance(child, (dict, list))]
        level = [child.values() if isinstance(child, dict) else child for child in inside]
    return depth


def _bug(what: str) -> SyncError:
    return SyncError(f"the connector {what}", fault="bug")
