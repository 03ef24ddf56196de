"""Starts processes of `life` in a millisecond: each is a fork of one that has the core loaded.

python -m tests.breaking.fork    # one call a line on stdin: root, day, environment, fault
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.breaking.faults import arm
from tests.breaking.life import Life


def main() -> None:
    """Fork a process for each call; tell its number, and how it ended."""
    for line in sys.stdin:
        call = json.loads(line)
        child = os.fork()
        if not child:
            _live(call)
        print(json.dumps(child), flush=True)  # noqa: T201 - the answer
        print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), flush=True)  # noqa: T201


def _live(call: dict[str, Any]) -> None:
    code = 1
    try:
        os.environ.update(call["environment"])
        if call["fault"] is not None:
            arm(call["fault"])
        notes = Path(call["notes"]) if "notes" in call else None
        Life(Path(call["root"]), notes).day(call["day"])
        code = 0
    except BaseException:  # noqa: BLE001 - a fork must end here, whatever happens
        Path(call["err"]).write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
