"""Work that must not be left half way when the task that waits for it is cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")


async def to_end(
    call: Callable[..., _Result],
    *arguments: Any,  # noqa: ANN401 - those of the call
    stop: Callable[[], None] | None = None,
    **named: Any,  # noqa: ANN401
) -> _Result:
    """Call in a thread and wait until it returns, also when cancelled meanwhile; the cancellation follows.

    Args:
        call: What blocks, such as a commit.
        arguments: Its arguments.
        stop: Called when cancelled, so that a long call ends soon.
        named: Its named arguments.

    Raises:
        asyncio.CancelledError: Cancelled; the call has returned by then, its result is lost.
    """
    work = asyncio.ensure_future(asyncio.to_thread(call, *arguments, **named))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # it has been looked at
        raise
