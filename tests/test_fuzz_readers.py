"""A moment of the attack on the readers, so that it works when it is wanted; see `fuzz_readers.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fuzz_readers import READERS, attack, samples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_input_is_read_or_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for sample in samples(name)[:3]:
        READERS[name](sample)
    done, broken = attack(name, 0.4, seed=8)
    assert not broken
    assert done > 0
