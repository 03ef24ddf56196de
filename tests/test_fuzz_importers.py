"""A few hundred of the inputs that `make fuzz-importers` makes by the million, always the same ones, and all
that it kept because they reached lines which no sample reaches."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.fuzz_importers import KEPT, check, corpus, damaged, strike_again

if TYPE_CHECKING:
    from pathlib import Path

FORMS = sorted({form for form, _, _ in corpus()})
INPUTS = 40


@pytest.mark.parametrize("form", FORMS)
def test_damaged_samples_are_refused_or_give_events_that_the_core_accepts(form: str, tmp_path: Path) -> None:
    samples = [sample for sample in corpus() if sample[0] == form]
    for seed in range(INPUTS):
        chance = random.Random(seed)  # noqa: S311 - damage that can be made again, no secrets
        _, name, content = chance.choice(samples)
        check(form, name, damaged(content, chance), tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_inputs_that_were_kept_are_refused_or_give_events_that_the_core_accepts(
    form: str, tmp_path: Path
) -> None:
    for path in sorted(KEPT.glob(f"{form}__*")):
        strike_again(path, tmp_path)
