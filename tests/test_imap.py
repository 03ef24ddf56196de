"""Mail folders of a real Dovecot: every mail once, nothing marked, whatever server, wire and budget do."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections import Counter
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from chatproc.config import ImapConnection, load_config
from chatproc.connectors.imap import TOOLKIT
from chatproc.errors import ConfigError
from chatproc.importers.mail import MAX_BODY_CHARS, mail_message
from tests import dovecot
from tests.dovecot import PASSWORD, START, Cut, Dovecot, mail
from tests.pulls import Puller, Purse

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(dovecot.why_not() is not None, reason=str(dovecot.why_not()))


@pytest.fixture
def server() -> Iterator[Dovecot]:
    with Dovecot() as running:
        yield running


def puller(server: Dovecot, *, since: int = 0, archive_root: Path | None = None, **more: Any) -> Puller:  # noqa: ANN401 - any key
    settings = dovecot.settings(server, **more)
    return Puller(TOOLKIT, settings, PASSWORD, since, archive_root=archive_root)


def key(number: int) -> str:
    return f"email:{number}@example.org"


def keys(numbers: range) -> list[str]:
    return [key(number) for number in numbers]


def test_a_folder_is_read_once_newest_page_first_and_nothing_is_marked(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(250)))
    pull = puller(server)

    assert pull.run() is None

    assert sorted(pull.keys) == sorted(keys(range(250)))
    assert pull.keys[:3] == [key(249), key(248), key(247)]
    assert not pull.quarantined
    flags = server.doveadm("fetch", "-u", dovecot.USER, "flags", "mailbox", "INBOX").splitlines()
    assert len([line for line in flags if line.startswith("flags:")]) == 250
    assert not any("Seen" in line for line in flags)
    assert pull.cursor["folders"]["INBOX"]["last_uid"] == 250


def test_a_mail_that_is_pulled_is_the_mail_that_is_imported(server: Dovecot) -> None:
    raw = mail(1, "周五 17:00 前交到 302", Subject="=?utf-8?b?5oql5ZGK?=", In_Reply_To="<0@example.org>")
    server.deliver(raw)
    pull = puller(server)
    pull.run()

    imported = mail_message(raw, account=dovecot.USER, zone=ZoneInfo("UTC")).message
    (event,) = pull.events
    assert event["message_key"] == imported.key
    assert (event["revision"], event["text"]) == (imported.revision, imported.text)
    assert event["conversation"]["id"] == imported.conversation.id


def test_nothing_new_brings_nothing_although_n_to_star_names_the_last_mail(server: Dovecot) -> None:
    server.deliver(mail(1), mail(2))
    pull = puller(server)
    pull.run()
    pull.run()
    assert len(pull.lines) == 2

    server.doveadm("flags", "add", "-u", dovecot.USER, "\\Seen \\Flagged", "mailbox", "INBOX", "all")
    pull.run()
    assert len(pull.lines) == 2

    server.deliver(mail(3))
    pull.run()
    assert pull.keys[2:] == [key(3)]


def test_an_empty_folder_keeps_its_place(server: Dovecot) -> None:
    pull = puller(server, since=10**13)
    assert pull.run() is None
    assert pull.cursor["folders"]["INBOX"]["last_uid"] == 0

    server.deliver(mail(1), arrived=START)
    pull.run()
    assert pull.keys == [key(1)]


def test_the_first_sync_reaches_back_as_far_as_it_is_told(server: Dovecot) -> None:
    day = 86_400
    for days_ago in range(10):
        server.deliver(mail(days_ago), arrived=START - days_ago * day)
    pull = puller(server, since=(START - 4 * day) * 1000)
    pull.run()
    # SEARCH SINCE knows days without zones, so a day or two more may come.
    assert keys(range(5)) == sorted(pull.keys)[:5]
    assert not set(pull.keys) & set(keys(range(7, 10)))


@pytest.mark.parametrize("page", [1, 7])
def test_a_cap_leaves_no_hole_and_repeats_nothing(server: Dovecot, page: int) -> None:
    server.deliver(*(mail(number) for number in range(40)))
    pull = puller(server)
    for number in range(40, 60, 2):
        pull.run(Purse(requests=4, page=page))
        server.deliver(mail(number), mail(number + 1))
    while not set(keys(range(60))) <= set(pull.keys):
        before = len(pull.lines)
        pull.run(Purse(requests=12, page=page))
        assert len(pull.lines) > before
    assert Counter(pull.keys) == Counter(keys(range(60)))


def test_new_mail_comes_before_the_rest_of_the_backfill(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(30)))
    pull = puller(server)
    pull.run(Purse(page=10), pages=1)
    assert pull.keys == keys(range(20, 30))[::-1]

    server.deliver(*(mail(number) for number in range(30, 35)))
    pull.run(Purse(page=10))
    assert pull.keys[10:15] == keys(range(30, 35))
    assert Counter(pull.keys) == Counter(keys(range(35)))


def test_mail_that_arrives_during_a_backfill_comes_once(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(30)))
    pull = puller(server)
    pull.run(Purse(page=5), after_page=lambda page: server.deliver(mail(100 + page)))
    arrived = len(pull.pages)
    pull.run()
    assert Counter(pull.keys) == Counter(keys(range(30)) + keys(range(101, 101 + arrived)))


def test_another_uidvalidity_is_a_rescan_without_a_second_message(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(20)))
    pull = puller(server)
    pull.run()
    before = {event["event_id"] for event in pull.events}
    validity = pull.cursor["folders"]["INBOX"]["uidvalidity"]

    server.deliver(mail(20))
    server.restore()
    pull.run()

    assert pull.cursor["folders"]["INBOX"]["uidvalidity"] == validity + 1
    again = [event["event_id"] for event in pull.events[20:]]
    assert len(again) == 21
    assert len(set(again) - before) == 1, "what was there comes as the same deliveries"
    assert not pull.quarantined
    lines = len(pull.lines)
    pull.run()
    assert len(pull.lines) == lines


def test_uids_that_begin_anew_under_the_same_uidvalidity_are_noticed(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(20)))
    pull = puller(server)
    pull.run()
    server.doveadm("expunge", "-u", dovecot.USER, "mailbox", "INBOX", "uid", "1:15")
    server.deliver(mail(20))
    server.restore(later=0)
    pull.run()
    assert set(pull.keys) == set(keys(range(21)))
    assert not pull.quarantined


def test_another_uidvalidity_in_the_middle_of_a_backfill_loses_nothing(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(30)))
    pull = puller(server)
    pull.run(Purse(page=5), pages=2)
    server.restore()
    pull.run()
    assert set(pull.keys) == set(keys(range(30)))


def test_mails_expunged_between_pages_are_gone_and_nothing_else_is(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(40)))

    def expunge(page: int) -> None:
        if page == 1:
            server.doveadm("expunge", "-u", dovecot.USER, "mailbox", "INBOX", "uid", "5:14,29:30")

    pull = puller(server)
    assert pull.run(Purse(page=10), after_page=expunge) is None
    assert len(pull.keys) == 40 - 12
    assert len(set(pull.keys)) == len(pull.keys)


def test_ten_thousand_mails_come_in_seconds(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(10_000)))
    pull = puller(server)
    begin = time.monotonic()
    purse = Purse()

    assert pull.run(purse) is None

    assert Counter(pull.keys) == Counter(keys(range(10_000)))
    assert purse.used == 101
    assert time.monotonic() - begin < 60


def test_a_server_killed_and_started_again_costs_no_mail(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(60)))
    pull = puller(server)

    fault = pull.run(Purse(page=10), after_page=lambda page: server.kill() if page == 2 else None)

    assert fault is not None
    assert fault.fault == "network"
    assert len(pull.keys) == 20
    refused = pull.run()
    assert refused is not None
    assert (refused.fault, refused.what) == ("network", "no connection: Connection refused")
    server.start()
    assert pull.run(Purse(page=10)) is None
    assert Counter(pull.keys) == Counter(keys(range(60)))


def test_a_wire_cut_at_any_byte_costs_no_mail(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(30)))
    with Cut(server.plain_port) as cut:
        whole = puller(server, port=cut.port, tls=False, ca_file="")
        whole.run(Purse(page=10))
        for place in range(1, 12_000, 531):
            cut.after = place
            pull = puller(server, port=cut.port, tls=False, ca_file="")
            fault = pull.run(Purse(page=10))
            assert fault is None or fault.fault == "network", (place, fault)
            assert pull.run(Purse(page=10)) is None
            assert Counter(pull.lines) == Counter(whole.lines), place
        assert cut.cuts >= 12


def test_a_servers_goodbye_in_the_middle_is_told_in_its_words(server: Dovecot) -> None:
    server.deliver(*(mail(number) for number in range(30)))
    pull = puller(server)

    def kick(page: int) -> None:
        if page == 1:
            server.doveadm("kick", dovecot.USER)

    fault = pull.run(Purse(page=10), after_page=kick)
    assert fault is not None
    assert fault.fault in {"server", "network"}
    assert pull.run(Purse(page=10)) is None
    assert Counter(pull.keys) == Counter(keys(range(30)))


def test_a_wrong_password_is_auth_and_is_not_shown(server: Dovecot) -> None:
    pull = puller(server)
    pull.secret = "wrong-password"  # noqa: S105 - wrong on purpose
    fault = pull.run()
    assert fault is not None
    assert fault.fault == "auth"
    assert fault.what == "the server refused to log in 'wang@example.org': Authentication failed."
    assert "wrong-password" not in repr(vars(fault))

    pull.secret = None
    none = pull.run()
    assert none is not None
    assert (none.fault, none.what) == ("auth", "no password for the mail account")


def test_a_certificate_that_nobody_vouches_for_is_refused(server: Dovecot) -> None:
    server.deliver(mail(1))
    pull = puller(server, ca_file="")
    fault = pull.run()
    assert fault is not None
    assert fault.what == "the server's certificate is refused: self-signed certificate"
    assert fault.fault == "network"
    assert "ca_file" in str(fault.hint)
    assert PASSWORD.encode() not in server.log().encode()


def test_a_certificate_for_another_host_is_refused(server: Dovecot) -> None:
    server.kill()
    dovecot.certificate(server.folder / "cert.pem", server.folder / "key.pem", "DNS:mail.example.org")
    server.start()
    fault = puller(server).run()
    assert fault is not None
    assert "certificate is refused: Hostname mismatch" in fault.what


def test_a_ca_file_that_is_no_certificate_is_told(server: Dovecot, tmp_path: Path) -> None:
    fault = puller(server, ca_file=str(tmp_path / "none.pem")).run()
    assert fault is not None
    assert fault.what.startswith("ca_file cannot be used: No such file or directory")
    (tmp_path / "empty.pem").write_text("no certificate")
    fault = puller(server, ca_file=str(tmp_path / "empty.pem")).run()
    assert fault is not None
    assert fault.what.startswith("ca_file cannot be used: ")


def test_a_server_without_tls_is_told_so(server: Dovecot) -> None:
    fault = puller(server, port=server.plain_port).run()
    assert fault is not None
    assert (fault.fault, fault.what[:18]) == ("network", "no TLS connection:")


def test_plain_text_goes_to_this_machine_only(tmp_path: Path) -> None:
    file = tmp_path / "processor.toml"
    lines = '[[connections]]\ntoolkit = "imap"\nid = "m"\nuser = "u"\ntls = false\n'
    file.write_text(f'{lines}host = "mail.example.org"\n')
    with pytest.raises(ConfigError, match="tls = false"):
        load_config(file)
    file.write_text(f'{lines}host = "localhost"\n')
    assert len(load_config(file).connections) == 1


def test_folders_of_any_name_are_read_and_a_missing_one_is_told_once(server: Dovecot) -> None:
    server.make_folder("&XeVPXA- &- more")
    server.deliver(mail(1))
    server.deliver(mail(2), mailbox="&XeVPXA- &- more")
    pull = puller(server, folders=["nowhere", "工作 & more", "INBOX"])

    fault = pull.run()

    assert fault is None
    assert [event["source"]["folder"] for event in pull.events] == ["工作 & more", "INBOX"]
    (refused,) = pull.quarantined
    told = json.loads(pull.lines[refused["line"] - 1])
    assert told["folder"] == "nowhere"
    assert told["why"].startswith("it cannot be opened: Mailbox doesn't exist: nowhere")
    assert told["there_are"] == ["INBOX", "工作 & more"]
    lines = len(pull.lines)
    pull.run()
    assert len(pull.lines) == lines

    server.make_folder("nowhere")
    server.deliver(mail(3), mailbox="nowhere")
    pull.run()
    assert [json.loads(line)["message_key"] for line in pull.lines[lines:]] == [key(3)]


def test_a_mail_in_two_folders_is_one_message(server: Dovecot) -> None:
    server.make_folder("Archive")
    server.deliver(mail(1))
    server.deliver(mail(1), mailbox="Archive")
    pull = puller(server, folders=["INBOX", "Archive"])
    pull.run()
    assert pull.keys == [key(1), key(1)]
    assert not pull.quarantined


def test_attachments_are_kept_once_by_their_content(server: Dovecot, tmp_path: Path) -> None:
    for number in (1, 2):
        letter = EmailMessage()
        letter["Message-ID"], letter["Date"] = f"<{number}@x>", "1 Jul 2026 10:00 +0800"
        letter.set_content("附件")
        letter.add_attachment(b"same bytes", maintype="application", subtype="pdf", filename="../../报表.pdf")
        server.deliver(letter.as_bytes())
    root = tmp_path / "archive"
    pull = puller(server, archive_root=root, attachments_dir=str(root / "mail"))
    pull.run()

    paths = {attachment["path"] for event in pull.events for attachment in event["attachments"]}
    assert len(paths) == 1
    (path,) = paths
    assert (root / path).read_bytes() == b"same bytes"
    assert [file for file in root.rglob("*") if file.is_file()] == [root / path]


def test_attachments_are_kept_only_where_they_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "processor.toml"
    keys = 'toolkit = "imap"\nid = "m"\nhost = "h"\nuser = "u"\nattachments_dir = "archive/mail"\n'
    for section in ("", '[input]\narchive_root = "elsewhere"\n'):
        file.write_text(f"{section}[[connections]]\n{keys}")
        with pytest.raises(ConfigError, match=r"below input\.archive_root"):
            load_config(file)
    file.write_text(f'[input]\narchive_root = "archive"\n[[connections]]\n{keys}')
    assert len(load_config(file).connections) == 1


def test_a_pull_cuts_where_an_import_does() -> None:
    assert ImapConnection.model_fields["max_body_chars"].default == MAX_BODY_CHARS


def test_a_long_text_is_cut(server: Dovecot) -> None:
    server.deliver(mail(1, "字" * 5000))
    pull = puller(server, max_body_chars=100)
    pull.run()
    (event,) = pull.events
    assert event["text"].count("字") == 100


def test_a_mail_of_fifty_megabytes_needs_bounded_memory(server: Dovecot) -> None:
    head = (
        "Message-ID: <big@x>\r\nDate: 1 Jul 2026 10:00 +0800\r\nContent-Type: application/zip\r\n"
        "Content-Disposition: attachment\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    )
    raw = head.encode() + base64.encodebytes(os.urandom(37 << 20))
    assert len(raw) > 50_000_000
    server.deliver(mail(1), raw, mail(2))
    script = f"""
from tests.pulls import Puller
from chatproc.connectors.imap import TOOLKIT
pull = Puller(TOOLKIT, {dovecot.settings(server)!r}, {PASSWORD!r})
assert pull.run() is None
keys = {{key for line in pull.lines for key in [__import__("json").loads(line)["message_key"]]}}
assert keys == {{"email:big@x", {key(1)!r}, {key(2)!r}}}, keys
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peak) >> 10)
"""
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, cwd=root, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 350
