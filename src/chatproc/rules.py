"""The user's rules: one Markdown file, read whole for each round, and its digest for the record.

It judges nothing in them; a person edits them without knowing the program.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatproc.errors import ConfigError, MissingFileError

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_RULES = 256 * 1024
"""Bytes. The rules go into every request; more than this is a wrong file."""


@dataclass(frozen=True)
class Rules:
    """The rules as read."""

    file: Path
    text: str
    """Without a byte order mark, else exactly as written."""
    sha256: str
    """Hex digest of the file's bytes, what `sha256sum` says."""


def read_rules(file: Path) -> Rules:
    """Read the rules file.

    Args:
        file: `config.rules.file`.

    Raises:
        MissingFileError: There is no such file (a `ConfigError` and a `FileNotFoundError`).
        ConfigError: The file cannot be read, is empty, too large or not UTF-8.

    Example:
        >>> read_rules(config.rules.file).text[:4]  # doctest: +SKIP
        '# 规则'
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_RULES + 1)
    except FileNotFoundError:
        hint = "`chatproc init` writes default rules; rules.file names another file"
        raise MissingFileError("there are no rules", where=str(file), hint=hint) from None
    except OSError as error:
        raise ConfigError(f"the rules cannot be read: {error.strerror}", where=str(file)) from error
    return rules_of(file, content)


def rules_of(file: Path, content: bytes) -> Rules:
    """The rules that a file has, or would have.

    Args:
        file: `config.rules.file`.
        content: Its bytes; of no account beyond the largest size.

    Raises:
        ConfigError: It is empty, too large or not UTF-8.

    Example:
        >>> rules_of(file, b"P0: today").text  # doctest: +SKIP
        'P0: today'
    """
    if len(content) > LARGEST_RULES:
        raise ConfigError(f"the rules are longer than {LARGEST_RULES} bytes", where=str(file))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        where = f"{file}, line {line}"
        raise ConfigError("the rules are not UTF-8", where=where, hint="save the file as UTF-8") from None
    if not text.strip():
        hint = "write what counts as a task, or delete the file and run `chatproc init`"
        raise ConfigError("the rules are empty", where=str(file), hint=hint)
    return Rules(file=file, text=text, sha256=hashlib.sha256(content).hexdigest())
