"""`run` and `sync` against a mail server while mail arrives and everything fails: each mail is there once."""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests import dovecot
from tests.dovecot import PASSWORD, Cut, Dovecot, mail
from tests.project import Project

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.skipif(dovecot.why_not() is not None, reason=str(dovecot.why_not())),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

FOLDERS = {"INBOX": "INBOX", "工作": "&XeVPXA-"}
ENDS_WITHIN = 10.0
PATIENCE = 60.0


class Postman:
    """Delivers mails, a few at a time, until the test has had enough."""

    def __init__(self, server: Dovecot, pause: float, seed: int) -> None:
        self.delivered = 0
        self._server = server
        self._pause = pause
        self._chance = random.Random(seed)  # noqa: S311 - repeatable, no secret
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._enough.wait(self._pause * self._chance.random()):
            count = self._chance.randint(1, 5)
            mails = [mail(number) for number in range(self.delivered, self.delivered + count)]
            self._server.deliver(*mails, mailbox=self._chance.choice(list(FOLDERS.values())))
            self.delivered += count


class Day:
    """One project with one mailbox; `run` is at work in it."""

    def __init__(self, root: Path, server: Dovecot, cut: Cut, seed: int) -> None:
        self.server = server
        self.cut = cut
        self.chance = random.Random(seed)  # noqa: S311 - repeatable, no secret
        self._faults: list[str] = []
        # All messages are history: no model is asked.
        self.project = Project(root).configure(
            input={"start_at": 4_000_000_000}, schedule={"tick_seconds": 1, "watch": False}
        )
        (root / "password").write_text(PASSWORD)
        (root / "password").chmod(0o600)
        keys = dovecot.settings(
            server,
            port=cut.port,
            folders=list(FOLDERS),
            secret_file="password",  # noqa: S106 - the name of a file
            interval_seconds=300,
            daily_requests=1_000_000,
            daily_items=1_000_000,
        )
        del keys["toolkit"]
        self.project.connect(imap=keys)
        self.sync()
        self.loop = self._started()

    def _started(self) -> subprocess.Popen[str]:
        """The loop, once it takes signals."""
        loop = self.project.cold("run")
        until = time.monotonic() + PATIENCE
        while not _catches_sigterm(loop.pid):
            assert loop.poll() is None, loop.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        return loop

    def sync(self) -> None:
        """Another process syncs the same connection."""
        done = self.project.start("sync", "mail", "--force").wait()
        assert "Traceback" not in done.err
        assert done.code in {0, 1, 4}, done  # 4: the loop is at it just now

    def fail(self) -> None:
        """Something breaks, and comes back."""
        fault = self._next_fault()
        if fault == "server":
            self.server.kill()
            self.sync()
            self.server.start()
        elif fault == "wire":
            self.cut.after = self.chance.randint(1, 40_000)
        elif fault == "loop":
            self.loop.kill()
            self.loop.communicate()
            self.loop = self._started()
        elif fault == "sync":
            sync = self.project.cold("sync", "mail", "--force")
            with contextlib.suppress(subprocess.TimeoutExpired):
                sync.wait(self.chance.random() * 1.5)
            sync.kill()
            sync.communicate()
        else:
            # Mails of the first day, long in the store, are gone, so that all others get other UIDs.
            self.server.doveadm("expunge", "-u", dovecot.USER, "mailbox", "INBOX", "uid", "1:10")
            self.server.restore()

    def _next_fault(self) -> str:
        """Each in turn, in an order that changes."""
        if not self._faults:
            self._faults = ["server", "wire", "loop", "sync", "restored"]
            self.chance.shuffle(self._faults)
        return self._faults.pop()

    def end(self) -> None:
        """The loop ends when it is told to; then what is left is read in peace."""
        self.loop.send_signal(signal.SIGTERM)
        _, said = self.loop.communicate(timeout=ENDS_WITHIN)
        assert self.loop.returncode == 0, said
        assert "Traceback" not in said
        self.cut.after = None
        report = self.project.document("sync", "mail", "--force")
        assert [entry["outcome"] for entry in report["connections"]] == ["done"]

    def keys(self) -> list[str]:
        """Keys of all messages in the store, looked up by another process."""
        code = (
            "import json, sqlite3, sys; store = sqlite3.connect(sys.argv[1]); "
            "print(json.dumps([key for (key,) in store.execute('SELECT key FROM messages')]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(self.project.state)], capture_output=True, text=True, check=True
        )
        found: list[str] = json.loads(done.stdout)
        return found


def _catches_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    caught = re.findall(r"SigCgt:\s*([0-9a-f]+)", status)
    return bool(int(caught[0], 16) >> (signal.SIGTERM - 1) & 1)


@contextlib.contextmanager
def at_work(tmp_path: Path, seed: int) -> Iterator[Day]:
    with Dovecot() as server, Cut(server.port) as cut:
        for mailbox in FOLDERS.values():
            server.make_folder(mailbox)
        server.deliver(*(mail(10**6 + number) for number in range(150)))
        day = Day(tmp_path / "project", server, cut, seed)
        try:
            yield day
        finally:
            day.loop.kill()
            day.loop.wait()


def every_mail_is_there_once(day: Day, delivered: int) -> None:
    expected = [*range(delivered), *range(10**6, 10**6 + 150)]
    assert sorted(day.keys()) == sorted(f"email:{number}@example.org" for number in expected)
    status = day.project.document("status")
    assert status["quarantined"] == 0
    assert status["messages"] == len(expected)


@pytest.mark.timeout(300)
def test_half_a_minute_of_mail_and_faults_leaves_every_mail_there_once(tmp_path: Path) -> None:
    with at_work(tmp_path, seed=4) as day:
        with Postman(day.server, pause=0.3, seed=4) as postman:
            until = time.monotonic() + 30
            while time.monotonic() < until:
                day.sync()
                day.fail()
        day.end()
        every_mail_is_there_once(day, postman.delivered)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_an_hour_of_run_with_a_fault_every_minute_leaves_every_mail_there_once(tmp_path: Path) -> None:
    with at_work(tmp_path, seed=5) as day:
        with Postman(day.server, pause=4, seed=5) as postman:
            begin = time.monotonic()
            for minute in range(1, 61):
                time.sleep(max(0.0, begin + 60 * minute - time.monotonic()))
                day.fail()
        day.end()
        every_mail_is_there_once(day, postman.delivered)
