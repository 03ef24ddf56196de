"""What a task claims, held against the sources it cites: facts that none holds, times, quotes, likeness.

A fact that no source holds is a fault. What the program knows better, or cannot see, is a question that is
asked once. It decides no time that is stored: what a wording means, the core says again at the commit.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from chatproc.agent.facts import Held, unheld
from chatproc.agent.texts import Folded, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from chatproc.agent.record import ReadUnit, SessionRecord, ShownTask

Times: TypeAlias = tuple[str | None, str | None]
"""Start and due."""

_MOST_QUOTES = 10
"""Quotes that the program itself adds to a task."""
_CHANGES = re.compile(
    r"改[到在为成]|换[到成在]|挪到|移到|调整|moved? to|changed? to|switch(?:ed)? to|instead|relocated",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Judge:
    """What the program knows beyond the session.

    Args:
        time: From a wording, the cited messages (`text`, `sent_at` in milliseconds, `unit`) and the times
            given to what the core makes of them.
        near: From a new task to the open ones that it may be.
    """

    time: Callable[[str | None, list[dict[str, Any]], Times], dict[str, Any]]
    near: Callable[[dict[str, Any]], list[dict[str, Any]]]


@dataclass(slots=True)
class Draft:
    """A submitted task whose every part could be read."""

    place: str
    claims: dict[str, Any]
    task: ShownTask | None
    messages: list[str]
    units: list[ReadUnit]
    quotes: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Question:
    """A point to look at once.

    Args:
        kind: `time`, `change`, `quote` or `duplicate`.
        place: The task's place in the submission.
        words: What to look at, for the model.
    """

    kind: str
    place: str
    words: str

    @property
    def key(self) -> tuple[str, str]:
        """What is asked once only."""
        return self.kind, self.place


def review(
    draft: Draft, record: SessionRecord, judge: Judge, updated: Sequence[str]
) -> tuple[list[str], list[Question]]:
    """Hold a draft against its sources; quotes that stand there word for word are added to it.

    Args:
        draft: What the model submitted.
        record: What was shown.
        judge: Knows times and earlier tasks.
        updated: Ids of the tasks that this submission updates.

    Returns:
        Faults in words, and questions.
    """
    return _Review(draft, record, judge).result(updated)


class _Review:
    """One draft, its sources and what its wording of time means."""

    def __init__(self, draft: Draft, record: SessionRecord, judge: Judge) -> None:
        self.draft = draft
        self.record = record
        self.judge = judge
        self.claims = draft.claims
        self.time = draft.claims["time"]
        self.given: str | None = self.time["original"]
        self.time["original"] = self._wording()
        self.told = self._told()
        self.judged = judge.time(self.time["original"], self.told, (self.time["start"], self.time["due"]))
        if self.judged["finding"] == "not_found" and draft.units and self._earlier("original") != self.given:
            # At the commit the texts of units are not at hand: nothing there could tell that none has it.
            self.time["original"] = None
        self.sources = list(self._sources())

    def result(self, updated: Sequence[str]) -> tuple[list[str], list[Question]]:
        faults = list(self._facts())
        questions = [Question(kind, self.draft.place, words) for kind, words in self._questions(updated)]
        return faults, questions

    def _questions(self, updated: Sequence[str]) -> Iterator[tuple[str, str]]:
        if words := self._about_time():
            yield "time", f"{self.draft.place}.time: {words}"
        elif words := self._about_change():
            yield "change", f"{self.draft.place}: {words}"
        if words := self._about_quotes():
            yield "quote", f"{self.draft.place}.quotes: {words}"
        if words := self._about_duplicates(updated):
            yield "duplicate", f"{self.draft.place}: {words}"

    # --- sources

    def _sources(self) -> Iterator[tuple[str, str]]:
        """Refs and texts of what is cited."""
        for ref in self.draft.messages:
            yield ref, str(self.record.messages[ref].get("text") or "")
        for unit in self.draft.units:
            yield unit.ref, unit.text

    def _wording(self) -> str | None:
        """The wording of the time; that of a unit in the unit's own words."""
        if not self.given:
            return None
        own = (Folded(unit.text).wording_of(self.given) for unit in self.draft.units)
        return next(filter(None, own), self.given)

    def _told(self) -> list[dict[str, Any]]:
        """The cited messages as the core judges times by them."""
        wording = self.given or ""
        of_units = {
            self.record.attachments[unit.attachment]["message"]
            for unit in self.draft.units
            if unit.is_picture or Folded(unit.text).wording_of(wording)
        }
        return [
            {
                "text": str(self.record.messages[ref].get("text") or ""),
                "sent_at": round(self.record.messages[ref]["sent_at"] * 1000),
                "unit": ref in of_units,
            }
            for ref in self.draft.messages
        ]

    # --- facts

    def _facts(self) -> Iterator[str]:
        if any(unit.is_picture for unit in self.draft.units):
            return  # What stands in a picture cannot be compared.
        claimed = [
            ("title", self.claims["title"]),
            ("event", self.claims["event"]),
            ("location", self.claims["location"] or ""),
            *((f"action_steps[{number}]", step) for number, step in enumerate(self.claims["action_steps"])),
        ]
        held = self._held()
        if not any(unheld(text, held) for _, text in claimed):
            return
        self._add_meanings(held)
        refs = ", ".join(ref for ref, _ in self.sources)
        for name, text in claimed:
            for fact in unheld(text, held)[:3]:
                words = f"{shown(fact)} is in none of the sources ({refs}); write only what they say"
                yield f"{self.draft.place}.{name}: {words}"

    def _held(self) -> Held:
        held = Held()
        for _, text in self.sources:
            held.add(text)
        for ref in self.draft.messages:
            held.add(self.record.senders.get(ref, ""))
        for attachment in self.record.attachments.values():
            if attachment["message"] in self.draft.messages:
                held.add(attachment["name"] or "")
        if self.draft.task is not None:
            self._add_view(held, self.draft.task.view)
        if self.judged["check"] in {"agrees", "computed"}:
            held.add_moment(self.judged["time"]["start"])
            held.add_moment(self.judged["time"]["due"])
        for reading in self.judged["readings"]:
            held.add_moment(reading["start"])
            held.add_moment(reading["due"])
        return held

    @staticmethod
    def _add_view(held: Held, view: Mapping[str, Any]) -> None:
        """What an earlier task says, its own sources held."""
        for name in ("title", "event", "location"):
            held.add(view.get(name) or "")
        time = view.get("time") or {}
        held.add(time.get("original") or "")
        held.add_moment(time.get("start"))
        held.add_moment(time.get("due"))

    def _add_meanings(self, held: Held) -> None:
        """Times that any cited message means, beside the task's own."""
        for told in self.told:
            suggestion = self.judge.time(None, [told], ("2000-01-01", None))["suggestion"]
            if suggestion is not None:
                held.add_moment(suggestion["meaning"]["start"])
                held.add_moment(suggestion["meaning"]["due"])

    # --- times

    def _about_time(self) -> str | None:
        finding, original = self.judged["finding"], shown(self.judged["original"])
        given = _time_words(self.time)
        meant = " or ".join(map(_time_words, self.judged["readings"]))
        other = f"; or give the words of the message that mean {given}" if finding == "contradicts" else ""
        return {
            "contradicts": f"{original} means {meant}, not {given}; write that{other}",
            "misfit": f"{original} can mean {meant}, not {given}; write one of these",
            "negated": f"the message denies {original}; write null{self._suggested(', or ')}",
            "no_wording": self._no_wording("original is missing"),
            "not_found": self._no_wording(f"original {shown(self.given)} is in no source"),
        }.get(finding) or None

    def _is_of_the_earlier_task(self) -> bool:
        """Whether the time is that of the task that is updated, whose sources are not at hand."""
        same = all(self._earlier(name) == self.time[name] for name in ("start", "due"))
        return self.draft.task is not None and same

    def _earlier(self, name: str) -> str | None:
        """What the task that is updated says of its time."""
        view = {} if self.draft.task is None else self.draft.task.view.get("time") or {}
        earlier: str | None = view.get(name)
        return earlier

    def _no_wording(self, what: str) -> str:
        if self._is_of_the_earlier_task():
            return ""
        if self.time["start"] is None and self.time["due"] is None:
            return f"{what}; write null{self._suggested(', or ')}"
        return (
            f"{what}; write the words that give the time{self._suggested(', such as ')}, or null everywhere"
        )

    def _suggested(self, joint: str) -> str:
        suggestion = self.judged["suggestion"]
        if suggestion is None:
            return ""
        return f"{joint}{shown(suggestion['original'])} with {_time_words(suggestion['meaning'])}"

    def _about_change(self) -> str | None:
        later = self.judged["later"]
        if later:
            ref, original = self.draft.messages[later[-1]["place"]], shown(later[-1]["original"])
            meaning = _time_words(later[-1]["meaning"])
            return f"{ref}, sent later, says {original} ({meaning}); write the time that holds now"
        location = self.claims["location"]
        sent = sorted(self.draft.messages, key=lambda ref: self.record.messages[ref]["sent_at"])
        texts = [str(self.record.messages[ref].get("text") or "") for ref in sent]
        holding = [number for number, text in enumerate(texts) if location and location in text]
        for ref, text in list(zip(sent, texts, strict=True))[holding[-1] + 1 :] if holding else ():
            if _CHANGES.search(text):
                return f"{ref}, sent later, may change the place; write the one that holds now"
        return None

    # --- quotes

    def _about_quotes(self) -> str | None:
        """Adds the quotes that a place and names are themselves; what no source words so is asked for."""
        senders = {self.record.senders.get(ref) for ref in self.draft.messages}
        named = [person["name"] for person in self.claims["people"] if person["name"] not in senders]
        place = [self.claims["location"]] if self.claims["location"] else []
        missing = [value for value in [*place, *named] if not self._is_quoted(value)]
        if not missing:
            return None
        words = ", ".join(map(shown, missing[:3]))
        return f"add a short exact quote that gives {words}, or leave out what no source says"

    def _is_quoted(self, value: str) -> bool:
        quoted = [quote["text"] for quote in self.draft.quotes]
        if any(value in text or (len(text) > 1 and text in value) for text in quoted):
            return True
        messages = {ref: self.record.messages[ref]["key"] for ref in self.draft.messages}
        for ref, text in self.sources:
            own = value if value in text else Folded(text).wording_of(value)
            if own is None:
                continue
            if len(quoted) < _MOST_QUOTES:
                unit = next((unit for unit in self.draft.units if unit.ref == ref), None)
                attachment = self.record.attachments[unit.attachment] if unit else None
                message = attachment["message"] if attachment else ref
                self.draft.quotes.append(
                    {
                        "message_key": messages[message],
                        "attachment_id": attachment["id"] if attachment else None,
                        "unit": unit.unit if unit else None,
                        "text": own,
                        "check": "exact" if own == value else "repaired",
                    }
                )
            return True
        return any(unit.is_picture for unit in self.draft.units)

    # --- earlier tasks

    def _about_duplicates(self, updated: Sequence[str]) -> str | None:
        if self.draft.task is not None or ("duplicate", self.draft.place) in self.record.asked:
            return None
        near = self.judge.near(
            {
                "sources": [self.record.messages[ref]["key"] for ref in self.draft.messages],
                "title": self.claims["title"],
                "event": self.claims["event"],
                "people": [person["name"] for person in self.claims["people"]],
                "start": self.judged["time"]["start"],
                "due": self.judged["time"]["due"],
                "except": list(updated),
            }
        )
        if not near:
            return None
        named = []
        for task in near:
            ref = self.record.add_task(task["task_id"], task["revision"], task["view"])
            time = _time_words(task["view"]["time"])
            named.append(f"{ref} {shown(task['view']['title'])} ({time})")
        same = "that task_ref" if len(near) > 1 else f"task_ref {shown(named[0].split()[0])}"
        listed = " or ".join(named)
        return f"may be the earlier {listed}. The same matter: {same}; another: say in notes how it differs"


def _time_words(time: Mapping[str, Any]) -> str:
    """A time as it is written into a submission."""
    parts = [f"{name} {json.dumps(time[name])}" for name in ("start", "due") if time.get(name)]
    return " and ".join(parts) or "no time"
