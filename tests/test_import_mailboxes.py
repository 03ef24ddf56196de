"""Mailboxes as files: every mail once and whole, whatever stands in it and however the mailbox is kept."""

from __future__ import annotations

import json
import mailbox
import random
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatproc.core import plan_events
from chatproc.errors import ConfigError
from chatproc.importers import FORMATS, import_chats, mailboxes
from chatproc.importers.mailboxes import _Mbox

if TYPE_CHECKING:
    from chatproc.importers import ImportReport

SAMPLES = Path(__file__).parent / "samples" / "email"
ENVELOPE = "From a@x.test Wed Jul  1 10:00:00 2026"


def mail(number: int, body: str = "body", *fields: str) -> str:
    head = f"Message-ID: <{number}@x.test>\nDate: Wed, 1 Jul 2026 10:00:00 +0800\nFrom: a@x.test\n"
    return head + "".join(f"{field}\n" for field in fields) + f"Subject: s{number}\n\n{body}\n"


def read(form: str, path: Path, out: Path, **given: Any) -> tuple[list[dict[str, Any]], ImportReport]:  # noqa: ANN401 - passed on
    report = import_chats(form, [path], out=out, **given)
    lines = [line for file in report.files for line in Path(file).read_bytes().splitlines(keepends=True)]
    assert plan_events(lines).counts["accepted"] == len(lines) == report.messages
    return [json.loads(line) for line in lines], report


def read_mbox(text: str, folder: Path) -> tuple[list[dict[str, Any]], ImportReport]:
    path = folder / "export.mbox"
    path.write_text(text, "utf-8", newline="")
    return read("mbox", path, folder / "out")


def texts(events: list[dict[str, Any]]) -> list[str]:
    return [event["text"] for event in events]


def test_the_sample_is_what_a_person_reads_in_it(tmp_path: Path) -> None:
    """Read by hand from the file."""
    events, report = read("mbox", SAMPLES.parent / "mbox", tmp_path, account="chen@student.example")
    assert texts(events) == [
        (
            "实验报告一\n\n实验报告一请在 7 月 10 日（周五）17:00 前交到 302 办公室。\n\n"
            "From here on only printed copies count."
        ),
        "Re: 实验报告一\n\nMay it be printed on both sides?\n\n> only printed copies count",
    ]
    assert [event["sender"] for event in events] == [
        {"id": "lin@school.example", "name": "林老师", "role": "user"},
        {"id": "chen@student.example", "name": "Chen", "role": "self"},
    ]
    assert {event["conversation"]["id"] for event in events} == {"one@school.example"}
    assert {event["conversation"]["name"] for event in events} == {"实验报告一"}
    assert [event["sent_at"] for event in events] == [1782871200, 1782876600]
    assert [event["reply_to"] for event in events] == [None, "email:one@school.example"]
    assert [(note["line"], note["reason"]) for note in report.repaired] == [
        (39, "deleted in Thunderbird: left out")
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("between", "envelope"),
    [
        ("\n", ENVELOPE),
        ("", ENVELOPE),  # a writer that leaves the blank line out
        ("\n\n\n", ENVELOPE),
        ("\n", "From - Wed Jul 01 10:00:00 2026"),
        ("\n", "From 1788@xxx Wed Jul 01 02:00:00 +0000 2026"),
        ("\n", "From ???@??? Wed Jul 01 10:00:00 2026"),
        ("\n", "From John Doe Wed Jul  1 10:00 2026"),
        ("\n", "From a@x.test Wed, 1 Jul 2026 10:00:00 +0800"),
        ("\n", "From a@x.test  Wed Jul  1 10:00:00 CST 2026 remote from y"),
    ],
)
def test_every_variant_of_mbox_gives_its_mails(
    between: str, envelope: str, ending: str, tmp_path: Path
) -> None:
    written = "".join(f"{envelope}\n{mail(number)}{between}" for number in (1, 2, 3)).replace("\n", ending)
    events, report = read_mbox(written, tmp_path)
    assert texts(events) == ["s1\n\nbody", "s2\n\nbody", "s3\n\nbody"]
    assert [event["message_key"] for event in events] == [f"email:{number}@x.test" for number in (1, 2, 3)]
    lines = written.split("\n")
    for event in events:
        assert lines[event["source"]["line"] - 1].startswith("From ")
        assert event["message_key"][6:] in lines[event["source"]["line"]]
    assert report.not_understood == report.repaired == ()


@pytest.mark.parametrize(
    "line",
    [
        "From here it is not far.",
        "From Monday on, 10:00",
        "From Wed Jul 1 10:00 to 12:00",
        "From Wed Jul 1 10:00 2026 on",
        f"{ENVELOPE}",  # no header below it
    ],
)
def test_a_line_of_text_that_begins_with_from_is_text(line: str, tmp_path: Path) -> None:
    body = f"before\n\n{line}\nNothing else\n\nafter"
    events, _ = read_mbox(f"{ENVELOPE}\n{mail(1, body)}\n{ENVELOPE}\n{mail(2)}", tmp_path)
    assert texts(events) == [f"s1\n\n{body}", "s2\n\nbody"]


def test_quoted_lines_lose_the_mark_that_kept_them_from_being_borders(tmp_path: Path) -> None:
    body = ">From here\n>>From there\n> From quoted\n>Fromage"
    events, _ = read_mbox(f"{ENVELOPE}\n{mail(1, body)}", tmp_path)
    assert texts(events) == ["s1\n\nFrom here\n>From there\n> From quoted\n>Fromage"]


def test_a_mailbox_in_a_mail_is_text_where_its_length_is_told(tmp_path: Path) -> None:
    inner = f"look:\n\n{ENVELOPE}\n{mail(9)}\n{ENVELOPE}\n{mail(8)}end"
    outer = mail(1, inner, f"Content-Length: {len(inner) + 1}")
    events, _ = read_mbox(f"{ENVELOPE}\n{outer}\n{ENVELOPE}\n{mail(2)}", tmp_path)
    assert texts(events) == [f"s1\n\n{inner}", "s2\n\nbody"]


@pytest.mark.parametrize("length", ["0", "3", "7", "99999", "9999999999", "x"])
def test_a_wrong_length_hides_no_mail(length: str, tmp_path: Path) -> None:
    first = mail(1, "body of it", f"Content-Length: {length}")
    events, _ = read_mbox(f"{ENVELOPE}\n{first}\n{ENVELOPE}\n{mail(2)}", tmp_path)
    assert [event["message_key"] for event in events] == ["email:1@x.test", "email:2@x.test"]


LINES = st.sampled_from(
    [
        "",
        "x",
        "From the start",
        ">From",
        "From a@b Wed Jul  1 10:00:00 2026",
        ">>From x",
        "周五",
        "Subject: no",
    ]
)


@given(st.lists(st.lists(LINES, max_size=8), min_size=1, max_size=4), st.integers(1, 90))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_another_library_writes_is_read_again(
    tmp_path: Path, bodies: list[list[str]], step: int
) -> None:
    """Whatever the size of the pieces in which the file is read."""
    path = tmp_path / "other.mbox"
    path.unlink(missing_ok=True)
    box = mailbox.mbox(path)
    for number, body in enumerate(bodies):
        kept = mailbox.mboxMessage(mail(number, "\n".join(body)).encode())
        kept.set_from("a@x.test Wed Jul  1 10:00:00 2026")
        box.add(kept)
    box.close()
    chunk, mailboxes.CHUNK_BYTES = mailboxes.CHUNK_BYTES, step
    try:
        with path.open("rb") as file:
            found = [raw for _, _, raw in _Mbox(file, lambda _count: None).mails() if raw is not None]
    finally:
        mailboxes.CHUNK_BYTES = chunk
    assert [raw.decode().partition("\n\n")[2].strip("\n") for raw in found] == [
        # What was quoted by its writer already cannot be told from what the mailbox quoted.
        "\n".join(line[1:] if line.startswith(">>From ") else line for line in body).strip("\n")
        for body in bodies
    ]


def test_the_same_mails_are_the_same_messages_in_every_kind_of_mailbox(tmp_path: Path) -> None:
    mails = [(SAMPLES / name).read_bytes() for name in ("legacy_014.eml", "legacy_023.eml", "rfc_000.eml")]
    mails.append(b"Date: 1 Jul 2026 10:00 +0800\nSubject: no id\n\nbody\n")
    (tmp_path / "all.mbox").write_bytes(b"".join(ENVELOPE.encode() + b"\n" + raw + b"\n\n" for raw in mails))
    for number, raw in enumerate(mails):
        for folder, name in (("single", f"{number}.eml"), ("Maildir/cur", f"{number}.host:2,S")):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_bytes(raw.replace(b"\r\n", b"\n"))
    lines: list[bytes] = []
    for form, path in (("mbox", "all.mbox"), ("eml", "single"), ("eml", "Maildir")):
        report = import_chats(form, [tmp_path / path], out=tmp_path / "out")
        assert report.messages == len(mails)
        lines += Path(report.files[0]).read_bytes().splitlines(keepends=True)
    plan = plan_events(lines)
    assert plan.quarantined == []
    assert plan.messages == len(mails)


def test_a_maildir_is_read_with_its_folders_and_without_what_is_being_delivered(tmp_path: Path) -> None:
    for number, place in enumerate(("cur", "new", "tmp", ".Sent/cur", ".Sent/new", "courierimapkeywords")):
        (tmp_path / "Maildir" / place).mkdir(parents=True)
        (tmp_path / "Maildir" / place / "1.x:2,S").write_text(mail(number))
    events, _ = read("eml", tmp_path / "Maildir", tmp_path / "out")
    assert sorted(texts(events)) == [f"s{number}\n\nbody" for number in (0, 1, 3, 4)]


def test_a_list_copy_and_the_direct_copy_are_one_mail_and_the_direct_one_stands(tmp_path: Path) -> None:
    direct = mail(1)
    copy = mail(1, "body\n-- \nfooter of the list", "List-Id: <l.x.test>").replace(
        "Subject: ", "Subject: [l] "
    )
    for order in ((direct, copy), (copy, direct)):
        events, report = read_mbox("".join(f"{ENVELOPE}\n{text}\n" for text in order), tmp_path)
        assert report.repaired == ()
        plan = plan_events([json.dumps(event).encode() + b"\n" for event in events])
        assert plan.quarantined == []
        assert plan.messages == 1
        standing = max(events, key=lambda event: event["revision"])
        assert standing["text"] == "s1\n\nbody"


FOOTERS = {
    "mailman": "_______________________________________________\n{0} mailing list -- {0}@x.test\n"
    "To unsubscribe send an email to {0}-leave@x.test\nhttps://x.test/lists/{0}",
    "google": '-- \nYou received this message because you are subscribed to the Google Groups "{0}" group.\n'
    "To unsubscribe from this group and stop receiving emails from it, send an email to {0}+x@x.test.\n"
    "To view this discussion visit https://groups.x.test/d/msgid/{0}/1.",
    "majordomo": '--\nTo unsubscribe from this list: send the line "unsubscribe {0}" in\n'
    "the body of a message to majordomo@x.test\nMore majordomo info at  http://x.test/majordomo-info.html",
}


def list_copy(name: str, footer: str, body: str = "body\n-- \nBob", subject: str = "Re: [{0}] s1") -> str:
    fields = f"List-Id: The {name} list <{name}.x.test>\nReceived: from {name}.x.test; 1 Jul 2026 10:00 +0800"
    text = mail(1, f"{body}\n{footer.format(name)}", fields)
    return text.replace("Subject: s1", f"Subject: {subject.format(name)}")


def planned(events: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - what the core tells
    return plan_events([json.dumps(event).encode() + b"\n" for event in events])


@pytest.mark.parametrize("second", FOOTERS)
@pytest.mark.parametrize("first", FOOTERS)
def test_copies_through_two_lists_are_one_mail_in_whatever_files(
    first: str, second: str, tmp_path: Path
) -> None:
    copies = [list_copy("dev", FOOTERS[first]), list_copy("users", FOOTERS[second])]
    found = []
    for text in copies:
        events, report = read_mbox(f"{ENVELOPE}\n{text}\n", tmp_path)
        assert report.repaired == ()
        found += events
    together, report = read_mbox("".join(f"{ENVELOPE}\n{text}\n" for text in copies), tmp_path)
    assert (texts(together), report.repaired) == (["Re: s1\n\nbody\n-- \nBob"] * 2, ())
    # What was taken off is kept beside the text.
    assert ["dev" in together[0]["source"]["list_footer"], "users" in together[1]["source"]["list_footer"]]
    for lines in (found, found[::-1], together):
        plan = planned(lines)
        assert (plan.quarantined, plan.messages) == ([], 1)


def test_of_copies_through_lists_with_footers_of_their_own_the_first_stands_and_the_other_is_listed(
    tmp_path: Path,
) -> None:
    copies = [list_copy("dev", "----\nFor staff."), list_copy("users", "====\nBe kind to {0}.")]
    events, report = read_mbox("".join(f"{ENVELOPE}\n{text}\n" for text in copies), tmp_path)
    assert texts(events) == ["Re: s1\n\nbody\n-- \nBob\n----\nFor staff."]
    assert [(note["reason"], "Be kind to users." in note["text"]) for note in report.repaired] == [
        ("a copy through another list: the first stands", True)
    ]


OTHERS = {
    "other words": list_copy("users", FOOTERS["mailman"], body="another\n-- \nBob"),
    "another author": list_copy("users", FOOTERS["mailman"]).replace("a@x.test", "b@x.test"),
    "another time": list_copy("users", FOOTERS["mailman"]).replace("10:00:00", "10:00:01"),
    "another subject": list_copy("users", FOOTERS["mailman"], subject="s2"),
    "a direct mail of another time": mail(1).replace("10:00:00", "10:00:01"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_mail_with_the_id_of_one_through_a_list_is_kept_and_listed(
    other: str, tmp_path: Path
) -> None:
    boxes = [list_copy("dev", FOOTERS["mailman"]), OTHERS[other]]
    events, report = read_mbox("".join(f"{ENVELOPE}\n{text}\n" for text in boxes), tmp_path)
    assert [note["reason"] for note in report.repaired] == [
        "another mail has the same Message-ID: both are kept"
    ]
    plan = planned(events)
    assert (plan.quarantined, plan.messages) == ([], 2)


@pytest.mark.parametrize(
    "end",
    [
        "____\nPlease hand the form to office@x.test before Friday at noon, all.\nunsubscribe: x@x.test",
        "-- \nBob, responsible for the mailing list\nThe exam begins on 3 July at nine.",
        "unsubscribe: x@x.test",
        "____\n" + "unsubscribe: x@x.test\n" * 40,
    ],
)
def test_words_of_a_person_are_never_taken_for_a_footer(end: str, tmp_path: Path) -> None:
    events, _ = read_mbox(f"{ENVELOPE}\n{list_copy('dev', end)}\n", tmp_path)
    assert events[0]["text"].endswith(end.strip())


def test_two_mails_with_one_id_are_both_kept_and_listed(tmp_path: Path) -> None:
    boxes = [mail(1), mail(1, "another"), mail(1), mail(2)]
    events, report = read_mbox("".join(f"{ENVELOPE}\n{text}\n" for text in boxes), tmp_path)
    keys = [event["message_key"] for event in events]
    assert keys[0] == keys[2] == "email:1@x.test"
    assert keys[1].startswith("email:1@x.test~")
    assert [note["reason"] for note in report.repaired] == [
        "another mail has the same Message-ID: both are kept"
    ]
    plan = plan_events([json.dumps(event).encode() + b"\n" for event in events])
    assert (plan.quarantined, plan.messages) == ([], 3)


def test_what_is_no_mail_or_has_no_time_is_listed_and_the_rest_read(tmp_path: Path) -> None:
    for name in ("malformed_004", "rfc_001", "rfc_008", "raw_gbk_header"):
        (tmp_path / f"{name}.eml").write_bytes((SAMPLES / f"{name}.eml").read_bytes())
    (tmp_path / "words.eml").write_text("these are only words\n")
    events, report = read("eml", tmp_path, tmp_path / "out")
    assert [event["message_key"] for event in events] == ["email:dup@x"]
    listed = {note["file"]: note["reason"] for note in report.not_understood}
    assert listed == {
        "malformed_004.eml": "a mail without any time",
        "rfc_001.eml": "a mail without any time",
        "rfc_008.eml": "a mail without any time",
        "words.eml": "no mail: it has no header fields",
    }


def test_a_mail_without_a_date_has_the_time_of_its_envelope(tmp_path: Path) -> None:
    events, report = read_mbox(f"{ENVELOPE}\nSubject: s\n\nbody\n", tmp_path)
    assert [event["sent_at"] for event in events] == [1782900000]
    assert [note["reason"] for note in report.repaired] == ["no readable date: the time of arrival"]


THUNDERBIRD = "From \r\nX-Mozilla-Status: 0001\r\n"


def test_an_mbox_of_thunderbird_whose_borders_say_nothing(tmp_path: Path) -> None:
    body = "above\r\n\r\n>From here\r\n\r\nFrom \r\nno field\r\nfrom: below"
    (tmp_path / "Inbox").write_bytes(
        "".join(f"{THUNDERBIRD}{mail(number, body)}\r\n" for number in (1, 2)).encode()
    )
    events, report = read("mbox", tmp_path / "Inbox", tmp_path / "out")
    assert texts(events) == [f"s{number}\n\n{body}".replace("\r", "").replace(">F", "F") for number in (1, 2)]
    assert (report.repaired, report.not_understood) == ((), ())
    assert [form for form in FORMATS if FORMATS[form].recognizes(tmp_path / "Inbox")] == ["mbox"]


@pytest.mark.parametrize(
    ("labels", "unwanted"),
    [
        ("Inbox,Opened,Spam reports", None),
        ("Archived,Spam", "spam"),
        ("=?UTF-8?Q?=E5=9E=83=E5=9C=BE=E9=82=AE=E4=BB=B6,=E5=B7=B2=E6=89=93=E5=BC=80?=", "垃圾邮件"),
        ("Important,\n =?UTF-8?Q?Entw=C3=BCrfe?=", "entwürfe"),
    ],
)
def test_spam_trash_and_drafts_of_gmail_are_left_out_and_listed(
    labels: str, unwanted: str | None, tmp_path: Path
) -> None:
    boxes = [mail(1, "x", f"X-Gmail-Labels: {labels}"), mail(2)]
    events, report = read_mbox("".join(f"{ENVELOPE}\n{text}\n" for text in boxes), tmp_path)
    assert len(events) == 2 - (unwanted is not None)
    reasons = [note["reason"] for note in report.repaired]
    assert reasons == ([f"labelled '{unwanted}' in Gmail: left out"] if unwanted else [])


def test_the_own_data_of_a_mailbox_are_no_mail(tmp_path: Path) -> None:
    internal = mail(1).replace("Subject: s1", "Subject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA")
    events, report = read_mbox(f"{ENVELOPE}\n{internal}\n{ENVELOPE}\n{mail(2)}\n", tmp_path)
    assert texts(events) == ["s2\n\nbody"]
    assert [note["reason"] for note in report.repaired] == ["the mailbox's own data, no mail: left out"]


def test_the_addresses_of_a_list_s_archive_are_addresses(tmp_path: Path) -> None:
    text = mail(1).replace("From: a@x.test", "From: bob at x.test (Bob at work)")
    events, _ = read_mbox(f"From bob at x.test  Wed Jul  1 10:00:00 2026\n{text}\n", tmp_path)
    assert (events[0]["sender"]["id"], events[0]["sender"]["name"]) == ("bob@x.test", "Bob at work")


def test_mails_deleted_in_thunderbird_are_left_out_and_listed(tmp_path: Path) -> None:
    boxes = [mail(1, "x", "X-Mozilla-Status: 0009"), mail(2, "x", "X-Mozilla-Status: 0001")]
    events, report = read_mbox("".join(f"{ENVELOPE}\n{text}\n" for text in boxes), tmp_path)
    assert texts(events) == ["s2\n\nx"]
    assert [note["reason"] for note in report.repaired] == ["deleted in Thunderbird: left out"]


def test_a_folder_of_mailboxes_gives_a_batch_each(tmp_path: Path) -> None:
    (tmp_path / "Mail/Inbox.sbd").mkdir(parents=True)
    (tmp_path / "Mail/Inbox").write_text(f"{ENVELOPE}\n{mail(1)}")
    (tmp_path / "Mail/Inbox.sbd/Old").write_text(f"{ENVELOPE}\n{mail(2)}")
    (tmp_path / "Mail/Inbox.msf").write_text("// <!-- <mdb:mork:z v='1.4'/> -->")
    events, report = read("mbox", tmp_path / "Mail", tmp_path / "out")
    assert len(report.files) == 2
    assert sorted(texts(events)) == ["s1\n\nbody", "s2\n\nbody"]


@pytest.mark.parametrize("content", ["", "From here to there\n", "Subject: x\n\nbody\n", f"{ENVELOPE}\n"])
def test_what_is_no_mbox_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(content)
    with pytest.raises(ConfigError, match="no mbox"):
        import_chats("mbox", [tmp_path / "x"], out=tmp_path / "out")


def test_attachments_lie_beside_the_batches_where_the_archive_root_reaches_them(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes((SAMPLES / "legacy_000.eml").read_bytes())
    events, report = read("eml", tmp_path / "a.eml", tmp_path / "data/import", archive_root=tmp_path / "data")
    (file,) = events[0]["attachments"]
    assert file["path"].startswith("import/mail-attachments/63/63aa8249")
    assert (tmp_path / "data" / file["path"]).read_bytes().startswith(b"\x89PNG")
    assert (report.attachments_present, report.attachments_missing) == (1, 0)
    _, without = read("eml", tmp_path / "a.eml", tmp_path / "out")
    assert (without.attachments_present, without.attachments_missing) == (0, 1)


def test_a_mail_that_is_too_large_costs_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailboxes, "MAX_MAIL_BYTES", 1 << 20)
    monkeypatch.setattr(mailboxes, "CHUNK_BYTES", 1 << 16)
    large = mail(2, "x" * 78 + "\n" + ("y" * 78 + "\n") * 40_000)
    boxes = f"{ENVELOPE}\n{mail(1)}\n{ENVELOPE}\n{large}\n{ENVELOPE}\n{mail(3)}"
    events, report = read_mbox(boxes, tmp_path)
    assert texts(events) == ["s1\n\nbody", "s3\n\nbody"]
    assert [(note["line"], note["reason"]) for note in report.not_understood] == [(9, "a mail over 1 MiB")]
    assert events[1]["source"]["line"] == boxes[: boxes.rindex(ENVELOPE)].count("\n") + 1


def test_a_long_mailbox_needs_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.mbox"
        with path.open("w") as file:
            file.writelines(f"{ENVELOPE}\n{mail(number, 'x' * 4000)}\n" for number in range(count))
        tracemalloc.start()
        import_chats("mbox", [path], out=tmp_path / "out")
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    assert peak(900) < peak(300) + (1 << 20)


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_mailbox_is_read_in_part_and_never_breaks_the_import(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311 - damage, no secrets
    names = sorted(SAMPLES.glob("*.eml"))
    damaged = bytearray(b"".join(ENVELOPE.encode() + b"\n" + path.read_bytes() + b"\n\n" for path in names))
    for _ in range(chance.randint(1, 40)):
        place = chance.randrange(40, len(damaged))
        filler = chance.choice([b"", b"\n\n", b"--1", b"\xff", b"=?", b"\x00", b"From ", b"boundary=", b'"'])
        damaged[place : place + chance.randint(0, 12)] = filler
    path = tmp_path / "damaged.mbox"
    path.write_bytes(damaged)
    lines = []
    report = import_chats("mbox", [path], out=tmp_path / "out", archive_root=tmp_path)
    for file in report.files:
        lines += Path(file).read_bytes().splitlines(keepends=True)
    assert plan_events(lines).counts["accepted"] == len(lines) == report.messages


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.eml")))
def test_a_mail_is_known_as_eml_and_with_an_envelope_as_mbox(name: str, tmp_path: Path) -> None:
    raw = (SAMPLES / name).read_bytes()
    (tmp_path / "a").write_bytes(raw)
    (tmp_path / "b").write_bytes(ENVELOPE.encode() + b"\n" + raw)
    known = [[form.name for form in FORMATS.values() if form.recognizes(tmp_path / place)] for place in "ab"]
    assert known == [["eml"], ["mbox"]]
