"""Matrix room events and Element's export: what the samples say, read by hand, is what the events say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatproc.core import plan_events
from chatproc.errors import ConfigError
from chatproc.importers.base import Conversation, Message, Origin, declared_attachment
from chatproc.importers.events import event_document
from chatproc.importers.matrix import matrix_key, room_message
from tests.json_exports import SAMPLES, Imported, attachment, fields, read, reasons

ELEMENT = SAMPLES / "matrix" / "element_export_shape.json"
ROOM = Conversation("matrix", "@me:h", "!r:h", "群", "group")
FIRST = "$EwTbjKyWu4htwuBJHGwfNoWy7j-yDc6NxpjbtYqqsZM"
GONE = "$5h6UoBzKE5Q6QfkYGXg9QIRVutSv2MHdrzV-TX21s8g"
LAST_REVISION = (1 << 53) - 1


def event(number: int, content: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "type": "m.room.message",
        "event_id": f"${number}",
        "origin_server_ts": 1782871200000 + number,
        "sender": "@a:h",
        "content": content if content is not None else {"msgtype": "m.text", "body": f"m{number}"},
        **members,
    }


def export(path: Path, *events: dict[str, Any], **header: Any) -> Path:  # noqa: ANN401 - any value
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"room_name": "群", "exported_by": "a", **header, "messages": events}
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    return path


def imported(tmp_path: Path, *events: dict[str, Any]) -> Imported:
    return read("matrix", export(tmp_path / "in" / "room.json", *events), tmp_path / "out")


def one(value: dict[str, Any], **known: Any) -> tuple[Message | None, list[str]]:  # noqa: ANN401
    notes: list[str] = []
    origin = Origin(note=notes.append, attach=declared_attachment)
    return room_message(value, ROOM, origin, **known), notes


def test_the_sample_reads_as_it_says(tmp_path: Path) -> None:
    events, report = read("matrix", ELEMENT, tmp_path)
    said, edited, gone = events
    assert said["conversation"] == {"id": "群", "name": "群", "type": "group"}
    assert fields(said, "message_key", "sent_at", "text", "state", "revision", "account_id") == (
        f"matrix:{FIRST}",
        1795975147.396,
        "周五交报告",
        "normal",
        0,
        "",
    )
    assert said["sender"] == {"id": "@u1795975146:localhost", "name": None, "role": "user"}
    # Where the export begins nothing is proven; an edit has no place of its own.
    assert said["sequence"] == {"index": 1}
    assert fields(edited, "message_key", "text", "state", "revision") == (
        f"matrix:{FIRST}",
        "周四交报告",
        "edited",
        1795975147459,
    )
    assert "sequence" not in edited
    assert fields(gone, "message_key", "text", "state", "revision", "sender") == (
        f"matrix:{GONE}",
        "",
        "recalled",
        LAST_REVISION,
        {"id": None, "name": None, "role": "unknown"},
    )
    assert gone["sequence"] == {"index": 2, "predecessor": f"matrix:{FIRST}"}
    # The redaction event at the end tells what the emptied event told already.
    assert (report.messages, report.edits, report.recalls, report.not_understood) == (3, 1, 1, ())


def test_a_pull_and_an_import_of_the_same_events_meet_without_a_conflict(tmp_path: Path) -> None:
    """The server's own answer of the same room, each event by itself and in any order."""
    lines = Path(read("matrix", ELEMENT, tmp_path)[1].files[0]).read_bytes().splitlines(keepends=True)
    sync = json.loads((SAMPLES / "matrix" / "synapse_sync_edit_redact.json").read_text("utf-8"))
    (room,) = sync["rooms"]["join"].values()
    pulled = []
    for value in room["timeline"]["events"]:
        message, notes = one(value)
        assert message is not None
        assert notes == []
        pulled.append(event_document(message, "pull/matrix")[0].encode() + b"\n")
    for order in (lines + pulled, pulled[::-1] + lines):
        plan = plan_events(order)
        assert plan.quarantined == []
        assert plan.messages == 2


def test_a_reply_loses_the_quotation_that_old_clients_put_before_it(tmp_path: Path) -> None:
    relation = {"m.in_reply_to": {"event_id": "$1"}}
    body = "> <@b:h> 几点?\n> 哪里?\n\n五点"
    (_, reply), _ = imported(
        tmp_path, event(1), event(2, {"msgtype": "m.text", "body": body, "m.relates_to": relation})
    )
    assert fields(reply, "text", "reply_to") == ("五点", "matrix:$1")


def test_what_looks_like_a_quotation_in_no_reply_stays() -> None:
    message, _ = one(event(1, {"msgtype": "m.text", "body": "> 引用\n\n正文"}))
    assert message is not None
    assert message.text == "> 引用\n\n正文"


def test_an_answer_in_a_thread_answers_its_root_unless_it_names_another() -> None:
    thread = {"rel_type": "m.thread", "event_id": "$root", "m.in_reply_to": {"event_id": "$last"}}
    falling, _ = one(event(1, {"body": "x", "m.relates_to": {**thread, "is_falling_back": True}}))
    meant, _ = one(event(2, {"body": "x", "m.relates_to": {**thread, "is_falling_back": False}}))
    assert falling is not None
    assert meant is not None
    assert (falling.reply_to, meant.reply_to) == ("matrix:$root", "matrix:$last")


def test_an_edit_of_anothers_message_is_refused_where_the_writer_is_known(tmp_path: Path) -> None:
    change = {
        "msgtype": "m.text",
        "body": "* pay me",
        "m.new_content": {"msgtype": "m.text", "body": "pay me"},
        "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"},
    }
    events, report = imported(tmp_path, event(1), event(2, change, sender="@evil:h"), event(3, change))
    assert [fields(value, "text", "state") for value in events] == [("m1", "normal"), ("pay me", "edited")]
    assert reasons(report) == ["an edit of another's message"]


def test_an_edit_of_what_is_not_here_is_a_revision_of_it() -> None:
    change = {
        "m.new_content": {"msgtype": "m.text", "body": "new"},
        "m.relates_to": {"rel_type": "m.replace", "event_id": "$0"},
    }
    message, notes = one(event(5, change))
    assert message is not None
    assert (message.key, message.text, message.revision) == ("matrix:$0", "new", 1782871200005)
    assert notes == []


@pytest.mark.parametrize(
    "redaction",
    [{"redacts": "$1", "content": {}}, {"content": {"redacts": "$1"}}],
    ids=["old rooms", "rooms of version 11"],
)
def test_a_redaction_withdraws_for_good_whatever_edit_comes_later(
    redaction: dict[str, Any], tmp_path: Path
) -> None:
    late = {
        "m.new_content": {"msgtype": "m.text", "body": "back"},
        "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"},
    }
    taken = event(2, **{"type": "m.room.redaction", "sender": "@mod:h", **redaction})
    events, report = imported(tmp_path, event(1), taken, event(3, late))
    newest = max(events, key=lambda value: value["revision"])
    assert fields(newest, "message_key", "state", "text") == ("matrix:$1", "recalled", "")
    assert newest["sender"]["id"] is None
    assert newest["source"]["redacted_by"] == "@mod:h"
    assert report.recalls == 1


def test_an_emptied_message_without_its_redaction_is_withdrawn_all_the_same() -> None:
    message, notes = one(event(1, {}))
    assert message is not None
    assert (message.state, message.revision, notes) == ("recalled", LAST_REVISION - 1, [])


def test_reactions_votes_and_the_signalling_of_calls_are_no_messages(tmp_path: Path) -> None:
    kinds = ["m.reaction", "m.poll.response", "m.call.candidates"]
    silent = [event(place, {"x": 1}, type=kind) for place, kind in enumerate(kinds, 2)]
    events, report = imported(tmp_path, event(1), *silent, event(9))
    assert [value["text"] for value in events] == ["m1", "m9"]
    assert events[1]["sequence"]["predecessor"] == "matrix:$1"
    assert report.not_understood == ()


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("m.room.member", {"membership": "join", "displayname": "甲"}, "member join 甲 (@b:h)"),
        ("m.room.topic", {"topic": "发布"}, "topic: topic 发布"),
        ("m.room.encryption", {"algorithm": "m.megolm"}, "encryption: algorithm m.megolm"),
    ],
)
def test_a_state_event_is_a_notice(kind: str, content: dict[str, Any], text: str) -> None:
    message, notes = one(event(1, content, type=kind, state_key="@b:h"))
    assert message is not None
    assert (message.kind, message.text, notes) == ("system", text, [])


@pytest.mark.parametrize(
    ("content", "text", "role", "noted"),
    [
        ({"msgtype": "m.notice", "body": "build failed"}, "build failed", "bot", False),
        ({"msgtype": "m.emote", "body": "waves"}, "* waves", "user", False),
        ({"msgtype": "m.location", "body": "馆", "geo_uri": "geo:1"}, "[Location] 馆 geo:1", "user", False),
        ({"msgtype": "x.hologram", "body": "words"}, "words", "user", True),
    ],
)  # fmt: skip
def test_each_type_of_message_reads_as_it_shows(
    content: dict[str, Any], text: str, role: str, *, noted: bool
) -> None:
    message, notes = one(event(1, content))
    assert message is not None
    assert (message.text, message.role, bool(notes)) == (text, role, noted)


def test_a_sticker_and_a_poll_read_as_they_show() -> None:
    sticker, _ = one(event(1, {"body": "👍"}, type="m.sticker"))
    answers = [{"id": "1", "org.matrix.msc1767.text": "一"}, {"id": "2", "org.matrix.msc1767.text": "二"}]
    content = {
        "org.matrix.msc3381.poll.start": {
            "question": {"org.matrix.msc1767.text": "周几?"},
            "answers": answers,
        }
    }
    poll, _ = one(event(2, content, type="org.matrix.msc3381.poll.start"))
    assert sticker is not None
    assert poll is not None
    assert (sticker.text, poll.text) == ("[Sticker 👍]", "[Poll] 周几?\n- 一\n- 二")


def test_a_file_keeps_name_type_size_and_caption_and_never_its_key() -> None:
    content = {
        "msgtype": "m.file",
        "filename": "合同.pdf",
        "body": "请看",
        "info": {"mimetype": "application/pdf", "size": 7},
        "file": {"url": "mxc://h/1", "key": {"k": "very-secret"}},
    }
    message, _ = one(event(1, content))
    assert message is not None
    assert message.text == "[File]\n请看"
    assert message.attachments == [attachment(name="合同.pdf", mime="application/pdf", size=7)]
    document, _ = event_document(message, "pull/matrix")
    assert "mxc://h/1" in document
    assert "very-secret" not in document


def test_a_file_beside_the_export_is_found(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "合同.pdf").write_bytes(b"abc")
    events, report = imported(tmp_path, event(1, {"msgtype": "m.file", "body": "合同.pdf"}))
    assert fields(events[0]["attachments"][0], "path", "size", "state") == ("合同.pdf", 3, "present")
    assert report.attachments_present == 1


def test_mentions_are_those_that_the_message_says_or_else_links() -> None:
    pill = '<a href="https://matrix.to/#/%40b%3Ah">乙</a> <a href="https://matrix.to/#/@c:h"><b>丙</b></a>'
    said, _ = one(
        event(1, {"body": "x", "formatted_body": pill, "m.mentions": {"user_ids": ["@c:h"], "room": True}})
    )
    linked, _ = one(event(2, {"body": "x", "formatted_body": pill}))
    assert said is not None
    assert linked is not None
    assert said.mentions == [{"all": True}, {"id": "@c:h", "name": "丙"}]
    assert linked.mentions == [{"id": "@c:h", "name": "丙"}]


def test_names_stand_beside_ids_and_never_in_a_text(tmp_path: Path) -> None:
    joined = event(1, {"membership": "join", "displayname": "甲"}, type="m.room.member", state_key="@a:h")
    events, _ = imported(tmp_path, joined, event(2))
    assert events[1]["sender"] == {"id": "@a:h", "name": "甲", "role": "user"}


def test_the_collecting_users_messages_are_his_own() -> None:
    message, _ = one(event(1, sender="@me:h"))
    assert message is not None
    assert message.role == "self"


def test_an_encrypted_event_is_listed_and_its_key_is_left_to_the_readable_one(tmp_path: Path) -> None:
    hidden = event(2, {"algorithm": "m.megolm.v1", "ciphertext": "…"}, type="m.room.encrypted")
    events, report = imported(tmp_path, event(1), hidden, event(3))
    assert [value["text"] for value in events] == ["m1", "m3"]
    assert reasons(report) == ["encrypted, and nothing here can read it"]
    assert "predecessor" not in events[1]["sequence"]


def test_an_unknown_type_of_event_is_kept_as_a_notice_and_listed(tmp_path: Path) -> None:
    events, report = imported(tmp_path, event(1, {"depth": 3}, type="x.hologram"))
    assert fields(events[0], "kind", "text") == ("system", "[x.hologram] depth 3")
    assert reasons(report) == ["an unknown type of event"]


@pytest.mark.parametrize("ts", [None, "", "soon", -1, 1e300, True, [], 1 << 70])
def test_an_event_without_a_true_time_is_listed(ts: object, tmp_path: Path) -> None:
    events, report = imported(tmp_path, event(1, origin_server_ts=ts), event(2))
    assert [value["text"] for value in events] == ["m2"]
    assert reasons(report) == ["no event with a type, an id and a time"]


def test_the_order_is_the_files_whatever_the_servers_clocks_say(tmp_path: Path) -> None:
    events, _ = imported(tmp_path, event(1), event(2, origin_server_ts=5), event(3))
    assert [value["sequence"].get("predecessor") for value in events] == [None, "matrix:$1", "matrix:$2"]


def test_a_room_is_named_by_its_id_where_events_tell_it(tmp_path: Path) -> None:
    path = export(tmp_path / "room.json", event(1), event(2, room_id="!r:h"))
    events, _ = read("matrix", path, tmp_path / "out")
    assert {value["conversation"]["id"] for value in events} == {"!r:h"}


def test_a_key_is_one_for_all_accounts_and_rooms() -> None:
    assert matrix_key("$a:h") == "matrix:$a%3Ah"


def test_another_programs_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"rows": [1, 2]}')
    with pytest.raises(ConfigError, match="not an Element export"):
        read("matrix", path, tmp_path / "out")
