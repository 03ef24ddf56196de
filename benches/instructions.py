"""Instructions of three core workloads, counted by callgrind, against the ones on record.

    python benches/instructions.py             # compare; fails when one grew by more than a tenth
    python benches/instructions.py --record    # write them down anew, after a change that is worth it

Time on a shared machine says little; the number of instructions hardly changes from run to run. Counts
depend on the compiler, so the record names the one it was made with. SHA-256 is left out: valgrind knows
no processor with instructions for it, and in their place it would be half of everything. The build is
without link-time optimisation, which takes minutes and changes little here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORD = HERE / "instructions.json"
LINES = {"read": 4000, "plan": 4000, "ingest": 4000}
GROWTH = 1.10


def compiler() -> str:
    """The Rust compiler by which counts are made."""
    return subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.strip()


def build() -> str:
    """Build the workloads and return the executable."""
    command = ["cargo", "bench", "-q", "-p", "chatproc-core", "--bench", "work", "--no-run", "--locked"]
    profile = {
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
        "CARGO_PROFILE_RELEASE_STRIP": "none",
    }
    built = subprocess.run(
        [*command, "--message-format=json"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=HERE.parent,
        env={**os.environ, **profile},
    )
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    made = [message["executable"] for message in messages if message.get("executable")]
    return str(made[-1])


def count(executable: str, work: str) -> int:
    """Instructions of one workload."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", executable, work]
        subprocess.run([*command, str(LINES[work])], check=True, capture_output=True)
        annotate = ["callgrind_annotate", "--threshold=100", "--auto=no", out]
        told = subprocess.run(annotate, check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^ *([\d,]+) \([ \d.]+%\)  (.*)$", told, re.MULTILINE)
    total, *functions = [(int(instructions.replace(",", "")), name) for instructions, name in rows]
    return total[0] - sum(instructions for instructions, name in functions if "sha2::" in name)


def counts() -> dict[str, int]:
    """Instructions of all workloads."""
    executable = build()
    return {work: count(executable, work) for work in LINES}


def main() -> None:
    """Compare or record."""
    now = counts()
    if "--record" in sys.argv[1:]:
        RECORD.write_text(json.dumps({"compiler": compiler(), "instructions": now}, indent=2) + "\n")
    known = json.loads(RECORD.read_text())["instructions"]
    print("| workload | instructions a line | on record | ratio |\n|---|--:|--:|--:|")
    for work, instructions in now.items():
        lines, ratio = LINES[work], instructions / known[work]
        print(f"| {work} | {instructions / lines:,.0f} | {known[work] / lines:,.0f} | {ratio:.3f} |")
    if any(now[work] > GROWTH * known[work] for work in now):
        raise SystemExit("a workload takes more than a tenth more instructions than on record")


if __name__ == "__main__":
    main()
