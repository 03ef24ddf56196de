"""`run` with a fast clock, in a process of its own whose memory, files and threads are looked at.

    python tests/soak.py PROJECT HOURS PACKAGES

The loop, its connections, rounds, store and HTTP are the program's own; only its waiting is gone. After each
simulated hour it says how it stands, as a line of JSON, and waits for a line: the world is changed meanwhile
by `test_soak.py`. A line that is a number is the most bytes that a file may have from then on: a full disk.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import random
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from chatproc import _core
from chatproc.config import load_config
from chatproc.loop.ticks import Loop
from chatproc.pipeline import Writer
from tests.virtual import VirtualLoop

if TYPE_CHECKING:
    from collections import Counter

_SILENCE = 0.3
"""Seconds for which a socket that is waited for may say nothing before time goes on."""


class FastLoop(VirtualLoop):
    """Time stands still while a socket has something to say."""

    def _run_once(self) -> None:
        waits = not self._ready and not self._in_threads  # type: ignore[attr-defined]
        sockets = self._selector  # type: ignore[attr-defined]
        # One is the loop's own.
        if waits and len(sockets.get_map()) > 1 and sockets.select(_SILENCE):
            asyncio.SelectorEventLoop._run_once(self)  # type: ignore[attr-defined]
            return
        super()._run_once()


def standing(state: Path) -> dict[str, int]:
    """What the system says of this process, and of the store."""
    gc.collect()
    told = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    )
    return {
        "kilobytes": int(told["VmRSS"].split()[0]),
        "threads": int(told["Threads"]),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "store": sum(file.stat().st_size for file in state.parent.glob(f"{state.name}*")),
    }


async def soak(folder: Path, hours: int, events: FastLoop) -> Counter[str]:
    """Live so long, an hour at a time."""
    config = load_config(folder / "config" / "processor.toml")
    chance = random.Random(8)  # noqa: S311 - repeatable, no secret
    with Writer(config, now=events.now) as writer:
        store = _core.Connections(config.storage.state, events.now())
        loop = Loop(
            config, writer, store, now=events.now, chance=lambda: chance.uniform(-1, 1), tell=lambda _: None
        )
        running = asyncio.create_task(loop.run())
        for hour in range(1, hours + 1):
            await asyncio.sleep(3600)
            assert not running.done(), "nothing ends the loop"
            sys.stdout.write(json.dumps({"hour": hour, **standing(config.storage.state)}) + "\n")
            sys.stdout.flush()
            limit = int(sys.stdin.readline() or 0)
            most = limit or resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
            if chance.random() < 0.02:
                events.set_clock(chance.choice([-7200, -60, 60, 7200]))
        loop.stop()
        await running
        store.close()
        return loop.counts


def main() -> None:
    """As the first lines of this file say."""
    folder, hours, packages = sys.argv[1:]
    sys.path[:0] = [packages]
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    events = FastLoop()
    asyncio.set_event_loop(events)
    counts = events.run_until_complete(soak(Path(folder), int(hours), events))
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
