"""The checker of what a model submits: per conversation tasks that this session proves, or faults in words.

Pure, and true to the claim: it must never raise on any JSON value, never invent a value, never accept a
reference that the session did not show. What it cannot accept it names in the model's own terms.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from zoneinfo import ZoneInfo

Json: TypeAlias = Any
"""A value that came out of a JSON parser: anything at all."""

PRIORITIES = ("P0", "P1", "P2", "P3", "P4")
STATUSES = ("open", "cancelled")

_LONGEST_TITLE = 200
_LONGEST_SHOWN = 60
_LONGEST_CLUSTER = 32
"""Characters that are normalised as one piece: text that stacks thousands of accents stays cheap."""


@dataclass(frozen=True, slots=True)
class ReadUnit:
    """One unit of an attachment as it was sent to the model.

    Args:
        attachment: The attachment's ref, `f1`.
        unit: The unit within it, `b3`.
        text: The text of the unit; what can be quoted.
        attachment_sha256: Hex SHA-256 of the file.
        content_sha256: Hex SHA-256 of the bytes sent: the text in UTF-8, then the picture's file.
        length: How many bytes those are.
        is_picture: Whether it was sent as a picture, beside that text.
    """

    attachment: str
    unit: str
    text: str
    attachment_sha256: str
    content_sha256: str
    length: int
    is_picture: bool = False

    @property
    def ref(self) -> str:
        """How the model cites it: `f1:b3`."""
        return f"{self.attachment}:{self.unit}"


@dataclass(frozen=True, slots=True)
class ShownTask:
    """A stored task that the model saw, at the revision it saw."""

    task_id: str
    revision: int


class SessionRecord:
    """What one session has truly shown to the model; citations are held against it, not against the history.

    A unit or a found task counts only once the request that carries it went out (`sent`): what a model cites
    in the same breath in which it asks for it, it has not read.

    Args:
        batch: The batch as the core built it.
    """

    def __init__(self, batch: Mapping[str, Any]) -> None:
        """Begin with what the document shows."""
        self.messages: Mapping[str, Any] = batch["messages"]
        self.attachments: Mapping[str, Any] = batch["attachments"]
        self.conversations: Mapping[str, Any] = {entry["ref"]: entry for entry in batch["conversations"]}
        self.units: dict[str, ReadUnit] = {}
        self.tasks: dict[str, ShownTask] = {
            ref: ShownTask(task["task_id"], task["revision"]) for ref, task in batch["tasks"].items()
        }
        self._ref_of_task = {task.task_id: ref for ref, task in self.tasks.items()}
        self._units_to_send: dict[str, ReadUnit] = {}
        self._tasks_to_send: dict[str, ShownTask] = {}

    def add_unit(self, unit: ReadUnit) -> None:
        """Note a unit that goes out with the next request."""
        self._units_to_send[unit.ref] = unit

    def forget_units(self, attachment: str) -> None:
        """Take back what was read of an attachment: its file is another one now."""
        for units in (self.units, self._units_to_send):
            for ref in [ref for ref, unit in units.items() if unit.attachment == attachment]:
                del units[ref]

    def add_task(self, task_id: str, revision: int) -> str:
        """Note a found task that goes out with the next request.

        Returns:
            Its ref, the same for the whole session.
        """
        if task_id not in self._ref_of_task:
            number = len(self._ref_of_task) + 1
            while f"t{number}" in self._ref_of_task.values():
                number += 1
            self._ref_of_task[task_id] = f"t{number}"
        ref = self._ref_of_task[task_id]
        self._tasks_to_send[ref] = ShownTask(task_id, revision)
        return ref

    def sent(self) -> None:
        """A request went out: what waited for it is now known to the model."""
        self.units |= self._units_to_send
        self.tasks |= self._tasks_to_send
        self._units_to_send.clear()
        self._tasks_to_send.clear()

    def receipts(self, conversation: str) -> list[dict[str, Any]]:
        """The read receipts of one conversation's attachments, in the order of reading."""
        receipts = []
        for unit in self.units.values():
            attachment = self.attachments[unit.attachment]
            if attachment["conversation"] == conversation:
                receipts.append(
                    {
                        "message_key": self.messages[attachment["message"]]["key"],
                        "attachment_id": attachment["id"],
                        "unit": unit.unit,
                        "attachment_sha256": unit.attachment_sha256,
                        "content_sha256": unit.content_sha256,
                        "length": unit.length,
                    }
                )
        return receipts


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one submission.

    Args:
        faults: Every fault in the model's terms, in the order of the submission; empty: accepted.
        accepted: Per conversation without a fault its outcome, ready for the core.
        refused: Per other conversation its own faults, possibly none when it is simply missing.
    """

    faults: tuple[str, ...]
    accepted: dict[str, dict[str, Any]]
    refused: dict[str, tuple[str, ...]]


def check_submission(record: SessionRecord, timezone: ZoneInfo, arguments: Json) -> Verdict:
    """Hold a submission against what the session showed.

    Args:
        record: What was shown.
        timezone: The zone whose offsets times must carry.
        arguments: The arguments of `submit_tasks`: any JSON value.

    Returns:
        The verdict; it never raises.
    """
    return _Check(record, timezone).verdict(arguments)


@dataclass(slots=True)
class _Draft:
    """A task whose every part could be read."""

    place: str
    claims: dict[str, Any]
    task: ShownTask | None
    messages: list[str]
    units: list[ReadUnit]
    quotes: list[dict[str, Any]]


@dataclass(slots=True)
class _Answer:
    """One conversation's part of a submission."""

    drafts: list[_Draft] = field(default_factory=list)
    no_task_reason: str | None = None


class _Check:
    """One pass over one submission."""

    def __init__(self, record: SessionRecord, timezone: ZoneInfo) -> None:
        self.record = record
        self.timezone = timezone
        self.faults: list[tuple[str | None, str]] = []
        self.folded: dict[str, _Folded] = {}

    def verdict(self, arguments: Json) -> Verdict:
        answers = dict(self._answers(arguments))
        self._same_task_across_conversations(answers)
        owners = {owner for owner, _ in self.faults}
        accepted = {
            ref: self._outcome(ref, answers[ref])
            for ref in self.record.conversations
            if ref in answers and ref not in owners
        }
        refused = {
            ref: tuple(words for owner, words in self.faults if owner == ref)
            for ref in self.record.conversations
            if ref not in accepted
        }
        return Verdict(tuple(words for _, words in self.faults), accepted, refused)

    def _fault(self, owner: str | None, place: str, words: str) -> None:
        self.faults.append((owner, f"{place}: {words}"))

    # --- conversations

    def _answers(self, arguments: Json) -> Iterator[tuple[str, _Answer]]:
        known = ", ".join(self.record.conversations)
        entries = arguments.get("conversations") if isinstance(arguments, dict) else None
        if not isinstance(entries, list):
            self._fault(None, "conversations", f"must be a list with one entry for each of {known}")
            return
        seen: set[str] = set()
        for index, entry in enumerate(entries):
            ref = entry.get("id") if isinstance(entry, dict) else None
            if not isinstance(ref, str) or (ref := ref.strip()) not in self.record.conversations:
                where = f"conversations[{index}].id"
                self._fault(None, where, f"{_shown(ref)} is no conversation of this document ({known})")
            elif ref in seen:
                self._fault(ref, ref, "is given twice; give every conversation exactly once")
            else:
                seen.add(ref)
                yield ref, self._answer(ref, entry)
        for ref in self.record.conversations:
            if ref not in seen:
                self._fault(ref, ref, "is missing; give every conversation exactly once")

    def _answer(self, ref: str, entry: dict[str, Json]) -> _Answer:
        answer = _Answer()
        tasks = entry.get("tasks")
        if not isinstance(tasks, list):
            self._fault(ref, f"{ref}.tasks", "must be a list; [] when there is no task")
            return answer
        answer.no_task_reason = self._optional_text(ref, f"{ref}.no_task_reason", entry.get("no_task_reason"))
        if not tasks and answer.no_task_reason is None:
            self._fault(ref, f"{ref}.no_task_reason", "an empty list of tasks needs its reason")
        for index, task in enumerate(tasks):
            draft = self._draft(ref, f"{ref}.tasks[{index}]", task)
            if draft is not None:
                answer.drafts.append(draft)
        self._submitted_twice(ref, answer.drafts)
        return answer

    def _submitted_twice(self, owner: str, drafts: list[_Draft]) -> None:
        first: dict[object, str] = {}
        for draft in drafts:
            key = draft.task.task_id if draft.task else _likeness(draft.claims)
            if key in first:
                what = "updates the same task as" if draft.task else "is the same task as"
                self._fault(owner, draft.place, f"{what} {first[key]}; submit a task once")
            else:
                first[key] = draft.place

    def _same_task_across_conversations(self, answers: Mapping[str, _Answer]) -> None:
        updates: dict[str, list[tuple[str, _Draft]]] = defaultdict(list)
        for ref, answer in answers.items():
            for draft in answer.drafts:
                if draft.task is not None:
                    updates[draft.task.task_id].append((ref, draft))
        for drafts in updates.values():
            for ref, draft in drafts:
                for other_ref, other in drafts:
                    different = [name for name, claim in draft.claims.items() if claim != other.claims[name]]
                    if other_ref != ref and different:
                        words = f"updates the same task as {other.place}; both must agree, they differ in"
                        self._fault(ref, draft.place, f"{words} {', '.join(different)}")
                        break

    # --- one task

    def _draft(self, owner: str, place: str, task: Json) -> _Draft | None:
        if not isinstance(task, dict):
            self._fault(owner, place, "must be an object")
            return None
        before = len(self.faults)
        shown = self._task_ref(owner, f"{place}.task_ref", task.get("task_ref"))
        claims = {
            "title": self._title(owner, f"{place}.title", task.get("title")),
            "event": self._text(owner, f"{place}.event", task.get("event")),
            "priority": self._one_of(owner, f"{place}.priority", task.get("priority"), PRIORITIES),
            "priority_reason": self._text(owner, f"{place}.priority_reason", task.get("priority_reason", "")),
            "status": self._one_of(owner, f"{place}.status", task.get("status", "open"), STATUSES),
            "time": self._time(owner, f"{place}.time", task.get("time")),
            "people": self._people(owner, f"{place}.people", task.get("people")),
            "location": self._optional_text(owner, f"{place}.location", task.get("location")),
            "action_steps": self._texts(owner, f"{place}.action_steps", task.get("action_steps")),
            "notes": self._optional_text(owner, f"{place}.notes", task.get("notes")) or "",
        }
        messages, units = self._sources(owner, f"{place}.sources", task.get("sources"))
        quotes = self._quotes(owner, f"{place}.quotes", task.get("quotes"), messages, units)
        if len(self.faults) > before:
            return None
        return _Draft(place, claims, shown, messages, units, quotes)

    def _text(self, owner: str, place: str, value: Json) -> str:
        if isinstance(value, str):
            return encodable(value.strip())
        self._fault(owner, place, "must be a text")
        return ""

    def _optional_text(self, owner: str, place: str, value: Json) -> str | None:
        return None if value is None else self._text(owner, place, value) or None

    def _title(self, owner: str, place: str, value: Json) -> str:
        title = self._text(owner, place, value)
        if isinstance(value, str) and not 1 <= len(title) <= _LONGEST_TITLE:
            self._fault(owner, place, f"must have 1 to {_LONGEST_TITLE} characters, has {len(title)}")
        return title

    def _one_of(self, owner: str, place: str, value: Json, allowed: tuple[str, ...]) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        self._fault(owner, place, f"must be one of {', '.join(allowed)}, not {_shown(value)}")
        return ""

    def _list(self, owner: str, place: str, value: Json) -> list[Json]:
        """A list; left out or null counts as empty."""
        if value is None:
            return []
        if isinstance(value, list):
            return value
        self._fault(owner, place, "must be a list")
        return []

    def _texts(self, owner: str, place: str, value: Json) -> list[str]:
        entries = enumerate(self._list(owner, place, value))
        texts = [self._text(owner, f"{place}[{index}]", entry) for index, entry in entries]
        return [text for text in texts if text]

    def _people(self, owner: str, place: str, value: Json) -> list[dict[str, str | None]]:
        people = []
        for index, person in enumerate(self._list(owner, place, value)):
            where = f"{place}[{index}]"
            if not isinstance(person, dict):
                self._fault(owner, where, "must be an object with name and role")
                continue
            name = self._text(owner, f"{where}.name", person.get("name"))
            if isinstance(person.get("name"), str) and not name:
                self._fault(owner, f"{where}.name", "must not be empty")
            role = self._optional_text(owner, f"{where}.role", person.get("role"))
            people.append({"name": name, "role": role})
        return people

    def _task_ref(self, owner: str, place: str, value: Json) -> ShownTask | None:
        ref = self._optional_text(owner, place, value)
        if ref is None:
            return None
        shown = self.record.tasks.get(ref)
        if shown is None:
            self._fault(owner, place, f"{_shown(ref)} was not shown; null for a new task")
        return shown

    # --- times

    def _time(self, owner: str, place: str, value: Json) -> dict[str, str | None]:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            self._fault(owner, place, "must be an object with start, due and original")
            return {}
        start = self._moment(owner, f"{place}.start", value.get("start"))
        due = self._moment(owner, f"{place}.due", value.get("due"))
        if start is not None and due is not None and _after(start, due):
            self._fault(owner, place, f"start {start.isoformat()} is after due {due.isoformat()}")
        return {
            "start": None if start is None else start.isoformat(),
            "due": None if due is None else due.isoformat(),
            "original": self._optional_text(owner, f"{place}.original", value.get("original")),
        }

    def _moment(self, owner: str, place: str, value: Json) -> date | None:
        text = self._optional_text(owner, place, value)
        if text is None:
            return None
        try:
            return parse_moment(text, self.timezone)
        except ValueError as error:
            self._fault(owner, place, f"{_shown(text)} {error}")
            return None

    # --- sources and quotes

    def _sources(self, owner: str, place: str, value: Json) -> tuple[list[str], list[ReadUnit]]:
        """The cited messages, those of cited units among them, and the cited units."""
        if not isinstance(value, list) or not value:
            self._fault(owner, place, "must be a list with at least one message of the conversation")
            return [], []
        messages: dict[str, None] = {}
        units: dict[str, ReadUnit] = {}
        before = len(self.faults)
        for index, entry in enumerate(value):
            where = f"{place}[{index}]"
            if not isinstance(entry, str):
                self._fault(owner, where, "must be the id of a message or of a unit that was read")
            elif (ref := entry.strip()) in self.record.messages:
                self._belongs(owner, where, ref, self.record.messages[ref]["conversation"])
                messages[ref] = None
            elif (unit := self._unit(owner, where, ref)) is not None:
                messages[self.record.attachments[unit.attachment]["message"]] = None
                units[unit.ref] = unit
        if len(self.faults) == before and not any(self.record.messages[ref]["subject"] for ref in messages):
            self._fault(owner, place, "needs at least one message that is not history")
        return list(messages), list(units.values())

    def _unit(self, owner: str, place: str, ref: str) -> ReadUnit | None:
        attachment_ref, colon, _ = ref.partition(":")
        attachment = self.record.attachments.get(attachment_ref)
        if attachment is None:
            self._fault(owner, place, f"there is no {_shown(ref)} in this document")
        elif not colon:
            self._fault(owner, place, f"{ref} is a whole file; cite a unit that was read, such as {ref}:b1")
        elif (unit := self.record.units.get(ref)) is None:
            self._fault(owner, place, f"{_bare(ref)} was not read")
        else:
            self._belongs(owner, place, ref, attachment["conversation"])
            return unit
        return None

    def _belongs(self, owner: str, place: str, ref: str, conversation: str) -> None:
        if conversation != owner:
            self._fault(owner, place, f"{ref} belongs to {conversation}, not to {owner}")

    def _quotes(
        self, owner: str, place: str, value: Json, messages: list[str], units: list[ReadUnit]
    ) -> list[dict[str, Any]]:
        unit_of = {unit.ref: unit for unit in units}
        quotes = []
        for index, quote in enumerate(self._list(owner, place, value)):
            where = f"{place}[{index}]"
            if not isinstance(quote, dict):
                self._fault(owner, where, "must be an object with ref and text")
                continue
            ref = self._text(owner, f"{where}.ref", quote.get("ref"))
            text = self._text(owner, f"{where}.text", quote.get("text"))
            if not isinstance(quote.get("ref"), str) or not isinstance(quote.get("text"), str):
                continue
            if ref not in messages and ref not in unit_of:
                self._fault(owner, f"{where}.ref", f"{_shown(ref)} is not among the sources of this task")
                continue
            unit = unit_of.get(ref)
            source = unit.text if unit else str(self.record.messages[ref].get("text") or "")
            found = self._find_quote(ref, source, text)
            if found is None:
                what = f"{_shown(text)} does not occur in {ref}"
                if unit and unit.is_picture:
                    what = f"{ref} is a picture, which cannot be quoted; cite it in sources"
                self._fault(owner, f"{where}.text", what)
                continue
            attachment = self.record.attachments[unit.attachment] if unit else None
            message = attachment["message"] if attachment else ref
            quotes.append(
                {
                    "message_key": self.record.messages[message]["key"],
                    "attachment_id": attachment["id"] if attachment else None,
                    "unit": unit.unit if unit else None,
                    "text": found,
                    "check": "exact" if found == text else "repaired",
                }
            )
        return quotes

    def _find_quote(self, ref: str, source: str, quote: str) -> str | None:
        """The source's own wording of a quote; `None` when it does not occur."""
        if not quote:
            return None
        if quote in source:
            return quote
        if ref not in self.folded:
            self.folded[ref] = _Folded(source)
        return self.folded[ref].wording_of(quote)

    # --- the outcome

    def _outcome(self, ref: str, answer: _Answer) -> dict[str, Any]:
        return {
            "ref": ref,
            "group": self.record.conversations[ref]["group"],
            "outcome": "accepted",
            "no_task_reason": None if answer.drafts else answer.no_task_reason,
            "tasks": [self._accepted_task(draft) for draft in answer.drafts],
            "receipts": self.record.receipts(ref),
        }

    def _accepted_task(self, draft: _Draft) -> dict[str, Any]:
        return {
            "task_id": draft.task.task_id if draft.task else None,
            "seen_revision": draft.task.revision if draft.task else None,
            **draft.claims,
            "sources": [self.record.messages[ref]["key"] for ref in draft.messages],
            "evidence": [self._evidence(unit) for unit in draft.units],
            "quotes": draft.quotes,
        }

    def _evidence(self, unit: ReadUnit) -> dict[str, str]:
        attachment = self.record.attachments[unit.attachment]
        return {
            "message_key": self.record.messages[attachment["message"]]["key"],
            "attachment_id": attachment["id"],
            "unit": unit.unit,
        }


# --- times


_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LATEST = 253_402_207_200
"""Unix seconds; no store has a later time."""
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def parse_moment(text: str, timezone: ZoneInfo) -> date:
    """Read a day, or a time that carries an offset which the zone has at that moment.

    Args:
        text: `2026-07-01` or `2026-07-01T18:00:00+08:00`.
        timezone: The zone.

    Returns:
        A `date`, or a `datetime` (which is one too).

    Raises:
        ValueError: It is neither; the words continue a sentence that begins with the text.

    Example:
        >>> from zoneinfo import ZoneInfo
        >>> parse_moment("2026-07-01T18:00:00+08:00", ZoneInfo("Asia/Shanghai")).hour
        18
    """
    try:
        if _DAY.fullmatch(text):
            day = date.fromisoformat(text)
            if day == date.max:
                raise ValueError  # noqa: TRY301
            return day
        if not _RFC3339.fullmatch(text):
            raise ValueError  # noqa: TRY301 - one sentence for every unreadable time
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        example = "write 2026-07-01, or 2026-07-01T18:00:00+08:00 with seconds and offset"
        raise ValueError(f"is not a time; {example}") from None
    try:
        in_zone = moment.astimezone(timezone)
        if moment.timestamp() >= _LATEST:
            raise ValueError  # noqa: TRY301 - one sentence for every time out of bounds
    except (OverflowError, ValueError):
        raise ValueError("is not a time that a calendar has") from None
    if in_zone.utcoffset() != moment.utcoffset():
        raise ValueError(f"has an offset that {timezone.key} does not have then{_instead(moment, timezone)}")
    return moment


def _instead(moment: datetime, timezone: ZoneInfo) -> str:
    """The time that was probably meant: the same wall clock, else, where that does not exist, the instant."""
    meant = moment.replace(tzinfo=timezone)
    exists = meant.astimezone(UTC).astimezone(timezone).replace(tzinfo=None) == meant.replace(tzinfo=None)
    written = (meant if exists else moment.astimezone(timezone)).isoformat()
    # Zones of the nineteenth century have seconds, which RFC 3339 cannot write.
    return f"; {written} would be one" if _RFC3339.fullmatch(written) else ""


def _after(start: date, due: date) -> bool:
    """Whether one begins after the other; beside a day only days count."""
    if isinstance(start, datetime) and isinstance(due, datetime):
        return start > due
    return _day(start) > _day(due)


def _day(moment: date) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


# --- texts


class _Folded:
    """A source as quotes are compared: NFKC, white space as one space, each place traced to the original."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.spans: list[tuple[int, int]] = []
        pieces: list[str] = []
        for start, end, folded in _fold(source):
            pieces.append(folded)
            self.spans.extend([(start, end)] * len(folded))
        self.text = "".join(pieces)

    def wording_of(self, quote: str) -> str | None:
        """The original text of the first place where a quote occurs once both are folded."""
        wanted = "".join(folded for _, _, folded in _fold(quote)).strip()
        at = self.text.find(wanted) if wanted else -1
        if at < 0:
            return None
        return self.source[self.spans[at][0] : self.spans[at + len(wanted) - 1][1]]


def _fold(text: str) -> Iterator[tuple[int, int, str]]:
    """Cut a text where NFKC may be applied piece by piece; runs of white space become one space."""
    start = 0
    blank = False
    while start < len(text):
        end = start + 1
        folded = unicodedata.normalize("NFKC", text[start])
        limit = min(len(text), start + _LONGEST_CLUSTER)
        while end < limit and (joined := _joined(folded, text[end])) is not None:
            folded = joined
            end += 1
        if not folded.strip():
            if not blank:
                yield start, end, " "
            blank = True
        else:
            yield start, end, " ".join(folded.split()) if any(map(str.isspace, folded)) else folded
            blank = False
        start = end


def _joined(folded: str, following: str) -> str | None:
    """The two as one piece when they compose, `None` when they stand apart."""
    if following < "\u0300":
        return None
    alone = unicodedata.normalize("NFKC", following)
    together = unicodedata.normalize("NFKC", folded + following)
    if unicodedata.combining(alone[0]) or together != folded + alone:
        return together
    return None


def _likeness(claims: dict[str, Any]) -> object:
    """What makes two new tasks the same one."""
    time = claims["time"]
    people = tuple(person["name"].casefold() for person in claims["people"])
    words = (claims["title"].casefold(), claims["event"].casefold(), claims["location"])
    return (*words, time["start"], time["due"], people)


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs joined, and lone ones, which UTF-8 cannot carry, replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _shown(value: Json) -> str:
    """A value for a fault: short, on one line, quoted."""
    if isinstance(value, str):
        short = value if len(value) <= _LONGEST_SHOWN else f"{value[: _LONGEST_SHOWN - 1]}…"
        return json.dumps(encodable(short), ensure_ascii=False)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"


def _bare(ref: str) -> str:
    """A ref for a fault, without quotes when it looks like one."""
    return ref if re.fullmatch(r"[a-z]\d{1,9}:[a-z]\d{1,9}", ref, re.ASCII) else _shown(ref)
