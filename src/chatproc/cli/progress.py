"""What a person sees while something takes long: a bar on a terminal, a line now and then elsewhere.

It writes to stderr only, shows nothing for what is done within a second, and never slows or ends the work.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from chatproc.plaintext import one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from chatproc.results import Progress

_PATIENCE = 1.0
_LINE_EVERY = 10.0


class ProgressDisplay:
    """Shows each `Progress` it is called with; a context manager, so that the terminal is left clean.

    Example:
        >>> with ProgressDisplay(say=print) as progress:  # doctest: +SKIP
        ...     run_round(config, progress=progress)
    """

    def __init__(self, *, say: Callable[[str], None], bar: bool | None = None) -> None:
        """Decide once between a bar and lines.

        Args:
            say: Takes the plain lines.
            bar: Whether to draw a bar; `None`: when stderr is a terminal.
        """
        self._say = say
        self._draws = sys.stderr.isatty() if bar is None else bar
        self._bar: RichProgress | None = None
        self._stages: dict[str, TaskID] = {}
        self._began = time.monotonic()
        self._next_line = self._began + _LINE_EVERY

    def __enter__(self) -> Self:
        """Start nothing yet: most commands are done within a second."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing."""
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Show where a round stands."""
        self.show(progress.stage, progress.done, progress.total, progress.unit, _costs(progress))

    def show(self, stage: str, done: int, total: int | None, unit: str, costs: str = "") -> None:
        """Show where any work stands.

        Args:
            stage: What is being done, one bar each.
            done: How much is done, in `unit`.
            total: How much there is, if known.
            unit: `bytes`, or what is counted, in the plural.
            costs: What it took so far.
        """
        now = time.monotonic()
        if now - self._began < _PATIENCE:
            return
        amount = _amount(done, total, unit)
        if self._draws:
            bar = self._bar or self._open_bar()
            if stage not in self._stages:
                self._stages[stage] = bar.add_task(one_line(stage), total=None, amount="", costs="")
            bar.update(self._stages[stage], completed=done, total=total, amount=amount, costs=costs)
        elif now >= self._next_line:
            self._next_line = now + _LINE_EVERY
            self._say(f"{stage}: {amount} {costs}".rstrip())

    def _open_bar(self) -> RichProgress:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            TextColumn("{task.fields[costs]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        return self._bar


def _amount(done: int, total: int | None, unit: str) -> str:
    if unit == "bytes":
        return _megabytes(done) if total is None else f"{_megabytes(done)} of {_megabytes(total)}"
    return f"{done} {unit}" if total is None else f"{done} of {total} {unit}"


def _megabytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"


def _costs(progress: Progress) -> str:
    """Tasks, tokens and money so far, and what is being worked on."""
    parts = []
    if progress.tasks:
        parts.append(f"{progress.tasks} tasks")
    if progress.tokens is not None:
        parts.append(f"{progress.tokens} tokens")
    if progress.price is not None:
        parts.append(f"price {progress.price:.4f}")
    if progress.note:
        parts.append(one_line(progress.note))
    return "  ".join(parts)
