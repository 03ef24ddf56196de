"""What cuts a day off: each case follows from its number, and all together are counted in a report."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.breaking.faults import WRITES, Fault
from tests.project import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.breaking.kills import Stage

_CORE = ROOT / "rust" / "chatproc-core" / "src"
ALL_FAIL_POINTS = sorted(
    set(
        re.findall(
            r'failpoint::hit\("([^"]+)"\)', "".join(it.read_text("utf-8") for it in _CORE.rglob("*.rs"))
        )
    )
)
ERRORS = ("EIO", "ENOSPC", "EROFS", "EACCES", "EDQUOT")


@dataclass
class Report:
    """What was done, and what it broke."""

    points: Counter[str] = field(default_factory=Counter)
    """Faults that were meant to come, by kind."""
    hit: Counter[str] = field(default_factory=Counter)
    """Faults that came: the process was killed, or a call of it failed."""
    places: set[str] = field(default_factory=set)
    """Different places where they came: a fail point, or a call on a file."""
    lost: int = 0
    """Events, messages or published files that should be there and are not as they were."""
    doubled: int = 0
    """Events that were published twice, and answers that were asked for again."""
    broken: list[str] = field(default_factory=list)
    """Each case that did not end as it should, with what repeats it."""
    seconds: float = 0.0

    def lines(self) -> Iterator[str]:
        """For a person."""
        yield f"{'what cut it off':<24} {'points':>8} {'hit':>8}"
        for kind in sorted(self.points):
            yield f"{kind:<24} {self.points[kind]:>8} {self.hit[kind]:>8}"
        yield f"{'together':<24} {self.points.total():>8} {self.hit.total():>8}"
        yield f"places {len(self.places)}, lost {self.lost}, doubled {self.doubled}, {self.seconds:.0f} s"
        yield from self.broken


@dataclass(frozen=True)
class Cut:
    """One thing that ends a process, or lets a call of it fail."""

    kind: str
    point: str = ""
    """A fail point with the number of the hit."""
    fault: Fault | None = None
    instant: float | None = None
    """After this share of an undisturbed day."""

    def __str__(self) -> str:
        if self.instant is not None:
            return f"killed after {self.instant:.4f} of the day"
        if self.fault is None:
            return f"killed at {self.point}"
        on = f" of {'/'.join(self.fault.calls)}" if self.fault.calls else ""
        return f"{self.fault.action} {self.fault.error} at call {self.fault.place}{on}"


@dataclass(frozen=True)
class Case:
    """A day, and what cuts it off, one after the other; the last ones strike what mends the first."""

    name: str
    day: int
    cuts: tuple[Cut, ...]

    def __str__(self) -> str:
        return f"{self.name}: day {self.day}, {', then '.join(map(str, self.cuts))}"


def every_point(stage: Stage) -> Iterator[Case]:
    """Each fail point at each of its hits."""
    for day, points in enumerate(stage.points):
        for point in sorted(points):
            for hit in range(1, points[point] + 1):
                yield Case(f"point:{day}:{point}:{hit}", day, (Cut("fail point", point=f"{point}:{hit}"),))


def every_call(stage: Stage) -> Iterator[Case]:
    """Each call that changes a file."""
    for day, met in enumerate(stage.calls):
        for place in range(1, len(met.calls) + 1):
            yield Case(f"call:{day}:{place}", day, (Cut("call", fault=Fault("kill", place)),))


def seeded(stage: Stage, seed: int) -> Case:
    """One to three cuts by chance."""
    rng = random.Random(seed)  # noqa: S311 - a choice to be repeated, no secret
    day = rng.randrange(len(stage.points))
    cuts = [_first(stage, day, rng)]
    # What strikes the day that is run again may come after that has ended.
    cuts += [_later(stage, rng) for _ in range(rng.choice((0, 0, 1, 2)))]
    return Case(f"seed:{seed}", day, tuple(cuts))


def _first(stage: Stage, day: int, rng: random.Random) -> Cut:
    kinds = ("instant", "torn write", "failed call", "failed for ever", "short write", "interrupted call")
    kind = rng.choice(kinds if stage.has_faults else kinds[:1])
    if kind == "instant":
        return Cut(kind, instant=rng.uniform(0, 0.9))
    calls = stage.calls[day]
    if kind in {"torn write", "short write"}:
        writes = sum(calls.counts[name] for name in WRITES)
        action = "tear" if kind == "torn write" else "shorten"
        return Cut(kind, fault=Fault(action, rng.randint(1, writes), calls=WRITES))
    if kind == "interrupted call":
        # Linux lets no fsync, rename or unlink end so; a write and an opening may.
        names = (*WRITES, "open")
        total = sum(calls.counts[name] for name in names)
        return Cut(kind, fault=Fault("fail", rng.randint(1, total), "EINTR", names))
    action = "fail" if kind == "failed call" else "fail on"
    return Cut(kind, fault=Fault(action, rng.randint(1, len(calls.calls)), rng.choice(ERRORS)))


def _later(stage: Stage, rng: random.Random) -> Cut:
    if stage.has_faults and rng.random() < 0.5:
        return Cut("call while mending", fault=Fault("kill", rng.randint(1, 200)))
    return Cut("instant while mending", instant=rng.uniform(0, 0.9))


def named(stage: Stage, name: str) -> Case:
    """The case that a line of the report names."""
    kind, _, rest = name.partition(":")
    if kind == "seed":
        return seeded(stage, int(rest))
    return next(case for case in (*every_point(stage), *every_call(stage)) if case.name == name)
