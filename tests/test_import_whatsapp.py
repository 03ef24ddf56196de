"""WhatsApp's text export: what the samples say, read by hand, is what the events say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chatproc.errors import ConfigError
from tests.exports import JULY, SAMPLES, Imported, imported, written

if TYPE_CHECKING:
    from pathlib import Path

# Unix seconds of the midnights in Shanghai that the public samples name.
DAYS = {"2019-01-01": 1546272000, "2019-01-20": 1547913600, "2019-01-30": 1548777600}
DAYS |= {"2020-06-10": 1591718400, "2020-06-20": 1592582400, "2020-06-30": 1593446400}
DAYS |= {"2021-12-10": 1639065600, "2021-12-20": 1639929600, "2021-12-30": 1640793600}
LOREM = "Lorem ipsum dolor sit amet"
LRM = "\u200e"


def read(
    tmp_path: Path, text: str | bytes, name: str = "WhatsApp Chat with 群.txt", **settings: object
) -> Imported:
    return imported("whatsapp", written(tmp_path / name, text), tmp_path / "out", **settings)


@pytest.mark.parametrize(
    "name",
    ["[mmddyy]_24hrs", "ddmmyy_24hrs", "mmddyy_24hrs", "mmddyyyy_12hrs", "yyyymmdd_24hrs"],
)
def test_public_samples_read_as_they_say(name: str, tmp_path: Path) -> None:
    found = imported("whatsapp", SAMPLES / "whatsapp" / f"chatminer_test_{name}.txt", tmp_path)
    two_lines = f"{LOREM},\nconsectetur adipiscing elit. Duis libero."
    ten_past_twelve = 12 * 60 + 10
    assert found.column("sent_at", "sender.name", "kind", "text") == [
        (DAYS["2019-01-01"] + (11 * 60 + 25) * 60, "John Doe", "message", f"{LOREM}."),
        (DAYS["2019-01-20"] + (11 * 60 + 23) * 60, "John Doe", "message", "."),
        (DAYS["2019-01-30"] + (20 * 60 + 49) * 60, "Jahn Doe", "message", two_lines),
        (
            DAYS["2020-06-10"] + (15 * 60 + 55) * 60,
            "John-John Doe",
            "message",
            "Lorem ipsum : dolor sit amet.",
        ),
        (DAYS["2020-06-20"] + 8 * 60, None, "system", '+12 345 578 created group "Groupname"'),
        (DAYS["2020-06-30"] + (9 * 60 + 10) * 60, None, "system", "You were added"),
        (DAYS["2021-12-10"] + (10 * 60 + 10) * 60, "John Doe 🤓", "message", "Lorem ipsum 🤓"),
        (DAYS["2021-12-20"] + ten_past_twelve * 60, "🤓", "message", "Lorem ipsum 🤓"),
        (DAYS["2021-12-30"] + (22 * 60 + 1) * 60, "John Doe", "message", two_lines),
    ]
    assert found.notes == []


def test_arabic_digits_and_marks_of_direction(tmp_path: Path) -> None:
    found = imported("whatsapp", SAMPLES / "whatsapp" / "arabic_digits_rtl.txt", tmp_path)
    assert found.column("sent_at", "sender.name", "text") == [
        (JULY + (9 * 60 + 5) * 60, "سارة", "أرسل التقرير غدًا"),
        (JULY + (21 * 60 + 6) * 60, "سارة", "<تم استبعاد الوسائط>"),
    ]
    assert [len(event["attachments"]) for event in found.events] == [0, 1]


def test_utf_16_and_chinese_parts_of_the_day(tmp_path: Path) -> None:
    found = imported("whatsapp", SAMPLES / "whatsapp" / "utf16le_bom.txt", tmp_path)
    assert found.column("sent_at", "sender.name", "text") == [
        (JULY + (15 * 60 + 4) * 60, "甲", "明天下午3点开会"),
        (JULY + (15 * 60 + 5) * 60, "乙", "收到"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "31/12/2025, 21:05 - Ann: hi",
        "31.12.25, 21:05 - Ann: hi",
        "31-12-25 21:05 - Ann: hi",
        "12/31/25, 9:05 PM - Ann: hi",
        "12/31/25, 9:05\u202fPM - Ann: hi",
        "31/12/2025, 9:05 p. m. - Ann: hi",
        "31/12/2025 à 21:05 - Ann: hi",
        "31.12.2025 klo 21.05 - Ann: hi",
        "31.12.25 г., 21:05 ч. - Ann: hi",
        "۲۰۲۵/۱۲/۳۱،\u200f ۲۱:۰۵ - Ann: hi",
        "21:05, 31/12/2025 - Ann: hi",
        "[21:05:00, 31/12/2025] Ann: hi",
        "2025/12/31 下午9:05 - Ann: hi",
        "2025. 12. 31. 오후 9:05 - Ann: hi",
        "2025/12/31 21:05 - Ann: hi",
        "31/12/2568, 21:05 - Ann: hi",
        "[31.12.25, 21:05:00] Ann: hi",
        "[31/12/2025, 21:05:00] Ann: hi",
        "[2025/12/31 下午9:05:00] Ann: hi",
        "[2025-12-31, 9:05:00 p.m.] Ann: hi",
        f"{LRM}[12/31/25, 9:05:00\u202fPM] ~\u202fAnn: hi",
        "[31.12.25, 21:05:00] \u202aAnn\u202c: hi",
        "\u200f[٣١\u200f/١٢\u200f/٢٠٢٥، ٩:٠٥:٠٠ م] Ann: hi",
    ],
)
def test_every_way_to_write_a_time_is_the_same_time(line: str, tmp_path: Path) -> None:
    found = read(tmp_path, line + "\nthere")
    new_years_eve = 1767110400
    assert found.column("sent_at", "sender.name", "text") == [
        (new_years_eve + (21 * 60 + 5) * 60, "Ann", "hi\nthere")
    ]
    assert found.notes == []


def test_an_order_of_dates_that_is_not_proven_is_asked_for(tmp_path: Path) -> None:
    text = "01/07/2026, 09:05 - Ann: hi\n"
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert "--date-order" in (error.value.hint or "")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
    assert read(tmp_path, text, date_order="dmy").column("sent_at") == [JULY + 545 * 60]
    assert read(tmp_path, text, date_order="mdy").column("sent_at") == [JULY + 545 * 60 - 175 * 86400]


ANDROID = "13/01/26, {} - {}\n"


def chat(*messages: tuple[str, str]) -> str:
    return "".join(ANDROID.format(time, rest) for time, rest in messages)


@pytest.mark.parametrize(
    "line",
    [
        "[10:00, 13/01/26] Bob: yes",  # as the browser copies messages
        "10:00, 13/01/26 - Bob: yes",
        "[13/01/26, 10:00] Bob: yes",  # as a telephone copies messages
        "13/01/26, 10:00:30 - Bob: yes",  # with seconds, where others have none
        "13.01.26, 10:00 - Bob: yes",
        "12/01/26, 10:00 - Dan: yes",  # back in time, and by one who has no message
        "99/99/26, 10:00 - Bob: yes",
    ],
)
def test_a_line_that_only_looks_like_a_beginning_stays_text_and_is_listed(line: str, tmp_path: Path) -> None:
    text = chat(("10:01", "Ann: he wrote"), ("10:02", "Bob: ok"), ("10:03", "Ann: fine"))
    rows = text.split("\n")
    rows.insert(1, line)
    found = read(tmp_path, "\n".join(rows))
    assert found.texts == [f"he wrote\n{line}", "ok", "fine"]
    assert found.notes == [(2, line)]


def test_a_late_message_is_a_message_and_listed_and_one_of_the_hour_is_not(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        chat(("10:00", "Ann: 1"), ("08:00", "Ann: 2"), ("10:01", "Ann: 3"), ("10:00", "Ann: 4")),
    )
    assert found.texts == ["1", "2", "3", "4"]
    assert [number for number, _ in found.notes] == [2]


def test_text_before_the_first_message_is_listed(tmp_path: Path) -> None:
    found = read(tmp_path, "Exported by me\n\n" + chat(("10:00", "Ann: 1")))
    assert found.texts == ["1"]
    assert found.notes == [(1, "Exported by me")]


def test_notices_have_no_sender_even_with_colons_in_titles(tmp_path: Path) -> None:
    notices = [
        "Messages and calls are end-to-end encrypted. Only people in this chat can read them.",
        'Ann changed the group name from "Plan" to "Plan: B"',
        "Ann added Bob",
        "Ann changed the subject to “10:30”",
    ]
    found = read(tmp_path, chat(*(("10:00", notice) for notice in notices)))
    assert found.texts == notices
    assert set(found.column("kind", "sender.name", "sender.role")) == {("system", None, "system")}


def test_an_iphone_marks_what_it_writes_itself(tmp_path: Path) -> None:
    lines = [
        f"群: {LRM}Messages and calls are end-to-end encrypted.",
        f"Ann: {LRM}image omitted",
        "Ann: image omitted",
        f"Ann: {LRM}Bild weggelassen",
        f"Ann: {LRM}report.pdf • {LRM}3 pages {LRM}document omitted",
        f"Ann: look {LRM}<attached: 00000012-PHOTO-2026-01-13-10-00-00.jpg>",
        f"Ann: {LRM}This message was deleted.",
        f"Ann: {LRM}Location: https://maps.google.com/?q=1,2",
        f"Ann: {LRM}POLL:\nWhen?\n{LRM}OPTION: Friday (3 votes)\n{LRM}OPTION: 10:00 ({LRM}1 vote)",
        f"Ann: {LRM}Missed voice call, {LRM}Tap to call back",
    ]
    text = "".join(
        f"{LRM if LRM in line else ''}[13.01.26, 10:00:0{at}] {line}\n" for at, line in enumerate(lines)
    )
    found = read(tmp_path, text)
    assert found.column("kind") == ["system", *["message"] * 8, "system"]
    assert [[file["name"] for file in event["attachments"]] for event in found.events] == [
        [],
        [None],
        [],
        [None],
        ["report.pdf"],
        ["PHOTO-2026-01-13-10-00-00.jpg"],
        [],
        [],
        [],
        [],
    ]
    assert found.texts[5] == "look"
    assert found.column("state")[6] == "recalled"
    assert found.texts[7] == "Location: https://maps.google.com/?q=1,2"
    # Votes change with the day of the export.
    assert found.texts[8] == f"POLL:\nWhen?\n{LRM}OPTION: Friday\n{LRM}OPTION: 10:00"


@pytest.mark.parametrize(
    "phrase",
    [
        "Media omitted",
        "Medien ausgeschlossen",
        "Multimedia omitido",
        "Médias omis",
        "Mídia oculta",
        "省略多媒体文件",
        "Без медиафайлов",
        "미디어 파일 제외됨",
        "メディアは含まれていません",
        "is what she wrote",
    ],
)
def test_a_placeholder_is_an_attachment_and_stays_readable(phrase: str, tmp_path: Path) -> None:
    found = read(tmp_path, chat(("10:00", f"Ann: <{phrase}>")))
    assert found.texts == [f"<{phrase}>"]
    known = not phrase.startswith("is")
    assert [file["state"] for file in found.events[0]["attachments"]] == ["not_exported"] * known


def test_files_beside_the_chat_are_found_and_missing_ones_are_told(tmp_path: Path) -> None:
    written(tmp_path / "IMG-20260113-WA0001.jpg", b"picture")
    text = chat(
        ("10:00", "Ann: IMG-20260113-WA0001.jpg (file attached)\nthe plan"),
        ("10:01", "Ann: IMG-20260113-WA0002.jpg (Datei angehängt)"),
        ("10:02", "Ann: ../../etc/passwd.txt (file attached)"),
        ("10:03", "Ann: ..\\secret.txt (file attached)"),
    )
    found = read(tmp_path, text)
    present, missing, outside, backslash = found.events
    assert present["text"] == "the plan"
    assert [(file["name"], file["path"], file["state"], file["size"]) for file in present["attachments"]] == [
        ("IMG-20260113-WA0001.jpg", "IMG-20260113-WA0001.jpg", "present", 7)
    ]
    assert [(file["name"], file["state"]) for file in missing["attachments"]] == [
        ("IMG-20260113-WA0002.jpg", "missing")
    ]
    assert outside["attachments"] == []
    assert outside["text"] == "../../etc/passwd.txt (file attached)"
    assert [file["path"] for file in backslash["attachments"]] == [None]
    assert (found.report.attachments_present, found.report.attachments_missing) == (1, 2)


def test_the_number_before_an_iphones_file_is_no_part_of_its_name(tmp_path: Path) -> None:
    keys = set()
    for number in ("00000012", "00000007"):
        name = f"{number}-report.pdf"
        written(tmp_path / number / name, b"%PDF")
        text = f"[13.01.26, 10:00:00] Ann: {LRM}<attached: {name}>\n"
        found = read(tmp_path / number, text)
        assert found.events[0]["attachments"][0]["path"] == name
        keys.add(found.column("message_key")[0])
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("text", "state", "expected"),
    [
        ("see you <This message was edited>", "edited", "see you"),
        (f"bis dann {LRM}<Diese Nachricht wurde bearbeitet.>", "edited", "bis dann"),
        ("<This message was edited> is what it says there", "normal", None),
        ("This message was deleted", "recalled", ""),
        ("You deleted this message.", "recalled", ""),
        ("此消息已删除", "recalled", ""),
        ("This message was deleted by admin Bob", "recalled", ""),
        ("This message was deleted, wasn't it?", "normal", None),
    ],
)
def test_edits_and_deletions(text: str, state: str, expected: str | None, tmp_path: Path) -> None:
    found = read(tmp_path, chat(("10:00", f"Ann: {text}")))
    assert found.column("state", "text") == [(state, text if expected is None else expected)]
    assert (found.report.edits, found.report.recalls) == (state == "edited", state == "recalled")


def test_a_mention_is_what_stands_between_isolates(tmp_path: Path) -> None:
    found = read(tmp_path, chat(("10:00", "Ann: @\u2068Bob B\u2069 and @Dan"), ("10:00", "Ann: a@b.test")))
    assert found.column("mentions") == [[{"id": None, "name": "Bob B"}], []]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("WhatsApp Chat with 项目群.txt", "项目群"),
        ("WhatsApp Chat with 项目群 (2).txt", "项目群"),
        ("WhatsApp Chat mit 项目群.txt", "项目群"),
        ("Chat de WhatsApp con 项目群.txt", "项目群"),
        ("与项目群的 WhatsApp 聊天.txt", "项目群"),
        ("WhatsApp Chat - 项目群/_chat.txt", "项目群"),
        ("项目群.txt", "项目群"),
    ],
)
def test_the_title_is_in_the_name_of_the_file_or_its_folder(name: str, title: str, tmp_path: Path) -> None:
    found = read(tmp_path, chat(("10:00", "Ann: 1")), name)
    assert found.events[0]["conversation"] == {"id": title, "name": title, "type": "unknown"}


def test_three_senders_are_a_group(tmp_path: Path) -> None:
    found = read(tmp_path, chat(("10:00", "Ann: 1"), ("10:00", "Bob: 2"), ("10:00", "Cy: 3")))
    assert set(found.column("conversation.type")) == {"group"}
