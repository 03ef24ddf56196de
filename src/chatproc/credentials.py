"""Where a key or secret comes from: an environment variable, the project's `.env`, a file, in this order.

It reads anew at each call and keeps nothing. A key is only ever a return value: no exception, log line or
repr of this module holds one, not even a part of one.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from typing import TYPE_CHECKING

from chatproc.errors import CredentialError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from chatproc.config import CaldavTarget, Config, ConnectionConfig

_LARGEST_FILE = 64 * 1024
_SENDABLE = re.compile(r"[\x21-\x7e]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")


def read_api_key(config: Config) -> str | None:
    """The key for the model endpoint.

    Args:
        config: Says which variable and which file.

    Returns:
        The key without surrounding white space, or `None` for an endpoint that wants none.

    Raises:
        CredentialError: No key was found, or what was found must not or cannot be used.

    Example:
        >>> key = read_api_key(config)  # doctest: +SKIP
    """
    if not config.agent.wants_key:
        return None
    variable, file = config.agent.api_key_env, config.agent.api_key_file
    return _read("the model endpoint", "key", variable, file, config.root / ".env", _sendable)


def read_secret(config: Config, connection: ConnectionConfig) -> str | None:
    """The password or token of a connection; looked for, and refused, like the model's key.

    Args:
        config: Says where the project's `.env` lies.
        connection: Says which variable and which file.

    Returns:
        The secret without surrounding white space, or `None` where neither is configured.

    Raises:
        CredentialError: No secret was found, or what was found must not or cannot be used.

    Example:
        >>> password = read_secret(config, config.connections[0])  # doctest: +SKIP
    """
    variable, file = connection.secret_env, connection.secret_file
    if not variable and file is None:
        return None
    name = f"{connection.toolkit}/{connection.id}"
    return _read(name, "secret", variable, file, config.root / ".env", _one_line)


def read_target_secret(config: Config, target: CaldavTarget) -> str | None:
    """The password of a `[[publish]]` entry; looked for, and refused, like that of a connection.

    Args:
        config: Says where the project's `.env` lies.
        target: Says which variable and which file.

    Raises:
        CredentialError: No secret was found, or what was found must not or cannot be used.

    Example:
        >>> password = read_target_secret(config, config.publish[0])  # doctest: +SKIP
    """
    variable, file = target.secret_env, target.secret_file
    if not variable and file is None:
        return None
    return _read(f"publish/{target.name}", "secret", variable, file, config.root / ".env", _one_line)


def _read(  # noqa: PLR0913, PLR0917 - what it is, where it may lie, and what it must be
    name: str,
    kind: str,
    variable: str,
    file: Path | None,
    dotenv: Path,
    checked: Callable[[str, str], str],
) -> str:
    looked_at = []
    if variable:
        place = f"environment variable {variable}"
        if key := os.environ.get(variable, "").strip():
            return checked(key, place)
        looked_at.append(f"{place} (not set)")
        key, absence = _from_dotenv(dotenv, variable)
        if key:
            return checked(key, f"{variable} in {dotenv}")
        looked_at.append(f"{dotenv} ({absence})")
    if file is not None:
        key, absence = _from_key_file(file)
        if key:
            return checked(key, str(file))
        looked_at.append(f"{file} ({absence})")
    raise CredentialError(
        f"no {kind} found for {name}",
        where="looked at " + "; ".join(looked_at),
        hint=_remedy(kind, variable, file),
    )


def _remedy(kind: str, variable: str, file: Path | None) -> str:
    into_file = f"write the {kind} into {file} and `chmod 600 {shlex.quote(str(file))}`" if file else ""
    into_variable = f"set {variable}" if variable else ""
    return ", or ".join(way for way in (into_file, into_variable) if way)


def _from_dotenv(file: Path, variable: str) -> tuple[str, str]:
    """The value of a variable in a `.env` file, else why there is none.

    Understood: one `NAME=value` a line, `export` before it, comments, quotes around the value. Nothing is
    expanded, no value spans lines; the last assignment counts.
    """
    try:
        text = _read_small_file(file)
    except OSError as error:
        return "", _why_not(error)
    value = ""
    for line in text.splitlines():
        assignment = _ASSIGNMENT.fullmatch(line.strip())
        if assignment and assignment[1] == variable:
            value = _unquoted(assignment[2])
    return value, f"has no {variable}"


def _unquoted(value: str) -> str:
    quote = value[:1]
    if quote in {'"', "'"} and quote in value[1:]:
        return value[1 : value.index(quote, 1)].strip()
    return re.split(r"(?:^|\s)#", value, maxsplit=1)[0].strip()


def _from_key_file(file: Path) -> tuple[str, str]:
    try:
        return _read_small_file(file, private=True).strip(), "empty"
    except OSError as error:
        return "", _why_not(error)


def _read_small_file(file: Path, *, private: bool = False) -> str:
    """A file's text; where it is no UTF-8, bytes above ASCII stand for themselves: no error quotes a key."""
    # Without O_NONBLOCK a FIFO in the file's place would hang the program.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CredentialError("a key must be in a regular file", where=str(file))
        if private and os.name == "posix" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise CredentialError(
                f"the key file is open to other users (mode {stat.S_IMODE(status.st_mode):04o})",
                where=str(file),
                hint=f"chmod 600 {shlex.quote(str(file))}",
            )
        content = opened.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise CredentialError("the file is too large to hold a key", where=str(file))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _why_not(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "not there"
    return f"cannot be read: {error.strerror}"


def _sendable(key: str, place: str) -> str:
    """The key, if an HTTP header can carry it: visible ASCII only."""
    if not _SENDABLE.fullmatch(key):
        raise CredentialError(
            "the key has white space, control or non-ASCII characters, so it cannot be sent",
            where=place,
            hint="copy the key again: one line of plain text (UTF-8, not UTF-16)",
        )
    return key


def _one_line(secret: str, place: str) -> str:
    """The secret, if it is one line of text; unlike a key it may hold spaces and any letter."""
    if _CONTROL.search(secret):
        raise CredentialError(
            "the secret is not one line of text",
            where=place,
            hint="write it again: one line of UTF-8, no control characters",
        )
    return secret
