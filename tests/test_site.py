"""The site of the pages: no broken link, nothing fetched, its guide in two languages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from chatproc.cli.main import cli
from chatproc.config import load_config
from tests.project import ROOT, Project

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def guide() -> list[str]:
    """The pages that the index lists under Guide, and itself."""
    (listed,) = re.findall(r":caption: Guide\n:hidden:\n\n(.*?)```", page("index.md"), re.DOTALL)
    return ["index.md", *(f"{name}.md" for name in listed.split())]


GUIDE = guide()


def blocks(text: str) -> list[tuple[str, str]]:
    """Kind and content of each code block; lists of pages are none."""
    found = re.findall(r"^```(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(kind, code) for kind, code in found if kind != "{toctree}"]


def shape(text: str) -> list[str]:
    """Headings by their level, rows of tables and items of lists, in order."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^(#+|\||- )", prose, flags=re.MULTILINE)


# ── the guide in two languages ─────────────────────────────────────────────────────────────────────────


def test_every_page_of_the_guide_is_there_in_chinese_and_no_other() -> None:
    assert {file.name for file in (DOCS / "zh").glob("*.md")} == set(GUIDE)


@pytest.mark.parametrize("name", GUIDE)
def test_a_page_of_the_guide_says_the_same_in_both_languages(name: str) -> None:
    english, chinese = page(name), page(f"zh/{name}")
    assert f"\n\n**English** · [中文](zh/{name})\n" in english
    assert f"\n\n[English](../{name}) · **中文**\n" in chinese
    assert blocks(english) == blocks(chinese)
    assert shape(english) == shape(chinese)


@pytest.mark.parametrize("name", GUIDE)
def test_the_code_of_the_guide_is_what_the_program_takes(name: str, tmp_path: Path) -> None:
    for kind, code in blocks(page(name)):
        if kind == "toml":
            (tmp_path / "p.toml").write_text(code, encoding="utf-8")
            assert load_config(tmp_path / "p.toml").model_fields_set
        for line in re.findall(r"^chatproc (.+)$", code, flags=re.MULTILINE):
            command, *arguments = line.split()
            if command != "--version":
                cli.commands[command].make_context(command, arguments)


def test_the_size_of_the_demo_on_the_page_is_what_preview_tells(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    project.call("init", "demo")
    file = project.root / "demo" / "config" / "processor.toml"
    text = file.read_text(encoding="utf-8").replace('# grouping = "sql"', 'grouping = "session"')
    file.write_text(text, encoding="utf-8")
    project.call("import", "auto", str(ROOT / "examples" / "demo"), "--config", str(file))
    groups = project.document("preview", "--config", str(file))["groups"]
    for name in ("cost.md", "zh/cost.md"):
        (line,) = (line for line in page(name).splitlines() if "examples/demo" in line)
        told = [int(number.replace(",", "")) for number in re.findall(r"(\d[\d,]*) ", line)]
        kinds = ("messages", "chars", "estimated_tokens")
        assert told == [sum(group[kind] for group in groups) for kind in kinds]


# ── the site ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does; a warning is a fault."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(DOCS), str(folder)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_nothing_is_fetched_to_read_the_site(site: Path) -> None:
    fetched = r'<(?:script|img|iframe|source)\b[^>]*\ssrc="(?:https?:)?//|<link\b[^>]*\shref="(?:https?:)?//'
    for file in site.rglob("*.html"):
        assert not re.search(fetched, file.read_text(encoding="utf-8")), file
    for file in site.rglob("*.css"):
        assert not re.search(r"""@import|url\(["']?(?:https?:)?//""", file.read_text(encoding="utf-8")), file


def test_schemas_lie_in_the_site_under_their_names(site: Path) -> None:
    for file in (DOCS / "schemas").glob("*.json"):
        assert (site / "schemas" / file.name).read_bytes() == file.read_bytes()
    assert 'href="schemas/status.json"' in (site / "json.html").read_text(encoding="utf-8")


def test_a_page_says_its_language_and_chinese_is_found_by_its_parts(site: Path) -> None:
    assert '<html class="no-js" lang="zh-CN"' in (site / "zh" / "cost.html").read_text(encoding="utf-8")
    assert '<html class="no-js" lang="en"' in (site / "cost.html").read_text(encoding="utf-8")
    script = (site / "_static" / "language_data.js").read_text(encoding="utf-8")
    assert "window.Stemmer = EnglishStemmer;" in script
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    where = [found[kind].get("价钱", []) for kind in ("terms", "titleterms")]
    numbers = {it for some in where for it in (some if isinstance(some, list) else [some])}
    assert "zh/cost" in {found["docnames"][number] for number in numbers}
