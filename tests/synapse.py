"""A real Synapse on loopback, in a folder of its own, and people who write in its rooms.

Synapse lives in a venv of its own (`make synapse`): it is large and wants its own versions of much.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from tests.dovecot import free_port

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / "target" / "synapse" / "bin" / "python"
PATIENCE = 90.0


def why_not() -> str | None:
    """Why there can be no server here; `None` when there can."""
    there = PYTHON.with_name("synapse_homeserver").exists()
    return None if there else "no Synapse here (`make synapse` installs it)"


class Synapse:
    """A homeserver; use as a context."""

    def __init__(self) -> None:
        # In memory where that is possible: its database waits for the disk at every message.
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of its own in it
        self.folder = Path(tempfile.mkdtemp(prefix="chatproc-synapse-", dir=place))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._server: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._write_settings()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = [str(PYTHON), "-m", "synapse.app.homeserver", "-c", str(self.folder / "homeserver.yaml")]
        log = (self.folder / "log").open("ab")
        self._server = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=self.folder, env={**os.environ, "PYTHONPATH": ""}
        )
        log.close()
        until = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                request(self.url, "GET", "/_matrix/client/versions")
                return
            if time.monotonic() > until or self._server.poll() is not None:
                raise AssertionError((self.folder / "log").read_text()[-3000:])
            time.sleep(0.1)

    def kill(self) -> None:
        """SIGKILL."""
        if self._server is not None:
            self._server.send_signal(signal.SIGKILL)
            self._server.wait()
            self._server = None

    def person(self, name: str) -> Person:
        """A new account."""
        account = {"username": f"{name}{self.number()}", "password": "pw"}
        stage = {"auth": {"type": "m.login.dummy"}}
        said = request(self.url, "POST", "/_matrix/client/v3/register", {**account, **stage})
        return Person(self, said["user_id"], said["access_token"])

    def number(self) -> int:
        return next(self._numbers)

    def _write_settings(self) -> None:
        quick = {"per_second": 1e6, "burst_count": 1_000_000}
        settings = {
            "server_name": "localhost",
            "pid_file": str(self.folder / "pid"),
            "listeners": [
                {
                    "port": self.port,
                    "type": "http",
                    "bind_addresses": ["127.0.0.1"],
                    "resources": [{"names": ["client"]}],
                }
            ],
            "database": {"name": "sqlite3", "args": {"database": str(self.folder / "homeserver.db")}},
            "log_config": str(self.folder / "log.yaml"),
            "media_store_path": str(self.folder / "media"),
            "signing_key_path": str(self.folder / "signing.key"),
            "macaroon_secret_key": "m",
            "enable_registration": True,
            "enable_registration_without_verification": True,
            "report_stats": False,
            "trusted_key_servers": [],
            "presence": {"enabled": False},
            "push": {"enabled": False},
            "bcrypt_rounds": 4,
            "rc_message": quick,
            "rc_registration": quick,
            "rc_joins_per_room": quick,
            "rc_room_creation": quick,
            "rc_login": {"address": quick, "account": quick},
            "rc_joins": {"local": quick, "remote": quick},
            "rc_invites": {"per_room": quick, "per_user": quick, "per_issuer": quick},
        }
        # Every JSON document is one of YAML.
        (self.folder / "homeserver.yaml").write_text(json.dumps(settings))
        (self.folder / "log.yaml").write_text('{"version": 1, "root": {"level": "ERROR"}}')
        subprocess.run(
            [str(PYTHON), "-m", "synapse.app.homeserver", "-c", str(self.folder / "homeserver.yaml"),
             "--generate-keys"],
            cwd=self.folder, env={**os.environ, "PYTHONPATH": ""}, check=True, capture_output=True,
        )  # fmt: skip


@dataclass(frozen=True)
class Person:
    """Somebody who writes."""

    server: Synapse
    user: str
    token: str

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        return request(self.server.url, method, f"/_matrix/client/v3/{path}", body, self.token)

    def new_room(self, *others: Person, **more: Any) -> str:  # noqa: ANN401 - any key of createRoom
        said = self.ask("POST", "createRoom", {"invite": [other.user for other in others], **more})
        room: str = said["room_id"]
        for other in others:
            other.ask("POST", f"join/{quote(room)}", {})
        return room

    def send(self, room: str, content: dict[str, Any], kind: str = "m.room.message") -> str:
        path = f"rooms/{quote(room)}/send/{kind}/t{self.server.number()}"
        event_id: str = self.ask("PUT", path, content)["event_id"]
        return event_id

    def say(self, room: str, text: str) -> str:
        return self.send(room, {"msgtype": "m.text", "body": text})

    def say_many(self, room: str, texts: list[str]) -> list[str]:
        """Many messages, in any order."""
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda text: self.say(room, text), texts))

    def edit(self, room: str, event_id: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": event_id}
        return self.send(room, {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relation})

    def redact(self, room: str, event_id: str) -> str:
        said: str = self.ask(
            "PUT", f"rooms/{quote(room)}/redact/{quote(event_id)}/t{self.server.number()}", {"reason": "typo"}
        )["event_id"]
        return said

    def set_state(self, room: str, kind: str, content: dict[str, Any]) -> str:
        event_id: str = self.ask("PUT", f"rooms/{quote(room)}/state/{kind}/", content)["event_id"]
        return event_id


def request(url: str, method: str, path: str, body: object = None, token: str = "") -> dict[str, Any]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    document = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url + path, document, headers, method=method)  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:  # noqa: S310 - loopback
            said: dict[str, Any] = json.loads(answer.read())
            return said
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from error
