"""The reading process: one document at a time, opened once, its units on demand.

Started by `isolation` as a program of its own. Parsers run here and nowhere else. It must never do more than
answer frames: it has no network, no secret, and dies with the program.
"""

from __future__ import annotations

import importlib
import json
import socket
import sys
from typing import TYPE_CHECKING, Any

from chatproc.attachments import confine, frames
from chatproc.attachments.sniff import sniff
from chatproc.attachments.units import Limits, UnreadableError, clean, seen

if TYPE_CHECKING:
    from chatproc.attachments.units import Document

_PACKAGE = "chatproc.attachments"

PARSERS: dict[str, str] = {
    "pdf": f"{_PACKAGE}.pdf",
    "docx": f"{_PACKAGE}.docx",
    **dict.fromkeys(("txt", "md", "html"), f"{_PACKAGE}.text"),
    **dict.fromkeys(("xlsx", "csv"), f"{_PACKAGE}.sheet"),
    **dict.fromkeys(("png", "jpeg", "webp", "gif", "bmp", "tiff", "heic", "ppm"), f"{_PACKAGE}.image"),
    **dict.fromkeys(("doc", "rtf", "odt", "ods", "odp", "wps", "ppt", "pptx", "xls"), f"{_PACKAGE}.office"),
    **dict.fromkeys(("wordml", "wri", "mhtml"), f"{_PACKAGE}.office"),
}
"""The module that reads each kind; imported when the first such document comes."""

CONVERTED = frozenset(kind for kind, module in PARSERS.items() if module.endswith(".office"))
"""Kinds that LibreOffice converts first, which takes longer."""


class _Reading:
    """The open document and what it may take."""

    def __init__(self, control: socket.socket, limits: Limits, conversion_seconds: float) -> None:
        self.control = control
        self.limits = limits
        self.conversion_seconds = conversion_seconds
        self.document: Document | None = None

    def answer(self, request: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
        """What goes back for one request, whatever the parser does short of dying."""
        try:
            if request["ask"] == "open":
                return self._open(request["named"], content, request["turn"])
            return self._unit(request["number"])
        except UnreadableError as error:
            return _unreadable(error)
        except MemoryError:
            return _unreadable(UnreadableError("memory", "it takes more memory than a file may"))
        except ImportError as error:
            words = f"what reads it is not installed ({error.name}): install chatproc anew"
            return _unreadable(UnreadableError("crashed", words))
        except Exception as error:  # noqa: BLE001 - a parser may raise anything; the file is what is wrong
            words = f"its content makes no sense to the parser ({type(error).__name__})"
            return _unreadable(UnreadableError("corrupt", words))

    def _open(self, named: str, content: bytes, turn: int) -> tuple[dict[str, Any], bytes]:
        self._close()
        confine.allow_seconds(self.limits.timeout_seconds)
        found = sniff(content, named)
        if found.kind in CONVERTED:
            frames.send(self.control, {"converting": True, "turn": turn})
            confine.allow_seconds(self.conversion_seconds)
        parser = importlib.import_module(PARSERS[found.kind])
        document: Document = parser.open_document(content, found.kind, self.limits)
        self.document = document
        note = " ".join(part for part in (found.note, document.note) if part)
        return {"opened": {"total": document.total, "note": note}}, b""

    def _unit(self, number: int) -> tuple[dict[str, Any], bytes]:
        confine.allow_seconds(self.limits.timeout_seconds)
        if self.document is None:
            raise UnreadableError("crashed", "no document is open")
        unit = self.document.unit(number)
        text = seen(clean(unit.text)).encode()
        header = {"id": unit.id, "mime": unit.mime, "text": len(text)}
        return {"unit": header}, text + (unit.image or b"")

    def _close(self) -> None:
        document, self.document = self.document, None
        if document is not None:
            document.close()


def _unreadable(error: UnreadableError) -> tuple[dict[str, Any], bytes]:
    return {"unreadable": {"code": error.code, "words": error.words}}, b""


def main() -> None:
    """Give up what a reader does not need, then answer until the program goes."""
    settings = json.loads(sys.argv[1])
    limits = Limits(**settings["limits"])
    control = socket.socket(fileno=settings["control"])
    confine.die_with_program(settings["lifeline"])
    confine.limit_resources(limits.max_memory_mb, limits.max_file_mb)
    network = confine.give_up_network()
    frames.send(control, {"ready": {"network": network}, "turn": 0})
    reading = _Reading(control, limits, settings["conversion_seconds"])
    while True:
        try:
            request, content = frames.receive(control, limits.max_file_mb * 1024 * 1024)
        except (frames.FrameError, OSError):
            return
        answer, rest = reading.answer(request, content)
        del content
        frames.send(control, {**answer, "turn": request["turn"]}, rest)
