"""The connector `chatlog` against a server that answers as chatlog does, with its faults."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from chatproc.config import load_config
from chatproc.connectors import web
from chatproc.connectors.chatlog import TOOLKIT
from chatproc.core import plan_events
from chatproc.errors import ConfigError
from chatproc.importers import import_chats
from tests.loopback import Answer, Loopback, fault
from tests.pulls import Puller, Purse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = 86_400
NOW = 1_790_000_000
ROOM, FRIEND = "19800001234@chatroom", "wxid_wang"
ZONE = timezone(timedelta(hours=8))


def time_of(second: int) -> str:
    return datetime.fromtimestamp(second, ZONE).isoformat()


class Chatlog(Loopback):
    """chatlog with the databases of WeChat 4: rows by talker, each `(second, seq, type, sender, content)`."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, list[dict[str, Any]]] = {ROOM: [], FRIEND: []}
        self.state: str | None = None
        self.begins = 0
        self.by_seq = False
        self.listed: dict[str, str] = {}
        self.strange: list[Any] = []

    def say(self, second: int, content: str, talker: str = ROOM, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        rows = self.rows.setdefault(talker, [])
        same = sum(row["seq"] // 1000 == second for row in rows)
        row = {
            "seq": second * 1000 + same,
            "time": time_of(second),
            "talker": talker,
            "talkerName": "实验室",
            "isChatRoom": talker.endswith("@chatroom"),
            "sender": "wxid_li",
            "senderName": "李",
            "isSelf": False,
            "type": 1,
            "subType": 0,
            "content": content,
            **more,
        }
        rows.append(row)
        return row

    def answer(self, path: str, query: dict[str, Any]) -> object:
        if self.state is not None:
            return fault(503, {"error": self.state})
        if path == "/api/v1/session":
            return {"items": [*self.strange, *self._sessions()]}
        assert path == "/api/v1/chatlog"
        if self.strange:
            return [*self.strange, *self.rows[query["talker"]]]
        low, _, high = query["time"].partition("~")
        return self._window(int(low), int(high), query)

    def _sessions(self) -> list[dict[str, Any]]:
        last = {name: rows[-1] for name, rows in self.rows.items() if rows}
        return [
            {
                "userName": name,
                "nTime": self.listed.get(name, row.get("time")),
                "content": "" if name in self.listed else row.get("content"),
            }
            for name, row in last.items()
        ]

    def _window(self, low: int, high: int, query: dict[str, Any]) -> object:
        assert query["format"] == "json"
        assert "limit" not in query, "with a limit chatlog leaves rows of other databases out"
        if high < self.begins:
            return fault(404, f"time range not found: {low} - {high}")
        rows = sorted(self.rows.get(query["talker"], []), key=lambda row: row["seq"])
        if self.by_seq:  # WeChat 3: the last second of a window is cut
            return [row for row in rows if low * 1000 <= row["seq"] <= high * 1000]
        return [row for row in rows if low <= row["seq"] // 1000 <= high]


@pytest.fixture
def chatlog() -> Iterator[Chatlog]:
    with Chatlog() as server:
        yield server


def puller(server: Chatlog, *, talkers: tuple[str, ...] = (ROOM,), days: int = 30, **more: Any) -> Puller:  # noqa: ANN401
    settings = {"toolkit": "chatlog", "id": "wx", "base_url": server.url, "talkers": list(talkers), **more}
    return Puller(TOOLKIT, settings, None, since=(NOW - days * DAY) * 1000, now=NOW * 1000)


def texts(pull: Puller) -> list[str]:
    found = {event["message_key"]: event["text"] for event in pull.events}
    return list(found.values())


def settled(pull: Puller) -> dict[str, dict[str, Any]]:
    """The last revision of each message."""
    found: dict[str, dict[str, Any]] = {}
    for event in sorted(pull.events, key=lambda event: event["revision"]):
        found[event["message_key"]] = event
    return found


@pytest.mark.parametrize("version", [3, 4])
def test_every_message_comes_once_whatever_the_windows_cut(chatlog: Chatlog, version: int) -> None:
    chatlog.by_seq = version == 3
    for number in range(200):
        second = NOW - number * 5400
        for copy in range(3):  # three of one second, at every border of windows too
            chatlog.say(second, f"m{number}.{copy}")
    pull = puller(chatlog, window_minutes=90)
    assert pull.run() is None
    assert sorted(texts(pull)) == sorted(row["content"] for row in chatlog.rows[ROOM])
    assert len(settled(pull)) == 600
    assert not pull.quarantined
    assert pull.cursor["talkers"][ROOM]["backfill"] is None

    for number in range(1, 120):  # this machine slept for more than a day
        for copy in range(3):
            chatlog.say(NOW + number * 900, f"n{number}.{copy}")
    pull.now += 120 * 900_000
    assert pull.run() is None
    assert sorted(texts(pull)) == sorted(row["content"] for row in chatlog.rows[ROOM])


def test_new_messages_come_before_the_backfill_and_a_cap_leaves_no_hole(chatlog: Chatlog) -> None:
    sent = [chatlog.say(NOW - number * 3000, f"old {number}")["content"] for number in range(300)]
    pull = puller(chatlog, window_minutes=30)
    pull.run(Purse(requests=4))
    assert pull.cursor["talkers"][ROOM]["backfill"] is not None
    pull.now += 1200_000
    sent.append(chatlog.say(NOW + 600, "new")["content"])
    pull.run(Purse(requests=2))
    assert "new" in texts(pull)

    for _ in range(40):
        pull.run(Purse(requests=3))
        if pull.cursor["talkers"][ROOM]["backfill"] is None:
            break
    assert sorted(texts(pull)) == sorted(sent)


def test_a_quiet_talker_costs_no_request_and_little_time_few(chatlog: Chatlog) -> None:
    chatlog.say(NOW - 20 * DAY, "long ago")
    chatlog.say(NOW - 100, "hello", FRIEND)
    pull = puller(chatlog, talkers=())
    purse = Purse()
    pull.run(purse)
    assert purse.used < 30, "windows grow where there is nothing"
    assert sorted(texts(pull)) == ["hello", "long ago"]
    pull.run()
    pull.now += 3600_000
    again = Purse()
    pull.run(again)
    assert again.used == 1, "the list of chats says that nothing came"
    chatlog.say(NOW + 1000, "more", FRIEND)
    more = Purse()
    pull.run(more)
    assert more.used == 2
    assert "more" in texts(pull)


def test_what_wechat_brings_late_is_not_lost(chatlog: Chatlog) -> None:
    """The PC was off for two days; runs went on meanwhile."""
    chatlog.say(NOW - 100, "before")
    pull = puller(chatlog)
    pull.run()
    for hour in range(1, 48, 4):
        pull.now = (NOW + hour * 3600) * 1000
        pull.run()
    late = [chatlog.say(NOW + hour * 3600, f"late {hour}")["content"] for hour in range(1, 40)]
    pull.run()
    assert sorted(texts(pull)) == sorted(["before", *late])


def test_a_message_that_is_listed_before_it_is_decrypted_is_asked_for_again(chatlog: Chatlog) -> None:
    chatlog.say(NOW - 100, "before")
    chatlog.listed[ROOM] = time_of(NOW - 10)
    pull = puller(chatlog)
    pull.run()
    chatlog.say(NOW - 10, "after")
    pull.run()
    assert texts(pull) == ["before", "after"]


def test_a_recall_withdraws_the_message_that_was_read(chatlog: Chatlog) -> None:
    chatlog.say(NOW - 60, "stays")
    said = chatlog.say(NOW - 60, "周五交报告")
    pull = puller(chatlog)
    pull.run()
    (key,) = [event["message_key"] for event in pull.events if event["text"] == "周五交报告"]

    said.update(type=10000, content="李 撤回了一条消息", sender="")
    chatlog.say(NOW - 10, "next")
    pull.run()

    last = settled(pull)
    assert (last[key]["state"], last[key]["text"], last[key]["attachments"]) == ("recalled", "", [])
    assert sorted(event["text"] for event in last.values() if event["kind"] == "message") == [
        "",
        "next",
        "stays",
    ]
    lines = len(pull.lines)
    pull.run()
    assert set(pull.lines[lines:]) <= set(pull.lines[:lines])
    assert not pull.quarantined


def test_a_clock_that_is_wrong_makes_no_hole(chatlog: Chatlog) -> None:
    chatlog.say(NOW - 50, "now")
    chatlog.say(NOW + 20 * 3600, "a message from the future")
    pull = puller(chatlog)
    pull.run()
    chatlog.say(NOW + 300, "after")
    pull.now += 3600_000
    pull.run()
    assert sorted(texts(pull)) == sorted(["a message from the future", "after", "now"])

    pull.now += 365 * DAY * 1000  # this machine's clock jumps ahead, and back
    pull.run()
    chatlog.say(NOW + 900, "later")
    pull.now = (NOW + 1200) * 1000
    pull.run()
    assert "later" in texts(pull)


def test_a_first_sync_by_a_clock_that_is_ahead_makes_no_hole(chatlog: Chatlog) -> None:
    chatlog.say(NOW - 3600, "before")
    pull = puller(chatlog)
    pull.now += 90 * DAY * 1000
    pull.run()
    pull.now = NOW * 1000
    chatlog.say(NOW - 60, "after")
    pull.run()
    assert texts(pull) == ["before", "after"]


def test_while_chatlog_decrypts_nothing_is_lost(chatlog: Chatlog) -> None:
    chatlog.say(NOW - 60, "one")
    chatlog.state = "database is decrypting, please wait"
    pull = puller(chatlog)
    error = pull.run()
    assert error is not None
    assert (error.fault, error.what) == (
        "server",
        "the server answered 503: database is decrypting, please wait",
    )
    assert pull.cursor == {}
    chatlog.state = None
    assert pull.run() is None
    assert texts(pull) == ["one"]


def test_time_before_the_first_database_is_empty_and_no_fault(chatlog: Chatlog) -> None:
    chatlog.begins = NOW - 5 * DAY
    chatlog.say(NOW - 4 * DAY, "first")
    pull = puller(chatlog)
    assert pull.run() is None
    assert texts(pull) == ["first"]


def test_a_talker_that_is_not_there_is_told_once(chatlog: Chatlog) -> None:
    pull = puller(chatlog, talkers=("nobody", ROOM))
    chatlog.say(NOW - 60, "one")
    pull.run()
    pull.run()
    (refused,) = pull.quarantined
    assert json.loads(pull.lines[refused["line"] - 1])["talker"] == "nobody"
    assert texts(pull) == ["one"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (fault(401), "auth"),
        (fault(403), "auth"),
        (fault(429, {"error": "slow"}, Retry_After="30"), "rate"),
        (fault(500, "query failed"), "server"),
        (fault(400, "invalid argument: time"), "bad_data"),
        (fault(404, {"error": "Not found"}), "bad_data"),
        (fault(302, None, Location="http://127.0.0.1:1/"), "bad_data"),
        ((200, {}, b"<html>chatlog</html>"), "bad_data"),
        ((200, {}, b'{"items": 3}'), "bad_data"),
        ((200, {}, b'[{"talker": "x"'), "bad_data"),
    ],
)
def test_each_fault_has_its_class_and_moves_nothing(chatlog: Chatlog, answer: Answer, expected: str) -> None:
    chatlog.say(NOW - 60, "one")
    pull = puller(chatlog)
    listed: Answer = (200, {}, b'{"items": null}')
    chatlog.faults = [listed, answer]
    error = pull.run()
    assert error is not None
    assert error.fault == expected
    assert error.retry_after == (30 if expected == "rate" else None)
    assert pull.cursor == {}
    pull.run()
    assert texts(pull) == ["one"]


def test_an_answer_that_is_too_large_is_asked_for_in_halves(
    chatlog: Chatlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "LARGEST_ANSWER", 40_000)
    sent = [chatlog.say(NOW - number * 20, f"m{number}" + "x" * 100)["content"] for number in range(1000)]
    pull = puller(chatlog, days=1, window_minutes=600)
    page = 1000
    for _ in range(12):
        error = pull.run(Purse(page=page))
        if error is None:
            break
        assert error.fault == "too_large"
        page //= 2
    assert sorted(texts(pull)) == sorted(sent)


def test_strange_rows_are_messages_or_stand_in_the_quarantine(chatlog: Chatlog) -> None:
    chatlog.say(NOW - 60, "good")
    rows = chatlog.rows[ROOM]
    strange = [
        {"seq": (NOW - 50) * 1000, **more} for more in ({}, {"talker": 3, "time": []}, {"contents": "x"})
    ]
    rows += strange
    rows.append({**rows[0], "time": None, "content": "time by its seq", "seq": (NOW - 40) * 1000 + 7})
    rows.append({**rows[0], "seq": 2**70, "content": "seq too large"})
    rows.append({**rows[0], "seq": 0, "content": "no seq"})
    chatlog.strange = [None, 5]
    pull = puller(chatlog, days=1)
    assert pull.run() is None
    assert set(texts(pull)) == {"", "good", "time by its seq", "seq too large", "no seq"}
    assert len({line for line in pull.lines if b"chatproc.event/1" not in line}) == 4
    (by_seq,) = {event["sent_at"] for event in pull.events if event["text"] == "time by its seq"}
    assert by_seq == pytest.approx(NOW - 40, abs=1)


def test_an_import_and_a_pull_of_a_message_are_one(chatlog: Chatlog, tmp_path: Path) -> None:
    chatlog.say(NOW - 60, "@王 周五 17:00 前")
    chatlog.say(NOW - 60, "@王 周五 17:00 前", sender="wxid_other")
    chatlog.say(NOW - 50, "", type=3, contents={"md5": "a" * 32, "path": "msg/attach/x"})
    chatlog.say(NOW - 40, "李 撤回了一条消息", type=10000)
    export = tmp_path / "chatlog.json"
    export.write_text(json.dumps(chatlog.rows[ROOM]), encoding="utf-8")
    report = import_chats(
        "chatlog", [export], account="wxid_me", out=tmp_path / "out", timezone=str(ZoneInfo("UTC"))
    )
    imported = b"".join(open(file, "rb").read() for file in report.files).splitlines()  # noqa: PTH123, SIM115
    pull = puller(chatlog, account_id="wxid_me")
    pull.run()
    assert {json.loads(line)["message_key"] for line in imported} == set(pull.keys)
    assert not plan_events([*imported, *pull.lines]).quarantined


def test_a_token_goes_along_when_there_is_one(chatlog: Chatlog) -> None:
    chatlog.say(NOW - 60, "one")
    pull = puller(chatlog)
    pull.secret = "s3cret"  # noqa: S105 - of the tests' own server
    pull.run()
    assert set(chatlog.tokens) == {"Bearer s3cret"}


def test_plain_http_is_for_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "processor.toml"
    file.write_text('[[connections]]\ntoolkit = "chatlog"\nid = "w"\nbase_url = "http://192.168.1.2:5030"\n')
    with pytest.raises(ConfigError, match="https://"):
        load_config(file)
