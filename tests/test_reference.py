"""What is made of the program stands on the pages as it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.reference import pages, with_made

if TYPE_CHECKING:
    from pathlib import Path

MADE = pages()


@pytest.mark.parametrize("file", MADE, ids=lambda file: str(file.name))
def test_a_page_is_what_the_program_makes_of_it(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == MADE[file], "run `make reference`"


def test_prose_around_what_is_made_stays_and_a_new_section_is_added() -> None:
    page = "# A\n\n## one\n\nBefore.\n\n```\n## no heading\n```\n\n## two\n\nProse.\n"
    once = with_made(page, {"## one": "made", "## three": "new"})
    assert once.index("no heading") < once.index("made") < once.index("## two") < once.index("new")
    assert (
        with_made(f"{once}After.\n", {"## one": "other", "## three": "new"})
        == once.replace("\nmade\n", "\nother\n") + "\nAfter.\n"
    )
