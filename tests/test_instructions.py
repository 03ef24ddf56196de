"""The core's workloads take no more instructions than on record, but for a tenth."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "benches" / "instructions.py"


@pytest.mark.slow
def test_no_workload_takes_a_tenth_more_instructions_than_on_record() -> None:
    missing = [tool for tool in ("valgrind", "cargo", "rustc") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"counting instructions needs {', '.join(missing)}")
    spec = importlib.util.spec_from_file_location("instructions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    instructions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(instructions)
    record = json.loads(instructions.RECORD.read_text())
    if record["compiler"] != instructions.compiler():
        pytest.skip(f"the record was made with {record['compiler']}, this is {instructions.compiler()}")
    now = instructions.counts()
    assert now.keys() == record["instructions"].keys()
    grown = {
        work: f"{now[work]:,} instructions, {known:,} on record"
        for work, known in record["instructions"].items()
        if now[work] > instructions.GROWTH * known
    }
    assert not grown
