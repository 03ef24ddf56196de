"""Edits of the two files that a person owns, rules and configuration: checked, saved whole with a backup.

Nothing is saved that could not be used, nor over a file that has changed meanwhile. What in a configuration
may be a key is never shown: a mask stands in its place, and stands for the same value when it is saved.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chatproc.config import config_of
from chatproc.errors import ConfigError, FileChangedError
from chatproc.rules import rules_of
from chatproc.whole import whole_file

if TYPE_CHECKING:
    from pathlib import Path

_BOM = b"\xef\xbb\xbf"
_SALT = secrets.token_bytes(32)
_STRING = r"'''.*?'''|\"\"\".*?\"\"\"|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'"
_PART = re.compile(
    rf"(?P<table>^[ \t]*\[\[?[ \t]*[A-Za-z_][^\n\#]*)|(?P<key>[\w.-]+|{_STRING})(?=\s*=)"
    rf"|(?P<value>{_STRING})",
    re.MULTILINE | re.DOTALL,
)
_MASK = re.compile(r"\(hidden [0-9a-f]{8}\)")
_SECRET_KEY = re.compile(r"key|token|secret|password|passwd|credential|authorization|cookie", re.IGNORECASE)
_NO_SECRET = re.compile(r".*_(file|field)|max_.*|.*_tokens", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USER_IN_URL = re.compile(r"//[^/\s]*@")


@dataclass(frozen=True)
class EditedFile:
    """A file as a person edits it."""

    file: Path
    text: str
    """Line ends are line feeds; of a configuration with masks."""
    sha256: str
    """Of the file's bytes: what `save_…` wants back, to see whether it is still the same file."""


def read_rules_text(file: Path) -> EditedFile:
    """The rules for editing; a file that is not there is empty.

    Args:
        file: `config.rules.file`.

    Raises:
        ConfigError: It is not UTF-8.
    """
    content = _content(file)
    return EditedFile(file, _decoded(file, content), _digest(content))


def save_rules(file: Path, text: str, *, expected_sha256: str) -> Path | None:
    r"""Save rules for the rounds to come.

    Args:
        file: `config.rules.file`.
        text: The whole text.
        expected_sha256: Of the file when the edit began.

    Returns:
        Where the text from before lies; `None` when there was none.

    Raises:
        FileChangedError: It has been changed meanwhile.
        ConfigError: No round could use this text.
        OSError: It cannot be written; the file is as it was.

    Example:
        >>> before = read_rules_text(config.rules.file)  # doctest: +SKIP
        >>> text = before.text + "P0: today\n"  # doctest: +SKIP
        >>> save_rules(before.file, text, expected_sha256=before.sha256)  # doctest: +SKIP
    """
    rules_of(file, text.encode())
    return _save(file, text, expected_sha256)


def read_config_text(file: Path) -> EditedFile:
    """The configuration for editing, with a mask for each value that may be a key.

    Args:
        file: The TOML file.

    Raises:
        ConfigError: It is not UTF-8.
    """
    content = _content(file)
    return EditedFile(file, masked(_decoded(file, content)), _digest(content))


def save_config(file: Path, text: str, *, expected_sha256: str) -> Path | None:
    """Save a configuration; whoever reads it the next time gets it.

    Args:
        file: The TOML file, absolute.
        text: The whole text; a mask stands for the value that the file has there.
        expected_sha256: Of the file when the edit began.

    Returns:
        Where the text from before lies; `None` when there was none.

    Raises:
        FileChangedError: It has been changed meanwhile.
        ConfigError: It could not be loaded, or a mask stands for nothing.
        OSError: It cannot be written; the file is as it was.
    """
    content = _content(file)
    if _digest(content) != expected_sha256:
        raise _changed(file)
    whole = _unmasked(text, _decoded(file, content), file)
    config_of(file, whole.encode())
    return _save(file, whole, expected_sha256)


# ── masks ────────────────────────────────────────────────────────────────────────────────────────────


def masked(text: str) -> str:
    r"""TOML with a mask for each string that may be a key or a password.

    Args:
        text: Of a configuration, also of one that is no TOML any more.

    Example:
        >>> masked('model = "m"\n[agent.extra_body]\nuser = "x"')[:40]
        'model = "m"\n[agent.extra_body]\nuser = "('
    """
    found = dict(_secrets(text))
    return "".join(f'"{_mask(piece)}"' if at in found else piece for at, piece in _pieces(text, found))


def _unmasked(text: str, original: str, file: Path) -> str:
    known = {_mask(value): value for _, value in _secrets(original)}

    def value_of(found: re.Match[str]) -> str:
        mask = found[0].strip("\"'")
        if mask not in known:
            hint = "write the value itself, or load the page anew"
            raise ConfigError(f"{mask} stands for no value of this file", where=str(file), hint=hint)
        return known[mask]

    return re.sub(rf"\"{_MASK.pattern}\"|'{_MASK.pattern}'", value_of, text)


def _mask(literal: str) -> str:
    """The same for the same value as long as this process lives, and worth nothing to anyone."""
    return f"(hidden {hashlib.blake2b(literal.encode(), key=_SALT, digest_size=4).hexdigest()})"


def _secrets(text: str) -> list[tuple[int, str]]:
    """Where a string begins that may be a key, and the string with its quotes."""
    found = []
    table = key = ""
    for part in _PART.finditer(text):
        if part["table"]:
            table = part["table"]
        elif part["key"]:
            key = part["key"].strip("\"'")
        elif part["value"] and _may_be_secret(table, key, part["value"], _line_before(text, part.start())):
            found.append((part.start(), part["value"]))
    return found


def _line_before(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 : at]


def _may_be_secret(table: str, key: str, literal: str, before: str) -> bool:
    value = literal.strip("\"'")
    if not value:
        return False
    if key.endswith("_env"):
        return not _VARIABLE.fullmatch(value)
    if "extra_body" in table or "extra_body" in before:
        return True
    if _USER_IN_URL.search(value):
        return True
    return bool(_SECRET_KEY.search(key)) and not _NO_SECRET.fullmatch(key)


def _pieces(text: str, found: dict[int, str]) -> list[tuple[int, str]]:
    """The text in parts: each found string is one, and what stands between."""
    pieces = []
    last = 0
    for at, literal in found.items():
        pieces += [(-1, text[last:at]), (at, literal)]
        last = at + len(literal)
    return [*pieces, (-1, text[last:])]


# ── files ────────────────────────────────────────────────────────────────────────────────────────────


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ConfigError(f"the file cannot be read: {error.strerror}", where=str(file)) from error


def _decoded(file: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ConfigError("the file is not UTF-8", where=str(file), hint="save the file as UTF-8") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _changed(file: Path) -> FileChangedError:
    hint = "compare your text with the file as it is now, then save again"
    return FileChangedError(
        "the file has been changed meanwhile; nothing was saved", where=str(file), hint=hint
    )


def _save(file: Path, text: str, expected_sha256: str) -> Path | None:
    """Replace the file that a name leads to, whole or not at all, and keep what it was."""
    file = file.resolve()
    before = _content(file)
    content = text.replace("\r\n", "\n").encode()
    if b"\r\n" in before and before.count(b"\r\n") == before.count(b"\n"):
        content = content.replace(b"\n", b"\r\n")
    if before.startswith(_BOM):
        content = _BOM + content
    if _digest(before) != expected_sha256:
        raise _changed(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    backup = None
    if before and before != content:
        backup = file.with_name(f"{file.name}.{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}.bak")
        with whole_file(backup, new=True) as kept:
            os.fchmod(kept.fileno(), mode)
            kept.write(before)
    with whole_file(file) as replaced:
        os.fchmod(replaced.fileno(), mode)
        replaced.write(content)
        if _digest(_content(file)) != expected_sha256:
            raise _changed(file)
    return backup
