"""chatlog's API answers and WeFlow's JSON: what the samples say, read by hand, is what the events say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatproc.core import plan_events
from chatproc.errors import ConfigError
from chatproc.importers import FORMATS
from chatproc.importers.base import Origin, declared_attachment
from chatproc.importers.wechat import chatlog_message
from chatproc.importers.wechat_words import wechat_mentions
from tests.json_exports import SAMPLES, attachment, fields, read, reasons

API = SAMPLES / "wechat" / "chatlog_api.json"
ERROR = SAMPLES / "wechat" / "chatlog_api_error.json"
WEFLOW = SAMPLES / "wechat" / "weflow.json"
SECOND = 1782871200


def row(content: str = "好", seq: int = SECOND * 1000, **members: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "seq": seq,
        "time": "2026-07-01T10:00:00+08:00",
        "talker": "1@chatroom",
        "talkerName": "群",
        "isChatRoom": True,
        "sender": "wxid_a",
        "senderName": "甲",
        "isSelf": False,
        "type": 1,
        "subType": 0,
        "content": content,
        **members,
    }


def app(sub_type: int, content: str = "", **contents: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    return row(content, type=49, subType=sub_type, contents=contents)


def rows(path: Path, *found: dict[str, Any]) -> Path:
    path.write_text(json.dumps(found, ensure_ascii=False), "utf-8")
    return path


def text_of(value: dict[str, Any]) -> tuple[str, list[str]]:
    notes: list[str] = []
    message = chatlog_message(value, "", Origin(note=notes.append, attach=declared_attachment))
    assert message is not None
    return message.text, notes


def test_the_answer_of_the_api_reads_as_it_says(tmp_path: Path) -> None:
    events, report = read("chatlog", API, tmp_path)
    said, picture, again, quoting, notice, file, forward = events
    assert said["conversation"] == {"id": "1@chatroom", "name": "项目群", "type": "group"}
    assert fields(said, "platform", "account_id", "message_id", "sent_at", "text", "mentions") == (
        "wechat",
        "",
        "1782871200001",
        1782871200,
        "@乙\u2005 周五前把报表发我",
        [{"id": None, "name": "乙"}],
    )
    assert said["sender"] == {"id": "wxid_a", "name": "甲", "role": "user"}
    assert fields(picture, "text", "attachments") == ("[图片]", [attachment(mime="image/jpeg")])
    # chatlog gives some rows twice: one message.
    assert again["message_key"] == picture["message_key"] != said["message_key"]
    assert fields(quoting, "text", "reply_to") == ("收到\n[引用] @乙 周五前把报表发我", None)
    assert quoting["sender"] == {"id": "wxid_b", "name": None, "role": "user"}
    assert fields(notice, "kind", "text") == ("system", '"甲" 撤回了一条消息')
    assert notice["sender"] == {"id": None, "name": None, "role": "system"}
    assert fields(file, "text", "attachments") == ("[文件]", [attachment(name="合同.docx")])
    assert forward["conversation"]["id"] == "2@chatroom"
    assert forward["text"] == "[聊天记录] 群聊的聊天记录\n甲 (2026-6-30 18:00): 明天交"
    # The API answers for a window of time: what stands beside what is not known.
    assert not any("sequence" in event for event in events)
    assert (report.messages, report.not_understood) == (7, ())


def test_the_table_of_the_api_is_read_as_well_and_names_the_same_chat(tmp_path: Path) -> None:
    table = SAMPLES / "wechat" / "chatlog.csv"
    assert FORMATS["chatlog"].recognizes(table)
    (event,), report = read("chatlog", table, tmp_path, timezone="Asia/Shanghai")
    assert event["conversation"] == {"id": "1@chatroom", "name": "项目群", "type": "group"}
    assert event["sender"] == {"id": "wxid_a", "name": "甲,乙", "role": "user"}
    assert fields(event, "platform", "sent_at", "text") == (
        "wechat",
        SECOND,
        '第一行\n2026-07-01 10:00:01,假,假,假,假,假\n"引号"',
    )
    assert event["source"]["module"] == "import/chatlog"
    assert report.timezone_assumed


def test_an_error_of_the_api_is_no_empty_chat(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="database is decrypting, please wait"):
        read("chatlog", ERROR, tmp_path)
    with pytest.raises(ConfigError, match="no message"):
        read("chatlog", rows(tmp_path / "empty.json"), tmp_path)


def test_two_messages_that_share_a_counter_stay_two(tmp_path: Path) -> None:
    """Some copies of WeChat count every message of a second the same."""
    path = rows(tmp_path / "a.json", row("好"), row("行"), row("好", seq=SECOND * 1000 + 1))
    events, _ = read("chatlog", path, tmp_path / "out")
    assert len({event["message_key"] for event in events}) == 3


def test_two_sides_of_one_chat_are_two_copies_and_never_meet(tmp_path: Path) -> None:
    path = rows(tmp_path / "a.json", row())
    keys = {
        read("chatlog", path, tmp_path / "out", account=account)[0][0]["message_key"]
        for account in ("wxid_a", "wxid_b")
    }
    assert len(keys) == 2


def test_the_accounts_own_messages_are_his(tmp_path: Path) -> None:
    path = rows(tmp_path / "a.json", row(isSelf=True), row("x", sender="wxid_b"), row("y", sender="wxid_me"))
    events, _ = read("chatlog", path, tmp_path / "out", account="wxid_me")
    assert [event["sender"]["role"] for event in events] == ["self", "user", "self"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (row("", type=34, contents={"voice": "7"}), "[语音]"),
        (row("", type=43, contents={"md5": "a"}), "[视频]"),
        (row("", type=47, contents={"cdnurl": "http://x"}), "[动画表情]"),
        (row("", type=42), "[名片]"),
        (row("", type=50), "[通话]"),
        (row("", type=48, contents={"label": "图书馆", "x": "1", "y": "2"}), "[位置] 图书馆 1 2"),
        (app(5, title="通知", desc="周五", url="http://x"), "[链接]\n通知\n周五\nhttp://x"),
        (app(33, title="小程序", url="http://x"), "[小程序]\n小程序\nhttp://x"),
        (app(87, title="群公告", desc="周五交表"), "[群公告]\n群公告\n周五交表"),
        (app(2000, "[转账|发送 ￥5.00](饭钱)"), "[转账]\n[转账|发送 ￥5.00](饭钱)"),
        (app(2001), "[红包]"),
        (app(57, "收到"), "收到"),
        (app(57, "收到", refer={"type": 3, "content": ""}), "收到\n[引用] [图片]"),
        (app(57, "收到", refer={"type": 49, "subType": 6, "contents": {"title": "a.pdf"}}),
         "收到\n[引用] [文件] a.pdf"),
        (app(19, title="记录", desc="甲: 1\n乙: 2"), "[聊天记录]\n记录\n甲: 1\n乙: 2"),
        (app(19, title="记录", desc="甲: 1", recordInfo={"DataList": {"DataItems": None}}),
         "[聊天记录] 记录\n甲: 1"),
    ],
)  # fmt: skip
def test_each_type_reads_as_wechat_shows_it(value: dict[str, Any], text: str) -> None:
    assert text_of(value) == (text, [])


def test_a_forward_in_a_forward_keeps_its_messages_and_its_kinds() -> None:
    inner = {"Title": "里", "DataList": {"DataItems": [{"SourceName": "丙", "DataDesc": "深"}]}}
    items = [
        {"DataType": "17", "SourceName": "甲", "RecordXML": {"RecordInfo": inner}},
        {"DataType": "8", "SourceName": "乙", "SourceTime": "昨天", "DataTitle": "a.pdf"},
        {"DataType": "2", "SourceName": "乙"},
    ]
    text, notes = text_of(app(19, title="记录", recordInfo={"DataList": {"DataItems": items}}))
    assert text == ("[聊天记录] 记录\n甲: [聊天记录] 里\n  丙: 深\n乙 (昨天): [文件] a.pdf\n乙: [图片]")
    assert notes == []


def test_a_pat_is_a_notice(tmp_path: Path) -> None:
    events, _ = read("chatlog", rows(tmp_path / "a.json", app(62, "甲 拍了拍 乙")), tmp_path / "out")
    assert fields(events[0], "kind", "text") == ("system", "甲 拍了拍 乙")


def test_unknown_types_keep_their_words_and_are_listed(tmp_path: Path) -> None:
    path = rows(tmp_path / "a.json", row("原样", type=4242), app(4243, title="新"))
    events, report = read("chatlog", path, tmp_path / "out")
    assert [event["text"] for event in events] == ["原样", "[分享]\n新"]
    assert fields(events[0]["source"], "type", "subType") == (4242, 0)
    assert reasons(report) == ["an unknown type of message"] * 2


@pytest.mark.parametrize(
    ("time", "seq", "sent_at"),
    [
        ("2026-07-01T02:00:00Z", 0, SECOND),
        ("2026-07-01 10:00:00", SECOND * 1000 + 7, SECOND + 0.007),
        (None, SECOND, SECOND),
        (None, SECOND * 1000, SECOND),
    ],
)
def test_a_time_is_its_own_or_else_the_counters(
    time: str | None, seq: int, sent_at: float, tmp_path: Path
) -> None:
    path = rows(tmp_path / "a.json", row(time=time, seq=seq))
    events, report = read("chatlog", path, tmp_path / "out")
    assert events[0]["sent_at"] == sent_at
    assert not report.timezone_assumed


@pytest.mark.parametrize(
    "broken", [{"time": None, "seq": None}, {"talker": ""}, {"time": "0001-01-01T00:00:00Z", "seq": 0}]
)
def test_a_row_without_time_or_talker_is_listed(broken: dict[str, Any], tmp_path: Path) -> None:
    path = rows(tmp_path / "a.json", row(**broken), row("b"))
    events, report = read("chatlog", path, tmp_path / "out")
    assert [event["text"] for event in events] == ["b"]
    assert reasons(report) == ["no message with a talker and a time"]


def test_a_mention_ends_with_wechats_own_space() -> None:
    assert wechat_mentions("@所有人\u2005 @乙\u2005 @丙 a@b.c") == [{"all": True}, {"id": None, "name": "乙"}]


# ── WeFlow ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_weflow_sample_reads_as_it_says(tmp_path: Path) -> None:
    events, report = read("weflow", WEFLOW, tmp_path)
    said, well, again, picture, spoken, quoting, notice, unknown = events
    assert said["conversation"] == {"id": "1@chatroom", "name": "项目群", "type": "group"}
    assert fields(said, "message_key", "sent_at", "text", "message_id") == (
        "wechat::1@chatroom:7550661067109350011",
        1782871200,
        "周五前交表",
        "7550661067109350011",
    )
    # Two equal messages of one second stay two.
    assert well["message_key"] != again["message_key"]
    assert well["sender"] == {"id": "wxid_me", "name": "我", "role": "self"}
    assert fields(picture, "text", "attachments") == ("[图片]", [attachment()])
    assert picture["sender"] == {"id": "wxid_b", "name": None, "role": "user"}
    assert fields(spoken, "text", "revision") == ("[语音] 我明天到", 1)
    assert fields(quoting, "text", "reply_to") == ("收到", said["message_key"])
    assert quoting["source"]["quotedContent"] == "周五前交表"
    assert fields(notice, "kind", "text") == ("system", '"甲" 撤回了一条消息')
    assert notice["sender"] == {"id": None, "name": None, "role": "system"}
    assert fields(unknown, "kind", "text") == ("message", "原样")
    assert unknown["source"]["localType"] == 4242
    assert reasons(report) == ["an unknown type of message"]
    assert not any("sequence" in event for event in events)


def weflow(path: Path, *messages: dict[str, Any], **more: Any) -> Path:  # noqa: ANN401 - any value
    path.parent.mkdir(parents=True, exist_ok=True)
    session = {"wxid": "wxid_x", "displayName": "小王", "type": "私聊"}
    document = {"weflow": {"version": "1"}, "session": session, **more, "messages": messages}
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    return path


def spoken(content: str, **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    return {
        "createTime": SECOND,
        "type": "语音消息",
        "content": content,
        "isSend": 0,
        "senderUsername": "wxid_x",
        **members,
    }


@pytest.mark.parametrize("known", [{}, {"platformMessageId": "9"}], ids=["without id", "with id"])
def test_a_spoken_message_is_one_with_and_without_its_words(known: dict[str, str], tmp_path: Path) -> None:
    lines: list[bytes] = []
    for name, content in (("a", "[语音]"), ("b", "我明天到"), ("c", "media/voices/1.wav")):
        path = weflow(tmp_path / name / "chat.json", spoken(content, **known))
        _, report = read("weflow", path, tmp_path / "out")
        lines += Path(report.files[0]).read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["text"] for line in lines] == ["[语音]", "[语音] 我明天到", "[语音]"]
    for order in (lines, lines[::-1]):
        plan = plan_events(order)
        assert (plan.quarantined, plan.messages) == ([], 1)


def test_a_picture_in_the_export_is_found_by_a_path_with_backslashes(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "图.jpg").write_bytes(b"abc")
    picture = spoken("media\\图.jpg", type="图片消息")
    escaping = spoken("..\\..\\etc\\passwd", type="文件消息")
    events, _ = read("weflow", weflow(tmp_path / "chat.json", picture, escaping), tmp_path / "out")
    assert fields(events[0]["attachments"][0], "path", "state") == ("media/图.jpg", "present")
    assert fields(events[1]["attachments"][0], "name", "path", "state") == ("passwd", None, "not_exported")


def test_senders_listed_apart_are_found(tmp_path: Path) -> None:
    message = {"createTime": SECOND, "type": "文本消息", "content": "好", "isSend": 0, "senderID": 1}
    senders = [{"senderID": 1, "accountId": "wxid_x", "displayName": "小王"}]
    path = weflow(tmp_path / "chat.json", message, {**message, "senderID": 2}, senders=senders)
    events, _ = read("weflow", path, tmp_path / "out")
    assert [event["sender"] for event in events] == [
        {"id": "wxid_x", "name": "小王", "role": "user"},
        {"id": None, "name": None, "role": "unknown"},
    ]
    assert events[0]["conversation"] == {"id": "wxid_x", "name": "小王", "type": "private"}


def test_another_programs_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"messages": [{"createTime": 5}]}')
    with pytest.raises(ConfigError, match="not a WeFlow export"):
        read("weflow", path, tmp_path / "out")
