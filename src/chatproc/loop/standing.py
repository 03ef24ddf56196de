"""How connections stand: each with its state, why it is not synced now, and when it will be, for a person.

It reads and decides nothing: the rows come from the store, the verdicts from `due`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatproc.loop import due
from chatproc.loop.sync import policy_of, without_the_dead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.config import Config, ConnectionConfig
    from chatproc.loop.due import Row
    from chatproc.results import Json


def rows_by_name(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """The store's rows by toolkit and id, without leases of processes that are gone.

    Args:
        rows: As the store has them.
    """
    return {(row["toolkit"], row["id"]): without_the_dead(row) for row in rows}


def stand(config: Config, rows: Sequence[Row], now: int) -> list[Json]:
    """Every configured connection, in the order of the configuration.

    Args:
        config: From `load_config`.
        rows: As the store has them.
        now: Milliseconds since 1970.
    """
    known = rows_by_name(rows)
    return [
        _stands(config, connection, known.get((connection.toolkit, connection.id)), now)
        for connection in config.connections
    ]


def _stands(config: Config, connection: ConnectionConfig, row: Row | None, now: int) -> Json:
    policy = policy_of(config, connection)
    verdict = due.decide(policy, row, now)
    requests, items = due.used(policy, row, now)

    def told(name: str) -> str | None:
        at = None if row is None else row[name]
        return None if at is None else due.moment(at, policy.zone)

    def counted(name: str) -> int:
        return 0 if row is None else int(row[name])

    return {
        "toolkit": policy.toolkit,
        "id": policy.id,
        "enabled": policy.enabled,
        "state": verdict.state,
        "why": verdict.why,
        "last_attempt_at": told("last_attempt_at"),
        "last_success_at": told("last_success_at"),
        "next_due_at": None if verdict.at is None else due.moment(verdict.at, policy.zone),
        "budget": {
            "day": due.day_of(now, policy.zone),
            "requests_used": requests,
            "requests_left": max(0, policy.daily_requests - requests),
            "items_used": items,
            "items_left": max(0, policy.daily_items - items),
        },
        "failures_in_row": counted("failures_in_row"),
        "breaker": "closed" if row is None else row["breaker"],
        "more_pending": False if row is None else bool(row["more_pending"]),
        "last_error": _error(row, policy.zone),
        "counters": {name: counted(name) for name in ("runs", "written", "repeats", "quarantined")},
        "last_run": _run(row, policy.zone),
    }


def _error(row: Row | None, zone: str) -> Json | None:
    if row is None or row["error_class"] is None:
        return None
    at = None if row["error_at"] is None else due.moment(row["error_at"], zone)
    return {"class": row["error_class"], "text": row["error_text"], "at": at}


def _run(row: Row | None, zone: str) -> Json | None:
    run = None if row is None else row["last_run"]
    if run is None:
        return None
    names = ("trigger", "outcome", "read", "written", "repeats", "quarantined", "requests", "more_pending")
    ended = None if run["ended"] is None else due.moment(run["ended"], zone)
    return {
        **{name: run[name] for name in names},
        "started": due.moment(run["started"], zone),
        "ended": ended,
    }
