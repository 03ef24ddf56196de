"""The three tools of a session: read an attachment, search earlier tasks, submit.

No tool has an effect outside the session: they read archive and store through what they are given, and note
in the session's record what they read. It must never take an argument for more than data.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic_ai.messages import BinaryContent, ToolReturn
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from chatproc.agent.record import ReadUnit, SessionRecord
from chatproc.agent.submission import PRIORITIES, STATUSES, Verdict, check_submission, parse_moment
from chatproc.attachments import Archive, Reading, Unit, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from zoneinfo import ZoneInfo

    from pydantic_ai import RunContext

    from chatproc.agent.claims import Judge
    from chatproc.agent.texts import Json

Search: TypeAlias = "Callable[[dict[str, Any]], Mapping[str, Any]]"
"""Searches the whole task store: a query as the core takes it, to `{"total": N, "tasks": [...]}`."""

_LARGEST_PAGE = 20
_PAGE = 10
_LONGEST_QUERY = 1000
"""Characters; the store searches for no more."""
_MOST_FAULTS = 40
_MOST_QUESTIONINGS = 3
"""Times that a session answers a submission without a fault with questions."""
_TASK_STATUSES = ("open", "completed", "cancelled", "superseded")
_SHOWN_OF_TASK = ("title", "event", "status", "priority", "time", "people", "location", "platform", "updated")

_TEXT = {"type": "string"}
_NULLABLE = {"type": ["string", "null"]}


def _object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _list_of(entry: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": entry}


_TASK = _object(
    {
        "task_ref": {**_NULLABLE, "description": "t1 … to update that earlier task; null for a new one"},
        # Before all that is said of a task comes what it rests on: models write in this order.
        "sources": {
            **_list_of(_TEXT),
            "description": "ids of the messages that say it, m1 …, and units read, f1:b1 …; mostly one",
        },
        "title": {**_TEXT, "description": "short action, 1 to 200 characters"},
        "event": {**_TEXT, "description": "what it is about"},
        "priority": {"type": "string", "enum": list(PRIORITIES)},
        "priority_reason": _TEXT,
        "status": {"type": "string", "enum": list(STATUSES)},
        "time": _object(
            {
                "start": {**_NULLABLE, "description": "2026-07-01 or 2026-07-01T18:00:00+08:00 or null"},
                "due": {**_NULLABLE, "description": "the same forms"},
                "original": {**_NULLABLE, "description": "the words of the message that give the time"},
            },
            ("start", "due", "original"),
        ),
        "people": _list_of(_object({"name": _TEXT, "role": _NULLABLE}, ("name", "role"))),
        "location": _NULLABLE,
        "action_steps": _list_of(_TEXT),
        "notes": _TEXT,
        "quotes": _list_of(_object({"ref": _TEXT, "text": _TEXT}, ("ref", "text"))),
    },
    ("sources", "title", "event", "priority", "priority_reason", "status", "time", "people", "location"),
)

SUBMIT = ToolDefinition(
    name="submit_tasks",
    description="Hand in the result: every conversation of the document exactly once. Ends the session.",
    parameters_json_schema=_object(
        {
            "conversations": _list_of(
                _object(
                    {
                        "id": {**_TEXT, "description": "c1 …"},
                        "tasks": _list_of(_TASK),
                        "no_task_reason": {**_NULLABLE, "description": "one sentence when tasks is empty"},
                    },
                    ("id", "tasks", "no_task_reason"),
                )
            )
        },
        ("conversations",),
    ),
    sequential=True,
)

READ = ToolDefinition(
    name="read_attachment",
    description="Read an attachment as units that can be cited, such as f1:b3. Pictures follow as pictures.",
    parameters_json_schema=_object(
        {
            "ref": {**_TEXT, "description": "f1 …"},
            "start": {"type": "integer", "description": "first unit, from 1"},
            "count": {"type": "integer", "description": "how many units; as many as fit when left out"},
        },
        ("ref",),
    ),
    sequential=True,
)

FIND = ToolDefinition(
    name="find_related_tasks",
    description="Search all earlier tasks. Every argument may be left out.",
    parameters_json_schema=_object(
        {
            "query": {**_TEXT, "description": "words in title, event, people, place, notes or sources"},
            "people": _list_of(_TEXT),
            "status": _list_of({"type": "string", "enum": list(_TASK_STATUSES)}),
            "platform": _TEXT,
            "due_from": {**_TEXT, "description": "2026-07-01"},
            "due_to": {**_TEXT, "description": "2026-07-31"},
            "page": {"type": "integer", "description": "from 1"},
            "page_size": {"type": "integer", "description": f"1 to {_LARGEST_PAGE}"},
        },
        (),
    ),
    sequential=True,
)

OFFERED: dict[str, tuple[ToolDefinition, ...]] = {"all": (READ, FIND, SUBMIT), "submit": (SUBMIT,)}
"""What each `agent.tools` offers."""

_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


class _ArgumentError(Exception):
    """An argument that a tool cannot take, in words for the model."""


class SessionTools(AbstractToolset[None]):
    """The tools of one session and what came of them.

    Args:
        record: Where reading and searching is noted.
        offered: Which tools there are.
        timezone: The zone of times.
        archive: Opens attachments.
        search: Searches the store; called in a thread.
        judge: Knows times and earlier tasks; called in a thread.
        attempts: How often `submit_tasks` is checked.
        tool_retries: How many unusable calls of one tool the loop lets pass.
    """

    def __init__(  # noqa: PLR0913 - each is one thing the session has
        self,
        record: SessionRecord,
        *,
        offered: Literal["all", "submit"],
        timezone: ZoneInfo,
        archive: Archive,
        search: Search,
        judge: Judge,
        attempts: int,
        tool_retries: int,
    ) -> None:
        """Nothing is read yet."""
        self.record = record
        self.definitions = {definition.name: definition for definition in OFFERED[offered]}
        self.timezone = timezone
        self.archive = archive
        self.search = search
        self.judge = judge
        self.questions_left = _MOST_QUESTIONINGS
        self.attempts_left = attempts
        self.tool_retries = tool_retries
        self.verdict: Verdict | None = None
        """The latest submission's."""
        self.ended = False
        """Whether a submission was accepted or the last attempt used."""
        self.rejected_calls: dict[str, str] = {}
        """Calls of the reply in hand that must not run, by id, with the words for the model."""
        self.submitted_in_reply = False
        self._sha256: dict[str, str] = {}
        """Of each attachment that was read."""

    @property
    def id(self) -> str | None:
        """No durable execution: no id."""
        return None

    async def get_tools(self, ctx: RunContext[None]) -> dict[str, ToolsetTool[None]]:
        """What the loop may call."""
        del ctx
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=definition,
                max_retries=self.tool_retries,
                args_validator=_ANY_OBJECT,
            )
            for name, definition in self.definitions.items()
        }

    def new_reply(self, rejected_calls: dict[str, str]) -> None:
        """A reply of the model came: its calls follow."""
        self.rejected_calls = rejected_calls
        self.submitted_in_reply = False

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
    ) -> str | ToolReturn[str]:
        """Run one call; whatever is wrong with it comes back as words."""
        del tool
        rejected = self.rejected_calls.get(ctx.tool_call_id or "")
        if rejected is not None:
            return rejected
        try:
            if name == READ.name:
                return await self._read(tool_args)
            if name == FIND.name:
                return await self._find(tool_args)
        except _ArgumentError as error:
            return f"{name}: {error}"
        return await self._submit(tool_args)

    # --- read_attachment

    async def _read(self, arguments: dict[str, Json]) -> str | ToolReturn[str]:
        ref = arguments.get("ref")
        attachment = self.record.attachments.get(ref.strip()) if isinstance(ref, str) else None
        if attachment is None or not isinstance(ref, str):
            known = ", ".join(self.record.attachments) or "there are none"
            raise _ArgumentError(f"ref must be an attachment of this document ({known})")
        ref = ref.strip()
        start = _whole(arguments, "start", 1)
        count = _whole(arguments, "count", 1_000_000)
        try:
            reading = await asyncio.to_thread(self.archive.read, attachment, start, count)
            self._same_file(ref, reading)
        except UnreadableError as error:
            return f"cannot be read: {error}"
        return self._shown(ref, reading)

    def _same_file(self, ref: str, reading: Reading) -> None:
        """Hold a file to what it was at its first reading; of a changed one nothing can be cited any more.

        Raises:
            UnreadableError: It changed.
        """
        if self._sha256.setdefault(ref, reading.sha256) != reading.sha256:
            self.record.forget_units(ref)
            words = "the file is not what it was when it was read before; do not cite it"
            raise UnreadableError("changed", words)

    def _shown(self, ref: str, reading: Reading) -> str | ToolReturn[str]:
        """The reading for the model: one JSON text, and the pictures for the message that follows it."""
        shown: list[dict[str, str]] = []
        pictures: list[str | BinaryContent] = []
        for unit in reading.units:
            text = unit.text
            if unit.image is not None:
                text = f"{text} [the picture follows]".lstrip()
                pictures += [f"{ref}:{unit.id}", BinaryContent(unit.image, media_type=unit.mime or "")]
            elif unit.id.startswith("i"):
                text = f"{text} [this model cannot see pictures; nothing of it was read]".lstrip()
            shown.append({"id": f"{ref}:{unit.id}", "text": text})
            self._note(ref, unit, text, reading.sha256)
        total, following, note = reading.total, reading.next, reading.note
        answer = _json({"total": total, "units": shown, "next": following, "note": note})
        return ToolReturn(answer, content=pictures) if pictures else answer

    def _note(self, ref: str, unit: Unit, text: str, sha256: str) -> None:
        """Note what the next request shows of a unit; a picture that is not shown is not read."""
        if unit.image is None and unit.id.startswith("i"):
            return
        content = text.encode() + (unit.image or b"")
        digest = hashlib.sha256(content).hexdigest()
        is_picture = unit.image is not None
        self.record.add_unit(ReadUnit(ref, unit.id, unit.text, sha256, digest, len(content), is_picture))

    # --- find_related_tasks

    async def _find(self, arguments: dict[str, Json]) -> str:
        page = _whole(arguments, "page", 1)
        page_size = min(_whole(arguments, "page_size", _PAGE), _LARGEST_PAGE)
        query: dict[str, Any] = {"sort": "updated", "limit": page_size, "offset": (page - 1) * page_size}
        for name in ("query", "platform"):
            if text := _text(arguments, name):
                query[name] = text
        for name in ("due_from", "due_to"):
            if text := _text(arguments, name):
                query[name] = self._moment(name, text)
        if people := _texts(arguments, "people"):
            query["people"] = people
        if statuses := _texts(arguments, "status"):
            if unknown := [status for status in statuses if status not in _TASK_STATUSES]:
                raise _ArgumentError(f"status must be of {', '.join(_TASK_STATUSES)}, not {_json(unknown)}")
            query["status"] = statuses
        asked = [query.get("query", ""), *query.get("people", ())]
        if sum(map(len, asked)) > _LONGEST_QUERY:
            raise _ArgumentError(f"query and people have at most {_LONGEST_QUERY} characters together")
        found = await asyncio.to_thread(self.search, query)
        tasks = [self._found_task(task) for task in found["tasks"]]
        more = {"at_least": True} if found.get("at_least") else {}
        return _json({"total": found["total"], **more, "page": page, "tasks": tasks})

    def _moment(self, name: str, text: str) -> str:
        try:
            return parse_moment(text, self.timezone).isoformat()
        except ValueError as error:
            raise _ArgumentError(f"{name} {error}") from None

    def _found_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        shown = {name: task.get(name) for name in _SHOWN_OF_TASK}
        if isinstance(shown["time"], dict):
            shown["time"] = {name: shown["time"].get(name) for name in ("start", "due", "original")}
        return {"ref": self.record.add_task(task["task_id"], task["revision"], shown), **shown}

    # --- submit_tasks

    async def _submit(self, arguments: dict[str, Json]) -> str:
        if self.ended or self.submitted_in_reply:
            return "Not looked at: call submit_tasks once in a reply, with every conversation in it."
        self.submitted_in_reply = True
        verdict = await asyncio.to_thread(check_submission, self.record, self.timezone, self.judge, arguments)
        self.verdict = verdict
        questions = self._new_questions(verdict)
        if verdict.faults:
            self.attempts_left -= 1
            self.ended = self.attempts_left == 0
            return _feedback(verdict.faults, questions, self.attempts_left)
        if questions and self.questions_left:
            self.questions_left -= 1
            return _look_again(questions)
        self.ended = True
        return "Accepted."

    def _new_questions(self, verdict: Verdict) -> list[str]:
        """What was not asked yet, of each place and kind once."""
        new = [question for question in verdict.questions if question.key not in self.record.asked]
        self.record.asked.update(question.key for question in new)
        return [question.words for question in new]


def _feedback(faults: tuple[str, ...], questions: list[str], attempts_left: int) -> str:
    """The numbered list of what is wrong."""
    lines = [f"Not accepted: {len(faults)} fault{'s' if len(faults) > 1 else ''}."]
    lines += _numbered([*faults[:_MOST_FAULTS], *questions[: _MOST_FAULTS - len(faults[:_MOST_FAULTS])]])
    if len(faults) > _MOST_FAULTS:
        lines.append(f"… and {len(faults) - _MOST_FAULTS} more.")
    lines.append(f"Mend them and submit every conversation again. Attempts left: {attempts_left}.")
    return "\n".join(lines)


def _look_again(questions: list[str]) -> str:
    """The numbered list of what is asked once."""
    lines = ["Not accepted yet. Look at this once:", *_numbered(questions[:_MOST_FAULTS])]
    lines.append("Then submit every conversation again, changed or as it was. This used no attempt.")
    return "\n".join(lines)


def _numbered(lines: list[str]) -> list[str]:
    return [f"{number}. {line}" for number, line in enumerate(lines, start=1)]


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _whole(arguments: dict[str, Json], name: str, default: int) -> int:
    value = arguments.get(name)
    if value is None:
        return default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:  # noqa: PLR2004
        raise _ArgumentError(f"{name} must be a whole number from 1")
    return value


def _text(arguments: dict[str, Json], name: str) -> str:
    value = arguments.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _ArgumentError(f"{name} must be a text")
    return value.encode("utf-8", "replace").decode().strip()


def _texts(arguments: dict[str, Json], name: str) -> list[str]:
    """A list of texts; one text alone is a list of one."""
    value = arguments.get(name)
    entries = value if isinstance(value, list) else [value]
    return [text for entry in entries if (text := _text({name: entry}, name))]


def strict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as strict endpoints want it: every key required (what was optional may be null), no other."""
    strict = dict(schema)
    if "items" in strict:
        strict["items"] = strict_schema(strict["items"])
    if "properties" in strict:
        required = set(strict.get("required", ()))
        strict["properties"] = {
            name: strict_schema(part) if name in required else _nullable(strict_schema(part))
            for name, part in strict["properties"].items()
        }
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema if "null" in kinds else {**schema, "type": [*kinds, "null"]}
