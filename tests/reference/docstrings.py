"""Docstrings of attributes, which Python does not keep: read from the source."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from typing import Any


@functools.cache
def _of_module(name: str) -> dict[tuple[str, str], str]:
    """Class and attribute to the words below it."""
    found = {}
    for node in ast.parse(inspect.getsource(sys.modules[name])).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for attribute, below in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(attribute, ast.AnnAssign)
                and isinstance(attribute.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                found[node.name, attribute.target.id] = " ".join(str(below.value.value).split())
    return found


def of_attribute(owner: type[Any], name: str) -> str:
    """The words below an attribute, in the class or the nearest base that has some; else nothing."""
    for kind in owner.__mro__:
        if kind.__module__.startswith("chatproc") and (kind.__name__, name) in _of_module(kind.__module__):
            return _of_module(kind.__module__)[kind.__name__, name]
    return ""
