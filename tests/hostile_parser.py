"""A parser that does what its document says: the bytes are Python, run in the reading process.

Stands in for a real parser with a hole in it. What the code leaves in `units` are the units; `unit` may be a
function from the number to one, `total` and `note` are what the document claims.
"""

from __future__ import annotations

from typing import Any

from chatproc.attachments.units import Limits, Unit

BOOT = (
    "from chatproc.attachments import worker; worker.PARSERS['txt'] = 'tests.hostile_parser'; worker.main()"
)
"""Starts a reading process in which plain text is such a document."""


class Obedient:
    """The document that the code made."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self.note: str = names.get("note", "")
        self.total: int = names.get("total", len(names.get("units", ())))

    def unit(self, number: int) -> Unit:
        if "unit" in self._names:
            unit: Unit = self._names["unit"](number)
            return unit
        return Unit(f"b{number}", self._names["units"][number - 1])

    def close(self) -> None:
        """Nothing to let go."""


def open_document(content: bytes, kind: str, limits: Limits) -> Obedient:
    """Run the content."""
    names: dict[str, Any] = {"kind": kind, "limits": limits, "Unit": Unit}
    exec(content.decode(), names)  # noqa: S102 - the point of it
    return Obedient(names)
