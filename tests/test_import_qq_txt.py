"""The text export of QQ for Windows: what the samples say, read by hand, is what the events say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.exports import JULY, SAMPLES, Imported, imported, written

if TYPE_CHECKING:
    from pathlib import Path

RULE = "=" * 64
NINE = JULY + 9 * 3600


def head(chat: str, grouping: str = "我的QQ群") -> str:
    return f"{RULE}\n消息分组:{grouping}\n{RULE}\n消息对象:{chat}\n{RULE}\n\n"


def read(tmp_path: Path, text: str, **settings: object) -> Imported:
    title = "消息记录（此消息记录为文本格式，不支持重新导入）\n\n"
    return imported(
        "qq-txt", written(tmp_path / "全部消息记录.txt", title + text), tmp_path / "out", **settings
    )


@pytest.mark.parametrize("name", ["pcqq_txt_utf8_bom.txt", "pcqq_txt_utf16le.txt"])
def test_the_sample_reads_as_it_says(name: str, tmp_path: Path) -> None:
    found = imported("qq-txt", SAMPLES / "qq" / name, tmp_path)
    assert {(event["platform"], event["account_id"]) for event in found.events} == {("qq", "")}
    assert found.events[0]["conversation"] == {"id": "测试群", "name": "测试群", "type": "group"}
    assert found.column("sent_at", "sender.id", "sender.name", "kind", "state", "text") == [
        (
            NINE + 245,
            "10001",
            "甲",
            "message",
            "normal",
            "@乙 周五前\n2026-06-30 18:00:00 这行是正文里引用的(不是头)\n交表",
        ),
        (NINE + 32706, "b@example.test", "乙", "message", "normal", "[图片]收到"),
        (NINE + 32706, "10001", "10001", "message", "recalled", ""),
        (NINE + 32760, "1000000", "系统消息", "system", "normal", "丙加入本群。"),
    ]
    assert [len(event["attachments"]) for event in found.events] == [0, 1, 0, 0]
    assert found.events[1]["attachments"][0]["state"] == "not_exported"
    assert found.notes == [(11, "2026-06-30 18:00:00 这行是正文里引用的(不是头)")]
    assert (found.report.messages, found.report.recalls, found.report.timezone_assumed) == (4, 1, True)


def test_two_exports_in_other_encodings_have_the_same_keys(tmp_path: Path) -> None:
    one, other = (
        imported("qq-txt", SAMPLES / "qq" / f"pcqq_txt_{name}.txt", tmp_path)
        for name in ("utf8_bom", "utf16le")
    )
    assert one.column("message_key") == other.column("message_key")


def test_all_chats_of_one_file_are_conversations_of_their_own(tmp_path: Path) -> None:
    text = (
        head("小红", "我的好友")
        + "2010-01-06 16:57:28 小红\n在吗\n\n2010-01-06 16:58:00 我\n在\n\n"
        + f"{RULE}\n消息对象:小明\n{RULE}\n\n2009-01-01 8:00:00 小明\n早\n\n"
        + head("课题组")
        + "2013-06-23 15:52:32 云<a@163.com>\nhttp://x.test/?a=1\n\n百度亮了\n\n"
    )
    found = read(tmp_path, text)
    assert found.column("conversation.id", "conversation.type") == [
        ("小红", "private"),
        ("小红", "private"),
        ("小明", "private"),
        ("课题组", "group"),
    ]
    assert found.texts == ["在吗", "在", "早", "http://x.test/?a=1\n\n百度亮了"]
    # Times of another chat are no time running backwards.
    assert found.notes == []


def test_clocks_of_twelve_hours_and_empty_messages(tmp_path: Path) -> None:
    text = head("群") + (
        "2026-07-01 12:43:38 AM 骰娘(87200175)\n1\n\n"
        "2026-07-01 8:46:18 PM 暗夜(28084825)\n\n\n"
        "2026/7/1 下午 9:00:00 (28084825)\n2\n\n"
    )
    found = read(tmp_path, text)
    assert found.column("sent_at", "sender.name", "text") == [
        (JULY + 43 * 60 + 38, "骰娘", "1"),
        (JULY + 20 * 3600 + 46 * 60 + 18, "暗夜", ""),
        (JULY + 21 * 3600, None, "2"),
    ]


def test_only_a_number_in_a_name_is_an_id_and_a_title_is_no_name(tmp_path: Path) -> None:
    text = (
        head("群")
        + "2026-07-01 9:00:00 【群主】小(明)(12345)\nx\n\n2026-07-01 9:00:01 【活跃】a<b>c(12345)\ny\n\n"
    )
    assert read(tmp_path, text, account="12345").column("sender.id", "sender.name", "sender.role") == [
        ("12345", "小(明)", "self"),
        ("12345", "a<b>c", "self"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "2026-07-01 9:30:00 乙(10002)",  # no empty line before it
        "\n2026-07-01 9:30:00 乙",  # a name alone, where others have numbers
        "\n2026-06-30 9:30:00 丁(10004)",  # back in time, and by one who has no message
    ],
)
def test_a_line_that_only_looks_like_a_beginning_stays_text_and_is_listed(line: str, tmp_path: Path) -> None:
    text = head("群") + (
        "2026-07-01 9:00:00 甲(10001)\n他说：\n"
        f"{line}\n行\n\n"
        "2026-07-01 10:00:00 乙(10002)\n好\n\n2026-07-01 10:00:01 甲(10001)\n好\n\n"
    )
    found = read(tmp_path, text)
    assert found.texts == [f"他说：\n{line}\n行", "好", "好"]
    assert [text for _, text in found.notes] == [line.strip()]


def test_a_known_sender_back_in_time_is_a_message_and_listed(tmp_path: Path) -> None:
    text = head("群") + (
        "2026-07-01 9:00:00 甲(10001)\n1\n\n"
        "2026-06-30 9:00:00 甲(10001)\n2\n\n"
        "2026-07-01 9:01:00 甲(10001)\n3\n\n"
    )
    found = read(tmp_path, text)
    assert found.texts == ["1", "2", "3"]
    assert [text for _, text in found.notes] == ["2026-06-30 9:00:00 甲(10001)"]


def test_a_copy_without_empty_lines_and_rules_is_read_too(tmp_path: Path) -> None:
    text = (
        "消息分组:我的群\n消息对象:组\n2024-01-02 03:04:05 甲(10001)\n一\n二\n"
        "2024-01-02 03:05:06 乙(10002)\n三\n2024-01-02 03:06:07 甲(10001)\n四\n"
    )
    found = read(tmp_path, text)
    assert found.texts == ["一\n二", "三", "四"]
    assert set(found.column("conversation.id")) == {"组"}


def test_a_rule_in_a_text_begins_no_section(tmp_path: Path) -> None:
    text = head("群") + f"2026-07-01 9:00:00 甲(10001)\n{RULE}\n消息对象:别人\n完\n\n"
    found = read(tmp_path, text)
    assert found.texts == [f"{RULE}\n消息对象:别人\n完"]
    assert found.column("conversation.id") == ["群"]


@pytest.mark.parametrize(
    ("sender", "text", "state"),
    [
        ("系统消息(10000)", "甲撤回了一条消息", "recalled"),
        ("10001(10001)", "撤回了一条消息", "recalled"),
        ("甲(10001)", "撤回了一条消息", "normal"),
        ("10001(10001)", "我撤回了一条消息，因为写错了", "normal"),
    ],
)
def test_a_recall_is_told_by_the_program_and_not_by_a_person(
    sender: str, text: str, state: str, tmp_path: Path
) -> None:
    found = read(tmp_path, head("群") + f"2026-07-01 9:00:00 {sender}\n{text}\n\n")
    assert found.column("state") == [state]
    assert found.texts == ([""] if state == "recalled" else [text])
    assert state == "normal" or found.events[0]["source"]["notice"] == text


def test_everyone_is_a_mention_and_an_address_is_none(tmp_path: Path) -> None:
    text = (
        head("群")
        + "2026-07-01 9:00:00 甲(10001)\n@全体成员 交表\n\n2026-07-01 9:00:01 甲(10001)\na@全体成员b\n\n"
    )
    assert read(tmp_path, text).column("mentions") == [[{"all": True}], []]
