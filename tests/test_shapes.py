"""Tasks in the formats of other programs: what hostile text can never do there, told by a reader of each."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, date, datetime
from typing import Any

import icalendar
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chatproc.plaintext import one_line
from chatproc.results import Task
from chatproc.shapes import FORMATS, shape

HOSTILE = [
    "=cmd|'/c calc'!A0",
    "＝1+1",
    "'=1",
    "a;=1+1;\t@b; '-2",
    'a",=1\r\n=2\n"=3',
    "[a](http://evil) ![b](http://evil/c.png) <http://evil> www.evil.com https://evil/x_y_z",
    "[[note|shown]] ![[note]] #tag ^chatproc-aaaa %%hidden%% ==lit== $x$ key:: value [k:: v]",
    "\n# heading\n- [x] other ^chatproc-b\n> q\n---\n| a | b |\n|---|---|\n```\ncode",
    "<script>alert(1)</script> <!-- chatproc:end x --> &lt;b&gt; &#35;",
    "**b** __c__ ~~d~~ `e` \\ \\\\* {{f}}",
    "x 2020-01-01 done +project @context due:2020-01-01 id:t_other https://a:b",
    "(A) 2020-01-01 first\nx second line",
    "a\u3000+wide\u2003@space\u2028x third\x85x fourth",
    "\x1b]8;;http://evil\x07click\x1b]8;;\x07 \u202etxt.exe\u200b\x00",
    "SUMMARY:a\r\nBEGIN:VALARM\r\nACTION:DISPLAY\r\nEND:VALARM",
    "END:VTODO,;\\n\\N",
    "長" * 190,
]


def task(words: str = "交报告", *, status: str = "open", priority: str = "P2", **time: Any) -> Task:  # noqa: ANN401 - times
    source = {
        "conversation": {"id": "lab", "name": words, "type": "group"},
        "sender": {"id": "1", "name": words},
        "sent_at_local": "2026-07-06T09:03:22+08:00",
        "text": words,
        "quotes": [{"text": words, "check": "exact"}],
    }
    record = {
        **dict.fromkeys(("title", "event", "priority_reason", "location", "notes"), words),
        "priority": priority,
        "status": status,
        "time": {"start": None, "due": None, "timezone": "Asia/Shanghai", "original": words, **time},
        "people": [{"name": words, "role": words}],
        "action_steps": [words, words],
        "sources": [source],
        "owner": {"platform": "qq", "conversation": source["conversation"]},
    }
    return Task("t_mzxw6ytboi2xk4tsnf3gk3dpne", 3, "2026-07-07T10:00:00.123+08:00", record, [])


anything = st.text(min_size=1) | st.sampled_from(HOSTILE)


# ── every format ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", FORMATS)
@given(words=anything)
def test_no_character_that_is_obeyed_unseen_is_left(form: str, words: str) -> None:
    text = shape([task(words)], form).removeprefix("\ufeff").replace("\r\n", "\n")
    # A folded line of iCalendar begins with a space, which belongs to the folding.
    assert all(one_line(line) == " ".join(line.split()) for line in text.split("\n"))
    assert "\r" not in text


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "time",
    [
        {"due": "0001-01-01T00:00:00+08:00", "start": "0001-01-01"},
        {"due": "9999-12-31T23:59:59-08:00", "start": "1969-12-31"},
        {"start": "9999-12-31T23:59:59-08:00"},
    ],
)
def test_a_time_at_the_end_of_the_calendar_breaks_no_format(form: str, time: dict[str, str]) -> None:
    assert "mzxw6ytboi2xk4tsnf3gk3dpne" in shape([task(**time)], form)


@pytest.mark.parametrize("form", FORMATS)
def test_no_tasks_are_a_text_without_any(form: str) -> None:
    assert "t_" not in shape([], form)


# ── CSV ────────────────────────────────────────────────────────────────────────────────────────────────


def table(text: str, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter))


@given(words=anything)
def test_no_cell_of_a_table_is_a_formula_however_it_is_parted(words: str) -> None:
    text = shape([task(words), task(words)], "csv")
    assert [len(row) for row in table(text)] == [16, 16, 16]
    for delimiter in ",;":
        cells = [cell for row in table(text, delimiter)[1:] for cell in row]
        assert [cell for cell in cells if re.match(r'[\s"]*[=+\-@＝＋－＠]', cell)] == []


@given(words=anything)
def test_the_text_of_a_cell_comes_back_by_the_rule_of_the_page(words: str) -> None:
    names, cells = table(shape([task(words)], "csv"))
    read = {name: re.sub(r"(^|;)'", r"\1", cell) for name, cell in zip(names, cells, strict=True)}
    if one_line(words):
        assert read["title"] == one_line(words)
        assert read["steps"] == f"{one_line(words)} | {one_line(words)}"


# ── Markdown ───────────────────────────────────────────────────────────────────────────────────────────

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(text: str) -> list[str]:
    """What a reader sees of each paragraph; anything but paragraphs of lists is a fault."""
    tokens = READER.parse(text)
    kinds = {token.type.removesuffix("_open").removesuffix("_close") for token in tokens}
    assert kinds <= {"bullet_list", "list_item", "paragraph", "inline"}
    inner = [token for token in tokens if token.type == "inline"]
    assert {child.type for token in inner for child in token.children or []} <= {"text", "text_special"}
    return ["".join(child.content for child in token.children or []) for token in inner]


@given(words=anything)
def test_markdown_shows_hostile_text_as_it_is_written_and_obeys_none_of_it(words: str) -> None:
    title = one_line(words) or "t_mzxw6ytboi2xk4tsnf3gk3dpne"
    seen = shown(shape([task(words)], "md"))
    assert seen[0] == f"[ ] {title} (P2, r3) ^chatproc-mzxw6ytboi2xk4tsnf3gk3dpne"
    if one_line(words):
        assert seen[1] == f"about: {title}"
        assert len(seen) == 10


@given(words=anything)
def test_no_mark_of_obsidian_or_a_plugin_stands_in_the_text(words: str) -> None:
    text = shape([task(words)], "md")
    marks = (
        r"\[\[|%%|==|::|~~|(?<!\\)[#&`<]|(?<!\\):/|www\.|(?<!\\)\^(?!chatproc-mzxw6ytboi2xk4tsnf3gk3dpne$)"
    )
    assert [line for line in text.split("\n") if re.search(marks, re.sub(r"\\\\", "", line))] == []


def test_a_line_of_markdown_tells_status_due_and_revision() -> None:
    done = task("交报告", status="completed", due="2026-07-13T12:00:00+08:00")
    assert shape([done], "md").split("\n")[0] == (
        "- [x] 交报告 (P2, due 2026-07-13 12:00+08:00, r3) ^chatproc-mzxw6ytboi2xk4tsnf3gk3dpne"
    )
    assert shape([task(status="superseded")], "md").startswith("- [-] ")


# ── todo.txt ───────────────────────────────────────────────────────────────────────────────────────────


@given(words=anything, status=st.sampled_from(["open", "completed"]))
def test_a_line_of_todo_txt_says_only_what_the_task_says(words: str, status: str) -> None:
    text = shape([task(words, status=status, due="2026-07-13")], "todo.txt")
    assert text.count("\n") == 1
    done = "x 2026-07-07 2026-07-06 " if status == "completed" else "(C) 2026-07-06 "
    assert text.startswith(done)
    said = text.removeprefix(done).split()
    assert [word for word in said if word[0] in "+@"] == []
    pairs = dict(word.split(":", 1) for word in said if re.fullmatch(r"[^\s:]+:[^\s:]+", word))
    clocks_aside = {name: value for name, value in pairs.items() if not name.isdecimal()}
    own = {"due": "2026-07-13", "id": "t_mzxw6ytboi2xk4tsnf3gk3dpne"}
    over = {"pri": "C", "status": "completed"} if status == "completed" else {}
    assert {name: value for name, value in clocks_aside.items() if name not in {"http", "https"}} == {
        **own,
        **over,
    }


# ── iCalendar ──────────────────────────────────────────────────────────────────────────────────────────


def todos(text: str) -> list[icalendar.Todo]:
    return [one for one in icalendar.Calendar.from_ical(text).walk() if isinstance(one, icalendar.Todo)]


def values(text: str) -> dict[str, str]:
    """The properties of the one task by name, unescaped as RFC 5545 says; the library errs there."""
    lines = re.sub(r"\r\n[ \t]", "", text).split("\r\n")
    inner = lines[lines.index("BEGIN:VTODO") + 1 : lines.index("END:VTODO")]
    signs = {"n": "\n", "N": "\n"}
    return {
        re.split("[:;]", line)[0]: re.sub(
            r"\\(.)", lambda found: signs.get(found[1], found[1]), line.partition(":")[2]
        )
        for line in inner
    }


@given(words=anything)
def test_a_calendar_keeps_every_word_and_no_word_becomes_a_property(words: str) -> None:
    text = shape([task(words)], "ics")
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    whole = icalendar.Calendar.from_ical(text)
    assert [one.name for one in whole.walk()] == ["VCALENDAR", "VTODO"]
    (made,) = todos(text)
    assert not made.errors
    said = values(text)
    assert said["SUMMARY"] == (one_line(words) or "t_mzxw6ytboi2xk4tsnf3gk3dpne")
    if one_line(words):
        assert said["LOCATION"] == one_line(words)
        assert said["DESCRIPTION"].split("\n")[0] == f"about: {one_line(words)}"
        assert said["CATEGORIES"] == f"qq,{one_line(words)}"
    assert set(made) - {"LOCATION", "DESCRIPTION"} == {
        *("UID", "DTSTAMP", "LAST-MODIFIED", "SEQUENCE", "X-CHATPROC-REVISION"),
        *("SUMMARY", "CATEGORIES", "PRIORITY", "STATUS"),
    }


def test_the_same_revision_is_the_same_bytes_and_knows_its_number() -> None:
    assert shape([task()], "ics") == shape([task()], "ics")
    (made,) = todos(shape([task(status="completed", priority="P0")], "ics"))
    assert made["uid"] == "t_mzxw6ytboi2xk4tsnf3gk3dpne@chatproc"
    assert (made["sequence"], made["priority"], made["status"]) == (3, 1, "COMPLETED")
    assert made.decoded("completed") == datetime(2026, 7, 7, 2, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "due", "written"),
    [
        (None, "2026-07-13", (None, date(2026, 7, 13))),
        (None, "2026-07-13T12:00:00+08:00", (None, datetime(2026, 7, 13, 4, tzinfo=UTC))),
        ("2026-07-12", "2026-07-13", (date(2026, 7, 12), date(2026, 7, 13))),
        ("2026-07-13", "2026-07-13", (None, date(2026, 7, 13))),
        ("2026-07-12T23:30:00+00:00", "2026-07-14", (date(2026, 7, 13), date(2026, 7, 14))),
        (
            "2026-07-12",
            "2026-07-13T12:00:00+08:00",
            (datetime(2026, 7, 11, 16, tzinfo=UTC), datetime(2026, 7, 13, 4, tzinfo=UTC)),
        ),
        (
            "2026-07-13T13:00:00+08:00",
            "2026-07-13T12:00:00+08:00",
            (None, datetime(2026, 7, 13, 4, tzinfo=UTC)),
        ),
        ("2026-07-13T13:00:00Z", None, (datetime(2026, 7, 13, 13, tzinfo=UTC), None)),
    ],
)
def test_times_are_of_one_kind_and_the_start_is_before_the_due(
    start: str | None, due: str | None, written: tuple[date | None, date | None]
) -> None:
    (made,) = todos(shape([task(start=start, due=due)], "ics"))
    found = [made.decoded(name) if name in made else None for name in ("dtstart", "due")]
    assert tuple(found) == written
