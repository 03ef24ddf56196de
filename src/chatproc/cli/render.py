"""How results look: each `--json` document as tables on a terminal and as plain lines elsewhere.

Messages, names and model output are hostile text: `plain` is the one door to the screen, and nothing here
writes anything but stdout. It computes nothing that the document does not say.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from chatproc.plaintext import escaped_json, one_line, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.text import Text

Document = dict[str, Any]


def json_text(document: Document) -> str:
    r"""A document as one line of JSON, with what a terminal could obey written as escapes.

    Args:
        document: What `to_dict()` of a result gives.

    Example:
        >>> json_text({"title": "报告\u202e"})
        '{"title": "报告\\u202e"}'
    """
    return escaped_json(json.dumps(document, ensure_ascii=False))


@dataclass(frozen=True)
class Facts:
    """Names and their values, one a line."""

    rows: Sequence[tuple[str, object]]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells; elsewhere than on a terminal a row is a line, cells parted by tabs."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    title: str = ""


@dataclass(frozen=True)
class Prose:
    """Text of several lines, indented under its heading."""

    heading: str
    text: str
    notes: Sequence[str] = field(default=())


Block = Facts | Table | Prose


def show(blocks: Iterable[Block]) -> None:
    """Write blocks to stdout: tables and colours on a terminal, plain lines elsewhere."""
    if sys.stdout.isatty():
        _show_on_terminal(blocks)
        return
    for block in blocks:
        sys.stdout.writelines(f"{line}\n" for line in _lines(block))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return one_line(str(value)) or "-"


def _lines(block: Block) -> list[str]:
    if isinstance(block, Facts):
        rows = [f"{one_line(name)}: {_cell(value)}" for name, value in block.rows]
        return [*_title(block), *rows]
    if isinstance(block, Table):
        return [*_title(block), *("\t".join(map(_cell, row)) for row in block.rows)]
    notes = [f"  {one_line(note)}" for note in block.notes]
    return [one_line(block.heading), *(f"  {line}" for line in plain(block.text).split("\n")), *notes]


def _title(block: Facts | Table) -> list[str]:
    return [f"# {one_line(block.title)}"] if block.title and block.rows else []


_STYLES = {
    "P0": "bold red",
    "P1": "red",
    "P2": "yellow",
    "completed": "green",
    "cancelled": "dim",
    "superseded": "dim",
    "ok": "green",
    "note": "yellow",
    "broken": "bold red",
    "done": "green",
    "conflict": "yellow",
    "sound": "green",
    "failed": "red",
}


def _styled(value: object) -> Text:
    from rich.text import Text

    text = _cell(value)
    return Text(text, style=_STYLES.get(text, ""))


def _show_on_terminal(blocks: Iterable[Block]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console(file=sys.stdout)
    for block in blocks:
        if isinstance(block, Prose):
            console.print(Text(one_line(block.heading), style="bold"))
            console.print(Padding(Text(plain(block.text)), (0, 0, 0, 2)))
            for note in block.notes:
                console.print(Padding(Text(one_line(note), style="dim"), (0, 0, 0, 2)))
            continue
        if block.title and block.rows:
            console.print(Text(one_line(block.title), style="bold"))
        if isinstance(block, Facts):
            grid = Grid.grid(padding=(0, 2))
            for name, value in block.rows:
                grid.add_row(Text(one_line(name), style="dim"), _styled(value))
            console.print(grid)
        elif block.rows:
            # The first column names the row for other commands: an id that is cut is of no use.
            grid = Grid(box=SIMPLE, pad_edge=False, show_header=any(block.columns))
            for number, name in enumerate(block.columns):
                grid.add_column(name, no_wrap=number == 0, overflow="fold")
            for row in block.rows:
                grid.add_row(*map(_styled, row))
            console.print(grid)


# ── documents ──────────────────────────────────────────────────────────────────────────────────────────


def _counts(counts: Mapping[str, object]) -> str:
    """The numbers of a mapping in words; lists in it are shown elsewhere, what is not known is left out."""
    numbers = {name: count for name, count in counts.items() if isinstance(count, (int, float)) and count}
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in numbers.items()) or "nothing"


def _place(conversation: Mapping[str, Any]) -> str:
    """`qq 实验室`: a conversation by its name, else by its id."""
    return f"{conversation['platform']} {conversation.get('name') or conversation['id']}"


def _oversized(rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        ("conversation", "characters"),
        [(_place(row["conversation"]), row["chars"]) for row in rows],
        title="oversized: longer than context.max_conversation_chars, not sent",
    )


def status_blocks(document: Document) -> list[Block]:
    """What `status` shows."""
    facts: list[tuple[str, object]] = [
        ("messages", f"{document['messages']} in {document['conversations']} conversations"),
        ("events", document["events"]),
        ("outcomes", _counts(document["outcomes"])),
        ("tasks", _counts(document["tasks"])),
        ("forks", document["forks"]),
        ("quarantined", document["quarantined"]),
        ("outbox", document["outbox"]),
    ]
    return [
        Facts([*facts, *_last_round(document["last_round"]), *_retry(document["retry"])]),
        _oversized(document["oversized"]),
        *connections_blocks(document),
    ]


def _last_round(last: Mapping[str, Any] | None) -> list[tuple[str, object]]:
    if last is None:
        return [("last round", "none yet")]
    began = datetime.fromtimestamp(last["started"]).astimezone().isoformat(" ", "seconds")
    report = last["report"]
    if report is None:
        return [("last round", f"began {began} and did not end")]
    if "error" in report:
        return [("last round", f"{began}: stopped: {report['error']}")]
    told = f"{began}: {_counts(report['groups'])}; {report['tasks']} tasks"
    return [("last round", told), ("pending groups then", report["pending"])]


def _retry(retry: Mapping[str, Any]) -> list[tuple[str, object]]:
    if not retry["segments"]:
        return []
    at = datetime.fromtimestamp(retry["at"]).astimezone()
    when = at.isoformat(" ", "seconds") if at > datetime.now().astimezone() else "at its next round"
    return [("failed segments", f"{retry['segments']}; `run` tries again {when}, `once` at any time")]


def connections_blocks(document: Document) -> list[Block]:
    """What `connections` shows."""
    columns = ("connection", "state", "last success", "next", "requests left", "more", "why")
    rows = [
        (
            _connection(entry),
            entry["state"],
            entry["last_success_at"],
            entry["next_due_at"],
            entry["budget"]["requests_left"],
            entry["more_pending"],
            entry["why"],
        )
        for entry in document["connections"]
    ]
    errors = [
        (
            _connection(entry),
            entry["last_error"]["at"],
            entry["last_error"]["class"],
            entry["last_error"]["text"],
        )
        for entry in document["connections"]
        if entry["last_error"] is not None
    ]
    return [
        Table(columns, rows, title="connections"),
        Table(("connection", "when", "class", "error"), errors, title="last errors"),
    ]


def _connection(entry: Mapping[str, Any]) -> str:
    return f"{entry['toolkit']}/{entry['id']}"


def plan_blocks(document: Document) -> list[Block]:
    """What `run --dry-run` shows."""
    rows = [
        (_connection(entry), "sync" if entry["would_sync"] else "wait", entry["next_due_at"], entry["why"])
        for entry in document["connections"]
    ]
    return [
        Table(("connection", "", "next", "why"), rows, title="would be synced"),
        Facts([("seconds between ticks", document["tick_seconds"])]),
    ]


def sync_blocks(document: Document) -> list[Block]:
    """What `sync` shows."""
    names = ("read", "written", "repeats", "quarantined", "requests")
    rows = [
        (_connection(entry), entry["outcome"], *(entry[name] for name in names), _reason_of(entry))
        for entry in document["connections"]
    ]
    columns = ("connection", "outcome", "read", "new", "repeats", "quarantined", "requests", "")
    return [Table(columns, rows)]


def _reason_of(entry: Mapping[str, Any]) -> str:
    if entry["outcome"] == "failed":
        return f"{entry['error']['class']}: {entry['error']['text']}"
    return entry["why"] or ""


def preview_blocks(document: Document) -> list[Block]:
    """What `preview` shows."""
    rows = [
        (
            group["id"],
            _place(group["conversation"]),
            len(group["segments"]),
            sum(len(segment["messages"]) for segment in group["segments"]),
            group["chars"],
            group["estimated_tokens"],
            group["estimated_price"],
        )
        for group in document["groups"]
    ]
    columns = ("group", "conversation", "segments", "messages", "characters", "tokens ≈", "price ≈")
    return [
        Table(columns, rows, title="next groups"),
        _oversized(document["oversized"]),
        _unreadable(document["ingest"]),
        Facts([("new input", _counts(document["ingest"])), ("pending groups", document["pending"])]),
    ]


def round_blocks(document: Document) -> list[Block]:
    """What `once` shows."""
    ingest, round_, export = document["ingest"], document["round"], document["export"]
    rows = [
        (
            group["id"],
            _place(group["conversation"]),
            group["messages"],
            group["outcome"],
            len(group["tasks"]),
            group["reason"],
        )
        for group in round_["groups"]
    ]
    return [
        Table(("group", "conversation", "messages", "outcome", "tasks", "reason"), rows, title="groups"),
        _oversized(round_["oversized"]),
        _unreadable(ingest),
        Facts(
            [
                ("ingest", _counts(ingest)),
                ("usage", _counts(round_["usage"])),
                ("pending groups", round_["pending"]),
                *_export_facts(export),
            ]
        ),
    ]


def _unreadable(ingest: Mapping[str, Any]) -> Table:
    rows = [(file["file"], file["error"]) for file in ingest["unreadable"]]
    return Table(("file", "error"), rows, title="files that could not be read")


def _export_facts(export: Mapping[str, Any]) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [("exported", f"{export['events']} events in {export['files']} files")]
    if export["waiting"] or export["error"]:
        facts.append(("waiting for export", f"{export['waiting']} events: {export['error']}"))
    return facts


def verify_blocks(document: Document) -> list[Block]:
    """What `verify` shows: what was looked at, then each break."""
    rows = [(found["kind"], found["where"], found["explanation"]) for found in document["breaks"]]
    more = document["found"] - len(rows)
    verdict = "sound" if document["ok"] else f"{document['found']} breaks"
    facts: list[tuple[str, object]] = [("store", verdict), ("looked at", _counts(document["checked"]))]
    if more:
        facts.append(("not listed", more))
    return [Facts(facts), Table(("what", "where", "found"), rows, title="breaks")]


def explain_blocks(document: Document) -> list[Block]:
    """What `explain` shows: the outcome and why, the text, then each step of the way."""
    place = _place({"platform": document["platform"], **document["conversation"]})
    sender = document["sender"]["name"] or document["sender"]["id"] or "unknown sender"
    facts: list[tuple[str, object]] = [
        ("message", document["message_key"]),
        ("outcome", document["outcome"]),
        ("why", document["why"]),
        ("revision", f"{document['revision']} ({document['state']} {document['kind']})"),
        *_segment_facts(document["segment"]),
    ]
    if document["failure"]:
        failure = document["failure"]
        facts.append(("last failure", f"{failure['at']}, attempt {failure['attempts']}: {failure['reason']}"))
    read = [
        (line["revision"], line["file"] or "a connection or the quarantine", line["line"])
        for line in document["deliveries"]
    ]
    commits = [
        (
            commit["at"],
            f"round {commit['round']}",
            commit["group"],
            commit["model"] if commit["current"] else f"{commit['model']} (other settings)",
            ", ".join(commit["tasks"]) or commit["no_task_reason"],
        )
        for commit in document["commits"]
    ]
    tasks = [(task["task_id"], task["status"], task["title"]) for task in document["tasks"]]
    return [
        Facts(facts),
        Prose(f"{document['sent_at']}  {place}  {sender}", document["text"]),
        Table(("revision", "file", "line"), read, title="read from"),
        Table(("when", "round", "group", "model", "tasks or why none"), commits, title="commits"),
        Table(("task", "status", "title"), tasks, title="tasks"),
    ]


def _segment_facts(segment: Mapping[str, Any] | None) -> list[tuple[str, object]]:
    if segment is None:
        return [("segment", "none yet")]
    size = f"{segment['position']} of {segment['messages']} messages, {segment['chars']} characters"
    return [
        ("segment", f"{segment['status']}, {segment['continuity']}: {size}"),
        ("before it", segment["previous"]),
        ("after it", segment["next"]),
    ]


def tasks_blocks(document: Document) -> list[Block]:
    """What `tasks` shows."""
    rows = [
        (task["task_id"], task["priority"], task["status"], _due(task), task["title"], _owner(task))
        for task in document["tasks"]
    ]
    return [Table(("task", "", "status", "due", "title", "conversation"), rows)]


def _due(task: Mapping[str, Any]) -> object:
    time = task["time"]
    return time["due"] or time["start"] or time["original"]


def _owner(task: Mapping[str, Any]) -> str:
    return _place({"platform": task["owner"]["platform"], **task["owner"]["conversation"]})


def task_blocks(document: Document) -> list[Block]:
    """What `task ID` shows: the record, then each source with its text, then its history if asked for."""
    task = document["task"]
    time = task["time"]
    facts: list[tuple[str, object]] = [
        ("task", f"{task['task_id']} revision {task['revision']}"),
        ("title", task["title"]),
        ("event", task["event"]),
        ("status", f"{task['status']} (by {task['status_by']})"),
        ("priority", f"{task['priority']} (by {task['priority_by']})"),
        ("because", task["priority_reason"]),
        ("start", time["start"]),
        ("due", time["due"]),
        ("as written", time["original"]),
        ("people", "; ".join(_person(person) for person in task["people"])),
        ("location", task["location"]),
        ("notes", task["notes"]),
    ]
    steps = [(f"step {number}", step) for number, step in enumerate(task["action_steps"], 1)]
    sources = [_source(source) for source in task["sources"]]
    history = [
        (entry["revision"], entry["at"], entry["actor"], entry["task"]["status"], entry["why"])
        for entry in document.get("history", ())
    ]
    columns = ("revision", "when", "who", "status", "why")
    known = [(name, value) for name, value in (*facts, *steps) if value]
    return [Facts(known), *sources, Table(columns, history, title="history")]


def _person(person: Mapping[str, Any]) -> str:
    return f"{person['name']} ({person['role']})" if person["role"] else str(person["name"])


def _source(source: Mapping[str, Any]) -> Prose:
    sender = source["sender"]["name"] or source["sender"]["id"] or "unknown sender"
    place = _place({"platform": source["platform"], **source["conversation"]})
    attachments = [f"attachment: {part['name'] or part['id']}" for part in source["attachments"]]
    return Prose(f"{source['sent_at_local']}  {place}  {sender}", source["text"], attachments)


def event_blocks(document: Document) -> list[Block]:
    """What `done`, `reopen`, `cancel` and `priority` show: the task as it is now."""
    task = document["task"]
    rows = [(document["task_id"], f"revision {document['revision']}", task["priority"], task["status"])]
    return [Table(("task", "", "", "status"), rows)]


def export_blocks(document: Document) -> list[Block]:
    """What `export` shows."""
    return [Facts(_export_facts(document))]


def publish_blocks(document: Document) -> list[Block]:
    """What `publish` shows."""
    names = ("outcome", "tasks", "writes", "returned", "left", "requests")
    rows = [
        (
            entry["name"],
            entry["kind"],
            *(entry[name] for name in names),
            entry["error"]["text"] if entry["error"] else "",
        )
        for entry in document["targets"]
    ]
    return [Table(("target", "kind", *names, ""), rows)]


def quarantine_blocks(document: Document) -> list[Block]:
    """What `quarantine list` shows."""
    rows = [
        (line["id"], f"{line['file']}:{line['line']}", line["reason"], line["explanation"])
        for line in document["lines"]
    ]
    return [Table(("id", "where", "reason", "explanation"), rows)]


def line_blocks(document: Document) -> list[Block]:
    """What `quarantine show` shows: one line with its bytes as text."""
    names = ("id", "file", "line", "offset", "reason", "explanation")
    return [Facts([(name, document[name]) for name in names]), Prose("as read", document["raw"] or "")]


def import_blocks(document: Document) -> list[Block]:
    """What `import` shows."""
    facts: list[tuple[str, object]] = [
        ("messages", document["messages"]),
        ("edits", document["edits"]),
        ("recalls", document["recalls"]),
        ("attachments", _counts(document["attachments"])),
        ("time zone assumed", document["timezone_assumed"]),
    ]
    rows = [
        (f"{line['file']}:{line['line']}", line["reason"], line["text"])
        for line in document["not_understood"]
    ]
    files = Table(("batch",), [(file,) for file in document["files"]])
    counts = Counter(line["reason"] for line in document["repaired"])
    mended = Table(("times", ""), [(count, reason) for reason, count in counts.most_common()], title="mended")
    return [Facts(facts), files, mended, Table(("where", "why", "text"), rows, title="not understood")]


def init_blocks(document: Document) -> list[Block]:
    """What `init` shows."""
    states = (("written", "written"), ("kept", "is there already, left as it is"))
    rows = [(path, words) for name, words in states for path in document[name]]
    return [Table(("path", ""), rows), servers_table(document["servers"])]


def check_blocks(document: Document) -> list[Block]:
    """What `check` shows."""
    rows = [(found["state"], found["topic"], found["text"]) for found in document["findings"]]
    blocks: list[Block] = [Table(("", "", ""), rows), servers_table(document["servers"])]
    if document["ping"]:
        answers = [(name, answer) for name, answer in document["ping"]["answers"].items()]
        blocks.append(Facts(answers, title="the endpoint"))
        lines = document["ping"]["lines"]
        blocks.append(Prose("lines that suit it, for [agent]", "\n".join(lines) or "as it is"))
    return blocks


def model_blocks(document: Document) -> list[Block]:
    """What `model list` shows."""
    rows = [
        (model["name"], "there" if model["complete"] else _share(model), model["path"])
        for model in document["models"]
    ]
    return [Table(("model", "", "path"), rows), servers_table(document["servers"])]


def _share(model: Mapping[str, Any]) -> str:
    return f"{model['bytes'] / model['size']:.0%} fetched" if model["bytes"] else "not fetched"


def answer_blocks(document: Document) -> list[Block]:
    """What a command shows that answers with a few plain values."""
    return [Facts(list(document.items()))]


def servers_table(servers: Sequence[Mapping[str, Any]]) -> Table:
    """Model servers found on this machine."""
    rows = [
        (
            server["kind"],
            server["base_url"],
            ", ".join(server["models"]),
            "chosen" if server["chosen"] else "",
        )
        for server in servers
    ]
    return Table(("server", "base_url", "models", ""), rows, title="model servers that run on this machine")
