"""How much time one request covers, for sources that are read by stretches of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chatproc.connectors.base import Budget

__all__ = ["Window"]


class Window:
    """A length of time: longer while there is little in it, shorter where there is much.

    Attributes:
        seconds: The length now.
        is_usual: Whether a whole page may be asked for: the source found none too large, and the day's items
            suffice.
    """

    def __init__(self, budget: Budget, rows: int, seconds: int, *, shortest: int = 1) -> None:
        """Start with a length that fits to the page.

        Args:
            budget: What may still be used.
            rows: How many rows a usual page has.
            seconds: The length for a usual page.
            shortest: No length is below it.
        """
        self._usual = rows
        self._rows = budget.page_size(rows)
        self._shortest = shortest
        self.is_usual = self._rows >= rows
        self.seconds = max(shortest, seconds * self._rows // rows)

    @property
    def usual(self) -> int:
        """The length for a usual page, to start with another time."""
        return self.seconds * self._usual // self._rows

    def adapt(self, found: int) -> None:
        """Fit the length to the number of rows that the last one held."""
        if found * 4 < self._rows:
            self.seconds *= 2
        elif found > self._rows:
            self.seconds = max(self._shortest, self.seconds // 2)
