"""The command line: `chatproc COMMAND`."""

from chatproc.cli.main import main

__all__ = ["main"]
