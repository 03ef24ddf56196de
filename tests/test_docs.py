"""The pages a person reads: they name every command, key and file that there is, and nothing else."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import chatproc
from chatproc import load_config, plan_events
from chatproc.cli.main import cli
from chatproc.importers import FORMATS
from tests.project import event, lines

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SCHEMAS = DOCS / "schemas"
DEMO = ROOT / "examples" / "demo"
READMES = ("README.md", "README.zh-CN.md")
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md"), *ROOT.glob("examples/**/*.md")])


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def headings(text: str) -> list[tuple[int, str]]:
    """Level and words of each heading."""
    found = re.findall(r"^(#+) (.+)$", prose(text), flags=re.MULTILINE)
    return [(len(marks), words) for marks, words in found]


def sections(text: str, level: int) -> dict[str, str]:
    """The sections of a page by their headings of one level, those below included."""
    parts = re.split(rf"^{'#' * level} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# ── READMEs and links ──────────────────────────────────────────────────────────────────────────────────


def test_both_readmes_have_the_same_sections_and_code() -> None:
    english, chinese = (page(name) for name in READMES)
    assert [level for level, _ in headings(english)] == [level for level, _ in headings(chinese)]
    blocks = [
        re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for text in (english, chinese)
    ]
    without_comments = [[(kind, re.sub(r"\s+# .*", "", code)) for kind, code in found] for found in blocks]
    assert without_comments[0] == without_comments[1]


@pytest.mark.parametrize("name", READMES)
def test_every_make_target_that_a_page_names_is_there(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", page("Makefile"), flags=re.MULTILINE))
    named = set(re.findall(r"^make ([a-z-]+)", page(name), flags=re.MULTILINE))
    assert {"demo", "test"} <= named
    assert named | set(re.findall(r"`make ([a-z-]+)`", page("CONTRIBUTING.md"))) <= targets


@pytest.mark.parametrize("name", READMES)
def test_the_place_of_the_figures_is_there_once(name: str) -> None:
    text = page(name)
    assert (text.count("<!-- figures -->"), text.count("<!-- /figures -->")) == (1, 1)


@pytest.mark.parametrize("name", READMES)
def test_every_command_line_of_a_readme_is_understood(name: str) -> None:
    blocks = re.findall(r"^```\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)
    called = re.findall(r"^(?:\$ )?chatproc (.+)$", "\n".join(blocks), flags=re.MULTILINE)
    assert called
    for line in called:
        command, *arguments = line.split()
        cli.commands[command].make_context(command, arguments)


@pytest.mark.parametrize("name", READMES)
def test_the_settings_of_a_readme_are_accepted(name: str, tmp_path: Path) -> None:
    for settings in re.findall(r"^```toml\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL):
        text = settings if settings.startswith("[") else f"[agent]\n{settings}"
        (tmp_path / "p.toml").write_text(text, encoding="utf-8")
        assert load_config(tmp_path / "p.toml").agent.is_configured


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(file: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(file.read_text(encoding="utf-8"))):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        there = (file.parent / path).resolve() if path else file
        assert there.exists(), target
        if anchor:
            words = [heading for _, heading in headings(there.read_text(encoding="utf-8"))]
            assert anchor in {re.sub(r"[^\w\s-]", "", text).lower().replace(" ", "-") for text in words}, (
                target
            )


@pytest.mark.parametrize("name", [*READMES, "docs/python.md"])
def test_python_code_on_a_page_is_python_and_imports_what_there_is(name: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        for statement in ast.parse(block).body:
            if isinstance(statement, ast.ImportFrom) and statement.module is not None:
                module = importlib.import_module(statement.module)
                assert [alias.name for alias in statement.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("name", [*READMES, "docs/importing.md"])
def test_every_import_format_is_on_the_pages_that_list_them(name: str) -> None:
    listed = "\n".join(re.findall(r"^\|.*\|$", page(name), flags=re.MULTILINE))
    form = "chatproc import {}" if name in READMES else "| `{}` |"
    assert [known for known in FORMATS if form.format(known) not in listed] == []


def test_every_function_and_error_of_the_package_is_on_its_page() -> None:
    text = page("docs/python.md")
    names = set(chatproc.__all__) - {"Config", "__version__"}
    assert [name for name in sorted(names) if name not in text] == []


def test_every_dependency_has_its_reason() -> None:
    reasons = "\n".join(re.findall(r"^\| ([^|]+) \| [^|]+ \|$", page("CONTRIBUTING.md"), flags=re.MULTILINE))
    cargo, project = (tomllib.loads(page(name)) for name in ("Cargo.toml", "pyproject.toml"))
    python = [
        *project["project"]["dependencies"],
        *(name for extra in project["project"]["optional-dependencies"].values() for name in extra),
        *project["dependency-groups"]["dev"],
        *project["build-system"]["requires"],
    ]
    names = {re.split(r"[\[<>=;~ ]", requirement)[0] for requirement in python}
    names |= set(cargo["workspace"]["dependencies"]) - {"chatproc-core"}
    assert [name for name in sorted(names) if not re.search(rf"(?<![\w-]){name}(?![\w-])", reasons)] == []


# ── commands ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_of_commands_has_a_section_for_each_and_no_other() -> None:
    about_all = {"Exit codes", "Options of every command"}
    assert set(sections(page("docs/cli.md"), 2)) == set(cli.commands) | about_all


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_a_command_has_an_example_in_its_help_and_a_schema_on_its_page(name: str) -> None:
    command = cli.commands[name]
    shown = command.get_help(command.make_context(name, [], resilient_parsing=True))
    assert "Example:" in shown
    example = shown.split("Example:")[1].strip()
    assert example.startswith(f"chatproc {name}")
    assert "(schemas/" in sections(page("docs/cli.md"), 2)[name]


def test_the_exit_codes_are_the_same_on_every_page() -> None:
    tables = [
        re.findall(r"^\| (\d+) \|", page(name), flags=re.MULTILINE) for name in (*READMES, "docs/cli.md")
    ]
    assert tables == [["0", "1", "2", "3", "4", "5", "130"]] * 3


# ── budgets ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_worked_examples_of_the_budgets_are_what_the_core_counts() -> None:
    text = page("docs/budgets.md")
    plain, answer, file = (
        line
        for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)
        for line in block.split("\n")
        if line
    )
    attachment = {"id": "a", "name": "模板.docx", "size": 20480, "path": "a.docx", "state": "present"}
    events = [
        event("a", "周五前交报告", conversation="1"),
        event("b", "周五前交报告", conversation="2", reply_to="c", attachments=[attachment]),
    ]
    plan = plan_events(lines(*events).encode().splitlines())
    cheap, dear = len(plain) + 4, len(answer) + len(file) + 5
    assert [segment["chars"] - 64 for segment in plan.segments] == [cheap, dear]
    assert [group["chars"] - 64 - 160 for group in plan.groups] == [cheap, dear]
    assert f"has {len(plain)} characters and costs {cheap}." in text
    assert f"has {len(answer)} + {len(file)} characters and costs {dear}." in text
