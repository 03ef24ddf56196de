"""What the core is given: the configuration as its functions take it, and how it tells how far it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from chatproc.results import Progress

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from chatproc.config import Config
    from chatproc.results import Json
    from chatproc.rules import Rules

    Watch = Callable[[Progress], None] | None

MILLION = 1_000_000


def has_store(config: Config) -> bool:
    """Whether there is anything to ask.

    Args:
        config: From `load_config`.
    """
    return config.storage.state.exists()


def wall_clock() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // MILLION


def input_of(config: Config) -> Json:
    """Where new input lies and how it is read, as of now.

    Args:
        config: From `load_config`.
    """
    return {**reading(config), "paths": list(config.input.paths), "now": wall_clock()}


def reading(config: Config) -> Json:
    """How the core reads batches; `paths` and `now` are for the caller to add.

    Args:
        config: From `load_config`.
    """
    return {
        "max_line_bytes": config.input.max_line_bytes,
        "settle_ms": round(config.input.settle_seconds * 1000),
        "max_memory_mb": config.input.max_memory_mb,
        "state": str(config.storage.state),
        "output": str(config.storage.output),
    }


def options_of(config: Config) -> Json:
    """How messages become groups.

    Args:
        config: From `load_config`.
    """
    return {
        **config.context.model_dump(),
        **config.processing.model_dump(),
        "start_at": config.input.start_at_ms / 1000,
        "batching": config.agent.batching,
        "timezone": config.rules.timezone,
    }


def settings_of(config: Config, rules: Rules) -> Json:
    """What a submission is asked under: another value makes its segments pending again.

    Args:
        config: From `load_config`.
        rules: From `read_rules`.
    """
    from chatproc.agent.prompt import PROTOCOL_VERSION

    return {
        "protocol": PROTOCOL_VERSION,
        "rules_file": _shown_path(config, rules.file),
        "rules_sha256": rules.sha256,
        "base_url": config.agent.base_url,
        "model": config.agent.model,
        "vision": config.agent.vision,
    }


def _shown_path(config: Config, file: Path) -> str:
    """A path as records carry it: below the project where it lies there."""
    return str(file.relative_to(config.root)) if file.is_relative_to(config.root) else str(file)


def bytes_read(progress: Watch, stopped: threading.Event | None = None) -> Callable[[int, int], None]:
    """Tells of bytes read after each slice; what it raises ends the reading."""
    from asyncio import CancelledError

    def tell(done: int, total: int) -> None:
        if stopped is not None and stopped.is_set():
            raise CancelledError
        if progress is not None:
            progress(Progress(stage="ingest", done=done, total=total, unit="bytes"))

    return tell


def told(progress: Watch, stage: str, unit: str) -> Callable[[int, int], None]:
    """What the core calls with done and total, for who watches.

    Args:
        progress: Told; may be `None`.
        stage: Of the work.
        unit: Of what is counted.
    """

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(Progress(stage=stage, done=done, total=total, unit=unit))

    return tell
