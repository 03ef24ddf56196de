"""How one call of the program speaks: data to stdout, talk and errors to stderr, in lines or as JSON."""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from chatproc.cli import render
from chatproc.errors import ChatprocError
from chatproc.plaintext import one_line, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from chatproc.cli.progress import ProgressDisplay
    from chatproc.config import Config

_REMEDIES = {
    errno.ENOSPC: "make room on the disk, then try again; what was committed is safe",
    errno.EDQUOT: "your share of the disk is used up: make room, then try again; what was committed is safe",
    errno.EROFS: "the disk is mounted read-only: see how it is mounted",
    errno.EACCES: "see who owns the file and its folder, and whether you may write there",
    errno.EPERM: "see who owns the file and its folder, and whether you may write there",
    errno.ENOTDIR: "a file stands where a folder is wanted: move it away",
    errno.EEXIST: "a file stands where a folder is wanted: move it away",
    errno.EIO: "the disk refuses: see the system's log whether it is failing; what was committed is safe",
    errno.EMFILE: "too many files are open in this process: raise the limit (`ulimit -n`)",
}
"""What mends an error of the system, by its number."""


@dataclass(frozen=True)
class Voice:
    """How one call reads its configuration, says what it does and shows what came out."""

    config_file: str
    as_json: bool
    quiet: bool
    verbose: int
    log_format: str

    def config(self) -> Config:
        """The configuration named by `--config`."""
        from chatproc.config import load_config

        return load_config(self.config_file)

    def show(
        self, document: render.Document, blocks: Callable[[render.Document], list[render.Block]]
    ) -> None:
        """Data to stdout: the document itself with `--json`, else its blocks."""
        if self.as_json:
            sys.stdout.write(render.json_text(document) + "\n")
        else:
            render.show(blocks(document))

    def say(self, text: str) -> None:
        """Talk to stderr, unless `--quiet`."""
        if not self.quiet:
            self._write("info", text)

    def progress(self) -> ProgressDisplay:
        """A display for work that takes long."""
        from chatproc.cli.progress import ProgressDisplay

        drawn = False if self.quiet or self.log_format == "json" else None
        return ProgressDisplay(say=self.say, bar=drawn)

    def fail(self, error: BaseException) -> int:
        """Say what went wrong, where and what mends it; the exit code."""
        told = error if isinstance(error, ChatprocError) else _unforeseen(error)
        if self.verbose > 1:
            sys.stderr.write(plain("".join(traceback.format_exception(error))))
        if self.log_format == "json":
            lines = {"what": told.what, "where": told.where, "hint": told.hint, "exit_code": told.exit_code}
            sys.stderr.write(render.json_text({"level": "error", "error": lines}) + "\n")
            return told.exit_code
        sys.stderr.write(f"error: {one_line(told.what)}\n")
        if told.where:
            sys.stderr.write(f"   at: {one_line(told.where)}\n")
        if told.hint:
            sys.stderr.write(f" hint: {one_line(told.hint)}\n")
        return told.exit_code

    def open_log(self) -> None:
        """Log records of the package go to stderr: warnings always, more with `-v` and `-vv`."""
        handler = _LogTalk(self._write)
        log = logging.getLogger("chatproc")
        log.handlers[:] = [handler]
        log.propagate = False
        level = logging.ERROR if self.quiet else logging.WARNING
        log.setLevel({0: level, 1: logging.INFO}.get(self.verbose, logging.DEBUG))

    def _write(self, level: str, text: str) -> None:
        """Talk that nobody can hear, on a closed pipe or a full disk, ends no work."""
        if self.log_format == "json":
            line = render.json_text({"level": level, "text": text})
        else:
            line = one_line(text if level == "info" else f"{level}: {text}")
        try:
            sys.stderr.write(f"{line}\n")
        except BrokenPipeError:
            leave(sys.stderr)
        except OSError:
            return


class _LogTalk(logging.Handler):
    """Hands log records to the voice of the call."""

    def __init__(self, write: Callable[[str, str], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        self._write(record.levelname.lower(), record.getMessage())


def _unforeseen(error: BaseException) -> ChatprocError:
    """An error of the system or of the program, in the same three lines."""
    if isinstance(error, OSError):
        what = error.strerror or str(error) or type(error).__name__
        where = None if error.filename is None else str(error.filename)
        return ChatprocError(what, where=where, hint=_REMEDIES.get(error.errno or 0))
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None
    first_line = (str(error).splitlines() or [""])[0]
    hint = "this is a fault of chatproc; -vv shows where it came from"
    return ChatprocError(f"{type(error).__name__}: {first_line}", where=where, hint=hint)


def flush_or_leave() -> None:
    """What stdout holds is written; where it cannot be, the interpreter must not try again at its end."""
    if sys.stdout is None:  # closed before the program began
        return
    try:
        sys.stdout.flush()
    except OSError:
        leave(sys.stdout)


def leave(stream: TextIO) -> None:
    """The reader of a stream went away: keep the interpreter from complaining when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
