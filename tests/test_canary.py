"""No secret ever leaves its place: every command and every class of failure, with a canary in each place.

The servers here repeat whatever they are sent, in their errors too. What is searched is all that a command
says, all that lies in the project beside the secrets' own files, and all that any other server received.
A new command is met by itself: commands are those that the program has.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import click
import pytest

from chatproc.cli.main import cli
from chatproc.errors import without_secret
from tests.project import PATIENCE, Project, chat
from tests.sse import ModelServer, one_task_each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "sk-canary/Zq7+vRkT2mX9=wLp"
TOKEN = "tok-canary.H4s8Yd1bNe6U"  # noqa: S105 - opens nothing
PASSWORD = 'pass canary "J5f0" Gx3&Qa%'  # noqa: S105 - opens nothing
SECRETS = (KEY, TOKEN, PASSWORD)
LASTING = {"console", "run"}
"""Commands that end by a signal."""
SHORTEST = 8
"""So many letters of a secret in a row are a leak."""


def traces(secret: str) -> set[bytes]:
    """What a leak of the secret would hold, whatever it was put through."""
    pieces = {secret[at : at + SHORTEST] for at in range(len(secret) - SHORTEST + 1)}
    texts = {json.dumps(secret)[1:-1], quote(secret, safe=""), secret.encode().hex()} | pieces
    for before in range(3):
        coded = base64.b64encode(b"-" * before + secret.encode()).decode()
        texts.add(coded[4:-4])
    return {text.encode() for text in texts} | {secret.encode("utf-16-le")}


TRACES = {trace for secret in SECRETS for trace in traces(secret)}


def assert_silent(content: bytes, place: object) -> None:
    found = sorted(trace for trace in TRACES if trace in content)
    assert not found, f"{place} holds {found[:3]}"


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────


class Echo(ThreadingHTTPServer):
    """Answers as `mode` says, with all that it was sent; as another origin it only keeps that."""

    daemon_threads = True

    def __init__(self, mode: str, elsewhere: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Echoing)
        self.mode = mode
        self.elsewhere = elsewhere
        self.received: list[bytes] = []
        self.stopping = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news."""


class _Echoing(BaseHTTPRequestHandler):
    server: Echo
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.received.append(f"{self.requestline}\n{self.headers}".encode() + body)
        mode = self.server.mode
        if mode == "hang":
            self.server.stopping.wait(PATIENCE)
            self.close_connection = True
            return
        sent = self.headers.get("Authorization", "nothing")
        secret = sent.removeprefix("Bearer ")
        coded = (quote(secret, safe=""), base64.b64encode(sent.encode()).decode(), secret.encode().hex())
        cut = f"{'x' * (190 - len(secret) // 2)} {secret}"
        words = {"cut": cut, "coded": " ".join(coded)}.get(mode, f"you sent {sent}")
        status = {"redirect": 307, "malformed": 200, "rate": 429, "crash": 500}.get(mode, 401)
        told = {"error": {"message": words}} if "/v1/" in self.path else {"error": words, "message": words}
        content = json.dumps(told).encode()
        if mode == "malformed":
            content = f'data: {{"choices": [{{"delta": "{secret}\n\n: {sent}\n\ndata: [DONE'.encode()
        self.send_response(status, f"no {secret}" if mode == "crash" else "no")
        if mode == "redirect":
            self.send_header("Location", f"{self.server.elsewhere}{self.path}?key={quote(secret)}")
        self.send_header("Content-Type", "text/event-stream" if mode == "malformed" else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("WWW-Authenticate", sent)
        self.end_headers()
        self.wfile.write(content)


class Mailbox:
    """An IMAP server that says no to every login, in its client's own words."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._speak, args=(peer,), daemon=True).start()

    @staticmethod
    def _speak(peer: socket.socket) -> None:
        with peer, peer.makefile("rwb", buffering=0) as wire:
            wire.write(b"* OK ready\r\n")
            for line in wire:
                tag, _, rest = line.strip().partition(b" ")
                if rest.upper().startswith(b"CAPABILITY"):
                    wire.write(b"* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n" + tag + b" OK done\r\n")
                elif rest.upper().startswith(b"LOGOUT"):
                    wire.write(b"* BYE\r\n" + tag + b" OK done\r\n")
                    return
                elif rest.upper().startswith(b"AUTHENTICATE"):
                    wire.write(b"+ \r\n")
                    told = next(wire, b"").strip()
                    plain = base64.b64decode(told + b"==", validate=False).replace(b"\0", b" ")
                    no = b" NO [AUTHENTICATIONFAILED] not "
                    wire.write(tag + no + told + b" alias " + plain + b"\r\n")
                else:
                    wire.write(tag + b" NO [AUTHENTICATIONFAILED] you said " + rest + b"\r\n")


# ── the project ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """One with something in each table, and a canary in each place that can hold a secret."""
    made = Project(tmp_path / "project")
    made.batch("a.jsonl", *chat("lab", "交报告", "请周五前交"), "{ no event")
    secrets = made.root / "secrets"
    secrets.mkdir()
    for name, secret in (("token", TOKEN), ("password", PASSWORD), ("key", KEY)):
        (secrets / name).write_text(secret, encoding="utf-8")
        (secrets / name).chmod(0o600)
    (made.root / ".env").write_text(f"CANARY_TOKEN={TOKEN}\nCANARY_KEY='{KEY}'\n", encoding="utf-8")
    made.environment = {"CANARY_KEY": KEY, "CANARY_PASSWORD": PASSWORD, "BROWSER": "true"}
    return made


def connections(url: str, port: int) -> list[tuple[str, dict[str, Any]]]:
    """One of each toolkit that asks a server, its secret in another place each time."""
    return [
        ("onebot", {"id": "ob", "base_url": url, "groups": ["1"], "secret_file": "secrets/token"}),
        ("chatlab", {"id": "cl", "base_url": url, "sources": ["1"], "secret_env": "CANARY_TOKEN"}),
        ("matrix", {"id": "mx", "homeserver": url, "user": "@a:b", "rooms": ["!r:b"],
                    "secret_env": "CANARY_KEY"}),
        ("imap", {"id": "im", "host": "127.0.0.1", "port": port, "tls": False, "user": "me",
                  "secret_env": "CANARY_PASSWORD"}),
    ]  # fmt: skip


KEY_PLACES = {
    "variable": {"api_key_env": "CANARY_KEY", "api_key_file": ""},
    "file": {"api_key_env": "", "api_key_file": "secrets/key"},
}


def search(project: Project, *received: bytes) -> None:
    """Look through all that a command left and said."""
    own = {project.root / ".env", *(project.root / "secrets").iterdir()}
    for folder in (project.root, project.streams):
        for file in folder.rglob("*"):
            if file.is_file() and file not in own:
                assert_silent(str(file).encode() + file.read_bytes(), file.relative_to(folder))
    for content in received:
        assert_silent(content, "what another server received")


# ── every command ────────────────────────────────────────────────────────────────────────────────────


def calls_of(name: str, command: click.Command, known: dict[str, str]) -> Iterator[list[str]]:
    """The command with each choice of its arguments and each of its flags."""
    lists: list[list[str]] = [[]]
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.name != "line_id":
            if isinstance(parameter.type, click.Choice):
                lists = [
                    [*arguments, str(choice)] for arguments in lists for choice in parameter.type.choices
                ]
            elif parameter.required or parameter.name in known:
                lists = [[*arguments, known.get(str(parameter.name), "x")] for arguments in lists]
    if name in {"model", "quarantine"}:
        # A model is fetched from the network: here from a file that is not there.
        more = ["--file", "none.gguf"] if name == "model" else ["1"]
        lists = [arguments if arguments[0] == "list" else [*arguments, *more] for arguments in lists]
    common = {"as_json", "quiet", "help"}
    flags = [
        parameter.opts[0]
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.is_flag and parameter.name not in common
    ]
    for arguments in lists:
        yield from ([name, *arguments, *more] for more in ([], *([flag] for flag in flags)))


def test_every_command_keeps_every_secret(project: Project) -> None:
    with ModelServer(one_task_each) as model, Echo("echo") as server, Mailbox() as mailbox:
        project.connect(*connections(server.url, mailbox.port))
        list_ = {"kind": "caldav", "name": "list", "url": server.url, "user": "me"}
        project.targets({**list_, "secret_env": "CANARY_PASSWORD"})
        project.configure(agent={"base_url": model.base_url, **KEY_PLACES["variable"]})
        project.call("once", "-vv", code=3)
        (task, *_) = project.tasks()
        export = {"name": "x", "type": "personal_chat", "id": 1, "messages": []}
        (project.root / "result.json").write_text(json.dumps(export))
        known = {
            "folder": "fresh", "task_id": task["task_id"], "message_key": "lab1", "form": "telegram",
            "paths": "result.json",
        }  # fmt: skip
        met = 0
        for name, command in sorted(cli.commands.items()):
            for arguments in calls_of(name, command, known):
                if arguments == ["run"]:
                    continue  # it has a test of its own
                done = project.start(*arguments, "-vv").kill_after(5.0 if name in LASTING else PATIENCE)
                ended = {0, 1, 2, 3, 4, 5, -signal.SIGKILL} if name in LASTING else {0, 1, 2, 3, 4, 5}
                assert done.code in ended, (arguments, done)
                assert_silent(f"{done.out}{done.err}".encode(), arguments)
                met += 1
        assert met > len(cli.commands)
        assert any(KEY in request.headers["authorization"] for request in model.requests)
        received = b"".join(server.received)
        assert TOKEN.encode() in received, "the canaries fly at all"
        search(project)


def test_run_keeps_every_secret(project: Project) -> None:
    with ModelServer(one_task_each) as model, Echo("echo") as server, Mailbox() as mailbox:
        project.connect(*connections(server.url, mailbox.port))
        project.configure(agent={"base_url": model.base_url, **KEY_PLACES["file"]})
        running = project.cold("run", "-vv", "--log-format", "json")
        assert model.arrived.wait(PATIENCE)
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=PATIENCE)
        assert running.returncode == 0
        assert_silent(f"{out}{err}".encode(), "run")
        search(project)


# ── every failure ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "mode", ["echo", "cut", "coded", "redirect", "malformed", "rate", "crash", "hang", "tls", "gone"]
)
def test_every_failure_of_a_server_keeps_every_secret(project: Project, mode: str) -> None:
    with Echo("echo") as elsewhere, Echo(mode, elsewhere.url) as server, Mailbox() as mailbox:
        url = server.url.replace("http:", "https:") if mode == "tls" else server.url
        if mode == "gone":
            with socket.create_server(("127.0.0.1", 0)) as closed:
                url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        sources = connections(url, mailbox.port)
        # A source that hangs is waited for as long as a person's patience: that is not the matter here.
        project.connect(*(sources[-1:] if mode == "hang" else sources))
        place = KEY_PLACES["file" if mode in {"echo", "tls"} else "variable"]
        project.configure(agent={"base_url": f"{url}/v1", "timeout_seconds": 0.3, **place})
        for arguments in (["once"], ["check", "--ping"], ["sync", "--force"], ["connections"], ["status"]):
            done = project.start(*arguments, "-vv").wait()
            assert_silent(f"{done.out}{done.err}".encode(), arguments)
        received = b"".join(server.received)
        assert mode in {"tls", "gone"} or KEY.encode() in received
        search(project, *elsewhere.received)


@pytest.mark.parametrize(
    "keys",
    [
        {"agent": {"api_key": KEY}},
        {"agent": {"api_key_env": KEY, "api_key_file": ""}},
        {"agent": {"api_key_env": "", "api_key_file": KEY.replace("/", "_")}},
        {"agent": {"base_url": f"https://me:{quote(KEY, safe='')}@127.0.0.1/v1"}},
        {"agent": {"base_url": f"https://127.0.0.1/v1?key={quote(KEY, safe='')}"}},
        {"agent": {"extra_body": {"key": KEY}, "retries": "many"}},
        {"agent": {"extra_body": KEY}},
    ],
)  # fmt: skip
def test_a_key_that_was_put_in_the_wrong_place_is_not_repeated(
    project: Project, keys: dict[str, Any]
) -> None:
    project.configure(**keys)
    (project.root / "config" / "processor.toml").rename(project.root / "secrets" / "processor.toml")
    for arguments in (["status"], ["once"], ["check"]):
        done = project.start(*arguments, "-vv", "--config", "secrets/processor.toml").wait()
        assert_silent(f"{done.out}{done.err}".encode(), arguments)
    search(project)


@pytest.mark.parametrize("broken", ["open to others", "two lines", "UTF-16", "a folder"])
def test_a_secret_that_cannot_be_used_is_not_repeated(project: Project, broken: str) -> None:
    file = project.root / "secrets" / "key"
    if broken == "open to others":
        file.chmod(0o644)
    elif broken == "a folder":
        file.unlink()
        file.mkdir()
    else:
        text = KEY.encode("utf-16") if broken == "UTF-16" else f"{KEY}\n{KEY}".encode()
        file.write_bytes(text)
    with ModelServer(one_task_each) as model:
        project.configure(agent={"base_url": model.base_url, **KEY_PLACES["file"]})
        url = model.base_url.removesuffix("/v1")
        keys = {"id": "ob", "base_url": url, "groups": ["1"], "secret_file": "secrets/key"}
        project.connect(("onebot", keys))
        for arguments in (["once"], ["check", "--ping"], ["sync"], ["connections"]):
            done = project.start(*arguments, "-vv").wait()
            assert_silent(f"{done.out}{done.err}".encode(), arguments)
        assert not model.requests
        search(project)


def test_a_process_that_is_aborted_leaves_no_image_of_its_memory(project: Project) -> None:
    with Echo("hang") as server:
        project.configure(agent={"base_url": f"{server.url}/v1", **KEY_PLACES["variable"]})
        soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        try:
            running = project.cold("once", "-vv")
        finally:
            resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
        while not server.received and running.poll() is None:
            server.stopping.wait(0.02)
        os.kill(running.pid, signal.SIGABRT)
        out, err = running.communicate(timeout=PATIENCE)
        assert running.returncode == -signal.SIGABRT
        assert_silent(f"{out}{err}".encode(), "an aborted round")
        assert not list(project.root.glob("core*"))
        search(project)


# ── what servers repeat ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("secret", SECRETS)
def test_a_repeated_secret_is_taken_out_of_a_text_in_every_spelling(secret: str) -> None:
    credentials = base64.b64encode(f"me:{secret}".encode()).decode()
    for spelling in (secret, json.dumps(secret), quote(secret), quote(secret, safe=""), credentials):
        text = without_secret(f"before {spelling} after", secret)
        assert_silent(text.encode(), spelling)
        assert text.startswith("before ")
        assert text.endswith(" after")
    for length in range(SHORTEST, len(secret)):
        assert_silent(without_secret(f"cut {secret[:length]}", secret).encode(), length)
    assert without_secret("nothing of it", secret) == "nothing of it"
    assert without_secret("no secret at all", None) == "no secret at all"
