"""The commands as a person or a script meets them: exit codes, stdout and stderr, help, init, check."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chatproc import check
from chatproc.cli.command import guarded
from chatproc.cli.main import cli, run
from chatproc.cli.voice import Voice
from chatproc.config import load_config
from chatproc.errors import (
    ChatprocError,
    ConfigError,
    CredentialError,
    ModelError,
    StateLockedError,
    StoreVersionError,
    TaskConflict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMANDS = sorted(cli.commands)
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore::RuntimeWarning"}
PROGRAM = [sys.executable, "-c", "from chatproc.cli import main; main()"]


def call(
    *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**ENVIRONMENT, **(env or {})}
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, env=environment, cwd=cwd, check=False
    )


ROOM = " hint: make room on the disk, then try again; what was committed is safe"


def test_the_commands_of_this_version_are_there() -> None:
    assert " ".join(COMMANDS) == (
        "backup cancel check connections console done explain export import init model once preview priority "
        "publish quarantine reopen run status sync task tasks verify"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_common_options_and_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"Example:\n    chatproc {command}" in shown
    for option in ("--config", "--json", "--quiet", "--verbose", "--log-format"):
        assert option in shown


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bogus"],
        ["status", "--bogus"],
        ["tasks", "--limit", "0"],
        ["tasks", "--status", "lost"],
        ["priority", "t_a", "P9"],
        ["done"],
        ["import", "telegram"],
        ["done", "t_a", "--expected-revision", "x"],
    ],
)
def test_wrong_usage_is_2_and_says_so_on_stderr(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in {"init", "model"}])
def test_without_a_configuration_every_command_stops_with_2_and_the_remedy(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"task": ["t_a"], "done": ["t_a"], "reopen": ["t_a"], "cancel": ["t_a"], "priority": ["t_a", "P1"],
            "import": ["telegram", "x"], "explain": ["k"], "backup": ["f"]}  # fmt: skip
    file = tmp_path / "none.toml"
    assert run([command, *more.get(command, []), "--config", str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "error: there is no configuration",
        f"   at: {file}",
        " hint: `chatproc init` writes one; --config names another",
    ]
    assert list(tmp_path.iterdir()) == []


VOICE = Voice(config_file="", as_json=False, quiet=False, verbose=0, log_format="plain")


def raising(error: BaseException) -> Callable[[], int]:
    def body() -> int:
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ChatprocError("x"), 1),
        (ModelError("x", kind="refused"), 1),
        (TaskConflict("x"), 1),
        (StoreVersionError("x"), 1),
        (ConfigError("x"), 2),
        (StateLockedError("x"), 4),
        (CredentialError("x"), 5),
        (OSError(28, "No space left on device", "data/state.db"), 1),
        (FileNotFoundError(2, "No such file or directory", "a.jsonl"), 1),
        (ZeroDivisionError("x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_error_has_its_exit_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(VOICE, raising(error)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_an_error_is_one_line_each_of_what_where_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    error = ChatprocError("a\nb\x1b[2J", where="c\u202e\nd", hint="e\r\nf")
    assert guarded(VOICE, raising(error)) == 1
    assert capsys.readouterr().err == "error: a b\n   at: c d\n hint: e f\n"


def test_an_error_of_the_system_names_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    guarded(VOICE, raising(OSError(28, "No space left on device", "data/state.db")))
    assert capsys.readouterr().err == f"error: No space left on device\n   at: data/state.db\n{ROOM}\n"


def test_a_traceback_comes_with_vv_only(capsys: pytest.CaptureFixture[str]) -> None:
    loud = Voice(config_file="", as_json=False, quiet=False, verbose=2, log_format="plain")
    guarded(loud, raising(ConfigError("x")))
    assert "Traceback" in capsys.readouterr().err


def test_with_a_json_log_every_line_of_stderr_is_a_document(tmp_path: Path) -> None:
    done = call("status", "--config", str(tmp_path / "none"), "--log-format", "json")
    (line,) = done.stderr.splitlines()
    assert json.loads(line)["error"]["exit_code"] == done.returncode == 2
    assert done.stdout == ""


def test_help_loads_no_heavy_module() -> None:
    program = (
        "import sys\nfrom chatproc.cli.main import run\nassert run(['--help']) == 0\n"
        "heavy = {'pydantic', 'openai', 'pydantic_ai', 'rich', 'fitz', 'docx', 'PIL', 'httpx', 'urllib3'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)


def test_a_reader_that_leaves_early_hears_no_complaint(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    running = subprocess.run(
        [*PROGRAM, "init", str(tmp_path), "-q"],
        stdout=writes,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        check=False,
    )
    os.close(writes)
    assert running.stderr == b""
    assert running.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_stdout_is_a_plain_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "init", str(tmp_path), "-q"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == ["error: No space left on device", ROOM]


def test_an_interrupt_is_130_without_a_traceback(tmp_path: Path) -> None:
    """The command waits for a FIFO that nobody writes, so the signal meets it at work."""
    call("init", str(tmp_path), "-q")
    fifo = tmp_path / "config" / "fifo.toml"
    os.mkfifo(fifo)
    running = subprocess.Popen(
        [*PROGRAM, "check", "--config", str(fifo)], stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    # Opening the writing end returns once the command has opened the reading end.
    with fifo.open("wb"):
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
    assert running.stderr is not None
    assert running.stderr.read().decode().startswith("interrupted")
    running.stderr.close()


# ── init ───────────────────────────────────────────────────────────────────────────────────────────────


def test_init_writes_a_project_that_check_accepts_and_git_keeps_secrets_out_of(tmp_path: Path) -> None:
    done = call("init", str(tmp_path / "p"), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["kept"] == []
    assert "chatproc check" in done.stderr
    root = tmp_path / "p"
    assert (root / ".gitignore").read_text().splitlines() == [".env", "secrets/", "data/"]
    assert (root / "secrets").stat().st_mode & 0o077 == 0
    assert load_config(root / "config/processor.toml").root == root
    checked = call("check", "--json", cwd=root, env={"CHAT_PROCESSOR_API_KEY": ""})
    assert checked.returncode == 0, checked.stderr
    findings = json.loads(checked.stdout)["findings"]
    assert {found["state"] for found in findings} == {"ok", "note"}
    assert next(found for found in findings if found["topic"] == "model")["state"] == "note"


def test_init_never_overwrites_and_says_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/processor.toml").write_text("# mine")
    (tmp_path / ".gitignore").write_text("/secrets\n*.pyc")
    document = json.loads(call("init", "--json", cwd=tmp_path).stdout)
    assert "config/processor.toml" in document["kept"]
    assert (tmp_path / "config/processor.toml").read_text() == "# mine"
    assert (tmp_path / ".gitignore").read_text() == "/secrets\n*.pyc\n.env\ndata/\n"
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert json.loads(call("init", "--json", cwd=tmp_path).stdout)["written"] == []
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("language", "word"), [("zh", "任务"), ("en", "task")])
def test_init_writes_the_rules_in_the_language_asked_for(tmp_path: Path, language: str, word: str) -> None:
    call("init", str(tmp_path), "--lang", language)
    assert word in (tmp_path / "processing-rules/default.md").read_text(encoding="utf-8")


# ── check ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CHAT_PROCESSOR_API_KEY", raising=False)
    (tmp_path / "rules.md").write_text("rules")
    return tmp_path


def broken(project: Path, text: str) -> list[check.Finding]:
    (project / "processor.toml").write_text(f'[rules]\nfile = "rules.md"\n{text}')
    findings = check.check_project(load_config(project / "processor.toml"))
    return [found for found in findings if found.state == "broken"]


MODEL = '[agent]\nbase_url = "https://example.org/v1"\nmodel = "m"\n'


def test_check_finds_missing_rules(project: Path) -> None:
    (project / "rules.md").unlink()
    (found,) = broken(project, "")
    assert (found.topic, found.exit_code) == ("rules", 2)


def test_check_finds_a_missing_key_only_where_a_model_is_configured(project: Path) -> None:
    assert broken(project, "") == []
    (found,) = broken(project, MODEL)
    assert (found.topic, found.exit_code) == ("key", 5)


def test_check_finds_a_key_file_that_others_can_read(project: Path) -> None:
    key = project / "key.txt"
    key.write_text("sk-secret")
    key.chmod(0o644)
    (found,) = broken(project, MODEL + 'api_key_file = "key.txt"')
    assert found.hint == f"chmod 600 {key}"
    assert "sk-secret" not in repr(found)


def test_check_finds_a_store_folder_that_is_a_file(project: Path) -> None:
    (project / "data").write_text("")
    assert {found.topic for found in broken(project, "")} == {"store", "output"}


def test_check_finds_a_missing_archive_root(project: Path) -> None:
    (found,) = broken(project, '[input]\narchive_root = "nowhere"')
    assert "nowhere" in found.text


def test_a_broken_configuration_beats_a_missing_key() -> None:
    two = check.Finding("a", "broken", "", None, 2)
    five = check.Finding("b", "broken", "", None, 5)
    assert check.exit_code([five, two]) == 2
    assert check.exit_code([five]) == 5
    assert check.exit_code([]) == 0


# ── servers on loopback ────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def serving(answer: bytes, path: str) -> Iterator[int]:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == path else 404)
            self.end_headers()
            self.wfile.write(answer if self.path == path else b"{}")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_servers_are_found_with_their_models_and_models_that_run_elsewhere_are_left_out() -> None:
    tags = b'{"models": [{"name": "big:cloud"}, {"name": "qwen3:8b"}, {"nonsense": 1}, 7]}'
    listed = b'{"data": [{"id": "local"}]}'
    with serving(tags, "/api/tags") as first, serving(listed, "/v1/models") as second:
        probes = [
            check.Probe("Ollama", first, "/api/tags", "context"),
            check.Probe("x", second, "/v1/models"),
        ]
        ollama, other = check.loopback_servers(f"http://localhost:{first}/v1", probes)
    assert (ollama.kind, ollama.models, ollama.note, ollama.chosen) == (
        "Ollama",
        ("qwen3:8b",),
        "context",
        True,
    )
    assert (other.models, other.chosen) == (("local",), False)
    assert other.config_lines()[:2] == [f'base_url = "http://127.0.0.1:{second}/v1"', 'model = "local"']


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"data": 3}', b"", b"[" * 100_000, b"\xff\xfe"])
def test_another_server_on_the_port_is_not_taken_for_a_model_server(answer: bytes) -> None:
    with serving(answer, "/v1/models") as port:
        assert check.loopback_servers("", [check.Probe("x", port, "/v1/models")]) == []


def test_a_server_that_says_nothing_costs_a_third_of_a_second() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        probe = check.Probe("x", silent.getsockname()[1], "/v1/models")
        assert check.loopback_servers("", [probe] * 3) == []
        assert time.monotonic() - began < 2
