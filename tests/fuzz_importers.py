"""Attacks the importers with damaged samples: every reader for the same time.

    python tests/fuzz_importers.py 30                 # guided by coverage where atheris is installed
    python tests/fuzz_importers.py 30 --blind         # seeded damage alone
    python tests/fuzz_importers.py 5 --reader mbox    # one reader, or several
    python tests/fuzz_importers.py --again FILE…      # inputs that were kept
    python tests/fuzz_importers.py --keep             # what reached new lines, into the project

What must hold for any bytes: the import ends in reasonable time, in a plain refusal or in events that the
core accepts, as many as the report says. An input that breaks this is kept in `fuzz-faults`, the first of
each fault; inputs that reach new lines go on growing in `fuzz-corpus`, and the smallest of them that reach
lines which no sample reaches are kept in `tests/damaged`, which the suite reads. Readers take turns, each in
a process of its own, so that one that dies or hangs stops no other and an attack may end at any time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

TraceFunction: TypeAlias = "Callable[[FrameType, str, Any], Any]"

SAMPLES = Path(__file__).parent / "samples"
FAULTS = Path("fuzz-faults")
CORPUS = Path("fuzz-corpus")
KEPT = Path(__file__).parent / "damaged"
IMPORTERS = str(Path("chatproc") / "importers")
SLOW_SECONDS = 10.0
TURN_SECONDS = 100.0
# A process that has not ended so long after its turn hangs: libFuzzer's own limit for an input is shorter.
PATIENCE_SECONDS = 120.0
LONGEST = 1 << 16
# Of the changes to an input, how many are libFuzzer's own; the others are those of `damaged`.
SMALL_CHANGES = 0.5
SLACK = SAMPLES / "slack/constructed"
CHUNK = "chunk_0001.jsonl"
# Waiting for a disk finds no faults.
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder with a random name is made in it
MEMORY = _MEMORY if _MEMORY.is_dir() else None

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
    """Format, file name and content of samples: what is one file, and of several files one."""
    from chatproc.importers import FORMATS

    files = sorted(path for path in SAMPLES.rglob("*") if path.is_file() and path.stat().st_size <= LONGEST)
    whole = [
        (form.name, path.name, path.read_bytes())
        for path in files
        for form in FORMATS.values()
        if form.recognizes(path)
    ]
    days = [("slack", path.name, path.read_bytes()) for path in sorted(SLACK.glob("*/*.json"))]
    messages = json.loads((SAMPLES / "qq/qce_v5_single.json").read_bytes())["messages"]
    chunk = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages)
    return (*whole, *days, ("qq-qce", CHUNK, chunk.encode()))


def samples_of(reader: str) -> list[tuple[str, bytes]]:
    """File name and content of a reader's samples."""
    return [(name, content) for form, name, content in corpus() if form == reader]


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


def laid_out(form: str, name: str, content: bytes, folder: Path) -> Path:
    """The content as an export in the folder; where it is one file of several, the others stand around it."""
    if form == "slack" and name.endswith(".json"):
        around = {file: (SLACK / file).read_bytes() for file in ("users.json", "channels.json")}
        return _written(folder / "slack", {**around, f"general/{name}": content})
    if (form, name) == ("qq-qce", CHUNK):
        sample = json.loads((SAMPLES / "qq/qce_v5_single.json").read_bytes())
        chunked = {"chunked": {"chunks": [{"relativePath": f"chunks/{name}"}]}}
        manifest = json.dumps({**sample, "messages": None, **chunked}).encode()
        return _written(folder / "chunked", {"manifest.json": manifest, f"chunks/{name}": content})
    return _written(folder, {name: content}) / name


def _written(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def check(form: str, name: str, content: bytes, folder: Path) -> None:
    """Import the content as that format; `AssertionError` or any other error is a fault."""
    from chatproc.core import plan_events
    from chatproc.errors import ConfigError
    from chatproc.importers import FORMATS, import_chats

    export = laid_out(form, name, content, folder)
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
    sys.stderr.flush()


class Turn:
    """One reader under attack: counts its inputs and keeps the first input of each fault."""

    def __init__(self, reader: str, tally: Path) -> None:
        """Begin with nothing counted; `tally` is the file that tells the counts to another process."""
        self.reader = reader
        self.inputs = 0
        self.faults: set[str] = set()
        self._folder = Path(tempfile.mkdtemp())  # removed by whoever set TMPDIR
        self._tally = tally
        self._began = self._told = time.monotonic()

    def strike(self, name: str, content: bytes) -> None:
        """One input; whatever it breaks, the attack goes on."""
        if not self.inputs:
            self._began = time.monotonic()
        self.inputs += 1
        try:
            check(self.reader, name, content, self._folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault of an importer
            self._keep(error, name, content)
        if time.monotonic() - self._told > 1:
            self.tell()

    def tell(self) -> None:
        """Say how far it is: this process may end at any input."""
        self._told = time.monotonic()
        counts = (self.inputs, self._told - self._began, sorted(self.faults))
        self._tally.write_text(json.dumps(counts), "utf-8")

    def _keep(self, error: Exception, name: str, content: bytes) -> None:
        place = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        if fault in self.faults:
            return
        self.faults.add(fault)
        say(f"{self.reader}: {fault}, kept as {kept(self.reader, name, content)}")
        traceback.print_exception(error)
        self.tell()


def kept(reader: str, name: str, content: bytes, folder: Path = FAULTS) -> Path:
    """Keep an input, as one that broke something, under a name that tells its format and file name."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{reader}__{hashlib.sha256(content).hexdigest()[:12]}__{name}"
    path.write_bytes(content)
    return path


def strike_again(path: Path, folder: Path) -> None:
    """One input that was kept."""
    reader, _, name = path.name.split("__", 2)
    check(reader, name, path.read_bytes(), folder)


def lines_reached(form: str, name: str, content: bytes, folder: Path) -> set[tuple[str, int]]:
    """The lines of the importers that this import passes."""
    reached: set[tuple[str, int]] = set()

    def line(frame: FrameType, event: str, argument: object) -> TraceFunction:
        del argument
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        del event, argument
        return line if IMPORTERS in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        check(form, name, content, folder)
    finally:
        sys.settrace(before)
    return reached


def keep_the_least(reader: str, folder: Path) -> int:
    """Keep the smallest inputs of the corpus that reach lines which no sample and no kept input reaches."""
    samples = samples_of(reader)
    earlier = [(path.name.split("__", 2)[2], path.read_bytes()) for path in KEPT.glob(f"{reader}__*")]
    reached: set[tuple[str, int]] = set()
    for name, content in (*samples, *earlier):
        reached |= lines_reached(reader, name, content, folder)
    grown = [path.read_bytes() for path in (CORPUS / reader).glob("*")]
    count = 0
    for content in sorted(filter(None, grown), key=lambda content: (len(content), content)):
        name, damage = samples[content[0] % len(samples)][0], content[1:]
        lines = lines_reached(reader, name, damage, folder)
        if not lines <= reached:
            reached |= lines
            kept(reader, name, damage, KEPT)
            count += 1
    return count


def attack(turn: Turn, seconds: float, seed: int) -> None:
    """Seeded damage until the seconds are over."""
    end = time.monotonic() + seconds
    samples = samples_of(turn.reader)
    while time.monotonic() < end:
        chance = random.Random(seed + turn.inputs)  # noqa: S311 - damage that can be made again, no secrets
        name, content = chance.choice(samples)
        turn.strike(name, damaged(content, chance))
    turn.tell()


def attack_guided(turn: Turn, seconds: float, seed: int) -> None:
    """The same with atheris, which goes on from inputs that reached new lines; ends the process.

    The first byte of an input says which sample it comes from, and so its file name.
    """
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with atheris.instrument_imports(include=["chatproc.importers", "chatproc.attachments.text"]):
        import chatproc.importers  # noqa: F401 - instrumented as it is imported
    samples = samples_of(turn.reader)
    seeds = (CORPUS / turn.reader).absolute()
    seeds.mkdir(parents=True, exist_ok=True)
    for place, (name, content) in enumerate(samples):
        (seeds / f"sample-{name}").write_bytes(bytes([place]) + content)

    def one(content: bytes) -> None:
        if content:
            turn.strike(samples[content[0] % len(samples)][0], content[1:])

    def changed(content: bytes, longest: int, chosen: int) -> bytes:
        chance = random.Random(chosen)  # noqa: S311 - libFuzzer's own seed
        if not content or chance.random() < SMALL_CHANGES:
            return bytes(atheris.Mutate(content, longest))
        return (content[:1] + damaged(content[1:], chance))[:longest]

    FAULTS.mkdir(exist_ok=True)
    limits = [f"-max_total_time={max(1, round(seconds))}", f"-max_len={LONGEST}", f"-seed={seed % (1 << 31)}"]
    bounds = [
        "-rss_limit_mb=2048",
        "-timeout=60",
        "-verbosity=0",
        f"-artifact_prefix={FAULTS}/{turn.reader}-",
    ]
    atheris.Setup([sys.argv[0], *limits, *bounds, str(seeds)], one, custom_mutator=changed)
    atheris.Fuzz()


@dataclass
class Row:
    """What a reader has stood so far."""

    reader: str
    inputs: int = 0
    seconds: float = 0.0
    deaths: int = 0
    faults: frozenset[str] = frozenset()

    def take_turn(self, seconds: float, seed: int, *, blind: bool) -> None:
        """Let a process of its own attack the reader for so long."""
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            tally = Path(folder) / "tally.json"
            command = [sys.executable, __file__, str(seconds / 60), "--seed", str(seed)]
            command += ["--turn", str(tally), "--reader", self.reader, *(["--blind"] if blind else [])]
            try:
                environment = {**os.environ, "TMPDIR": folder}
                code = subprocess.run(
                    command, env=environment, timeout=seconds + PATIENCE_SECONDS, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                code = -1
            self.deaths += code != 0
            inputs, spent, faults = json.loads(tally.read_text("utf-8")) if tally.exists() else (0, 0.0, [])
        self.inputs += inputs
        self.seconds += spent
        self.faults |= frozenset(faults)


def table(rows: list[Row]) -> str:
    """What each reader has stood, and which faults were found."""
    lines = [f"{'reader':<12}{'inputs':>10}{'seconds':>10}{'faults':>8}"]
    lines += [
        f"{row.reader:<12}{row.inputs:>10}{row.seconds:>10.0f}{len(row.faults) + row.deaths:>8}"
        for row in rows
    ]
    lines += [f"{row.reader}: {fault}" for row in rows for fault in sorted(row.faults)]
    lines += [f"{row.reader}: the process died or hung {row.deaths} times" for row in rows if row.deaths]
    return "\n".join(lines) + "\n"


def attack_all(readers: list[str], seconds: float, seed: int, log: Path | None, *, blind: bool) -> int:
    """Let the readers take turns until the time is over; returns how many faults were found."""
    rows = [Row(reader) for reader in readers]
    turn = min(TURN_SECONDS, seconds / len(rows))
    for number in range(max(1, round(seconds / turn / len(rows)))):
        for place, row in enumerate(rows):
            row.take_turn(turn, seed + (number * len(rows) + place) * 10_000_000, blind=blind)
            if log is not None:
                log.write_text(table(rows), "utf-8")
    sys.stdout.write(table(rows))
    return sum(len(row.faults) + row.deaths for row in rows)


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("minutes", nargs="?", type=float, default=10.0, help="of all readers together (10)")
    options.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000_000)
    options.add_argument(
        "--blind", action="store_true", help="seeded damage, also where atheris is installed"
    )
    options.add_argument("--reader", nargs="+", metavar="FORMAT", help="those alone")
    options.add_argument("--log", type=Path, metavar="FILE", help="the table, anew after each turn")
    options.add_argument("--again", nargs="+", type=Path, metavar="FILE", help="kept inputs")
    options.add_argument("--keep", action="store_true", help="the least of the corpus, in tests/damaged")
    options.add_argument("--turn", type=Path, help=argparse.SUPPRESS)
    settings = options.parse_args()
    blind = settings.blind or find_spec("atheris") is None
    if settings.again:
        with tempfile.TemporaryDirectory() as folder:
            for path in settings.again:
                strike_again(path, Path(folder))
    elif settings.keep:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            for reader in settings.reader or sorted({reader for reader, _, _ in corpus()}):
                sys.stdout.write(f"{reader}: {keep_the_least(reader, Path(folder))} kept\n")
                sys.stdout.flush()
    elif settings.turn:
        turn = Turn(settings.reader[0], settings.turn)
        (attack if blind else attack_guided)(turn, 60 * settings.minutes, settings.seed)
    else:
        say("seeded damage" if blind else "seeded damage, guided by coverage")
        readers = settings.reader or sorted({reader for reader, _, _ in corpus()})
        faults = attack_all(readers, 60 * settings.minutes, settings.seed, settings.log, blind=blind)
        sys.exit(faults > 0)


if __name__ == "__main__":
    main()
