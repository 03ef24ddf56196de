"""A round, from batch files to exported tasks, and what the next one would send.

It puts the parts together: the core takes in, plans, commits and exports; the agent talks to the model in
between. It decides nothing that a part decides, and no write is ever open while a model is asked.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from chatproc import _core
from chatproc.errors import ChatprocError
from chatproc.given import MILLION, bytes_read, has_store, input_of, options_of, settings_of, wall_clock
from chatproc.holder import holder_now
from chatproc.results import ExportReport, Preview, Progress, RoundReport
from chatproc.threads import to_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from chatproc.agent.claims import Times
    from chatproc.agent.client import Endpoint
    from chatproc.agent.session import SessionResult
    from chatproc.config import Config
    from chatproc.given import Watch
    from chatproc.results import Json
    from chatproc.rules import Rules

_NOT_OF_THE_GROUP = {"refused", "quota", "redirect", "rate_limited", "network"}
"""Ends of a session for which no group is to blame: none of them waits longer for it."""


def run_round(config: Config, *, progress: Watch = None) -> RoundReport:
    """Export what waits, read new input, plan, let the model work on the next groups, export.

    Args:
        config: From `load_config`.
        progress: Told how far the round is, from the thread that runs it.

    Returns:
        What was done; its `exit_code` is that of `chatproc once`. A group that failed stays pending and is in
        the report with its reason.

    Raises:
        StateLockedError: Another round is at work on this store.
        CredentialError: Groups are pending and no key is found; export and ingest are done by then.
        ConfigError: The rules are missing, or groups are pending and no model is configured.
        OSError: A file cannot be read or written.

    Example:
        >>> run_round(load_config("config/processor.toml")).exit_code  # doctest: +SKIP
        0
    """
    return asyncio.run(arun_round(config, progress=progress))


async def arun_round(config: Config, *, progress: Watch = None) -> RoundReport:
    """`run_round` for callers that have an event loop; cancelling it leaves groups in hand pending.

    Args:
        config: From `load_config`.
        progress: As in `run_round`.
    """
    from chatproc.rules import read_rules

    read_rules(config.rules.file)  # without rules no store is made
    with Writer(config) as writer:
        return await round_with(writer, config, progress=progress)


async def round_with(
    writer: Writer, config: Config, *, patient: bool = False, progress: Watch = None
) -> RoundReport:
    """`arun_round` over a store that is open for rounds already, as in `run`.

    Args:
        writer: Holds the store of this configuration.
        config: From `load_config`.
        patient: Leave what is still talked in, and what failed and is tried again later, to another round.
        progress: As in `run_round`.
    """
    from chatproc.rules import read_rules

    rules = read_rules(config.rules.file)
    settings = settings_of(config, rules)
    with writer.noted() as finish:
        begin = time.time()
        first = await to_end(writer.export, config)
        ingest = await writer.ingest(config, progress)
        plan = await asyncio.to_thread(writer.store.plan, _options_now(writer, config, patient), settings)
        done = await _work(config, rules, writer, plan, progress)
        if plan["groups"]:
            options = _options_now(writer, config, patient)
            plan = await asyncio.to_thread(writer.store.plan, options, settings)
        export = await to_end(writer.export, config)
        report = RoundReport(
            ingest=ingest,
            round={
                "groups": done.groups,
                "pending": plan["pending"],
                "waiting": plan["waiting"],
                "put_off": plan["put_off"],
                "retry_at": plan["retry_at"],
                "oversized": plan["oversized"],
                "usage": done.usage(config),
                "seconds": round(time.time() - begin, 3),
            },
            export=ExportReport(
                files=first.files + export.files,
                events=first.events + export.events,
                waiting=export.waiting,
                error=export.error,
            ).to_dict(),
        )
        finish(_summary(report))
        return report


def _options_now(writer: Writer, config: Config, patient: bool) -> Json:  # noqa: FBT001 - asked for by name above
    options = options_of(config)
    if not patient:
        return options
    now, settle = writer.now(), round(config.schedule.settle_seconds * 1000)
    return options | {"back_off": True, "now": now, "quiet_before": now - settle if settle else None}


class Writer:
    """The store, held for rounds: opened with its lock, closed with it.

    Args:
        config: Says which store. What a round does with it may follow another configuration.
        now: The wall clock, milliseconds since 1970.

    Raises:
        StateLockedError: Another process writes rounds into this store.
    """

    def __init__(self, config: Config, *, now: Callable[[], int] | None = None) -> None:
        """Open nothing yet."""
        self.now = now or wall_clock
        self._state = config.storage.state
        self._zone = config.rules.timezone

    def __enter__(self) -> Self:
        """Take the lock."""
        self.holder = holder_now(self._zone)
        self.store = _core.Round(self._state, self.holder, self.now())
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of it."""
        self.store.close()

    @contextmanager
    def noted(self) -> Iterator[Callable[[Json], None]]:
        """A round in the store's list of rounds, with its end, however it ends."""
        self.store.begin(self.now())
        try:
            yield lambda summary: self.store.finish(self.now(), summary)
        except BaseException as error:
            what = error.what if isinstance(error, ChatprocError) else type(error).__name__
            what = "stopped by a person" if isinstance(error, asyncio.CancelledError) else what
            self.store.finish(self.now(), {"error": what})
            raise

    async def ingest(self, config: Config, progress: Watch) -> Json:
        """Read what is new. Cancelled, it ends with the slice in hand: a thread is told, not stopped.

        Args:
            config: Says where batches lie.
            progress: Told how far the reading is.
        """
        stopped = threading.Event()
        tell = bytes_read(progress, stopped)
        return await to_end(self.store.ingest, input_of(config), tell, stop=stopped.set)

    def export(self, config: Config) -> ExportReport:
        """Publish what waits. A disk that refuses costs nothing: the next round publishes it first.

        Args:
            config: Says where to.
        """
        error = None
        done = {"files": 0, "events": 0}
        try:
            done = self.store.export(config.storage.output)
        except OSError as failure:
            error = str(failure)
        waiting = _core.status(self._state)["outbox"]
        return ExportReport(files=done["files"], events=done["events"], waiting=waiting, error=error)


@dataclass
class _Done:
    """What became of the round's groups, in the plan's order."""

    groups: list[Json] = field(default_factory=list)
    sessions: list[SessionResult] = field(default_factory=list)

    def usage(self, config: Config) -> Json:
        """Tokens of all sessions; a count that any of them lacks is unknown, never zero."""
        names = ("requests", "input_tokens", "output_tokens", "cached_tokens")
        usage: Json = {}
        for name in names:
            counts = [session.usage[name] for session in self.sessions]
            known = [count for count in counts if count is not None]
            usage[name] = sum(known) if len(known) == len(counts) else None
        usage["price"] = _price(config, usage)
        return usage


async def _work(config: Config, rules: Rules, writer: Writer, plan: Json, progress: Watch) -> _Done:
    """Run the plan's batches: at once where they share no conversation, in order where they do."""
    from chatproc.config import require_model

    done = _Done(groups=[_outcome(view) for view in plan["groups"]])
    if not plan["groups"]:
        return done
    require_model(config)
    with ExitStack() as stack:
        endpoint = _endpoint(config, stack)
        endpoint.api_key()
        worker = _Worker(config, rules, writer, endpoint, done, progress)
        places: dict[str, list[asyncio.Task[None]]] = {}
        room = asyncio.Semaphore(config.agent.concurrency)
        async with _first_error(), asyncio.TaskGroup() as group:
            for batch in plan["batches"]:
                names = [repr(worker.outcomes[group_id]["conversation"]) for group_id in batch]
                before = [task for name in names for task in places.get(name, [])]
                task = group.create_task(worker.batch(batch, before, room))
                for name in names:
                    places.setdefault(name, []).append(task)
    return done


@asynccontextmanager
async def _first_error() -> AsyncIterator[None]:
    """What stopped a round is one error for its caller, whichever session met it."""
    try:
        yield
    except BaseExceptionGroup as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


class _Worker:
    """Takes batches to the model and their results to the store."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts it puts together
        self,
        config: Config,
        rules: Rules,
        writer: Writer,
        endpoint: Endpoint,
        done: _Done,
        progress: Watch,
    ) -> None:
        from chatproc.attachments import Extracts

        self.config = config
        self.rules = rules
        self.store = writer.store
        self.now = writer.now
        self.endpoint = endpoint
        self.done = done
        self.progress = progress
        self.outcomes = {outcome["id"]: outcome for outcome in done.groups}
        self.refusal: str | None = None
        self.extracts = Extracts()

    async def batch(
        self, groups: list[str], before: Sequence[asyncio.Task[None]], room: asyncio.Semaphore
    ) -> None:
        """One session, once the earlier groups of its conversations are through."""
        if before:
            await asyncio.wait(before)
        async with room:
            if self.refusal is not None:
                # A refused key is refused for every group: they stay pending without being asked for.
                for group_id in groups:
                    self.outcomes[group_id].update(outcome="left", reason=self.refusal)
                return
            batch = await asyncio.to_thread(self.store.document, groups)
            try:
                result = await self._session(batch)
            except (ChatprocError, OSError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever an answer broke costs its own batch alone
                await to_end(self._break, groups, error)
                return
            self.done.sessions.append(result)
            if result.error is not None and result.error["kind"] == "refused":
                self.refusal = result.error["reason"]
            await to_end(self._settle, result)
            self._tell()

    async def _session(self, batch: Json) -> SessionResult:
        from chatproc.agent.claims import Judge
        from chatproc.agent.session import run_session
        from chatproc.attachments import Archive, Limits

        config = self.config
        limits = Limits(**config.attachments.model_dump(), vision=config.agent.vision)
        with Archive(config.input.archive_root, limits, extracts=self.extracts) as archive:
            return await run_session(
                batch,
                agent=config.agent,
                endpoint=self.endpoint,
                rules=self.rules.text,
                timezone=config.rules.timezone,
                archive=archive,
                search=self._search,
                judge=Judge(time=self._judge_time, near=self._near),
            )

    def _search(self, query: dict[str, Any]) -> Json:
        return _core.search(self.config.storage.state, query, self.config.rules.timezone)

    def _judge_time(self, original: str | None, told: list[Json], given: Times) -> Json:
        return _core.judge_time(original, told, given, self.config.rules.timezone)

    def _near(self, task: Json) -> list[Json]:
        return _core.near(self.config.storage.state, task, self.config.rules.timezone)

    def _settle(self, result: SessionResult) -> None:
        """Commit the accepted conversations, at once; the others stay pending with their reason."""
        accepted = []
        for conversation in result.conversations:
            if conversation["outcome"] == "accepted":
                accepted.append((conversation["group"], conversation))
            else:
                away = result.error is not None and result.error["kind"] in _NOT_OF_THE_GROUP
                self._fail(self.outcomes[conversation["group"]], conversation["reason"], counts=not away)
        ends = self.store.commit(accepted, result.usage, self.now()) if accepted else []
        for (group_id, conversation), end in zip(accepted, ends, strict=True):
            outcome = self.outcomes[group_id]
            match end["outcome"]:
                case "done":
                    tasks = [task["task_id"] for task in end["tasks"]]
                    outcome.update(outcome="done", reason=conversation["no_task_reason"], tasks=tasks)
                case "conflict":
                    outcome.update(outcome="conflict", reason=f"{end['reason']}; the next round asks again")
                case _:
                    self._fail(outcome, end["reason"])

    def _break(self, groups: list[str], error: Exception) -> None:
        """A session that met a fault of ours: its groups stay pending, the others go on."""
        for group_id in groups:
            reason = f"the session broke ({type(error).__name__}); this is a fault of chatproc"
            self._fail(self.outcomes[group_id], reason)

    def _fail(self, outcome: Json, reason: str, *, counts: bool = True) -> None:
        self.store.fail(outcome["id"], reason, self.now(), counts)
        outcome.update(outcome="failed", reason=reason)

    def _tell(self) -> None:
        if self.progress is None:
            return
        usage = self.done.usage(self.config)
        known = (usage["input_tokens"], usage["output_tokens"])
        groups = self.done.groups
        self.progress(
            Progress(
                stage="groups",
                done=sum(group["outcome"] != "left" for group in groups),
                total=len(groups),
                unit="groups",
                tokens=None if None in known else sum(known),
                tasks=sum(len(group["tasks"]) for group in groups),
                price=usage["price"],
            )
        )


def _outcome(group: Json) -> Json:
    """A group of the report before anything became of it."""
    return {
        "id": group["id"],
        "conversation": group["conversation"],
        "segments": group["segments"],
        "messages": group["messages"],
        "chars": group["chars"],
        "outcome": "left",
        "reason": None,
        "tasks": [],
    }


def _endpoint(config: Config, stack: ExitStack) -> Endpoint:
    """Whom to ask; a local model is served until the stack closes."""
    from chatproc.agent.client import Endpoint
    from chatproc.credentials import read_api_key

    if config.agent.is_local:
        from chatproc.agent import local

        threads, context = config.agent.local_threads, config.agent.context_window
        base_url = stack.enter_context(
            local.serve(config.agent.local_model, threads=threads, context=context)
        )
        return Endpoint(base_url=base_url, model=config.agent.model or "local", api_key=lambda: None)
    return Endpoint(
        base_url=config.agent.base_url,
        model=config.agent.model,
        api_key=lambda: read_api_key(config),
    )


def _summary(report: RoundReport) -> Json:
    """The report as `status` shows it: counts, no lists."""
    groups = report.round["groups"]
    outcomes = [group["outcome"] for group in groups]
    return {
        "ingest": {**report.ingest, "unreadable": len(report.ingest["unreadable"])},
        "groups": {name: outcomes.count(name) for name in ("done", "failed", "conflict", "left")},
        "tasks": sum(len(group["tasks"]) for group in groups),
        "pending": report.round["pending"],
        "oversized": len(report.round["oversized"]),
        "usage": report.round["usage"],
        "export": report.export,
    }


def export(config: Config, *, progress: Watch = None) -> ExportReport:
    """Publish the task events that wait in the outbox. Without a store there are none.

    Args:
        config: From `load_config`.
        progress: Told when it is done.

    Raises:
        StateLockedError: A round is at work; it exports by itself.
    """
    if not has_store(config):
        return ExportReport(files=0, events=0, waiting=0)
    with Writer(config) as writer:
        report = writer.export(config)
    if progress is not None:
        progress(Progress(stage="export", done=report.events, total=report.events, unit="events"))
    return report


def preview(  # noqa: PLR0913 - what a person may want to see
    config: Config,
    *,
    limit: int = 5,
    group: str | None = None,
    full: bool = False,
    rules: str | None = None,
    progress: Watch = None,
) -> Preview:
    """Show what the next round would send: reads new input in memory, writes nothing, asks no one.

    Args:
        config: From `load_config`.
        limit: How many groups to show, in the order in which rounds take them.
        group: Only the group with this id.
        full: Give the exact request documents too.
        rules: What the rules file is imagined to say; `None`: what it says.
        progress: Told how far the reading is.

    Raises:
        ConfigError: The rules are missing, or cannot be rules.
        ChatprocError: No pending group has that id.

    Example:
        >>> preview(config, limit=1).groups[0]["chars"]  # doctest: +SKIP
        1893
    """
    from chatproc.agent.prompt import system_text
    from chatproc.rules import read_rules, rules_of

    file = config.rules.file
    used = read_rules(file) if rules is None else rules_of(file, rules.encode())
    found = _core.preview(
        config.storage.state,
        input_of(config),
        options_of(config),
        settings_of(config, used),
        limit,
        group,
        bytes_read(progress),
    )
    system = _estimated_tokens(system_text(used.text, config.agent.tools))
    tokens = sum(_estimated_tokens(document) + system for document in found["documents"])
    for view in found["groups"]:
        view["estimated_tokens"] = round(tokens * view["chars"] / found["document_chars"])
        view["estimated_price"] = _price(config, {"input_tokens": view["estimated_tokens"]})
    return Preview(
        ingest=found["ingest"],
        groups=found["groups"],
        pending=found["pending"],
        oversized=found["oversized"],
        documents=found["documents"] if full else [],
    )


def _estimated_tokens(text: str) -> int:
    """A guess on the high side: four ASCII characters, or one other, are a token."""
    wide = sum(character > "\x7f" for character in text)
    return wide + (len(text) - wide) // 4


def _price(config: Config, usage: Json) -> float | None:
    """What tokens cost by `agent.prices`; `None` where a price or a count is not known."""
    prices = config.agent.prices
    given, taken = usage.get("input_tokens"), usage.get("output_tokens", 0)
    if prices.input is None or given is None or taken is None or (taken and prices.output is None):
        return None
    cached = usage.get("cached_tokens") or 0
    cached_price = prices.input if prices.cached is None else prices.cached
    spent: float = (given - cached) * prices.input + cached * cached_price + taken * (prices.output or 0)
    return round(spent / MILLION, 6)
