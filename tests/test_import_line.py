"""LINE's text export: what the sample says, read by hand, is what the events say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chatproc.errors import ConfigError
from tests.exports import JULY, SAMPLES, Imported, imported, written

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "[LINE] 與群的聊天記錄\n儲存日期： 2026/07/02 09:00\n\n"
DAY = "2026/07/01（三）\n"


def read(tmp_path: Path, text: str, **settings: object) -> Imported:
    return imported("line", written(tmp_path / "[LINE] 群.txt", text), tmp_path / "out", **settings)


def test_the_sample_reads_as_it_says(tmp_path: Path) -> None:
    found = imported("line", SAMPLES / "line" / "zh_tw.txt", tmp_path)
    assert {event["conversation"]["id"] for event in found.events} == {"專案群"}
    assert found.column("sent_at", "sender.name", "kind", "state", "text") == [
        (JULY + 545 * 60, "甲 乙", "message", "normal", "第一行\n09:06\t假\t這行在引號內\n結尾"),
        (JULY + 904 * 60, "丙", "message", "normal", "[照片]"),
        (JULY + 905 * 60, "丙", "message", "recalled", ""),
        (JULY + 906 * 60, None, "system", "normal", "丁加入了群組"),
    ]
    assert [len(event["attachments"]) for event in found.events] == [0, 1, 0, 0]
    assert found.notes == [(6, "09:06\t假\t這行在引號內")]
    links = [event["sequence"].get("predecessor") for event in found.events]
    assert links == [None, *found.column("message_key")[:3]]


@pytest.mark.parametrize(
    ("title", "day", "time"),
    [
        ("[LINE] 群とのトーク履歴", "2026/07/01(水)", "15:04"),
        ("[LINE] 群のトーク履歴", "2026.07.01 水曜日", "午後3:04"),
        ("[LINE] Chat history with 群", "2026/07/01(Wed)", "15:04"),
        ("[LINE] Chat history in 群", "2026.07.01 Wednesday", "3:04 PM"),
        ("Chat history in 群", "2026.07.01 Wed", "3:04PM"),
        ("[LINE] 与群的聊天记录", "2026/07/01（周三）", "下午3:04"),
        ("[LINE] 群님과의 대화", "2026년 7월 1일 수요일", "오후 3:04"),
        ("[LINE] ประวัติการสนทนากับ群", "2026/07/01(พ.)", "15:04"),
    ],
)
def test_languages_differ_in_title_day_and_time(title: str, day: str, time: str, tmp_path: Path) -> None:
    found = read(tmp_path, f"{title}\n\n{day}\n{time}\t甲\t好\n")
    assert found.column("conversation.id", "sent_at", "sender.name", "text") == [
        ("群", JULY + 904 * 60, "甲", "好")
    ]
    assert found.notes == []


def test_the_day_of_the_week_proves_the_order_of_a_date(tmp_path: Path) -> None:
    # 5 June 2026 was a Friday, 6 May a Wednesday.
    fifth_of_june = JULY - 26 * 86400
    for day, seconds in (("Fri, 06/05/2026", fifth_of_june), ("Fri, 05/06/2026", fifth_of_june)):
        assert read(tmp_path, f"{HEAD}{day}\n00:00\t甲\t好\n").column("sent_at") == [seconds]


def test_a_message_that_opens_with_a_persons_own_quotation_mark_swallows_no_other(tmp_path: Path) -> None:
    rows = ['09:00\t甲\t"好" 是什么', '09:01\t乙\t他说 "好"', '09:02\t甲\t"', "09:03\t乙\t行"]
    found = read(tmp_path, HEAD + DAY + "\n".join(rows) + "\n")
    assert found.texts == ['"好" 是什么', '他说 "好"', '"', "行"]
    assert found.notes == []


def test_lines_without_quotation_marks_go_on_the_message_above(tmp_path: Path) -> None:
    found = read(tmp_path, f'{HEAD}{DAY}09:00\t甲\t一\n\n二 "三"\n09:01\t乙\t"四\n五\n"\n')
    assert found.texts == ['一\n\n二 "三"', "四\n五\n"]


def test_a_day_in_a_text_moves_no_message_and_is_listed(tmp_path: Path) -> None:
    text = (
        f'{HEAD}{DAY}09:00\t甲\t"集合\n\n2026/07/05（日）\n10:00 校门"\n09:01\t乙\t好\n2026/07/06（一）\n'
        "09:02\t乙\t行\n\n2026/07/02（四）\n08:00\t甲\t早\n"
    )
    found = read(tmp_path, text)
    assert found.texts == ["集合\n\n2026/07/05（日）\n10:00 校门", "好\n2026/07/06（一）", "行", "早"]
    assert found.column("sent_at")[2:] == [JULY + 542 * 60, JULY + 86400 + 480 * 60]
    assert [text for _, text in found.notes] == ["2026/07/05（日）", "2026/07/06（一）"]


def test_a_day_whose_weekday_is_another_is_no_day(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}{DAY}09:00\t甲\t好\n\n2026/07/02（一）\n09:01\t甲\t行\n")
    assert found.column("sent_at") == [JULY + 540 * 60, JULY + 541 * 60]
    assert [text for _, text in found.notes] == ["2026/07/02（一）"]


def test_back_in_time_by_an_unknown_sender_is_text_and_listed(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}{DAY}09:00\t甲\t他说\n07:00\t丁\t假\n09:01\t甲\t好\n")
    assert found.texts == ["他说\n07:00\t丁\t假", "好"]
    assert found.notes == [(6, "07:00\t丁\t假")]


@pytest.mark.parametrize(
    ("notice", "name", "role"),
    [
        ("丙已收回訊息", "丙", "user"),
        ("您已收回訊息", None, "self"),
        ("丙がメッセージの送信を取り消しました", "丙", "user"),
        ("メッセージの送信を取り消しました", None, "self"),
        ("丙 unsent a message.", "丙", "user"),
        ("You unsent a message.", None, "self"),
        ("丙撤回了一条消息", "丙", "user"),
    ],
)
@pytest.mark.parametrize("tabs", ["\t", "\t\t"])
def test_a_message_taken_back_is_withdrawn(
    notice: str, name: str | None, role: str, tabs: str, tmp_path: Path
) -> None:
    found = read(tmp_path, f"{HEAD}{DAY}09:00{tabs}{notice}\n")
    assert found.column("state", "text", "sender.name", "sender.role") == [("recalled", "", name, role)]
    assert found.report.recalls == 1


def test_what_a_person_writes_of_taking_back_is_text(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}{DAY}09:00\t甲\t丙已收回訊息\n")
    assert found.column("state", "text") == [("normal", "丙已收回訊息")]


@pytest.mark.parametrize(
    ("word", "files"),
    [
        ("[照片]", 1),
        ("[写真]", 1),
        ("[Photo]", 1),
        ("[檔案]", 1),
        ("[貼圖]", 0),
        ("[スタンプ]", 0),
        ("[x]", 0),
    ],
)
def test_placeholders_stay_and_those_of_files_are_attachments(word: str, files: int, tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}{DAY}09:00\t甲\t{word}\n")
    assert found.texts == [word]
    assert len(found.events[0]["attachments"]) == files == found.report.attachments_missing


def test_names_may_hold_spaces_and_texts_tabs(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}{DAY}09:00\t甲 乙 丙\t一\t二\n")
    assert found.column("sender.name", "text") == [("甲 乙 丙", "一\t二")]


def test_where_spaces_alone_separate_nothing_is_guessed(tmp_path: Path) -> None:
    found = read(tmp_path, "2026.07.01 星期三\n09:00 Tony Chou 好\n續\n09:01 丙 行\n")
    assert found.column("sender.name", "sender.role", "kind", "text") == [
        (None, "unknown", "message", "Tony Chou 好\n續"),
        (None, "unknown", "message", "丙 行"),
    ]
    assert len(found.notes) == 1


def test_a_time_without_a_day_is_listed(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}08:00\t甲\t早\n\n{DAY}09:00\t甲\t好\n")
    assert found.texts == ["好"]
    assert found.notes == [(4, "08:00\t甲\t早")]


def test_another_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="LINE"):
        read(tmp_path, "2026/07/01（三）\nnothing\n")
