"""What `check` looks at: configuration, rules, inputs, permissions, tools, secrets, servers on loopback.

It reads and asks, and changes nothing; the only network it touches is this machine's own loopback.
"""

from __future__ import annotations

import contextlib
import glob
import http.client
import importlib.util
import itertools
import json
import os
import shutil
import stat
import threading
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from chatproc.agent import weights
from chatproc.config import CaldavTarget, is_loopback, not_configured_error
from chatproc.credentials import read_api_key, read_secret, read_target_secret
from chatproc.errors import ChatprocError, CredentialError
from chatproc.rules import read_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from chatproc.config import Config, ConnectionConfig, Target

_SECONDS_A_SERVER = 0.3
_MOST_MODELS = 50
_LARGEST_ANSWER = 4 * 1024 * 1024
_MOST_FILES = 100_000


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    topic: str
    state: Literal["ok", "note", "broken"]
    text: str
    hint: str | None = None
    exit_code: int = 0
    """What `check` exits with because of this."""


@dataclass(frozen=True)
class Server:
    """A model server that answered on loopback."""

    kind: str
    base_url: str
    models: tuple[str, ...]
    note: str | None
    chosen: bool
    """Whether `agent.base_url` names it."""

    def to_dict(self) -> dict[str, object]:
        """The same as plain JSON values."""
        return {**asdict(self), "models": list(self.models)}

    def config_lines(self) -> list[str]:
        """The lines for `[agent]` that choose this server and its first model."""
        model = self.models[0] if self.models else ""
        return [
            f"base_url = {json.dumps(self.base_url)}",
            f"model = {json.dumps(model, ensure_ascii=False)}",
            'api_key_env = ""',
            'api_key_file = ""',
        ]


@dataclass(frozen=True)
class Probe:
    """How one kind of server is recognised."""

    kind: str
    port: int
    path: str
    note: str | None = None


PROBES = (
    Probe(
        "Ollama",
        11434,
        "/api/tags",
        "its default context of 4096 tokens cuts silently: start it with OLLAMA_CONTEXT_LENGTH=32768 "
        "and write context_window = 32768",
    ),
    Probe("LM Studio", 1234, "/v1/models"),
    Probe("llama.cpp", 8080, "/v1/models"),
)
"""The servers that people run; each is asked once, for at most 0.3 seconds."""


def check_project(config: Config) -> list[Finding]:
    """Look at everything that a round will need, without a model call.

    Args:
        config: A configuration that was read without error.

    Example:
        >>> [found.topic for found in check_project(config) if found.state == "broken"]  # doctest: +SKIP
        []
    """
    findings = [
        Finding("configuration", "ok", str(config.file)),
        _rules(config),
        *_inputs(config),
        *_attachments(config),
        _folder("store", config.storage.state.parent),
        _folder("output", config.storage.output),
        _model(config),
    ]
    if config.agent.is_configured:
        findings.append(_credential(config))
    findings += [_connection(config, connection) for connection in config.connections if connection.enabled]
    findings += [_target(config, target) for target in config.publish]
    findings += _dotenv(config.root / ".env")
    return findings


def exit_code(findings: Sequence[Finding]) -> int:
    """What the CLI exits with: 2 before 5 before 0.

    Args:
        findings: Of one check.
    """
    codes = {found.exit_code for found in findings}
    return next((code for code in (2, 5) if code in codes), 0)


def _broken(topic: str, error: ChatprocError) -> Finding:
    return Finding(topic, "broken", str(error), error.hint, error.exit_code)


def _rules(config: Config) -> Finding:
    try:
        rules = read_rules(config.rules.file)
    except ChatprocError as error:
        return _broken("rules", error)
    return Finding("rules", "ok", f"{rules.file}, {len(rules.text)} characters")


def _inputs(config: Config) -> Iterator[Finding]:
    counts: dict[str, int] = {}
    for pattern in config.input.paths:
        names = glob.iglob(pattern, recursive=True)  # noqa: PTH207 - an absolute glob
        # The bound keeps a check of a huge archive short.
        found = list(itertools.islice(names, _MOST_FILES))
        counts[pattern] = len(found)
        closed = next((file for file in found if not os.access(file, os.R_OK)), None)
        if closed is not None:
            yield Finding("inputs", "broken", f"{closed} cannot be read", "give yourself leave to read it", 2)
    for pattern, count in counts.items():
        if count:
            more = "at least " if count == _MOST_FILES else ""
            yield Finding("inputs", "ok", f"{more}{count} at {pattern}")
    if not any(counts.values()):
        places = ", ".join(counts) or "input.paths is empty"
        hint = "`chatproc import FORMAT PATH` writes some; input.paths says where they lie"
        yield Finding("inputs", "note", f"no batches yet: {places}", hint)


def _attachments(config: Config) -> Iterator[Finding]:
    """Whether attachments can be read, and how far their parsers are shut in."""
    root = config.input.archive_root
    if root is None:
        return
    if not root.is_dir():
        yield Finding("attachments", "broken", f"input.archive_root is no folder: {root}", None, 2)
        return
    yield _reading_process(config)
    if shutil.which("soffice", path=os.defpath) is None:
        text = "no LibreOffice: DOC, RTF, ODT, WPS, PPT and PPTX cannot be read"
        yield Finding(
            "attachments", "note", text, "install LibreOffice, on Debian `libreoffice-writer-nogui`"
        )


def _reading_process(config: Config) -> Finding:
    from chatproc.attachments import Limits, UnreadableError
    from chatproc.attachments.isolation import Reader

    limits = Limits(**config.attachments.model_dump(), vision=config.agent.vision)
    try:
        with contextlib.closing(Reader(limits)) as reader:
            ways = reader.network
    except UnreadableError:
        return Finding("attachments", "broken", "the process that reads them does not start", None, 2)
    where = f"{config.input.archive_root}, read in a process of its own"
    if "namespace" in ways:
        return Finding("attachments", "ok", f"{where} without a network")
    if "filter" in ways:
        text = f"{where}; this kernel refuses it an empty network, so sockets are refused by a filter"
        return Finding("attachments", "ok", text)
    text = f"{where}; this system cannot cut it off the network: only Python's own sockets are blocked"
    return Finding("attachments", "note", text, "read archives of people you trust, or use Linux")


def _folder(topic: str, folder: Path) -> Finding:
    """Whether files can be made in a folder, or the folder itself where it is not there yet."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        return Finding(topic, "broken", f"{nearest} is not a folder", None, 2)
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Finding(topic, "broken", f"{nearest} cannot be written", f"chmod u+rwx {nearest}", 2)
    return Finding(topic, "ok", str(folder) if nearest == folder else f"{folder} (will be made)")


def _model(config: Config) -> Finding:
    agent = config.agent
    if not agent.is_configured:
        error = not_configured_error(config.file)
        return Finding("model", "note", str(error), error.hint)
    if not agent.is_local:
        return Finding("model", "ok", f"{agent.model} at {agent.base_url}")
    if importlib.util.find_spec("xllamacpp") is None:
        hint = "pip install 'chatproc[local]'"
        return Finding("model", "broken", 'base_url = "local" needs the extra `local`', hint, 2)
    try:
        file = weights.path_of() if agent.local_model is None else weights.own_file(agent.local_model)
    except ChatprocError as error:
        return _broken("model", error)
    return Finding("model", "ok", f"in this process: {file}")


def _credential(config: Config) -> Finding:
    try:
        key = read_api_key(config)
    except CredentialError as error:
        return _broken("key", error)
    return Finding("key", "ok", "none wanted" if key is None else "found")


def _connection(config: Config, connection: ConnectionConfig) -> Finding:
    """Whether a sync could begin; no source is asked."""
    name = f"{connection.toolkit}/{connection.id}"
    try:
        secret = read_secret(config, connection)
    except CredentialError as error:
        return _broken("connections", error)
    if secret is None and connection.wants_secret:
        hint = 'write secret_file = "secrets/NAME.txt" into the entry, the password or token into that file'
        text = f"{name} has neither secret_file nor secret_env"
        return Finding("connections", "broken", text, hint, CredentialError.exit_code)
    return Finding("connections", "ok", name if secret is None else f"{name}, secret found")


def _target(config: Config, target: Target) -> Finding:
    """Whether a publish could begin; no server is asked."""
    if not isinstance(target, CaldavTarget):
        return _folder("publish", target.file.parent)
    try:
        secret = read_target_secret(config, target)
    except CredentialError as error:
        return _broken("publish", error)
    found = "no password" if secret is None else "password found"
    return Finding("publish", "ok", f"{target.name}, {found}")


def _dotenv(file: Path) -> Iterator[Finding]:
    try:
        mode = file.stat().st_mode
    except OSError:
        return
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding("key", "note", f"other users can open {file}", f"chmod 600 {file}")


def loopback_servers(base_url: str = "", probes: Sequence[Probe] = PROBES) -> list[Server]:
    """The model servers that run on this machine.

    Args:
        base_url: `agent.base_url`, to tell which of them is chosen.
        probes: Whom to ask.

    Returns:
        Those that answered within 0.3 seconds, in the order of `probes`. Nothing is chosen by this.

    Example:
        >>> [server.kind for server in loopback_servers()]  # doctest: +SKIP
        ['Ollama']
    """
    answers: dict[int, tuple[str, ...]] = {}

    def ask(number: int, probe: Probe) -> None:
        models = _models_of(probe)
        if models is not None:
            answers[number] = models

    # Daemon threads with one deadline: a server that sends a byte now and then delays nobody.
    asking = [threading.Thread(target=ask, args=numbered, daemon=True) for numbered in enumerate(probes)]
    for thread in asking:
        thread.start()
    deadline = time.monotonic() + _SECONDS_A_SERVER
    for thread in asking:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [
        Server(
            kind=probe.kind,
            base_url=f"http://127.0.0.1:{probe.port}/v1",
            models=answers[number],
            note=probe.note,
            chosen=_is_at(base_url, probe.port),
        )
        for number, probe in enumerate(probes)
        if number in answers
    ]


def _is_at(base_url: str, port: int) -> bool:
    return base_url.startswith("http") and is_loopback(base_url) and urlsplit(base_url).port == port


def _models_of(probe: Probe) -> tuple[str, ...] | None:
    """The names of a server's models, or `None` when nothing of this kind answers."""
    connection = http.client.HTTPConnection("127.0.0.1", probe.port, timeout=_SECONDS_A_SERVER)
    try:
        connection.request("GET", probe.path, headers={"Accept": "application/json"})
        answer = json.loads(connection.getresponse().read(_LARGEST_ANSWER))
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    key, name = ("models", "name") if probe.path == "/api/tags" else ("data", "id")
    listed = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return None
    names = [entry.get(name) for entry in listed if isinstance(entry, dict)]
    # Ollama's `:cloud` models run elsewhere, whatever the address says.
    here = [text for text in names if isinstance(text, str) and text and not text.endswith(":cloud")]
    return tuple(here[:_MOST_MODELS])


def check_document(
    findings: Sequence[Finding], servers: Sequence[Server], ping: dict[str, object] | None
) -> dict[str, object]:
    """The document of `check --json`.

    Args:
        findings: Of `check_project`.
        servers: Of `loopback_servers`.
        ping: What the endpoint can do, when it was asked.
    """
    shown = [
        {"topic": found.topic, "state": found.state, "text": found.text, "hint": found.hint}
        for found in findings
    ]
    return {"findings": shown, "servers": [server.to_dict() for server in servers], "ping": ping}
