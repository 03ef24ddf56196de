"""What an IMAP server may say, told by a scripted one on loopback: each answer has its meaning."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from typing import TYPE_CHECKING, Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatproc.connectors.imap import TOOLKIT
from chatproc.connectors.imapwire import folder_name, mailbox_name, uid_set
from tests.dovecot import mail
from tests.pulls import Puller, Purse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAIL = mail(7)


def literal(raw: bytes) -> bytes:
    return b"{%d}\r\n%s" % (len(raw), raw)


class Script:
    """A server that answers a command by the first pattern that it matches; the rest gets a plain OK."""

    def __init__(self, answers: Mapping[str, Any] | None = None, greeting: bytes = b"* OK ready\r\n") -> None:
        usual = {
            "EXAMINE": b"* OK [UIDVALIDITY 5] ok\r\n* OK [UIDNEXT 8] ok\r\n",
            "UID SEARCH UID 8:": b"* SEARCH 7\r\n",
            "UID SEARCH UID 1:": b"* SEARCH 7\r\n",
            "RFC822.SIZE": b"* 1 FETCH (UID 7 RFC822.SIZE %d)\r\n" % len(MAIL),
            "BODY.PEEK": b'* 1 FETCH (UID 7 INTERNALDATE "01-Jul-2026 10:00:00 +0800" BODY[] '
            + literal(MAIL)
            + b")\r\n",
        }
        self._answers: dict[str, Any] = dict(answers or {})
        for name in usual.keys() - self._answers.keys():
            self._answers[name] = usual[name]
        self._greeting = greeting
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.heard: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def puller(self) -> Puller:
        port = self._listener.getsockname()[1]
        place = {"host": "127.0.0.1", "port": port, "tls": False}
        return Puller(TOOLKIT, {"toolkit": "imap", "id": "m", "user": "u", **place}, 'pass"word\\')

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, client.makefile("rwb") as wire, contextlib.suppress(OSError):
                wire.write(self._greeting)
                wire.flush()
                for line in wire:
                    tag, _, command = line.decode().strip().partition(" ")
                    self.heard.append(command)
                    name = next((name for name in self._answers if name in command), "")
                    answer = self._answers.get(name, b"")
                    if not isinstance(answer, bytes):
                        answer = answer(command)
                    final = re.sub(rb"^TAG", tag.encode(), answer, flags=re.MULTILINE)
                    wire.write(final if final != answer else final + tag.encode() + b" OK done\r\n")
                    wire.flush()
                    if b"* BYE" in final:
                        break


def run(answers: Mapping[str, bytes | Callable[[str], bytes]], **more: Any) -> Puller:  # noqa: ANN401
    with Script(answers, **more) as script:
        pull = script.puller()
        fault = pull.run()
        assert fault is None, fault
        return pull


def fault_of(answers: Mapping[str, bytes | Callable[[str], bytes]], **more: Any) -> tuple[str, str]:  # noqa: ANN401
    with Script(answers, **more) as script:
        fault = script.puller().run()
        assert fault is not None
        assert 'pass"word' not in repr(vars(fault))
        return fault.fault, fault.what


def test_the_scripted_server_gives_its_mail() -> None:
    assert run({}).keys == ["email:7@example.org"]


def test_only_looking_commands_are_said() -> None:
    with Script() as script:
        script.puller().run()
        verbs = {
            " ".join(command.split()[: 2 if command.startswith("UID") else 1]) for command in script.heard
        }
    assert verbs == {"CAPABILITY", "LOGIN", "EXAMINE", "UID SEARCH", "UID FETCH", "LOGOUT"}
    assert script.heard[1] == r'LOGIN "u" "pass\"word\\"'
    assert all("BODY[" not in command for command in script.heard)


@pytest.mark.parametrize(
    "answer",
    [
        b"* 1 FETCH (BODY[] " + literal(MAIL) + b" UID 7)\r\n",
        b"* 1 FETCH (FLAGS (\\Seen $x) UID 7)\r\n* 1 FETCH (UID 7 BODY[] " + literal(MAIL) + b")\r\n",
        b"* 2 FETCH (FLAGS ())\r\n* 3 EXPUNGE\r\n* 1 fetch (uid 7 body[] " + literal(MAIL) + b")\r\n",
        b"* 9 EXISTS\r\n* OK [ALERT] soon full\r\n* 1 FETCH (UID 7 BODY[] " + literal(MAIL) + b")\r\n",
        b"* 1 FETCH (UID 7 BODY[] "
        + literal(MAIL)
        + b")\r\n* 2 FETCH (UID 8 BODY[] "
        + literal(b"x")
        + b")\r\n",
    ],
)
def test_mails_are_found_among_whatever_else_is_said(answer: bytes) -> None:
    assert run({"BODY.PEEK": answer}).keys == ["email:7@example.org"]


def test_a_mail_without_any_date_is_quarantined_as_it_is() -> None:
    raw = b"Subject: x\r\n\r\nno date\r\n"
    pull = run({"BODY.PEEK": b"* 1 FETCH (UID 7 BODY[] " + literal(raw) + b")\r\n"})
    assert pull.lines == [raw]
    assert len(pull.quarantined) == 1


def test_a_mail_that_the_server_does_not_give_is_told_and_the_others_come() -> None:
    def fetch(command: str) -> bytes:
        asked = command.split()[2]
        if asked == "6":
            return b"* 1 FETCH (UID 6 BODY[] " + literal(mail(6)) + b")\r\n"
        return b"TAG NO cannot convert this one\r\n"

    pull = run(
        {
            "UID SEARCH UID 1:": b"* SEARCH 6 7\r\n",
            "RFC822.SIZE": b"* 1 FETCH (UID 6 RFC822.SIZE 9)\r\n* 2 FETCH (UID 7 RFC822.SIZE 9)\r\n",
            "BODY.PEEK": fetch,
        }
    )
    told, good = sorted(pull.lines, key=len)
    assert json.loads(good)["message_key"] == "email:6@example.org"
    assert json.loads(told) == {
        "folder": "INBOX",
        "uid": 7,
        "why": "the server does not give it: cannot convert this one",
    }
    assert pull.cursor["folders"]["INBOX"]["backfill_uid"] == 0


def test_a_mail_that_is_left_out_but_still_there_is_a_fault_of_the_server() -> None:
    left_out = {"BODY.PEEK": b"", "UID SEARCH UID 7": b"* SEARCH 7\r\n"}
    assert fault_of(left_out) == ("server", "the server left out 1 mails that it has")
    assert run({"BODY.PEEK": b"", "UID SEARCH UID 7": b"* SEARCH\r\n"}).lines == []


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"LOGIN": b"TAG NO [ALERT] App password required\r\n"}, ("auth", "App password required")),
        ({"LOGIN": b"TAG NO [UNAVAILABLE] later\r\n"}, ("server", "later")),
        ({"EXAMINE": b"TAG NO [LIMIT] too often\r\n"}, ("rate", "too often")),
        ({"BODY.PEEK": b"TAG NO [OVERQUOTA] bandwidth\r\n"}, ("rate", "bandwidth")),
        ({"UID SEARCH": b"TAG BAD what\r\n"}, ("server", "what")),
        ({"RFC822.SIZE": b"* BYE shutting down\r\n"}, ("server", "ended the connection: shutting down")),
        ({"BODY.PEEK": b"* BYE [LIMIT] enough\r\n"}, ("rate", "enough")),
        ({"BODY.PEEK": b"* 1 FETCH (UID 7 BODY[] {99999999999}\r\n"}, ("bad_data", "more than 256 MB")),
        ({"BODY.PEEK": b"* 1 FETCH (UID 7 BODY[] \r\n"}, ("bad_data", "no IMAP")),
        ({"EXAMINE": b"* ) OK\r\n"}, ("bad_data", "no IMAP")),
        ({"EXAMINE": b"TAG NO [LIMIT] no\x1b[31mred\x07\r\n"}, ("rate", "no [31mred")),
    ],
)
def test_each_refusal_has_its_class_and_its_words(
    answers: dict[str, bytes], expected: tuple[str, str]
) -> None:
    fault, what = fault_of(answers)
    assert fault == expected[0]
    assert expected[1] in what
    assert what.isprintable()


def test_what_is_no_imap_server_is_told() -> None:
    assert fault_of({}, greeting=b"HTTP/1.1 400 Bad Request\r\n") == (
        "bad_data",
        "the server gave no IMAP greeting",
    )
    assert fault_of({}, greeting=b"* BYE no\r\n") == ("server", "the server ended the connection: no")


def test_a_line_without_end_is_bounded() -> None:
    endless = b"* SEARCH " + b"1 " * (9 << 20) + b"\r\n"
    assert fault_of({"UID SEARCH": endless}) == ("bad_data", "the server gave an answer of more than 16 MB")


def test_a_hundred_thousand_uids_in_one_line_are_read() -> None:
    uids = b" ".join(b"%d" % uid for uid in range(100_000, 200_000))
    sizes = b"* 1 FETCH (UID 199999 RFC822.SIZE 5)\r\n"
    with Script(
        {
            "EXAMINE": b"* OK [UIDVALIDITY 5] ok\r\n* OK [UIDNEXT 200000] ok\r\n",
            "UID SEARCH UID 1:": b"* SEARCH " + uids + b"\r\n",
            "UID SEARCH UID 200000": b"* SEARCH 199999\r\n",
            "RFC822.SIZE": sizes,
            "BODY.PEEK": b"* 1 FETCH (UID 199999 BODY[] " + literal(MAIL) + b")\r\n",
        }
    ) as script:
        pull = script.puller()
        assert pull.run(Purse(page=1), pages=1) is None
    assert pull.cursor["folders"]["INBOX"]["backfill_uid"] == 199_998


@given(st.text())
def test_a_folders_name_survives_its_way_over_the_wire(name: str) -> None:
    wire = mailbox_name(name)
    assert wire.isascii()
    assert folder_name(wire.encode()) == name


@given(st.sets(st.integers(1, 60), min_size=1))
def test_a_set_of_uids_says_each_and_no_other(uids: set[int]) -> None:
    said = set()
    for run_of in uid_set(uids).split(","):
        first, _, last = run_of.partition(":")
        said |= set(range(int(first), int(last or first) + 1))
    assert said == uids
