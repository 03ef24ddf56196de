"""The program's side of the reading process: start it, ask it, believe nothing it says, end it.

Whatever happens over there becomes one plain answer for one attachment. It must never wait without a limit,
never leave a process behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chatproc.attachments import frames
from chatproc.attachments.scratch import Scratch, clear_abandoned
from chatproc.attachments.units import CODES, Limits, Unit, UnreadableError, capped, clean

if TYPE_CHECKING:
    from chatproc.attachments.units import Code

CONVERSION_SECONDS = 120.0
"""Wall clock of an answer for which LibreOffice has to convert the file first."""

DOCUMENTS_PER_PROCESS = 200

_START_SECONDS = 30.0
_MOST_UNITS = 10_000_000
_LONGEST_NOTE = 1000
_LONGEST_WORDS = 300
_UNIT_ID = re.compile(r"[pbi][1-9]\d{0,7}", re.ASCII)
_PICTURES = {"image/jpeg": b"\xff\xd8\xff", "image/png": b"\x89PNG\r\n\x1a\n"}

BOOT = "from chatproc.attachments.worker import main; main()"
_PATHS = "import json, sys; sys.path[:] = json.loads(sys.argv[1])['paths']; "


class DeathError(UnreadableError):
    """The reading process had to be ended, or ended itself: what it held open is gone."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A document that the reading process holds open."""

    total: int
    note: str


class Reader:
    """One reading process at a time: started when first asked, kept warm, replaced when it died or is old.

    Args:
        limits: What a document may take.
        boot: The Python statement that the process runs.
        conversion_seconds: Wall clock of an answer that needs a conversion.

    Example:
        >>> with contextlib.closing(Reader(Limits())) as reader:
        ...     opened = reader.open("提交报名表".encode(), "txt")
        ...     opened.total, reader.unit(1).text
        (1, '提交报名表')
    """

    def __init__(
        self, limits: Limits, *, boot: str = BOOT, conversion_seconds: float = CONVERSION_SECONDS
    ) -> None:
        """Start nothing yet."""
        self.limits = limits
        self.boot = boot
        self.conversion_seconds = conversion_seconds
        self._process: _Process | None = None
        self._closed = False
        self._turn = threading.Lock()
        """Held while the process is set or taken: `close` comes from other threads."""

    @property
    def pid(self) -> int | None:
        """The process, `None` when none runs; its process group has the same number."""
        return None if self._process is None else self._process.pid

    @property
    def network(self) -> tuple[str, ...]:
        """How a reading process is cut off the network here; starts one to see. See `confine`.

        Raises:
            UnreadableError: It does not start.
        """
        return self._running().network

    def open(self, content: bytes, named: str) -> Opened:
        """Open a document; the one before is let go.

        Args:
            content: The whole file.
            named: The type that its name promises, such as `docx`; `file` when it promises none.

        Raises:
            UnreadableError: It cannot be read.
        """
        if self._process is not None and self._process.is_spent():
            self._end()
        is_fresh = self._process is None
        try:
            return self._open(content, named)
        except DeathError as death:
            if is_fresh or death.code == "timeout":
                raise
            # What earlier documents left behind may have been the cause: this one gets a process of its own.
            return self._open(content, named)

    def _open(self, content: bytes, named: str) -> Opened:
        process = self._running()
        process.documents += 1
        answer, _ = self._ask(process, {"ask": "open", "named": named}, content, self.limits.timeout_seconds)
        opened = answer.get("opened")
        if not isinstance(opened, dict):
            raise self._lied()
        total, note = opened.get("total"), opened.get("note")
        if not isinstance(total, int) or isinstance(total, bool) or not isinstance(note, str):
            raise self._lied()
        if not 0 <= total <= _MOST_UNITS:
            raise self._lied()
        return Opened(total, _line(note, _LONGEST_NOTE))

    def unit(self, number: int, seconds: float | None = None) -> Unit:
        """One unit of the open document.

        Args:
            number: From 1 to its total.
            seconds: Wall clock that is left for it; the limits' when left out.

        Raises:
            UnreadableError: It cannot be read. `DeathError`: and the document has to be opened again.
        """
        process = self._process
        if process is None:
            raise DeathError("crashed", "the reading process is gone")
        wait = self.limits.timeout_seconds if seconds is None else seconds
        answer, content = self._ask(process, {"ask": "unit", "number": number}, b"", wait)
        unit = answer.get("unit")
        if not isinstance(unit, dict):
            raise self._lied()
        ident, mime, length = unit.get("id"), unit.get("mime"), unit.get("text")
        if not isinstance(ident, str) or not _UNIT_ID.fullmatch(ident) or int(ident[1:]) != number:
            raise self._lied()
        if not isinstance(length, int) or not 0 <= length <= len(content):
            raise self._lied()
        try:
            text = capped(clean(content[:length].decode()))
        except UnicodeDecodeError:
            raise self._lied() from None
        image = content[length:] or None
        if image is None:
            return Unit(ident, text)
        if not isinstance(mime, str) or not image.startswith(_PICTURES.get(mime, b"\0none")):
            raise self._lied()
        return Unit(ident, text, image, mime)

    def close(self) -> None:
        """End the process and everything it started, for good; from any thread, at any time."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        with self._turn:
            process, self._process = self._process, None
        if process is not None:
            process.kill()

    def _running(self) -> _Process:
        process = self._process
        if process is None:
            process = self._start()
            answer, _ = self._ask(process, None, b"", _START_SECONDS)
            ready = answer.get("ready")
            network = ready.get("network") if isinstance(ready, dict) else None
            if not isinstance(network, list):
                raise self._lied()
            process.network = tuple(str(way) for way in network)
        return process

    def _start(self) -> _Process:
        with self._turn:
            if self._closed:
                raise DeathError("crashed", "the session has ended")
            try:
                self._process = _Process(self.limits, self.boot, self.conversion_seconds)
            except OSError:
                raise DeathError("crashed", "the reading process cannot be started") from None
            return self._process

    def _ask(
        self, process: _Process, request: dict[str, Any] | None, content: bytes, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        """Send a request and wait for its answer; a process that does not give one is ended.

        Raises:
            UnreadableError: The answer is that it cannot be read. `DeathError`: there is no answer.
        """
        try:
            answer, rest = process.ask(request, content, seconds)
        except TimeoutError:
            self._end()
            raise DeathError("timeout", "reading it takes too long") from None
        except frames.FrameError:
            raise self._lied() from None
        except OSError:
            self._end()
            raise process.death() from None
        refusal = answer.get("unreadable")
        if refusal is None:
            return answer, rest
        error = self._refusal(refusal)
        if error.code == "memory":
            # What is left of its memory is not what the next document needs.
            self._end()
            raise DeathError(error.code, error.words)
        raise error

    def _refusal(self, refusal: object) -> UnreadableError:
        code = refusal.get("code") if isinstance(refusal, dict) else None
        words = refusal.get("words") if isinstance(refusal, dict) else None
        if not isinstance(code, str) or code not in CODES or not isinstance(words, str):
            return self._lied()
        known: Code = code  # type: ignore[assignment] # one of them, as was just looked up
        return UnreadableError(known, _line(words, _LONGEST_WORDS))

    def _lied(self) -> DeathError:
        """What came makes no sense: nothing more is asked of that process."""
        self._end()
        return DeathError("crashed", "its parser gave an answer that makes no sense")


def _line(text: str, longest: int) -> str:
    """Words of the other side as one short line."""
    line = " ".join(clean(text).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


class _Process:
    """A started reading process with its connection and its private folder."""

    def __init__(self, limits: Limits, boot: str, conversion_seconds: float) -> None:
        self.documents = 0
        self.network: tuple[str, ...] = ()
        self._turn = 0
        """The number of the question, which its answer has to repeat: the first is whether it is ready."""
        self._most_memory = limits.max_memory_mb * 1024 * 1024
        self._conversion_seconds = conversion_seconds
        clear_abandoned()
        self._scratch = Scratch()
        self._control, theirs = socket.socketpair()
        their_end, self._lifeline = os.pipe()
        settings = {
            "paths": [path for path in sys.path if Path(path).is_absolute()],
            "limits": asdict(limits),
            "control": theirs.fileno(),
            "lifeline": their_end,
            "conversion_seconds": conversion_seconds,
        }
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - this very Python, with our own words
                [sys.executable, "-I", "-c", _PATHS + boot, json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                close_fds=True,
                pass_fds=(theirs.fileno(), their_end),
                cwd=self._scratch.path,
                env=_environment(self._scratch.path),
                start_new_session=True,
            )
        except OSError:
            self._forget()
            raise
        finally:
            theirs.close()
            os.close(their_end)
        self.pid = self._popen.pid

    def is_spent(self) -> bool:
        """Whether the next document should have a new process."""
        if self.documents >= DOCUMENTS_PER_PROCESS:
            return True
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[0])
        except (OSError, ValueError, IndexError):
            return False
        return pages * os.sysconf("SC_PAGE_SIZE") > self._most_memory // 2

    def ask(
        self, request: dict[str, Any] | None, content: bytes, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        """One request, one answer, within the time.

        Raises:
            TimeoutError: It took longer.
            FrameError: What came is no answer, or came unasked.
            OSError: The process is gone.
        """
        begin = time.monotonic()
        deadline = begin + seconds

        def wait_no_longer() -> None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._control.settimeout(left)

        def answered() -> tuple[dict[str, Any], bytes]:
            answer, rest = frames.receive(self._control, frames.LARGEST_ANSWER, wait_no_longer)
            if answer.get("turn") != self._turn:
                raise frames.FrameError("an answer to another question")
            return answer, rest

        wait_no_longer()
        if request is not None:
            self._turn += 1
            frames.send(self._control, {**request, "turn": self._turn}, content)
        answer, rest = answered()
        if answer.get("converting") is True:
            deadline = begin + self._conversion_seconds
            answer, rest = answered()
        return answer, rest

    def kill(self) -> None:
        """End the whole process group, then reap the process: until then its number is nobody else's."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._popen.returncode is None:
                os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()
        self._forget()

    def death(self) -> DeathError:
        """What a process died of, told by how it ended; after `kill`."""
        ended_by = -(self._popen.returncode or 0)
        if ended_by == signal.SIGKILL:
            return DeathError("memory", "the system ended its parser, most likely for the memory it took")
        if ended_by == signal.SIGXCPU:
            return DeathError("timeout", "reading it takes too long")
        return DeathError("crashed", "its parser crashed")

    def _forget(self) -> None:
        self._control.close()
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        self._scratch.clear()


def _environment(folder: Path) -> dict[str, str]:
    """What Python and LibreOffice need, and nothing of the program's own."""
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
