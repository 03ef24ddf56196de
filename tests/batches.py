"""Small batches as the core builds them, and one call that runs a session over one."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from chatproc import _core
from chatproc.agent.claims import Judge
from chatproc.agent.client import Endpoint
from chatproc.agent.session import SessionResult, run_session
from chatproc.attachments import Archive, Extracts, Limits
from chatproc.config import AgentConfig

if TYPE_CHECKING:
    from pathlib import Path

    from chatproc.attachments.isolation import Reader
    from tests.sse import ModelServer

RULES = "P0: today. Everything else is P3."
KEY = "sk-very-secret-key"


def batch_of(
    messages: dict[str, list[str]] | None = None,
    *,
    history: tuple[str, ...] = (),
    attachments: dict[str, dict[str, Any]] | None = None,
    tasks: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A batch from texts by conversation; messages are m1, m2 … in order.

    Args:
        messages: Texts by conversation.
        history: Messages that are no subjects.
        attachments: By ref, with `message`, `name`, `type` and what else the core tells.
        tasks: By ref, with `task_id` and `revision`.
    """
    texts = messages or {"c1": ["周五前交表"]}
    batch: dict[str, Any] = {"batch": 1, "conversations": [], "messages": {}, "attachments": {}, "tasks": {}}
    document: dict[str, Any] = {
        "timezone": "Asia/Shanghai",
        "conversations": [],
        "attachments": [],
        "tasks": [],
    }
    number = 0
    for ref, listed in texts.items():
        refs = []
        shown = []
        for text in listed:
            number += 1
            message = f"m{number}"
            refs.append(message)
            entry = {"conversation": ref, "key": f"qq:{message}", "subject": message not in history}
            batch["messages"][message] = {**entry, "text": text, "sent_at": 1_782_871_200.0 + number}
            shown.append({"id": message, "time": f"2026-07-01T10:{number:02d}:00+08:00", "text": text})
        batch["conversations"].append(
            {
                "ref": ref,
                "group": f"g_{ref}",
                "platform": "qq",
                "messages": refs,
                "related": list(tasks or ()),
            }
        )
        segments = [{"continuity": "proven", "messages": shown}]
        document["conversations"].append({"id": ref, "platform": "qq", "segments": segments})
    for ref, attachment in (attachments or {}).items():
        message = batch["messages"][attachment["message"]]
        whole = {"id": f"a-{ref}", "mime": None, "size": 1, "sha256": None, "available": True}
        batch["attachments"][ref] = {**whole, "conversation": message["conversation"], **attachment}
        document["attachments"].append({"ref": ref, "name": attachment["name"], "type": attachment["type"]})
    for ref, task in (tasks or {}).items():
        batch["tasks"][ref] = {"conversations": list(texts), "view": {}, **task}
        document["tasks"].append({"ref": ref, "title": task.get("title", "earlier")})
    return {**batch, "document": json.dumps(document, ensure_ascii=False)}


class Waits:
    """Stands in for sleeping between tries, and keeps how long it would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def no_search(query: dict[str, Any]) -> dict[str, Any]:
    """A store without tasks."""
    del query
    return {"total": 0, "tasks": []}


def judge_of(timezone: str = "Asia/Shanghai", tasks: Any = ()) -> Judge:  # noqa: ANN401 - stored tasks
    """The core's judgement of times, over a store whose open tasks are these."""
    return Judge(
        time=lambda original, told, given: _core.judge_time(original, told, given, timezone),
        near=lambda task: [it for it in tasks if it["task_id"] not in task["except"]],
    )


JUDGE = judge_of()


async def session(  # noqa: PLR0913 - keywords with defaults
    server: ModelServer,
    batch: dict[str, Any] | None = None,
    *,
    archive_root: Path | None = None,
    limits: Limits | None = None,
    extracts: Extracts | None = None,
    reader: Reader | None = None,
    search: Any = no_search,  # noqa: ANN401 - a stand-in
    judge: Judge = JUDGE,
    waits: Waits | None = None,
    key: Any = KEY,  # noqa: ANN401 - a key, none, or a function that gives one
    **agent: Any,  # noqa: ANN401 - keys of [agent]
) -> SessionResult:
    """One session with the given keys of `[agent]`."""
    with Archive(archive_root, limits, extracts=extracts, reader=reader) as archive:
        return await run_session(
            batch or batch_of(),
            agent=AgentConfig(
                base_url=server.base_url, model="stand-in", **{"timeout_seconds": 5.0, **agent}
            ),
            endpoint=Endpoint(server.base_url, "stand-in", key if callable(key) else lambda: key),
            rules=RULES,
            timezone="Asia/Shanghai",
            archive=archive,
            search=search,
            judge=judge,
            sleep=waits or Waits(),
        )


def run(server: ModelServer, batch: dict[str, Any] | None = None, **more: Any) -> SessionResult:  # noqa: ANN401
    """`session`, to its end."""
    return asyncio.run(session(server, batch, **more))


def outcomes(result: SessionResult) -> dict[str, str]:
    """How each conversation ended."""
    return {conversation["ref"]: conversation["outcome"] for conversation in result.conversations}
