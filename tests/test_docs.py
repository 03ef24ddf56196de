"""The pages a person reads: they name every command, key and file that there is, and nothing else."""

from __future__ import annotations

import ast
import importlib
import json
import re
import signal
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

import chatproc
from chatproc import load_config, plan_events
from chatproc.cli.main import cli
from chatproc.importers import FORMATS
from tests import sse
from tests.lines_server import install
from tests.project import Project, chat, event, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

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


# ── documents ──────────────────────────────────────────────────────────────────────────────────────────


def closed(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """The same schema where no object may have a key that it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    shut = {"additionalProperties": False} if {"type", "properties"} <= set(schema) else {}
    return {**shut, **{name: closed(part) for name, part in schema.items()}}


LOADED = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in SCHEMAS.glob("*.json")}
REGISTRY = Registry().with_resources(
    (name, Resource.from_contents(closed(schema))) for name, schema in LOADED.items()
)


def check(name: str, document: Any) -> None:  # noqa: ANN401 - any JSON value
    """Hold a document to its schema; a key that no page names is a fault too."""
    Draft202012Validator({"$ref": f"{name}.json"}, registry=REGISTRY).validate(document)


@pytest.mark.parametrize("name", sorted(LOADED))
def test_a_schema_is_sound_and_on_the_page(name: str) -> None:
    Draft202012Validator.check_schema(LOADED[name])
    assert f"(schemas/{name})" in page("docs/json.md")


def test_the_example_event_and_what_importers_write_are_events_of_the_schema(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", page("docs/events.md"), re.DOTALL)
    check("event", json.loads(example))
    assert plan_events([example.encode()]).counts["accepted"] == 1
    project = Project(tmp_path / "p")
    for form, folder in (("qq-qce", "qq"), ("telegram", "telegram")):
        report = project.document("import", form, str(DEMO / folder))
        check("import", report)
        (file,) = report["files"]
        for line in Path(file).read_text(encoding="utf-8").splitlines():
            check("event", json.loads(line))


def test_the_example_task_event_has_the_keys_of_the_schema() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", page("docs/tasks.md"), re.DOTALL)
    assert list(json.loads(example)) == list(LOADED["task-event.json"]["properties"])


def test_the_page_of_tasks_names_every_field_of_the_record() -> None:
    named = re.findall(
        r"`(\w+)`", " ".join(re.findall(r"^\| (.+?) \|", page("docs/tasks.md"), flags=re.MULTILINE))
    )
    record = LOADED["record.json"]["properties"]
    assert set(record) <= set(named)
    assert set(record["sources"]["items"]["properties"]) <= set(named)


def test_the_reasons_of_the_page_are_those_of_the_schema() -> None:
    listed = re.findall(
        r"^\| `([a-z0-9-]+)` \|", sections(page("docs/events.md"), 2)["What is refused"], re.MULTILINE
    )
    assert listed == LOADED["common.json"]["$defs"]["reason"]["enum"]


def test_a_plan_without_a_store_is_as_its_schema_says() -> None:
    plan = plan_events(
        [*lines(*chat("a", "一", "二")).encode().splitlines(), b"x"], {"max_conversation_chars": 300}
    )
    assert plan.oversized
    check("plan", plan.to_dict())


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project with two rounds behind it: a task with an attachment, a failed group, refused lines."""

    def model(request: dict[str, Any]) -> sse.Answer:
        if "nonsense" in json.dumps(request, ensure_ascii=False):
            return sse.failure(400)
        return sse.one_task_each(request)

    project = Project(tmp_path_factory.mktemp("docs") / "p")
    attachment = {"id": "a1", "name": "模板.docx", "sha256": "0" * 64, "path": "a.docx"}
    with sse.ModelServer(model) as server:
        project.configure(
            agent={"base_url": server.base_url, "batching": "single_conversation"},
            context={"max_conversation_chars": 1000},
        )
        project.batch(
            "a.jsonl",
            *chat("a", "周五前交报告"),
            event("f", "带上附件", conversation="f", attachments=[attachment]),
        )
        project.once()
        bad = event("x", "", sent_at=-1)
        project.batch(
            "b.jsonl", *chat("b", "nonsense"), event("big", "长" * 2000, conversation="c"), "{", bad
        )
        check("once", project.once(code=3))
        yield project


def test_what_a_project_tells_is_as_the_schemas_say(day: Project) -> None:
    check("status", day.document("status"))
    check("preview", day.document("preview", "--full"))
    check("tasks", day.document("tasks", "--limit", "1"))
    check("check", day.document("check"))
    check("model-list", day.document("model", "list"))
    check("init", day.document("init", "new"))
    (task,) = day.document("tasks", "--query", "附件")["tasks"]
    check("task-event", day.document("done", task["task_id"], "--note", "done"))
    check("task-event", day.document("priority", task["task_id"], "P0"))
    check("task", day.document("task", task["task_id"], "--history"))
    check("export", day.document("export"))
    check("verify", day.document("verify"))
    check("backup", day.document("backup", "copy.db"))
    for message in ("a0", "f", "b0", "big"):
        check("explain", day.document("explain", message))
    for event_ in day.events():
        check("task-event", event_)


def test_what_is_told_of_connections_is_as_the_schemas_say(day: Project, tmp_path: Path) -> None:
    day.paths = (install(tmp_path),)
    day.connect(
        ("jsonl", {"id": "new", "paths": ["elsewhere/*"]}),
        ("jsonl", {"id": "files", "paths": ["in/*"]}),
        ("lines", {"id": "none", "url": "http://127.0.0.1:1/", "secret_env": "NO_SUCH_NAME"}),
    )
    check("sync", day.document("sync", "jsonl/files"))
    check("sync", day.document("sync", "lines/none", code=5))
    check("connections", day.document("connections"))
    check("run-plan", day.document("run", "--dry-run"))
    check("status", day.document("status"))
    day.connect()


def test_what_is_told_of_publishing_is_as_its_schema_says(day: Project) -> None:
    day.targets(
        {"kind": "markdown", "name": "vault", "file": "vault/todo.md"},
        {"kind": "ics", "name": "feed", "file": "feed.ics"},
        {"kind": "caldav", "name": "phone", "url": "http://127.0.0.1:1/", "secret_env": "NO_SUCH_NAME"},
    )
    check("publish", day.document("publish", code=5))
    day.targets()


def test_what_a_loop_tells_at_its_end_is_as_its_schema_says(day: Project) -> None:
    day.connect(jsonl={"id": "told", "paths": ["elsewhere/*"]})
    loop = day.cold("run", "--json")
    assert loop.stderr is not None
    assert any(line.startswith("jsonl/told: done") for line in loop.stderr)
    loop.send_signal(signal.SIGTERM)
    out, _ = loop.communicate(timeout=60)
    day.connect()
    assert loop.returncode == 0
    check("run", json.loads(out))


def test_the_quarantine_is_as_the_schemas_say(day: Project) -> None:
    listed = day.document("quarantine")
    assert [line["reason"] for line in listed["lines"]] == ["not-json", "bad-field"]
    check("quarantine", listed)
    number = str(listed["lines"][0]["id"])
    check("quarantined-line", day.document("quarantine", "show", number))
    check("quarantine-answer", day.document("quarantine", "retry", number, code=3))
    check("quarantine-answer", day.document("quarantine", "discard", number))


def test_errors_on_stderr_are_lines_of_the_schema(day: Project) -> None:
    done = day.call("task", "t_unknown", "--json", "--log-format", "json", code=1)
    assert done.out == ""
    for line in done.err.splitlines():
        check("log-line", json.loads(line))
