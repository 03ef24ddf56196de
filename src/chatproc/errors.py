"""The errors that chatproc raises by itself, each with what, where, a hint and the exit code of the CLI.

The core raises these classes too (its binding imports this module). Never put a key or a whole message text
into an error: errors are shown, logged and stored. A missing input file stays `FileNotFoundError`.
"""

from __future__ import annotations

import base64
import json
from typing import ClassVar
from urllib.parse import quote, quote_plus

_STRUCK = "[secret]"
_TELLING = 6
"""Letters of a secret that tell something of it; fewer may stand anywhere."""


class ChatprocError(Exception):
    """Something that chatproc could not do; the base of all its errors.

    Args:
        what: One line that says what went wrong.
        where: One line that says where: a file, a key, an endpoint. `None` when there is no place.
        hint: One line that says what mends it. `None` when there is no known remedy.

    Example:
        >>> error = ChatprocError("the store is full", where="data/state.db", hint="make room on the disk")
        >>> error.what, error.where, error.hint, error.exit_code
        ('the store is full', 'data/state.db', 'make room on the disk', 1)
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        """Keep the three lines as attributes of the same names."""
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """`what`, followed by `where` in brackets."""
        return f"{self.what} ({self.where})" if self.where else self.what

    def __reduce__(self) -> tuple[object, ...]:
        """Keep `where` and `hint` when the error crosses a process border."""
        return (_rebuild, (type(self), self.what, self.__dict__.copy()))


def _rebuild(cls: type[ChatprocError], what: str, attributes: dict[str, object]) -> ChatprocError:
    error = cls(what)
    error.__dict__.update(attributes)
    return error


class ConfigError(ChatprocError):
    """The configuration, the rules or the arguments cannot be used."""

    exit_code = 2


class FileChangedError(ConfigError):
    """A file that is to be saved is not any more what it was when its edit began; it is left untouched."""


class MissingFileError(ConfigError, FileNotFoundError):
    """The configuration or the rules file is not there: a `FileNotFoundError` that knows its remedy."""


class CredentialError(ChatprocError):
    """No usable key for the model endpoint."""

    exit_code = 5


class StateLockedError(ChatprocError):
    """Another process is writing rounds into the same store."""

    exit_code = 4


class ModelError(ChatprocError):
    """The model endpoint gave no usable answer.

    Args:
        what: See `ChatprocError`.
        where: See `ChatprocError`.
        hint: See `ChatprocError`.
        kind: One word for the class of the failure, such as `refused`, `timeout` or `quota`.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        kind: str = "protocol",
    ) -> None:
        """Keep `kind` beside the three lines."""
        super().__init__(what, where=where, hint=hint)
        self.kind = kind


class EvidenceError(ChatprocError):
    """A task claims a source or an attachment unit that the session did not show."""


class TaskConflict(ChatprocError):  # noqa: N818 - the name is part of the contract
    """A task changed since it was read, or a request id was used before with other content."""


class StoreVersionError(ChatprocError):
    """The store was written by a newer version of chatproc; it is left untouched."""


def without_secret(text: str, secret: str | None) -> str:
    """A text of others with `[secret]` wherever it repeats a secret, in whatever usual spelling.

    Args:
        text: What a server said, perhaps cut off.
        secret: The key, password or token that the server was sent.

    Example:
        >>> without_secret("bad key sk-123456", "sk-123456")
        'bad key [secret]'
    """
    if not secret:
        return text
    spellings = sorted(_spellings(secret), key=len, reverse=True)
    for spelling in spellings:
        text = text.replace(spelling, _STRUCK)
    begins = {spelling[:_TELLING] for spelling in spellings}
    at = 0
    while at < len(text):
        if any(text.startswith(begin, at) for begin in begins):
            # What was cut off ends with a beginning.
            length = max(_alike(text, at, spelling) for spelling in spellings)
            text = f"{text[:at]}{_STRUCK}{text[at + length :]}"
            at += len(_STRUCK)
        else:
            at += 1
    return text


def _alike(text: str, at: int, spelling: str) -> int:
    """How many letters of a spelling stand at a place of a text."""
    there = text[at : at + len(spelling)]
    return next((n for n, letter in enumerate(there) if letter != spelling[n]), len(there))


def _spellings(secret: str) -> set[str]:
    """The secret as it is, escaped, quoted for a URL, in hexadecimal and in base64."""
    encoded = secret.encode()
    found = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    found |= {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    found |= {encoded.hex(), encoded.hex().upper()}
    for before in range(3):
        # Within a longer text, as a name and a password are, its first and last letters depend on others.
        shifted = base64.b64encode(b"\0" * before + encoded).decode().rstrip("=")
        inner = shifted[(before * 8 + 5) // 6 : len(shifted) - 1]
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {spelling for spelling in found if len(spelling) >= min(len(secret), _TELLING)}
