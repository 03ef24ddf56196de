"""Attacks the importers with damaged samples: every format, for as many minutes as wanted.

    python tests/fuzz_importers.py 30                 # guided by coverage where atheris is installed
    python tests/fuzz_importers.py 30 --blind         # seeded damage alone; goes on after a fault
    python tests/fuzz_importers.py --again FILE…      # inputs that were kept

What must hold for any bytes: the import ends in reasonable time, in a plain refusal or in events that the
core accepts, as many as the report says. An input that breaks this is kept in `fuzz-faults`.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import sys
import tempfile
import time
import traceback
from functools import cache
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
FAULTS = Path("fuzz-faults")
SLOW_SECONDS = 10.0
LONGEST = 1 << 16

TOKENS = (
    *(b"", b"\n", b"\r\n", b"\n\n", b" ", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\x8e"),
    *(
        b'"',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b"[[",
        b"{}",
        b"[]",
        b",",
        b":",
        b";",
        b"<",
        b">",
        b"&",
        b"%",
    ),
    *(
        b"null",
        b"true",
        b"-1",
        b"0",
        b"1e999",
        b"NaN",
        b"99999999999999999999",
        b'""',
        b"\\ud800",
        b"\\u0000",
    ),
    *(
        b"From ",
        b"--",
        b"=?",
        b"?=",
        b"boundary=",
        b"Content-Type: ",
        b"Date: ",
        b"<a href=",
        b"]]>",
        b"<!--",
    ),
    *(b"2026-02-30", b"24:61", b"12/31/20, ", b"[1/1/20, 1:00:00 AM] ", b"\t", b"\xe4\xb8\x8a\xe5\x8d\x88"),
)


@cache
def corpus() -> tuple[tuple[str, str, bytes], ...]:
    """Format, file name and content of every sample that is one file."""
    from chatproc.importers import FORMATS

    files = sorted(path for path in SAMPLES.rglob("*") if path.is_file() and path.stat().st_size <= LONGEST)
    return tuple(
        (form.name, path.name, path.read_bytes())
        for path in files
        for form in FORMATS.values()
        if form.recognizes(path)
    )


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with a few things lost, doubled, moved, changed or taken from another sample."""
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4, 8, 16))):
        at = chance.randrange(len(found) + 1)
        end = min(len(found), at + chance.choice((0, 1, 2, 8, 40, 400)))
        match chance.randrange(6):
            case 0 | 1:
                found[at:end] = chance.choice(TOKENS)
            case 2:
                found[at:end] = b""
            case 3:
                found[at:at] = found[at:end] * chance.choice((1, 2, 30))
            case 4:
                other = chance.choice(corpus())[2]
                begin = chance.randrange(len(other) + 1)
                found[at:at] = other[begin : begin + chance.choice((4, 40, 400))]
            case _ if at < len(found):
                found[at] ^= 1 << chance.randrange(8)
    return bytes(found[:LONGEST])


def check(form: str, name: str, content: bytes, folder: Path) -> None:
    """Import the content as that format; `AssertionError` or any other error is a fault."""
    from chatproc.core import plan_events
    from chatproc.errors import ConfigError
    from chatproc.importers import FORMATS, import_chats

    export = folder / name
    export.write_bytes(content)
    shutil.rmtree(folder / "out", ignore_errors=True)
    for known in FORMATS.values():
        known.recognizes(export)
    began = time.process_time()
    try:
        report = import_chats(form, [export], out=folder / "out", archive_root=folder, date_order="dmy")
    except ConfigError:
        report = None
    seconds = time.process_time() - began
    assert seconds < SLOW_SECONDS, f"{seconds:.1f} s for {len(content)} bytes"
    if report is not None:
        lines = [line for file in report.files for line in Path(file).read_bytes().splitlines(keepends=True)]
        assert len(lines) == report.messages
        # Damage may give one id to two messages, and then the core has to say so.
        refused = [row for row in plan_events(lines).quarantined if row["reason"] != "revision-conflict"]
        assert not refused, refused
        report.to_dict()


def say(words: str) -> None:
    """A line to whoever watches."""
    sys.stderr.write(words + "\n")


def keep(form: str, name: str, content: bytes) -> Path:
    """Keep an input that broke something, under a name that tells its format and file name."""
    FAULTS.mkdir(exist_ok=True)
    path = FAULTS / f"{form}__{hashlib.sha256(content).hexdigest()[:12]}__{name}"
    path.write_bytes(content)
    return path


def attack(rounds: int | None, seconds: float, seed: int) -> int:
    """Seeded damage until the rounds or the seconds are over; returns how many faults were found."""
    end = time.monotonic() + seconds
    done = faults = 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end and (rounds is None or done < rounds):
            chance = random.Random(seed + done)  # noqa: S311 - damage that can be made again, no secrets
            form, name, content = chance.choice(corpus())
            content = damaged(content, chance)
            done += 1
            try:
                check(form, name, content, Path(folder))
            except Exception:  # noqa: BLE001 - whatever it is, it is a fault of an importer
                faults += 1
                say(f"seed {seed + done - 1}, kept as {keep(form, name, content)}")
                traceback.print_exc()
    say(f"{done} inputs, {faults} faults")
    return faults


def attack_guided(seconds: float) -> None:
    """The same with atheris, which looks for inputs that reach new lines; ends at the first fault."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["chatproc.importers"]):
        import chatproc.importers  # noqa: F401 - instrumented as it is imported
    samples = corpus()
    folder = Path(tempfile.mkdtemp())
    seeds = folder / "corpus"
    seeds.mkdir()
    for place, (_, _, content) in enumerate(samples):
        (seeds / f"{place}").write_bytes(bytes([place % 256]) + content)

    def one(content: bytes) -> None:
        form, name, _ = samples[content[0] % len(samples)] if content else samples[0]
        try:
            check(form, name, content[1:], folder)
        except Exception:
            say(f"kept as {keep(form, name, content[1:])}")
            raise

    limits = [f"-max_total_time={int(seconds)}", f"-max_len={LONGEST}", "-rss_limit_mb=4096", "-timeout=60"]
    FAULTS.mkdir(exist_ok=True)
    atheris.Setup([sys.argv[0], f"-artifact_prefix={FAULTS}/", *limits, str(seeds)], one)
    atheris.Fuzz()


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("minutes", nargs="?", type=float, default=10.0)
    options.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000_000)
    options.add_argument(
        "--blind", action="store_true", help="seeded damage, also where atheris is installed"
    )
    options.add_argument("--again", nargs="+", type=Path, metavar="FILE", help="kept inputs")
    settings = options.parse_args()
    if settings.again:
        with tempfile.TemporaryDirectory() as folder:
            for path in settings.again:
                form, _, name = path.name.split("__", 2)
                check(form, name, path.read_bytes(), Path(folder))
        return
    if not settings.blind:
        try:
            attack_guided(60 * settings.minutes)
        except ModuleNotFoundError:
            say("atheris is not installed: blind")
    sys.exit(attack(None, 60 * settings.minutes, settings.seed) > 0)


if __name__ == "__main__":
    main()
