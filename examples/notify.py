"""Follow `data/todos` and post each task event to a webhook: the reference consumer of docs/consuming.md.

    python examples/notify.py --url http://127.0.0.1:9000/tasks

Events go out one after the other, in order, each until the receiver took it (2xx). A receipt of each is
written before the next is sent. Killed between the two, it sends that one event again: so each arrives at
least once, and `Idempotency-Key`, which is the event's id, tells a second time from a first. Needs nothing
but Python.
"""

from __future__ import annotations

import argparse
import contextlib
import email.utils
import fcntl
import http.client
import ipaddress
import json
import os
import re
import ssl
import sys
import time
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0
SILENCE = 30.0
OK = range(200, 300)
TRY_AGAIN = {408, 425, 429, *range(500, 600)}


class Receipts:
    """Which events were taken: a line each, `EVENT_ID TASK_ID REVISION`, on the disk before the next is sent.

    A line that a kill cut off has no newline; it is taken away, and its event is sent again.
    """

    def __init__(self, file: Path) -> None:
        """Read them, and keep everybody else from writing them."""
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"error: another process writes {file}")
        content = file.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        self._taken: set[str] = set()
        self._newest: dict[str, int] = {}
        try:
            for line in whole.decode().splitlines():
                event_id, task_id, revision = line.split()
                self._note(event_id, task_id, int(revision))
        except ValueError:
            sys.exit(f"error: {file} holds something else than receipts; nothing was sent")
        os.ftruncate(self._file, len(whole))

    def wants(self, event: dict[str, Any]) -> bool:
        """Whether an event is new: not taken before, and no older than what the receiver has of its task."""
        known = event["event_id"] in self._taken
        return not known and event["revision"] > self._newest.get(event["task_id"], 0)

    def add(self, event: dict[str, Any]) -> None:
        """Remember for ever that it was taken."""
        line = f"{event['event_id']} {event['task_id']} {event['revision']}\n".encode()
        if os.write(self._file, line) != len(line):
            sys.exit("error: the disk is full; the event will be sent again")
        os.fsync(self._file)
        self._note(event["event_id"], event["task_id"], event["revision"])

    def _note(self, event_id: str, task_id: str, revision: int) -> None:
        self._taken.add(event_id)
        self._newest[task_id] = max(revision, self._newest.get(task_id, 0))


class Todos:
    """The output folder. A file has its name only once it is whole, and never changes after that."""

    def __init__(self, folder: Path) -> None:
        """Read nothing yet."""
        self._folder = folder
        self._seen: set[str] = set()

    def new_events(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """The events of files that were not read yet, in order, each with its line as it stands there."""
        # `*.tmp` and hidden files are still being written. The order of the names is the order of events.
        for file in sorted(self._folder.glob("[!.]*.jsonl")):
            if file.name in self._seen:
                continue
            for line, event in _events_of(file):
                if event.get("schema") == "chatproc.task-event/1" and event.get("operation") == "upsert":
                    yield line, event
            self._seen.add(file.name)


def _events_of(file: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Lines with what they say; none of a file that somebody removed meanwhile."""
    try:
        return [(line, json.loads(line)) for line in file.read_bytes().splitlines()]
    except FileNotFoundError:
        return []
    except ValueError:
        sys.exit(f"error: {file} was damaged after it was written: see `chatproc verify`")


class Webhook:
    """The receiver. Its key goes to the given address alone: no redirect is followed, no proxy used."""

    def __init__(self, url: str, key: str) -> None:
        """Check the address; nothing is sent yet."""
        try:
            parts = urllib.parse.urlsplit(url)
            port = parts.port
        except ValueError as error:
            sys.exit(f"error: --url: {error}")
        if not parts.hostname or parts.scheme not in {"http", "https"}:
            sys.exit("error: --url must begin with https:// or http://")
        if parts.username is not None:
            sys.exit("error: --url: no user or password is sent; a key goes into NOTIFY_KEY")
        if not re.fullmatch("[!-~]*", url + key):
            sys.exit("error: --url and NOTIFY_KEY: letters, digits and signs of ASCII, no spaces (%20)")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            sys.exit("error: plain http shows tasks to the network; it is for this machine alone")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        self._key = {"Authorization": f"Bearer {key}"} if key else {}

    def deliver(self, line: bytes, event: dict[str, Any]) -> None:
        """Send one event until it is taken; ends the program where sending again can never help."""
        wait = FIRST_WAIT
        while True:
            status, asked_for = self._post(line, event)
            if status in OK:
                return
            if status is not None and status not in TRY_AGAIN:
                sys.exit(
                    f"error: the receiver answered {status} to {event['event_id']}; it will be sent again"
                )
            why = "no answer" if status is None else f"it answered {status}"
            pause = min(LONGEST_WAIT, max(wait, asked_for))
            print(f"{event['event_id']}: {why}; again in {pause:g} s", file=sys.stderr)
            time.sleep(pause)
            wait = min(LONGEST_WAIT, wait * 2)

    def _post(self, line: bytes, event: dict[str, Any]) -> tuple[int | None, float]:
        """The status, `None` without an answer, and for how long the receiver asks to be left alone."""
        headers = {
            **self._key,
            "Content-Type": "application/json",
            "Idempotency-Key": event["event_id"],
            "User-Agent": "chatproc-notify",
        }
        try:
            with contextlib.closing(self._connection()) as connection:
                connection.request("POST", self._path, line, headers)
                answer = connection.getresponse()
                return answer.status, seconds_of(answer.getheader("Retry-After"))
        except (OSError, http.client.HTTPException):
            return None, 0.0

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            trust = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=SILENCE, context=trust)
        return http.client.HTTPConnection(self._host, self._port, timeout=SILENCE)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def seconds_of(retry_after: str | None) -> float:
    """What `Retry-After` asks for: seconds, or a date."""
    if retry_after is None:
        return 0.0
    if re.fullmatch("[0-9]{1,9}", retry_after):
        return float(retry_after)
    try:
        return email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (ValueError, OverflowError):
        return 0.0


def main() -> None:
    """Send what is new, then wait for more."""
    reading = argparse.ArgumentParser(description="Post each task event of chatproc to a webhook.")
    reading.add_argument("--url", required=True, help="Where to; the key in NOTIFY_KEY goes along, if set.")
    reading.add_argument("--todos", type=Path, default=Path("data/todos"), metavar="DIR")
    reading.add_argument("--receipts", type=Path, default=Path("data/notify.receipts"), metavar="FILE")
    reading.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="Between two looks.")
    reading.add_argument("--once", action="store_true", help="End when all there is was sent.")
    asked = reading.parse_args()
    webhook = Webhook(asked.url, os.environ.get("NOTIFY_KEY", ""))
    receipts, todos = Receipts(asked.receipts), Todos(asked.todos)
    if not asked.todos.is_dir():
        print(f"{asked.todos} is not there yet: chatproc makes it with the first task", file=sys.stderr)
    while True:
        for line, event in todos.new_events():
            if receipts.wants(event):
                webhook.deliver(line, event)
                receipts.add(event)
        if asked.once:
            return
        time.sleep(asked.every)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:  # of a disk or a folder; what was sent without a receipt is sent again
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        pass
