"""The connector `onebot` against programs that each mean something else by the history's parameters."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.connectors import web
from chatproc.connectors.onebot import TOOLKIT
from chatproc.connectors.segments import said_in
from chatproc.core import plan_events
from tests.loopback import Answer, Loopback, fault
from tests.pulls import Puller, Purse

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = 86_400
NOW = 1_790_000_000
OWN, GROUP, FRIEND = 10000, 999000, 10001
ONE_CHAIN = {"max_messages": 100_000, "max_conversation_chars": 10_000_000, "max_input_chars": 20_000_000}
PROGRAMS = ["napcat", "napcat-old", "llonebot", "go-cqhttp", "lagrange"]


class Program(Loopback):
    """A OneBot program with the history of a group and of a friend."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = "napcat"
        self.histories: dict[tuple[str, int], list[dict[str, Any]]] = {
            ("group", GROUP): [],
            ("user", FRIEND): [],
        }
        self.known: set[int] = set()
        self.is_newest_first = False
        self.is_stuck = False

    def say(
        self,
        second: int,
        message: object,
        chat: tuple[str, int] = ("group", GROUP),
        **more: Any,  # noqa: ANN401 - fields of the row
    ) -> dict[str, Any]:
        history = self.histories[chat]
        seq = history[-1]["seq"] + 1 if history else 665034
        digest = hashlib.md5(f"{chat}{seq}".encode()).digest()  # noqa: S324 - as the programs make their ids
        parts = [{"type": "text", "data": {"text": message}}] if isinstance(message, str) else message
        said = {
            "seq": seq,
            "id": int.from_bytes(digest[:4]) & 0x7FFFFFFF,
            "time": second,
            "message": parts,
            **more,
        }
        history.append(said)
        return said

    def answer(self, path: str, query: dict[str, Any]) -> object:
        if path == "/get_group_list":
            return self._ok([{"group_id": GROUP, "group_name": "实验室"}])
        kind = "group" if path == "/get_group_msg_history" else "user"
        history = self.histories.get((kind, query[f"{kind}_id"]))
        if history is None:
            return {
                "status": "failed",
                "retcode": 1200,
                "data": None,
                "message": "群不存在",
                "wording": "群不存在",
            }
        rows = history[-20:] if self.is_stuck else self._page(history, query)
        if not rows:
            return {"status": "failed", "retcode": 1200, "data": None, "message": "消息undefined不存在"}
        self.known |= {row["id"] for row in rows}
        told = [self._row(row, kind) for row in rows]
        return self._ok({"messages": told[::-1] if self.is_newest_first else told})

    def _ok(self, data: object) -> dict[str, Any]:
        return {"status": "ok", "retcode": 0, "data": data, "message": "", "wording": ""}

    def _page(self, history: list[dict[str, Any]], query: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages up to the anchor, itself among them; what an anchor is, differs."""
        count = 20 if self.kind == "go-cqhttp" else int(query["count"])
        if self.kind in ("llonebot", "go-cqhttp"):
            seq = int(query.get("message_seq") or history[-1]["seq"])
            return [row for row in history if row["seq"] <= seq][-count:]
        anchor = query.get("message_id" if self.kind == "lagrange" else "message_seq")
        if not anchor:
            return history[-count:]
        if self.kind.startswith("napcat") and int(anchor) not in self.known:
            return []
        at = next(place for place, row in enumerate(history) if row["id"] == int(anchor))
        is_back = self.kind == "lagrange" or query.get("reverse_order") or query.get("reverseOrder")
        return history[max(0, at + 1 - count) : at + 1] if is_back else history[at : at + count]

    def _row(self, row: dict[str, Any], kind: str) -> dict[str, Any]:
        sender = row.get("sender", FRIEND)
        seqs: dict[str, Any] = {"message_seq": row["seq"], "real_id": row["seq"]}
        if self.kind.startswith("napcat"):
            seqs = {"message_seq": row["id"], "real_id": row["id"]}
        if self.kind == "napcat":
            seqs["real_seq"] = str(row["seq"])
        return {
            "self_id": OWN,
            "user_id": sender,
            "time": row["time"],
            "message_id": row["id"],
            **seqs,
            "message_type": "private" if kind == "user" else "group",
            "sender": {"user_id": sender, "nickname": "王", "card": ""},
            "raw_message": "".join(part["data"].get("text", "?") for part in row["message"]),
            "message": row["message"],
            **({"group_id": GROUP, "group_name": "实验室"} if kind == "group" else {}),
        }


@pytest.fixture
def program() -> Iterator[Program]:
    with Program() as running:
        yield running


def puller(program: Program, *, days: int = 30, **more: Any) -> Puller:  # noqa: ANN401
    wanted = more or {"groups": [str(GROUP)], "users": [str(FRIEND)]}
    settings = {"toolkit": "onebot", "id": "qq", "base_url": program.url, **wanted}
    return Puller(TOOLKIT, settings, "token-1", since=(NOW - days * DAY) * 1000, now=NOW * 1000)


def settled(pull: Puller) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for event in sorted(pull.events, key=lambda event: event["revision"]):
        found[event["message_key"]] = event
    return found


def texts(pull: Puller) -> list[str]:
    return sorted(event["text"] for event in settled(pull).values())


def said(program: Program) -> list[str]:
    rows = [row for history in program.histories.values() for row in history]
    return sorted("".join(part["data"]["text"] for part in row["message"]) for row in rows)


def fill(program: Program, count: int, begin: int, *, chat: tuple[str, int] = ("group", GROUP)) -> None:
    for number in range(count):
        # Several of one second, and some that say the same.
        program.say(begin + number // 3, f"m{number % 7} {begin}", chat)


@pytest.mark.parametrize("order", ["oldest first", "newest first"])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_every_message_comes_once_whatever_the_program_means(program: Program, kind: str, order: str) -> None:
    program.kind, program.is_newest_first = kind, order == "newest first"
    fill(program, 130, NOW - 3 * DAY)
    fill(program, 45, NOW - DAY, chat=("user", FRIEND))
    pull = puller(program)
    assert pull.run(Purse(page=20)) is None
    assert texts(pull) == said(program)
    for begin in (NOW + 100, NOW + 5000):
        fill(program, 57, begin)
        program.say(begin, "hi", ("user", FRIEND))
        pull.now = (begin + 1000) * 1000
        assert pull.run(Purse(page=20)) is None
        assert texts(pull) == said(program)
    assert not pull.quarantined
    lines, purse = len(pull.lines), Purse()
    pull.run(purse)
    assert (len(pull.lines), purse.used) == (lines, 2), "what is known is not told again"


@pytest.mark.parametrize("kind", PROGRAMS)
def test_caps_anywhere_leave_no_hole_and_new_messages_come_first(program: Program, kind: str) -> None:
    program.kind = kind
    fill(program, 150, NOW - 3 * DAY)
    pull = puller(program, groups=[str(GROUP)])
    pull.run(Purse(requests=2, page=10))
    fill(program, 50, NOW + 100)
    pull.run(Purse(requests=2, page=10))
    program.say(NOW + 2000, "newest")
    pull.run(Purse(requests=1, page=10))
    assert "newest" in texts(pull)
    for _ in range(60):
        pull.run(Purse(requests=3, page=10))
        if not pull.cursor["chats"][f"group:{GROUP}"]["gaps"]:
            break
    assert texts(pull) == said(program)
    assert not pull.quarantined


def test_a_program_that_was_restarted_has_forgotten_its_ids(program: Program) -> None:
    fill(program, 200, NOW - 3 * DAY)
    pull = puller(program, groups=[str(GROUP)])
    pull.run(Purse(requests=5, page=20))
    program.known.clear()
    assert pull.run(Purse(page=20)) is None
    assert texts(pull) == said(program)
    assert not pull.quarantined


def test_neighbours_are_linked_by_the_groups_own_numbers(program: Program) -> None:
    fill(program, 70, NOW - DAY)
    del program.histories["group", GROUP][40]  # a number that no message has
    pull = puller(program, groups=[str(GROUP)])
    pull.run(Purse(page=10))
    assert sorted(len(s["messages"]) for s in plan_events(pull.lines, ONE_CHAIN).segments) == [29, 40]


def test_only_the_days_asked_for_are_read(program: Program) -> None:
    fill(program, 90, NOW - 20 * DAY)
    fill(program, 10, NOW - DAY)
    pull = puller(program, days=7, groups=[str(GROUP)])
    purse = Purse(page=20)
    pull.run(purse)
    assert len(settled(pull)) == 10
    assert purse.used == 1


def test_a_gap_that_the_program_does_not_close_is_told(program: Program) -> None:
    fill(program, 30, NOW - DAY)
    pull = puller(program, groups=[str(GROUP)])
    pull.run()
    fill(program, 60, NOW + 100)
    program.is_stuck = True  # the same page whatever is asked for
    purse = Purse()
    assert pull.run(purse) is None
    assert purse.used < 5
    assert len({line for line in pull.lines if b"a gap stays open" in line}) == 1
    program.say(NOW + 900, "next")
    pull.run()
    assert "next" in texts(pull)


def test_a_recall_withdraws_its_message(program: Program) -> None:
    row = program.say(NOW - 60, "周五交报告")
    program.say(NOW - 50, "好")
    pull = puller(program, groups=[str(GROUP)])
    pull.run()
    row["message"] = []
    pull.run()
    states = {key: (event["state"], event["text"]) for key, event in settled(pull).items()}
    assert states == {
        f"qq:{OWN}:{GROUP}:#665034": ("recalled", ""),
        f"qq:{OWN}:{GROUP}:#665035": ("normal", "好"),
    }
    assert not pull.quarantined


def test_a_message_that_is_first_seen_recalled_is_recalled(program: Program) -> None:
    program.say(NOW - 60, [])
    pull = puller(program, groups=[str(GROUP)])
    pull.run()
    (event,) = pull.events
    assert (event["state"], event["revision"]) == ("recalled", 1)


def test_who_says_what_to_whom(program: Program) -> None:
    parts = [
        {"type": "reply", "data": {"id": "77"}},
        {"type": "at", "data": {"qq": "all"}},
        {"type": "text", "data": {"text": " 看 "}},
        {"type": "at", "data": {"qq": "10002", "name": "李"}},
        {"type": "image", "data": {"file": "A.png", "file_size": "871157", "url": "https://x/?rkey=secret"}},
    ]
    program.say(NOW - 60, parts, ("user", FRIEND), sender=OWN)
    pull = puller(program, users=[str(FRIEND)])
    pull.run()
    (event,) = pull.events
    assert event["text"] == "@全体成员 看 @10002[图片]"
    assert event["mentions"] == [{"all": True}, {"id": "10002", "name": None}]
    assert event["reply_to"] == f"qq:{OWN}:{FRIEND}:77"
    assert event["sender"]["role"] == "self"
    assert event["conversation"] == {"id": str(FRIEND), "name": None, "type": "private"}
    (attachment,) = event["attachments"]
    assert (attachment["name"], attachment["size"], attachment["state"]) == ("A.png", 871157, "not_exported")
    assert b"secret" not in pull.lines[0]


def test_without_groups_and_users_all_groups_are_read(program: Program) -> None:
    program.say(NOW - 60, "one")
    program.say(NOW - 60, "private", ("user", FRIEND))
    pull = puller(program, account_id="")
    pull.run()
    assert texts(pull) == ["one"]


def test_a_group_that_is_not_there_is_told_once_and_stops_no_other(program: Program) -> None:
    program.say(NOW - 60, "one")
    pull = puller(program, groups=["5", str(GROUP)])
    assert pull.run() is None
    assert pull.run() is None
    (refused,) = pull.quarantined
    assert json.loads(pull.lines[refused["line"] - 1])["chat"] == "group:5"
    assert texts(pull) == ["one"]


def test_a_program_that_refuses_everything_is_a_fault(program: Program) -> None:
    pull = puller(program, groups=["5"])
    error = pull.run()
    assert error is not None
    assert (error.fault, "群不存在" in error.what) == ("server", True)


@pytest.mark.parametrize("time", [str(NOW - 60), (NOW - 60) * 1000, NOW - 60])
def test_times_may_be_text_or_milliseconds(program: Program, time: Any) -> None:  # noqa: ANN401
    program.say(time, "one")
    pull = puller(program, groups=[str(GROUP)])
    assert pull.run() is None
    assert [event["sent_at"] for event in pull.events] == [NOW - 60]


def test_ids_of_any_width_and_a_numbering_that_begins_anew(program: Program) -> None:
    program.say(NOW - 60, "one", id=-2147483648)
    program.say(NOW - 50, "two", id=2**63 + 1)
    pull = puller(program, groups=[str(GROUP)])
    pull.run()
    assert [event["message_id"] for event in pull.events] == ["-2147483648", "9223372036854775809"]
    program.histories["group", GROUP][:] = []
    program.say(NOW + 10, "after the reset", seq=3)
    pull.run()
    assert "after the reset" in texts(pull)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (fault(401), "auth"),
        (fault(403, {"status": "failed", "retcode": 1403}), "auth"),
        ((200, {}, b'{"status":"failed","retcode":1403,"message":"token verify failed"}'), "auth"),
        (fault(429, None, Retry_After="9"), "rate"),
        (fault(502), "server"),
        (fault(404), "bad_data"),
        (fault(307, None, Location="http://127.0.0.1:1/"), "bad_data"),
        ((200, {}, b"<html>NapCat WebUI</html>"), "bad_data"),
        ((200, {}, b'{"status":"ok","retcode":0,"data":null}'), "bad_data"),
        ((200, {}, b'{"hello":1}'), "bad_data"),
    ],
)
def test_each_fault_has_its_class_and_moves_nothing(program: Program, answer: Answer, expected: str) -> None:
    program.say(NOW - 60, "one")
    pull = puller(program, groups=[str(GROUP)])
    program.faults = [answer]
    error = pull.run()
    assert error is not None
    assert error.fault == expected
    assert error.retry_after == (9 if expected == "rate" else None)
    assert pull.cursor == {}
    assert pull.run() is None
    assert texts(pull) == ["one"]
    assert set(program.tokens) == {"Bearer token-1"}


def test_an_answer_that_is_too_large_is_asked_for_in_halves(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "LARGEST_ANSWER", 20_000)
    for number in range(100):
        program.say(NOW - 1000 + number, f"m{number}")
    pull = puller(program, groups=[str(GROUP)])
    error = pull.run(Purse(page=100))
    assert error is not None
    assert error.fault == "too_large"
    assert pull.run(Purse(page=25)) is None
    assert texts(pull) == said(program)


def test_strange_rows_stand_in_the_quarantine(program: Program) -> None:
    rows = [
        None,
        5,
        {},
        {"time": [], "message_id": 3},
        {"time": NOW - 9, "message_id": 8, "message": {"type": 4}, "sender": 9},
    ]
    body = {"status": "ok", "retcode": 0, "data": {"messages": rows}}
    program.faults = [(200, {}, json.dumps(body).encode())] * 3
    pull = puller(program, groups=[str(GROUP)])
    assert pull.run(pages=1) is None
    assert len(pull.quarantined) == 4
    assert len(pull.events) == 1


CARD = '{"prompt":"[通知] 周五交","meta":{"a":{"title":"标题"}}}'
INNER = {"sender": {"nickname": "王"}, "message": "[CQ:at,qq=1]好"}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("[CQ:at,qq=123] 你好&#44;&amp;&#91;x&#93;", "@123 你好,&[x]"),
        ("[CQ:image,file=a.jpg,url=https://x/y?a=1]", "[图片]"),
        ("[CQ:face,id=14]", "[表情] 14"),
        ([{"type": "json", "data": {"data": CARD}}], "[卡片] [通知] 周五交\n标题"),
        ([{"type": "json", "data": {"data": "{"}}], "[卡片] "),
        ([{"type": "file", "data": {"file": "C:\\x\\模板.docx", "file_size": 3}}], "[文件] 模板.docx"),
        ([{"type": "forward", "data": {"id": "1", "content": [INNER]}}], "[聊天记录]\n  王: @1好"),
        ([{"type": "brand-new", "data": 5}], "[brand-new]"),
        ({"type": "text", "data": {"text": "one"}}, "one"),
    ],
)  # fmt: skip
def test_what_a_message_says(message: object, text: str) -> None:
    said = said_in(message)
    assert said is not None
    assert said.text == text


@pytest.mark.parametrize("message", [[], "", None, [None, 3], 7])
def test_what_says_nothing(message: object) -> None:
    assert said_in(message) is None
