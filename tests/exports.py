"""Imports an export and reads back what was written; shared by the tests of importers of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chatproc.core import plan_events
from chatproc.importers import import_chats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chatproc.importers import ImportReport

SAMPLES = Path(__file__).parent / "samples"
# 2026-07-01 00:00 in Shanghai, where these tests' clocks stand unless a test says otherwise.
JULY = 1782835200


class Imported:
    """The events of one import and its report."""

    def __init__(self, report: ImportReport) -> None:
        self.report = report
        self.lines = [
            line for path in report.files for line in Path(path).read_bytes().splitlines(keepends=True)
        ]
        self.events: list[dict[str, Any]] = [json.loads(line) for line in self.lines]

    def column(self, *names: str) -> list[Any]:
        """One field of every event, or several of them as tuples; `sender.name` goes into an object."""
        rows = [tuple(_field(event, name) for name in names) for event in self.events]
        return [row[0] for row in rows] if len(names) == 1 else rows

    @property
    def texts(self) -> list[str]:
        return self.column("text")

    @property
    def notes(self) -> list[tuple[int, str]]:
        """What was not understood: line and text."""
        return [(note["line"], note["text"]) for note in self.report.not_understood]


def _field(event: dict[str, Any], path: str) -> Any:  # noqa: ANN401 - any JSON value
    value: Any = event
    for name in path.split("."):
        value = value.get(name)
    return value


def imported(form: str, path: Path, out: Path, **settings: Any) -> Imported:  # noqa: ANN401 - passed on
    return Imported(import_chats(form, [path], out=out, **settings))


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def told(lines: Iterable[bytes]) -> tuple[set[str], list[list[str]]]:
    """What the core makes of events: the messages, and the segments that are proven."""
    taken = list(lines)
    plan = plan_events(taken)
    assert plan.quarantined == []
    keys = {json.loads(line)["message_key"] for line in taken}
    assert plan.messages <= len(keys)
    return keys, sorted(segment["messages"] for segment in plan.segments)
