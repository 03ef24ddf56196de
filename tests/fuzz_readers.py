"""Attacks what reads foreign bytes in Python: attachments, submissions, configurations, a model's answers.

    python tests/fuzz_readers.py 10                      # ten minutes for each reader
    python tests/fuzz_readers.py 10 docx config          # these alone
    python tests/fuzz_readers.py 10 --guided docx        # by coverage, where atheris is installed
    python tests/fuzz_readers.py --again docx FILE…      # inputs that were kept

What must hold for any bytes: the reader ends in reasonable time, in what it is for or in the one refusal that
it names. What breaks one is kept in `fuzz-faults`; what reaches new lines goes on growing in `fuzz-corpus`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
import traceback
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS = Path("fuzz-faults")
CORPUS = Path("fuzz-corpus")
# Of the changes to an input, how many are libFuzzer's own; the others are those of `damaged`.
SMALL_CHANGES = 0.5
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


def _answer(content: bytes) -> None:
    from tests.hostile_answers import hostile_answer

    hostile_answer(content)


READERS: dict[str, Callable[[bytes], None]] = {
    "answer": _answer,
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
    if name == "answer":
        from tests import hostile_answers

        return hostile_answers.samples()
    if name == "submission":
        from tests.sse import new_task, submission

        task = {**new_task("交表", ["m1"], quotes=[{"ref": "m1", "text": "18:00"}]), "task_ref": "t1"}
        return (json.dumps(submission({"c1": [task], "c2": []})).encode(),)
    files = sorted((ROOT / "tests" / "attachments").glob(f"*.{name}"))
    found = tuple(file.read_bytes() for file in files if file.stat().st_size < LARGEST_SAMPLE)
    return found or (b"<p>a<style>.x{display:none}</style><b class=x>b</b>,c;\t1\n",)


def damaged(chance: random.Random, name: str, content: bytes | None = None) -> bytes:
    """The content, or a sample, with one to eight faults."""
    made = bytearray(chance.choice(samples(name)) if content is None else content)
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
                made[at:at] = chance.choice(_TOKENS)
    return bytes(made)


def strike(name: str, content: bytes) -> None:
    """One input; whatever breaks the reader is raised, and the input kept."""
    began = time.process_time()
    try:
        READERS[name](content)
        assert time.process_time() - began < SLOW_SECONDS, "it took too long"
    except Exception:
        FAULTS.mkdir(exist_ok=True)
        kept = FAULTS / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
        kept.write_bytes(content)
        sys.stderr.write(f"{name}: broken by {kept}\n")
        raise


def attack(name: str, seconds: float, seed: int) -> tuple[int, bool]:
    """Damage for so long; how many inputs held, and whether one did not."""
    chance = random.Random(f"{name} {seed}")  # noqa: S311 - damage that can be made again, no secrets
    until, done = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        try:
            strike(name, damaged(chance, name))
        except Exception:  # noqa: BLE001 - whatever it is, it is a fault
            traceback.print_exc()
            return done, True
        done += 1
    return done, False


def attack_guided(name: str, seconds: float) -> None:
    """The same with atheris, which goes on from inputs that reached new lines; ends the process."""
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with atheris.instrument_imports(include=["chatproc", "openai._streaming"]):
        import chatproc.agent.session
        import chatproc.attachments.docx
        import chatproc.attachments.sheet
        import chatproc.attachments.slides
        import chatproc.attachments.text
        import chatproc.config  # noqa: F401 - seen by its coverage
    seeds = (CORPUS / name).absolute()
    seeds.mkdir(parents=True, exist_ok=True)
    for place, sample in enumerate(samples(name)):
        (seeds / f"sample-{place}").write_bytes(sample)

    def changed(content: bytes, longest: int, chosen: int) -> bytes:
        chance = random.Random(chosen)  # noqa: S311 - libFuzzer's own seed
        if not content or chance.random() < SMALL_CHANGES:
            return bytes(atheris.Mutate(content, longest))
        return damaged(chance, name, content)[:longest]

    limits = [f"-max_total_time={max(1, round(seconds))}", f"-max_len={LARGEST_SAMPLE}", "-timeout=60"]
    bounds = [
        "-rss_limit_mb=2048",
        "-verbosity=0",
        "-print_final_stats=1",
        f"-artifact_prefix={FAULTS}/{name}-",
    ]
    FAULTS.mkdir(exist_ok=True)
    one = partial(strike, name)
    atheris.Setup([sys.argv[0], *limits, *bounds, str(seeds)], one, custom_mutator=changed)
    atheris.Fuzz()


def main() -> None:
    """As the first lines of this file say."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("minutes", nargs="?", type=float, default=10.0, help="for each reader (10)")
    options.add_argument("readers", nargs="*", metavar="READER", help="these alone")
    options.add_argument("--guided", action="store_true", help="by coverage, with atheris")
    options.add_argument("--again", nargs="+", metavar="FILE", help="a reader, then kept inputs")
    settings = options.parse_intermixed_args()
    if settings.again:
        name, *files = settings.again
        for file in files:
            strike(name, Path(file).read_bytes())
        return
    seconds, names = settings.minutes * 60, settings.readers or sorted(READERS)
    if settings.guided and len(names) == 1:
        attack_guided(names[0], seconds)
    broken = False
    for name in names:
        if settings.guided:
            # Each in a process of its own: libFuzzer ends it.
            again = [sys.executable, __file__, str(settings.minutes), "--guided", name]
            broken |= subprocess.run(again, check=False).returncode != 0
            continue
        done, fault = attack(name, seconds, seed=int(time.time()))
        sys.stdout.write(f"{name}: {done} inputs held{', then one did not' if fault else ''}\n")
        sys.stdout.flush()
        broken |= fault
    sys.exit(broken)


if __name__ == "__main__":
    main()
