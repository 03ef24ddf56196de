"""docs/python-reference.md: the Python interface, from signatures and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from types import FunctionType
from typing import Any

import chatproc
from chatproc import importers
from tests.reference.docstrings import of_attribute

_HEAD = """\
# Python reference

<!-- made by `make reference` -->

Everything that `chatproc` gives by name, in the words of its docstrings. How it is used together:
[From Python](python.md).
"""

_PARTS = re.compile(r"^(Args|Returns|Raises|Attributes|Example):\n", flags=re.MULTILINE)
_ENTRY = re.compile(r"^(\S[^:]*): ", flags=re.MULTILINE)


def page() -> str:
    """The whole page."""
    named = {name: getattr(chatproc, name) for name in sorted(chatproc.__all__) if name[0] != "_"}
    functions = {name: it for name, it in named.items() if isinstance(it, FunctionType)}
    classes = {name: it for name, it in named.items() if isinstance(it, type)}
    errors = {name: it for name, it in classes.items() if issubclass(it, Exception)}
    results = {name: it for name, it in classes.items() if name not in errors}
    parts = [
        _HEAD,
        "## Functions",
        *(_function(name, it) for name, it in functions.items()),
        "## `chatproc.importers`",
        _function("import_chats", importers.import_chats),
        "## What they return",
        *(_class(name, it) for name, it in results.items()),
        "## Errors",
        *(_error(name, it) for name, it in errors.items()),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _function(name: str, function: FunctionType) -> str:
    return f"### `{name}`\n\n```python\n{_signature(name, function)}\n```\n\n{_told(function)}"


def _signature(name: str, function: FunctionType) -> str:
    """The signature, a line a parameter where it is long."""
    text = f"{name}{inspect.signature(function)}".replace("'", "")
    if len(text) <= 100:
        return text
    signature = inspect.signature(function)
    inner, starred = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            inner.append("*")
            starred = True
        inner.append(str(parameter).replace("'", ""))
    lines = "".join(f"    {parameter},\n" for parameter in inner)
    return f"{name}(\n{lines}) -> {signature.return_annotation}"


def _class(name: str, kind: type[Any]) -> str:
    rows = []
    if dataclasses.is_dataclass(kind):
        rows = [_attribute(kind, field.name, str(field.type)) for field in dataclasses.fields(kind)]
    for member, it in vars(kind).items():
        if member[0] == "_":
            continue
        if isinstance(it, property):
            rows.append(f"- `{member}`: {_first_line(it)}")
        elif isinstance(it, FunctionType):
            rows.append(
                f"- `{_signature(member, it).replace('self, ', '').replace('self', '')}`: {_first_line(it)}"
            )
    return f"### `{name}`\n\n{_told(kind)}\n\n" + "\n".join(rows)


def _attribute(kind: type[Any], name: str, written: str) -> str:
    words = of_attribute(kind, name)
    return f"- `{name}: {written}`" + (f": {words}" if words else "")


def _first_line(it: object) -> str:
    return (inspect.getdoc(it) or "").split("\n\n")[0].replace("\n", " ")


def _error(name: str, error: type[Exception]) -> str:
    base = error.__bases__[0].__name__
    return f"### `{name}`\n\nA `{base}`, exit code {getattr(error, 'exit_code', 1)}. {_told(error)}"


def _told(it: object) -> str:
    """A docstring as Markdown."""
    text, *parts = _PARTS.split(inspect.getdoc(it) or "")
    told = [text.strip()]
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        words = inspect.cleandoc(f"\n{body}")
        if title == "Example":
            told.append(f"```python\n{re.sub(r' *# doctest:.*', '', words).strip()}\n```")
        elif title == "Returns":
            told.append(f"Returns: {' '.join(words.split())}")
        else:
            told.append(f"{title}:\n\n{_entries(words)}")
    return "\n\n".join(told)


def _entries(words: str) -> str:
    """`name: text` paragraphs as a list."""
    split = _ENTRY.split(words)[1:]
    pairs = zip(split[::2], split[1::2], strict=True)
    return "\n".join(f"- `{name}`: {' '.join(text.split())}" for name, text in pairs)
