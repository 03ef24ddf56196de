"""Faults of system calls: `faults.c` built, and told what it is to do in the process it is loaded into."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("faults.c")
WRITES = ("write", "pwrite", "pwrite64")
ACTIONS = ("count", "kill", "tear", "shorten", "fail", "fail on")


@dataclass(frozen=True)
class Fault:
    """What befalls the `place`-th call that changes a file; `calls` and `below` say which ones count."""

    action: str
    place: int = 0
    error: str = ""
    calls: tuple[str, ...] = ()
    below: str = ""
    """A file or folder inside the project, or the beginning of its name."""

    def told(self, root: Path, log: Path) -> list[str | int]:
        """As `arm` takes it."""
        calls = f",{','.join(self.calls)}," if self.calls else ""
        number = getattr(errno, self.error) if self.error else 0
        return [f"{root}/{self.below}", calls, ACTIONS.index(self.action), self.place, number, str(log)]


def arm(told: list[str | int]) -> None:
    """Let the fault befall this process from now on."""
    below, calls, action, place, error, log = told
    arguments = (str(below).encode(), str(calls).encode(), int(action), ctypes.c_long(int(place)), int(error))
    ctypes.CDLL(None).fault_arm(*arguments, str(log).encode())


@functools.cache
def library() -> Path | None:
    """The library to load before all others; none where no C compiler is found."""
    compiler = shutil.which("cc")
    if compiler is None or os.uname().sysname != "Linux":
        return None
    built = Path(tempfile.mkdtemp(prefix="chatproc-faults-")) / "faults.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(built), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return built


@dataclass(frozen=True)
class Met:
    """The calls that were counted, in order, as name and path; and those that the fault befell."""

    calls: list[tuple[str, str]]
    hits: list[tuple[str, str]]

    @property
    def counts(self) -> Counter[str]:
        return Counter(name for name, _ in self.calls)


def read_log(log: Path) -> Met:
    """What happened."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    split = [tuple(line.lstrip("!").split(" ", 1)) for line in lines]
    hits = [call for line, call in zip(lines, split, strict=True) if line.startswith("!")]
    return Met(split, hits)  # type: ignore[arg-type]
