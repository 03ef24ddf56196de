"""DiscordChatExporter's JSON: ids are Discord's own, nicknames and previews are no part of a message."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from chatproc.core import plan_events
from chatproc.errors import ConfigError
from chatproc.importers import FORMATS
from tests.json_exports import SAMPLES, Imported, attachment, fields, read, reasons

PART = SAMPLES / "discord" / "zulip_general_part3.json"
FIRST_ID = 1519337717564051496


def user(number: int, name: str, nickname: str | None = None, **members: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"id": str(number), "name": name, "nickname": nickname or name, "isBot": False, **members}


def message(number: int, content: str = "x", **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    return {
        "id": str(FIRST_ID + number),
        "type": "Default",
        "timestamp": f"2026-07-01T10:00:{number % 60:02}.5+08:00",
        "timestampEdited": None,
        "content": content,
        "author": user(7, "hamlet"),
        "attachments": [],
        "embeds": [],
        "stickers": [],
        "mentions": [],
        **members,
    }


def export(path: Path, *messages: dict[str, Any], channel: dict[str, Any] | None = None, **more: Any) -> Path:  # noqa: ANN401
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "guild": {"id": "1", "name": "guild"},
        "channel": channel or {"id": "9", "type": "GuildTextChat", "name": "general"},
        "dateRange": {"after": None, "before": None},
        "exportedAt": "2026-07-02T00:00:00+00:00",
        "messages": messages,
        "messageCount": len(messages),
        **more,
    }
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    return path


def imported(tmp_path: Path, *messages: dict[str, Any], **settings: Any) -> Imported:  # noqa: ANN401
    return read("discord", export(tmp_path / "in" / "a.json", *messages), tmp_path / "out", **settings)


def test_the_sample_reads_as_it_says(tmp_path: Path) -> None:
    events, report = read("discord", PART, tmp_path)
    (event,) = events
    assert event["conversation"] == {"id": "1519311538035490958", "name": "general", "type": "channel"}
    assert fields(event, "message_key", "message_id", "account_id", "sent_at", "text", "state") == (
        "discord:1519337717564051496",
        "1519337717564051496",
        "",
        1782308739.797,
        "random link: chat.zulip.org",
        "normal",
    )
    assert event["sender"] == {"id": "1000000000000000002", "name": "hamlet", "role": "user"}
    assert "sequence" not in event
    assert report.not_understood == ()


def test_an_id_as_a_number_beyond_a_double_stays_exact(tmp_path: Path) -> None:
    events, _ = imported(tmp_path, message(0, id=FIRST_ID))
    assert events[0]["message_key"] == f"discord:{FIRST_ID}"


def test_parts_of_one_export_are_one_source_and_a_missing_part_is_said(tmp_path: Path) -> None:
    export(tmp_path / "in" / "g [9].json", message(1))
    export(tmp_path / "in" / "g [9] [part 2].json", message(2))
    export(tmp_path / "in" / "g [9] [part 4].json", message(4))
    export(tmp_path / "in" / "h [8].json", message(50), channel={"id": "8", "type": "GuildVoiceChat"})
    assert [len(source.files) for source in FORMATS["discord"].find(tmp_path / "in")] == [3, 1]
    (tmp_path / "in" / "h [8].json").unlink()
    events, report = read("discord", tmp_path / "in", tmp_path / "out", complete=True)
    assert [event["message_id"] for event in events] == [str(FIRST_ID + number) for number in (1, 2, 4)]
    assert [event["sequence"].get("predecessor") for event in events] == [
        None,
        events[0]["message_key"],
        None,
    ]
    assert reasons(report) == ["part 3 is not there"]


def test_the_tenth_part_comes_after_the_ninth(tmp_path: Path) -> None:
    for number in (1, *range(2, 12)):
        part = f" [part {number}]" if number > 1 else ""
        export(tmp_path / "in" / f"g{part}.json", message(number))
    events, report = read("discord", tmp_path / "in", tmp_path / "out")
    assert [int(event["message_id"]) - FIRST_ID for event in events] == list(range(1, 12))
    assert report.not_understood == ()


def test_a_part_alone_in_a_folder_with_its_fellows_is_read_alone(tmp_path: Path) -> None:
    shutil.copy(PART, tmp_path / "g [part 3].json")
    export(tmp_path / "g.json", message(1))
    events, report = read("discord", tmp_path / "g [part 3].json", tmp_path / "out")
    assert len(events) == 1
    assert report.not_understood == ()


def test_neighbours_are_linked_only_in_a_complete_export_that_runs_forward(tmp_path: Path) -> None:
    said = [message(1), message(2), message(3)]
    assert not any("sequence" in event for event in imported(tmp_path, *said)[0])
    forward, _ = imported(tmp_path, *said, complete=True)
    assert [event["sequence"] for event in forward] == [
        {"index": FIRST_ID + 1},
        {"index": FIRST_ID + 2, "predecessor": forward[0]["message_key"]},
        {"index": FIRST_ID + 3, "predecessor": forward[1]["message_key"]},
    ]
    backward, _ = imported(tmp_path, *said[::-1], complete=True)
    assert not any("predecessor" in event["sequence"] for event in backward)


def test_a_file_that_holds_less_than_it_says_is_reported(tmp_path: Path) -> None:
    path = export(tmp_path / "a.json", message(1), messageCount=5)
    _, report = read("discord", path, tmp_path / "out")
    assert reasons(report) == ["the file says that it holds 5 messages, but it holds 1"]


def test_an_edit_is_a_revision_by_its_time(tmp_path: Path) -> None:
    events, report = imported(tmp_path, message(1, timestampEdited="2026-07-01T10:05:00.25+08:00"))
    assert fields(events[0], "state", "revision") == ("edited", 1782871500250)
    assert report.edits == 1


@pytest.mark.parametrize("written", [None, "", "yesterday", "2026-07-01T10:00:00", 5])
def test_without_a_time_of_a_zone_the_id_tells_when(written: object, tmp_path: Path) -> None:
    """2026-06-24T20:45:39.797+07:00 is what the sample says of this id."""
    events, report = imported(tmp_path, message(0, timestamp=written))
    assert events[0]["sent_at"] == 1782308739.797
    assert (report.not_understood, report.timezone_assumed) == ((), False)


def test_an_answer_to_an_absent_message_keeps_its_target_and_a_pin_is_no_answer(tmp_path: Path) -> None:
    target = {"type": "Default", "messageId": "404", "channelId": "9"}
    events, _ = imported(
        tmp_path,
        message(1, type="Reply", reference=target),
        message(2, type="ChannelPinnedMessage", reference=target),
    )
    assert [fields(event, "reply_to", "kind") for event in events] == [
        ("discord:404", "message"),
        (None, "system"),
    ]


@pytest.mark.parametrize(
    ("kind", "expected", "noted"),
    [
        ("GuildMemberJoin", "system", False),
        ("8", "system", False),
        ("20", "message", False),
        ("9999", "system", True),
    ],
)
def test_a_type_tells_notices_from_messages(kind: str, expected: str, *, noted: bool, tmp_path: Path) -> None:
    events, report = imported(tmp_path, message(1, "joined", type=kind))
    assert (events[0]["kind"], events[0]["text"], bool(report.not_understood)) == (expected, "joined", noted)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("@老王 好", "@bo 好"),
        ("@老王二 好", "@cy 好"),
        ("<@2> <@!3>", "@bo @cy"),
        ("<@404> <@&5> <#9> <:ok:77> <a:no:78>", "@404 @5 #9 :ok: :no:"),
    ],
)
def test_a_mention_is_the_accounts_name_however_the_exporter_wrote_it(
    content: str, text: str, tmp_path: Path
) -> None:
    people = [user(2, "bo", "老王"), user(3, "cy", "老王二")]
    events, _ = imported(tmp_path, message(1, content, mentions=people))
    assert events[0]["text"] == text
    assert events[0]["mentions"][:2] == [{"id": "2", "name": "老王"}, {"id": "3", "name": "老王二"}]


@pytest.mark.parametrize(
    ("content", "everybody"), [("@everyone看", True), ("hi @here", True), ("a@here.test", False)]
)
def test_everybody_is_all(content: str, *, everybody: bool, tmp_path: Path) -> None:
    events, _ = imported(tmp_path, message(1, content))
    assert events[0]["mentions"] == ([{"all": True}] if everybody else [])


def test_a_new_nickname_reactions_pins_and_previews_change_no_message(tmp_path: Path) -> None:
    lines: list[bytes] = []
    preview = {"title": "Zulip", "url": "https://zulip.org", "description": "chat"}
    for name, more in (
        ("老王", {}),
        ("新王", {"reactions": [{"count": 3}], "isPinned": True, "embeds": [preview]}),
    ):
        said = message(1, f"@{name} https://zulip.org", mentions=[user(2, "bo", name)], **more)
        _, report = read("discord", export(tmp_path / name / "a.json", said), tmp_path / "out")
        lines += Path(report.files[0]).read_bytes().splitlines(keepends=True)
    plan = plan_events(lines)
    assert (plan.quarantined, plan.messages) == ([], 1)


def test_what_a_bot_embeds_is_what_it_says(tmp_path: Path) -> None:
    embed = {
        "title": "Build",
        "url": "https://ci.test",
        "description": "failed",
        "author": {"name": "CI"},
        "fields": [{"name": "Due", "value": "Fri"}],
        "footer": {"text": "7 tests"},
    }
    events, _ = imported(tmp_path, message(1, "", author=user(8, "ci", isBot=True), embeds=[embed]))
    assert events[0]["text"] == "CI\nBuild (https://ci.test)\nfailed\nDue: Fri\n7 tests"
    assert events[0]["sender"]["role"] == "bot"


def test_forwards_stickers_and_files_are_kept(tmp_path: Path) -> None:
    reference = {"type": "Forward", "messageId": "5", "channelId": "6"}
    file = {"id": "1", "url": "https://cdn.test/a.pdf", "fileName": "a.pdf", "fileSizeBytes": 7}
    forwarded = {"timestamp": "2026-07-01T00:00:00+00:00", "content": "周五前", "attachments": [file]}
    events, _ = imported(
        tmp_path,
        message(1, "", reference=reference, forwardedMessage=forwarded),
        message(2, "", reference=reference),
        message(3, "", stickers=[{"name": "Wave"}]),
    )
    assert [event["text"] for event in events] == ["[Forwarded] 周五前", "[Forwarded]", "[Sticker Wave]"]
    assert events[0]["attachments"] == [attachment(name="a.pdf", size=7)]
    assert events[0]["reply_to"] is None
    assert events[0]["source"]["forwarded"]["message"] == "5"


def test_a_downloaded_file_is_found_by_a_path_with_backslashes_and_one_outside_is_not(tmp_path: Path) -> None:
    media = tmp_path / "in" / "a.json_Files"
    media.mkdir(parents=True)
    (media / "图-1.png").write_bytes(b"abc")
    files = [
        {"id": "1", "url": "a.json_Files\\图-1.png", "fileName": "图.png", "fileSizeBytes": 3},
        {"id": "2", "url": "../../../etc/passwd", "fileName": "passwd", "fileSizeBytes": 1},
        {"id": "3", "url": None, "fileName": "c.txt"},
    ]
    events, report = imported(tmp_path, message(1, attachments=files))
    assert [fields(found, "name", "path", "state") for found in events[0]["attachments"]] == [
        ("图.png", "a.json_Files/图-1.png", "present"),
        ("passwd", None, "missing"),
        ("c.txt", None, "not_exported"),
    ]
    assert (report.attachments_present, report.attachments_missing) == (1, 2)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("DirectTextChat", "private"),
        ("DirectGroupTextChat", "group"),
        ("GuildPublicThread", "thread"),
        ("GuildForum", "channel"),
        ("77", "unknown"),
    ],
)
def test_the_type_of_channel(kind: str, expected: str, tmp_path: Path) -> None:
    path = export(tmp_path / "a.json", message(1), channel={"id": "9", "type": kind, "name": "c"})
    assert read("discord", path, tmp_path / "out")[0][0]["conversation"]["type"] == expected


def test_a_message_without_an_id_is_listed(tmp_path: Path) -> None:
    events, report = imported(tmp_path, message(1, id=None), message(2, id="x"), message(3))
    assert len(events) == 1
    assert reasons(report) == ["no message with an id"] * 2


def test_another_programs_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"messages": []}')
    with pytest.raises(ConfigError, match="not a DiscordChatExporter export"):
        read("discord", path, tmp_path / "out")
