"""What the public functions return: frozen, each with `.to_dict()`, the document that `--json` prints.

Nothing here reads, computes or formats; it only gives what the core said its names.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

_PART_DONE = 3
_HELD = 4
_NO_CREDENTIAL = 5


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long work is.

    Args:
        stage: `ingest`, `groups`, `export`, `verify` or `backup`.
        done: How much is done, in `unit`.
        total: Of how much; `None`: not known.
        unit: `bytes`, `groups`, `events`, `rows` or `pages`.
        tokens: Tokens so far; `None`: the endpoint does not tell.
        tasks: Tasks submitted so far.
        price: Money so far in the currency of `agent.prices`; `None`: not known.
        note: What is at work, for a person.
    """

    stage: str
    done: int
    total: int | None
    unit: str
    tokens: int | None = None
    tasks: int = 0
    price: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `plan_events` found: see `to_dict` for the shapes."""

    counts: Json
    """`lines`, `accepted`, `repeats`, `quarantined`."""
    messages: int
    segments: list[Json]
    """In order: `conversation continuity fingerprint chars messages[keys] carried[keys] oversized`."""
    groups: list[Json]
    """In round order: `id fingerprint conversation segments[…] messages chars`."""
    batches: list[list[str]]
    """Ids of the groups of each batch."""
    oversized: list[Json]
    quarantined: list[Json]
    """`line reason explanation raw` of each refused line."""

    def to_dict(self) -> Json:
        """The plan as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ResolvedTime:
    """What `resolve_time` found; each time is RFC 3339 with an offset, or `YYYY-MM-DD`."""

    start: str | None
    """When it begins; only where `check` is `computed`."""
    due: str | None
    """By when it is due; only where `check` is `computed`."""
    timezone: str
    original: str | None
    """The text's own words that were read; `None`: none name a time."""
    check: str
    """`computed` (one reading), `ambiguous` (several), `unresolved` (none)."""
    readings: list[dict[str, str | None]]
    """`start due` of each reading where there are several, the likeliest first."""
    negated: bool
    """Whether the text names a time only to deny it."""

    def to_dict(self) -> Json:
        """The result as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Preview:
    """What the next round would send. Nothing was written and nothing was sent."""

    ingest: Json
    """What was read into memory: `lines accepted repeats quarantined files waiting unreadable[]`."""
    groups: list[Json]
    """`id conversation{} chars messages segments[] estimated_tokens estimated_price`."""
    pending: int
    """Groups that are pending, beyond those shown too."""
    oversized: list[Json]
    documents: list[str] = field(default_factory=list)
    """The exact user message of each session, when asked for."""

    def to_dict(self) -> Json:
        """The preview as a JSON document; `documents` only when they were asked for."""
        document = asdict(self)
        if not self.documents:
            del document["documents"]
        return document


@dataclass(frozen=True, slots=True)
class Status:
    """Counts of what the store holds."""

    document: Json

    def to_dict(self) -> Json:
        """The counts as a JSON document.

        `events messages conversations tasks{} outcomes{} forks oversized[] quarantined outbox
        pending_segments retry{segments at} last_round connections[]`
        """
        return dict(self.document)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the store and the exported files still say what was written."""

    ok: bool
    """Whether nothing was found."""
    checked: dict[str, int]
    """How many were looked at: `messages revisions deliveries conversations segments commits receipts tasks
    quotes events requests files`."""
    found: int
    """How many breaks there are."""
    breaks: list[Json]
    """The first thousand of them, each with `kind`, `where` and `explanation`."""

    @property
    def exit_code(self) -> int:
        """0: sound; 1: something is not as it was written."""
        return 0 if self.ok else 1

    def to_dict(self) -> Json:
        """The verdict as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of the store that was made."""

    file: str
    """Where it stands."""
    bytes: int
    """Its size."""
    version: int
    """The version of the store in it."""

    def to_dict(self) -> Json:
        """The copy as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Way:
    """One message's whole way: see `to_dict` for the shape."""

    document: Json

    @property
    def outcome(self) -> str:
        """The word that `status` counts it under."""
        return str(self.document["outcome"])

    @property
    def why(self) -> str:
        """Why it has that outcome, in words."""
        return str(self.document["why"])

    def to_dict(self) -> Json:
        """The way as a JSON document.

        `message_key platform account_id conversation{} kind state revision earlier_revisions[] sent_at
        sender{} text deliveries[] segment{} outcome why commits[] failure{} tasks[]`
        """
        return dict(self.document)


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of the messages of one conversation: the counts of all, and one page of them."""

    conversation: Json
    """`platform account_id id name type messages forks`."""
    outcomes: dict[str, int]
    """Messages by outcome, the words of `status`; they add up to `conversation["messages"]`."""
    messages: list[Json]
    """The page in the order of time, each `message_key kind state sent_at sender{} text chars continuity
    outcome why tasks[]`; `text` holds the first 200 of `chars` characters."""
    next_after: str | None
    """`after` of the next page; `None` on the last one."""

    def to_dict(self) -> Json:
        """The coverage as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Conversations:
    """A page of the conversations that the store holds messages of."""

    conversations: list[Json]
    """By name, each `platform account_id id name type messages forks`."""
    total: int
    """How many match, on all pages."""
    next_after: int | None
    """`after` of the next page; `None` on the last one."""

    def to_dict(self) -> Json:
        """The page as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RoundReport:
    """What a round did."""

    ingest: Json
    """`lines accepted repeats quarantined files waiting unreadable[]`."""
    round: Json
    """`groups[] pending waiting oversized[] usage seconds`; a group: `id conversation segments messages chars
    outcome (done, failed, conflict, left) reason tasks[ids]`; waiting: segments too young for `run`."""
    export: Json
    """`files events waiting error`."""

    @property
    def exit_code(self) -> int:
        """0: done; 3: in part (a failed group, an oversized one, new quarantined lines, export waiting)."""
        failed = any(group["outcome"] == "failed" for group in self.round["groups"])
        refused = self.ingest["quarantined"] or self.ingest["unreadable"]
        unpublished = self.export["waiting"] or self.export["error"]
        return _PART_DONE if failed or refused or self.round["oversized"] or unpublished else 0

    def to_dict(self) -> Json:
        """The report as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ConnectionStates:
    """How every configured connection stands."""

    connections: list[Json]
    """`toolkit id enabled state why last_attempt_at last_success_at next_due_at budget{} failures_in_row
    breaker more_pending last_error{} counters{} last_run{}`, see docs/connections.md."""

    def to_dict(self) -> Json:
        """The list as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync of one or more connections did."""

    connections: list[Json]
    """`toolkit id outcome (done, paused, failed, stopped, running, skipped) why error{class text} read
    written repeats quarantined requests more_pending next_due_at`."""

    @property
    def exit_code(self) -> int:
        """0: done; 5: a credential was refused; 1: all failed; 3: some did; 4: another process is at one.

        What was skipped because it failed before counts as failed.
        """
        errors = [entry["error"] for entry in self.connections if entry["error"] is not None]
        if any(error["class"] == "auth" for error in errors):
            return _NO_CREDENTIAL
        if errors:
            return 1 if len(errors) == len(self.connections) else _PART_DONE
        if any(entry["outcome"] == "running" for entry in self.connections):
            return _HELD
        refused = any(entry["quarantined"] for entry in self.connections)
        return _PART_DONE if refused else 0

    def to_dict(self) -> Json:
        """The report as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PublishReport:
    """What publishing to one or more targets did."""

    targets: list[Json]
    """`name kind outcome (done, part, failed) tasks writes returned left requests error{class text hint}`."""

    @property
    def exit_code(self) -> int:
        """0: done; 5: a password is missing or refused; 1: all failed; 3: some did, or tasks were left."""
        errors = [entry["error"] for entry in self.targets if entry["error"] is not None]
        if any(error["class"] == "auth" for error in errors):
            return _NO_CREDENTIAL
        if errors and len(errors) == len(self.targets):
            return 1
        return _PART_DONE if errors or any(entry["left"] for entry in self.targets) else 0

    def to_dict(self) -> Json:
        """The report as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LoopReport:
    """What a loop did from its start to its end: counts."""

    ticks: int
    syncs: int
    failed_syncs: int
    written: int
    """New events that syncs brought."""
    rounds: int
    failed_rounds: int
    tasks: int

    def to_dict(self) -> Json:
        """The counts as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export published."""

    files: int
    events: int
    waiting: int
    """Events that are not published yet."""
    error: str | None = None

    def to_dict(self) -> Json:
        """The report as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Task:
    """A task as it is now."""

    task_id: str
    revision: int
    updated_at: str
    """When its newest revision was made, RFC 3339."""
    record: Json
    """The task as it is published, see docs/tasks.md."""
    attachments: list[Json]
    """Files to pass on: `name sha256 size mime path sources[message keys]`."""

    @property
    def title(self) -> str:
        """The short action."""
        return str(self.record["title"])

    @property
    def status(self) -> str:
        """`open`, `completed`, `cancelled` or `superseded`."""
        return str(self.record["status"])

    @property
    def priority(self) -> str:
        """`P0` … `P4`."""
        return str(self.record["priority"])

    @property
    def due(self) -> str | None:
        """RFC 3339 with offset, `YYYY-MM-DD`, or `None`."""
        due = self.record["time"]["due"]
        return None if due is None else str(due)

    @property
    def sources(self) -> list[Json]:
        """The messages it rests on."""
        return list(self.record["sources"])

    def to_dict(self) -> Json:
        """Id, revision, time of change, the record's fields, and the files to pass on."""
        own = {"task_id": self.task_id, "revision": self.revision, "updated_at": self.updated_at}
        return {**own, **self.record, "attachments": self.attachments}


class TaskPage(list[Task]):
    """Tasks of one page, with where the next one begins."""

    def __init__(
        self, tasks: list[Task], *, next_cursor: str | None, total: int, at_least: bool = False
    ) -> None:
        """Hold the page.

        Args:
            tasks: The page.
            next_cursor: Give it to the next `list_tasks`; `None` on the last page.
            total: How many tasks match, on all pages.
            at_least: Whether there may be more than `total`: of what finds thousands, not all are counted.
        """
        super().__init__(tasks)
        self.next_cursor = next_cursor
        self.total = total
        self.at_least = at_least

    def to_dict(self) -> Json:
        """The page as a JSON document: `tasks next_cursor total at_least`."""
        tasks = [task.to_dict() for task in self]
        return {
            "tasks": tasks,
            "next_cursor": self.next_cursor,
            "total": self.total,
            "at_least": self.at_least,
        }


@dataclass(frozen=True, slots=True)
class TaskRevision:
    """One revision of a task."""

    revision: int
    at: str
    """RFC 3339."""
    actor: str
    """`model:NAME`, `user:NAME` or `program`."""
    why: str
    task: Json

    def to_dict(self) -> Json:
        """The revision as a JSON document."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """A published revision: one line of the output, `chatproc.task-event/1`."""

    event_id: str
    task_id: str
    revision: int
    emitted_at: str
    task: Json
    schema: str = "chatproc.task-event/1"
    operation: str = "upsert"

    def to_dict(self) -> Json:
        """The event as it is exported."""
        names = ("schema", "operation", "event_id", "task_id", "revision", "emitted_at", "task")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class QuarantinedLine:
    """A line that was refused."""

    id: int
    file: str
    line: int
    offset: int
    """Bytes before it."""
    length: int
    """Bytes."""
    reason: str
    explanation: str
    bytes: bytes | None
    """The line verbatim; `None` of one that was too long to keep."""

    def to_dict(self) -> Json:
        """`id file line offset length reason explanation raw`; `raw_base64` too where `raw` is not exact."""
        document: Json = {
            name: getattr(self, name)
            for name in ("id", "file", "line", "offset", "length", "reason", "explanation")
        }
        document["raw"] = None
        if self.bytes is not None:
            document["raw"] = self.bytes.decode("utf-8", errors="replace")
            if document["raw"].encode() != self.bytes:
                document["raw_base64"] = base64.b64encode(self.bytes).decode()
        return document
