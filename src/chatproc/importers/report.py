"""What an import tells of itself: its counts, and the parts that were not understood or were mended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from chatproc.importers.values import without_surrogates

SHOWN_CHARS = 200
# A file of another program may be millions of parts that nobody understands.
MAX_LISTED = 10_000


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did.

    Attributes:
        files: The batch files written.
        messages: Events written, edits, recalls and system messages among them.
        edits: Messages whose text is a later revision.
        recalls: Messages that were withdrawn.
        attachments_present: Attachments found in the export.
        attachments_missing: Attachments that the export names but does not hold.
        not_understood: Parts that gave no or not their whole message, each with file, line, text and reason.
        repaired: Known damage that was mended, in the same form.
        timezone_assumed: At least one time had no zone and was read in the zone of `timezone`.
    """

    files: tuple[str, ...] = ()
    messages: int = 0
    edits: int = 0
    recalls: int = 0
    attachments_present: int = 0
    attachments_missing: int = 0
    not_understood: tuple[dict[str, Any], ...] = ()
    repaired: tuple[dict[str, Any], ...] = ()
    timezone_assumed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The document of `chatproc import --json`."""
        return {
            "files": list(self.files),
            "messages": self.messages,
            "edits": self.edits,
            "recalls": self.recalls,
            "attachments": {"present": self.attachments_present, "missing": self.attachments_missing},
            "not_understood": list(self.not_understood),
            "repaired": list(self.repaired),
            "timezone_assumed": self.timezone_assumed,
        }


class Notes:
    """Parts of exports and why each is told of: listed one by one, beyond `MAX_LISTED` counted."""

    def __init__(self) -> None:
        """Start with nothing to tell."""
        self._listed: list[dict[str, Any]] = []
        self._first: dict[str, dict[str, Any]] = {}
        self._counts: dict[str, int] = {}

    def add(self, file: str, line: int, text: str | bytes | dict[str, Any], reason: str) -> None:
        """List a part, or count it with those of the same reason."""
        if len(self._listed) < MAX_LISTED:
            self._listed.append(_note(file, line, text, reason))
            return
        if reason not in self._counts:
            self._first[reason] = _note(file, line, text, reason)
        self._counts[reason] = self._counts.get(reason, 0) + 1

    def all(self) -> tuple[dict[str, Any], ...]:
        """What is listed, then for each reason the first part that is not and how many there are."""
        counted = [
            {**first, "reason": f"{reason} ({self._counts[reason]} from here on, not listed one by one)"}
            for reason, first in self._first.items()
        ]
        return (*self._listed, *counted)


def _note(file: str, line: int, text: str | bytes | dict[str, Any], reason: str) -> dict[str, Any]:
    if isinstance(text, bytes):
        text = text[: 4 * SHOWN_CHARS].decode("utf-8", "replace")
    shown: str = without_surrogates(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False))
    if len(shown) > SHOWN_CHARS:
        shown = shown[:SHOWN_CHARS] + "…"
    return {"file": file, "line": line, "text": shown, "reason": reason}
