"""When a connection is synced: properties of the decisions, over any row, any clock and any day."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatproc.loop import due
from chatproc.loop.due import DAY, HOUR, End, Policy, Row, backoff, day_of, decide, next_midnight, settle

SECOND = 1000
NOW = 1_782_864_000_000
"""2026-07-01T08:00:00+08:00."""
FAR = 253_000_000_000_000
ZONES = ("Asia/Shanghai", "UTC", "America/Havana", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia")


def policy(**more: Any) -> Policy:  # noqa: ANN401 - any field
    usual: dict[str, Any] = {
        "toolkit": "imap",
        "id": "work",
        "enabled": True,
        "interval": 1200 * SECOND,
        "daily_requests": 500,
        "daily_items": 20_000,
        "zone": "Asia/Shanghai",
        "mark": lambda: "00000000",
    }
    return Policy(**{**usual, **more})


def row(**more: Any) -> Row:  # noqa: ANN401 - any column
    return {
        "lease": None,
        "last_run": None,
        "last_attempt_at": None,
        "last_success_at": None,
        "next_due_at": None,
        "budget_day": None,
        "requests_used": 0,
        "items_used": 0,
        "failures_in_row": 0,
        "breaker": "closed",
        "stopped_by": None,
        "error_class": None,
        "error_text": None,
        "more_pending": False,
        **more,
    }


def after(before: Row, end: End, now: int, wanted: Policy, chance: float = 0.0) -> Row:
    """The row as the store has it once a run has been recorded."""
    noted = settle(wanted, before, end, now, chance)
    told: Row = {
        "last_attempt_at": now,
        "last_run": {"run": 1, "outcome": noted.pop("outcome"), "ended": now},
    }
    if (error := noted.pop("error")) is not None:
        told |= {"error_class": error["class"], "error_text": error["text"]}
    if noted.pop("last_success"):
        told["last_success_at"] = now
    assert set(noted) <= {*before, "page_limit"}
    return {**before, **noted, **told}


def failed(fault: Any = "network", **more: Any) -> End:  # noqa: ANN401 - fields of an end
    return End(outcome="failed", fault=fault, text="no answer", **more)


DONE = End(outcome="done", pages=1)
times = st.integers(0, FAR)
intervals = st.integers(1, 10 * DAY)
policies = st.builds(
    policy,
    id=st.text(max_size=8),
    enabled=st.booleans(),
    interval=st.just(0) | intervals,
    daily_requests=st.integers(1, 5),
    daily_items=st.integers(1, 5),
    zone=st.sampled_from(ZONES),
)
met = st.builds(
    row,
    lease=st.none() | st.builds(lambda until: {"holder": "someone", "until": until}, times),
    last_run=st.none()
    | st.builds(
        lambda outcome: {"run": 1, "outcome": outcome, "ended": 0},
        st.sampled_from(["done", "paused", "failed", "stopped"]),
    ),
    last_attempt_at=st.none() | times,
    next_due_at=st.none() | times,
    budget_day=st.none() | st.dates().map(lambda day: day.isoformat()),
    requests_used=st.integers(0, 6),
    items_used=st.integers(0, 6),
    failures_in_row=st.integers(0, 9),
    breaker=st.sampled_from(["closed", "open"]),
    stopped_by=st.none() | st.sampled_from(["00000000", "11111111"]),
    more_pending=st.booleans(),
)
rows = st.none() | met
ends = st.builds(
    End,
    outcome=st.sampled_from(["done", "paused", "failed", "stopped"]),
    pages=st.integers(0, 3),
    more=st.booleans(),
    spent=st.booleans(),
    fault=st.sampled_from(["auth", "rate", "network", "server", "too_large", "bad_data", "bug"]),
    retry_after=st.none() | st.floats(-10, 1e9),
)


# ── any row ──────────────────────────────────────────────────────────────────────────────────────────


@given(policies, rows, times)
def test_whatever_the_store_says_there_is_an_answer_with_a_reason(
    wanted: Policy, found: Row | None, now: int
) -> None:
    verdict = decide(wanted, found, now)
    assert verdict.why
    if verdict.state == "due":
        assert verdict.at == now
    if verdict.state in {"waiting", "open", "paused"}:
        assert verdict.at is not None
        assert verdict.at > now
    if verdict.state in {"manual", "disabled", "stopped", "running"}:
        assert verdict.at is None


@given(policies, rows, times)
def test_no_stamp_however_wrong_makes_a_connection_wait_longer_than_its_rules_can(
    wanted: Policy, found: Row | None, now: int
) -> None:
    verdict = decide(wanted, found, now)
    longest = max(3 * wanted.interval // 2, wanted.interval + 2 * DAY)
    assert verdict.at is None or verdict.at <= now + longest


@given(policies, rows, times)
def test_the_time_that_is_told_is_the_time_at_which_it_is_due(
    wanted: Policy, found: Row | None, now: int
) -> None:
    verdict = decide(wanted, found, now)
    if verdict.state not in {"waiting", "open", "paused"} or verdict.at is None:
        return
    assert decide(wanted, found, verdict.at - 1).state != "due" or verdict.state == "paused"
    then = decide(wanted, found, verdict.at)
    assert then.state in {"due", "manual"} or (then.state == "paused" and found is not None)


@given(policies, rows, times)
def test_no_trigger_spends_more_than_the_day_has_and_none_runs_what_is_off(
    wanted: Policy, found: Row | None, now: int
) -> None:
    verdict = decide(wanted, found, now)
    if verdict.state in {"disabled", "paused", "running"}:
        assert not any(verdict.allows(who, force=True) for who in ("tick", "watch", "nudge", "sync"))
    if verdict.state in {"open", "stopped"}:
        assert verdict.allows("sync", force=True)
        assert not any(verdict.allows(who) for who in ("tick", "watch", "nudge", "sync"))
    assert verdict.allows("tick") == (verdict.state == "due")


# ── after a run ──────────────────────────────────────────────────────────────────────────────────────


@given(policies, met, ends, times, st.floats(-1, 1))
def test_after_any_run_the_connection_comes_back_by_itself_or_says_why_it_does_not(
    wanted: Policy, found: Row, end: End, now: int, chance: float
) -> None:
    wanted = replace(wanted, enabled=True)
    verdict = decide(wanted, after({**found, "lease": None}, end, now, wanted, chance), now)
    assert verdict.at is not None or verdict.state in {"manual", "stopped"}


@given(st.text(max_size=8), intervals, times)
def test_a_good_run_is_followed_by_the_next_point_of_the_connections_own_grid(
    name: str, interval: int, now: int
) -> None:
    wanted = policy(id=name, interval=interval)
    at = settle(wanted, row(), DONE, now, 0.0)["next_due_at"]
    assert now + interval // 2 < at <= now + interval // 2 + interval
    assert (at - due.phase(wanted, interval)) % interval == 0


def test_a_connection_does_not_drift_however_late_its_runs_are() -> None:
    wanted = policy()
    at = settle(wanted, row(), DONE, NOW, 0.0)["next_due_at"]
    for late in range(100):
        following = settle(wanted, row(), DONE, at + late * SECOND, 0.0)["next_due_at"]
        assert following - at == wanted.interval
        at = following


def test_connections_spread_over_their_interval() -> None:
    interval = 1200 * SECOND
    places = sorted(due.phase(policy(id=f"c{number}"), interval) for number in range(100))
    assert max(b - a for a, b in pairwise(places)) < interval / 10


@given(intervals, st.integers(1, 1000), st.floats(-1, 1))
def test_waits_grow_with_failures_to_a_bound_and_are_never_shorter_than_about_the_interval(
    interval: int, failures: int, chance: float
) -> None:
    wait = backoff(interval, failures, chance)
    assert interval <= wait <= max(due.LONGEST_BACKOFF, interval)
    assert backoff(interval, failures + 1, chance) >= wait


def test_five_failures_in_a_row_open_the_breaker_and_one_good_try_closes_it() -> None:
    wanted, found, now = policy(), row(), NOW
    for count in range(1, 5):
        found = after(found, failed(), now, wanted)
        verdict = decide(wanted, found, now)
        assert (verdict.state, found["failures_in_row"]) == ("waiting", count)
        assert verdict.at is not None
        now = verdict.at
        assert decide(wanted, found, now).state == "due"
    found = after(found, failed(), now, wanted)
    verdict = decide(wanted, found, now)
    assert (verdict.state, verdict.at) == ("open", now + DAY)
    assert "5 failures in a row (network: no answer)" in verdict.why
    assert "--force" in verdict.why
    probe = now + DAY
    assert decide(wanted, found, probe).state == "due"
    assert decide(wanted, after(found, failed(), probe, wanted), probe).at == probe + DAY
    assert decide(wanted, after(found, DONE, probe, wanted), probe).state == "waiting"


def test_a_first_failure_waits_like_a_good_run() -> None:
    good, bad = (settle(policy(), row(), end, NOW, 1.0) for end in (DONE, failed()))
    assert good["next_due_at"] == bad["next_due_at"]


@pytest.mark.parametrize(("asked", "waits"), [(7200.0, 2 * HOUR), (0.0, 0), (1e9, DAY), (-5.0, 0)])
def test_a_source_that_asks_to_wait_is_waited_for_up_to_a_day(asked: float, waits: int) -> None:
    plain = settle(policy(), row(), failed("rate"), NOW, 0.0)["next_due_at"]
    at = settle(policy(), row(), failed("rate", retry_after=asked), NOW, 0.0)["next_due_at"]
    assert at == max(plain, NOW + waits)
    found = after(row(), failed("rate", retry_after=asked), NOW, policy())
    assert decide(policy(), found, NOW).at == at


def test_a_refused_credential_stops_until_configuration_or_credential_change() -> None:
    wanted = policy()
    found = after(row(), failed("auth"), NOW, wanted)
    verdict = decide(wanted, found, NOW + 100 * DAY)
    assert verdict.state == "stopped"
    assert "no answer" in verdict.why
    assert "chatproc sync imap/work --force" in verdict.why
    assert decide(policy(mark=lambda: "11111111"), found, NOW).state == "due"


def test_a_fault_on_this_side_is_no_mark_against_the_source() -> None:
    noted = settle(policy(), row(failures_in_row=4), failed("bug", ours=True), NOW, 0.0)
    assert (noted["failures_in_row"], noted["breaker"]) == (4, "closed")
    assert noted["next_due_at"] is not None


def test_what_was_left_behind_is_fetched_at_the_next_tick() -> None:
    found = after(row(), End(outcome="paused", pages=3, more=True), NOW, policy())
    verdict = decide(policy(), found, NOW)
    assert (verdict.state, verdict.why) == ("due", "the last run left more behind")


def test_a_manual_connection_is_never_due_and_can_be_asked_for() -> None:
    wanted = policy(interval=0)
    for found in (None, row(), after(row(), DONE, NOW, wanted), after(row(), failed(), NOW, wanted)):
        verdict = decide(wanted, found, NOW + DAY)
        assert (verdict.state, verdict.at) == ("manual", None)
        assert verdict.allows("sync")
        assert verdict.allows("nudge")
        assert not verdict.allows("tick")


# ── budgets and clocks ───────────────────────────────────────────────────────────────────────────────


def spent_today(wanted: Policy, now: int) -> Row:
    used = row(budget_day=day_of(now, wanted.zone), requests_used=500)
    return after(used, End(outcome="paused", pages=1, more=True, spent=True), now, wanted)


def test_a_spent_budget_pauses_until_the_day_in_the_rules_zone_is_over() -> None:
    wanted = policy()
    found = spent_today(wanted, NOW)
    verdict = decide(wanted, found, NOW)
    assert verdict.state == "paused"
    assert "paused until 2026-07-02T00:" in verdict.why
    assert verdict.at is not None
    assert datetime.fromtimestamp(verdict.at / 1000, ZoneInfo("Asia/Shanghai")).date().isoformat() == (
        "2026-07-02"
    )
    assert decide(wanted, found, verdict.at).state == "due"


def test_a_budget_that_is_raised_counts_at_once() -> None:
    found = spent_today(policy(), NOW)
    verdict = decide(policy(daily_requests=1000), found, NOW)
    assert verdict.state == "waiting"
    assert verdict.at is not None
    assert verdict.at <= NOW + 2 * 1200 * SECOND


def test_an_interval_that_is_shortened_counts_at_once() -> None:
    found = after(row(), DONE, NOW, policy(interval=5 * DAY))
    assert decide(policy(interval=5 * DAY), found, NOW + 2 * HOUR).state == "waiting"
    assert decide(policy(interval=HOUR), found, NOW + 2 * HOUR).state == "due"


def test_a_clock_set_back_makes_one_run_and_no_second_budget() -> None:
    wanted = policy()
    found = after(row(budget_day=day_of(NOW, wanted.zone), requests_used=500), DONE, NOW, wanted)
    earlier = NOW - 300 * DAY
    verdict = decide(wanted, {**found, "requests_used": 0}, earlier)
    assert (verdict.state, "clock" in verdict.why) == ("due", True)
    assert decide(wanted, after(found, DONE, earlier, wanted), earlier).state == "paused"
    assert decide(wanted, {**after(found, DONE, earlier, wanted), "requests_used": 0}, earlier).state == (
        "waiting"
    )


def test_two_clocks_that_differ_by_a_moment_are_not_a_clock_set_back() -> None:
    found = after(row(), DONE, NOW, policy())
    assert decide(policy(), found, NOW - SECOND).state == "waiting"


def test_a_suspended_machine_owes_one_run() -> None:
    found = after(row(), DONE, NOW, policy())
    late = NOW + 30 * DAY
    assert decide(policy(), found, late).state == "due"
    assert decide(policy(), after(found, DONE, late, policy()), late).state == "waiting"


@given(times.filter(lambda now: now < FAR - 2 * DAY), st.sampled_from(ZONES))
def test_midnight_is_the_first_moment_of_the_next_day(now: int, zone: str) -> None:
    midnight = next_midnight(now, zone)
    assert now < midnight <= now + 26 * HOUR
    assert day_of(midnight - 1, zone) == day_of(now, zone) < day_of(midnight, zone)


def test_a_day_without_midnight_begins_where_the_clocks_go_on() -> None:
    # Beirut, 2021-03-28: clocks went from 00:00 to 01:00.
    before = round(datetime(2021, 3, 27, 12, tzinfo=UTC).timestamp() * 1000)
    assert day_of(next_midnight(before, "Asia/Beirut"), "Asia/Beirut") == "2021-03-28"


# ── the mark ─────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.dictionaries(st.text(), st.integers()), st.dictionaries(st.text(), st.integers()), st.text(), st.text()
)
def test_the_mark_changes_with_settings_and_secret_and_with_nothing_else(
    one: dict[str, int], other: dict[str, int], secret: str, changed: str
) -> None:
    backwards = dict(reversed(one.items()))
    assert due.mark_of(one, secret) == due.mark_of(backwards, secret)
    assert (due.mark_of(one, secret) == due.mark_of(one, changed)) == (secret == changed)
    assert (due.mark_of(one, secret) == due.mark_of(other, secret)) == (one == other)
    assert len(due.mark_of(one, secret)) == 8
