"""What every importer shares: valid events, the same bytes again, whole files or none, bounded memory."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import random
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatproc.core import plan_events
from chatproc.errors import ConfigError
from chatproc.importers import FORMATS, import_chats
from chatproc.importers.base import Conversation, Message
from chatproc.importers.keys import Occurrences, message_key
from chatproc.importers.pieces import loads, pieces, scalars
from tests.json_exports import assert_valid

SAMPLES = Path(__file__).parent / "samples"
DEMO = Path(__file__).parent.parent / "examples" / "demo"
EXPORTS = [("qq-qce", path) for path in sorted((SAMPLES / "qq").glob("*.json"))] + [
    ("telegram", path) for path in sorted((SAMPLES / "telegram").glob("*.json"))
]
EXPORTS += [("qq-qce", DEMO / "qq/group_730002026.json"), ("telegram", DEMO / "telegram/result.json")]


def events_of(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("form", "path"), EXPORTS, ids=lambda value: getattr(value, "name", value))
def test_every_sample_gives_valid_events_with_keys_of_their_own(
    form: str, path: Path, tmp_path: Path
) -> None:
    report = import_chats(form, [path], out=tmp_path)
    events = events_of(report.files[0])
    assert events
    assert len(events) == report.messages
    for event in events:
        assert_valid(event)
    assert len({event["message_key"] for event in events}) == len(events)
    assert len({event["event_id"] for event in events}) == len(events)


@pytest.mark.parametrize(("form", "path"), EXPORTS, ids=lambda value: getattr(value, "name", value))
def test_the_same_export_twice_overwrites_itself_with_the_same_bytes(
    form: str, path: Path, tmp_path: Path
) -> None:
    first = import_chats(form, [path], out=tmp_path)
    bytes_before = Path(first.files[0]).read_bytes()
    second = import_chats(form, [path], out=tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert first.files == second.files == (str(tmp_path / f"{form}-{digest[:12]}.jsonl"),)
    assert Path(second.files[0]).read_bytes() == bytes_before
    assert [entry.name for entry in tmp_path.iterdir()] == [Path(first.files[0]).name]


@pytest.mark.parametrize(("form", "path"), EXPORTS, ids=lambda value: getattr(value, "name", value))
def test_the_core_accepts_every_event(form: str, path: Path, tmp_path: Path) -> None:
    report = import_chats(form, [path], out=tmp_path)
    plan = plan_events(Path(report.files[0]).read_bytes().splitlines(keepends=True))
    assert plan.quarantined == []
    assert plan.counts["accepted"] == report.messages


@pytest.mark.parametrize(("form", "name"), [("qq-qce", "qq"), ("telegram", "telegram")])
def test_each_demo_export_is_one_unbroken_conversation_that_a_small_model_can_read(
    form: str, name: str, tmp_path: Path
) -> None:
    report = import_chats(form, [DEMO / name], out=tmp_path, archive_root=DEMO)
    assert report.not_understood == ()
    plan = plan_events(Path(report.files[0]).read_bytes().splitlines(keepends=True))
    assert [segment["continuity"] for segment in plan.segments] == ["proven"]
    assert [group["chars"] < 4000 for group in plan.groups] == [True]


def test_overlapping_exports_become_one_chain_without_a_conflict(tmp_path: Path) -> None:
    """Whatever is read first: two halves of the demo's group that share five messages."""
    document = json.loads((DEMO / "qq/group_730002026.json").read_text("utf-8"))
    lines: list[bytes] = []
    for name, messages in (("a", document["messages"][:15]), ("b", document["messages"][10:])):
        export = tmp_path / name / "group.json"
        export.parent.mkdir()
        export.write_text(json.dumps({**document, "messages": messages}), "utf-8")
        report = import_chats("qq-qce", [export], out=tmp_path / "out")
        lines += Path(report.files[0]).read_bytes().splitlines(keepends=True)
    for order in (lines, lines[::-1]):
        plan = plan_events(order)
        assert plan.quarantined == []
        assert plan.messages == 25
        assert [len(segment["messages"]) for segment in plan.segments] == [23]


def test_a_batch_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    report = import_chats("telegram", [SAMPLES / "telegram/edge.json"], out=tmp_path)
    if os.name == "posix":
        assert stat.S_IMODE(Path(report.files[0]).stat().st_mode) == 0o600


def test_an_import_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        import_chats("qq-qce", [SAMPLES / "telegram/edge.json"], out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(ConfigError) as error:
        import_chats("icq", [])
    assert all(name in (error.value.hint or "") for name in FORMATS)


def test_an_unknown_zone_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Mars"):
        import_chats("telegram", [tmp_path / "none"], timezone="Mars/Olympus")


@pytest.mark.parametrize("form", FORMATS)
def test_a_missing_path_is_a_missing_file_and_an_empty_folder_is_no_export(form: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        import_chats(form, [tmp_path / "none"], out=tmp_path / "out")
    with pytest.raises(ConfigError):
        import_chats(form, [tmp_path], out=tmp_path / "out")


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    path = SAMPLES / "telegram/edge.json"
    import_chats("telegram", [path], out=tmp_path, progress=lambda *step: seen.append(step))
    total = 3 * path.stat().st_size
    assert seen[-1] == ("edge.json", total, total)
    assert [step[1] for step in seen] == sorted(step[1] for step in seen)


def test_equal_messages_of_one_second_stay_two_and_number_the_same_again() -> None:
    conversation = Conversation("line", "", "群", "群", "group")

    def keys() -> list[str]:
        occurrences = Occurrences()
        texts = ["好", "好", "行", "好"]
        return [
            occurrences.key(
                Message(conversation=conversation, key="", sent_at=0, line=1, file="f", text=text)
            )
            for text in texts
        ]

    assert len(set(keys())) == 4
    assert keys() == keys()


def test_composed_and_decomposed_text_have_one_fingerprint() -> None:
    conversation = Conversation("line", "", "c", None, "group")
    keys = {
        Occurrences().key(Message(conversation=conversation, key="", sent_at=0, line=1, file="f", text=text))
        for text in ("caf\u00e9", "cafe\u0301")
    }
    assert len(keys) == 1


def test_keys_of_different_parts_never_meet() -> None:
    def conversation(account: str, name: str) -> Conversation:
        return Conversation("telegram", account, name, None, "group")

    assert message_key(conversation("a", "b:c"), "1") != message_key(conversation("a:b", "c"), "1")
    assert len(message_key(conversation("", "长" * 2000), "1")) <= 512


JSON_TEXT = st.text(max_size=30)
JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | JSON_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(JSON_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(
    st.lists(st.dictionaries(JSON_TEXT, JSON_VALUE, max_size=4), max_size=6),
    JSON_TEXT,
    st.sampled_from([None, 1]),
    st.integers(1, 7),
)
def test_pieces_are_the_objects_of_the_document_however_it_is_written_and_read(
    messages: list[dict[str, Any]], name: str, indent: int | None, step: int
) -> None:
    document = json.dumps(
        {"name": name, "before": [{"messages": []}], "messages": messages, "id": 3},
        ensure_ascii=indent is None,
        indent=indent,
    ).encode("utf-8", "surrogatepass")

    class Trickle(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            return super().read(step)

    found = list(pieces(Trickle(document), objects=["messages.[]"], watched=[""]))
    objects = [piece for piece in found if piece.kind == "object"]
    assert [loads(piece.text)[0] for piece in objects] == messages
    header: dict[str, Any] = {}
    for piece in found:
        if piece.kind == "scalars":
            header |= scalars(piece.text)
    assert header == {"name": name, "id": 3}
    for piece in objects:
        assert piece.text in document
        assert document.count(b"\n", 0, document.find(piece.text)) + 1 <= piece.line


def test_a_piece_knows_its_line() -> None:
    document = b'{"messages": [\n{"a": "x\\ny"},\n\n{"b": [\n1]}, {"c": 2}\n]}'
    lines = [piece.line for piece in pieces(io.BytesIO(document), objects=["messages.[]"])]
    assert lines == [2, 4, 5]


def test_a_document_that_breaks_off_gives_what_came_before_and_the_rest_as_it_is() -> None:
    document = b'{"messages": [{"id": 1}, {"id": 2, "text": "abc'
    found = [piece.text for piece in pieces(io.BytesIO(document), objects=["messages.[]"])]
    assert found == [b'{"id": 1}', b'{"id": 2, "text": "abc']


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        (rb'{"text": "a\x01b\x0C"}', {"text": "a\x01b\x0c"}),
        (rb'{"text": "C:\\x01"}', {"text": "C:\\x01"}),
        (b'{"file": files/a b.pdf, "id": 1}', {"file": "files/a b.pdf", "id": 1}),
        (b'{"file": photos/\xe5\x9b\xbe.jpg\n}', {"file": "photos/图.jpg"}),
        (b'{"text": "raw \x01 control"}', {"text": "raw \x01 control"}),
        (b'{"text": "\xff"}', {"text": "\ufffd"}),
    ],
)
def test_known_damage_is_mended_to_what_was_meant(damaged: bytes, expected: dict[str, Any]) -> None:
    assert loads(damaged)[0] == expected


@pytest.mark.parametrize("damaged", [b"[1]", b'{"a": }', b'{"a": , "b": "c"}', b'{"a": "b}', b'{"a":' * 5000])
def test_other_damage_is_never_guessed_at(damaged: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        loads(damaged)


def test_half_a_surrogate_pair_becomes_a_replacement_and_is_reported(tmp_path: Path) -> None:
    export = tmp_path / "result.json"
    export.write_text(
        '{"name": "x", "type": "personal_chat", "id": 1, "messages": ['
        '{"id": 1, "type": "message", "date_unixtime": "5", "from_id": "user1", "text": "a\\ud83d"}]}'
    )
    report = import_chats("telegram", [export], out=tmp_path / "out")
    assert [event["text"] for event in events_of(report.files[0])] == ["a\ufffd"]
    assert [note["line"] for note in report.repaired] == [1]


@pytest.mark.parametrize(("seconds", "taken"), [(253402207199, 1), (253402207200, 0), (17048888888000, 0)])
def test_a_time_that_the_core_refuses_is_listed_with_its_message(
    seconds: int, taken: int, tmp_path: Path
) -> None:
    message = {"id": 1, "type": "message", "date_unixtime": str(seconds), "text": "a"}
    export = tmp_path / "result.json"
    export.write_text(json.dumps({"type": "personal_chat", "id": 1, "messages": [message]}))
    report = import_chats("telegram", [export], out=tmp_path / "out")
    lines = Path(report.files[0]).read_bytes().splitlines()
    assert (report.messages, len(report.not_understood)) == (taken, 1 - taken)
    assert plan_events(lines).counts["accepted"] == taken


def test_a_long_export_needs_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        export = tmp_path / f"{count}.json"
        with export.open("w") as file:
            file.write('{"name": "x", "type": "private_group", "id": 1, "messages": [\n')
            for number in range(1, count + 1):
                message = {"id": number, "type": "message", "date_unixtime": str(number), "text": "x" * 2000}
                file.write((",\n" if number > 1 else "") + json.dumps(message))
            file.write("]}")
        tracemalloc.start()
        import_chats("telegram", [export], out=tmp_path / "out")
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    assert peak(6000) < peak(1500) + (1 << 20)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(("form", "path"), [EXPORTS[0], ("telegram", SAMPLES / "telegram/edge.json")])
def test_a_damaged_export_is_refused_or_read_in_part_and_never_breaks_the_import(
    form: str, path: Path, seed: int, tmp_path: Path
) -> None:
    """Bytes lost, doubled or changed: valid events or a plain refusal."""
    chance = random.Random(seed)  # noqa: S311 - damage, no secrets
    damaged = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(damaged))
        width = chance.randint(0, 12)
        filler = chance.choice(
            [b"", b"null", b'"', b"{", b"]", b"-1", b"\\", b"\xff", b"[[", b"1e999", b"true"]
        )
        damaged[place : place + width] = filler
    export = tmp_path / path.name
    export.write_bytes(bytes(damaged))
    try:
        report = import_chats(form, [export], out=tmp_path / "out")
    except ConfigError:
        return
    lines = Path(report.files[0]).read_bytes().splitlines(keepends=True)
    assert plan_events(lines).counts["accepted"] == len(lines) == report.messages


STRANGE: list[Any] = [
    None,
    True,
    -1,
    1e300,
    "",
    "\ud800",
    2**70,
    [],
    {},
    [[]],
    [None],
    {"a": []},
    {"type": {}},
]


def replace_somewhere(value: Any, chance: random.Random) -> Any:  # noqa: ANN401 - any JSON value
    """The value with something in it, or itself, replaced by something strange."""
    if value and isinstance(value, (dict, list)) and chance.random() < 0.9:
        place = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        value[place] = replace_somewhere(value[place], chance)
        return value
    return copy.deepcopy(chance.choice(STRANGE))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize(
    ("form", "path"),
    [EXPORTS[0], ("telegram", SAMPLES / "telegram/edge.json"), ("qq-qce", DEMO / "qq/group_730002026.json")],
)
def test_values_of_strange_types_never_break_the_import(
    form: str, path: Path, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)  # noqa: S311 - damage, no secrets
    document = json.loads(path.read_text("utf-8"))
    for _ in range(4):
        place = chance.randrange(len(document["messages"]))
        document["messages"][place] = replace_somewhere(document["messages"][place], chance)
    export = tmp_path / path.name
    export.write_text(json.dumps(document))
    report = import_chats(form, [export], out=tmp_path / "out")
    lines = Path(report.files[0]).read_bytes().splitlines(keepends=True)
    assert plan_events(lines).counts["accepted"] == len(lines) == report.messages


def test_importers_load_no_heavy_library() -> None:
    code = (
        "import sys, chatproc.importers; "
        "print([name for name in ('openai', 'pydantic_ai', 'rich', 'fitz') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
