"""The errors that chatproc raises by itself, each with what, where, a hint and the exit code of the CLI.

The core raises these classes too (its binding imports this module). Never put a key or a whole message text
into an error: errors are shown, logged and stored. A missing input file stays `FileNotFoundError`.
"""

from __future__ import annotations

from typing import ClassVar


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
