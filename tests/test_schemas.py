"""Every document that a person's programs may read is as its published schema says, key by key."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from chatproc import plan_events
from chatproc.cli.main import cli
from tests import sse
from tests.lines_server import install
from tests.project import ROOT, Project, chat, event, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = ROOT / "docs"
SCHEMAS = DOCS / "schemas"
DEMO = ROOT / "examples" / "demo"


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def documented() -> dict[str, str]:
    """What docs/json.md lists: the words of a call to the name of the schema of its document."""
    row = r"^\| (`.+`) \| \[[^]]+\]\(schemas/([\w-]+)\.json\) \|$"
    rows = re.findall(row, page("docs/json.md"), flags=re.MULTILINE)
    listed = {words: name for told, name in rows for words in re.findall(r"`([^`]+)`", told)}
    return {words: name for words, name in listed.items() if "(" not in words}


DOCUMENTED = documented()


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
    told = page("docs/events.md").split("## What is refused")[1]
    listed = re.findall(r"^\| `([a-z0-9-]+)` \|", told, flags=re.MULTILINE)
    assert listed == LOADED["common.json"]["$defs"]["reason"]["enum"]


def test_a_plan_without_a_store_is_as_its_schema_says() -> None:
    plan = plan_events(
        [*lines(*chat("a", "一", "二")).encode().splitlines(), b"x"], {"max_conversation_chars": 300}
    )
    assert plan.oversized
    check("plan", plan.to_dict())


# ── commands ───────────────────────────────────────────────────────────────────────────────────────────


def test_every_command_has_a_document_on_the_page_and_no_other_is_there() -> None:
    assert {words.split()[0] for words in DOCUMENTED} == set(cli.commands)


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


def row_of(arguments: tuple[str, ...]) -> str:
    """The words of the page that a call is told under: the most that it has."""
    return max(
        (row for row in DOCUMENTED if row.split()[0] == arguments[0] and set(row.split()) <= set(arguments)),
        key=len,
    )


def test_every_command_prints_what_its_schema_says(day: Project, tmp_path: Path) -> None:
    told = set()

    def tell(document: dict[str, Any], *arguments: str) -> dict[str, Any]:
        row = row_of(arguments)
        check(DOCUMENTED[row], document)
        told.add(row)
        return document

    def ask(*arguments: str, code: int = 0) -> dict[str, Any]:
        return tell(day.document(*arguments, code=code), *arguments)

    for words in ("init new", "check", "status", "preview --full", "tasks --limit 1", "model list"):
        ask(*words.split())
    ask("once", code=3)
    (task,) = ask("tasks", "--query", "附件")["tasks"]
    for words in (
        "done ID --note why",
        "reopen ID",
        "cancel ID",
        "priority ID P0",
        "task ID --history",
    ):
        ask(*words.replace("ID", task["task_id"]).split())
    for words in ("export", "verify", "backup copy.db"):
        ask(*words.split())
    for message in ("a0", "f", "b0", "big"):
        ask("explain", message)
    ask("import", "telegram", str(DEMO / "telegram"))
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    ask("model", "fetch", "--file", str(tmp_path / "own.gguf"))

    (first, *_) = ask("quarantine", "list")["lines"]
    ask("quarantine", "show", str(first["id"]))
    ask("quarantine", "retry", str(first["id"]), code=3)
    ask("quarantine", "discard", str(first["id"]))

    day.paths = (install(tmp_path),)
    day.connect(
        ("jsonl", {"id": "new", "paths": ["elsewhere/*"]}),
        ("jsonl", {"id": "files", "paths": ["in/*"]}),
        ("lines", {"id": "none", "url": "http://127.0.0.1:1/", "secret_env": "NO_SUCH_NAME"}),
    )
    ask("sync", "jsonl/files")
    ask("sync", "lines/none", code=5)
    for words in ("connections", "run --dry-run", "status"):
        ask(*words.split())

    day.targets(
        {"kind": "markdown", "name": "vault", "file": "vault/todo.md"},
        {"kind": "ics", "name": "feed", "file": "feed.ics"},
        {"kind": "caldav", "name": "phone", "url": "http://127.0.0.1:1/", "secret_env": "NO_SUCH_NAME"},
    )
    ask("publish", code=5)
    day.targets()

    day.connect(jsonl={"id": "told", "paths": ["elsewhere/*"]})
    loop = day.cold("run", "--json")
    assert loop.stderr is not None
    assert any(line.startswith("jsonl/told: done") for line in loop.stderr)
    loop.send_signal(signal.SIGTERM)
    tell(json.loads(loop.communicate(timeout=60)[0]), "run")
    day.connect()
    console = day.cold("console", "--no-browser", "--json")
    assert console.stdout is not None
    tell(json.loads(console.stdout.readline()), "console")
    console.send_signal(signal.SIGTERM)
    console.communicate(timeout=60)

    assert told == set(DOCUMENTED)


def test_every_exported_line_is_a_task_event(day: Project) -> None:
    events = day.events()
    assert events
    for line in events:
        check("task-event", line)


def test_errors_on_stderr_are_lines_of_the_schema(day: Project) -> None:
    done = day.call("task", "t_unknown", "--json", "--log-format", "json", code=1)
    assert done.out == ""
    for line in done.err.splitlines():
        check("log-line", json.loads(line))


def test_every_schema_is_held_to_real_output() -> None:
    checked = set(re.findall(r'\bcheck\("([\w-]+)"', Path(__file__).read_text(encoding="utf-8")))
    parts = set(re.findall(r'"\$ref": "([\w-]+)\.json', json.dumps(LOADED)))
    assert {name.removesuffix(".json") for name in LOADED} == checked | parts | set(DOCUMENTED.values())
