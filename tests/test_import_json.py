"""What the importers of JSON have in common: once each, in any encoding, from any cut, whatever is broken."""

from __future__ import annotations

import copy
import json
import random
import tracemalloc
import zipfile
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatproc.core import plan_events
from chatproc.errors import ConfigError
from chatproc.importers import FORMATS, import_chats
from tests.json_exports import SAMPLES, assert_valid, read

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = {
    "weflow": SAMPLES / "wechat" / "weflow.json",
    "chatlog": SAMPLES / "wechat" / "chatlog_api.json",
    "chatlab": SAMPLES / "chatlab" / "cipher_talk_string_ts.jsonl",
    "discord": SAMPLES / "discord" / "zulip_general_part3.json",
    "feishu": SAMPLES / "feishu" / "im_v1_messages.json",
    "matrix": SAMPLES / "matrix" / "element_export_shape.json",
}
FOLDERS = {
    "slack": SAMPLES / "slack" / "constructed",
}
ALL = [*FILES.items(), *FOLDERS.items(), ("slack", SAMPLES / "slack" / "slack-export-viewer_testarchive.zip")]
START = 1782871200


def lines_of(form: str, path: Path, out: Path, **given_settings: Any) -> list[bytes]:  # noqa: ANN401
    report = import_chats(form, [path], out=out, **given_settings)
    return Path(report.files[0]).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(("form", "path"), ALL)
def test_every_sample_gives_valid_events_that_the_core_accepts(form: str, path: Path, tmp_path: Path) -> None:
    events, report = read(form, path, tmp_path)
    assert events
    for event in events:
        assert_valid(event)
    plan = plan_events(Path(report.files[0]).read_bytes().splitlines(keepends=True))
    assert plan.quarantined == []
    assert plan.counts["accepted"] == report.messages == len(events)


@pytest.mark.parametrize(("form", "path"), ALL)
def test_the_same_export_twice_is_the_same_file_and_each_message_once(
    form: str, path: Path, tmp_path: Path
) -> None:
    first = lines_of(form, path, tmp_path)
    assert lines_of(form, path, tmp_path) == first
    assert len(list(tmp_path.iterdir())) == 1
    assert plan_events(first + first).messages == plan_events(first).messages


@pytest.mark.parametrize(("form", "path"), ALL)
def test_each_sample_is_recognized_by_its_own_format_alone(form: str, path: Path) -> None:
    assert [name for name, known in FORMATS.items() if known.recognizes(path)] == [form]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("form", "path"), list(FILES.items()))
def test_a_mark_and_two_bytes_a_character_change_nothing(
    form: str, path: Path, encoding: str, tmp_path: Path
) -> None:
    other = tmp_path / path.name
    other.write_bytes(path.read_text("utf-8").encode(encoding))
    assert FORMATS[form].recognizes(other)
    expected, usual = read(form, path, tmp_path / "a")
    events, report = read(form, other, tmp_path / "b")
    assert events == expected
    assert report.not_understood == usual.not_understood


# ── cuts ──────────────────────────────────────────────────────────────────────────────────────────────

# What was said: seconds since the message before, who, and what; much of it equal.
Said = tuple[int, int, str]
SAID = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 2), st.sampled_from(["好", "行", "caf\u00e9"])),
    min_size=1,
    max_size=12,
)


def timed(said: list[Said]) -> list[tuple[int, int, int, str]]:
    """Number, second, sender and text of each."""
    seconds = accumulate((gap for gap, _, _ in said), initial=START)
    next(seconds)
    placed = zip(seconds, said, strict=True)
    return [(number, second, who, text) for number, (second, (_, who, text)) in enumerate(placed)]


Timed = list[tuple[int, int, int, str]]


def weflow(path: Path, messages: Timed) -> None:
    listed = [
        {"createTime": second, "type": "文本消息", "content": text, "isSend": 0, "senderUsername": f"w{who}"}
        for _, second, who, text in messages
    ]
    write(path, {"weflow": {}, "session": {"wxid": "1@chatroom"}, "messages": listed})


def chatlog(path: Path, messages: Timed) -> None:
    listed = [
        {
            "seq": second * 1000 + number,
            "talker": "1@chatroom",
            "isChatRoom": True,
            "type": 1,
            "content": text,
        }
        | {"sender": f"w{who}", "time": datetime.fromtimestamp(second, UTC).isoformat()}
        for number, second, who, text in messages
    ]
    write(path, listed)


def chatlab(path: Path, messages: Timed) -> None:
    listed = [
        {"sender": f"u{who}", "timestamp": second, "type": 0, "content": text}
        for _, second, who, text in messages
    ]
    write(path, {"chatlab": {}, "meta": {"name": "g", "platform": "qq"}, "messages": listed})


def slack(path: Path, messages: Timed) -> None:
    day = [
        {"type": "message", "user": f"U{who}", "text": text, "ts": f"{second}.{number:06}"}
        for number, second, who, text in messages
    ]
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("channels.json", '[{"id": "C1", "name": "general"}]')
        made.writestr("general/2026-07-01.json", json.dumps(day))


def discord(path: Path, messages: Timed) -> None:
    listed = [
        {"id": str((1 << 60) + number), "type": "Default", "content": text, "author": {"id": str(who)}}
        | {"timestamp": datetime.fromtimestamp(second, UTC).isoformat()}
        for number, second, who, text in messages
    ]
    write(path, {"guild": {}, "channel": {"id": "9"}, "exportedAt": "", "messages": listed})


def feishu(path: Path, messages: Timed) -> None:
    listed = [
        {"message_id": f"om_{number}", "msg_type": "text", "create_time": f"{second}000", "chat_id": "oc"}
        | {"sender": {"id": f"ou_{who}"}, "body": {"content": json.dumps({"text": text})}}
        for number, second, who, text in messages
    ]
    write(path, {"data": {"items": listed}})


def matrix(path: Path, messages: Timed) -> None:
    listed = [
        {"event_id": f"${number}", "type": "m.room.message", "origin_server_ts": second * 1000}
        | {"sender": f"@{who}:h", "content": {"msgtype": "m.text", "body": text}}
        for number, second, who, text in messages
    ]
    write(path, {"room_name": "g", "messages": listed})


def write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")


MAKERS: dict[str, Callable[[Path, Timed], None]] = {
    "weflow": weflow,
    "chatlog": chatlog,
    "chatlab": chatlab,
    "slack": slack,
    "discord": discord,
    "feishu": feishu,
    "matrix": matrix,
}


@pytest.mark.parametrize("form", MAKERS)
@settings(max_examples=20, deadline=None)
@given(said=SAID, cuts=st.tuples(st.integers(0, 24), st.integers(0, 24)), complete=st.booleans())
def test_two_exports_that_overlap_are_the_whole_and_no_message_twice(
    form: str,
    said: list[Said],
    cuts: tuple[int, int],
    complete: bool,  # noqa: FBT001 - drawn
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Exports are cut between two seconds; equal messages of one second stay as many as they are."""
    folder = tmp_path_factory.mktemp(form)
    messages = timed(said)
    later, earlier = sorted(START + cut for cut in cuts)
    parts = {
        "whole": messages,
        "early": [message for message in messages if message[1] <= earlier],
        "late": [message for message in messages if message[1] >= later],
    }
    lines: dict[str, list[bytes]] = {}
    for name, part in parts.items():
        lines[name] = []
        if part:
            (folder / name).mkdir()
            export = folder / name / f"export{'.zip' if form == 'slack' else '.json'}"
            MAKERS[form](export, part)
            lines[name] = lines_of(form, export, folder / "out", complete=complete)
    assert plan_events(lines["whole"]).messages == len(messages)
    for order in (lines["early"] + lines["late"], lines["late"] + lines["early"]):
        plan = plan_events([*order, *lines["whole"]])
        assert plan.quarantined == []
        assert plan.messages == len(messages)
        assert plan_events(order).messages == len({*parts["early"], *parts["late"]})


@pytest.mark.parametrize("form", MAKERS)
def test_messages_that_are_said_to_be_complete_are_one_chain(form: str, tmp_path: Path) -> None:
    export = tmp_path / f"export{'.zip' if form == 'slack' else '.json'}"
    MAKERS[form](export, timed([(1, 1, "好"), (0, 1, "好"), (1, 2, "行"), (5, 1, "好")]))
    plan = plan_events(lines_of(form, export, tmp_path / "out", complete=True))
    assert [len(segment["messages"]) for segment in plan.segments] == [4]


@pytest.mark.parametrize("form", ["weflow", "chatlog", "chatlab", "discord", "feishu"])
def test_what_may_be_filtered_proves_no_neighbours(form: str, tmp_path: Path) -> None:
    export = tmp_path / "export.json"
    MAKERS[form](export, timed([(1, 1, "好"), (1, 2, "行")]))
    assert not any("sequence" in json.loads(line) for line in lines_of(form, export, tmp_path / "out"))


# ── damage ────────────────────────────────────────────────────────────────────────────────────────────


def refused_or_read(form: str, export: Path, out: Path) -> None:
    try:
        report = import_chats(form, [export], out=out)
    except (ConfigError, OSError):
        return
    lines = Path(report.files[0]).read_bytes().splitlines(keepends=True)
    plan = plan_events(lines)
    # Damage may make two messages of one id; the core then lists the second.
    told = plan.counts["accepted"] + plan.counts["repeats"] + plan.counts["quarantined"]
    assert told == len(lines) == report.messages
    assert {refused["reason"] for refused in plan.quarantined} <= {"revision-conflict"}


def damaged(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(changed))
        filler = chance.choice(
            [b"", b"null", b'"', b"{", b"]", b"-1", b"\\", b"\xff", b"\0", b"[[", b"1e999", rb"\x01", b"true"]
        )
        changed[place : place + chance.randint(0, 12)] = filler
    return bytes(changed)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("form", "path"), [*FILES.items(), ("slack", ALL[-1][1])])
def test_a_damaged_export_is_refused_or_read_in_part(
    form: str, path: Path, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)  # noqa: S311 - damage, no secrets
    export = tmp_path / path.name
    export.write_bytes(damaged(path.read_bytes(), chance))
    refused_or_read(form, export, tmp_path / "out")


STRANGE: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    1e300,
    "",
    "\ud800",
    "\0",
    "$",
    2**70,
    -(2**70),
    [],
    {},
    [[]],
    [None],
    {"a": []},
    [{"id": {}}],
    {"event_id": []},
]


def replace_somewhere(value: Any, chance: random.Random) -> Any:  # noqa: ANN401 - any JSON value
    """The value with something in it, or itself, replaced by something strange."""
    if value and isinstance(value, (dict, list)) and chance.random() < 0.9:
        place = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        value[place] = replace_somewhere(value[place], chance)
        return value
    return copy.deepcopy(chance.choice(STRANGE))


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize(
    ("form", "path"), [(form, path) for form, path in FILES.items() if path.suffix == ".json"]
)
def test_values_of_strange_types_never_break_an_import(
    form: str, path: Path, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)  # noqa: S311 - damage, no secrets
    document = json.loads(path.read_text("utf-8"))
    for _ in range(6):
        document = replace_somewhere(document, chance) if chance.random() < 0.98 else document
        if not document or not isinstance(document, (dict, list)):
            document = json.loads(path.read_text("utf-8"))
    export = tmp_path / path.name
    export.write_text(json.dumps(document))
    refused_or_read(form, export, tmp_path / "out")


@pytest.mark.parametrize(
    "strange", ["1e999", "-1e999", "9" * 400, "[" * 90 + "]" * 90, '{"a":' * 90 + "1" + "}" * 90]
)
@pytest.mark.parametrize(
    ("form", "member"),
    [("weflow", "localType"), ("chatlog", "type"), ("chatlab", "type"), ("discord", "type")],
)
def test_what_no_event_may_bear_is_kept_as_words(
    form: str, member: str, strange: str, tmp_path: Path
) -> None:
    export = tmp_path / "export.json"
    MAKERS[form](export, timed([(1, 1, "好")]))
    document = json.loads(export.read_text("utf-8"))
    (document["messages"] if isinstance(document, dict) else document)[0][member] = "HERE"
    export.write_text(json.dumps(document).replace('"HERE"', strange))
    plan = plan_events(lines_of(form, export, tmp_path / "out"))
    assert plan.counts["accepted"] == 1


@pytest.mark.parametrize("seed", range(30))
def test_strange_days_never_break_a_slack_import(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311 - damage, no secrets
    root = FOLDERS["slack"]
    for file in sorted(root.rglob("*.json")):
        document = json.loads(file.read_text("utf-8"))
        for _ in range(3):
            document = replace_somewhere(document, chance) or document
        copied = tmp_path / "in" / file.relative_to(root)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(json.dumps(document))
    refused_or_read("slack", tmp_path / "in", tmp_path / "out")


@pytest.mark.parametrize("form", MAKERS)
def test_escapes_and_bare_paths_that_are_known_damage_are_mended_and_said(form: str, tmp_path: Path) -> None:
    export = tmp_path / "export.json"
    if form == "slack":
        export = tmp_path / "in" / "general" / "2026-07-01.json"
        export.parent.mkdir(parents=True)
        (tmp_path / "in" / "users.json").write_text("[]")
        day = [{"type": "message", "user": "U1", "text": "好", "ts": f"{START}.000001"}]
        export.write_text(json.dumps(day, ensure_ascii=False), "utf-8")
    else:
        MAKERS[form](export, timed([(1, 1, "好")]))
    where = tmp_path / "in" if form == "slack" else export
    text = export.read_text("utf-8").replace("好", r"好\x01").replace("\\u597d", r"\u597d\\x01")
    export.write_text(text, "utf-8")
    events, report = read(form, where, tmp_path / "out")
    assert [event["text"][0] for event in events] == ["好"]
    # Feishu's text is JSON in JSON, which is no damage of the file.
    assert report.repaired or report.not_understood


@pytest.mark.parametrize("form", MAKERS)
def test_a_long_export_needs_no_more_memory_than_a_short_one(form: str, tmp_path: Path) -> None:
    def peak(count: int) -> int:
        folder = tmp_path / str(count)
        folder.mkdir()
        export = folder / f"export{'.zip' if form == 'slack' else '.json'}"
        MAKERS[form](export, [(number, START + number, 1, "长" * 700) for number in range(count)])
        tracemalloc.start()
        import_chats(form, [export], out=tmp_path / "out")
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    assert peak(1500) < peak(500) + (1 << 20)
