"""What reaches the screen: hostile text is shown, never obeyed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatproc.cli import render
from chatproc.cli.progress import ProgressDisplay
from chatproc.importers import ImportReport
from chatproc.plaintext import one_line, plain

# Mostly what an attack is made of, so that sequences really form.
HOSTILE = st.text(
    st.one_of(
        st.sampled_from(
            "\x1b\x9b\x9d\x90\x9c\x07[]()P^_X;?0123456789mHJK\\\r\n\t\u202e\u2066\u2069\u200b\ufeff"
        ),
        st.characters(),
        st.characters(min_codepoint=0x7F, max_codepoint=0x9F),
        st.characters(min_codepoint=0xE0000, max_codepoint=0xE007F),
    ),
    max_size=200,
)


def obeyed(character: str) -> bool:
    """Whether a terminal does anything with a character but draw it."""
    return (
        (unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t")
        or unicodedata.bidirectional(character)
        in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
        or character in "\u2028\u2029"
    )


@given(HOSTILE)
def test_nothing_that_a_terminal_obeys_comes_through(text: str) -> None:
    assert not [character for character in plain(text) if obeyed(character)]
    assert plain(plain(text)) == plain(text)


@given(HOSTILE)
def test_one_line_is_one_line(text: str) -> None:
    line = one_line(text)
    assert line.splitlines() in ([], [line])
    assert "\t" not in line


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=100))
def test_ordinary_text_comes_through_whole(text: str) -> None:
    kept = [character for character in text if character not in "\u115f\u1160\u3164\uffa0"]
    assert plain(text) == "".join(kept)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b]never ended, still read", "never ended, still read"),
        ("over\rwritten", "over\nwritten"),
        ("a\x08\x08b", "ab"),
        ("file\u202excod.exe", "filexcod.exe"),
        ("pay\u200bpal \u2066x\u2069", "paypal x"),
        ("\U000e0041\U000e0042hidden", "hidden"),
        ("👩\u200d👩\u200d👧 می\u200cخواهم ❤\ufe0f", "👩\u200d👩\u200d👧 می\u200cخواهم ❤\ufe0f"),
        ("请大家周五 17:00 前\n交报告", "请大家周五 17:00 前\n交报告"),
    ],
)
def test_known_tricks_and_honest_text(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.dictionaries(HOSTILE, HOSTILE, max_size=3))
def test_a_json_document_keeps_every_character_and_shows_none_that_is_obeyed(
    document: dict[str, str],
) -> None:
    text = render.json_text(document)
    assert json.loads(text) == document
    assert not [character for character in text if obeyed(character)]


def test_long_runs_of_sequence_starts_are_stripped_in_linear_time() -> None:
    for start in ("\x1b]", "\x9d", "\x1b[", "\x9b0", "\x1b"):
        assert len(plain(start * 200_000)) <= 200_000


TASK: dict[str, Any] = {
    "task_id": "t_a\x1b[31m",
    "revision": 2,
    "title": "交报告\x1b]0;owned\x07\u202e",
    "event": "周报\r\n",
    "status": "open",
    "status_by": "model",
    "priority": "P1",
    "priority_by": "model",
    "priority_reason": "明天 [bold]截止[/bold]",
    "time": {"start": None, "due": "2026-07-03T17:00:00+08:00", "original": "周五 17:00"},
    "people": [{"name": "王老师\x9b2J", "role": None}, {"name": "李", "role": "收件人"}],
    "location": "302",
    "notes": "",
    "action_steps": ["写", "交"],
    "owner": {"platform": "qq", "account_id": "1", "conversation": {"id": "9", "name": "实验室\x07"}},
    "sources": [
        {
            "platform": "qq",
            "conversation": {"id": "9", "name": None, "type": "group"},
            "sender": {"name": "王老师", "id": "1"},
            "sent_at_local": "2026-07-01T10:00:00+08:00",
            "text": "第一行\n第二行\x1b[2J",
            "attachments": [{"id": "a1", "name": "模板\u202excod.exe"}],
        }
    ],
}


@pytest.mark.parametrize("on_terminal", [False, True])
def test_a_hostile_task_is_shown_whole_and_harmless(on_terminal: bool) -> None:  # noqa: FBT001
    program = (
        "import json, sys; from chatproc.cli import render\n"
        "render.show([*render.task_blocks({'task': json.loads(sys.argv[1])}),\n"
        "             *render.tasks_blocks({'tasks': [json.loads(sys.argv[1])]})])"
    )
    command = [sys.executable, "-c", program, json.dumps(TASK)]
    environment = {**os.environ, "COLUMNS": "160", "NO_COLOR": "1", "TERM": "xterm", "PYTHONUTF8": "1"}
    shown = _on_terminal(command, environment) if on_terminal else _piped(command, environment)
    for words in (
        "交报告",
        "第一行",
        "第二行",
        "王老师; 李 (收件人)",
        "模板xcod.exe",
        "[bold]截止[/bold]",
        "实验室",
    ):
        assert words in shown
    assert "owned" not in shown
    assert "\u202e" not in shown
    assert "\x1b[2J" not in shown
    assert "\x9b" not in shown
    if not on_terminal:
        assert "t_a\tP1\topen\t2026-07-03T17:00:00+08:00\t交报告\tqq 实验室\n" in shown


def _piped(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout


def _on_terminal(command: list[str], environment: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    running = subprocess.Popen(command, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # what Linux says when the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert running.wait() == 0
    return shown.decode()


class _Steps:
    """What a round tells while it works."""

    def __init__(self, **known: object) -> None:
        self.stage, self.done, self.total, self.unit = "ingest", 5_000_000, 20_000_000, "bytes"
        self.tokens, self.tasks, self.price, self.note = 1200, 3, 0.0123, "实验室\x1b[2J"
        self.__dict__.update(known)


def test_progress_within_the_first_second_shows_nothing() -> None:
    said: list[str] = []
    with ProgressDisplay(say=said.append, bar=False) as progress:
        progress(_Steps())  # type: ignore[arg-type]
    assert said == []


def test_progress_elsewhere_than_on_a_terminal_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 5.0, 12.0, 13.0, 25.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    said: list[str] = []
    with ProgressDisplay(say=said.append, bar=False) as progress:
        for _ in range(4):
            progress(_Steps())  # type: ignore[arg-type]
    assert said == ["ingest: 5.0 MB of 20.0 MB 3 tasks  1200 tokens  price 0.0123  实验室"] * 2


def test_progress_on_a_terminal_is_a_bar_that_leaves_nothing_behind() -> None:
    program = (
        "import time, types; from chatproc.cli.progress import ProgressDisplay\n"
        "step = types.SimpleNamespace(stage='groups', done=2, total=8, unit='groups', tokens=7, tasks=1,\n"
        "                             price=None, note='x' + chr(27) + '[2J')\n"
        "clock = iter([0.0] + [5.0] * 100_000); real = time.monotonic; time.monotonic = lambda: next(clock)\n"
        "with ProgressDisplay(say=print) as progress:\n"
        "    time.monotonic = lambda: real() + 1e9\n"
        "    progress(step)\n"
        "    progress._bar.refresh()\n"
    )
    environment = {**os.environ, "COLUMNS": "160", "TERM": "xterm", "PYTHONUTF8": "1"}
    shown = _on_terminal([sys.executable, "-c", program], environment)
    assert "2 of 8 groups" in shown
    assert "1 tasks  7 tokens  x" in shown
    assert "\x1b[2J" not in shown


def test_an_import_shows_what_was_mended_and_why_something_was_not_understood() -> None:
    note = {"file": "a.mbox", "line": 3, "text": "Subject", "reason": "a mail without any time"}
    document = ImportReport(not_understood=(note,), repaired=({**note, "reason": "cut"},) * 2).to_dict()
    tables = {block.title: block.rows for block in render.import_blocks(document) if hasattr(block, "rows")}
    assert tables["mended"] == [(2, "cut")]
    assert tables["not understood"] == [("a.mbox:3", "a mail without any time", "Subject")]
