"""A project folder on disk, and `chatproc` run in it as real processes.

A command is run by a child of a process that has the imports behind it (`Warm`): an ordinary process of its
own, which can be killed, limited and interrupted, and starts in milliseconds. `Project.cold` starts one from
nothing, as a person does, and any number of them at the same time.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parent.parent
PROGRAM = (sys.executable, "-c", "from chatproc.cli.main import main; main()")
START = 1_782_871_200
"""`sent_at` of the first message of a chat: 2026-07-01T10:00:00+08:00."""

PATIENCE = 90.0
"""Seconds after which a command hangs: it is killed and the test fails."""

Event = dict[str, Any]


# ── events ───────────────────────────────────────────────────────────────────────────────────────────


def event(key: str, text: str = "", **more: Any) -> Event:  # noqa: ANN401 - any field
    """An event with the required fields; `conversation` may be just its id."""
    conversation = more.pop("conversation", "lab")
    if isinstance(conversation, str):
        conversation = {"id": conversation, "name": f"群{conversation}", "type": "group"}
    revision = more.get("revision", 0)
    return {
        "schema": "chatproc.event/1",
        "event_id": f"e-{key}-{revision}",
        "message_key": key,
        "revision": revision,
        "platform": "qq",
        "account_id": "10000",
        "conversation": conversation,
        "sent_at": START,
        "sender": {"id": "10001", "name": "王老师"},
        "text": text,
        **more,
    }


def chat(conversation: str, *texts: str, begin: int = 0) -> list[Event]:
    """Messages of one conversation, each proven to follow the one before, a minute apart."""
    return [
        event(
            f"{conversation}{number}",
            text,
            conversation=conversation,
            sent_at=START + 60 * number,
            sequence={"index": number, "predecessor": f"{conversation}{number - 1}" if number else None},
        )
        for number, text in enumerate(texts, begin)
    ]


def lines(*events: Event | str) -> str:
    """A batch: an event a line; texts as they are."""
    texts = [it if isinstance(it, str) else json.dumps(it, ensure_ascii=False) for it in events]
    return "".join(f"{text}\n" for text in texts)


# ── processes ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Done:
    """How a command ended; a negative code is the signal that ended it."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


_WARM = """
import gc, json, os, resource, signal, sys
import rich.console, rich.progress, rich.table
import chatproc.agent.session, chatproc.attachments, chatproc.config, chatproc.credentials
import chatproc.pipeline, chatproc.rules
from chatproc.agent import client, prompt
from chatproc.cli.main import run
from tests.breaking.faults import arm

gc.freeze()  # what is there is not copied page by page when a child collects
for line in sys.stdin:
    call = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(json.dumps(child), flush=True)
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), flush=True)
else:
    sys.exit()

os.chdir(call["cwd"])
os.environ.clear()
os.environ.update(call["env"])
sys.path[:0] = call["paths"]
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for number, path in ((1, call["out"]), (2, call["err"])):
    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
if call["file_limit"] is not None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (call["file_limit"], resource.RLIM_INFINITY))
if call["stopped"]:
    os.kill(os.getpid(), signal.SIGSTOP)
if call["fault"] is not None:
    arm(call["fault"])
code = run(call["arguments"])
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # taking down all that was imported takes longer than the command
"""


class Warm:
    """Forks one command after the other, each once the one before has ended."""

    def __init__(
        self, package: Path | None = None, *, program: str = _WARM, environment: dict[str, str] | None = None
    ) -> None:
        whole = {**os.environ, "PYTHONWARNINGS": "ignore", **(environment or {})}
        if package is not None:
            whole["PYTHONPATH"] = str(package)
        command = [sys.executable, "-c", program]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, env=whole, cwd=ROOT)
        self._unread = b""
        self._running = 0
        atexit.register(self.close)

    def close(self) -> None:
        if self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._running, signal.SIGKILL)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()

    def start(self, call: dict[str, Any]) -> Running:
        assert not self._running, "one command at a time: the last one has not been waited for"
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(call).encode() + b"\n")
        self._running = int(self.answer(PATIENCE))
        return Running(self, self._running, Path(call["out"]), Path(call["err"]))

    def answer(self, seconds: float) -> bytes:
        """The next line that the process says.

        Raises:
            TimeoutError: It says nothing for so long.
        """
        assert self._process.stdout is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = until - time.monotonic()
            if not select.select([self._process.stdout], [], [], max(0.0, left))[0]:
                raise TimeoutError
            piece = os.read(self._process.stdout.fileno(), 4096)
            assert piece, "the process that forks commands has gone"
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def ended(self) -> None:
        self._running = 0


class Running:
    """A command at work."""

    def __init__(self, warm: Warm, pid: int, out: Path, err: Path) -> None:
        self._warm = warm
        self.pid = pid
        self._out = out
        self._err = err

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, seconds: float = PATIENCE) -> Done:
        """How it ended; one that hangs is killed.

        Raises:
            TimeoutError: It hung.
        """
        try:
            return self._done(self._warm.answer(seconds))
        except TimeoutError:
            self.kill()
            raise

    def kill_after(self, seconds: float) -> Done:
        """Let it work for so long, then kill it; it may have ended by itself before."""
        try:
            return self._done(self._warm.answer(seconds))
        except TimeoutError:
            return self.kill()

    def kill(self) -> Done:
        self.send(signal.SIGKILL)
        return self._done(self._warm.answer(PATIENCE))

    def _done(self, code: bytes) -> Done:
        self._warm.ended()
        texts = [path.read_text(encoding="utf-8") for path in (self._out, self._err)]
        return Done(int(code), *texts)


@functools.cache
def warm(package: Path | None = None, preload: Path | None = None) -> Warm:
    """The process that forks commands of the installed package, or of a copy of it in a folder."""
    return Warm(package, environment={} if preload is None else {"LD_PRELOAD": str(preload)})


# ── the project ──────────────────────────────────────────────────────────────────────────────────────


class Project:
    """A project folder with `config/processor.toml`, rules, `in/` for batches and `out/` for todos."""

    def __init__(self, root: Path, base_url: str = "", *, package: Path | None = None) -> None:
        self.root = root
        self.inbox = root / "in"
        self.output = root / "out"
        self.state = root / "state" / "state.db"
        self.rules = root / "processing-rules" / "default.md"
        self.package = package
        self.preload: Path | None = None
        """A library that its processes load before all others."""
        self.paths: tuple[Path, ...] = ()
        """Folders of further packages, for its processes."""
        self.environment: dict[str, str] = {}
        self.streams = root.parent / f"{root.name}.streams"
        for folder in (self.inbox, self.rules.parent, root / "config", self.streams):
            folder.mkdir(parents=True, exist_ok=True)
        self.rules.write_text("P0: today. Everything else is P3.\n", encoding="utf-8")
        self._sections: dict[str, dict[str, Any]] = {
            "input": {"paths": ["in/*"], "settle_seconds": 0},
            "storage": {"state": "state/state.db", "output": "out"},
            "agent": {"model": "stand-in", "api_key_env": "", "api_key_file": "", "retries": 0},
        }
        self._connections: list[tuple[str, dict[str, Any]]] = []
        self._targets: list[dict[str, Any]] = []
        self.configure(agent={"base_url": base_url})

    def configure(self, **sections: dict[str, Any]) -> Self:
        """Set keys of the configuration, the others stay."""
        for name, keys in sections.items():
            self._sections.setdefault(name, {}).update(keys)
        text = "".join(
            f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
            for name, keys in self._sections.items()
        )
        lists = [("connections", {"toolkit": toolkit, **keys}) for toolkit, keys in self._connections]
        for name, keys in [*lists, *(("publish", keys) for keys in self._targets)]:
            text += f"[[{name}]]\n"
            text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        (self.root / "config" / "processor.toml").write_text(text, encoding="utf-8")
        return self

    def connect(self, *several: tuple[str, dict[str, Any]], **single: dict[str, Any]) -> Self:
        """Set the connections: pairs of a toolkit and its keys, or one of each toolkit by name."""
        self._connections = [*several, *single.items()]
        return self.configure()

    def targets(self, *several: dict[str, Any]) -> Self:
        """Set the targets to publish to."""
        self._targets = list(several)
        return self.configure()

    def batch(self, name: str, *events: Event | str) -> Path:
        """Write a batch file, whole."""
        file = self.inbox / name
        file.write_text(lines(*events), encoding="utf-8")
        return file

    def start(
        self,
        *arguments: str,
        file_limit: int | None = None,
        stopped: bool = False,
        fault: list[str | int] | None = None,
    ) -> Running:
        """Start a command; no other may be at work but cold ones.

        Args:
            arguments: The command and its own.
            file_limit: Bytes beyond which no file can be written (`EFBIG`, as a quota would).
            stopped: It stops before it begins, until it is sent `SIGCONT`.
            fault: What befalls its calls to the system (`tests.breaking.faults`), where `preload` is set.
        """
        call = {
            "cwd": str(self.root),
            "env": self._environment(),
            "paths": [str(path) for path in self.paths],
            "out": str(self.streams / "out"),
            "err": str(self.streams / "err"),
            "file_limit": file_limit,
            "stopped": stopped,
            "fault": fault,
            "arguments": arguments,
        }
        return warm(self.package, self.preload).start(call)

    def cold(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command from nothing, in a process group of its own."""
        environment = self._environment()
        if self.package is not None:
            environment["PYTHONPATH"] = str(self.package)
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=self.root,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def call(self, *arguments: str, code: int = 0) -> Done:
        """Run a command to its end, which must be this code; never a traceback."""
        done = self.start(*arguments).wait()
        assert "Traceback" not in done.err
        assert done.code == code, done
        return done

    def document(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What a command shows with `--json`."""
        return self.call(*arguments, "--json", code=code).document

    def once(self, code: int = 0) -> dict[str, Any]:
        return self.document("once", code=code)

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CHAT")}
        if self.paths:
            kept["PYTHONPATH"] = os.pathsep.join([*map(str, self.paths), kept.get("PYTHONPATH", "")])
        return {**kept, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore", **self.environment}

    # ── what there is ────────────────────────────────────────────────────────────────────────────────

    def files(self) -> dict[str, bytes | None]:
        """Every file with its bytes, and every folder, by its path."""
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else None
            for path in sorted(self.root.rglob("*"))
        }

    def published(self) -> dict[str, bytes]:
        """The output files, by name."""
        return {path.name: path.read_bytes() for path in sorted(self.output.glob("*.jsonl"))}

    def events(self) -> list[dict[str, Any]]:
        """The events of the output files, in order."""
        return [json.loads(line) for text in self.published().values() for line in text.splitlines()]

    def tasks(self, *filters: str) -> list[dict[str, Any]]:
        tasks: list[dict[str, Any]] = self.document("tasks", "--limit", "1000", *filters)["tasks"]
        return tasks

    def status(self) -> dict[str, Any]:
        return self.document("status")

    def pending(self) -> int:
        """How many groups are pending."""
        pending: int = self.document("preview")["pending"]
        return pending

    def outcome(self) -> dict[str, Any]:
        """What two runs must agree on: counts, tasks and events, without times, usage, rows and borders."""
        status = self.status()
        del status["last_round"], status["retry"]
        return {
            "status": status,
            "tasks": sorted((_timeless(task) for task in self.tasks()), key=lambda task: task["task_id"]),
            "events": sorted(
                ({**event, "emitted_at": None, "task": _timeless(event["task"])} for event in self.events()),
                key=lambda event: (event["task_id"], event["revision"]),
            ),
        }

    def check_published(self) -> None:
        """Each revision of each task is published once, in order, in whole files of private mode."""
        seen = [(event["task_id"], event["revision"]) for event in self.events()]
        assert len(seen) == len(set(seen))
        for task_id, revision in seen:
            assert revision == 1 or seen.index((task_id, revision - 1)) < seen.index((task_id, revision))
        assert not list(self.output.glob("*.tmp"))
        assert {file.stat().st_mode & 0o777 for file in self.output.iterdir()} <= {0o600}


def _timeless(task: dict[str, Any]) -> dict[str, Any]:
    processing = {name: it for name, it in task["processing"].items() if name not in {"time", "usage"}}
    assert len(processing) == len(task["processing"]) - 2
    return {**task, "processing": processing, "updated_at": None}
