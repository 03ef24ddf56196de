"""What importers of text share: overlaps, repeats, damage, encodings, dates and bounded memory."""

from __future__ import annotations

import random
import re
import tempfile
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatproc.errors import ConfigError
from chatproc.importers import FORMATS, lines
from chatproc.importers.base import Reading, Source
from chatproc.importers.lines import Encoding, encoding_of, read_lines
from chatproc.importers.moments import DateOrders, part_of_day, second_of_day
from tests.exports import JULY, SAMPLES, Imported, imported, told, written

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT_FORMATS = ("line", "memotrace", "qq-txt", "whatsapp")
EXPORTS = [
    *(("qq-txt", path) for path in sorted((SAMPLES / "qq").glob("*.txt"))),
    *(("whatsapp", path) for path in sorted((SAMPLES / "whatsapp").glob("*.txt"))),
    *(("line", path) for path in sorted((SAMPLES / "line").glob("*.txt"))),
    *(("memotrace", path) for path in sorted((SAMPLES / "wechat").glob("memotrace*.csv"))),
]


@dataclass(frozen=True)
class Said:
    """A message as a chat holds it: its second or minute, counted on, who, and what."""

    at: int
    who: str
    text: str


def clock(minute: int) -> str:
    return f"{9 + minute // 60:02}:{minute % 60:02}"


def whatsapp(chat: list[Said]) -> str:
    return "".join(f"2026/7/1, {clock(said.at)} - {said.who}: {said.text}\n" for said in chat)


def line(chat: list[Said]) -> str:
    quoted = (f'"{said.text}"' if "\n" in said.text else said.text for said in chat)
    rows = (f"{clock(said.at)}\t{said.who}\t{text}\r\n" for said, text in zip(chat, quoted, strict=True))
    return "[LINE] 與群的聊天記錄\r\n儲存日期： 2026/07/02 09:00\r\n\r\n2026/07/01（三）\r\n" + "".join(rows)


def qq_txt(chat: list[Said]) -> str:
    rule = "=" * 64
    head = f"消息记录（此消息记录为文本格式）\n\n{rule}\n消息分组:我的QQ群\n{rule}\n消息对象:群\n{rule}\n\n"
    return head + "".join(
        f"2026-07-01 9:00:{said.at:02} {said.who}(1000{ord(said.who)})\n{said.text}\n\n" for said in chat
    )


def memotrace(chat: list[Said]) -> str:
    rows = (
        f'0,3,1,0,0,{JULY + said.at},,"{said.text}",,{said.who},{said.who},wxid_{ord(said.who)}\n'
        for said in chat
    )
    return (
        "localId,TalkerId,Type,SubType,IsSender,CreateTime,Status,StrContent,StrTime,Remark,NickName,Sender\n"
        + "".join(rows)
    )


WRITERS: dict[str, Callable[[list[Said]], str]] = {
    "line": line,
    "memotrace": memotrace,
    "qq-txt": qq_txt,
    "whatsapp": whatsapp,
}

# Few texts and senders, so that equal messages of one second or minute are common.
WORDS = st.sampled_from(["好", "收到", "ok", "周五前\n把表交到 302", "一\n\n二"])


@st.composite
def chats(draw: st.DrawFn) -> list[Said]:
    steps = draw(
        st.lists(st.tuples(st.sampled_from([0, 0, 1, 2]), st.sampled_from("甲乙丙"), WORDS), max_size=14)
    )
    at, chat = 0, []
    for step, who, text in steps:
        at += step
        chat.append(Said(at, who, text))
    return chat


def export(form: str, folder: Path, content: str, **options: Any) -> Imported:  # noqa: ANN401 - passed on
    suffix = ".csv" if form == "memotrace" else ".txt"
    return imported(form, written(folder / f"群{suffix}", content), folder / "out", **options)


@pytest.mark.parametrize("form", TEXT_FORMATS)
@settings(max_examples=80, deadline=None)
@given(chat=chats(), data=st.data())
def test_overlapping_exports_are_the_whole(form: str, chat: list[Said], data: st.DataObject) -> None:
    """Cut anywhere, inside a second too, if the parts share more than that second and it is not the first."""
    ends = [
        (i, j)
        for i in range(len(chat))
        for j in range(i + 1, len(chat) + 1)
        if chat[i].at < chat[j - 1].at and (i == 0 or chat[0].at < chat[i].at)
    ]
    if not ends:
        return
    begin, end = data.draw(st.sampled_from(ends))
    with tempfile.TemporaryDirectory() as name:
        parts = [
            export(form, Path(name) / str(number), WRITERS[form](part), complete=True)
            for number, part in enumerate((chat, chat[:end], chat[begin:]))
        ]
    whole, early, late = parts
    assert len(whole.events) == len(chat)
    assert whole.texts == [said.text for said in chat]
    for joined in (early.lines + late.lines, late.lines + early.lines):
        assert told(joined) == told(whole.lines)


@pytest.mark.parametrize("form", TEXT_FORMATS)
@settings(max_examples=25, deadline=None)
@given(chat=chats())
def test_importing_twice_is_importing_once(form: str, chat: list[Said]) -> None:
    if not chat:
        return
    with tempfile.TemporaryDirectory() as name:
        once = export(form, Path(name), WRITERS[form](chat))
        again = export(form, Path(name), WRITERS[form](chat))
    assert once.lines == again.lines
    assert once.report.files == again.report.files
    assert told(once.lines + again.lines) == told(once.lines)
    assert len({event["message_key"] for event in once.events}) == len(chat)


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_line_ends_and_encodings_change_nothing(form: str, tmp_path: Path) -> None:
    chat = [Said(0, "甲", "周五前\n把表交到 302"), Said(0, "乙", "好"), Said(1, "乙", "好")]
    text = WRITERS[form](chat).replace("\r\n", "\n")
    forms = {
        "plain": text.encode(),
        "crlf": text.replace("\n", "\r\n").encode(),
        "bom": text.encode("utf-8-sig"),
        "utf-16": text.encode("utf-16"),
        "utf-16-be": b"\xfe\xff" + text.encode("utf-16-be"),
        "utf-16-le without mark": text.encode("utf-16-le"),
        "gbk": text.encode("gb18030"),
        "no last end": text.rstrip("\n").encode(),
    }
    suffix = ".csv" if form == "memotrace" else ".txt"
    found = {
        name: imported(form, written(tmp_path / name / f"群{suffix}", content), tmp_path / name / "out")
        for name, content in forms.items()
    }
    shown = ("message_key", "sent_at", "sender.name", "text", "conversation.id")
    for name, one in found.items():
        assert one.column(*shown) == found["plain"].column(*shown), name
        assert one.texts == [said.text for said in chat]
        assert one.notes == [], name


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_only_complete_or_unbroken_exports_link_neighbours(form: str, tmp_path: Path) -> None:
    text = WRITERS[form]([Said(at, "甲", str(at)) for at in range(3)])
    keys = export(form, tmp_path, text).column("message_key")
    links = [event["sequence"].get("predecessor") for event in export(form, tmp_path, text).events]
    assert links == ([None, *keys[:2]] if form in ("line", "whatsapp") else [None] * 3)
    links = [
        event["sequence"].get("predecessor") for event in export(form, tmp_path, text, complete=True).events
    ]
    assert links == [None, *keys[:2]]


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_another_account_is_another_conversation(form: str, tmp_path: Path) -> None:
    text = WRITERS[form]([Said(0, "甲", "好")])
    one = export(form, tmp_path, text, account="a")
    other = export(form, tmp_path, text, account="b")
    assert one.column("account_id") == ["a"]
    assert one.column("message_key") != other.column("message_key")


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_a_folder_gives_each_export_in_it_and_passes_other_files_by(form: str, tmp_path: Path) -> None:
    suffix = ".csv" if form == "memotrace" else ".txt"
    for name in ("a", "b"):
        written(tmp_path / f"{name}{suffix}", WRITERS[form]([Said(0, "甲", name)]))
    written(tmp_path / f"notes{suffix}", "something,else\n1,2\n")
    found = imported(form, tmp_path, tmp_path / "out")
    assert sorted(found.texts) == ["a", "b"]


@pytest.mark.parametrize(("form", "path"), EXPORTS, ids=lambda value: getattr(value, "name", value))
def test_each_format_knows_its_own_exports_alone(form: str, path: Path) -> None:
    assert [name for name in TEXT_FORMATS if FORMATS[name].recognizes(path)] == [form]


@pytest.mark.parametrize("form", TEXT_FORMATS)
@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\0\0\0", b"\xff\xfe", b"hello\nworld\n", bytes(range(256))]
)
def test_what_is_no_export_is_refused(form: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        imported(form, written(tmp_path / "x.txt", content), tmp_path / "out")


@pytest.mark.parametrize(("form", "path"), EXPORTS, ids=lambda value: getattr(value, "name", value))
def test_the_core_takes_every_event_of_every_sample(form: str, path: Path, tmp_path: Path) -> None:
    found = imported(form, path, tmp_path)
    assert found.events
    assert len(told(found.lines)[0]) == len(found.events) == found.report.messages


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(("form", "path"), EXPORTS, ids=lambda value: getattr(value, "name", value))
def test_damaged_bytes_never_break_an_import(form: str, path: Path, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311 - damage, no secrets
    damaged = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 6)):
        place, width = chance.randrange(len(damaged)), chance.randint(0, 9)
        filler = [
            b"",
            b"\n",
            b'"',
            b"\t",
            b"\0",
            b"\xff",
            b"\xd8\x00",
            b"9",
            "٣".encode(),
            b":",
            b"\r",
            b",,",
        ]
        damaged[place : place + width] = chance.choice(filler)
    try:
        found = imported(form, written(tmp_path / path.name, bytes(damaged)), tmp_path / "out")
    except ConfigError:
        return
    told(found.lines)


# Lines that are neither text nor lost: heads of files, sections and days, the first line of a table.
HEADINGS = re.compile(
    r"=+|消息记录.*|消息(?:分组|对象)[:：].*|\[LINE\].*|儲存日期.*|\d{4}/\d\d/\d\d（.）|(?:localId|消息ID),.*"
)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_every_line_of_a_damaged_export_is_text_or_listed(form: str, seed: int, tmp_path: Path) -> None:
    """Lines lost, doubled, moved, cut, and strange ones put in: nothing that is left is lost."""
    chance = random.Random(seed)  # noqa: S311 - damage, no secrets
    chat = [Said(at // 2, chance.choice("甲乙"), f"第{at}条\n续{at}") for at in range(12)]
    rows = [row.removesuffix("\r") for row in WRITERS[form](chat).split("\n")]
    strange = [
        '"',
        "",
        "2026/7/1, 09:03 - 丁: x",
        "09:01\t丁\tx",
        "09:02 丁 x",
        "2026-07-01 9:00:01 丁(10009)",
        "1,2",
    ]
    strange += [
        "2026/07/03（五）",
        "=" * 64,
        "消息对象:别群",
        "[01.07.26, 09:00:00] 丁: x",
        "0,3,1,0,0,,,空,,,,",
    ]
    for _ in range(chance.randint(1, 5)):
        place = chance.randrange(1, len(rows))
        act = chance.randrange(4)
        if act == 0:
            del rows[place]
        elif act == 1:
            rows.insert(place, chance.choice(strange))
        elif act == 2:
            rows[place] = rows[place][: chance.randint(0, len(rows[place]))]
        else:
            rows.insert(place, rows[chance.randrange(len(rows))])
    try:
        found = export(form, tmp_path, "\n".join(rows))
    except ConfigError:
        return
    begun = {event["source"]["line"] for event in found.events}
    listed = {number for number, _ in found.notes}
    texts = "\n".join([*found.texts, *(str(event["source"].get("notice")) for event in found.events)])
    together = "\n".join(text for _, text in found.notes)  # a row of a table may be several lines
    for number, row in enumerate(rows, 1):
        is_said = row.strip(' "').split('"')[0] in texts or row in together
        assert number in begun | listed or HEADINGS.fullmatch(row) or is_said, (number, row)


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_a_long_export_needs_no_more_memory_than_a_short_one(form: str, tmp_path: Path) -> None:
    def peak(count: int) -> int:
        text = WRITERS[form](
            [Said(number * 59 // count, "甲", f"{number} " + "x" * 10_000) for number in range(count)]
        )
        path = written(tmp_path / f"{count}" / ("x.csv" if form == "memotrace" else "x.txt"), text)
        tracemalloc.start()
        imported_events = FORMATS[form].read(Source(path.name, path.parent, (path,)), reading())
        assert sum(1 for _ in imported_events) == count
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    # A message costs its fingerprint, up to the bound of `Occurrences`.
    assert peak(800) - peak(200) < 600 * 1000


def reading() -> Reading:
    from zoneinfo import ZoneInfo

    return Reading(
        account="",
        timezone=ZoneInfo("Asia/Shanghai"),
        complete=False,
        date_order=None,
        archive_root=None,
        progress=None,
    )


@pytest.mark.parametrize("form", TEXT_FORMATS)
@pytest.mark.parametrize("filler", [" ", "\u200e", ".", "<", '"', "\u200e<ab:", " (1 a", "@\u2068", "(", "9"])
@pytest.mark.timeout(20)
def test_no_line_costs_the_square_of_its_length(form: str, filler: str, tmp_path: Path) -> None:
    much = filler * (300_000 // len(filler))
    begin = {
        "line": ["2026/07/01", "09:00", "09:00\t", "09:00\t甲\t", ""],
        "memotrace": ["", "1,2", '0,3,10000,0,0,1782871200,,"<'],
        "qq-txt": ["2026-07-01", "2026-07-01 9:00:00", "2026-07-01 9:00:00 甲", "=", ""],
        "whatsapp": ["2026/7/1", "2026/7/1, 09:00", "2026/7/1, 09:00 - ", "2026/7/1, 09:00 - 甲: ", "[", ""],
    }[form]
    text = WRITERS[form]([Said(0, "甲", "好"), Said(1, "乙", "好")])
    found = export(form, tmp_path, text + "".join(f"{head}{much}\n{head}{much}x\n" for head in begin))
    assert found.texts[0] == "好"


def test_a_message_without_end_is_cut_and_listed(tmp_path: Path) -> None:
    text = whatsapp([Said(0, "甲", "x\n" * (1 << 20)), Said(1, "乙", "好")])
    found = export("whatsapp", tmp_path, text)
    assert [len(text) <= 1 << 20 for text in found.texts] == [True, True]
    assert [note["reason"][:33] for note in found.report.not_understood] == [
        "a message longer than 1048576 cha"
    ]


def test_a_line_without_end_is_cut_and_listed(tmp_path: Path) -> None:
    text = whatsapp([Said(0, "甲", "y" * (3 << 20)), Said(1, "乙", "好")])
    found = export("whatsapp", tmp_path, text)
    assert found.texts[1] == "好"
    assert [number for number, _ in found.notes] == [1]
    assert "bytes at its end are left out" in found.report.not_understood[0]["reason"]


def test_bytes_that_are_no_characters_are_shown_and_listed(tmp_path: Path) -> None:
    text = whatsapp([Said(0, "甲", "周五前交表"), Said(1, "乙", "好?"), Said(2, "乙", "行")]).encode()
    found = imported("whatsapp", written(tmp_path / "x.txt", text.replace(b"?", b"\xff")), tmp_path / "out")
    assert found.texts == ["周五前交表", "好\ufffd", "行"]
    assert [number for number, _ in found.notes] == [2]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"plain", Encoding("utf-8")),
        ("消息记录\n周五".encode(), Encoding("utf-8")),
        (b"\xef\xbb\xbfa", Encoding("utf-8", 3)),
        ("消息\n".encode("utf-16-le"), Encoding("utf-16-le")),
        ("明天下午的会\n收到，好的\n".encode("gb18030"), Encoding("gb18030")),
        ("明天下午的會\n收到，好的\n".encode("big5"), Encoding("big5")),
        (b"x\n" * 2_000_000 + "明天下午的会\n".encode("gb18030"), Encoding("gb18030")),
    ],
)
def test_an_encoding_is_told_by_what_the_lines_fit(
    content: bytes, encoding: Encoding, tmp_path: Path
) -> None:
    path = written(tmp_path / "x", content)
    if encoding.name == "utf-16-le":
        path = written(tmp_path / "x", "消息 1\n2026 7 1\n".encode("utf-16-le"))
    assert encoding_of(path) == encoding


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=8
    ),
    st.sampled_from(["utf-8-sig", "utf-16", "utf-16-be"]),
    st.integers(1, 9),
)
def test_lines_are_those_of_the_text_however_it_is_read(texts: list[str], encoding: str, step: int) -> None:
    content = ("\ufeff" if encoding == "utf-16-be" else "") + "\n".join([*texts, "end"])
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", step)
        path = written(Path(name) / "x", content.encode(encoding))
        found = [text for _, text in read_lines(Source("x", Path(name), (path,)), reading(), listed=True)]
    assert found == [text.removesuffix("\r") for text in [*texts, "end"]]


def order_of(*dates: str, given: Any = None) -> str:  # noqa: ANN401 - an order or none
    orders = DateOrders(2009)
    for written_date in dates:
        one, two, three = re.split(r"[/.]\s?", written_date)
        orders.add((one, two, three), written_date)
    return orders.order(given, "x.txt")


@pytest.mark.parametrize(
    ("dates", "order"),
    [
        (["13/01/26"], "dmy"),
        (["01/13/26"], "mdy"),
        (["2026/1/2"], "ymd"),
        (["26/12/31", "27/01/01"], "ymd"),
        (["28/02/26", "01/03/26"], "dmy"),
        (["13/01/26", "14/01/26", "31/01/26"], "dmy"),
        # None is above 12, but only in one order time runs forwards.
        (["10/05/26", "11/05/26", "01/06/26"], "dmy"),
        (["05/10/26", "05/11/26", "06/01/26"], "mdy"),
        # No country that writes these digits puts the month first.
        (["٠١/٠٧/٢٠٢٦"], "dmy"),
        # One late message.
        (["13/01/26", "20/01/26", "19/01/26", "02/02/26"], "dmy"),
    ],
)
def test_the_order_of_dates_is_proven_by_all_of_them(dates: list[str], order: str) -> None:
    assert order_of(*dates) == order


@pytest.mark.parametrize(
    "dates",
    [["26. 1. 10", "26. 1. 20"], ["01/02/26"], ["01/01/26", "02/02/26"], ["01/07/2026", "02/07/2026"]],
)
def test_an_order_that_is_not_proven_is_asked_for(dates: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        order_of(*dates)
    assert "--date-order" in (error.value.hint or "")
    assert order_of(*dates, given="dmy") == "dmy"


def test_a_given_order_that_the_dates_contradict_is_refused() -> None:
    with pytest.raises(ConfigError, match="13/01/26"):
        order_of("13/01/26", given="mdy")


@pytest.mark.parametrize(
    ("hour", "part", "expected"),
    [
        (0, "", 0),
        (12, "AM", 0),
        (12, "p. m.", 12),
        (3, "下午", 15),
        (12, "上午", 0),
        (12, "中午", 12),
        (1, "中午", 13),
        (11, "晚上", 23),
        (2, "凌晨", 2),
        (9, "م", 21),
        (9, "ص", 9),
        (3, "오후", 15),
        (8, "午後", 20),
        (10, "p.\u202fm.", 22),
        (15, "PM", 15),
    ],
)
def test_parts_of_the_day_are_those_of_a_clock(hour: int, part: str, expected: int) -> None:
    found = part_of_day(part)
    assert found is not None
    assert second_of_day(hour, 0, 0, found) == expected * 3600
