"""One session: a batch goes to the model through Pydantic AI's loop, each conversation comes back ended.

It opens no store and writes nothing. Whatever happens, each conversation ends as accepted or as failed with a
reason; nothing is ever invented for a model that gave nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from pydantic_ai import Agent, ModelRetry, UsageLimits
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded

from chatproc.agent.client import ChatClient, ChatModel, Endpoint, Sleep
from chatproc.agent.prompt import system_text
from chatproc.agent.record import SessionRecord
from chatproc.agent.tools import Search, SessionTools
from chatproc.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chatproc.agent.claims import Judge
    from chatproc.attachments import Archive
    from chatproc.config import AgentConfig

_REMINDERS = 2
_REMINDER = (
    "That was text outside a tool call: nobody reads it. "
    "Go on with a tool call; hand in the result with submit_tasks."
)


@dataclass(frozen=True, slots=True)
class SessionResult:
    """What became of a batch.

    Args:
        conversations: Per conversation, in the batch's order, its outcome as the core takes it: accepted with
            tasks and read receipts, or failed with one line of reason.
        usage: `requests`, `input_tokens`, `output_tokens`, `cached_tokens`; `None` is unknown.
        model: The model that was asked.
        error: What ended the session before its time, `{"kind", "reason", "hint"}`, or `None`. Kinds:
            `refused quota bad_request redirect context_overflow` (the endpoint will not),
            `rate_limited server network timeout protocol` (it did not, after all tries),
            `prose max_turns max_requests max_total_tokens max_session_seconds` (the session came to no end).
    """

    conversations: list[dict[str, Any]]
    usage: dict[str, int | None]
    model: str
    error: dict[str, str | None] | None

    def to_dict(self) -> dict[str, Any]:
        """The result as a JSON document."""
        return {
            "conversations": self.conversations,
            "usage": self.usage,
            "model": self.model,
            "error": self.error,
        }


async def run_session(  # noqa: PLR0913 - what a session needs, each by its name
    batch: Mapping[str, Any],
    *,
    agent: AgentConfig,
    endpoint: Endpoint,
    rules: str,
    timezone: str,
    archive: Archive,
    search: Search,
    judge: Judge,
    sleep: Sleep = asyncio.sleep,
) -> SessionResult:
    """Let the model read one batch.

    Args:
        batch: The batch as the core built it; its `document` is sent as it is.
        agent: The limits and the ways of the endpoint.
        endpoint: Whom to ask.
        rules: The user's rules, whole.
        timezone: `rules.timezone`.
        archive: Opens attachments.
        search: Searches the task store.
        judge: Knows what wordings of time mean, and which earlier tasks resemble a new one.
        sleep: Waits between tries of a request.

    Returns:
        An end for each conversation. A failing endpoint is a result too, with its `error`.

    Raises:
        CredentialError: From `endpoint.api_key`.
        ConfigError: Plain http to another machine without leave.
        asyncio.CancelledError: The caller gave up; the connection is closed.
    """
    record = SessionRecord(batch)
    tools = SessionTools(
        record,
        offered=agent.tools,
        timezone=ZoneInfo(timezone),
        archive=archive,
        search=search,
        judge=judge,
        attempts=agent.submit_attempts,
        tool_retries=agent.max_turns,
    )
    async with ChatClient(endpoint, agent, sleep) as client:
        error = None
        try:
            await _converse(batch["document"], system_text(rules, agent.tools), tools, client)
        except ModelError as end:
            error = end
        return SessionResult(
            conversations=[_end_of(ref, tools, error) for ref in record.conversations],
            usage=client.usage.to_dict(),
            model=endpoint.model,
            error=None if error is None else {"kind": error.kind, "reason": error.what, "hint": error.hint},
        )


async def _converse(document: str, system: str, tools: SessionTools, client: ChatClient) -> None:
    """Let the loop run until a submission ends it.

    Raises:
        ModelError: Something else ended it.
    """
    agent = client.agent
    reader: Agent[None, str] = Agent(
        ChatModel(client, tools),
        system_prompt=system,
        toolsets=[tools],
        deps_type=type(None),
        name="chatproc",
        retries=agent.max_turns,
    )
    reminders_left = _REMINDERS

    @reader.output_validator
    def remind(text: str) -> str:
        nonlocal reminders_left
        del text
        if not reminders_left:
            raise _ended("prose", "the model went on with text instead of a tool call")
        reminders_left -= 1
        raise ModelRetry(_REMINDER)

    limit = asyncio.timeout(agent.max_session_seconds or None)
    try:
        async with (
            limit,
            reader.iter(document, usage_limits=UsageLimits(request_limit=agent.max_turns)) as run,
        ):
            async for _ in run:
                if tools.ended:
                    return
    except UsageLimitExceeded:
        raise _ended("max_turns", f"no accepted submission after {agent.max_turns} replies") from None
    except UnexpectedModelBehavior:
        raise _ended("protocol", "the model called tools that there are not, again and again") from None
    except TimeoutError:
        if not limit.expired():
            raise
        raise _ended("max_session_seconds", f"no end after {agent.max_session_seconds:g} s") from None


def _ended(kind: str, what: str) -> ModelError:
    return ModelError(what, kind=kind)


def _end_of(ref: str, tools: SessionTools, error: ModelError | None) -> dict[str, Any]:
    """One conversation's end: the latest submission decides, whatever came after it."""
    verdict = tools.verdict
    if verdict is not None and ref in verdict.accepted:
        return verdict.accepted[ref]
    reasons = [] if error is None else [error.what]
    if verdict is not None:
        faults = verdict.refused.get(ref, ()) or (f"{ref}: not in the submission",)
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        reasons.append(f"not accepted: {faults[0]}{more}")
    return {
        "ref": ref,
        "group": tools.record.conversations[ref]["group"],
        "outcome": "failed",
        "reason": "; ".join(reasons),
    }
