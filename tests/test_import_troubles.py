"""Troubles that any importer meets: full disks, interruptions, its own attachments, millions of odd parts."""

from __future__ import annotations

import errno
import json
import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.errors import ConfigError
from chatproc.importers import import_chats
from chatproc.importers.report import MAX_LISTED
from tests.exports import imported, written

if TYPE_CHECKING:
    from collections.abc import Callable


def telegram(path: Path, *messages: dict[str, Any]) -> Path:
    head = {"name": "组", "type": "private_supergroup", "id": 9}
    body = [{"type": "message", "date_unixtime": "1782871200", **message} for message in messages]
    return written(path, json.dumps({**head, "messages": body}))


def qq(path: Path, *elements: dict[str, Any]) -> Path:
    said = {"id": "1", "seq": "1", "timestamp": 1782871200000, "content": {"elements": list(elements)}}
    chat = {"type": "group", "selfUin": "1", "peerUid": "9"}
    return written(path, json.dumps({"metadata": {}, "chatInfo": chat, "messages": [said]}))


def chatlog(path: Path, **contents: Any) -> Path:  # noqa: ANN401 - any JSON value
    row = {"talker": "1@chatroom", "isChatRoom": True, "sender": "a", "seq": 1782871200001, "content": ""}
    time = "2026-07-01T10:00:00+08:00"
    return written(path, json.dumps([{**row, "time": time, "type": 49, "subType": 19, **contents}]))


def mail_with_a_mail(path: Path) -> Path:
    inner = "From: c@x.test\nDate: Wed, 1 Jul 2026 09:00:00 +0800\nMessage-ID: <inner@x>\n\ninner\n"
    return written(
        path,
        "From: a@x.test\nDate: Wed, 1 Jul 2026 10:00:00 +0800\nMessage-ID: <outer@x>\nMIME-Version: 1.0\n"
        'Content-Type: multipart/mixed; boundary="b"\n\n--b\n\nsee\n--b\nContent-Type: application/x\n'
        f'Content-Disposition: attachment; filename="inner.eml"\n\n{inner}\n--b--\n',
    )


@pytest.mark.parametrize("form", ["eml", "auto"])
def test_files_that_mails_brought_are_no_mails_when_batches_lie_beside_them(
    form: str, tmp_path: Path
) -> None:
    mail_with_a_mail(tmp_path / "mails/outer.eml")
    out = tmp_path / "mails/import"
    first = imported(form, tmp_path / "mails", out, archive_root=tmp_path)
    (attached,) = first.events[0]["attachments"]
    assert (tmp_path / attached["path"]).is_file()
    second = imported(form, tmp_path / "mails", out, archive_root=tmp_path)
    assert second.report == first.report
    assert second.lines == first.lines


def test_parts_without_end_are_listed_up_to_a_bound_and_then_counted(tmp_path: Path) -> None:
    odd, parts = '{"id":1,"type":"unsupported"}', 2 * MAX_LISTED
    head = '{"name":"g","type":"private_group","id":1,"messages":[\n'
    path = written(tmp_path / "result.json", head + ",\n".join([odd] * parts) + "\n]}")
    tracemalloc.start()
    try:
        report = import_chats("telegram", [path], out=tmp_path / "out")
        _, many = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    *listed, counted = report.not_understood
    assert [note["line"] for note in listed] == list(range(2, 2 + MAX_LISTED))
    assert (counted["line"], counted["text"]) == (2 + MAX_LISTED, listed[0]["text"])
    assert f"({MAX_LISTED} from here on" in counted["reason"]
    assert counted["reason"].startswith(listed[0]["reason"])
    assert many < 20 << 20


@pytest.mark.skipif(os.name != "posix", reason="a limit on files stands for the full disk")
def test_a_full_disk_is_said_with_its_folder_and_leaves_nothing(tmp_path: Path) -> None:
    import resource

    path = telegram(tmp_path / "result.json", *({"id": number, "text": "x" * 500} for number in range(200)))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, old[1]))
    try:
        with pytest.raises(OSError, match="large") as error:
            import_chats("telegram", [path], out=tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert error.value.errno == errno.EFBIG
    assert Path(error.value.filename).parent == tmp_path / "out"
    assert list((tmp_path / "out").iterdir()) == []


def test_an_interruption_leaves_the_batch_of_before_and_nothing_half_written(tmp_path: Path) -> None:
    path = telegram(tmp_path / "result.json", {"id": 1, "text": "交表"})
    whole = imported("telegram", path, tmp_path / "out")

    def interrupt(_name: str, done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_chats("telegram", [path], out=tmp_path / "out", progress=interrupt)
    (batch,) = (tmp_path / "out").iterdir()
    assert batch.read_bytes() == b"".join(whole.lines)


def test_a_path_with_backslashes_is_found(tmp_path: Path) -> None:
    written(tmp_path / "files/报告.txt", "abc")
    path = telegram(tmp_path / "result.json", {"id": 1, "text": "", "file": "files\\报告.txt"})
    (file,) = imported("telegram", path, tmp_path / "out").events[0]["attachments"]
    assert (file["state"], file["name"], file["path"]) == ("present", "报告.txt", "files/报告.txt")


@pytest.mark.parametrize("held", [[], None, {}, [None], [{}], "", 7])
def test_a_forward_with_empty_content_stays_a_forward(held: Any, tmp_path: Path) -> None:  # noqa: ANN401 - any
    element = {"type": "forward", "data": {"title": "群聊的聊天记录", "messages": held}}
    (text,) = imported("qq-qce", qq(tmp_path / "q.json", element), tmp_path / "out").texts
    assert text.startswith("[聊天记录] 群聊的聊天记录")
    record = {"title": "群聊的聊天记录", "recordInfo": {"DataList": {"DataItems": held}}}
    (text,) = imported("chatlog", chatlog(tmp_path / "c.json", contents=record), tmp_path / "out").texts
    assert text.startswith("[聊天记录] 群聊的聊天记录")
    (text,) = imported("chatlog", chatlog(tmp_path / "d.json", contents=held), tmp_path / "out").texts
    assert text == "[聊天记录]"
    forwarded = {"id": 1, "text": held, "forwarded_from": "甲"}
    (event,) = imported("telegram", telegram(tmp_path / "r.json", forwarded), tmp_path / "out").events
    assert (event["text"], event["source"]["forwarded_from"]) == ("", "甲")


def test_messages_that_are_not_in_the_order_of_time_keep_their_times_and_places(tmp_path: Path) -> None:
    said = [
        {"id": number, "date_unixtime": str(1782871200 - 60 * number), "text": "x"} for number in (1, 2, 3)
    ]
    chat = imported("telegram", telegram(tmp_path / "result.json", *said), tmp_path / "out")
    assert chat.column("sent_at") == [1782871140, 1782871080, 1782871020]
    assert chat.column("sequence.index") == [1, 2, 3]
    assert [event["sequence"].get("predecessor") for event in chat.events] == [
        None,
        "telegram::9:1",
        "telegram::9:2",
    ]


def test_one_export_that_cannot_be_read_keeps_no_other_from_being_imported(tmp_path: Path) -> None:
    written(tmp_path / "in/a.txt", "01/07/2026, 09:05 - A: which day?\n")
    written(tmp_path / "in/b.txt", "13/07/2026, 09:05 - B: this one\n")
    written(tmp_path / "in/c/result.json", "{}")
    telegram(tmp_path / "in/d/result.json", {"id": 1, "text": "and this"})
    chats = imported("auto", tmp_path / "in", tmp_path / "out")
    assert sorted(chats.texts) == ["and this", "this one"]
    (refused,) = chats.report.not_understood
    assert (refused["file"], refused["line"]) == ("a.txt", 0)
    assert refused["reason"].startswith("not imported: the order of day and month")
    assert "--date-order" in refused["reason"]


def test_a_second_path_that_is_missing_is_known_before_the_first_is_imported(tmp_path: Path) -> None:
    path = telegram(tmp_path / "result.json", {"id": 1, "text": "x"})
    with pytest.raises(FileNotFoundError):
        import_chats("telegram", [path, tmp_path / "none.json"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_lies_beside_and_below_an_export_is_found_and_what_was_sent_in_it_is_not(tmp_path: Path) -> None:
    home = tmp_path / "exports"
    telegram(home / "result.json", {"id": 1, "text": "beside"})
    telegram(home / "files/result.json", {"id": 2, "text": "sent in a chat"})
    telegram(home / "ChatExport/result.json", {"id": 3, "text": "below"})
    mail_with_a_mail(home / "mails/2026/outer.eml")
    written(home / "WhatsApp/chat.txt", "13/07/2026, 09:05 - B: deeper\n")
    written(home / "slack/users.json", "[]")
    written(home / "slack/general/2026-07-01.json", '[{"type":"message","text":"day","ts":"1.0"}]')
    chats = imported("auto", home, tmp_path / "out")
    assert sorted(chats.texts) == ["below", "beside", "day", "deeper", "see"]
    assert len(chats.report.files) == 5


def two_messages(path: Path) -> Path:
    return telegram(path, {"id": 1, "text": "x"}, {"id": 2, "text": "y"})


@pytest.mark.parametrize(("form", "make"), [("telegram", two_messages), ("qq-qce", qq), ("chatlog", chatlog)])
def test_an_export_that_breaks_off_anywhere_says_so_and_gives_what_came_before(
    form: str, make: Callable[[Path], Path], tmp_path: Path
) -> None:
    whole = make(tmp_path / "result.json").read_text()
    complete = imported(form, tmp_path / "result.json", tmp_path / "out")
    assert complete.report.not_understood == ()
    for length in range(1, len(whole)):
        written(tmp_path / "result.json", whole[:length])
        try:
            part = imported(form, tmp_path / "result.json", tmp_path / "out")
        except ConfigError:
            continue
        assert part.report.not_understood, whole[:length]
        assert set(part.column("message_key")) <= set(complete.column("message_key"))


def test_an_archive_that_nobody_unpacked_is_listed(tmp_path: Path) -> None:
    telegram(tmp_path / "in/result.json", {"id": 1, "text": "x"})
    with zipfile.ZipFile(tmp_path / "in/WhatsApp Chat - B.zip", "w") as archive:
        archive.writestr("_chat.txt", "13/07/2026, 09:05 - B: inside\n")
    (note,) = imported("auto", tmp_path / "in", tmp_path / "out").report.not_understood
    assert note["file"] == "WhatsApp Chat - B.zip"
    assert "unpack it" in note["reason"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no such files")
def test_what_is_no_regular_file_is_passed_over_and_never_waited_for(tmp_path: Path) -> None:
    telegram(tmp_path / "in/a/result.json", {"id": 1, "text": "x"})
    os.mkfifo(tmp_path / "in/pipe")
    os.mkfifo(tmp_path / "in/a/pipe.txt")
    assert imported("auto", tmp_path / "in", tmp_path / "out").texts == ["x"]
