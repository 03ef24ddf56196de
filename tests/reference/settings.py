"""The tables of docs/configuration.md, from the models of chatproc.config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from chatproc import config
from tests.reference import table
from tests.reference.docstrings import of_attribute

_UNBOUNDED = 1e8
"""A larger bound says no more than that there is one."""


def sections() -> dict[str, str]:
    """Heading to table, for each table that a configuration may have."""
    found = {}
    for name, field in config._Document.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found[f"## `[{name}]`"] = _keys(kind)
            for inner, below in kind.model_fields.items():
                if isinstance(below.annotation, type) and issubclass(below.annotation, BaseModel):
                    found[f"### `[{name}.{inner}]`"] = _keys(below.annotation)
            continue
        base = _base(kind)
        kinds = {_chosen_by(entry, base): entry for entry in _kinds(base)}
        found[f"## `[[{name}]]`"] = _keys(base, kinds=", ".join(f'`"{kind}"`' for kind in kinds))
        for kind_name, entry in kinds.items():
            found[f"### `{kind_name}`"] = _keys(entry, base)
    return found


def _base(entries: Any) -> type[BaseModel]:  # noqa: ANN401 - `tuple[Annotated[A | B, …], ...]`
    """What all entries of a list of tables have in common."""
    one_of = get_args(get_args(entries)[0])[0]
    kinds = get_args(one_of) or (one_of,)
    return next(base for base in kinds[0].__mro__ if all(issubclass(kind, base) for kind in kinds))


def _kinds(base: type[BaseModel]) -> list[type[BaseModel]]:
    """The entries that chatproc itself knows, in the order of their definition."""
    below = [kind for child in base.__subclasses__() for kind in (child, *_kinds(child))]
    return [kind for kind in below if kind.__module__ == config.__name__ and kind.__name__[0] != "_"]


def _chosen_by(entry: type[BaseModel], base: type[BaseModel]) -> str:
    """The word by which an entry says what it is: that of its first key."""
    return str(get_args(entry.model_fields[next(iter(base.model_fields))].annotation)[0])


def _keys(model: type[BaseModel], base: type[BaseModel] | None = None, kinds: str = "") -> str:
    """A row a key: what it may be, what it is unless said, what it means.

    Args:
        model: Of the table.
        base: What is told elsewhere, for all tables of a list.
        kinds: What the first key may be, where that chooses the kind of the table.
    """
    shapes = model.model_json_schema()["properties"]
    rows = []
    for name, field in model.model_fields.items():
        if base is not None and name in base.model_fields:
            continue
        key = field.alias or name
        meaning = of_attribute(model, name)
        if not meaning:
            raise ValueError(f"{model.__name__}.{name} in config.py has no docstring below it")
        default = field.get_default(call_default_factory=True, validated_data={})
        value = _may_be(shapes[key]) if rows or not kinds else kinds
        rows.append((f"`{key}`", value, _default(default, shapes[key]), meaning))
    return table(("key", "value", "default", "meaning"), rows)


def _may_be(shape: dict[str, Any]) -> str:
    """What a value may be, in words."""
    if "anyOf" in shape:
        kinds = [_may_be(kind) for kind in shape["anyOf"] if kind.get("type") != "null"]
        return " or ".join(kinds)
    for options in (shape.get("enum"), [shape["const"]] if "const" in shape else None):
        if options is not None:
            return ", ".join(f"`{json.dumps(option)}`" for option in options)
    kind = shape.get("type", "object")
    if kind in {"integer", "number"}:
        words = "whole number" if kind == "integer" else "number"
        return f"{words}{_bounds(shape)}"
    if kind == "array":
        return f"list of {_may_be(shape['items'])}"
    if kind == "string":
        return "path" if shape.get("format") == "path" else "text"
    return {"boolean": "`true`, `false`"}.get(kind, "table")


def _bounds(shape: dict[str, Any]) -> str:
    least, most = shape.get("minimum"), shape.get("maximum")
    if least is None:
        return ""
    if most is None or most > _UNBOUNDED:
        return f" ≥\u00a0{least}"
    return f", {least} to {most}"


def _default(value: Any, shape: dict[str, Any]) -> str:  # noqa: ANN401 - any value of a setting
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return '`""`' if "path" in json.dumps(shape) else "not set"
    if isinstance(value, BaseModel):
        return "`{}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    if isinstance(value, Path):
        return f'`"{value}"`'
    return f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"
