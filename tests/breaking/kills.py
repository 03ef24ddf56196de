"""The morning of a day, a process that works through it, and what must hold after it was cut off.

Paths stay the same for all cases, so that bytes can be compared.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from chatproc import _core
from tests.breaking.faults import Fault, Met, library, read_log
from tests.breaking.life import DAY, NOW, Life
from tests.project import Warm, chat, event, lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.breaking.cases import Case, Report

DAYS = 3
"""Two of one project, and the first one of another that begins with a sync."""
_FORK = "from tests.breaking.fork import main; main()"


def write_life(root: Path) -> None:
    """What chats and what is pulled on the first day: repeats, refused lines, clicks to come."""
    for folder in ("in", "kept", "pages/0", "pages/1"):
        (root / folder).mkdir(parents=True)
    lab = chat("lab", "请大家周五前交报告 完成0", "好的", "交到 302")
    first = [*lab, *(event(f"home{n}", f"交水费 {n} 改期0", conversation="home") for n in range(2))]
    (root / "in" / "a.jsonl").write_text(lines(*first, "no json"))
    (root / "in" / "b.jsonl").write_text(lines(lab[0], *chat("club", "交会费 完成1", "收到")))
    (root / "pages" / "0" / "1").write_text(lines(*chat("mail", "交表")))
    (root / "pages" / "0" / "2").write_text(lines(*chat("mail", "交押金 改期1", begin=1), "no json either"))


def write_second_day(root: Path) -> None:
    """The second day's files; they come after the first night."""
    edited = event("lab0", "请大家周四前交报告", conversation="lab", revision=1, state="edited",
                   sequence={"index": 0, "predecessor": None})  # fmt: skip
    recalled = event("home1", "", conversation="home", revision=1, state="recalled")
    batch = lines(
        edited, recalled, *chat("club", "周三交", begin=2), *chat("new", "交表", "两份"), "still none"
    )
    (root / "in" / "c.jsonl").write_text(batch)
    (root / "pages" / "1" / "1").write_text(lines(*chat("mail", "收到", begin=2), event("one", "交照片")))


class Stage:
    """A project that is set back to the morning of a day for each case."""

    def __init__(self, folder: Path, package: Path) -> None:
        self.folder = folder
        self.life = Life(folder / "project")
        preload = library()
        environment = {} if preload is None else {"LD_PRELOAD": str(preload)}
        self.has_faults = preload is not None
        self._warm = Warm(package, program=_FORK, environment=environment)
        self._mornings = [folder / f"day{number}" for number in range(DAYS)]
        self._outcomes: list[dict[str, Any]] = []
        self.seconds: list[float] = []
        self.calls: list[Met] = []
        """The calls of each undisturbed day that change files."""
        self.points: list[Counter[str]] = []
        """How often each undisturbed day meets each fail point."""
        write_life(self.life.root)
        for day in range(DAYS):
            shutil.copytree(self.life.root, self._mornings[day])
            self._undisturbed(day)
            if day == 0:
                write_second_day(self.life.root)
            else:
                shutil.rmtree(self.life.root)
                write_life(self.life.root)
                (self.life.root / "pages" / "0").rename(self.life.root / "pages" / "2")

    def _undisturbed(self, day: int) -> None:
        begin = time.monotonic()
        assert self.run(day) == 0, self.error()
        self.seconds.append(time.monotonic() - begin)
        self._outcomes.append(self.life.outcome())
        self.points.append(Counter((self.folder / "points").read_text().split()))
        kept = self.folder / "evening"
        self.life.root.rename(kept)
        shutil.copytree(self._mornings[day], self.life.root)
        if self.has_faults:
            assert self.run(day, Fault("count")) == 0, self.error()
            self.calls.append(self.met())
            assert self.life.outcome() == self._outcomes[day], "two undisturbed days differ"
        shutil.rmtree(self.life.root)
        kept.rename(self.life.root)

    def close(self) -> None:
        self._warm.close()

    def run(self, day: int, fault: Fault | None = None, point: str = "", instant: float | None = None) -> int:
        """A day's work in a process of its own, to its end or to what ends it."""
        for name in ("calls", "points", "err"):
            (self.folder / name).write_bytes(b"")
        environment = {"CHATPROC_FAILPOINT": point, "CHATPROC_FAILPOINT_LOG": str(self.folder / "points")}
        running = self._warm.start(
            {
                "root": str(self.life.root),
                "day": day,
                "environment": environment,
                "fault": fault.told(self.life.root, self.folder / "calls") if fault else None,
                "out": str(self.folder / "err"),
                "err": str(self.folder / "err"),
            }
        )
        return (running.wait() if instant is None else running.kill_after(instant * self.seconds[day])).code

    def error(self) -> str:
        return (self.folder / "err").read_text(encoding="utf-8")

    def met(self) -> Met:
        return read_log(self.folder / "calls")

    # ── a case ───────────────────────────────────────────────────────────────────────────────────────

    def meet(self, case: Case, report: Report) -> None:
        """Cut a day off as the case says, run it again, and note what is not as it would have been."""
        shutil.rmtree(self.life.root)
        shutil.copytree(self._mornings[case.day], self.life.root)
        begun = len(self.life.asked_for())
        faults = [str(case)]
        for cut in case.cuts:
            code = self.run(case.day, cut.fault, cut.point, cut.instant)
            report.points[cut.kind] += 1
            hits = [f"{name} {path}" for name, path in self.met().hits]
            came = bool(hits) or (code < 0 if cut.fault is None else False)
            report.hit[cut.kind] += came
            report.places.update(hits or [cut.point.partition(":")[0]] if came else ())
            if "panicked" in self.error() or "PanicException" in self.error():
                faults.append(f"panic: {self.error()}")
        faults += self._faults(case.day, begun, report)
        if len(faults) > 1:
            report.broken.append("\n  ".join(faults))

    def _faults(self, day: int, begun: int, report: Report) -> list[str]:
        """What is wrong now, and after the day was run again."""
        life, now = self.life, NOW + day * DAY
        found = self._unsound("after the cut", life.state)
        published = life.published()
        waiting = life.waiting(now)
        gone = set(life.committed()) & waiting
        report.lost += len(gone)
        found += [f"a committed answer is gone: {segments}" for segments in gone]
        committed = set(life.asked_for()[begun:]) - waiting
        asked = len(life.asked_for())
        code = self.run(day)
        if code:
            return [*found, f"running the day again ended with {code}: {self.error()}"]
        again = committed & set(life.asked_for()[asked:])
        report.doubled += len(again)
        found += [f"a committed answer was asked for again: {segments}" for segments in again]
        found += self._unsound("in the end", life.state, life.root / "kept" / f"{day}.db")
        there = life.published()
        changed = [name for name, content in published.items() if there.get(name) != content]
        report.lost += len(changed)
        found += [f"a published file has changed: {name}" for name in changed]
        found += [f"left in the output: {file.name}" for file in life.output.glob("*.tmp")]
        return found + self._differences(life.outcome(), self._outcomes[day], report)

    def _unsound(self, when: str, *stores: Path) -> list[str]:
        verdicts = [(file, _core.verify(file, self.life.output)) for file in stores]
        return [
            f"{when}, {file.name}: {verdict['breaks']}" for file, verdict in verdicts if not verdict["ok"]
        ]

    @staticmethod
    def _differences(got: dict[str, Any], wanted: dict[str, Any], report: Report) -> list[str]:
        (events, should) = (Counter(it["output"].splitlines()) for it in (got, wanted))
        report.lost += (should - events).total()
        report.doubled += sum(number - 1 for number in events.values() if number > 1)
        report.lost += max(0, wanted["status"]["messages"] - got["status"]["messages"])
        return [f"{name} differs: {got[name]!r}" for name in wanted if got[name] != wanted[name]]
