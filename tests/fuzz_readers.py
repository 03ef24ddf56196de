"""Attacks what reads foreign bytes in Python: attachments, submissions, configurations.

    python tests/fuzz_readers.py 10                # ten minutes for each reader
    python tests/fuzz_readers.py 10 docx config    # these alone
    python tests/fuzz_readers.py --guided docx     # by coverage, where atheris is installed, until stopped

What must hold for any bytes: the reader ends in reasonable time, in what it is for or in the one refusal that
it names. What breaks one is kept in `fuzz-faults`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import sys
import tempfile
import time
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS = Path("fuzz-faults")
SLOW_SECONDS = 10.0
LARGEST_SAMPLE = 40_000
_MOST_UNITS = 20
_TOKENS = (b"\0", b"\xff", b"<", b'"', b"[", b"{}", b"null", b"-1e999", b"\n")


def _attachment(kind: str) -> Callable[[bytes], None]:
    def read(content: bytes) -> None:
        from chatproc.attachments import docx, sheet, slides, text
        from chatproc.attachments.units import Limits, UnreadableError

        openers = {"docx": docx, "xlsx": sheet, "csv": sheet, "pptx": slides}
        with contextlib.suppress(UnreadableError):
            document = openers.get(kind, text).open_document(content, kind, Limits())
            try:
                for number in range(1, min(document.total, _MOST_UNITS) + 1):
                    document.unit(number)
            finally:
                document.close()

    return read


def _configuration(content: bytes) -> None:
    from chatproc.config import load_config
    from chatproc.errors import ConfigError

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "processor.toml"
        file.write_bytes(content)
        with contextlib.suppress(ConfigError):
            load_config(file)


def _submission(content: bytes) -> None:
    from tests.test_submission import holds, verdict_on

    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return
    holds(verdict_on(value))


READERS: dict[str, Callable[[bytes], None]] = {
    "config": _configuration,
    "csv": _attachment("csv"),
    "docx": _attachment("docx"),
    "html": _attachment("html"),
    "pptx": _attachment("pptx"),
    "submission": _submission,
    "txt": _attachment("txt"),
    "xlsx": _attachment("xlsx"),
}


@cache
def samples(name: str) -> tuple[bytes, ...]:
    """What damage begins with."""
    if name == "config":
        return ((ROOT / "config" / "processor.toml").read_bytes(),)
    if name == "submission":
        from tests.sse import new_task, submission

        task = {**new_task("交表", ["m1"], quotes=[{"ref": "m1", "text": "18:00"}]), "task_ref": "t1"}
        return (json.dumps(submission({"c1": [task], "c2": []})).encode(),)
    files = sorted((ROOT / "tests" / "attachments").glob(f"*.{name}"))
    found = tuple(file.read_bytes() for file in files if file.stat().st_size < LARGEST_SAMPLE)
    return found or (b"<p>a<style>.x{display:none}</style><b class=x>b</b>,c;\t1\n",)


def damaged(chance: random.Random, name: str) -> bytes:
    """A sample with one to eight faults."""
    made = bytearray(chance.choice(samples(name)))
    for _ in range(chance.randint(1, 8)):
        at = chance.randint(0, len(made))
        match chance.randrange(5):
            case 0 if at < len(made):
                made[at] = chance.randrange(256)
            case 1:
                del made[at : at + chance.randint(1, 40)]
            case 2:
                made[at:at] = made[chance.randint(0, len(made)) :][: chance.randint(1, 400)]
            case 3:
                other = chance.choice(samples(name))
                made[at:at] = other[chance.randint(0, len(other)) :][: chance.randint(1, 400)]
            case _:
                made[at:at] = chance.choice(
                    (b"\0", b"\xff", b"<", b'"', b"[", b"{}", b"null", b"-1e999", b"\n")
                )
    return bytes(made)


def attack(name: str, seconds: float, seed: int) -> tuple[int, Path | None]:
    """Damage for so long; how many inputs held, and where the one lies that did not."""
    chance = random.Random(f"{name} {seed}")  # noqa: S311 - damage that can be made again, no secrets
    until, done = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        content = damaged(chance, name)
        began = time.process_time()
        try:
            READERS[name](content)
            assert time.process_time() - began < SLOW_SECONDS, "it took too long"
        except Exception:  # noqa: BLE001 - whatever it is, it is a fault
            FAULTS.mkdir(exist_ok=True)
            kept = FAULTS / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
            kept.write_bytes(content)
            traceback.print_exc()
            return done, kept
        done += 1
    return done, None


def main() -> None:
    """As the first lines of this file say."""
    if sys.argv[1] == "--guided":
        import atheris

        with atheris.instrument_imports(include=["chatproc"]):
            import chatproc.attachments
            import chatproc.config  # noqa: F401 - seen by its coverage
        atheris.Setup(sys.argv[:1], READERS[sys.argv[2]])
        atheris.Fuzz()
    seconds, names = float(sys.argv[1]) * 60, sys.argv[2:] or sorted(READERS)
    broken = False
    for name in names:
        done, kept = attack(name, seconds, seed=int(time.time()))
        sys.stdout.write(f"{name}: {done} inputs held{f', broken by {kept}' if kept else ''}\n")
        sys.stdout.flush()
        broken |= kept is not None
    sys.exit(broken)


if __name__ == "__main__":
    main()
