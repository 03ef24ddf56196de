"""Attachments from the archive: paging, what a round knows, what a bad unit costs, every sample's class."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.attachments import Archive, Extracts, Limits, Reading, UnreadableError
from chatproc.attachments.isolation import CONVERSION_SECONDS, Reader
from chatproc.attachments.sniff import sniff
from tests.hostile_parser import BOOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
SAMPLES = HERE / "attachments"
SHARED = HERE.parent.parent / "shared" / "attachments"
"""Real and hostile files that are too many for this repository; used where they lie beside it."""


class Obedient:
    """An archive of documents that say what their parser does; the reading process is kept for a look."""

    def __init__(self, root: Path, limits: Limits, extracts: Extracts) -> None:
        self.root = root
        self.reader = Reader(limits, boot=BOOT)
        self.archive = Archive(root, limits, extracts=extracts, reader=self.reader)

    def read(self, code: str, start: int = 1, count: int | None = None) -> Reading:
        (self.root / "a.txt").write_text(code, encoding="utf-8")
        return self.archive.read({"path": "a.txt", "type": "txt"}, start, count)


@pytest.fixture
def obedient(tmp_path: Path) -> Iterator[Callable[..., Obedient]]:
    made: list[Obedient] = []

    def make(extracts: Extracts | None = None, **limits: Any) -> Obedient:  # noqa: ANN401 - fields of Limits
        more = {"timeout_seconds": 2.0, **limits}
        made.append(Obedient(tmp_path, Limits(**more), extracts or Extracts()))
        return made[-1]

    yield make
    for archive in made:
        archive.archive.close()


def ids(reading: Reading) -> list[str]:
    return [unit.id for unit in reading.units]


# --- paging


def test_a_reading_gives_what_fits_and_says_where_to_go_on(obedient: Callable[..., Obedient]) -> None:
    documents = obedient(max_chars_per_read=250)
    code = "units = [letter * 100 for letter in 'abcdef']"
    first = documents.read(code)
    assert (ids(first), first.next, first.total) == (["b1", "b2"], 3, 6)
    assert (ids(documents.read(code, 3, 1)), documents.read(code, 3, 1).next) == (["b3"], 4)
    last = documents.read(code, 5)
    assert (ids(last), last.next) == (["b5", "b6"], None)
    beyond = documents.read(code, 9)
    assert (ids(beyond), beyond.next, beyond.note) == ([], None, "There is no unit 9.")


def test_a_unit_that_alone_is_too_long_is_cut_and_said_so(obedient: Callable[..., Obedient]) -> None:
    reading = obedient(max_chars_per_read=250).read("units = ['x' * 1000, 'y']")
    assert [len(unit.text) for unit in reading.units] == [250]
    assert reading.note == "b1 is cut after 250 characters."
    assert reading.next == 2


def test_units_are_asked_for_one_by_one_however_many_there_are(obedient: Callable[..., Obedient]) -> None:
    code = """
asked = []
total = 5_000_000
def unit(number):
    asked.append(number)
    return Unit(f"p{number}", f"{number}: {len(asked)} asked " + "x" * 1000)
"""
    documents = obedient()
    begin = time.monotonic()
    assert documents.read(code, 4_000_000).units[0].text.startswith("4000000: 1 asked")
    assert documents.read(code, 1, 2).units[1].text.startswith("2: ")
    assert time.monotonic() - begin < 2


def test_many_short_units_end_a_reading_too(obedient: Callable[..., Obedient]) -> None:
    reading = obedient().read("units = ['x'] * 1000")
    assert (len(reading.units), reading.next) == (200, 201)


def test_pictures_are_counted_and_left_out_where_the_model_does_not_see(
    obedient: Callable[..., Obedient],
) -> None:
    code = (
        "total = 5\ndef unit(number): return Unit(f'i{number}', '', b'\\x89PNG\\r\\n\\x1a\\n', 'image/png')"
    )
    seen = obedient(vision=True, max_images_per_read=2).read(code)
    assert (ids(seen), seen.next) == (["i1", "i2"], 3)
    assert all(unit.image for unit in seen.units)
    for limits in ({"vision": False}, {"vision": True, "max_images_per_read": 0}):
        unseen = obedient(**limits).read(code)
        assert (ids(unseen), unseen.next) == (["i1", "i2", "i3", "i4", "i5"], None)
        assert not any(unit.image for unit in unseen.units)


# --- units that fail


def test_a_unit_that_fails_costs_itself_and_is_named(obedient: Callable[..., Obedient]) -> None:
    code = """
from chatproc.attachments.units import UnreadableError
total = 5
def unit(number):
    if number in (2, 3): raise UnreadableError("corrupt", "page is broken")
    if number == 4: raise UnreadableError("no_text_scanned", "scanned, no text")
    return Unit(f"p{number}", "text")
"""
    reading = obedient().read(code)
    assert (ids(reading), reading.next) == (["p1", "p5"], None)
    assert reading.note == (
        "Units 2 to 3 cannot be read: corrupt: page is broken. "
        "Unit 4 cannot be read: no_text_scanned: scanned, no text."
    )
    assert {number: error.code for number, error in reading.failed.items()} == {
        2: "corrupt",
        3: "corrupt",
        4: "no_text_scanned",
    }


def test_a_document_of_which_no_unit_can_be_read_has_the_class_of_its_units(
    obedient: Callable[..., Obedient],
) -> None:
    scanned = "raise UnreadableError('no_text_scanned', 'scanned, no text')"
    code = f"from chatproc.attachments.units import UnreadableError\ntotal = N\ndef unit(number): {scanned}"
    with pytest.raises(UnreadableError, match="no_text_scanned"):
        obedient().read(code.replace("N", "3"))
    long = obedient().read(code.replace("N", "300"))
    assert (long.units, long.next) == ((), 21)
    assert long.note == "Units 1 to 20 cannot be read: no_text_scanned: scanned, no text."


def test_a_unit_that_ends_the_process_costs_itself_and_the_others_are_read(
    obedient: Callable[..., Obedient],
) -> None:
    code = """
import ctypes
total = 4
def unit(number):
    if number == 2: ctypes.string_at(0)
    return Unit(f"p{number}", "text")
"""
    reading = obedient().read(code)
    assert ids(reading) == ["p1", "p3", "p4"]
    assert reading.note == "Unit 2 cannot be read: crashed: its parser crashed."


def test_a_document_costs_three_processes_at_most(obedient: Callable[..., Obedient]) -> None:
    documents = obedient()
    code = "import os\ntotal = 300\ndef unit(number): os.abort()"
    reading = documents.read(code)
    assert reading.units == ()
    assert "Units 1 to 3 cannot be read: crashed" in reading.note
    before = documents.reader.pid
    assert documents.read(code, 21).units == ()
    assert documents.reader.pid == before


def test_a_slow_unit_ends_the_reading_before_it_and_comes_first_in_the_next(
    obedient: Callable[..., Obedient], tmp_path: Path
) -> None:
    code = f"""
import os, time
total = 6
def unit(number):
    while number == 3 and not os.path.exists({str(tmp_path / "go")!r}):
        time.sleep(0.01)
    return Unit(f"p{{number}}", str(number))
"""
    documents = obedient()
    reading = documents.read(code)
    assert (ids(reading), reading.next, reading.note) == (["p1", "p2"], 3, "")
    (tmp_path / "go").touch()
    assert ids(documents.read(code, reading.next)) == ["p3", "p4", "p5", "p6"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("units = []", "empty"),
        ("import os; os.abort()", "crashed"),
        ("bytes(1 << 40)", "memory"),
        ("while True: pass", "timeout"),
        ("1 / 0", "corrupt"),
    ],
)
def test_a_document_that_cannot_be_opened_is_opened_once_a_round(
    obedient: Callable[..., Obedient], code: str, expected: str
) -> None:
    extracts = Extracts()
    first, second = obedient(extracts), obedient(extracts)
    for documents in (first, second):
        with pytest.raises(UnreadableError) as refused:
            documents.read(code)
        assert refused.value.code == expected
    assert second.reader.pid is None


def test_what_a_round_knows_is_not_read_again_by_another_session(obedient: Callable[..., Obedient]) -> None:
    extracts = Extracts()
    first, second = obedient(extracts), obedient(extracts)
    code = "units = ['a', 'b']"
    assert first.read(code) == second.read(code)
    assert second.reader.pid is None
    assert first.read(code, 2).units == second.read(code, 2).units


def test_a_round_forgets_the_oldest_when_it_knows_too_much(obedient: Callable[..., Obedient]) -> None:
    extracts = Extracts(max_bytes=2500)
    first, second = obedient(extracts), obedient(extracts)
    for letter in "abc":
        first.read(f"units = ['{letter}' * 1000]")
    second.read("units = ['c' * 1000]")
    assert second.reader.pid is None
    second.read("units = ['a' * 1000]")
    assert second.reader.pid is not None


def test_readings_of_two_documents_in_turn_are_each_their_own(obedient: Callable[..., Obedient]) -> None:
    documents = obedient(max_chars_per_read=2)
    texts = []
    for start in (1, 2, 3):
        for name in ("x", "y"):
            reading = documents.read(f"units = ['{name}1', '{name}2', '{name}3']", start)
            texts += [unit.text for unit in reading.units]
    assert texts == ["x1", "y1", "x2", "y2", "x3", "y3"]


# --- types


@pytest.mark.parametrize(
    ("content", "named", "kind", "note"),
    [
        (b"%PDF-1.7", "pdf", "pdf", ""),
        (b"%PDF-1.7", "file", "pdf", ""),
        (b"\xef\xbb\xbf%PDF-1.7", "file", "pdf", ""),
        (b"HTTP/1.1 200 OK\r\n" * 100 + b"%PDF-1.7", "pdf", "pdf", ""),
        (b"{\\rtf1", "doc", "rtf", "Named doc, its content is RTF."),
        (b"\x89PNG\r\n\x1a\n", "jpg", "png", "Named jpg, its content is a PNG image."),
        (b"\xff\xd8\xff\xe0", "jpeg", "jpeg", ""),
        (b"\xff\xd8\xff\xe0", "jpg", "jpeg", ""),
        (b"RIFF\0\0\0\0WEBPVP8 ", "webp", "webp", ""),
        (b"\0\0\0\x18ftypheic", "heic", "heic", ""),
        ("周五交表".encode(), "txt", "txt", ""),
        ("周五交表".encode(), "docx", "txt", "Named docx, its content is plain text."),
        ("周五,交表".encode(), "csv", "csv", ""),
        (b"# a", "md", "md", ""),
        (b"<!DOCTYPE html><p>x", "doc", "html", "Named doc, its content is HTML."),
        (b"<html><p>x", "htm", "html", ""),
        (b"import os", "py", "txt", ""),
        (bytes(range(256)), "doc", "doc", ""),
    ],
)
def test_content_goes_before_the_name_and_a_mismatch_is_said(
    content: bytes, named: str, kind: str, note: str
) -> None:
    assert sniff(content, named) == (kind, note)


@pytest.mark.parametrize(
    ("content", "named", "code"),
    [
        (b"PK\x03\x04" + bytes(30), "zip", "unsupported_type"),
        (b"PK\x03\x04" + bytes(30), "docx", "truncated"),
        (b"PK\x03\x04[Content_Types].xml" + bytes(30), "file", "truncated"),
        (b"PK\x03\x04" + b"PK\x01\x02" * 100_001, "zip", "too_large"),
        (b"\x7fELF" + bytes(30), "txt", "type_mismatch"),
        (b"\x7fELF" + bytes(30), "file", "unsupported_type"),
        (b"Rar!" + bytes(30), "rar", "unsupported_type"),
        (b"<svg xmlns=''></svg>", "svg", "unsupported_type"),
        (bytes(range(256)), "pdf", "type_mismatch"),
        (bytes(range(256)), "weird\u202ename", "unsupported_type"),
    ],
)
def test_what_is_read_by_nobody_is_named(content: bytes, named: str, code: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        sniff(content, named)
    assert refused.value.code == code
    assert "\u202e" not in str(refused.value)


def test_a_link_that_stays_inside_the_archive_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("text")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with Archive(tmp_path) as archive:
        assert ids(archive.read({"path": "link.txt", "type": "txt", "available": True})) == ["b1"]


def test_the_program_loads_no_parser_even_while_it_reads() -> None:
    parsers = {
        "pymupdf",
        "fitz",
        "pypdfium2",
        "PIL",
        "pillow_heif",
        "lxml",
        "openpyxl",
        "zipfile",
        "html.parser",
    }
    code = (
        "import sys; from pathlib import Path; from chatproc.attachments import Archive\n"
        f"with Archive(Path({str(SAMPLES)!r})) as archive:\n"
        "    print(archive.read({'path': 'rotation.pdf', 'type': 'pdf'}).total)\n"
        f"print(sorted({parsers!r} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split("\n")[:2] == ["2", "[]"]


# --- every sample


def expectations() -> dict[str, dict[str, Any]]:
    """What is known of each sample: its class, or its units and words."""
    text = (SAMPLES / "expected.jsonl").read_text(encoding="utf-8")
    return {entry["file"]: entry for entry in map(json.loads, text.splitlines())}


EXPECTED = expectations()


def samples(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name in EXPECTED) if folder.is_dir() else []


@pytest.fixture(scope="module")
def warm() -> Iterator[Reader]:
    """One reading process for all samples, as in a session: what a file does to it, the next one meets."""
    with contextlib.closing(Reader(Limits(vision=True))) as reader:
        yield reader


def outcome(file: Path, warm: Reader) -> Reading | UnreadableError:
    kind = file.suffix.lower().removeprefix(".") or "file"
    try:
        return Archive(file.parent, warm.limits, reader=warm).read({"path": file.name, "type": kind})
    except UnreadableError as error:
        return error


def check_sample(file: Path, warm: Reader) -> None:
    """Read a sample within its time and hold it against what is known of it; its memory is bounded anyhow."""
    expected = EXPECTED[file.name]
    most = CONVERSION_SECONDS if expected.get("converted") else 30.0
    begin = time.monotonic()
    found = outcome(file, warm)
    assert time.monotonic() - begin < most, file.name
    if isinstance(found, Reading):
        check_reading(found, expected)
        return
    if found.code == "converter_missing" and expected.get("converted"):
        assert "libreoffice" in found.words.lower()
        pytest.skip("LibreOffice is not installed")
    assert found.code == expected.get("class"), (file.name, found)


def check_reading(reading: Reading, expected: dict[str, Any]) -> None:
    assert "class" not in expected, (reading.note, [unit.text[:80] for unit in reading.units])
    text = "\n".join(unit.text for unit in reading.units)
    assert reading.units
    assert all(unit.text.strip() or unit.image for unit in reading.units)
    assert reading.total == expected.get("units", reading.total)
    assert reading.total == expected.get("pages", reading.total)
    for word in expected.get("contains", ()):
        assert word in text
    if "starts_with" in expected:
        assert expected["starts_with"] in "".join(text.split())
    for word in expected.get("note", ()):
        assert word in reading.note
    if "size_after_exif" in expected:
        assert all(unit.image for unit in reading.units)


@pytest.mark.parametrize("name", samples(SAMPLES))
def test_every_sample_has_a_result_or_its_exact_class(name: str, warm: Reader) -> None:
    check_sample(SAMPLES / name, warm)


def test_every_sample_is_known() -> None:
    there = {path.name for path in SAMPLES.iterdir()} - {"SOURCES.md", "expected.jsonl"}
    assert there <= set(EXPECTED)
    sources = (SAMPLES / "SOURCES.md").read_text(encoding="utf-8")
    assert [name for name in sorted(there) if f"| {name} |" not in sources] == []


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no shared samples beside the repository ({SHARED})")
@pytest.mark.parametrize("name", [name for name in samples(SHARED) if not (SAMPLES / name).exists()])
def test_every_shared_sample_has_a_result_or_its_exact_class(name: str, warm: Reader) -> None:
    check_sample(SHARED / name, warm)


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no shared samples beside the repository ({SHARED})")
def test_every_shared_sample_is_known() -> None:
    others = {"SOURCES.md", "expected.jsonl", "generate.py"}
    assert {path.name for path in SHARED.iterdir()} - others <= set(EXPECTED)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no shared samples beside the repository ({SHARED})")
def test_every_generated_sample_has_a_result_or_its_exact_class(tmp_path: Path, warm: Reader) -> None:
    """The large bombs are written first, which takes two gigabytes of memory for half a minute."""
    subprocess.run(
        [sys.executable, str(SHARED / "generate.py"), str(tmp_path)], check=True, capture_output=True
    )
    shutil.rmtree(tmp_path / "gbkdir")
    for file in sorted(tmp_path.iterdir()):
        assert file.name in EXPECTED
        check_sample(file, warm)
