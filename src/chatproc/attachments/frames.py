"""Frames between the program and its reading process: a JSON object and raw bytes, both with their length.

Known to both sides. It must never trust the other side: lengths are bounded before anything is allocated, and
what is not one JSON object is an error.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

LONGEST_HEADER = 256 * 1024
LARGEST_ANSWER = 24 * 1024 * 1024
"""Bytes beside the header of an answer: a picture, a text."""

_LENGTHS = struct.Struct(">IQ")
_SLICE = 1024 * 1024


class FrameError(Exception):
    """What came is no frame: garbage, or too long."""


def send(control: socket.socket, header: dict[str, Any], content: bytes = b"") -> None:
    """Send one frame.

    Args:
        control: The connection.
        header: A JSON object.
        content: Raw bytes beside it.

    Raises:
        OSError: The other side is gone or does not take it in time.
    """
    text = json.dumps(header, ensure_ascii=True).encode()
    control.sendall(_LENGTHS.pack(len(text), len(content)) + text)
    control.sendall(content)


def receive(
    control: socket.socket, largest: int, before_each: Callable[[], None] | None = None
) -> tuple[dict[str, Any], bytes]:
    """Receive one frame.

    Args:
        control: The connection.
        largest: Bytes beside the header at most.
        before_each: Called before every wait, to move a time limit on.

    Returns:
        The header and the bytes.

    Raises:
        FrameError: What came is no frame.
        OSError: The connection ended (`ConnectionError`) or took too long (`TimeoutError`).
    """
    lengths = _exactly(control, _LENGTHS.size, before_each)
    header_length, content_length = _LENGTHS.unpack(lengths)
    if header_length > LONGEST_HEADER or content_length > largest:
        raise FrameError("a frame longer than frames are")
    text = bytes(_exactly(control, header_length, before_each))
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise FrameError("no JSON") from None
    if not isinstance(header, dict):
        raise FrameError("no JSON object")
    return header, bytes(_exactly(control, content_length, before_each))


def _exactly(control: socket.socket, length: int, before_each: Callable[[], None] | None) -> bytearray:
    received = bytearray()
    while len(received) < length:
        if before_each is not None:
            before_each()
        piece = control.recv(min(_SLICE, length - len(received)))
        if not piece:
            raise ConnectionAbortedError
        received += piece
    return received
