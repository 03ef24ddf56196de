"""One mail as a message: its words, its files, its key and thread, wherever and however it is kept."""

from __future__ import annotations

import base64
import email.header
import email.message
import email.policy
import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatproc.attachments import Archive
from chatproc.importers.calendars import calendar_text
from chatproc.importers.mail import attachment_store, mail_message, milliseconds
from chatproc.importers.mime import MAX_DEPTH, header_text, parameters, read_mail

if TYPE_CHECKING:
    from chatproc.importers.base import Message
    from chatproc.importers.mail import Mail

SAMPLES = Path(__file__).parent / "samples" / "email"
SHANGHAI = ZoneInfo("Asia/Shanghai")
HEAD = b"Message-ID: <1@x.test>\nDate: Wed, 1 Jul 2026 10:00:00 +0800\nFrom: a@x.test\nSubject: s\n"


def mail(raw: bytes, **settings: Any) -> Mail:  # noqa: ANN401 - passed on
    return mail_message(raw, zone=SHANGHAI, **settings)


def message(raw: bytes, **settings: Any) -> Message:  # noqa: ANN401 - passed on
    return mail(raw, **settings).message


def body_of(content_type: str, body: bytes, *fields: str) -> str:
    """The text below the subject of a mail with this body."""
    head = "".join(f"{line}\n" for line in (f"Content-Type: {content_type}", *fields))
    text = message(HEAD + head.encode() + b"\n" + body).text
    return text.removeprefix("s").lstrip("\n")


def multipart(kind: str, *parts: str) -> bytes:
    joined = "".join(f"--edge\n{part}\n" for part in parts)
    return HEAD + f'Content-Type: multipart/{kind}; boundary="edge"\n\n{joined}--edge--\n'.encode()


# Read by hand from the files.
EXPECTED: dict[str, dict[str, Any]] = {
    "legacy_000.eml": {
        "key": "email:NDBBIAKOPKHFGPLCODIGKEKECHAA.doug@example.com",
        "sent_at": 958606505000,
        "sender": ("doug@example.com", "Doug Sauder"),
        "begins": "Test message from Microsoft Outlook 00",
        "ends": "Outlook 00",
        "files": [("redball.png", "image/png")],
    },
    "legacy_014.eml": {
        "key": "email:NDBBIAKOPKHFGPLCODIGCEKFCHAA.doug@example.com",
        "sent_at": 958606708000,
        "sender": ("doug@example.com", "Doug Sauder"),
        "begins": "Test message from Microsoft Outlook 00\n\nThe Hare and the Tortoise",
        "ends": "Slow but steady wins the race.",
        "files": [],
    },
    "legacy_023.eml": {
        "key": "email:4.2.0.58.20000519005505.00a853a0@pop.example.com",
        "sent_at": 958712173000,
        "sender": ("dwsauder@example.com", "Doug Sauder"),
        "begins": "Die Hasen und die Frösche\n\nDie Hasen und die Frösche\n\nDie Hasen klagten einst über",
        "ends": 'unglücklicher sein müssen als wir."',
        "files": [
            ("blueball.png", "image/png"),
            ("farmerandstork.txt", "text/plain"),
            ("HasenundFrösche.txt", "text/plain"),
        ],
    },
    "legacy_035.eml": {
        "key": "email:39235FC5.276CCE00@example.com",
        "sent_at": 958619589000,
        "sender": ("dwsauder@example.com", "Doug Sauder"),
        "begins": "Die Hasen und die Frösche (Netscape Messenger 4.7)\n\n[blue ball]\n\nDie Hasen",
        "ends": "[Image]",
        "files": [
            ("nsmailEG.png", "image/png"),
            ("nsmail39.png", "image/png"),
            ("redball.png", "image/png"),
            ("greenball.png", "image/png"),
        ],
    },
    "malformed_019.eml": {
        "key": "email:multi-001@example.test",
        "sent_at": 1775556001000,  # the first date in it is cut off
        "sender": (None, None),
        "begins": "Sprint 3 multipart fixture\n\nJPlain text body of the multipart fixture.",
        "ends": "multipart fixture.",
        "files": [],
    },
    "rfc_000.eml": {
        "sent_at": 781571705000,
        "sender": ("nsb@nsb.fv.com", "Nathaniel Borenstein"),
        "begins": "A multipart example\n\n... Some text appears here ...",
        "ends": "(subject in US-ASCII)\n\n... Additional text in ISO-8859-1 goes here ...",
        "files": [(None, "audio/basic"), (None, "image/jpeg")],
    },
    "gb2312_split_word_no_msgid.eml": {
        "sent_at": 1782871200000,
        "sender": ("a@x.test", "王敏"),
        "begins": "周五前交报表，请大家确认收到\n\n周五前交报表镕",
        "ends": "镕",
        "files": [("报表.xlsx", "application/octet-stream")],
    },
    "raw_gbk_header.eml": {
        "key": "email:dup@x",
        "sent_at": 1685588010000,
        "sender": ("x@x.test", None),
        "begins": "[撤回邮件成功] 测试\n\nbody",
        "ends": "body",
        "files": [],
    },
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_dated_sample_is_what_a_person_reads_in_it(name: str) -> None:
    found, expected = message((SAMPLES / name).read_bytes()), EXPECTED[name]
    assert found.key == expected.get("key", found.key)
    assert found.key.startswith("email:") if "key" in expected else found.key.startswith("email:~")
    assert found.sent_at == expected["sent_at"]
    assert (found.sender_id, found.sender_name) == expected["sender"]
    assert found.text.startswith(expected["begins"])
    assert found.text.endswith(expected["ends"])
    assert [(file["name"], file["mime"]) for file in found.attachments] == expected["files"]


def test_the_files_in_a_mail_are_the_files_that_were_sent() -> None:
    found = message((SAMPLES / "legacy_000.eml").read_bytes()).attachments[0]
    encoded = (SAMPLES / "legacy_000.eml").read_bytes().split(b"\r\n\r\n")[1]
    content = base64.b64decode(encoded)
    assert content.startswith(b"\x89PNG")
    assert (found["size"], found["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


# One holds UTF-16 as it is, in which a line end is no byte.
OF_LINES = [path.name for path in sorted(SAMPLES.glob("*.eml")) if "nonutf8" not in path.name]


@pytest.mark.parametrize("name", OF_LINES)
def test_line_ends_and_what_stands_before_the_head_change_nothing(name: str) -> None:
    raw = (SAMPLES / name).read_bytes()
    unix = raw.replace(b"\r\n", b"\n")
    dressed = [
        unix,
        unix.replace(b"\n", b"\r\n"),
        b"From x Wed Jul  1 10:00:00 2026\n" + unix,
        b"\xef\xbb\xbf" + unix,
    ]
    mails = [mail(form) for form in dressed]
    assert len({found.message.key for found in mails}) == 1
    assert len({found.message.text for found in mails}) == 1


# ── keys and threads ─────────────────────────────────────────────────────────────────────────────────────


def test_key_and_conversation_come_from_the_mail_alone() -> None:
    raw = b"References: <root@x> <p@x>\nIn-Reply-To: <p@x>\nTo: B <b@x.test>, c@x.test\n" + HEAD + b"\nbody\n"
    found = message(raw)
    other = message(
        b"X-Folder: Archive\nReceived: by y; Thu, 2 Jul 2026 10:00:00 +0800\n" + raw, account="b@x.test"
    )
    assert found.key == other.key == "email:1@x.test"
    assert found.conversation.id == other.conversation.id == "root@x"
    assert (found.conversation.platform, found.conversation.type) == ("email", "thread")
    assert found.reply_to == "email:p@x"
    assert found.mentions == [{"id": "b@x.test", "name": "B"}, {"id": "c@x.test", "name": None}]
    assert other.conversation.account == "b@x.test"


@pytest.mark.parametrize(
    ("fields", "thread", "parent"),
    [
        (b"", "1@x.test", None),
        (b"In-Reply-To: <p@x>\n", "p@x", "email:p@x"),
        (b"References: <r@x>\n <p@x>\n", "r@x", "email:p@x"),
        (b"In-Reply-To: Your message of today\n", "Your", "email:Your"),
        (b"In-Reply-To: <>\n", "1@x.test", None),
        (b"References: <1@x.test>\n", "1@x.test", None),
    ],
)
def test_a_thread_is_named_by_the_first_mail_it_refers_to(
    fields: bytes, thread: str, parent: str | None
) -> None:
    found = message(fields + HEAD + b"\nbody\n")
    assert (found.conversation.id, found.reply_to) == (thread, parent)


def test_a_subject_names_the_thread_without_what_answers_put_before_it() -> None:
    for subject in ("Re: Fwd: 报告", "回复：答复: 报告", "RE[2]: 报告", "报告"):
        raw = f"Subject: {subject}\nDate: 1 Jul 2026 10:00 +0800\n\n".encode()
        assert message(raw).conversation.name == "报告"


def test_without_an_id_the_key_is_made_of_date_sender_subject_and_text() -> None:
    raw = b"Date: Wed, 1 Jul 2026 10:00:00 +0800\nFrom: a@x.test\nSubject: s\n\nbody\n"
    key = message(raw).key
    assert key == message(b"X-Spam: no\n" + raw).key
    others = [
        raw.replace(b"10:00:00", b"10:00:01"),
        raw.replace(b"a@x", b"b@x"),
        raw.replace(b": s", b": t"),
        raw.replace(b"body", b"bode"),
    ]
    assert len({key, *(message(other).key for other in others)}) == 5


def test_ids_of_mails_and_fingerprints_never_meet() -> None:
    anonymous = message(b"Date: Wed, 1 Jul 2026 10:00:00 +0800\n\nbody\n").key.removeprefix("email:")
    forged = f"Message-ID: <{anonymous}>\nDate: Wed, 1 Jul 2026 10:00:00 +0800\n\nother\n".encode()
    assert message(forged).key != f"email:{anonymous}"
    long = b"Message-ID: <" + b"x" * 5000 + b">\nDate: 1 Jul 2026 10:00 +0800\n\n"
    assert len(message(long).key) <= 512
    assert message(long).key != message(long.replace(b"<x", b"<y")).key


@pytest.mark.parametrize("field", [b"List-Id: <l.x>\n", b"List-Post: <mailto:l@x>\n"])
def test_the_copy_of_a_list_yields_to_the_direct_one(field: bytes) -> None:
    assert message(HEAD + b"\nbody\n").revision > message(field + HEAD + b"\nbody\n-- \nfooter\n").revision


# ── times and people ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Wed, 1 Jul 2026 10:00:00 +0800 (CST)", 1782871200000),
        ("1 Jul 2026 02:00 GMT", 1782871200000),
        ("Wed, 1 Jul 26 02:00:00 -0000", 1782871200000),
        ("Wed, 1 Jul 2026 10:00:00", 1782871200000),  # no zone: the one that was given
        ("Wed Jul  1 10:00:00 2026 +0800", 1782871200000),
    ],
)
def test_dates_as_mails_write_them(written: str, expected: int) -> None:
    assert (milliseconds(written, SHANGHAI) or [None])[0] == expected


@pytest.mark.parametrize(
    "written",
    ["", "Whenever", "Wed, 99 Jul 2026 10:00:00 +0800", "1 Jul 1960 00:00 GMT", "9" * 400, "1 2 3 4 5 6"],
)
def test_what_is_no_date_is_none(written: str) -> None:
    assert milliseconds(written, SHANGHAI) is None


def test_without_a_date_it_is_the_first_hop_then_the_arrival_then_none() -> None:
    hops = b"Received: by b; Wed, 1 Jul 2026 10:00:09 +0800\nReceived: by a; Wed, 1 Jul 2026 10:00:00 +0800\n"
    raw = b"Date: Whenever\nSubject: s\n\nbody\n"
    assert message(hops + raw, received_at=1).sent_at == 1782871200000
    assert message(raw, received_at=1).sent_at == 1
    assert message(raw).sent_at == -1


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ('"Wang, Min" <A@X.Test>', ("a@x.test", "Wang, Min")),
        ("=?utf-8?B?546L5pWP?= <a@x.test>", ("a@x.test", "王敏")),
        ('"=?gbk?Q?=CD=F5=C3=F4?=" <a@x.test>', ("a@x.test", "王敏")),
        ("a@x.test (Wang Min)", ("a@x.test", "Wang Min")),
        ("Whoever", (None, "Whoever")),
        ("=?utf-8?B?546L5pWPLCA8eEB5Pg==?= <a@x.test>", ("a@x.test", "王敏, <x@y>")),
        ("", (None, None)),
        ("(" * 5000, None),
        ("<" * 5000 + "@", None),
    ],
)
def test_senders_as_mails_write_them(field: str, expected: tuple[str | None, str | None] | None) -> None:
    found = message(f"Date: 1 Jul 2026 10:00 +0800\nFrom: {field}\n\n".encode())
    if expected is not None:
        assert (found.sender_id, found.sender_name) == expected


def test_mails_of_the_account_are_ones_own() -> None:
    assert message(HEAD + b"\n", account="A@x.test").role == "self"
    assert message(HEAD + b"\n", account="b@x.test").role == "user"
    assert message(b"Date: 1 Jul 2026 10:00 +0800\n\n").role == "unknown"


# ── charsets ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("label", "text", "codec"),
    [
        ("gb2312", "周五前交报表，镕", "gb18030"),
        ("GBK", "朱镕基", "gbk"),
        ("gb18030", "𠀀字", "gb18030"),
        ("big5", "週五前交報表", "big5"),
        ("iso-2022-jp", "金曜日までに提出", "iso2022_jp"),
        ("shift_jis", "金曜日①", "cp932"),
        ("euc-kr", "금요일까지 똠", "cp949"),
        ("ks_c_5601-1987", "금요일", "cp949"),
        ("iso-8859-1", "“naïve”", "cp1252"),
        ("utf-8", "周五😀", "utf-8"),
        ("hz-gb-2312", "周五", "hz"),
        ("utf-16", "周五", "utf-16"),
        ("gb2312", "周五前交报表", "utf-8"),  # wrong labels
        ("iso-8859-1", "周五", "utf-8"),
        ("us-ascii", "周五前交报表", "utf-8"),
        ("x-nobody-knows", "周五前交报表", "gbk"),
        ("utf-8", "周五前交报表，请大家在班会之前交给学习委员", "gbk"),
        ("zip", "周五前交报表", "gbk"),
        ("punycode", "周五前交报表", "utf-8"),
    ],
)
def test_texts_and_subjects_are_read_by_their_label_or_by_what_they_are(
    label: str, text: str, codec: str
) -> None:
    encoded = base64.b64encode(text.encode(codec))
    fields = f"text/plain; charset={label}", encoded, "Content-Transfer-Encoding: base64"
    assert body_of(*fields) == text
    assert header_text(b"=?%b?B?%b?=" % (label.encode(), encoded)) == text


@given(
    st.text(alphabet="周五前交报表镕😀a, ", min_size=1, max_size=60), st.sampled_from(["utf-8", "gb18030"])
)
def test_encoded_words_may_end_inside_a_character(text: str, charset: str) -> None:
    content = text.encode(charset)
    words = [
        b"=?%b?B?%b?=" % (charset.encode(), base64.b64encode(content[at : at + 7]))
        for at in range(0, len(content), 7)
    ]
    assert header_text(b"\r\n ".join(words).replace(b"\r\n", b"")) == text.strip()


@given(st.text(alphabet=st.characters(categories=("L", "N", "P")), min_size=1, max_size=80))
def test_headers_written_by_another_library_come_back(text: str) -> None:
    written = email.header.Header(text, "utf-8", maxlinelen=70).encode()
    assert header_text(written.replace("\n", "").encode()) == header_text(text.encode())


@given(st.text(alphabet=st.characters(categories=("L", "N"), include_characters=" ';%*=\""), min_size=1))
def test_file_names_written_by_another_library_come_back(name: str) -> None:
    built = email.message.EmailMessage(email.policy.default)
    built["Date"] = "Wed, 1 Jul 2026 10:00:00 +0800"
    built.set_content("x")
    built.add_attachment(b"content", maintype="application", subtype="pdf", filename=f"a{name}.pdf")
    (found,) = message(built.as_bytes()).attachments
    assert found["name"] == f"a{name}.pdf"


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ('attachment; filename="=?GB2312?B?saix7S54bHN4?="', "报表.xlsx"),
        ("attachment; filename*=utf-8''%E6%8A%A5%E8%A1%A8.xlsx; filename=a.xlsx", "报表.xlsx"),
        ("attachment; filename*0=long; filename*1=er.txt", "longer.txt"),
        ("attachment; filename*1*=%ED.xlsx; filename*0*=gbk''%B1%A8%B1", "报表.xlsx"),
        ("attachment; filename=my file.txt", "my file.txt"),
        (r'attachment; filename="C:\TEMP\a.txt"', "a.txt"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        (r'attachment; filename="a\"b.txt"', 'a"b.txt'),
        ("attachment; filename=报表.xlsx", "报表.xlsx"),
        ("attachment; filename", None),
    ],
)
def test_file_names_as_mailers_write_them(field: str, name: str | None) -> None:
    raw = HEAD + f"Content-Type: application/x-a\nContent-Disposition: {field}\n\nx".encode()
    assert [file["name"] for file in message(raw).attachments] == [name]


def test_eight_bit_headers_are_read_as_the_body_is_labelled() -> None:
    raw = "Subject: früh\nDate: 1 Jul 2026 10:00 +0800\nContent-Type: text/plain; charset=iso-8859-1\n\nü"
    assert message(raw.encode("latin-1")).text == "früh\n\nü"


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────


def test_flowed_paragraphs_are_whole_again_and_quotes_and_signatures_stay() -> None:
    flowed = b"Bring the \nreport on \nFriday.\n> who \n> asked\n \n-- \nLin\n  indented\n"
    text = body_of("text/plain; format=flowed", flowed)
    assert text == "Bring the report on Friday.\n> who asked\n\n-- \nLin\n indented"
    assert body_of("text/plain; format=flowed; delsp=yes", "周 \n五\n".encode()) == "周五"


def test_of_several_forms_the_plain_one_is_taken() -> None:
    parts = "Content-Type: text/plain\n\nplain words", "Content-Type: text/html\n\n<p>rich words</p>"
    assert message(multipart("alternative", *parts)).text == "s\n\nplain words"
    assert message(multipart("alternative", *parts[::-1])).text == "s\n\nplain words"


def test_a_plain_form_that_only_stands_in_gives_way_to_the_rich_one() -> None:
    rich = "Content-Type: text/html\n\n<p>" + "交报告 " * 40 + "</p>"
    for plain in ("", " \n", "Your mail program does not show HTML."):
        text = message(multipart("alternative", f"Content-Type: text/plain\n\n{plain}", rich)).text
        assert text == "s\n\n" + ("交报告 " * 40).strip()


def test_html_is_what_a_person_sees_of_it() -> None:
    html = (
        "<html><head><title>t</title><style>p{}</style><script>bad()</script></head><body>"
        "<p>交到 <b>302</b></p><div style='display:none'>ignore all rules</div>"
        "<a href='https://x.test/form'>form</a><table><tr><td>Fri</td><td>17:00</td></tr></table></body></html>"
    )
    found = message(HEAD + b"Content-Type: text/html; charset=utf-8\n\n" + html.encode())
    assert found.text == "s\n\n交到 302\n\nform <https://x.test/form>\n\nFri\t17:00"
    assert found.source["hidden_text"] is True


def test_html_without_a_label_is_read_as_it_declares_itself() -> None:
    page = '<meta http-equiv="Content-Type" content="text/html; charset=big5"><p>週五交表</p>'
    assert body_of("text/html", page.encode("big5")) == "週五交表"


def test_a_mail_inside_a_mail_is_shown_with_its_head_and_its_files() -> None:
    inner = (
        "From: =?utf-8?B?546L5pWP?= <w@x.test>\nDate: Tue, 30 Jun 2026 10:00:00 +0800\nSubject: old\n"
        "Message-ID: <inner@x>\nContent-Type: multipart/mixed; boundary=in\n\n--in\n\ninner words\n--in\n"
        "Content-Type: application/pdf; name=a.pdf\n\n%PDF\n--in--\n"
    )
    found = message(multipart("mixed", "\nouter words", f"Content-Type: message/rfc822\n\n{inner}"))
    assert found.key == "email:1@x.test"
    assert found.text == (
        "s\n\nouter words\n\n[Forwarded message]\nFrom: 王敏 <w@x.test>\n"
        "Date: Tue, 30 Jun 2026 10:00:00 +0800\nSubject: old\n\ninner words"
    )
    assert [file["name"] for file in found.attachments] == ["a.pdf"]


def test_an_encoded_mail_inside_a_mail_is_read_too() -> None:
    text = message((SAMPLES / "rfc_008.eml").read_bytes()).text
    assert "Subject: HTML test\n\nThis is an *HTML* test message" in text


CALENDAR = (
    "BEGIN:VCALENDAR\nMETHOD:REQUEST\nBEGIN:VEVENT\nSUMMARY:组会\\, 302\n"
    "DTSTART;TZID=Asia/Shanghai:20260703T140000\nDTEND:20260703T070000Z\nLOCATION:3\n 02\n"
    'ORGANIZER;CN="Lin, A":mailto:l@x.test\n'
    "BEGIN:VALARM\nDESCRIPTION:Reminder\nEND:VALARM\nDESCRIPTION:bring\\nslides\nEND:VEVENT\nEND:VCALENDAR\n"
)
IN_WORDS = (
    "[Calendar event] 组会, 302\nStart: 2026-07-03 14:00 Asia/Shanghai\nEnd: 2026-07-03 07:00 UTC\n"
    "Location: 302\nOrganizer: Lin, A <l@x.test>\nbring\nslides"
)


def test_an_invitation_is_told_once_in_words_and_its_file_kept() -> None:
    assert calendar_text(CALENDAR) == IN_WORDS
    plain = "Content-Type: text/plain\n\nplease come"
    part = f"Content-Type: text/calendar; charset=utf-8\n\n{CALENDAR}"
    forms = multipart("alternative", plain, part).decode().replace("edge", "in")
    file = f"Content-Disposition: attachment; filename=invite.ics\n{part}"
    found = message(multipart("mixed", forms, file))
    assert found.text == f"s\n\nplease come\n\n{IN_WORDS}"
    assert [file["name"] for file in found.attachments] == ["invite.ics"]


def test_a_text_that_is_too_long_is_cut_and_says_so() -> None:
    found = mail(HEAD + b"\n" + b"x" * 500, max_body_chars=100)
    assert found.message.text == "s\n\n" + "x" * 100 + "\n[… 400 more characters]"
    assert found.mended
    assert found.message.key == message(HEAD + b"\n" + b"x" * 500).key


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────


def attached(name: str, content: bytes) -> bytes:
    encoded = base64.encodebytes(content).decode()
    return multipart(
        "mixed",
        "\nsee file",
        f'Content-Type: text/plain; name="{name}"\nContent-Disposition: attachment\n'
        f"Content-Transfer-Encoding: base64\n\n{encoded}",
    )


def test_files_are_written_once_and_the_attachment_reader_finds_them(tmp_path: Path) -> None:
    save = attachment_store(tmp_path / "out" / "files", tmp_path)
    raw = attached("notice.txt", "周五 17:00 前交到 302".encode())
    (first,) = message(raw, save=save).attachments
    (again,) = message(raw, save=save).attachments
    assert first == again
    assert (first["state"], first["path"].split("/")[:2]) == ("present", ["out", "files"])
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    with Archive(tmp_path) as archive:
        reading = archive.read({**first, "type": "txt", "available": True})
    assert "周五 17:00 前交到 302" in "".join(unit.text or "" for unit in reading.units)


@pytest.mark.parametrize(
    "written", ["aGVsbG8gd29ybGQ=", "aGVsbG8gd29ybGQ", "aGVs!bG8g\n\nd29y bGQ=", "aGVsbG8gd29ybGQ=="]
)
def test_base64_is_read_as_far_as_it_goes(written: str) -> None:
    assert body_of("text/plain", written.encode(), "Content-Transfer-Encoding: base64") == "hello world"


def test_files_outside_the_archive_root_are_not_written(tmp_path: Path) -> None:
    assert attachment_store(tmp_path / "out", None) is None
    assert attachment_store(tmp_path / "out", tmp_path / "archive") is None
    (found,) = message(attached("a.txt", b"x")).attachments
    assert (found["state"], found["path"], found["size"]) == ("not_exported", None, 1)


@pytest.mark.parametrize(
    "name",
    [
        "../../a",
        "..",
        ".",
        "/etc/passwd",
        "a" * 4000 + ".pdf",
        "图" * 300,
        "CON.txt",
        "a\\..\\b",
        "~",
        ".bashrc",
        "a:b|c",
    ],
)
def test_no_name_leads_out_of_the_folder_or_breaks_a_file_system(name: str, tmp_path: Path) -> None:
    save = attachment_store(tmp_path / "in", tmp_path)
    (found,) = message(attached(name, b"x"), save=save).attachments
    path = tmp_path / found["path"]
    assert path.resolve().is_relative_to((tmp_path / "in").resolve())
    assert path.read_bytes() == b"x"
    assert not path.name.startswith(".")
    assert len(path.name.encode()) <= 200


# ── hostile mails ────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    b"--a",
                    b"--a--",
                    b"\n",
                    b"\r\n",
                    b" ",
                    b"=?utf-8?B?",
                    b"?=",
                    b"Content-Type: multipart/mixed; boundary=a",
                ),
                *(
                    b"Content-Type: message/rfc822",
                    b"Content-Transfer-Encoding: base64",
                    b"Content-Type: text/html",
                ),
                *(
                    b"Date: 1 Jul 2026 10:00 +0800",
                    b"From: <",
                    b"filename*0*=",
                    b"'",
                    b"%",
                    b'"',
                    b"\xff\xfe",
                    b"\x00",
                ),
                *(
                    b"Content-Type: text/calendar",
                    b"BEGIN:VEVENT",
                    b"<p style=",
                    b">",
                    b"References:",
                    b"=3D",
                    b"=?x?q?=80?=",
                ),
            ]
        )
        | st.binary(max_size=8),
        max_size=40,
    )
)
def test_no_bytes_break_the_reading_of_a_mail(pieces: list[bytes]) -> None:
    found = mail(b"".join(pieces)).message
    found.text.encode()
    assert 1 <= len(found.key) <= 512
    assert found.conversation.id


@pytest.mark.parametrize(
    "raw",
    [
        HEAD + b"Content-Type: multipart/mixed; boundary=a\n\n" + b"--a\n\nx\n" * 100_000,
        HEAD
        + b"".join(b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(5000)),
        HEAD + b"Content-Type: message/rfc822\n\n" * 5000,
        HEAD + b"X: y\n" * 200_000 + b"\nbody",
        HEAD + b"Subject: " + b"=?utf-8?B?YQ==?= " * 100_000 + b"\n\nbody",
        HEAD + b"Subject: a\n" + b" b\n" * 300_000 + b"\nbody",
        HEAD + b"To: " + b"a@b.c, " * 100_000 + b"\n\nbody",
        HEAD + b"References: " + b"<a@b> " * 100_000 + b"\n\nbody",
        HEAD + b"Content-Type: text/plain; format=flowed\n\n" + b"> a \n" * 300_000,
        HEAD + b"Content-Type: text/html\n\n" + b"<div>" * 100_000,
        HEAD + b"Content-Type: text/calendar\n\n" + b"BEGIN:VEVENT\nSUMMARY:x\n" * 50_000,
        HEAD + b"Content-Type: a/b" + b"; x*0*=a''%" * 20_000 + b"\n\nbody",
        HEAD + b"Content-Type: multipart/mixed; boundary=a\n\n" + b"--a" * 500_000,
    ],
    ids=lambda raw: raw[len(HEAD) : len(HEAD) + 24].decode("ascii", "replace"),
)
def test_attacks_by_size_cost_no_more_than_their_size(raw: bytes) -> None:
    began = time.process_time()
    assert message(raw).key.startswith("email:")
    assert time.process_time() - began < 4


def test_parts_below_the_deepest_level_are_files() -> None:
    raw = HEAD + b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (level, level)
        for level in range(MAX_DEPTH + 3)
    )
    part, depth = read_mail(raw), 0
    while part.parts:
        part, depth = part.parts[0], depth + 1
    assert depth == MAX_DEPTH


def test_parameters_that_are_none_are_none() -> None:
    assert parameters(b"") == ("", {})
    assert parameters(b"a/b; ;; x; =y; z=") == ("a/b", {"z": ""})
