"""Documents page by page: what one reading gives, and what a round already knows.

It asks the reading process for units one at a time, as many as a reading may give. It must never take a
failed unit for an empty one, nor let one document cost more than a few processes.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from chatproc.attachments.isolation import DeathError, Reader
from chatproc.attachments.units import Unit, UnreadableError

if TYPE_CHECKING:
    from chatproc.attachments.units import Limits

_MOST_UNITS = 200
"""Units of one reading at most, however short."""

_MOST_UNREADABLE = 20
"""Units of one reading that may fail before it stops."""

_MOST_DEATHS = 3
"""Reading processes that one document may cost; after that it is given up."""

_CACHE_BYTES = 64 * 1024 * 1024


class File(NamedTuple):
    """A file to read: its bytes, their SHA-256 in hex, the type that its name promises."""

    content: bytes
    sha256: str
    named: str

    @property
    def key(self) -> tuple[str, str]:
        """What makes two files one document."""
        return self.sha256, self.named


@dataclass(frozen=True, slots=True)
class Reading:
    """What one reading gives.

    Args:
        units: The units in order, without those that failed.
        total: How many there are in all.
        next: Where to go on, `None` at the end.
        note: What is to be said about it, failed units too; may be empty.
        sha256: Of the file's bytes, in hex.
        failed: The units that failed, by number.
    """

    units: tuple[Unit, ...]
    total: int
    next: int | None
    note: str
    sha256: str
    failed: dict[int, UnreadableError]


@dataclass(slots=True)
class _Extract:
    """What is known of one document: the units that were asked for so far, with those that failed."""

    total: int
    note: str
    units: dict[int, Unit | UnreadableError] = field(default_factory=dict)
    deaths: int = 0

    def size(self) -> int:
        known = [unit for unit in list(self.units.values()) if isinstance(unit, Unit)]
        return sum(len(unit.text) + len(unit.image or b"") for unit in known)


class Extracts:
    """What was extracted in a round, by the content of files; the oldest goes when it is too much.

    Sessions of a round share it. It holds contents only: what a session has read is in that session's record.

    Args:
        max_bytes: Characters and bytes of pictures that are kept.
    """

    def __init__(self, max_bytes: int = _CACHE_BYTES) -> None:
        """Nothing is known yet."""
        self._max_bytes = max_bytes
        self._known: dict[tuple[str, str], _Extract | UnreadableError] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str]) -> _Extract | UnreadableError | None:
        """What is known of a document."""
        with self._lock:
            return self._known.get(key)

    def put(self, key: tuple[str, str], known: _Extract | UnreadableError) -> None:
        """Keep what became known, as the newest."""
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = known
            sizes = {other: it.size() for other, it in self._known.items() if isinstance(it, _Extract)}
            total = sum(sizes.values())
            for other, size in sizes.items():
                if total <= self._max_bytes or other == key:
                    break
                del self._known[other]
                total -= size


class Pager:
    """Reads documents through one reading process.

    Args:
        limits: What one document and one reading may take.
        extracts: What the round knows.
        reader: The reading process.
    """

    def __init__(self, limits: Limits, extracts: Extracts, reader: Reader) -> None:
        """Open nothing yet."""
        self._limits = limits
        self._extracts = extracts
        self._reader = reader
        self._held: tuple[str, str] | None = None
        """The document that the reading process holds open."""

    def read(self, file: File, start: int, count: int | None) -> Reading:
        """Give some units of a file.

        Args:
            file: The file.
            start: The first unit, from 1.
            count: How many at most; as many as a reading may give when `None`.

        Raises:
            UnreadableError: The whole of it cannot be read.
        """
        extract = self._known(file)
        last = extract.total if count is None else min(extract.total, start - 1 + count)
        page = _Page(self._limits)
        number = start
        while number <= last and page.is_open():
            unit = self._unit(file, extract, number, page)
            if unit is None or not page.take(number, unit):
                break
            number += 1
        self._extracts.put(file.key, extract)
        if page.failed and not page.units and len(page.failed) == extract.total:
            first = page.failed[1]
            raise UnreadableError(first.code, first.words)
        following = number if number <= extract.total and number > start else None
        notes = [f"There is no unit {start}."] if start > extract.total else []
        notes += [extract.note, *page.notes()]
        note = " ".join(part for part in notes if part)
        return Reading(tuple(page.units), extract.total, following, note, file.sha256, page.failed)

    def _known(self, file: File) -> _Extract:
        """The document as the round knows it, opened if it does not."""
        known = self._extracts.get(file.key)
        if known is None:
            try:
                known = self._opened(file)
            except UnreadableError as error:
                known = error
            self._extracts.put(file.key, known)
        if isinstance(known, UnreadableError):
            raise UnreadableError(known.code, known.words)
        return known

    def _opened(self, file: File) -> _Extract:
        self._held = None
        opened = self._reader.open(file.content, file.named)
        self._held = file.key
        if not opened.total:
            raise UnreadableError("empty", "there is nothing in it")
        return _Extract(opened.total, opened.note)

    def _unit(self, file: File, extract: _Extract, number: int, page: _Page) -> Unit | UnreadableError | None:
        """One unit, `None` when the reading's time ended over it and it should be the next one's first."""
        known = extract.units.get(number)
        if known is not None:
            return known
        if extract.deaths >= _MOST_DEATHS:
            return UnreadableError("crashed", "too many of its units end the parser")
        unit: Unit | UnreadableError
        try:
            if self._held != file.key:
                self._opened(file)
            unit = self._reader.unit(number, page.seconds_left())
        except DeathError as death:
            self._held = None
            if death.code == "timeout" and page.units:
                return None
            extract.deaths += 1
            unit = death
        except UnreadableError as error:
            unit = error
        extract.units[number] = unit
        return unit


class _Page:
    """One reading as it fills: characters, pictures, failures, time."""

    def __init__(self, limits: Limits) -> None:
        self.units: list[Unit] = []
        self.failed: dict[int, UnreadableError] = {}
        self._chars = limits.max_chars_per_read
        self._pictures = limits.max_images_per_read if limits.vision else 0
        self._sees = self._pictures > 0
        self._cut: str | None = None
        self._seconds = limits.timeout_seconds
        self._deadline = time.monotonic() + limits.timeout_seconds

    def is_open(self) -> bool:
        """Whether one more unit may be asked for."""
        if len(self.units) >= _MOST_UNITS or len(self.failed) >= _MOST_UNREADABLE:
            return False
        return not (self.units or self.failed) or self.seconds_left() > 0

    def seconds_left(self) -> float:
        """For the next unit; the first one has all of it."""
        return self._deadline - time.monotonic() if self.units or self.failed else self._seconds

    def take(self, number: int, unit: Unit | UnreadableError) -> bool:
        """Put a unit on the page; `False` when there is no room for it."""
        if isinstance(unit, UnreadableError):
            self.failed[number] = unit
            return True
        if unit.image is not None and not self._sees:
            unit = Unit(unit.id, unit.text)
        if self.units and (len(unit.text) > self._chars or (unit.image is not None and not self._pictures)):
            return False
        if len(unit.text) > self._chars:
            self._cut = f"{unit.id} is cut after {self._chars} characters."
            unit = Unit(unit.id, unit.text[: self._chars], unit.image, unit.mime)
        self._chars -= len(unit.text)
        self._pictures -= unit.image is not None
        self.units.append(unit)
        return True

    def notes(self) -> list[str]:
        """What is to be said about this page: each failure once, runs of the same one drawn together."""
        runs: list[tuple[int, int, str]] = []
        for number, error in self.failed.items():
            if runs and runs[-1][1] == number - 1 and runs[-1][2] == str(error):
                runs[-1] = (runs[-1][0], number, str(error))
            else:
                runs.append((number, number, str(error)))
        notes = [
            f"Unit {first} cannot be read: {why}."
            if first == last
            else f"Units {first} to {last} cannot be read: {why}."
            for first, last, why in runs
        ]
        return [*notes, self._cut] if self._cut else notes
