"""The core without a store: plan events that are only in memory, for scripts and for engines.

Pure: no file, no network, no clock, no state. Safe in threads and in worker processes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from chatproc import _core
from chatproc.results import Plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Plan", "plan_events"]


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


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with `start_at` in seconds."""
    flat = json.loads(json.dumps(dict(options), default=str))
    start_at = flat.get("start_at")
    if isinstance(start_at, str):
        from chatproc.config import parse_start_at

        flat["start_at"] = parse_start_at(start_at) / 1000
    return dict(flat)
