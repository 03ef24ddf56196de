"""MemoTrace's and chatlog's tables: what the samples say, read by hand, is what the events say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chatproc.errors import ConfigError
from chatproc.importers.base import Source
from chatproc.importers.wechat_csv import is_chatlog_csv, read_chatlog_csv
from tests.exports import JULY, SAMPLES, Imported, imported, written
from tests.test_import_text import reading

if TYPE_CHECKING:
    from pathlib import Path

FULL = "localId,TalkerId,Type,SubType,IsSender,CreateTime,Status,StrContent,StrTime,Remark,NickName,Sender\n"
ONE_CHAT = "消息ID,类型,发送人,时间,内容,备注,昵称,更多信息\n"
TEN = JULY + 36000


def read(tmp_path: Path, text: str, name: str = "messages.csv", **settings: object) -> Imported:
    return imported("memotrace", written(tmp_path / name, text), tmp_path / "out", **settings)


def row(
    content: str, *, kind: object = 1, sub_kind: object = 0, created: object = TEN, local_id: int = 7
) -> str:
    quoted = '"' + content.replace('"', '""') + '"'
    return f"{local_id},3,{kind},{sub_kind},0,{created},,{quoted},2026-07-01 10:00:00,备注,甲,wxid_a\n"


def test_the_full_sample_reads_as_it_says(tmp_path: Path) -> None:
    found = imported("memotrace", SAMPLES / "wechat" / "memotrace_full_gbk.csv", tmp_path)
    assert found.column(
        "conversation.id", "message_id", "sent_at", "sender.id", "sender.role", "state", "text"
    ) == [
        ("3", "12245", TEN, "wxid_a", "self", "normal", "周五交，\n带附件"),
        ("4", "1", TEN + 60, None, "self", "recalled", ""),
        ("3", "12246", TEN + 100, None, "unknown", "normal", "好的"),
    ]
    assert found.events[1]["source"]["notice"] == "你撤回了一条消息"
    assert found.notes == []


def test_the_sample_of_one_chat_reads_as_it_says(tmp_path: Path) -> None:
    found = imported("memotrace", SAMPLES / "wechat" / "memotrace_session_bom.csv", tmp_path)
    assert found.column("message_id", "sent_at", "sender.name", "text") == [
        ("1", TEN, "小红", "=1+1\n@小明 明天9点")
    ]
    assert found.report.timezone_assumed


def test_the_chatlog_sample_reads_as_it_says() -> None:
    path = SAMPLES / "wechat" / "chatlog.csv"
    assert is_chatlog_csv(path)
    assert not is_chatlog_csv(SAMPLES / "wechat" / "memotrace_full_gbk.csv")
    (message,) = read_chatlog_csv(Source(path.name, path.parent, (path,)), reading())
    assert (message.conversation.id, message.conversation.name) == ("1@chatroom", "项目群")
    assert (message.sender_id, message.sender_name, message.sent_at) == ("wxid_a", "甲,乙", TEN * 1000)
    assert message.text == '第一行\n2026-07-01 10:00:01,假,假,假,假,假\n"引号"'


def chatlog(tmp_path: Path, rows: str) -> list[Any]:
    path = written(tmp_path / "c.csv", "Time,SenderName,Sender,TalkerName,Talker,Content\n" + rows)
    return list(read_chatlog_csv(Source(path.name, path.parent, (path,)), reading()))


def test_chatlogs_files_and_notices(tmp_path: Path) -> None:
    found = chatlog(
        tmp_path,
        "2026-07-01 10:00:00,甲,wxid_a,,wxid_a,![图片](http://127.0.0.1/x)\n"
        "2026-07-01 10:00:01,甲,wxid_a,,wxid_a,[文件|表.xlsx](http://127.0.0.1/y)\n"
        "2026-07-01 10:00:02,,系统消息,,wxid_a,甲 撤回了一条消息\n"
        "2026-07-01 10:00:03,,系统消息,,wxid_a,你已添加了甲\n"
        "2026-07-01 10:00:04,,,,wxid_a,?\n",
    )
    assert [[file["name"] for file in message.attachments] for message in found] == [
        [None],
        ["表.xlsx"],
        [],
        [],
        [],
    ]
    assert [(message.kind, message.state, message.role) for message in found[2:]] == [
        ("message", "recalled", "user"),
        ("system", "normal", "system"),
        ("message", "normal", "unknown"),
    ]


def test_a_column_that_the_first_line_does_not_name_is_the_servers_id(tmp_path: Path) -> None:
    """Old versions: `MsgSvrID` before the names, which are the chat's; of a group the sender follows."""
    server = "8123456789012345678"
    group = f"7,3,1,0,0,{TEN},,好,2026-07-01 10:00:00,{server},,课题组,王老师\n"
    private = f"8,4,1,0,0,{TEN},,在,2026-07-01 10:00:00,{server[:-1]}9,老李,李,\n"
    private_short = f"9,4,1,0,1,{TEN},,在,2026-07-01 10:00:00,{server[:-1]}7,老李,李\n"
    found = read(tmp_path, FULL + group + private + private_short)
    assert found.column("message_id", "conversation.id", "sender.name", "sender.role") == [
        (server, "课题组", "王老师", "user"),
        (server[:-1] + "9", "老李", "老李", "user"),
        (server[:-1] + "7", "老李", None, "self"),
    ]
    assert found.column("message_key")[0].endswith(f":{server}")


def test_a_recall_seen_later_is_a_later_revision_of_the_same_message(tmp_path: Path) -> None:
    before = read(tmp_path / "a", FULL + row("周五交"))
    after = read(tmp_path / "b", FULL + row('<sysmsg>"甲" 撤回了一条消息</sysmsg>', kind=10000))
    assert before.column("message_key") == after.column("message_key")
    assert after.column("revision", "state", "sender.name") == [(1, "recalled", "甲")]


@pytest.mark.parametrize(
    "created", [TEN, f"{TEN}.0", TEN * 1000, TEN * 1000000, "", "0", "null", "NaN", "-5", "1e400"]
)
def test_times_are_read_in_every_unit_and_else_from_the_words(created: object, tmp_path: Path) -> None:
    assert read(tmp_path, FULL + row("x", created=created)).column("sent_at") == [TEN]


@pytest.mark.parametrize(
    ("kind", "sub_kind", "content", "text", "files"),
    [
        (3, 0, "<msg><img/></msg>", "[图片]", [None]),
        (34, 0, "<msg/>", "[语音]", [None]),
        (47, 0, "<msg/>", "[动画表情]", []),
        (42, 0, '<msg nickname="李&amp;王" alias="x"/>', "[名片] 李&王", []),
        (48, 0, '<msg><location x="1" label="东路 1 号" /></msg>', "[位置] 东路 1 号", []),
        (49, 6, "<msg><title>表.xlsx</title><type>6</type></msg>", "[文件] 表.xlsx", ["表.xlsx"]),
        (
            49,
            5,
            "<title>题</title><des>述</des><url>https://e.test?a=1&amp;b=2</url>",
            "[链接] 题\n述\nhttps://e.test?a=1&b=2",
            [],
        ),
        (49, 57, "<title><![CDATA[好 & 行]]></title><refermsg><title>x</title></refermsg>", "好 & 行", []),
        (10000, 0, '你邀请<a href="x">甲</a>', '你邀请<a href="x">甲</a>', []),
        (10000, 0, "<b>甲</b>加入", "甲加入", []),
    ],
)
def test_kinds_read_as_words(  # noqa: PLR0913, PLR0917 - a row of the table
    kind: int, sub_kind: int, content: str, text: str, files: list[str | None], tmp_path: Path
) -> None:
    found = read(tmp_path, FULL + row(content, kind=kind, sub_kind=sub_kind))
    assert found.texts == [text]
    assert [file["name"] for file in found.events[0]["attachments"]] == files
    assert found.column("kind") == ["system" if kind == 10000 else "message"]
    assert found.notes == []


@pytest.mark.parametrize(
    ("kind", "sub_kind", "content", "text"),
    [
        (999, 0, "什么", "什么"),
        (999, 0, "", "[999]"),
        ("x", 0, "", "[x]"),
        (49, 19, "", "[聊天记录]"),
        (49, 57, "", "[引用]"),
    ],
)
def test_what_is_unknown_or_not_there_is_listed_and_stays(
    kind: object, sub_kind: int, content: str, text: str, tmp_path: Path
) -> None:
    found = read(tmp_path, FULL + row(content, kind=kind, sub_kind=sub_kind))
    assert found.texts == [text]
    assert [number for number, _ in found.notes] == [2]


def test_a_row_without_a_time_is_listed(tmp_path: Path) -> None:
    found = read(tmp_path, FULL + "7,3,1,0,0,,,x,gestern,,,\n" + row("y"))
    assert found.texts == ["y"]
    assert [number for number, _ in found.notes] == [2]


def test_a_mark_that_does_not_close_costs_its_row_alone(tmp_path: Path) -> None:
    damaged = f'6,3,1,0,0,{TEN},,"x,2026-07-01 10:00:00,,,\n'
    for text in (
        FULL + damaged + row("一\n二") + row("y", local_id=8),
        FULL + row("一\n二") + row("y") + damaged,
    ):
        found = read(tmp_path, text)
        assert found.texts == ["一\n二", "y"]
        assert [text for _, text in found.notes] == [damaged.strip()]


@pytest.mark.parametrize("content", ['"', '""', "a,b", 'a"b', '"a"', "a\n\nb", "", " ", 'a""\n"b'])
def test_a_field_is_what_was_put_into_it(content: str, tmp_path: Path) -> None:
    assert read(tmp_path, FULL + row(content) + row("z", local_id=8)).texts == [content, "z"]


@pytest.mark.parametrize(
    ("name", "chat"),
    [
        ("小红(wxid_red)/小红.csv", {"id": "wxid_red", "name": "小红", "type": "unknown"}),
        ("组(5@chatroom)/组(1).csv", {"id": "5@chatroom", "name": "组", "type": "group"}),
        ("x/小红_utf8.csv", {"id": "小红", "name": "小红", "type": "unknown"}),
        ("x/小红.csv", {"id": "小红", "name": "小红", "type": "unknown"}),
    ],
)
def test_a_chat_is_named_by_its_folder_and_file(name: str, chat: dict[str, str], tmp_path: Path) -> None:
    found = read(tmp_path, ONE_CHAT + "5,文本,我,2026-07-01 10:00:00,在,,,more\n", name)
    assert found.events[0]["conversation"] == chat
    assert found.column("sender.name", "sender.role") == [(None, "self")]


def test_words_for_kinds_of_one_chat(tmp_path: Path) -> None:
    rows = (
        "1,图片,甲,2026-07-01 10:00:00,,,,\n"
        "2,系统消息,甲,2026-07-01 10:00:01,甲加入,,,\n"
        "3,系统消息,甲,2026-07-01 10:00:02,你撤回了一条消息,,,\n"
        "0,文本,,2026/7/1 10:00:03,好,,,\n"
        "0,文本,,2026/07/01 10:00:03,好,,,\n"
        "9007199254740993,文本,甲,2026-07-01 10:00:04,@所有人\u2005看,,,\n"
    )
    found = read(tmp_path, ONE_CHAT + rows)
    assert found.column("message_id", "kind", "state", "text") == [
        ("1", "message", "normal", "[图片]"),
        ("2", "system", "normal", "甲加入"),
        ("3", "message", "recalled", ""),
        (None, "message", "normal", "好"),
        (None, "message", "normal", "好"),
        ("9007199254740993", "message", "normal", "@所有人\u2005看"),
    ]
    assert len(set(found.column("message_key"))) == 6
    assert found.column("mentions")[-1] == [{"all": True}]


def test_another_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="StrContent"):
        read(tmp_path, "a,b\n1,2\n")
