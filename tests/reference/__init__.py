"""What the pages tell of the program, made from the program: settings, commands, the Python interface.

`make reference` writes it; tests/test_reference.py holds the committed pages to it. On a page with prose,
what is made stands between two comments below its heading, and everything else is a person's. A section that
is not there yet is added at the end, for a person to move.
"""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parent.parent.parent / "docs"

_BEGIN = "<!-- made by `make reference` -->"
_END = "<!-- end of what is made -->"


def with_made(page: str, made: dict[str, str]) -> str:
    """The page with each made part below its heading.

    Args:
        page: Markdown.
        made: Heading line, such as `## init`, to what belongs below it.
    """
    sections = _sections(page)
    for heading, part in made.items():
        block = f"{_BEGIN}\n\n{part.strip()}\n\n{_END}"
        section = sections.get(heading, "\n")
        before, begun, rest = section.partition(_BEGIN)
        after = rest.partition(_END)[2].lstrip() if begun else ""
        sections[heading] = f"{before.strip()}\n\n{block}\n\n{after}"
    text = "".join(f"{heading}\n\n{section.strip()}\n\n" for heading, section in sections.items())
    return f"{text.strip()}\n"


def _sections(page: str) -> dict[str, str]:
    """Heading line to what follows it up to the next one; a `#` in a code block is none."""
    sections: dict[str, str] = {}
    heading, fenced = "", False
    for line in page.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            heading = line.strip()
            sections[heading] = ""
        else:
            sections[heading] = sections.get(heading, "") + line
    return sections


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def pages() -> dict[Path, str]:
    """Each page that is made, in whole or in part, as it should be."""
    from tests.reference import api, commands, settings

    def kept(name: str) -> str:
        return (DOCS / name).read_text(encoding="utf-8")

    return {
        DOCS / "cli.md": with_made(kept("cli.md"), commands.sections()),
        DOCS / "configuration.md": with_made(kept("configuration.md"), settings.sections()),
        DOCS / "python-reference.md": api.page(),
    }
