"""The connector `chatlab` against servers of the Pull protocol, each with its own reading of it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.connectors import web
from chatproc.connectors.chatlab import TOOLKIT
from chatproc.core import plan_events
from chatproc.importers import import_chats
from tests.loopback import Answer, Loopback, fault
from tests.pulls import Puller, Purse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = 86_400
NOW = 1_790_000_000
GROUP, FRIEND = "g1@chatroom", "wxid_zhang"


class Server(Loopback):
    """A source. What it does of the protocol is what `style` says."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, list[dict[str, Any]]] = {GROUP: [], FRIEND: []}
        self.names = {GROUP: "产品讨论群", FRIEND: "张三"}
        self.style: set[str] = set()
        self.listed: dict[str, dict[str, Any]] = {}
        self.most = 10**9

    def say(self, second: float, content: str, session: str = GROUP, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        row = {
            "sender": "u1",
            "accountName": "李",
            "timestamp": second,
            "type": 0,
            "content": content,
            **more,
        }
        self.rows[session].append(row)
        return row

    def answer(self, path: str, query: dict[str, Any]) -> object:
        if path == "/sessions":
            return self._sessions(query)
        session = path.split("/")[2].replace("%40", "@")
        assert query["format"] == "chatlab"
        return self._messages(
            session, {name: int(value) for name, value in query.items() if name != "format"}
        )

    def _sessions(self, query: dict[str, Any]) -> object:
        sessions = [self._session(session) for session in self.rows]
        if "list-pages" in self.style:
            at = int(query.get("cursor", 0))
            page = {"hasMore": True, "nextCursor": str((at + 1) % len(sessions))}  # it never ends
            return {"sessions": sessions[at : at + 1], "page": page}
        return {"success": True, "data": sessions} if "enveloped" in self.style else {"sessions": sessions}

    def _session(self, session: str) -> dict[str, Any]:
        kind = "group" if session == GROUP else "private"
        about = {"id": session, "name": self.names[session], "platform": "wechat", "type": kind}
        rows = self.rows[session]
        last = {} if "no-last" in self.style else {"lastMessageAt": rows[-1]["timestamp"] if rows else 0}
        return {**about, **last, **self.listed.get(session, {})}

    def _messages(self, session: str, query: dict[str, int]) -> object:
        since, end = query.get("since", 0), query.get("end", 10**11)
        is_exclusive, knows_end = "exclusive" in self.style, "no-end" not in self.style
        rows = [
            row
            for row in sorted(self.rows[session], key=_second, reverse="newest-first" in self.style)
            if (_second(row) > since if is_exclusive else _second(row) >= since)
            and (not knows_end or (_second(row) < end if is_exclusive else _second(row) <= end))
        ]
        limit = len(rows) or 1 if "no-limit" in self.style else min(query.get("limit", 10**9), self.most)
        offset = 0 if "no-offset" in self.style else query.get("offset", 0)
        page = rows[offset : offset + limit]
        if not page and rows and "old-rows-past-the-end" in self.style:
            page = rows[-limit:]
        has_more = len(rows) > offset + limit or "always-more" in self.style
        said: dict[str, Any] = {"chatlab": {"version": "0.0.2"}, "messages": page}
        if not since or "meta-always" in self.style:
            kind = {"type": "group", "groupId": session} if session == GROUP else {"type": "private"}
            said["meta"] = {"name": self.names[session], "platform": "wechat", **kind}
            said["members"] = [{"platformId": "u1", "accountName": "李"}]
        if "no-sync" not in self.style:
            said["sync"] = self._sync(page, since, offset, has_more=has_more)
        return self._lines(said) if "jsonl" in self.style else said

    def _sync(self, page: list[dict[str, Any]], since: int, offset: int, *, has_more: bool) -> dict[str, Any]:
        sync: dict[str, Any] = {"hasMore": has_more}
        if "offset" in self.style or "both" in self.style:
            sync |= {"nextOffset": offset + len(page), "watermark": NOW + DAY}
        if "both" in self.style:
            sync |= {"nextSince": since}
        if "since" in self.style:
            sync |= {"nextSince": _second(page[-1]) if page else since}
        if "future" in self.style:
            sync |= {"nextSince": (NOW + 400 * DAY) * 1000}
        return sync

    def _lines(self, said: dict[str, Any]) -> Answer:
        lines = [{"_type": "header", "chatlab": said["chatlab"], "meta": said.get("meta")}]
        lines += [{"_type": "message", **row} for row in said["messages"]]
        lines += [{"_type": "sync", **said["sync"]}] if "sync" in said else []
        return 200, {"Content-Type": "application/x-ndjson"}, "\n".join(map(json.dumps, lines)).encode()


def _second(row: dict[str, Any]) -> int:
    number = float(row["timestamp"])
    return int(number / 1000 if number > 1e11 else number)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def puller(server: Server, *, days: int = 30, **more: Any) -> Puller:  # noqa: ANN401
    settings = {"toolkit": "chatlab", "id": "lab", "base_url": server.url, **more}
    return Puller(TOOLKIT, settings, "token-1", since=(NOW - days * DAY) * 1000, now=NOW * 1000)


def texts(pull: Puller) -> list[str]:
    return list({event["message_key"]: event["text"] for event in pull.events}.values())


def said(server: Server) -> Counter[str]:
    return Counter(row["content"] for rows in server.rows.values() for row in rows)


STYLES = [
    {"offset"},
    {"offset", "exclusive"},
    {"offset", "newest-first"},
    {"offset", "old-rows-past-the-end", "always-more"},
    {"offset", "no-end"},
    {"since"},
    {"since", "exclusive"},
    {"since", "always-more"},
    {"both"},
    {"both", "meta-always", "enveloped"},
    {"no-sync"},
    {"no-sync", "no-limit", "no-offset"},
    {"no-sync", "no-limit", "no-end"},
    {"future", "offset"},
    {"offset", "jsonl"},
    {"offset", "list-pages", "no-last"},
]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: "-".join(sorted(style)))
@pytest.mark.parametrize("page", [1, 1000])
def test_every_message_comes_once_whatever_the_server_reads_into_the_protocol(
    server: Server, style: set[str], page: int
) -> None:
    server.style = style
    for number in range(40):
        second = NOW - number * 3 * 3600
        server.say(second, f"with an id {number}", platformMessageId=str(2**62 + number))
        server.say(second, "收到")  # equal ones, without an id, in one second
        server.say(second, "收到")
        server.say(second, f"m{number}", session=FRIEND)
    pull = puller(server)
    assert pull.run(Purse(page=page)) is None
    assert Counter(texts(pull)) == said(server)
    assert not pull.quarantined

    server.say(NOW + 500, "收到")
    server.say(NOW + 500, "new", session=FRIEND)
    pull.now += 1200_000
    assert pull.run(Purse(page=page)) is None
    assert Counter(texts(pull)) == said(server)
    purse = Purse()
    pull.run(purse)
    assert purse.used <= 2 + 4 * len(server.rows), "nothing is read over and over"


@pytest.mark.parametrize("style", [{"offset"}, {"since"}, {"no-sync"}], ids="-".join)
def test_caps_anywhere_leave_no_hole_and_new_messages_come_first(server: Server, style: set[str]) -> None:
    server.style = style
    for number in range(60):
        second = NOW - number * 4 * 3600
        for _ in range(3):
            server.say(second, "收到")
        server.say(second, f"m{number}")
    pull = puller(server, sources=[GROUP])
    pull.run(Purse(requests=5, page=5))
    server.say(NOW + 100, "new")
    pull.now += 600_000
    pull.run(Purse(requests=3, page=5))
    assert "new" in texts(pull)
    for _ in range(150):
        pull.run(Purse(requests=7, page=5))
        if pull.cursor["sessions"][GROUP]["backfill"] is None:
            break
    assert Counter(texts(pull)) == said(server)


def test_more_messages_in_a_second_than_a_page_holds(server: Server) -> None:
    for number in range(70):
        server.say(NOW - 50, f"+{number // 2}")
    server.say(NOW - 40, "after")
    for style in ({"since"}, {"since", "exclusive"}, {"offset"}, {"future", "offset"}):
        server.style = style
        pull = puller(server, days=2, sources=[GROUP])
        assert pull.run(Purse(page=5)) is None
        assert Counter(texts(pull)) == said(server)


def test_empty_pages_that_promise_more_end_the_run_and_lose_nothing(server: Server) -> None:
    """A server that steps through quiet days, one a page; and one that promises more for ever."""
    server.say(NOW - 20 * DAY, "old")
    server.say(NOW - 1 * DAY, "young")
    plain = server._messages

    def by_days(session: str, query: dict[str, int]) -> object:
        high = min(query.get("end", NOW), NOW)
        low = query.get("since", 0) or NOW - 30 * DAY
        day = {**query, "end": min(low + DAY // 2, high)}
        answer = plain(session, day)
        assert isinstance(answer, dict)
        answer["sync"] = {"hasMore": low + DAY // 2 < high, "nextSince": low + DAY // 2}
        return answer

    server._messages = by_days  # type: ignore[method-assign]
    pull = puller(server, sources=[GROUP])
    for _ in range(12):
        assert pull.run() is None
    assert sorted(texts(pull)) == ["old", "young"]
    assert pull.cursor["sessions"][GROUP]["backfill"] is None

    server.rows[GROUP].clear()
    server._messages = lambda *_: {"messages": [], "sync": {"hasMore": True, "nextOffset": 5}}  # type: ignore[method-assign]
    purse = Purse()
    assert puller(server, sources=[GROUP]).run(purse) is None
    assert purse.used < 40


def test_times_may_be_text_or_milliseconds(server: Server) -> None:
    server.style = {"offset"}
    server.say((NOW - 30) * 1000 + 250, "milliseconds")
    server.rows[GROUP].append({"sender": "u1", "timestamp": str(NOW - 20), "type": 0, "content": "text"})
    server.listed[GROUP] = {"lastMessageAt": str(NOW * 1000)}
    pull = puller(server, days=1)
    assert pull.run() is None
    assert {event["text"]: event["sent_at"] for event in pull.events} == {
        "milliseconds": NOW - 30 + 0.25,
        "text": NOW - 20,
    }


def test_a_recall_withdraws_its_message(server: Server) -> None:
    server.style = {"offset"}
    row = server.say(NOW - 30, "周五交", platformMessageId="77")
    pull = puller(server, days=1)
    pull.run()
    row.update(type=81, content=None)
    server.say(NOW - 5, "next")
    pull.run()
    (key,) = {event["message_key"] for event in pull.events if event["message_id"] == "77"}
    last = max(
        (event for event in pull.events if event["message_key"] == key), key=lambda event: event["revision"]
    )
    assert (last["state"], last["text"]) == ("recalled", "")
    assert not pull.quarantined


def test_a_clock_that_is_wrong_makes_no_hole(server: Server) -> None:
    server.style = {"offset"}
    server.say(NOW - 50, "now")
    server.say(NOW + 20 * 3600, "a message from the future")
    pull = puller(server, days=1)
    pull.run()
    server.rows[GROUP].insert(1, {"sender": "u1", "timestamp": NOW + 300, "type": 0, "content": "after"})
    pull.now += 600_000
    server.listed[GROUP] = {"lastMessageAt": NOW + 300}
    pull.run()
    assert sorted(texts(pull)) == sorted(["a message from the future", "after", "now"])


def test_the_list_of_sessions_saves_requests(server: Server) -> None:
    server.say(NOW - 50, "one")
    server.say(NOW - 50, "two", session=FRIEND)
    pull = puller(server, days=1)
    pull.run()
    pull.run()
    quiet = Purse()
    pull.run(quiet)
    assert quiet.used == 1
    server.say(NOW - 40, "three", session=FRIEND)
    purse = Purse()
    pull.run(purse)
    assert purse.used == 2
    assert "three" in texts(pull)


def test_an_import_and_a_pull_of_a_message_are_one(server: Server, tmp_path: Path) -> None:
    server.style = {"offset"}
    server.say(NOW - 60, "收到", platformMessageId="9007199254740993")
    server.say(NOW - 60, "收到")
    server.say(NOW - 60, "收到")
    server.say(NOW - 50, "好", replyToMessageId="9007199254740993")
    server.say(NOW - 40, "", type=1)
    whole = server._messages(GROUP, {})
    export = tmp_path / "export.json"
    export.write_text(json.dumps(whole), encoding="utf-8")
    report = import_chats("chatlab", [export], out=tmp_path / "out")
    imported = b"".join(open(file, "rb").read() for file in report.files).splitlines()  # noqa: PTH123, SIM115
    pull = puller(server, days=1, sources=["产品讨论群"])
    assert pull.run(Purse(page=2)) is None
    assert {json.loads(line)["message_key"] for line in imported} == set(pull.keys)
    assert not plan_events([*imported, *pull.lines]).quarantined


def test_two_friends_of_one_name_stay_two(server: Server) -> None:
    server.rows = {FRIEND: [], "wxid_other": []}
    server.names = {FRIEND: "张三", "wxid_other": "张三"}
    for session in server.rows:
        server.say(NOW - 60, "在吗", session=session)
    pull = puller(server, days=1)
    pull.run()
    assert len({event["conversation"]["id"] for event in pull.events}) == 2
    assert len(set(pull.keys)) == 2
    server.names[FRIEND] = "张三丰"
    server.say(NOW - 50, "改名了", session=FRIEND)
    pull.run()
    assert len({event["conversation"]["id"] for event in pull.events}) == 2, "a new name is no new chat"


def test_a_source_that_is_not_there_is_told_once(server: Server) -> None:
    server.say(NOW - 60, "one")
    pull = puller(server, days=1, sources=["nobody", GROUP])
    pull.run()
    pull.run()
    (refused,) = pull.quarantined
    told = json.loads(pull.lines[refused["line"] - 1])
    assert told["source"] == "nobody"
    assert f"产品讨论群 ({GROUP})" in told["there_are"]
    assert texts(pull) == ["one"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (fault(401, {"error": "no"}), "auth"),
        (fault(403), "auth"),
        (fault(429, None, Retry_After="7"), "rate"),
        (fault(503), "server"),
        (fault(404), "bad_data"),
        (fault(301, None, Location="http://127.0.0.1:1/"), "bad_data"),
        ((200, {}, b"<html>"), "bad_data"),
        ((200, {}, b"[]"), "bad_data"),
        ((200, {}, b'{"messages": {}}'), "bad_data"),
        ((200, {}, b'{"_type": "header"'), "bad_data"),
        ((200, {}, b"\xff\xfe"), "bad_data"),
    ],
)
def test_each_fault_has_its_class_and_moves_nothing(server: Server, answer: Answer, expected: str) -> None:
    server.say(NOW - 60, "one")
    pull = puller(server, days=1, sources=[GROUP])
    listed: Answer = (200, {}, json.dumps({"sessions": [server._session(GROUP)]}).encode())
    server.faults = [listed, answer]
    error = pull.run()
    assert error is not None
    assert error.fault == expected
    assert error.retry_after == (7 if expected == "rate" else None)
    assert pull.run() is None
    assert texts(pull) == ["one"]
    assert set(server.tokens) == {"Bearer token-1"}


def test_an_answer_that_is_too_large_is_asked_for_in_halves(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "LARGEST_ANSWER", 40_000)
    server.style = {"offset"}
    for number in range(600):
        server.say(NOW - number * 20, f"m{number}" + "x" * 100)
    pull = puller(server, days=1)
    page = 1000
    for _ in range(10):
        error = pull.run(Purse(page=page))
        if error is None:
            break
        assert error.fault == "too_large"
        page //= 2
    assert Counter(texts(pull)) == said(server)


def test_strange_rows_are_messages_or_stand_in_the_quarantine(server: Server) -> None:
    server.style = {"offset"}
    server.say(NOW - 60, "good")
    strange = [
        None,
        5,
        {},
        {"timestamp": "soon"},
        {"timestamp": NOW - 50, "type": [], "content": {"a": 1}, "sender": []},
    ]
    body = {
        "messages": [*server.rows[GROUP], *strange],
        "members": [3, {}],
        "meta": 7,
        "sync": {"hasMore": False},
    }
    server._messages = lambda *_: body  # type: ignore[method-assign]
    pull = puller(server, days=1, sources=[GROUP])
    assert pull.run() is None
    assert "good" in texts(pull)
    assert len({line for line in pull.lines if b"chatproc.event/1" not in line}) == 4
