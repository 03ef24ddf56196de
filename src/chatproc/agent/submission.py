"""The checker of what a model submits: per conversation tasks that this session proves, or faults in words.

True to the claim: it must never raise on any JSON value, never invent a value, never accept a
reference that the session did not show. What it cannot accept it names in the model's own terms.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from chatproc.agent.claims import Draft, Judge, Question, review
from chatproc.agent.texts import Folded, Json, encodable, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from zoneinfo import ZoneInfo

    from chatproc.agent.record import ReadUnit, SessionRecord, ShownTask

PRIORITIES = ("P0", "P1", "P2", "P3", "P4")
STATUSES = ("open", "cancelled")

_LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one submission.

    Args:
        faults: Every fault in the model's terms, in the order of the submission; empty: accepted.
        accepted: Per conversation without a fault its outcome, ready for the core.
        refused: Per other conversation its own faults, possibly none when it is simply missing.
        questions: What deserves a second look and is no fault.
    """

    faults: tuple[str, ...]
    accepted: dict[str, dict[str, Any]]
    refused: dict[str, tuple[str, ...]]
    questions: tuple[Question, ...] = ()


def check_submission(record: SessionRecord, timezone: ZoneInfo, judge: Judge, arguments: Json) -> Verdict:
    """Hold a submission against what the session showed.

    Args:
        record: What was shown.
        timezone: The zone whose offsets times must carry.
        judge: Knows times and earlier tasks.
        arguments: The arguments of `submit_tasks`: any JSON value.

    Returns:
        The verdict; it never raises.
    """
    return _Check(record, timezone, judge).verdict(arguments)


@dataclass(slots=True)
class _Answer:
    """One conversation's part of a submission."""

    drafts: list[Draft] = field(default_factory=list)
    no_task_reason: str | None = None


class _Check:
    """One pass over one submission."""

    def __init__(self, record: SessionRecord, timezone: ZoneInfo, judge: Judge) -> None:
        self.record = record
        self.timezone = timezone
        self.judge = judge
        self.questions: list[Question] = []
        self.faults: list[tuple[str | None, str]] = []
        self.folded: dict[str, Folded] = {}

    def verdict(self, arguments: Json) -> Verdict:
        answers = dict(self._answers(arguments))
        self._same_task_across_conversations(answers)
        self._review(answers)
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
        faults = tuple(words for _, words in self.faults)
        return Verdict(faults, accepted, refused, tuple(self.questions))

    def _review(self, answers: Mapping[str, _Answer]) -> None:
        """Hold what the drafts claim against their sources."""
        drafts = [(ref, draft) for ref, answer in answers.items() for draft in answer.drafts]
        updated = [draft.task.task_id for _, draft in drafts if draft.task is not None]
        for ref, draft in drafts:
            faults, questions = review(draft, self.record, self.judge, updated)
            self.faults.extend((ref, fault) for fault in faults)
            self.questions.extend(questions)

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
                self._fault(None, where, f"{shown(ref)} is no conversation of this document ({known})")
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

    def _submitted_twice(self, owner: str, drafts: list[Draft]) -> None:
        first: dict[object, str] = {}
        for draft in drafts:
            key = draft.task.task_id if draft.task else _likeness(draft.claims)
            if key in first:
                what = "updates the same task as" if draft.task else "is the same task as"
                self._fault(owner, draft.place, f"{what} {first[key]}; submit a task once")
            else:
                first[key] = draft.place

    def _same_task_across_conversations(self, answers: Mapping[str, _Answer]) -> None:
        updates: dict[str, list[tuple[str, Draft]]] = defaultdict(list)
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

    def _draft(self, owner: str, place: str, task: Json) -> Draft | None:
        if not isinstance(task, dict):
            self._fault(owner, place, "must be an object")
            return None
        before = len(self.faults)
        known = self._task_ref(owner, f"{place}.task_ref", task.get("task_ref"))
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
        return Draft(place, claims, known, messages, units, quotes)

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
        self._fault(owner, place, f"must be one of {', '.join(allowed)}, not {shown(value)}")
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
        known = self.record.tasks.get(ref)
        if known is None:
            self._fault(owner, place, f"{shown(ref)} was not shown; null for a new task")
        return known

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
            self._fault(owner, place, f"{shown(text)} {error}")
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
            self._fault(owner, place, f"there is no {shown(ref)} in this document")
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
                self._fault(owner, f"{where}.ref", f"{shown(ref)} is not among the sources of this task")
                continue
            unit = unit_of.get(ref)
            source = unit.text if unit else str(self.record.messages[ref].get("text") or "")
            found = self._find_quote(ref, source, text)
            if found is None:
                what = f"{shown(text)} does not occur in {ref}"
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
            self.folded[ref] = Folded(source)
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

    def _accepted_task(self, draft: Draft) -> dict[str, Any]:
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


def _likeness(claims: dict[str, Any]) -> object:
    """What makes two new tasks the same one."""
    time = claims["time"]
    people = tuple(person["name"].casefold() for person in claims["people"])
    words = (claims["title"].casefold(), claims["event"].casefold(), claims["location"])
    return (*words, time["start"], time["due"], people)


def _bare(ref: str) -> str:
    """A ref for a fault, without quotes when it looks like one."""
    return ref if re.fullmatch(r"[a-z]\d{1,9}:[a-z]\d{1,9}", ref, re.ASCII) else shown(ref)
