"""Feishu's messages: bodies are JSON in a text, forwards hold messages, what is deleted stays deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatproc.core import plan_events
from chatproc.errors import ConfigError
from tests.json_exports import SAMPLES, Imported, attachment, fields, read, reasons

PAGE = SAMPLES / "feishu" / "im_v1_messages.json"
LAST_REVISION = (1 << 53) - 1


def message(number: int, kind: str = "text", content: Any = None, **members: Any) -> dict[str, Any]:  # noqa: ANN401
    body = {"text": f"m{number}"} if content is None else content
    return {
        "message_id": f"om_{number}",
        "msg_type": kind,
        "create_time": str(1782871200000 + number),
        "chat_id": "oc_1",
        "deleted": False,
        "sender": {"id": "ou_a", "id_type": "open_id", "sender_type": "user"},
        "body": {"content": body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)},
        **members,
    }


def page(path: Path, *items: dict[str, Any], **more: Any) -> Path:  # noqa: ANN401 - any value
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"code": 0, "msg": "success", "data": {"has_more": False, "items": items, **more}}
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    return path


def imported(tmp_path: Path, *items: dict[str, Any], **settings: Any) -> Imported:  # noqa: ANN401
    return read("feishu", page(tmp_path / "in.json", *items), tmp_path / "out", **settings)


def test_the_sample_reads_as_it_says(tmp_path: Path) -> None:
    events, report = read("feishu", PAGE, tmp_path)
    asked, answer, gone, forward = events
    assert asked["conversation"] == {"id": "oc_1", "name": None, "type": "unknown"}
    assert fields(asked, "message_key", "sent_at", "text", "mentions", "state", "reply_to") == (
        "feishu:om_1",
        1782871200.4,
        "@乙 @所有人 周五前交表",
        [{"all": True}, {"id": "ou_b", "name": "乙"}],
        "normal",
        None,
    )
    # The page names nobody; a mention in it knows 甲.
    assert asked["sender"] == {"id": "ou_a", "name": "甲", "role": "user"}
    assert fields(answer, "text", "reply_to", "state", "revision", "attachments") == (
        "@甲收到\n[图片]",
        "feishu:om_1",
        "edited",
        1782871999000,
        [attachment()],
    )
    assert answer["source"]["keys"] == ["img_1"]
    assert fields(gone, "state", "text", "revision") == ("recalled", "", LAST_REVISION)
    assert fields(forward, "text", "revision") == ("[合并转发]\nou_c: 内层", 1)
    assert forward["sender"] == {"id": "cli_x", "name": None, "role": "bot"}
    assert not any("sequence" in event for event in events)
    assert (report.messages, report.edits, report.recalls) == (4, 1, 1)
    assert reasons(report) == ["there are more messages than this page holds"]


@pytest.mark.parametrize("shape", ["page", "items", "list"])
def test_a_page_its_data_and_a_bare_list_are_the_same_messages(shape: str, tmp_path: Path) -> None:
    path = page(tmp_path / "page.json", message(1), message(2))
    data = json.loads(path.read_text("utf-8"))["data"]
    written = {"page": {"data": data}, "items": data, "list": data["items"]}[shape]
    path.write_text(json.dumps(written), "utf-8")
    events, _ = read("feishu", path, tmp_path / "out")
    assert [event["message_key"] for event in events] == ["feishu:om_1", "feishu:om_2"]


def test_an_error_of_the_api_is_no_empty_chat(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"code": 230002, "msg": "Bot/User can NOT be out of the chat.", "data": {}}')
    with pytest.raises(ConfigError, match="NOT be out of the chat"):
        read("feishu", path, tmp_path / "out")


def tags(*paragraphs: list[dict[str, Any]]) -> dict[str, Any]:
    return {"title": "", "content": list(paragraphs)}


def tag(kind: str, text: str = "", **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    return {"tag": kind, "text": text, **members}


CARD = {
    "header": {"title": {"tag": "plain_text", "content": "审批"}},
    "elements": [{"tag": "div", "text": {"tag": "lark_md", "content": "周五前"}}, [tag("text", "同意")]],
}


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("text", {"text": "@_user_1你好"}, "@乙你好"),
        ("text", {"text": "@_user_12 @_allies"}, "@_user_12 @_allies"),
        ("post", {"zh_cn": tags([tag("a", "表", href="http://x")], [tag("md", "**周五**")])}, "表 (http://x)\n**周五**"),
        ("post", {**tags([tag("hr")]), "title": "通知"}, "通知\n---"),
        ("post", tags([tag("emotion", emoji_type="OK"), tag("text", " 好")]), "[OK] 好"),
        ("post", tags([tag("at", user_id="ou_z", user_name="丁")]), "@丁"),
        ("interactive", CARD, "[卡片]\n审批\n周五前\n同意"),
        ("todo", {"summary": tags([tag("text", "交表")]), "due_time": "1782900"}, "[任务] 交表 1782900"),
        (
            "todo",
            {"summary": tags([tag("text", "表")]), "due_time": "1782900000123"},
            "[任务] 表 2026-07-01T10:00:00Z",
        ),
        ("vote", {"topic": "周几?", "options": ["一", "二"]}, "[投票] 周几?\n- 一\n- 二"),
        ("location", {"name": "图书馆", "longitude": "1", "latitude": "2"}, "[位置] 图书馆 1 2"),
        ("share_calendar_event", {"summary": "周会", "start_time": "1", "end_time": "2"}, "[日程] 周会 1 2"),
        (
            "calendar",
            {"summary": "周会", "start_time": "1782871200000", "end_time": "1782874800000"},
            "[日程] 周会 2026-07-01T02:00:00Z 2026-07-01T03:00:00Z",
        ),
        ("sticker", {"file_key": "k"}, "[表情]"),
        ("share_user", {"user_id": "ou_q"}, "[名片] ou_q"),
    ],
)  # fmt: skip
def test_each_type_reads_as_feishu_shows_it(
    kind: str, content: dict[str, Any], text: str, tmp_path: Path
) -> None:
    mentions = [{"key": "@_user_1", "id": "ou_b", "name": "乙"}]
    events, report = imported(tmp_path, message(1, kind, content, mentions=mentions))
    assert events[0]["text"] == text
    assert report.not_understood == ()


@pytest.mark.parametrize(
    ("kind", "content", "text", "name"),
    [
        ("image", {"image_key": "k"}, "[图片]", None),
        ("file", {"file_key": "k", "file_name": "合同.docx"}, "[文件]", "合同.docx"),
        ("audio", {"file_key": "k", "duration": 1}, "[语音]", None),
        ("media", {"file_key": "k", "image_key": "i", "file_name": "a.mp4"}, "[视频]", "a.mp4"),
    ],
)
def test_files_stand_beside_the_text(
    kind: str, content: dict[str, Any], text: str, name: str | None, tmp_path: Path
) -> None:
    events, _ = imported(tmp_path, message(1, kind, content))
    assert fields(events[0], "text", "attachments") == (text, [attachment(name=name)])
    assert events[0]["source"]["keys"] == ["k"]


def test_a_file_beside_the_page_is_found_by_name_or_key(tmp_path: Path) -> None:
    (tmp_path / "合同.docx").write_bytes(b"abc")
    (tmp_path / "img_k").write_bytes(b"abcd")
    events, _ = imported(
        tmp_path,
        message(1, "file", {"file_key": "k", "file_name": "合同.docx"}),
        message(2, "image", {"image_key": "img_k"}),
        message(3, "file", {"file_key": "k", "file_name": "../../etc/passwd"}),
    )
    assert [event["attachments"][0]["path"] for event in events] == ["合同.docx", "img_k", None]


def test_a_notice_tells_of_whom(tmp_path: Path) -> None:
    content = {
        "template": "{from_user} 邀请 {to_chatters} 入群",
        "from_user": ["甲"],
        "to_chatters": ["乙", "丙"],
    }
    events, _ = imported(tmp_path, message(1, "system", content))
    assert fields(events[0], "kind", "text") == ("system", "甲 邀请 乙, 丙 入群")


def test_what_is_unknown_keeps_its_words_and_is_listed(tmp_path: Path) -> None:
    events, report = imported(
        tmp_path,
        message(1, "hologram", {"title": "全息", "depth": 3}),
        message(2, "post", {"content": [[{"tag": "smell", "text": "花"}]]}),
        message(3, "text", "no JSON"),
        message(4, "text", "[1]"),
    )
    assert [event["text"] for event in events] == ["[hologram]\n全息", "花", "no JSON", "[1]"]
    assert reasons(report) == [
        "an unknown type of message",
        "an unknown tag in a rich text",
        "a content that is no JSON object",
        "a content that is no JSON object",
    ]


def forward(number: int, **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    return message(number, "merge_forward", "Merged and Forwarded Message", **members)


def test_a_forward_in_a_forward_is_text_whatever_comes_first(tmp_path: Path) -> None:
    events, report = imported(
        tmp_path,
        message(4, upper_message_id="om_2", sender={"id": "ou_d"}),
        forward(1),
        forward(2, upper_message_id="om_1", sender={"id": "ou_c"}),
        message(3, upper_message_id="om_1", sender={"id": "ou_b"}),
    )
    assert [event["text"] for event in events] == ["[合并转发]\nou_c: [合并转发]\n  ou_d: m4\nou_b: m3"]
    assert report.not_understood == ()


def test_forwards_that_hold_each_other_end(tmp_path: Path) -> None:
    loops = [forward(number, upper_message_id=f"om_{number % 3 + 1}") for number in (1, 2, 3)]
    many = [forward(9, upper_message_id="om_9") for _ in range(50)]
    events, _ = imported(tmp_path, forward(1), forward(9), *loops, *many)
    assert len(events) == 2
    assert all(len(event["text"]) < 2000 for event in events)


def test_a_forward_without_its_messages_is_the_same_one_and_part_of_an_absent_one_is_listed(
    tmp_path: Path,
) -> None:
    lines: list[bytes] = []
    for name, items in (("a", [forward(1)]), ("b", [forward(1), message(2, upper_message_id="om_1")])):
        _, report = read("feishu", page(tmp_path / f"{name}.json", *items), tmp_path / "out")
        lines += Path(report.files[0]).read_bytes().splitlines(keepends=True)
    for order in (lines, lines[::-1]):
        plan = plan_events(order)
        assert (plan.quarantined, plan.messages) == ([], 1)
    events, report = imported(tmp_path, message(2, upper_message_id="om_404"), message(3))
    assert [event["text"] for event in events] == ["m3"]
    assert reasons(report) == ["part of a forwarded message that is not here"]


def test_an_answer_to_an_absent_message_keeps_its_target(tmp_path: Path) -> None:
    events, _ = imported(tmp_path, message(1, parent_id="om_404", root_id="om_1"))
    assert events[0]["reply_to"] == "feishu:om_404"


@pytest.mark.parametrize("stamp", [None, "", "soon", "0", [], True])
def test_a_message_without_a_time_is_listed(stamp: object, tmp_path: Path) -> None:
    events, report = imported(tmp_path, message(1, create_time=stamp), message(2))
    assert [event["text"] for event in events] == ["m2"]
    assert reasons(report) == ["no message with an id and a time"]


def test_neighbours_are_linked_only_where_the_export_is_said_to_be_complete(tmp_path: Path) -> None:
    items = [message(1), message(2), message(3, chat_id="oc_2")]
    assert not any("sequence" in event for event in imported(tmp_path, *items)[0])
    events, _ = imported(tmp_path, *items, complete=True)
    assert [event["sequence"].get("predecessor") for event in events] == [None, "feishu:om_1", None]


def test_another_programs_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"rows": [1, 2]}')
    with pytest.raises(ConfigError, match="no Feishu messages"):
        read("feishu", path, tmp_path / "out")
