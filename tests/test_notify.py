"""`examples/notify.py` as its page promises it: every event at least once, in order, marked; real kills."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import pytest

from examples.notify import seconds_of
from tests.project import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOTIFY = ROOT / "examples" / "notify.py"
PATIENCE = 60


class Receiver(ThreadingHTTPServer):
    """A webhook; what it took, in order, with the key of each."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.taken: list[tuple[str | None, bytes]] = []
        self.keys: set[str | None] = set()
        self.answer: Callable[[int], tuple[int, dict[str, str]] | None] = lambda _: (200, {})
        self.asked = 0
        self.more = threading.Condition()
        self.url = f"http://127.0.0.1:{self.server_port}/hook?a=b"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def wait_for(self, count: int) -> None:
        with self.more:
            assert self.more.wait_for(lambda: len(self.taken) >= count, PATIENCE)

    def handle_error(self, *_: object) -> None:
        pass  # who is killed closes its connection


class _Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.more:
            self.server.asked += 1
            said = self.server.answer(self.server.asked)
            if said is not None and said[0] < 300:
                self.server.taken.append((self.headers["Idempotency-Key"], body))
                self.server.keys.add(self.headers["Authorization"])
                self.server.more.notify_all()
        if said is None:
            self.close_connection = True  # taken or not, nobody hears of it
            return
        self.send_response(said[0])
        for name, value in {"Content-Length": "0", **said[1]}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Outbox:
    """A folder of todos as chatproc writes it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "todos"
        self.folder.mkdir()
        self.receipts = root / "receipts"
        self.rows = 0

    def export(self, *events: tuple[str, int]) -> list[str]:
        """One file, whole at once; the ids of its events."""
        first = self.rows + 1
        self.rows += len(events)
        name = f"todos-{first:012}-{self.rows:012}.jsonl"
        hidden = self.folder / f"{name}.tmp"
        hidden.write_text("".join(f"{json.dumps(event(*one), ensure_ascii=False)}\n" for one in events))
        hidden.rename(self.folder / name)
        return [event(*one)["event_id"] for one in events]

    def start(self, url: str, *more: str, key: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, str(NOTIFY), "--url", url, "--todos", str(self.folder)]
        command += ["--receipts", str(self.receipts), "--every", "0.02", *more]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={"NOTIFY_KEY": key})

    def run(self, url: str, code: int = 0, **more: Any) -> str:  # noqa: ANN401 - passed on
        with self.start(url, "--once", **more) as process:
            _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, said
        assert "Traceback" not in said
        return said


def event(task: str, revision: int) -> dict[str, Any]:
    task_id = f"t_{task:a<26}"
    return {
        "schema": "chatproc.task-event/1",
        "operation": "upsert",
        "event_id": hashlib.sha256(f"{task_id}:{revision}".encode()).hexdigest(),
        "task_id": task_id,
        "revision": revision,
        "emitted_at": "2026-07-01T10:00:00+08:00",
        "task": {"title": f"交报告\u2028{revision}"},
    }


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path)


def ids(receiver: Receiver) -> list[str | None]:
    return [event_id for event_id, _ in receiver.taken]


def test_each_event_goes_out_once_in_order_with_its_line_and_its_id(outbox: Outbox) -> None:
    wanted = outbox.export(("b", 1), ("c", 1), ("b", 2)) + outbox.export(("d", 1))
    (outbox.folder / "todos-9.jsonl.tmp").write_text('{"half')
    with Receiver() as receiver:
        outbox.run(receiver.url, key="secret")
        assert ids(receiver) == wanted
        written = b"".join(file.read_bytes() for file in sorted(outbox.folder.glob("*.jsonl")))
        assert b"".join(body + b"\n" for _, body in receiver.taken) == written
        assert receiver.keys == {"Bearer secret"}
        outbox.run(receiver.url)
        assert len(receiver.taken) == 4
        wanted += outbox.export(("b", 3))
        outbox.run(receiver.url)
        assert ids(receiver) == wanted


def test_a_follower_sends_files_as_they_appear(outbox: Outbox) -> None:
    with Receiver() as receiver:
        process = outbox.start(receiver.url)
        for number in range(1, 4):
            outbox.export(("b", number))
            receiver.wait_for(number)
        process.kill()
        process.communicate()
        assert ids(receiver) == [event("b", number)["event_id"] for number in range(1, 4)]


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment_every_event_arrives_and_only_the_one_in_hand_again(
    outbox: Outbox, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - moments of a test
    wanted = []
    for revision in range(1, 7):
        wanted += outbox.export(*((name, revision) for name in "bcdef"))
    kills = 0
    with Receiver() as receiver:
        while missing := len(wanted) - len(set(ids(receiver))):
            count = len(receiver.taken) + min(missing, chance.randint(1, 12))
            process = outbox.start(receiver.url, "--once")
            receiver.wait_for(count)
            process.kill()
            process.communicate()
            kills += 1
        outbox.run(receiver.url)
    got = ids(receiver)
    assert len(got) - len(wanted) <= kills
    assert [key for key, _ in itertools.groupby(got)] == wanted  # a double comes right behind its first
    assert [line.split()[0] for line in outbox.receipts.read_text().splitlines()] == wanted


def test_a_receipt_that_was_cut_off_means_one_event_again(outbox: Outbox) -> None:
    wanted = outbox.export(("b", 1), ("c", 1))
    with Receiver() as receiver:
        outbox.run(receiver.url)
        content = outbox.receipts.read_bytes()
        outbox.receipts.write_bytes(content[:-5])
        outbox.run(receiver.url)
        assert ids(receiver) == [*wanted, wanted[1]]
        assert outbox.receipts.read_bytes() == content


def test_an_event_that_comes_again_or_is_older_than_what_was_sent_is_not_sent(outbox: Outbox) -> None:
    with Receiver() as receiver:
        outbox.export(("b", 2))
        outbox.run(receiver.url)
        outbox.export(("b", 2), ("b", 1), ("b", 3))
        outbox.run(receiver.url)
        assert [json.loads(body)["revision"] for _, body in receiver.taken] == [2, 3]


def test_what_may_pass_is_tried_again_in_order_and_what_cannot_ends_it(outbox: Outbox) -> None:
    wanted = outbox.export(("b", 1), ("c", 1))
    with Receiver() as receiver:
        receiver.answer = lambda asked: {1: (429, {"Retry-After": "x"}), 2: None}.get(asked, (204, {}))
        said = outbox.run(receiver.url)
        assert [line.split("; again in ")[1] for line in said.splitlines()] == ["1 s", "2 s"]
        assert ids(receiver) == wanted
        outbox.export(("d", 1))
        receiver.answer = lambda _: (302, {"Location": receiver.url})
        assert "answered 302" in outbox.run(receiver.url, code=1)
        receiver.answer = lambda _: (200, {})
        outbox.run(receiver.url)
        assert len(receiver.taken) == 3


def test_two_at_once_and_plain_http_elsewhere_are_refused(outbox: Outbox) -> None:
    outbox.export(("b", 1))
    with Receiver() as receiver:
        process = outbox.start(receiver.url)
        receiver.wait_for(1)
        assert "another process" in outbox.run(receiver.url, code=1)
        process.kill()
        process.communicate()
    assert "plain http" in outbox.run("http://example.org/", code=1)


@pytest.mark.parametrize(
    "wish", ["9" * 400, "1" * 5000, "-1", "nan", "Mon, 01 Jan 9999 00:00:00 -9999", "²", ""]
)
def test_no_wish_of_a_receiver_ends_the_program(wish: str) -> None:
    assert seconds_of(wish) in {0.0, -1.0} or seconds_of(wish) > 300  # LONGEST_WAIT bounds it


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:99999/",
        "http://[::1/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/任务",
        "http://me:secret@127.0.0.1/",
        "127.0.0.1:9000",
    ],
)
def test_an_address_that_can_never_be_asked_is_refused_at_once(outbox: Outbox, url: str) -> None:
    outbox.export(("b", 1))
    said = outbox.run(url, code=1)
    assert said.startswith("error: --url")
    assert "secret" not in said


def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(outbox: Outbox) -> None:
    assert "secret" not in outbox.run("http://127.0.0.1:9/", code=1, key="secret\nX: y")


def test_what_is_missing_removed_or_damaged_is_told(outbox: Outbox) -> None:
    with Receiver() as receiver:
        outbox.folder.rename(outbox.folder.with_name("away"))
        assert "not there yet" in outbox.run(receiver.url)
        outbox.folder.with_name("away").rename(outbox.folder)
        (outbox.folder / "todos-1-1.jsonl").symlink_to(
            "removed"
        )  # found by its name and gone when it is read
        outbox.export(("b", 1))
        assert outbox.run(receiver.url) == ""
        assert len(receiver.taken) == 1
        damaged = outbox.folder / "todos-999999999999-999999999999.jsonl"
        damaged.write_text('{"half')
        assert damaged.name in outbox.run(receiver.url, code=1)
        outbox.receipts.write_text("notes of mine\nand more of them")
        assert "something else" in outbox.run(receiver.url, code=1)
        assert outbox.receipts.read_text() == "notes of mine\nand more of them"
        assert len(receiver.taken) == 1
        outbox.receipts = outbox.receipts / "below a file"
        assert outbox.run(receiver.url, code=1).startswith("error: ")
