"""QQ Chat Exporter's JSON: what the sample says, read by hand, is what the events say."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatproc.errors import ConfigError
from chatproc.importers import ImportReport, import_chats
from chatproc.importers.qq import Order

SAMPLE = Path(__file__).parent / "samples" / "qq" / "qce_v5_single.json"
Imported = tuple[list[dict[str, Any]], ImportReport]


def read(path: Path, out: Path, **settings: Any) -> Imported:  # noqa: ANN401 - passed on
    report = import_chats("qq-qce", [path], out=out, **settings)
    return [json.loads(line) for line in Path(report.files[0]).read_text("utf-8").splitlines()], report


def message(number: int, seq: int, *elements: dict[str, Any], **members: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "id": str(number),
        "seq": str(seq),
        "timestamp": 1782871200000 + 1000 * seq,
        "sender": {"uid": "u_a", "uin": "10001", "name": "甲"},
        "type": "text",
        "content": {"text": "", "elements": list(elements), "resources": [], "mentions": []},
        "recalled": False,
        "system": False,
        **members,
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "data": {"text": words}}


def write(path: Path, *messages: dict[str, Any], chat: dict[str, Any] | None = None) -> Path:
    info = chat or {"name": "群", "type": "group", "selfUin": "10000", "peerUid": "999"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"chatInfo": info, "messages": messages}, ensure_ascii=False), "utf-8")
    return path


def write_chunks(folder: Path, *chunks: list[dict[str, Any]]) -> Path:
    (folder / "chunks").mkdir(parents=True)
    listed = []
    for index, messages in enumerate(chunks, 1):
        name = f"chunks/c{index:06}.jsonl"
        lines = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in messages)
        (folder / name).write_text(lines, "utf-8")
        listed.append({"index": index, "fileName": name[7:], "relativePath": name, "count": len(messages)})
    manifest = {
        "chatInfo": {"name": "群", "type": "group", "selfUin": "10000", "peerUid": "999"},
        "chunked": {"format": "jsonl", "chunksDir": "chunks", "chunks": listed},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False), "utf-8")
    return folder


def fields(event: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(event[name] for name in names)


KEY = "qq:10000:999000:"


def test_the_sample_reads_as_it_says(tmp_path: Path) -> None:
    events, report = read(SAMPLE, tmp_path)
    picture, due, reply, tip, recalled, forward = events

    assert {fields(event, "platform", "account_id") for event in events} == {("qq", "10000")}
    assert due["conversation"] == {"id": "999000", "name": "测试群", "type": "group"}
    assert fields(due, "message_key", "message_id", "sent_at", "text", "state", "revision", "kind") == (
        KEY + "7550661067109350011",
        "7550661067109350011",
        1782871140,
        "周五前交表",
        "normal",
        0,
        "message",
    )
    assert due["sender"] == {"id": "10001", "name": "甲", "role": "user"}
    # 99 is not in the file: where it begins nothing is proven. 102 and 106 are missing likewise.
    assert due["sequence"] == {"index": 100}
    assert picture["sequence"] == {"index": 101, "predecessor": due["message_key"]}
    assert reply["sequence"] == {"index": 103}
    assert tip["sequence"] == {"index": 104, "predecessor": reply["message_key"]}
    assert recalled["sequence"] == {"index": 105, "predecessor": tip["message_key"]}
    assert forward["sequence"] == {"index": 107}

    assert fields(picture, "sent_at", "text") == (1782871200, "[图片]")
    assert picture["attachments"] == [
        {
            "id": "a1",
            "name": "a.png",
            "mime": None,
            "size": None,
            "sha256": None,
            "path": None,
            "state": "missing",
        }
    ]
    assert fields(reply, "text", "reply_to") == ("收到", KEY + "7550673423851295947")
    assert reply["sender"] == {"id": "10002", "name": "乙", "role": "user"}
    assert fields(tip, "kind", "text") == ("system", "甲撤回了一条消息")
    assert tip["sender"] == {"id": None, "name": None, "role": "system"}
    assert fields(recalled, "state", "revision", "text", "mentions", "attachments") == (
        "recalled",
        1,
        "",
        [],
        [],
    )
    assert forward["text"] == "[聊天记录] 群聊的聊天记录\n甲 (2026-06-30 09:00:00): 内层"

    assert report.to_dict() == {
        "files": list(report.files),
        "messages": 6,
        "edits": 0,
        "recalls": 1,
        "attachments": {"present": 0, "missing": 1},
        "not_understood": [],
        "repaired": [],
        "timezone_assumed": False,
    }


def test_a_complete_export_links_across_missing_numbers(tmp_path: Path) -> None:
    events, _ = read(SAMPLE, tmp_path, complete=True)
    by_index = {event["sequence"]["index"]: event for event in events}
    order = sorted(by_index)
    assert order == [100, 101, 103, 104, 105, 107]
    assert "predecessor" not in by_index[100]["sequence"]
    for before, after in pairwise(order):
        assert by_index[after]["sequence"]["predecessor"] == by_index[before]["message_key"]


def test_chunks_tell_the_same_as_one_file(tmp_path: Path) -> None:
    messages = [message(1000 + seq, seq, text(f"第{seq}条")) for seq in range(5)]
    single, _ = read(write(tmp_path / "single" / "group.json", *messages), tmp_path / "out")
    folder = write_chunks(tmp_path / "group_chunked_jsonl", messages[:2], messages[2:])
    chunked, report = read(folder, tmp_path / "out")
    assert report.not_understood == ()
    for one, other in zip(single, chunked, strict=True):
        for name in set(one) - {"event_id", "source"}:
            assert one[name] == other[name]
    assert [fields(event["source"], "file", "line") for event in chunked] == [
        ("chunks/c000001.jsonl", 1),
        ("chunks/c000001.jsonl", 2),
        ("chunks/c000002.jsonl", 1),
        ("chunks/c000002.jsonl", 2),
        ("chunks/c000002.jsonl", 3),
    ]
    # The name comes from the sorted paths and their hashes; the manifest's path names the same export.
    files = ("chunks/c000001.jsonl", "chunks/c000002.jsonl", "manifest.json")
    listed = [[name, hashlib.sha256((folder / name).read_bytes()).hexdigest()] for name in files]
    digest = hashlib.sha256(json.dumps(listed).encode()).hexdigest()
    assert Path(report.files[0]).name == f"qq-qce-{digest[:12]}.jsonl"
    assert read(folder / "manifest.json", tmp_path / "out")[1].files == report.files


def test_a_missing_chunk_and_a_broken_line_are_listed_and_the_rest_goes_in(tmp_path: Path) -> None:
    folder = write_chunks(tmp_path / "x", [message(1, 1, text("a"))], [message(2, 2)], [message(3, 3)])
    (folder / "chunks" / "c000002.jsonl").unlink()
    with (folder / "chunks" / "c000001.jsonl").open("a") as file:
        file.write('{"id": "9", "seq"\n')
    events, report = read(folder, tmp_path / "out")
    assert [event["message_id"] for event in events] == ["1", "3"]
    assert "predecessor" not in events[1]["sequence"]
    assert [fields(note, "file", "line", "text") for note in report.not_understood] == [
        ("manifest.json", 0, "chunks/c000002.jsonl"),
        ("chunks/c000001.jsonl", 2, '{"id": "9", "seq"\n'),
    ]


def test_a_manifest_cannot_reach_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text(json.dumps(message(7, 7, text("secret"))) + "\n")
    folder = write_chunks(tmp_path / "x", [message(1, 1)])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["chunked"]["chunks"].append({"relativePath": "../secret.jsonl"})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    events, report = read(folder, tmp_path / "out")
    assert [event["message_id"] for event in events] == ["1"]
    assert [note["text"] for note in report.not_understood] == ["../secret.jsonl"]


@pytest.mark.parametrize(
    "place", ["images/a.png", "resources/images/a.png"], ids=["beside the export", "in resources"]
)
def test_a_file_is_found_where_the_exporter_puts_it(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "archive" / "export"
    (folder / place).parent.mkdir(parents=True)
    (folder / place).write_bytes(b"png")
    picture = {"type": "image", "data": {"filename": "a.png", "size": 3, "localPath": "images/a.png"}}
    events, report = read(write(folder / "g.json", message(1, 1, picture)), tmp_path / "out")
    (found,) = events[0]["attachments"]
    assert fields(found, "path", "state", "size") == (place, "present", 3)
    assert found["sha256"] == hashlib.sha256(b"png").hexdigest()
    assert report.attachments_present == 1
    below, _ = read(folder / "g.json", tmp_path / "out", archive_root=tmp_path / "archive")
    assert below[0]["attachments"][0]["path"] == f"export/{place}"


def test_a_file_that_was_never_exported_says_so(tmp_path: Path) -> None:
    file = {"type": "file", "data": {"filename": "表.xlsx", "size": 20480, "md5": "2f"}}
    events, _ = read(write(tmp_path / "g.json", message(1, 1, file)), tmp_path / "out")
    assert fields(events[0], "text") == ("[文件]",)
    assert fields(events[0]["attachments"][0], "name", "size", "state") == ("表.xlsx", 20480, "not_exported")


def test_mentions_keep_their_place_in_the_text(tmp_path: Path) -> None:
    elements = [
        {"type": "at", "data": {"uid": "all", "uin": "0", "name": "全体成员", "atType": 1}},
        text(" 改到周四，"),
        {"type": "at", "data": {"uid": "u_b", "uin": "10002", "name": "乙", "atType": 2}},
        text(" 带表"),
    ]
    events, _ = read(write(tmp_path / "g.json", message(1, 1, *elements)), tmp_path / "out")
    assert events[0]["text"] == "@全体成员 改到周四，@乙 带表"
    assert events[0]["mentions"] == [{"all": True}, {"id": "10002", "name": "乙"}]


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ({"type": "face", "data": {"id": "178", "name": "/微笑"}}, "[微笑]"),
        ({"type": "market_face", "data": {"name": "[doge]"}}, "[doge]"),
        ({"type": "audio", "data": {"filename": "v.silk", "duration": 5}}, "[语音]"),
        (
            {
                "type": "json",
                "data": {"title": "[群公告] 明天停电", "description": "8 点起", "url": "https://e.test"},
            },
            "[卡片] [群公告] 明天停电\n8 点起\nhttps://e.test",
        ),
        (
            {"type": "location", "data": {"name": "图书馆", "address": "东路 1 号"}},
            "[位置] 图书馆\n东路 1 号",
        ),
        ({"type": "markdown", "data": {"content": "**交表**", "summary": "Markdown消息"}}, "**交表**"),
        ({"type": "av_record", "data": {"summary": "语音通话 - 已结束"}}, "[语音通话 - 已结束]"),
        (
            {"type": "forward", "data": {"title": "聊天记录", "preview": ["甲: 1", "乙: 2"], "messages": []}},
            "[聊天记录] 聊天记录\n甲: 1\n乙: 2",
        ),
        (
            {
                "type": "forward",
                "data": {
                    "title": "外",
                    "messages": [
                        {
                            "sender": {"name": "甲"},
                            "time": "2026-06-30T01:00:00.000Z",
                            "content": {
                                "text": "[转发消息: 1条]",
                                "elements": [
                                    {
                                        "type": "forward",
                                        "data": {
                                            "title": "内",
                                            "messages": [
                                                {"sender": {"name": "乙"}, "content": {"text": "明天交"}}
                                            ],
                                        },
                                    }
                                ],
                            },
                        }
                    ],
                },
            },
            "[聊天记录] 外\n甲 (2026-06-30T01:00:00.000Z): [聊天记录] 内\n  乙: 明天交",
        ),
    ],
)
def test_every_known_kind_of_content_reads_as_words(
    element: dict[str, Any], words: str, tmp_path: Path
) -> None:
    events, report = read(write(tmp_path / "g.json", message(1, 1, element)), tmp_path / "out")
    assert events[0]["text"] == words
    assert report.not_understood == ()


def test_content_of_an_unknown_kind_stays_readable_and_is_listed(tmp_path: Path) -> None:
    element = {"type": "hologram", "data": {"summary": "全息图"}}
    events, report = read(write(tmp_path / "g.json", message(1, 1, text("看"), element)), tmp_path / "out")
    assert events[0]["text"] == "看[hologram] 全息图"
    assert [note["reason"] for note in report.not_understood] == ["unknown kind of content"]


def test_a_message_without_elements_keeps_the_exporters_text(tmp_path: Path) -> None:
    plain = message(1, 1, content={"text": "老版本", "mentions": [{"uid": "all", "type": "all"}]})
    events, _ = read(write(tmp_path / "g.json", plain), tmp_path / "out")
    assert fields(events[0], "text", "mentions") == ("老版本", [{"all": True}])


def test_a_message_without_id_or_time_is_listed_and_not_guessed(tmp_path: Path) -> None:
    undated = message(2, 2, timestamp=0, time="?")
    nameless = {**message(3, 3), "id": ""}
    events, report = read(write(tmp_path / "g.json", message(1, 1), undated, nameless), tmp_path / "out")
    assert [event["message_id"] for event in events] == ["1"]
    assert len(report.not_understood) == 2


def test_a_recall_seen_later_is_a_later_revision_of_the_same_message(tmp_path: Path) -> None:
    sent, _ = read(write(tmp_path / "a.json", message(1, 1, text("周五交"))), tmp_path / "out")
    gone, _ = read(write(tmp_path / "b.json", message(1, 1, text("周五交"), recalled=True)), tmp_path / "out")
    assert sent[0]["message_key"] == gone[0]["message_key"]
    assert gone[0]["revision"] > sent[0]["revision"]
    assert gone[0]["text"] == ""


def test_overlapping_exports_tell_the_same_and_keep_the_proven_link(tmp_path: Path) -> None:
    messages = [message(1000 + seq, seq, text(f"第{seq}条")) for seq in range(1, 7)]
    quoting = {"type": "reply", "data": {"referencedMessageId": "1002", "content": "第2条"}}
    unresolved = {"type": "reply", "data": {"referencedMessageId": "1002", "content": "原消息"}}
    early = [*messages[:3], message(1004, 4, quoting, text("收到"))]
    late = [message(1004, 4, unresolved, text("收到")), *messages[4:]]
    before, _ = read(write(tmp_path / "a.json", *early), tmp_path / "out")
    after, _ = read(write(tmp_path / "b.json", *late), tmp_path / "out")
    one, other = before[3], after[0]
    for name in (
        "message_key",
        "revision",
        "state",
        "sent_at",
        "text",
        "mentions",
        "reply_to",
        "attachments",
    ):
        assert one[name] == other[name]
    assert one["sequence"] == {"index": 4, "predecessor": "qq:10000:999:1003"}
    assert other["sequence"] == {"index": 4}
    assert one["event_id"] > other["event_id"]


def test_two_messages_with_one_number_prove_nothing(tmp_path: Path) -> None:
    events, _ = read(
        write(tmp_path / "g.json", message(1, 1), message(2, 2), message(3, 2), message(4, 3)),
        tmp_path / "out",
    )
    assert ["predecessor" in event["sequence"] for event in events] == [False, False, False, False]


def test_in_a_private_chat_numbers_must_follow_in_the_files_order_too(tmp_path: Path) -> None:
    chat = {"name": "乙", "type": "private", "selfUin": "10000", "peerUid": "u_b", "peerUin": "10002"}
    own = {"uid": "u_me", "uin": "10000", "name": "我"}
    path = write(
        tmp_path / "g.json",
        message(1, 50, sender=own),
        message(2, 9000),
        message(3, 9001),
        message(4, 51, timestamp=1782999999000),
        chat=chat,
    )
    events, _ = read(path, tmp_path / "out")
    assert events[0]["conversation"] == {"id": "u_b", "name": "乙", "type": "private"}
    assert [event["sender"]["role"] for event in events] == ["self", "user", "user", "user"]
    assert [event["sequence"].get("predecessor") for event in events] == [None, None, "qq:10000:u_b:2", None]


def test_an_unreadable_message_keeps_its_place_and_is_listed(tmp_path: Path) -> None:
    broken = message(2, 2, type="error", content={"text": "[解析失败: x]", "elements": []})
    events, report = read(write(tmp_path / "g.json", message(1, 1), broken, message(3, 3)), tmp_path / "out")
    assert [event["kind"] for event in events] == ["message", "system", "message"]
    assert events[2]["sequence"]["predecessor"] == events[1]["message_key"]
    assert len(report.not_understood) == 1


def test_the_given_account_wins(tmp_path: Path) -> None:
    events, _ = read(SAMPLE, tmp_path, account="10001")
    assert events[1]["account_id"] == "10001"
    assert events[1]["sender"]["role"] == "self"


def test_a_folder_gives_each_export_in_it_and_passes_other_json_by(tmp_path: Path) -> None:
    write(tmp_path / "exports" / "a.json", message(1, 1))
    write(tmp_path / "exports" / "b.json", message(2, 2))
    (tmp_path / "exports" / "avatars.json").write_text("{}")
    report = import_chats("qq-qce", [tmp_path / "exports"], out=tmp_path / "out")
    assert (len(report.files), report.messages) == (2, 2)


def test_another_programs_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"messages": []}')
    with pytest.raises(ConfigError, match="chatInfo"):
        read(path, tmp_path / "out")


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 99)), max_size=14, unique=True))
def test_order_proves_what_a_plain_search_proves(entries: list[tuple[int, int]]) -> None:
    order = Order()
    for seq, number in entries:
        order.add(seq, number)
    order.seal()
    for seq, _ in entries:
        here = {number for other, number in entries if other == seq}
        before = {number for other, number in entries if other == seq - 1}
        expected = next(iter(before)) if len(here) == len(before) == 1 else None
        assert order.just_before(seq) == expected
