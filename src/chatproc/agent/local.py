"""A model served in this process: what `agent.base_url = "local"` stands for becomes a loopback address.

It listens on 127.0.0.1 only and writes nothing, neither to the terminal nor to a log. It never downloads:
`weights` brings files, this module serves the one it is given.
"""

from __future__ import annotations

import atexit
import re
import struct
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from chatproc.agent import weights
from chatproc.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTEXT = 16_384
"""Tokens that a request and its answer may have together."""

# Low, for a small model: at the usual 0.8 it now and then writes empty lines instead of a call.
_TEMPERATURE = 0.2
# Prompts are read in steps of so many tokens; between two steps a request that was given up ends.
_STEP = 256
# Once an answer is cut here no loop of a small model can fill the whole context.
_LONGEST_ANSWER = 4_096
_QUIET = -1

_TOOL_CALL_TAG = re.compile(r"</?tool_call>")
_TEMPLATE_KEY = b"tokenizer.chat_template"
_LONGEST_TEXT = 16 << 20
_MOST_KEYS = 100_000
# GGUF's numbers: the length in bytes of each type of value that has a fixed one.
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT = 8
_ARRAY = 9
_FIRST_VERSION_OF_64_BITS = 2


@dataclass
class _Served:
    server: Any
    base_url: str
    users: int = 0


_served: dict[tuple[Path, int, int], _Served] = {}
_starting = threading.Lock()


@contextmanager
def serve(model: Path | None = None, *, threads: int = 1, context: int = CONTEXT) -> Iterator[str]:
    """Serve a model for as long as the block runs; blocks that overlap in time share one server.

    Loading takes some seconds and holds the calling thread. Ctrl-C stays Python's.

    Args:
        model: The GGUF file; `None`: the one that `chatproc model fetch` brings.
        threads: Threads that compute. On a busy machine one is faster than two.
        context: Tokens that a request and its answer may have together.

    Yields:
        The base URL, with a free port, such as `http://127.0.0.1:40123/v1`. It wants no key and takes any
        model name. With `tool_choice` the string `required` and one tool it answers with a call of that tool.

    Raises:
        MissingFileError: The file is not there.
        ConfigError: The extra `local` is not installed, or the file is not a usable GGUF.

    Example:
        >>> with serve(threads=2) as base_url:  # doctest: +SKIP
        ...     client = openai.OpenAI(base_url=base_url, api_key="none")
    """
    path = weights.path_of() if model is None else weights.own_file(model)
    key = (path, threads, context)
    with _starting:
        if key not in _served:
            _served[key] = _start(path, threads, context)
        served = _served[key]
        served.users += 1
    try:
        yield served.base_url
    finally:
        with _starting:
            served.users -= 1
            if not served.users:
                _stop(key)


def chat_template(model: Path) -> str | None:
    """The chat template that a GGUF file carries, `None` when it has none.

    Raises:
        ConfigError: The file is not a GGUF of a known version, or is damaged.
    """
    with model.open("rb") as opened:
        try:
            return _find_template(opened)
        except (struct.error, ValueError) as error:
            raise ConfigError("this GGUF file cannot be read", where=f"{model}: {error}") from error


def _start(path: Path, threads: int, context: int) -> _Served:
    try:
        import xllamacpp
    except ImportError as error:
        raise ConfigError(
            "a local model needs an extra that is not installed",
            where=str(error),
            hint="pip install 'chatproc[local]'",
        ) from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    # With the tags the server waits for a tagged call, which neither `auto` nor `required` then brings about.
    params.chat_template = _TOOL_CALL_TAG.sub("", chat_template(path) or "")
    params.n_ctx = context
    params.n_predict = min(_LONGEST_ANSWER, context // 2)
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = _STEP
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.sampling.temp = _TEMPERATURE
    params.fit_params = False
    params.warmup = False
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    params.verbosity = _QUIET
    # Pages in a browser reach loopback too: no page may read an answer, nobody may read the prompts.
    params.cors_origins = ""
    params.endpoint_slots = False
    params.ui = False
    try:
        server = xllamacpp.Server(params)
        # A server that is ended before its loop runs never ends; one token proves that it runs.
        server.handle_completions({"prompt": ".", "max_tokens": 1})
    except RuntimeError as error:
        raise ConfigError(
            "the local model cannot be loaded",
            where=str(path),
            hint="a GGUF of a chat model that fits into memory is wanted: chatproc model fetch brings one",
        ) from error
    return _Served(server, f"{server.listening_address}/v1")


def _stop(key: tuple[Path, int, int]) -> None:
    # The server ends with its last reference: it gives up what it computes and joins its threads.
    _served.pop(key).server = None


@atexit.register
def _stop_all() -> None:
    """A block that never ended must not leave threads to a dying interpreter."""
    for key in list(_served):
        _stop(key)


def _find_template(opened: BinaryIO) -> str | None:
    magic, version, _tensors, keys = struct.unpack("<4sIQQ", opened.read(24))
    if magic != b"GGUF" or version < _FIRST_VERSION_OF_64_BITS or keys > _MOST_KEYS:
        raise ValueError("not a GGUF of version 2 or later")
    for _ in range(keys):
        name = _text(opened)
        kind = _number(opened, "<I")
        if name == _TEMPLATE_KEY and kind == _TEXT:
            return _text(opened).decode()
        _skip(opened, kind)
    return None


def _number(opened: BinaryIO, layout: str) -> int:
    value: int
    (value,) = struct.unpack(layout, opened.read(struct.calcsize(layout)))
    return value


def _text(opened: BinaryIO) -> bytes:
    length = _number(opened, "<Q")
    if length > _LONGEST_TEXT:
        raise ValueError("a text of impossible length")
    content = opened.read(length)
    if len(content) != length:
        raise ValueError("cut short")
    return content


def _skip(opened: BinaryIO, kind: int) -> None:
    if kind == _TEXT:
        _text(opened)
    elif kind == _ARRAY:
        kind, count = _number(opened, "<I"), _number(opened, "<Q")
        if kind == _TEXT:
            for _ in range(count):
                _text(opened)
        else:
            _skip_fixed(opened, kind, count)
    else:
        _skip_fixed(opened, kind, 1)


def _skip_fixed(opened: BinaryIO, kind: int, count: int) -> None:
    if kind not in _WIDTHS or count > _LONGEST_TEXT:
        raise ValueError("a value of unknown type or impossible length")
    opened.seek(_WIDTHS[kind] * count, 1)
