"""Telegram Desktop's result.json: what the sample files say, read by hand, is what the events say."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.errors import ConfigError
from chatproc.importers import import_chats

if TYPE_CHECKING:
    from collections.abc import Callable

    from chatproc.importers import ImportReport

SAMPLES = Path(__file__).parent / "samples" / "telegram"
Imported = tuple[list[dict[str, Any]], "ImportReport"]


def read(path: Path, out: Path, **settings: Any) -> Imported:  # noqa: ANN401 - passed on
    report = import_chats("telegram", [path], out=out, **settings)
    return [json.loads(line) for line in Path(report.files[0]).read_text("utf-8").splitlines()], report


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Imported]:
    """Import a chat made of the given messages."""

    def import_messages(*messages: dict[str, Any], chat: dict[str, Any] | None = None) -> Imported:
        folder = tmp_path / "export"
        folder.mkdir(exist_ok=True)
        header = {"name": "组", "type": "private_supergroup", "id": 9} if chat is None else chat
        body = [{"type": "message", "date_unixtime": "1782871200", **message} for message in messages]
        (folder / "result.json").write_text(json.dumps({**header, "messages": body}), "utf-8")
        return read(folder, tmp_path / "out")

    return import_messages


def fields(event: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(event[name] for name in names)


def test_the_edge_sample_reads_as_it_says(tmp_path: Path) -> None:
    events, report = read(SAMPLES / "edge.json", tmp_path)
    topic, edited, file, pinned, location = events

    assert fields(topic, "message_key", "kind", "sent_at", "text") == (
        "telegram::3:1",
        "system",
        1782867600,  # 2026-07-01T09:00:00 without a zone, in Asia/Shanghai
        "topic created: title 财务",
    )
    assert topic["sender"] == {"id": "user9", "name": None, "role": "user"}
    assert topic["conversation"] == {"id": "3", "name": None, "type": "group"}

    assert fields(edited, "message_id", "kind", "state", "revision", "sent_at") == (
        "5",
        "message",
        "edited",
        1782869400,
        1782867660,
    )
    assert edited["text"] == "明天 @bob 交 表 (https://e.test/x)"
    assert edited["mentions"] == [{"id": None, "name": "@bob"}]
    assert edited["reply_to"] == "telegram::3:1"
    # Message 2 stands before it but cannot be dated, so it is named and not replaced by message 1.
    assert edited["sequence"] == {"index": 5, "predecessor": "telegram::3:2"}

    assert file["sender"] == {"id": "channel55", "name": "Bob", "role": "user"}
    assert file["source"]["author"] == "签名"
    assert file["text"] == ""
    assert file["attachments"] == [
        {
            "id": "a1",
            "name": None,
            "mime": "application/pdf",
            "size": None,
            "sha256": None,
            "path": None,
            "state": "not_exported",
        }
    ]
    assert fields(pinned, "kind", "text") == ("system", "pin message: message_id 5")
    assert fields(location, "kind", "text") == ("message", "[Location]")
    assert location["sequence"] == {"index": 9, "predecessor": "telegram::3:7"}

    (unsupported,) = report.not_understood
    assert fields(unsupported, "file", "line") == ("edge.json", 17)
    assert '"id": 2' in unsupported["text"]
    assert report.timezone_assumed
    assert report.to_dict()["attachments"] == {"present": 0, "missing": 1}
    assert (report.messages, report.edits, report.recalls) == (5, 1, 0)


def test_the_zone_of_times_without_one_is_the_given_zone(tmp_path: Path) -> None:
    events, _ = read(SAMPLES / "edge.json", tmp_path, timezone="UTC")
    assert events[0]["sent_at"] == 1782867600 + 8 * 3600
    assert events[1]["sent_at"] == 1782867660


def test_invalid_escapes_become_the_characters_they_stand_for_and_are_reported(tmp_path: Path) -> None:
    events, report = read(SAMPLES / "invalid_escape_x01.json", tmp_path)
    assert [event["text"] for event in events] == ["周五前交\x01报告\x0c"]
    assert [fields(note, "file", "line", "reason") for note in report.repaired] == [
        ("invalid_escape_x01.json", 3, "escape \\xNN")
    ]
    assert report.not_understood == ()


def test_topics_stay_in_their_chat_and_every_message_follows_the_one_before(tmp_path: Path) -> None:
    events, report = read(SAMPLES / "tgparser_supergroup_with_topics.json", tmp_path)
    assert [event["kind"] for event in events] == [
        "system",
        "system",
        "message",
        "system",
        "message",
        "message",
        "message",
    ]
    assert [event["message_id"] for event in events] == ["1", "2", "3", "4", "5", "6", "7"]
    assert events[0]["sequence"] == {"index": 1}
    assert [event["sequence"].get("predecessor") for event in events[1:]] == [
        f"telegram::987654321:{number}" for number in range(1, 7)
    ]
    assert events[5]["text"] == "More finance talk"
    assert events[5]["reply_to"] == "telegram::987654321:4"
    assert events[6]["sender"] == {"id": "user400", "name": "User3", "role": "user"}
    assert events[6]["sent_at"] == 1704963600
    assert not report.timezone_assumed


def test_a_personal_chat_reads_as_it_says(tmp_path: Path) -> None:
    events, _ = read(SAMPLES / "tgparser_personal_chat.json", tmp_path)
    assert events[0]["conversation"] == {"id": "123456789", "name": "Test User", "type": "private"}
    assert [event["text"] for event in events] == [
        "Hello!",
        "Hi there!",
        "Check this important message",
        "Got it!",
        "phone call",
    ]
    assert events[3]["reply_to"] == events[2]["message_key"]


def test_a_whole_account_export_without_ids_keys_messages_by_what_they_say(tmp_path: Path) -> None:
    events, report = read(SAMPLES / "chatminer_batch_export.json", tmp_path)
    first, second = events
    assert first["conversation"] == {"id": "Chatname", "name": "Chatname", "type": "unknown"}
    assert fields(first, "message_id", "sent_at", "text") == (None, 1544006350, "Minimal Message")
    assert second["text"] == "Link:https://telegram.org/"
    assert second["sequence"]["predecessor"] == first["message_key"]
    assert report.not_understood == ()


def test_a_whole_account_export_names_its_account_where_that_tells_messages_apart(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    message = {"id": 1, "type": "message", "date_unixtime": "5", "from_id": "user42", "text": "a"}
    document = {
        "about": "…",
        "personal_information": {"user_id": 42, "first_name": "A"},
        "chats": {
            "about": "…",
            "list": [
                {"name": "x", "type": "private_group", "id": 1, "messages": [message]},
                {"type": "saved_messages", "id": 42, "messages": [message, {**message, "id": 2}]},
            ],
        },
        "left_chats": {"list": [{"name": "y", "type": "public_channel", "id": 2, "messages": [message]}]},
    }
    path.write_text(json.dumps(document))
    events, report = read(path, tmp_path / "out")
    assert [event["message_key"] for event in events] == [
        "telegram:user42:1:1",
        "telegram:user42:42:1",
        "telegram:user42:42:2",
        "telegram::2:1",
    ]
    assert [event["sequence"].get("predecessor") for event in events] == [
        None,
        None,
        "telegram:user42:42:1",
        None,
    ]
    assert {event["sender"]["role"] for event in events} == {"self"}
    assert [event["conversation"]["type"] for event in events] == ["group", "private", "private", "channel"]
    assert report.not_understood == ()


def test_a_chat_described_after_its_messages_is_described_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(
        '{"messages": [{"id": 1, "type": "message", "date_unixtime": "5"}], '
        '"id": 8, "name": "x", "type": "bot_chat"}'
    )
    events, _ = read(path, tmp_path / "out")
    assert events[0]["conversation"] == {"id": "8", "name": "x", "type": "private"}


def test_the_given_account_wins(tmp_path: Path) -> None:
    events, _ = read(SAMPLES / "tgparser_personal_chat.json", tmp_path, account="user111")
    assert events[0]["account_id"] == "user111"
    assert [event["sender"]["role"] for event in events[:2]] == ["self", "user"]


def test_files_in_the_folder_are_present_with_size_and_digest(tmp_path: Path) -> None:
    folder = tmp_path / "archive" / "ChatExport"
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "报告 (1).txt").write_bytes(b"abc")
    messages = [
        {
            "id": 1,
            "type": "message",
            "date_unixtime": "5",
            "text": "",
            "file": "files/报告 (1).txt",
            "file_name": "报告.txt",
            "file_size": 3,
            "mime_type": "text/plain",
        },
        {
            "id": 2,
            "type": "message",
            "date_unixtime": "6",
            "text": "",
            "photo": "photos/photo_1@x.jpg",
            "photo_file_size": 9,
        },
        {
            "id": 3,
            "type": "message",
            "date_unixtime": "7",
            "text": "",
            "file": "../../../../etc/passwd",
            "mime_type": "text/plain",
        },
    ]
    (folder / "result.json").write_text(
        json.dumps({"name": "x", "type": "private_group", "id": 1, "messages": messages}), "utf-8"
    )
    events, report = read(folder, tmp_path / "out")
    assert events[0]["attachments"] == [
        {
            "id": "a1",
            "name": "报告.txt",
            "mime": "text/plain",
            "size": 3,
            "sha256": hashlib.sha256(b"abc").hexdigest(),
            "path": "files/报告 (1).txt",
            "state": "present",
        }
    ]
    # A photo's copy is numbered anew by each export: its name is none.
    assert fields(events[1]["attachments"][0], "name", "mime", "size", "state") == (
        None,
        "image/jpeg",
        9,
        "missing",
    )
    assert fields(events[2]["attachments"][0], "path", "sha256", "state") == (None, None, "missing")
    assert (report.attachments_present, report.attachments_missing) == (1, 2)

    below, _ = read(folder, tmp_path / "out", archive_root=tmp_path / "archive")
    assert below[0]["attachments"][0]["path"] == "ChatExport/files/报告 (1).txt"


def test_a_link_that_leaves_the_export_is_a_missing_file(
    tmp_path: Path, export: Callable[..., Imported]
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "link.txt").symlink_to(secret)
    events, _ = export({"id": 1, "text": "", "file": "link.txt"})
    assert fields(events[0]["attachments"][0], "state", "sha256") == ("missing", None)


def test_two_overlapping_exports_tell_the_same_of_each_message(tmp_path: Path) -> None:
    """Key, revision and everything that counts as content; a vote, a reaction, a download change nothing."""
    poll = {"question": "周几开会?", "total_voters": 1, "answers": [{"text": "周一", "voters": 1}]}
    shared = {
        "id": 5,
        "type": "message",
        "date_unixtime": "1782871200",
        "from_id": "user1",
        "text": "",
        "file_name": "a.txt",
        "file_size": 3,
        "mime_type": "text/plain",
    }
    asked = {
        "id": 6,
        "type": "message",
        "date_unixtime": "1782871300",
        "from_id": "user1",
        "text": "",
        "reply_to_message_id": 2,
    }
    chat = {"name": "x", "type": "private_group", "id": 1}
    early = tmp_path / "early"
    late = tmp_path / "late"
    for folder in (early, late):
        folder.mkdir()
    (late / "a.txt").write_bytes(b"abc")
    (early / "result.json").write_text(
        json.dumps(
            {
                **chat,
                "messages": [
                    {"id": 2, "type": "message", "date_unixtime": "1782871100", "text": "before"},
                    {
                        **shared,
                        "from": "Old name",
                        "file": "(File not included. Change data exporting settings to download.)",
                    },
                    {**asked, "poll": poll},
                ],
            }
        )
    )
    (late / "result.json").write_text(
        json.dumps(
            {
                **chat,
                "messages": [
                    {**shared, "from": "New name", "file": "a.txt"},
                    {
                        **asked,
                        "poll": {**poll, "total_voters": 9},
                        "reactions": [{"emoji": "👍", "count": 2}],
                    },
                ],
            }
        )
    )
    before, _ = read(early, tmp_path / "out")
    after, _ = read(late, tmp_path / "out")

    def content(event: dict[str, Any]) -> dict[str, Any]:
        kept = {
            name: event[name]
            for name in (
                "message_key",
                "revision",
                "kind",
                "state",
                "sent_at",
                "text",
                "mentions",
                "reply_to",
            )
        }
        return {
            **kept,
            "sender": event["sender"]["id"],
            "files": [(a["id"], a["name"], a["size"]) for a in event["attachments"]],
        }

    assert [content(event) for event in before[1:]] == [content(event) for event in after]
    # Where an export begins it proves no neighbour; at equal age the delivery that does prove one wins.
    assert "predecessor" not in after[0]["sequence"]
    assert before[1]["sequence"]["predecessor"] == before[0]["message_key"]
    assert before[1]["event_id"] > after[0]["event_id"]


def test_an_edit_is_a_later_revision_and_1970_is_none(export: Callable[..., Imported]) -> None:
    events, report = export(
        {"id": 1, "text": "a", "edited_unixtime": "1782871200"},
        {"id": 2, "text": "b", "edited": "1970-01-01T08:00:00"},
    )
    assert [fields(event, "state", "revision") for event in events] == [("edited", 1782871200), ("normal", 0)]
    assert report.edits == 1


def test_a_damaged_message_costs_itself_and_its_neighbours_their_link(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(
        '{"name": "x", "type": "private_group", "id": 1, "messages": [\n'
        '{"id": 1, "type": "message", "date_unixtime": "5", "text": "a"},\n'
        '{"id": 2, "type": "message", "date_unixtime": , "text": "b"},\n'
        '{"id": 3, "type": "message", "date_unixtime": "7", "text": "c"}]}'
    )
    events, report = read(path, tmp_path / "out")
    assert [event["message_id"] for event in events] == ["1", "3"]
    assert [event["sequence"] for event in events] == [{"index": 1}, {"index": 3}]
    assert [fields(note, "line", "reason") for note in report.not_understood] == [(3, "damaged JSON")]


def test_a_path_without_quotes_is_mended_and_reported(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "图.jpg").write_bytes(b"x")
    path = tmp_path / "result.json"
    path.write_text(
        '{"name": "x", "type": "private_group", "id": 1, "messages": [\n'
        '{"id": 1, "type": "message", "date_unixtime": "5", "photo": photos/图.jpg, "text": "a"}]}',
        "utf-8",
    )
    events, report = read(path, tmp_path / "out")
    assert events[0]["attachments"][0]["path"] == "photos/图.jpg"
    assert [note["reason"] for note in report.repaired] == ["a path without quotes"]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"media_type": "sticker", "sticker_emoji": "👍", "file": "stickers/s.webp"}, "[Sticker 👍]"),
        (
            {"contact_information": {"first_name": "王", "last_name": "", "phone_number": "+86 1"}},
            "[Contact] 王 +86 1",
        ),
        (
            {
                "place_name": "图书馆",
                "address": "东路 1 号",
                "location_information": {"latitude": 1.5, "longitude": 2.5},
            },
            "[Location] 图书馆 东路 1 号 (1.5 2.5)",
        ),
        (
            {
                "text": "投票",
                "poll": {
                    "question": ["周", {"type": "bold", "text": "几?"}],
                    "answers": [{"text": "一"}, {"text": "二"}],
                },
            },
            "投票\n[Poll] 周几?\n- 一\n- 二",
        ),
        ({"todo_list": {"title": "搬家", "items": [{"id": 1, "text": "装箱"}]}}, "[Checklist] 搬家\n- 装箱"),
        ({"game_title": "棋", "game_description": "好玩"}, "[Game] 棋 好玩"),
        (
            {"invoice_information": {"title": "会费", "amount": 500, "currency": "CNY"}},
            "[Invoice] 会费 500 CNY",
        ),
        ({"text": [{"type": "mention_name", "text": "小王", "user_id": 7}, " 来"]}, "小王 来"),
    ],
)
def test_what_a_message_shows_apart_from_text_stays_readable(
    message: dict[str, Any], text: str, export: Callable[..., Imported]
) -> None:
    events, report = export({"id": 1, "text": "", **message})
    assert events[0]["text"] == text
    assert report.not_understood == ()


def test_a_mention_by_name_carries_the_id(export: Callable[..., Imported]) -> None:
    events, _ = export({"id": 1, "text": [{"type": "mention_name", "text": "小王", "user_id": 7}]})
    assert events[0]["mentions"] == [{"id": "user7", "name": "小王"}]


def test_a_reply_into_another_chat_is_no_reply_here(export: Callable[..., Imported]) -> None:
    events, _ = export({"id": 1, "text": "a", "reply_to_message_id": 5, "reply_to_peer_id": "channel8"})
    assert events[0]["reply_to"] is None
    assert events[0]["source"]["reply_to_peer_id"] == "channel8"


def test_content_of_an_unknown_kind_is_named_kept_and_listed(export: Callable[..., Imported]) -> None:
    events, report = export({"id": 1, "text": "", "hologram": {"depth": 3}})
    assert events[0]["text"] == "[hologram]"
    assert events[0]["source"]["unknown"] == {"hologram": {"depth": 3}}
    assert [note["reason"] for note in report.not_understood] == ["unknown content"]


def test_another_programs_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"rows": [1, 2]}')
    with pytest.raises(ConfigError, match="not a Telegram export"):
        read(path, tmp_path / "out")


@pytest.mark.parametrize(
    "kind", ["private_supergroup", "public_supergroup", "private_channel", "public_channel"]
)
def test_a_chat_that_is_the_same_for_everybody_is_the_same_in_an_export_of_it_alone(
    kind: str, tmp_path: Path
) -> None:
    message = {"id": 7, "type": "message", "date_unixtime": "5", "from_id": "user42", "text": "a"}
    chat = {"name": "x", "type": kind, "id": 1, "messages": [message]}
    alone, whole = tmp_path / "a/result.json", tmp_path / "b/result.json"
    for path in (alone, whole):
        path.parent.mkdir()
    alone.write_text(json.dumps(chat))
    whole.write_text(json.dumps({"personal_information": {"user_id": 42}, "chats": {"list": [chat]}}))
    (one,), _ = read(alone, tmp_path / "out")
    (same,), _ = read(whole, tmp_path / "out")
    assert {one["message_key"], same["message_key"]} == {"telegram::1:7"}
    assert {one["account_id"], same["account_id"]} == {""}
    assert (one["sender"]["role"], same["sender"]["role"]) == ("user", "self")
    asked = import_chats("telegram", [alone], out=tmp_path / "asked", account="user42")
    assert b'"telegram:user42:1:7"' in Path(asked.files[0]).read_bytes()


def test_what_is_no_message_is_listed_with_its_line_and_has_no_follower(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(
        '{"name": "x", "type": "personal_chat", "id": 1, "messages": [\n'
        '{"id": 1, "type": "message", "date_unixtime": "5", "from_id": "user1", "text": "a"},\n'
        'null, "words", 7,\n'
        '{"id": 2, "type": "message", "date_unixtime": "6", "from_id": "user1", "text": "b"},\n'
        '[{"id": 3}, []],\n'
        '{"id": 4, "type": "message", "date_unixtime": "7", "from_id": "user1", "text": "c"},\n'
        "true]}"
    )
    events, report = read(path, tmp_path / "out")
    assert [event["text"] for event in events] == ["a", "b", "c"]
    assert [event["sequence"].get("predecessor") for event in events] == [None, None, None]
    listed = [(note["line"], note["text"]) for note in report.not_understood]
    assert listed == [(3, 'null, "words", 7'), (5, '[{"id": 3}, []]'), (7, "true")]
