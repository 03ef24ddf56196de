"""Connectors: sources that are pulled. One module a toolkit; each only fetches and turns into events.

This is the list of them, by name. A module is imported when its name is first asked for; others' packages
add theirs through the entry-point group `chatproc.connectors`.
"""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from chatproc.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from chatproc.connectors.base import Toolkit

GROUP = "chatproc.connectors"
"""Each entry point of it has a toolkit's name and leads to a `Toolkit`."""

BUILT_IN = ("jsonl", "imap", "matrix", "chatlog", "chatlab", "onebot")
"""Each is a module of this package with a `TOOLKIT`; no other package can take its name."""


_found: dict[str, Toolkit] = {}


def find(name: str) -> Toolkit | None:
    """The toolkit of a name, if an installed package has it.

    Args:
        name: In lower case.

    Raises:
        ConfigError: The package that has it cannot be used.
    """
    if name not in _found:
        found = _look_for(name)
        if found is None:
            return None
        _found[name] = found
    return _found[name]


def toolkit(name: str) -> Toolkit:
    """The toolkit of a name.

    Args:
        name: In lower case.

    Raises:
        ConfigError: No installed package has it, or the one that has it cannot be used.

    Example:
        >>> toolkit("jsonl").minimum_interval
        0
    """
    found = find(name)
    if found is None:
        raise ConfigError(f"no connector is called {name!r}", hint=f"there are: {', '.join(names())}")
    return found


def _look_for(name: str) -> Toolkit | None:
    from chatproc.connectors.base import Toolkit

    if name in BUILT_IN:
        found: object = importlib.import_module(f"{__name__}.{name}").TOOLKIT
    elif (entry := _foreign().get(name)) is not None:
        found = _load(entry)
    else:
        return None
    if not isinstance(found, Toolkit) or found.name != name:
        raise ConfigError(f"the connector {name!r} leads to no Toolkit of that name", hint=_MENDING)
    return found


def names() -> list[str]:
    """All names: the built-in ones, then those of other packages."""
    return [*BUILT_IN, *sorted(_foreign())]


_MENDING = "update or remove the package that brings it"


def _foreign() -> dict[str, EntryPoint]:
    found = {entry.name.lower(): entry for entry in entry_points(group=GROUP)}
    return {name: entry for name, entry in found.items() if name not in BUILT_IN}


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except Exception as error:
        raise ConfigError(
            f"the connector {entry.name!r} cannot be loaded: {type(error).__name__}: {error}",
            where=entry.value,
            hint=_MENDING,
        ) from error
