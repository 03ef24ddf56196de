"""ChatLab's JSON and JSON Lines: ids where there are some, numbers among equals where there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatproc.core import plan_events
from chatproc.errors import ConfigError
from tests.json_exports import SAMPLES, Imported, attachment, fields, read, reasons

CIPHER_TALK = SAMPLES / "chatlab" / "cipher_talk_string_ts.jsonl"
HEADER = {"version": "0.0.2", "exportedAt": 1782900000}
META = {"name": "群", "platform": "qq", "type": "group", "groupId": "999", "ownerId": "10000"}


def message(words: str | None = "好", **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    who = {"sender": "10001", "accountName": "甲"}
    return {**who, "timestamp": 1782871200, "type": 0, "content": words, **members}


def as_json(path: Path, *messages: dict[str, Any], meta: dict[str, Any] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    members = [{"platformId": "10002", "accountName": "乙"}]
    document = {"chatlab": HEADER, "meta": meta or META, "members": members, "messages": messages}
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    return path


def as_lines(path: Path, *messages: dict[str, Any], meta: dict[str, Any] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"_type": "header", "chatlab": HEADER, "meta": meta or META},
        {"_type": "member", "platformId": "10002", "accountName": "乙"},
        *({"_type": "message", **row} for row in messages),
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def imported(tmp_path: Path, *messages: dict[str, Any], **settings: Any) -> Imported:  # noqa: ANN401
    return read("chatlab", as_json(tmp_path / "in.json", *messages), tmp_path / "out", **settings)


def test_the_sample_reads_as_it_says(tmp_path: Path) -> None:
    events, report = read("chatlab", CIPHER_TALK, tmp_path)
    (event,) = events
    # No id of the conversation: its name is all that names it. The time is a text, a comment is no line.
    assert event["conversation"] == {"id": "甲", "name": "甲", "type": "private"}
    assert fields(event, "platform", "account_id", "sent_at", "text", "message_id") == (
        "wechat",
        "",
        1780330832,
        "字符串时间",
        None,
    )
    assert event["sender"] == {"id": "wxid_x", "name": "甲", "role": "user"}
    assert event["source"]["line"] == 3
    assert report.not_understood == ()


def test_both_forms_of_a_chat_are_the_same_messages(tmp_path: Path) -> None:
    said = [message("好"), message("好"), message("见", platformMessageId="7550661067109350011")]
    first, _ = read("chatlab", as_json(tmp_path / "a.json", *said), tmp_path / "out")
    second, _ = read("chatlab", as_lines(tmp_path / "b.jsonl", *said), tmp_path / "out")
    names = ("message_key", "text", "sent_at", "sender", "account_id", "conversation")
    assert [fields(event, *names) for event in first] == [fields(event, *names) for event in second]
    assert len({event["message_key"] for event in first}) == 3


def test_the_owner_is_the_account_unless_another_is_given(tmp_path: Path) -> None:
    events, _ = imported(tmp_path, message(sender="10000"), message())
    assert [fields(event, "account_id") for event in events] == [("10000",), ("10000",)]
    assert [event["sender"]["role"] for event in events] == ["self", "user"]
    given, _ = imported(tmp_path, message(), account="1")
    assert given[0]["account_id"] == "1"


def test_ids_beyond_what_a_double_holds_stay_exact(tmp_path: Path) -> None:
    events, _ = imported(
        tmp_path,
        message(platformMessageId=7550661067109350011),
        message("是", platformMessageId="7550661067109350012", replyToMessageId=7550661067109350011),
    )
    assert events[0]["message_key"] == "qq:10000:999:7550661067109350011"
    assert events[1]["reply_to"] == events[0]["message_key"]


def test_an_answer_to_what_is_not_here_keeps_its_target(tmp_path: Path) -> None:
    events, _ = imported(tmp_path, message(type=25, replyToMessageId="404"))
    assert events[0]["reply_to"] == "qq:10000:999:404"


@pytest.mark.parametrize(
    ("stamp", "sent_at"),
    [
        ("1782871200", 1782871200),
        (1782871200400, 1782871200.4),
        ("1782871200400000", 1782871200.4),
        (1782871200.5, 1782871200.5),
    ],
)
def test_a_time_is_read_by_its_size(stamp: object, sent_at: float, tmp_path: Path) -> None:
    events, _ = imported(tmp_path, message(timestamp=stamp))
    assert events[0]["sent_at"] == sent_at


@pytest.mark.parametrize("stamp", [None, 0, "", "gestern", -5, 1e300, [], True])
def test_a_message_without_a_time_is_listed(stamp: object, tmp_path: Path) -> None:
    events, report = imported(tmp_path, message(timestamp=stamp), message("b"))
    assert [event["text"] for event in events] == ["b"]
    assert reasons(report) == ["no message with a time"]


def test_an_unknown_type_keeps_its_words_and_is_listed(tmp_path: Path) -> None:
    events, report = imported(tmp_path, message("原样", type=4242), message(None, type=4243))
    assert [fields(event, "text", "kind") for event in events] == [("原样", "message"), ("[4243]", "message")]
    assert [event["source"]["type"] for event in events] == [4242, 4243]
    assert reasons(report) == ["an unknown type of message"] * 2


def test_a_notice_is_system_and_a_recall_withdraws_what_it_names(tmp_path: Path) -> None:
    events, report = imported(
        tmp_path,
        message("甲 加入群聊", type=80),
        message("撤回了", type=81, platformMessageId="5"),
        message("撤回了", type=81),
    )
    assert [fields(event, "kind", "state", "text") for event in events] == [
        ("system", "normal", "甲 加入群聊"),
        ("message", "recalled", ""),
        ("system", "normal", "撤回了"),
    ]
    assert (events[1]["revision"], report.recalls) == (1, 1)


def test_a_recalled_message_supersedes_its_text_from_another_file(tmp_path: Path) -> None:
    lines: list[bytes] = []
    for name, row in (
        ("a", message("秘密", platformMessageId="5")),
        ("b", message("撤回了", type=81, platformMessageId="5")),
    ):
        path = as_json(tmp_path / f"{name}.json", row)
        _, report = read("chatlab", path, tmp_path / "out")
        lines += Path(report.files[0]).read_bytes().splitlines(keepends=True)
    for order in (lines, lines[::-1]):
        plan = plan_events(order)
        assert (plan.quarantined, plan.messages) == ([], 1)


def test_files_stand_beside_the_text(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "a.jpg").write_bytes(b"abc")
    events, report = imported(
        tmp_path,
        message("media\\a.jpg", type=1),
        message(None, type=2),
        message("files/合同.docx", type=4),
        message(
            "看", attachments=[{"filePath": "media/a.jpg", "fileName": "图.jpg", "mimeType": "image/jpeg"}]
        ),
    )
    assert [event["text"] for event in events] == ["media\\a.jpg", "[语音]", "files/合同.docx", "看"]
    assert fields(events[0]["attachments"][0], "path", "state") == ("media/a.jpg", "present")
    assert events[1]["attachments"] == [attachment()]
    assert events[2]["attachments"] == [attachment(name="合同.docx")]
    assert fields(events[3]["attachments"][0], "name", "mime", "state") == ("图.jpg", "image/jpeg", "present")
    assert (report.attachments_present, report.attachments_missing) == (2, 2)


def test_a_senders_name_is_never_invented(tmp_path: Path) -> None:
    events, _ = imported(
        tmp_path,
        message(groupNickname="老甲"),
        message(sender="10002", accountName=""),
        message(sender="10003", accountName="10003"),
        message(sender=None, accountName=None),
    )
    assert [fields(event["sender"], "id", "name", "role") for event in events] == [
        ("10001", "老甲", "user"),
        ("10002", "乙", "user"),
        ("10003", None, "user"),
        (None, None, "unknown"),
    ]


@pytest.mark.parametrize(
    ("written", "platform"),
    [("QQ", "qq"), ("WeChat PC", "wechat-pc"), ("微信", "unknown"), (None, "unknown"), ("a" * 99, "a" * 32)],
)
def test_the_platform_is_what_the_file_says_in_the_form_of_events(
    written: str | None, platform: str, tmp_path: Path
) -> None:
    path = as_json(tmp_path / "in.json", message(), meta={**META, "platform": written})
    events, _ = read("chatlab", path, tmp_path / "out")
    assert events[0]["platform"] == platform
    assert plan_events([json.dumps(events[0]).encode() + b"\n"]).quarantined == []


def test_neighbours_are_linked_only_where_the_export_is_said_to_be_complete(tmp_path: Path) -> None:
    said = [message("a"), message("b"), message("c", timestamp=1), message("d")]
    assert not any("sequence" in event for event in imported(tmp_path, *said)[0])
    events, _ = imported(tmp_path, *said, complete=True)
    keys = [event["message_key"] for event in events]
    # Time runs backwards before "c": its place is not proven.
    assert [event["sequence"].get("predecessor") for event in events] == [None, keys[0], None, keys[2]]


def test_a_damaged_line_costs_itself_alone(tmp_path: Path) -> None:
    path = as_lines(tmp_path / "in.jsonl", message("a"), message("b"))
    lines = path.read_text("utf-8").splitlines()
    lines[2:3] = [lines[2], '{"_type":"message","sender":', "{}", "# remark", ""]
    path.write_text("\n".join(lines), "utf-8")
    events, report = read("chatlab", path, tmp_path / "out")
    assert [event["text"] for event in events] == ["a", "b"]
    assert [fields(note, "line", "reason") for note in report.not_understood] == [
        (4, "damaged JSON"),
        (5, "no line of a known type"),
    ]


def test_a_header_after_the_messages_describes_them_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text(json.dumps({"messages": [message()], "meta": META, "chatlab": HEADER}), "utf-8")
    events, _ = read("chatlab", path, tmp_path / "out")
    assert events[0]["conversation"]["id"] == "999"


def test_another_programs_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"messages": [{"timestamp": 5}]}')
    with pytest.raises(ConfigError, match="not a ChatLab file"):
        read("chatlab", path, tmp_path / "out")
