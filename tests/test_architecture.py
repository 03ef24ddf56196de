"""The rules of the house (CONTRIBUTING.md): who may know whom. Read from the sources, nothing is run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import chatproc

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "chatproc"
CORE = ROOT / "rust" / "chatproc-core" / "src"

PURE = {
    "json", "event", "delivery", "revision", "segment", "budget", "plan", "fingerprint", "document", "zone",
    "task", "evidence", "timex", "claim", "likeness", "met",
}  # fmt: skip
EFFECTS = {"inbox", "store", "export", "lock", "round", "agenda", "connections"}
TOUCH_CORE = {
    "__init__.py", "core.py", "errors.py", "pipeline.py", "refused.py", "schedule.py", "store.py", "tasks.py",
}  # fmt: skip
HEAVY = {
    "openai",
    "pydantic_ai",
    "fitz",
    "docx",
    "PIL",
    "rich",
    "xllamacpp",
    "httpx",
    "httpx2",
    "pydantic",
    "watchfiles",
    "jinja2",
    "starlette",
    "uvicorn",
    "icalendar",
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(file: Path, *, top_level: bool) -> set[str]:
    """Names of imported modules; those under `if TYPE_CHECKING` are for readers only."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: set[str] = set()
    nodes = tree.body if top_level else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names - typing_only(tree)


def typing_only(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for block in tree.body:
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test):
            for node in ast.walk(block):
                if isinstance(node, ast.ImportFrom) and node.module is not None:
                    names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("name", sorted(PURE))
def test_pure_modules_of_the_core_know_no_effect_module(name: str) -> None:
    files = [CORE / f"{name}.rs", *(CORE / name).glob("*.rs")]
    source = "".join(file.read_text(encoding="utf-8") for file in files if file.exists())
    assert source, f"{name} is no module of the core"
    used = set(re.findall(r"crate::(\w+)", source))
    assert not used & EFFECTS
    assert not re.search(r"\b(std::fs|fs_err|rusqlite|std::env|SystemTime|Instant::now)\b", source)


def test_the_core_reads_no_clock_and_no_environment() -> None:
    for file in CORE.rglob("*.rs"):
        if file.name != "failpoint.rs":
            source = file.read_text(encoding="utf-8")
            assert not re.search(
                r"SystemTime::now|Instant::now|std::env::|Timestamp::now|Zoned::now", source
            ), file


def test_sql_lives_in_the_store_alone() -> None:
    statement = re.compile(r'"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA)\s')
    for file in [
        *CORE.rglob("*.rs"),
        *PACKAGE.rglob("*.py"),
        *(ROOT / "rust" / "chatproc-python").rglob("*.rs"),
    ]:
        if "store" not in file.relative_to(ROOT).parts:
            # The round notes its own begin and end, in words of the store.
            assert not statement.search(file.read_text(encoding="utf-8")), file


def test_the_binding_knows_the_core_alone() -> None:
    for file in (ROOT / "rust" / "chatproc-python" / "src").glob("*.rs"):
        crates = set(re.findall(r"^use (\w+)", file.read_text(encoding="utf-8"), flags=re.MULTILINE))
        assert crates <= {"chatproc_core", "pyo3", "serde", "serde_json", "std", "crate", "errors"}, file


def test_only_named_modules_touch_the_native_core() -> None:
    for file in modules():
        touches = any(name.split(".")[-1] == "_core" for name in imports(file, top_level=False))
        assert not touches or file.name in TOUCH_CORE, file


def test_the_agent_and_attachments_get_what_they_need_as_arguments() -> None:
    for folder in ("agent", "attachments"):
        for file in (PACKAGE / folder).glob("*.py"):
            known = {name for name in imports(file, top_level=False) if name.startswith("chatproc.")}
            for name in known:
                assert name.split(".")[1] in {"agent", "attachments", "errors"}, (file, name)


def test_connectors_fetch_and_nothing_else() -> None:
    for file in (PACKAGE / "connectors").glob("*.py"):
        known = {name for name in imports(file, top_level=False) if name.startswith("chatproc.")}
        for name in known:
            assert name.split(".")[1] in {"connectors", "importers", "config", "errors"}, (file, name)


def test_the_console_uses_what_is_public() -> None:
    """It is one more caller of the package: no core, no command, no part of the agent."""
    shared = {"config", "console", "errors", "plaintext", "results"}
    functions = {"edits", "evidence", "excerpt", "pipeline", "refused", "schedule", "store", "tasks"}
    for file in (PACKAGE / "console").glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chatproc."):
                home = (node.module or "").split(".")[1]
                assert home in shared | functions, (file, home)
                if home in functions:
                    assert {alias.name for alias in node.names} <= set(chatproc.__all__), file


def test_formats_know_tasks_and_nothing_else() -> None:
    for file in (PACKAGE / "shapes").glob("*.py"):
        known = {name for name in imports(file, top_level=False) if name.startswith("chatproc.")}
        for name in known:
            assert name.split(".")[1] in {"shapes", "plaintext", "results"}, (file, name)
        assert not re.search(r"\bopen\(|\.now\(|\.today\(", file.read_text(encoding="utf-8")), file


def test_when_a_connection_is_due_is_decided_without_a_clock() -> None:
    source = (PACKAGE / "loop" / "due.py").read_text(encoding="utf-8")
    assert not re.search(r"\btime\.|\.now\(|\.today\(|\brandom\b|\bopen\(", source)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, chatproc; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    light = [
        PACKAGE / "__init__.py",
        *(PACKAGE / "cli").glob("*.py"),
        PACKAGE / "pipeline.py",
        PACKAGE / "store.py",
        PACKAGE / "tasks.py",
        PACKAGE / "core.py",
    ]
    for file in light:
        roots = {name.split(".")[0] for name in imports(file, top_level=True)}
        assert not roots & HEAVY, file


def test_modules_say_what_they_are_for() -> None:
    for file in modules():
        assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))), file
    for source in CORE.rglob("*.rs"):
        assert source.read_text(encoding="utf-8").startswith("//!"), source


def test_the_houses_words() -> None:
    """Words that say nothing about what a thing does are not used as names."""
    banned = re.compile(
        r"\b(?:fn|struct|enum|def|class|mod)\s+\w*(manager|handler|helper|utils)\w*", re.IGNORECASE
    )
    for file in [*CORE.rglob("*.rs"), *modules()]:
        assert not banned.search(file.read_text(encoding="utf-8")), file
