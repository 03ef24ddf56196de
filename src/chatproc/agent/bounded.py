"""How much an endpoint may send in one answer, so that none fills the memory.

What the client reads, it reads whole: a line, an event, the page of an error. So bytes are counted where they
come from the network, before anything is made of them, and packed ones, which tell nothing of their size, are
not unpacked at all: requests ask for plain ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LARGEST_ANSWER = 64 << 20
"""Bytes of one answer: some hundred thousand tokens, each in an event of its own."""


MOST_CALLS = 256
"""Calls of one reply; each new one is looked for among those before."""


class UnboundedError(ValueError):
    """An answer is larger than any reply, or packed; its text says which."""


async def bound(response: httpx2.Response) -> None:
    """Count what is read of this response: a hook of the client, called when its headers are there."""
    packed = response.headers.get("content-encoding", "").strip().lower() not in {"", "identity"}
    response.stream = _Counted(cast("httpx2.AsyncByteStream", response.stream), packed=packed)


class _Counted(httpx2.AsyncByteStream):
    """The bytes of a stream, up to the limit."""

    def __init__(self, stream: httpx2.AsyncByteStream, *, packed: bool) -> None:
        self._stream = stream
        self._packed = packed
        self._size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            if self._packed and piece:
                raise UnboundedError("the answer is packed, which nobody asked for")
            self._size += len(piece)
            if self._size > LARGEST_ANSWER:
                raise UnboundedError(f"an answer of more than {LARGEST_ANSWER >> 20} MB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
