"""When a connection is synced, and why not now: pure decisions over its row in the store and the clock.

Everything comes in as an argument, chance and the time too; times are milliseconds since 1970. Nothing here
reads a clock, a file or the store, so that a year of decisions is a test of a second.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from chatproc.connectors.base import FaultClass

Row: TypeAlias = dict[str, Any]
"""A connection as the store has it."""

Trigger: TypeAlias = Literal["tick", "watch", "nudge", "sync"]
State: TypeAlias = Literal["due", "waiting", "manual", "disabled", "paused", "stopped", "open", "running"]

LEASE = 60_000
"""How long a lease is held without being renewed; what a killed process holds is free after that."""

HOUR = 3_600_000
DAY = 24 * HOUR
LONGEST_BACKOFF = 6 * HOUR
OPEN_AFTER = 5
"""Failures in a row."""

# Two processes read one clock at two moments; only beyond this was it set back.
_SLACK = 60_000
_JITTER = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the configuration says of one connection.

    Attributes:
        toolkit: In lower case.
        id: The connection's name within its toolkit.
        enabled: Whether it is synced at all.
        interval: Milliseconds between two syncs, at least the toolkit's minimum; 0: never by itself.
        daily_requests: Requests a day.
        daily_items: Items a day.
        zone: In which a day begins and ends.
        mark: Tells `mark_of` configuration and credential, read anew.
    """

    toolkit: str
    id: str
    enabled: bool
    interval: int
    daily_requests: int
    daily_items: int
    zone: str
    mark: Callable[[], str]

    @property
    def name(self) -> str:
        """`imap/work`: what a person calls it."""
        return f"{self.toolkit}/{self.id}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a connection is synced now.

    Attributes:
        state: One word.
        why: One sentence for a person.
        at: When it will be due by itself; `None`: it will not.
        failing: Whether it waits because of failures.
    """

    state: State
    why: str
    at: int | None
    failing: bool = False

    def allows(self, trigger: Trigger, *, force: bool = False) -> bool:
        """Whether this trigger may sync now.

        A file or a webhook shortens the wait of a healthy connection only; a person may also shorten that of
        a failing one and, with force, try what is open or stopped. No one spends more than the day's budget.

        Args:
            trigger: Who asks.
            force: Asked for with `--force`.
        """
        if self.state == "due":
            return True
        if self.state in {"waiting", "manual"}:
            return trigger == "sync" or (trigger in {"watch", "nudge"} and not self.failing)
        return force and trigger == "sync" and self.state in {"open", "stopped"}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a run ended.

    Attributes:
        outcome: `done`; `paused`: the budget or the run's time was up; `failed`; `stopped` by a person.
        pages: Pages that were stored.
        more: Whether the source has more.
        spent: Whether the day's budget was used up.
        fault: The class of a failure.
        text: What a person is told of it.
        retry_after: Seconds that the source asked to wait.
        page_limit: The largest page that the source did not refuse as too large, where it ever did.
        ours: It failed on this side, at the store: no mark against the source.
    """

    outcome: Literal["done", "paused", "failed", "stopped"]
    pages: int = 0
    more: bool = False
    spent: bool = False
    fault: FaultClass | None = None
    text: str = ""
    retry_after: float | None = None
    page_limit: int | None = None
    ours: bool = False


# ── before a run ─────────────────────────────────────────────────────────────────────────────────────


def decide(  # noqa: PLR0911 - one for each state
    policy: Policy, row: Row | None, now: int
) -> Verdict:
    """Whether a connection is due, and if not, why, and when it will be.

    Args:
        policy: What the configuration says.
        row: What the store says; `None`: nothing yet.
        now: The wall clock.
    """
    if not policy.enabled:
        return Verdict("disabled", "enabled = false", None)
    if row is None:
        return _manual() if policy.interval == 0 else Verdict("due", "never synced yet", now)
    lease = row["lease"]
    # One that ends later than any lease can was taken before the clock was set back.
    if lease is not None and now < lease["until"] <= now + 2 * LEASE:
        return Verdict("running", f"synced right now by {lease['holder']}", None)
    if row["stopped_by"] is not None:
        return _after_refusal(policy, row, now)
    if row["last_attempt_at"] is not None and row["last_attempt_at"] > now + _SLACK:
        return _set_back(policy, row, now)
    if spent(policy, row, now):
        at = max(next_midnight(now, policy.zone), _due_at(policy, row, now))
        used = f"{row['requests_used']} requests and {row['items_used']} items"
        return Verdict("paused", f"paused until {moment(at, policy.zone)}: today's {used} are used up", at)
    return _by_time(policy, row, now)


def spent(policy: Policy, row: Row, now: int) -> bool:
    """Whether the day's budget is used up.

    Args:
        policy: Says how much there is.
        row: Says how much was used, and on which day.
        now: The wall clock.
    """
    requests, items = used(policy, row, now)
    return requests >= policy.daily_requests or items >= policy.daily_items


def used(policy: Policy, row: Row | None, now: int) -> tuple[int, int]:
    """Requests and items of today. A clock set back to yesterday gives no second budget.

    Args:
        policy: Says where the day begins.
        row: Says how much was used, and on which day.
        now: The wall clock.
    """
    if row is None or row["budget_day"] is None or row["budget_day"] < day_of(now, policy.zone):
        return 0, 0
    return row["requests_used"], row["items_used"]


def _manual() -> Verdict:
    return Verdict("manual", "interval_seconds = 0: synced by `chatproc sync` only", None)


def _after_refusal(policy: Policy, row: Row, now: int) -> Verdict:
    if row["stopped_by"] != policy.mark():
        return Verdict("due", "configuration or credential changed since it was refused", now)
    why = f"stopped until configuration or credential changes: {row['error_text']}"
    return Verdict("stopped", f"{why}; {_force(policy)}", None)


def _set_back(policy: Policy, row: Row, now: int) -> Verdict:
    if policy.interval == 0:
        return _manual()
    last = moment(row["last_attempt_at"], policy.zone)
    return Verdict("due", f"the clock was set back: the last sync began at {last}", now)


def _by_time(policy: Policy, row: Row, now: int) -> Verdict:
    at = _due_at(policy, row, now)
    if at > now and (row["breaker"] != "closed" or row["failures_in_row"]):
        return _backing_off(policy, row, at)
    if policy.interval == 0:
        return _manual()
    if at > now:
        return Verdict("waiting", f"not due before {moment(at, policy.zone)}", at)
    return Verdict("due", _reason(policy, row, at), now)


def _backing_off(policy: Policy, row: Row, at: int) -> Verdict:
    when, failed = moment(at, policy.zone), _failures(row)
    if row["breaker"] == "closed":
        return Verdict("waiting", f"waits until {when} after {failed}", at, failing=True)
    return Verdict("open", f"not tried before {when} after {failed}; {_force(policy)}", at, failing=True)


def _force(policy: Policy) -> str:
    return f"`chatproc sync {shlex.quote(policy.name)} --force` tries at once"


def _failures(row: Row) -> str:
    count = row["failures_in_row"]
    what = "a failure" if count == 1 else f"{count} failures in a row"
    return f"{what} ({row['error_class']}: {row['error_text']})"


def _reason(policy: Policy, row: Row, at: int) -> str:
    if row["breaker"] != "closed":
        return f"one try after {_failures(row)}"
    if row["last_attempt_at"] is None:
        return "never synced yet"
    if row["more_pending"]:
        return "the last run left more behind"
    return f"due since {moment(at, policy.zone)}"


def _due_at(policy: Policy, row: Row, now: int) -> int:
    """When the row wants its next sync, but never later than the configuration of today can mean.

    The bound mends a clock that was far ahead when the row was written, and makes a shortened interval count
    at once.
    """
    planned, last = row["next_due_at"], row["last_attempt_at"]
    if planned is None or last is None:
        return now
    bound: int = min(last, now) + _longest(policy, row, now)
    return min(int(planned), bound)


def _longest(policy: Policy, row: Row, now: int) -> int:
    """The longest wait after a last attempt that any rule gives."""
    if row["breaker"] != "closed" or row["error_class"] == "rate":
        return DAY
    if row["failures_in_row"]:
        return max(policy.interval * 3 // 2, backoff(policy.interval, row["failures_in_row"], 1.0))
    run = row["last_run"]
    if run is not None and run["outcome"] == "paused" and not _may_go_on(policy, row, now):
        return DAY + 2 * HOUR + policy.interval
    return policy.interval * 3 // 2


def _may_go_on(policy: Policy, row: Row, now: int) -> bool:
    """Whether the budget that paused it was raised on the same day."""
    return row["budget_day"] == day_of(now, policy.zone) and not spent(policy, row, now)


# ── after a run ──────────────────────────────────────────────────────────────────────────────────────


def settle(policy: Policy, row: Row, end: End, now: int, chance: float) -> Row:
    """What the store notes of a run: when the next is due, and how the connection stands.

    Args:
        policy: What the configuration said.
        row: The connection before the run.
        end: How it ended.
        now: The wall clock.
        chance: From -1 to 1; spreads what failed together.
    """
    noted = {
        "outcome": end.outcome,
        "failures_in_row": row["failures_in_row"],
        "breaker": row["breaker"],
        "page_limit": end.page_limit,
        "stopped_by": None,
        "error": None,
        "last_success": False,
        "more_pending": end.more,
        "next_due_at": None,
    }
    if end.outcome == "failed":
        noted["error"] = {"class": end.fault, "text": end.text}
        if end.ours:
            return {**noted, "stopped_by": row["stopped_by"], "next_due_at": _next(policy, now)}
        return {**noted, **_after_failure(policy, row, end, now, chance)}
    if end.outcome == "stopped":
        return {**noted, "stopped_by": row["stopped_by"], "next_due_at": now}
    if end.outcome == "done" or end.pages:
        noted.update(failures_in_row=0, breaker="closed", last_success=True)
    if end.spent and policy.interval:
        spread = phase(policy, min(policy.interval, HOUR))
        noted["next_due_at"] = next_midnight(now, policy.zone) + spread
    elif policy.interval:
        noted["next_due_at"] = now if end.more else _next(policy, now)
    return noted


def _after_failure(policy: Policy, row: Row, end: End, now: int, chance: float) -> Row:
    failures = row["failures_in_row"] + 1
    if end.fault == "auth":
        return {"failures_in_row": failures, "stopped_by": policy.mark()}
    if failures >= OPEN_AFTER:
        return {"failures_in_row": failures, "breaker": "open", "next_due_at": now + DAY}
    noted: Row = {"failures_in_row": failures, "next_due_at": _next(policy, now)}
    if failures > 1 and policy.interval:
        noted["next_due_at"] = now + backoff(policy.interval, failures, chance)
    if end.retry_after is not None:
        noted["next_due_at"] = max(noted["next_due_at"] or 0, now + _asked(end.retry_after))
    return noted


def _asked(seconds: object) -> int:
    """Milliseconds that a source asked to wait, whatever it sent: at most a day."""
    if not isinstance(seconds, (int, float)) or math.isnan(seconds):
        return 0
    return round(min(max(0.0, seconds), DAY / 1000) * 1000)


def backoff(interval: int, failures: int, chance: float) -> int:
    """Milliseconds to wait after so many failures in a row: twice as long each time, up to 6 hours.

    Args:
        interval: Of the connection, milliseconds.
        failures: At least 1; the first one waits the interval.
        chance: From -1 to 1; a tenth more or less.

    Example:
        >>> backoff(1_200_000, 1, 0.5), backoff(1_200_000, 3, 0.0), backoff(1_200_000, 4, 1.0)
        (1200000, 4800000, 10560000)
    """
    if failures <= 1:
        return interval
    doubled = interval << min(failures - 1, 32)
    return min(round(doubled * (1 + _JITTER * chance)), max(LONGEST_BACKOFF, interval))


def _next(policy: Policy, now: int) -> int | None:
    """The first point of the connection's own grid that leaves at least half an interval."""
    if policy.interval == 0:
        return None
    earliest = now + policy.interval // 2 + 1
    return earliest + (phase(policy, policy.interval) - earliest) % policy.interval


def phase(policy: Policy, length: int) -> int:
    """The connection's own place in a span, by its name: so that connections spread, and never drift.

    Args:
        policy: Says its name.
        length: Of the span, milliseconds.
    """
    if length == 0:
        return 0
    digest = hashlib.sha256(policy.name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % length


def mark_of(settings: Row, secret: str | None) -> str:
    """Eight hex digits that change with the configuration or the credential, and tell neither.

    Args:
        settings: The connection's entry, JSON values.
        secret: Its credential, if any.
    """
    text = json.dumps([settings, secret], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# ── the calendar ─────────────────────────────────────────────────────────────────────────────────────


def day_of(now: int, zone: str) -> str:
    """The date in a zone, `YYYY-MM-DD`.

    Args:
        now: Milliseconds since 1970.
        zone: An IANA name.

    Example:
        >>> day_of(1_782_864_000_000, "Asia/Shanghai"), day_of(1_782_864_000_000, "America/New_York")
        ('2026-07-01', '2026-06-30')
    """
    return _local(now, zone).date().isoformat()


def next_midnight(now: int, zone: str) -> int:
    """The first moment of the next day in a zone, also where clocks change then.

    Args:
        now: Milliseconds since 1970.
        zone: An IANA name.
    """
    today = _local(now, zone).date()
    day: date = today + timedelta(days=1)
    begin = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone))
    return round(begin.timestamp() * 1000)


def moment(time: int, zone: str) -> str:
    """A time as RFC 3339 in a zone.

    Args:
        time: Milliseconds since 1970.
        zone: An IANA name.

    Example:
        >>> moment(1_782_864_000_000, "Asia/Shanghai")
        '2026-07-01T08:00:00+08:00'
    """
    return _local(time, zone).isoformat(timespec="seconds")


def _local(time: int, zone: str) -> datetime:
    return datetime.fromtimestamp(time / 1000, ZoneInfo(zone))
