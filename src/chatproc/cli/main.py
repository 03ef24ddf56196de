"""The program: its commands together, their usage errors, and how the process ends.

Each command reads its arguments, calls one function of the package and shows what it returns. Nothing is
decided there but how to say it and the exit code; what a command needs is imported when it runs, so that
`--help` is instant.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

import click

from chatproc.cli import inputs, project, rounds, tasks, trust  # noqa: F401 - importing declares commands
from chatproc.cli.command import INTERRUPTED, cli
from chatproc.cli.voice import flush_or_leave
from chatproc.plaintext import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["cli", "main", "run"]

_USAGE = 2


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: Without the program's name; `None`: those of the process.

    Example:
        >>> run(["status", "--config", "config/processor.toml"])  # doctest: +SKIP
        0
    """
    _write_any_character()
    try:
        code = cli.main(arguments, prog_name="chatproc", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return _USAGE
    except click.UsageError as error:
        return _usage(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _usage(error: click.UsageError) -> int:
    sys.stderr.write(f"error: {one_line(error.format_message())}\n")
    path = error.ctx.command_path if error.ctx else "chatproc"
    sys.stderr.write(f" hint: {path} --help\n")
    return _USAGE


def _write_any_character() -> None:
    """No character of a message ends a command: what the stream cannot write is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def _leave_no_core() -> None:
    """A process that dies leaves no image of its memory, which holds chats and the key."""
    try:
        import resource
    except ImportError:  # not on Windows, which writes none into the folder
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def main() -> NoReturn:
    """The entry point of `chatproc`."""
    _leave_no_core()
    code = run()
    if threading.active_count() > 1:
        # A thread that hangs in a source cannot be stopped, and the interpreter would wait for it.
        flush_or_leave()
        os._exit(code)
    sys.exit(code)
