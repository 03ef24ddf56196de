"""`chatproc sync` of chatlog, chatlab and onebot, as real processes that are killed at any request."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests import test_chatlab, test_chatlog, test_onebot
from tests.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.loopback import Loopback

TOOLKITS = ["chatlog", "chatlab", "onebot"]
MESSAGES = 90
DAY = 86_400


def source(toolkit: str) -> tuple[Loopback, dict[str, Any]]:
    """A server with messages of the last days, and the keys of its connection."""
    begin = int(time.time()) - 5 * DAY
    seconds = [begin + number * 3600 for number in range(MESSAGES)]
    if toolkit == "chatlog":
        chatlog = test_chatlog.Chatlog()
        for second in seconds:
            chatlog.say(second, f"m{second}")
        return chatlog, {"talkers": [test_chatlog.ROOM]}
    if toolkit == "chatlab":
        server = test_chatlab.Server()
        server.style = {"offset"}
        for second in seconds:
            server.say(second, f"m{second}")
        return server, {"sources": [test_chatlab.GROUP]}
    program = test_onebot.Program()
    program.kind = "go-cqhttp"  # 20 messages a page, whatever is asked for
    for second in seconds:
        program.say(second, f"m{second}")
    return program, {"groups": [str(test_onebot.GROUP)]}


def project(root: Path, toolkit: str, server: Loopback, keys: dict[str, Any]) -> Project:
    (root / "token").write_text("s3cret-token")
    (root / "token").chmod(0o600)
    settings = {"id": "it", "base_url": server.url, "secret_file": str(root / "token"), **keys}
    return Project(root).connect((toolkit, settings))


def messages(made: Project) -> int:
    """How many messages the store has, each by its key, looked up by another process."""
    code = (
        "import sqlite3, sys; store = sqlite3.connect(sys.argv[1]); "
        "print(store.execute('SELECT COUNT(*), COUNT(DISTINCT key) FROM messages').fetchone())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(made.state)], capture_output=True, text=True, check=True
    )
    total, distinct = json.loads(done.stdout.replace("(", "[").replace(")", "]"))
    assert total == distinct
    return int(total)


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_a_sync_stores_each_message_once_and_the_next_one_nothing(tmp_path: Path, toolkit: str) -> None:
    server, keys = source(toolkit)
    with server:
        made = project(tmp_path, toolkit, server, keys)
        (first,) = made.document("sync", "it")["connections"]
        assert (first["outcome"], first["written"], first["quarantined"]) == ("done", MESSAGES, 0)
        (second,) = made.document("sync", "it", "--force")["connections"]
        assert (second["outcome"], second["written"]) == ("done", 0)
        assert messages(made) == MESSAGES
        assert set(server.tokens) == {"Bearer s3cret-token"}
    assert b"s3cret-token" not in made.state.read_bytes()
    (gone,) = made.start("sync", "it", "--force", "--json").wait().document["connections"]
    assert (gone["outcome"], gone["error"]["class"]) == ("failed", "network")


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_a_sync_that_is_killed_at_each_request_stores_each_message_once(tmp_path: Path, toolkit: str) -> None:
    server, keys = source(toolkit)
    answer = server.answer
    with server:
        made = project(tmp_path, toolkit, server, keys)
        killed = 0
        for request in range(1, 4):
            deadly = len(server.asked) + request
            running = made.cold("sync", "it", "--force")

            def kill_or_answer(
                path: str, query: dict[str, Any], deadly: int = deadly, pid: int = running.pid
            ) -> object:
                if len(server.asked) == deadly:
                    os.kill(pid, signal.SIGKILL)
                return answer(path, query)

            server.answer = kill_or_answer  # type: ignore[method-assign]
            running.communicate(timeout=60)
            killed += running.returncode == -signal.SIGKILL
        assert killed == 3
        server.answer = answer  # type: ignore[method-assign]
        (last,) = made.document("sync", "it", "--force")["connections"]
        assert last["outcome"] == "done"
    assert messages(made) == MESSAGES


@pytest.mark.parametrize("toolkit", TOOLKITS)
def test_a_day_without_requests_left_pauses_and_the_rest_comes_with_a_larger_budget(
    tmp_path: Path, toolkit: str
) -> None:
    server, keys = source(toolkit)
    with server:
        made = project(tmp_path, toolkit, server, {**keys, "daily_requests": 2})
        (paused,) = made.document("sync", "it")["connections"]
        assert (paused["outcome"], paused["requests"], paused["more_pending"]) == ("paused", 2, True)
        made = project(tmp_path, toolkit, server, keys)
        (done,) = made.document("sync", "it", "--force")["connections"]
        assert done["outcome"] == "done"
        assert messages(made) == MESSAGES
