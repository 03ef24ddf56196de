"""The demo: two exports become tasks, read by a local model, without a key. Run it with `make demo`.

It runs the commands that a person would type and prints each before it does; the project lies in `.demo/` and
is made anew at each run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = ROOT / ".demo"
SAMPLES = ROOT / "examples" / "demo"
CHATPROC = Path(sys.executable).parent / "chatproc"
CONFIG = PROJECT / "config" / "processor.toml"
SETTINGS = f"""\
[input]
paths = ["data/import/*.jsonl"]
archive_root = {json.dumps(str(SAMPLES), ensure_ascii=False)}

[agent]
base_url = "local"
# A small model has a small window.
batching = "single_conversation"

[context]
grouping = "session"
carry_messages = 0
max_conversation_chars = 1000

[processing]
max_groups_per_round = 20
"""
PART_DONE = 3


def chatproc(*arguments: str, quiet: bool = False) -> str:
    """Run a command as a person would; its output goes on to the terminal unless `quiet`."""
    print(f"\n$ chatproc {' '.join(arguments)}", flush=True)
    command = [CHATPROC, *arguments]
    done = subprocess.run(command, cwd=PROJECT, text=True, stdout=subprocess.PIPE, check=False)
    if done.stdout and not quiet:
        print(done.stdout, end="", flush=True)
    if done.returncode not in {0, PART_DONE}:
        raise SystemExit(done.returncode)
    return done.stdout


def main() -> None:
    """From two exports to tasks with their sources."""
    shutil.rmtree(PROJECT, ignore_errors=True)
    PROJECT.mkdir()
    chatproc("init")
    CONFIG.write_text(SETTINGS, encoding="utf-8")
    print(f"\nwrote {CONFIG.relative_to(ROOT)}:\n\n{SETTINGS}")
    chatproc("model", "fetch")
    chatproc("import", "qq-qce", str(SAMPLES / "qq"))
    chatproc("import", "telegram", str(SAMPLES / "telegram"))
    chatproc("preview")
    print("\nThe model reads both chats now, a stretch at a time; on two cores that takes some minutes.")
    chatproc("once")
    tasks = json.loads(chatproc("tasks", "--json", quiet=True))["tasks"]
    for task in tasks:
        chatproc("task", task["task_id"])
    chatproc("status")
    print(
        f"\n{len(tasks)} tasks. examples/demo/README.md lists what a careful reader finds; the small model of"
        f"\nthis demo finds tasks, its dates are not to be relied on. The project is in {PROJECT.name}/; the"
        f"\nevents that other programs read are in {PROJECT.name}/data/todos/."
    )


if __name__ == "__main__":
    main()
