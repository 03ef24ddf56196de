"""Values of JSON that somebody else wrote, each taken for what it is or not at all.

Never guesses: a value of another type is absent.
"""

from __future__ import annotations

from typing import Any

LARGEST_EXACT = (1 << 53) - 1
# The end of the year 9999, in milliseconds.
_LAST_TIME = 253_402_300_799_999
# Seconds are below the first, milliseconds below the second, microseconds below the third.
_UNITS = ((10**11, 1000), (10**14, 1), (10**17, 1 / 1000))


def string(value: object) -> str:
    """A text, `""` for anything else."""
    return value if isinstance(value, str) else ""


def identity(value: object) -> str | None:
    """An id or a name: a text or a whole number of any size, as text; `None` for an empty one."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value).strip() or None


def members(value: object) -> dict[str, Any]:
    """An object, `{}` for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings(value: object) -> list[str]:
    """The texts of a list that are not empty."""
    return [item for item in value if isinstance(item, str) and item] if isinstance(value, list) else []


def whole(value: object, largest: int = LARGEST_EXACT) -> int | None:
    """A whole number from 0 on, written as a number or as digits."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    try:
        number = int(value)
    except ValueError:
        return None
    return number if 0 <= number <= largest else None


def milliseconds(value: object) -> int | None:
    """A moment as milliseconds since 1970, from seconds, milliseconds or microseconds, told by their size.

    Zero is what programs write for an unknown time.

    Example:
        >>> [milliseconds(value) for value in (1782871200, "1782871200400", 1782871200.5, None)]
        [1782871200000, 1782871200400, 1782871200500, None]
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    for limit, factor in _UNITS:
        if 0 < number < limit:
            return round(number * factor)
    return None


def exact_milliseconds(value: object) -> int | None:
    """Milliseconds since 1970 where a format always writes them."""
    return whole(value, _LAST_TIME)


def without_surrogates(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The value with U+FFFD for each half of a surrogate pair, which is no text."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value
