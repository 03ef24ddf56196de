"""The core without a store, for scripts and for engines: plan events in memory, resolve times in a text.

Pure: no file, no network, no clock, no state. Safe in threads and in worker processes.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from chatproc import _core
from chatproc.errors import ConfigError
from chatproc.results import Plan, ResolvedTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Plan", "ResolvedTime", "plan_events", "resolve_time"]

# Milliseconds from 1970 to the end of the year 9999.
_LAST = 253_402_300_799_999


def plan_events(lines: Iterable[bytes], options: Mapping[str, Any] | None = None) -> Plan:
    """Plan event lines: what would be sent to a model together, in which order and within which budget.

    Args:
        lines: Lines of `chatproc.event/1`, each as bytes, with or without its newline. They are numbered
            from 1 and read in order; one that cannot be accepted is in the plan's `quarantined`.
        options: A flat dict with keys of `[context]` and `[processing]` and `start_at` (Unix seconds or
            RFC 3339); `batching` and `timezone` too. What is left out has the default of the configuration.
            Sizes are in characters (Unicode scalar values).

    Returns:
        Segments, groups, batches and fingerprints. The same lines give the same plan, in any order and
        however often they are repeated.

    Raises:
        ConfigError: An option is unknown or out of its bounds.
        TypeError: A line is not bytes.

    Example:
        >>> plan_events([b"not json"]).quarantined[0]["reason"]
        'not-json'
    """
    return Plan(**_core.plan_events(lines, _flat(options or {})))


def resolve_time(
    text: str, sent_at: float | str | datetime, timezone: str, lang: str | None = None
) -> ResolvedTime:
    """Resolve the times that a text names, counted from when it was sent.

    Args:
        text: A phrase or a whole message, Chinese or English; what is understood: `docs/times.md`.
        sent_at: When it was sent: Unix seconds, RFC 3339 with an offset, or an aware datetime.
        timezone: The IANA zone in which dates and clock times are meant and written.
        lang: `"zh"`, `"en"`, `"en-US"` or `"en-GB"` (who read 3/4 each their way), or `None`: seen from the
            text.

    Returns:
        One time in `start` and `due` (`check` is `computed`), several in `readings` (`ambiguous`), or none
        (`unresolved`). Each is RFC 3339 with an offset, or `YYYY-MM-DD` where no clock time is named.

    Raises:
        ConfigError: The zone or the language is unknown, or `sent_at` is no instant.

    Example:
        >>> time = resolve_time("请于周五下午5点前提交", "2026-07-01T10:00:00+08:00", "Asia/Shanghai")
        >>> time.due, time.original, time.check
        ('2026-07-03T17:00:00+08:00', '周五下午5点', 'computed')
        >>> resolve_time("not Friday", 1782871200, "Asia/Shanghai", "en").negated
        True
    """
    return ResolvedTime(**_core.resolve_time(text, _milliseconds(sent_at), timezone, lang))


def _milliseconds(sent_at: float | str | datetime) -> int:
    """An instant in milliseconds since 1970."""
    try:
        instant = datetime.fromisoformat(sent_at) if isinstance(sent_at, str) else sent_at
        if isinstance(instant, datetime):
            if instant.utcoffset() is None:
                raise ConfigError(
                    f"sent_at {str(sent_at)!r} has no offset", hint="add one, such as +08:00 or Z"
                )
            instant = instant.timestamp()
        milliseconds = round(instant * 1000)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"sent_at {str(sent_at)!r} is no instant",
            hint="give Unix seconds, RFC 3339 with an offset, or an aware datetime",
        ) from None
    if abs(milliseconds) > _LAST:
        raise ConfigError(f"sent_at {str(sent_at)!r} lies outside the years 1 to 9999")
    return milliseconds


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with `start_at` in seconds."""
    flat = json.loads(json.dumps(dict(options), default=str))
    start_at = flat.get("start_at")
    if isinstance(start_at, str):
        from chatproc.config import parse_start_at

        flat["start_at"] = parse_start_at(start_at) / 1000
    return dict(flat)
