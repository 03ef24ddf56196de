"""Batch files: the events of one export in one file, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from chatproc.importers.base import sha256_of
from chatproc.importers.events import event_document
from chatproc.whole import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    from chatproc.importers.base import Format, Message, Reading, Source

# Milliseconds: what begins here has a year of five digits in some zone, and the core refuses it.
END_OF_TIME = 253_402_207_200_000


def write_batch(form: Format, source: Source, reading: Reading, out: Path) -> Path:
    """Write the events of one export as one batch file, whole or not at all.

    The name holds the first 12 characters of the source's SHA-256: the same export overwrites itself.

    Raises:
        OSError: A file cannot be read or written.
    """
    reading.begin(source)
    path = out / f"{form.name}-{_source_digest(source, reading)[:12]}.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.writelines(
            _event_line(message, form, reading)
            for message in form.read(source, reading)
            if _has_time(message, reading)
        )
    reading.files.append(str(path))
    return path


def _has_time(message: Message, reading: Reading) -> bool:
    if 0 <= message.sent_at < END_OF_TIME:
        return True
    reading.not_understand(message.file, message.line, message.text, "a time outside the years 1970 to 9999")
    return False


def _event_line(message: Message, form: Format, reading: Reading) -> bytes:
    """One line of a batch: the message as a `chatproc.event/1`, counted in the report."""
    reading.messages += 1
    reading.edits += message.state == "edited"
    reading.recalls += message.state == "recalled"
    document, whole = event_document(message, f"import/{form.name}")
    if not whole:
        reading.repair(message.file, message.line, message.text, "half of a surrogate pair")
    return f"{document}\n".encode()


def _source_digest(source: Source, reading: Reading) -> str:
    """SHA-256 of the one file, or of the sorted relative paths with the hashes of the files."""
    digests = {path: sha256_of(path, reading.tick) for path in source.files}
    if len(digests) == 1:
        return next(iter(digests.values()))
    listed = sorted((path.relative_to(source.root).as_posix(), digest) for path, digest in digests.items())
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
