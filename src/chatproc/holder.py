"""Who holds the store or a connection: a process, named so that a person and another process can tell it."""

from __future__ import annotations

import os
import re
import socket
from datetime import datetime
from zoneinfo import ZoneInfo

_TOLD = re.compile(r"process (\d+) on (.+), since .*")


def holder_now(zone: str) -> str:
    """This process, as others are told of it.

    Args:
        zone: In which a person reads times.

    Example:
        >>> holder_now("UTC")  # doctest: +SKIP
        'process 4711 on desk, since 2026-07-01T10:00:00+00:00'
    """
    since = datetime.now(ZoneInfo(zone)).isoformat(timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()}, since {since}"


def is_gone(holder: str) -> bool:
    """Whether this machine knows that a holder has ended; of other machines it knows nothing.

    Args:
        holder: What `holder_now` said in some process.
    """
    told = _TOLD.fullmatch(holder)
    if told is None or told[2] != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(int(told[1]), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False
