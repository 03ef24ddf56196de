"""The words of the console, in English and Chinese: one table of names for each language.

A text is words, never markup; what is put into its places is text too and is escaped with it.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any, TypeAlias

LANGUAGES = {"en": "English", "zh": "中文"}
"""Each by its own name."""

Say: TypeAlias = Callable[..., str]


@functools.cache
def catalogue(language: str) -> dict[str, str]:
    """The texts of a language by name, `section.name`.

    Args:
        language: A key of `LANGUAGES`.
    """
    text = (files(__package__) / "texts" / f"{language}.toml").read_text(encoding="utf-8")
    return {
        f"{section}.{name}": words
        for section, names in tomllib.loads(text).items()
        for name, words in names.items()
    }


def speaker(language: str) -> Say:
    """What says a text in a language.

    Args:
        language: A key of `LANGUAGES`.

    Example:
        >>> speaker("en")("tasks.found", n=3)
        'Tasks found: 3'
    """
    texts = catalogue(language)

    def say(name: str, /, **values: Any) -> str:  # noqa: ANN401 - what the text has places for
        return texts[name].format(**values)

    return say


def preferred(accepted: str) -> str:
    """The language that a browser asks for.

    Args:
        accepted: Its `Accept-Language`.

    Example:
        >>> preferred("fr, zh-CN;q=0.8, en;q=0.5"), preferred("")
        ('zh', 'en')
    """
    wishes = []
    for place, wish in enumerate(accepted.split(",")):
        name, _, weight = wish.strip().partition(";q=")
        try:
            wishes.append((-float(weight or 1), place, name.partition("-")[0].lower()))
        except ValueError:
            continue
    return next((name for weight, _, name in sorted(wishes) if weight and name in LANGUAGES), "en")
