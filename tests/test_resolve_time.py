"""`resolve_time`: what it takes, what it returns, and that a phrase means what a calendar says."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

import chatproc
from chatproc.core import ResolvedTime, resolve_time
from chatproc.errors import ConfigError

SHANGHAI = "Asia/Shanghai"

# July 2026: the 1st is a Wednesday.
SENT = "2026-07-01T10:00:00+08:00"


def said(text: str, sent_at: float | str | datetime = SENT, lang: str | None = None) -> ResolvedTime:
    return resolve_time(text, sent_at, SHANGHAI, lang)


@pytest.mark.parametrize(
    "sent_at",
    [
        SENT,
        "2026-07-01T02:00:00Z",
        1_782_871_200,
        1_782_871_200.0,
        datetime(2026, 7, 1, 10, tzinfo=ZoneInfo(SHANGHAI)),
    ],
)
def test_the_moment_is_taken_in_every_form(sent_at: float | str | datetime) -> None:
    assert said("三小时内", sent_at).due == "2026-07-01T13:00:00+08:00"


def test_the_whole_result_of_one_reading() -> None:
    assert said("请于周五下午5点前提交").to_dict() == {
        "start": None,
        "due": "2026-07-03T17:00:00+08:00",
        "timezone": SHANGHAI,
        "original": "周五下午5点",
        "check": "computed",
        "readings": [],
        "negated": False,
    }


def test_several_readings_are_listed_and_none_is_taken() -> None:
    time = said("next Friday", lang="en")
    assert (time.check, time.start, time.due) == ("ambiguous", None, None)
    assert {reading["due"] for reading in time.readings} == {"2026-07-03", "2026-07-10"}


@pytest.mark.parametrize("text", ["尽快", "过两天", "月底左右", "asap", "每周五", "收到", ""])
def test_what_is_no_certain_time_is_none(text: str) -> None:
    time = said(text)
    assert (time.check, time.start, time.due, time.readings) == ("unresolved", None, None, [])


@pytest.mark.parametrize(
    "text", ["不是周五截止", "周五不用交", "不要周五交", "not Friday", "no longer due Friday"]
)
def test_a_denied_time_is_never_due(text: str) -> None:
    time = said(text)
    assert time.negated
    assert (time.check, time.start, time.due) == ("unresolved", None, None)


@pytest.mark.parametrize(
    ("text", "start", "due"),
    [
        ("周三到周五", "2026-07-01", "2026-07-03"),
        ("下午2点到4点", "2026-07-01T14:00:00+08:00", "2026-07-01T16:00:00+08:00"),
        ("不是周五，是周四", None, "2026-07-02"),
        ("周四改到周五", None, "2026-07-03"),
        ("週五下午３點半前", None, "2026-07-03T15:30:00+08:00"),
        ("今晚十二点前", None, "2026-07-02T00:00:00+08:00"),
        ("农历八月十五", None, "2026-09-25"),
        ("明天 9 点 A101 开班会", "2026-07-02T09:00:00+08:00", None),
        ("within 48 hours", None, "2026-07-03T10:00:00+08:00"),
        ("2026-07-03T09:00:00Z", None, "2026-07-03T17:00:00+08:00"),
    ],
)
def test_phrases_mean_what_a_calendar_says(text: str, start: str | None, due: str | None) -> None:
    time = said(text)
    assert (time.start, time.due) == (start, due)


def test_the_language_orders_day_and_month() -> None:
    assert said("3/4", lang="zh").due == "2027-03-04"
    assert said("3/4", lang="en-US").due == "2027-03-04"
    assert said("3/4", lang="en-GB").due == "2027-04-03"
    assert said("3/4", lang="en").check == "ambiguous"


def test_a_zone_in_the_text_is_written_in_the_one_of_the_call() -> None:
    time = resolve_time("北京时间明天上午9点", "2026-07-01T08:00:00-04:00", "America/New_York")
    assert time.due == "2026-07-01T21:00:00-04:00"


@pytest.mark.parametrize(
    ("sent_at", "timezone", "lang"),
    [
        (SENT, "Asia/Nowhere", None),
        (SENT, SHANGHAI, "fr"),
        ("2026-07-01T10:00:00", SHANGHAI, None),
        ("yesterday", SHANGHAI, None),
        (1e18, SHANGHAI, None),
        (float("nan"), SHANGHAI, None),
    ],
)
def test_what_cannot_be_used_is_told(sent_at: float | str, timezone: str, lang: str | None) -> None:
    with pytest.raises(ConfigError):
        resolve_time("周五", sent_at, timezone, lang)


def test_the_result_is_frozen_and_a_json_document() -> None:
    time = said("周五")
    with pytest.raises(dataclasses.FrozenInstanceError):
        time.due = None  # type: ignore[misc]
    assert json.loads(json.dumps(time.to_dict())) == time.to_dict()
    assert chatproc.resolve_time is resolve_time
    assert chatproc.ResolvedTime is ResolvedTime
