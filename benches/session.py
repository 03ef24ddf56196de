"""A model session's own processor time a request, against a bare streaming client that sends the same bodies.

    python benches/session.py --sessions 100

The endpoint is a process of its own on loopback (`tests/sse.py`). Each session reads a document of 20,000
characters, searches once, and submits a task for each conversation; replies come in pieces of a token. The
bare client is `openai`'s, with nothing around it: it sends the bodies that the sessions sent and takes every
piece.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
SENTENCE = "请把实验报告在周五 17:00 前交到 302，联系王老师。"
CONVERSATIONS, MESSAGES = 3, 100
PIECE = 4


def events() -> list[bytes]:
    """A batch of chats."""
    lines = []
    for chat, number in itertools.product(range(CONVERSATIONS), range(MESSAGES)):
        key = f"qq:1:{chat}:{number}"
        event = {
            "schema": "chatproc.event/1",
            "event_id": key,
            "message_key": key,
            "revision": 0,
            "platform": "qq",
            "account_id": "1",
            "conversation": {"id": str(chat), "type": "group"},
            "sent_at": 1_782_871_200 + 60 * number,
            "sender": {"id": "10001", "name": "王老师"},
            "text": f"{number} {SENTENCE}",
            "sequence": {"index": number, "predecessor": f"qq:1:{chat}:{number - 1}" if number else None},
        }
        lines.append(json.dumps(event, ensure_ascii=False).encode() + b"\n")
    return lines


def answer(request: dict[str, Any]) -> Any:  # noqa: ANN401 - an `Answer` of tests/sse.py, which is no package
    """A search first, then a submission; each in pieces of a token."""
    import sse

    if not sse.results_of(request):
        name, arguments = "find_related_tasks", {"query": "报告", "status": ["open"]}
    else:
        tasks = {
            conversation["id"]: [
                sse.new_task(
                    f"交实验报告 {number}",
                    [message["id"]],
                    quotes=[{"ref": message["id"], "text": message["text"]}],
                )
                for number, message in enumerate(conversation["segments"][0]["messages"][:3])
            ]
            for conversation in sse.document_of(request)["conversations"]
        }
        name, arguments = "submit_tasks", sse.submission(tasks)
    text = json.dumps(arguments, ensure_ascii=False)
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    later = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces[1:]]
    return sse.stream(sse.call_delta(name, pieces[0]), *later, finish="tool_calls")


def serve() -> None:
    """The endpoint, until its input ends."""
    import sse

    with sse.ModelServer(answer) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


def batch(folder: Path) -> dict[str, Any]:
    """A batch as a round gives it to a session."""
    from chatproc import _core

    (folder / "batch.jsonl").write_bytes(b"".join(events()))
    now = time.time_ns() // 1_000_000 + 60_000
    store = _core.Round(folder / "state.db", "benchmark", now)
    paths = {
        "paths": [f"{folder}/*.jsonl"],
        "max_line_bytes": 1 << 24,
        "settle_ms": 0,
        "max_memory_mb": 512,
        "now": now,
    }
    store.ingest({**paths, "state": f"{folder}/state.db", "output": ""})
    settings = {
        "protocol": 1,
        "rules_file": "",
        "rules_sha256": "",
        "base_url": "",
        "model": "",
        "vision": False,
    }
    plan = store.plan({"max_groups_per_round": 1 << 40, "max_messages": MESSAGES}, settings)
    found: dict[str, Any] = store.document(plan["batches"][0])
    store.close()
    return found


async def sessions(base_url: str, folder: Path, number: int) -> tuple[float, list[dict[str, Any]]]:
    """Processor seconds of some sessions, and the bodies that one of them sends."""
    from chatproc import _core
    from chatproc.agent import client as wire
    from chatproc.agent.claims import Judge
    from chatproc.agent.session import run_session
    from chatproc.attachments import Archive, Limits
    from chatproc.config import AgentConfig

    agent = AgentConfig(base_url=base_url, model="stand-in")
    endpoint = wire.Endpoint(base_url=base_url, model="stand-in", api_key=lambda: None)
    state, zone = str(folder / "state.db"), "Asia/Shanghai"
    judge = Judge(
        time=lambda original, told, given: _core.judge_time(original, told, given, zone),
        near=lambda task: _core.near(state, task, zone),
    )
    document = batch(folder)
    bodies: list[dict[str, Any]] = []
    reply_to = wire.ChatClient.reply_to

    async def noted(client: wire.ChatClient, body: dict[str, Any]) -> wire.Reply:
        bodies.append(body)
        return await reply_to(client, body)

    async def one() -> None:
        with Archive(None, Limits()) as archive:
            result = await run_session(
                document, agent=agent, endpoint=endpoint, rules="", timezone=zone, archive=archive,
                search=lambda query: _core.search(state, query, zone), judge=judge,
            )  # fmt: skip
        if any(conversation["outcome"] != "accepted" for conversation in result.conversations):
            raise SystemExit(f"not accepted: {result.conversations[0]}")

    wire.ChatClient.reply_to = noted  # type: ignore[method-assign]
    await one()
    wire.ChatClient.reply_to = reply_to  # type: ignore[method-assign]
    began = time.process_time()
    for _ in range(number):
        await one()
    return time.process_time() - began, bodies


async def bare(base_url: str, bodies: list[dict[str, Any]], number: int) -> float:
    """Processor seconds of the same requests, with a client for each session's."""
    from openai import AsyncOpenAI

    async def once() -> None:
        async with AsyncOpenAI(api_key="none", base_url=base_url) as client:
            for body in bodies:
                async with await client.chat.completions.create(**body) as stream:
                    async for _ in stream:
                        pass

    await once()
    began = time.process_time()
    for _ in range(number):
        await once()
    return time.process_time() - began


def measured(number: int) -> tuple[float, float, int]:
    """Milliseconds of processor time a request: the session's, the bare client's; requests of a session."""
    endpoint = subprocess.Popen(
        [sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    if endpoint.stdout is None or endpoint.stdin is None:
        raise SystemExit("no pipe to the endpoint")
    base_url = endpoint.stdout.readline().strip()
    try:
        with tempfile.TemporaryDirectory() as folder:
            own, bodies = asyncio.run(sessions(base_url, Path(folder), number))
            other = asyncio.run(bare(base_url, bodies, number))
    finally:
        endpoint.stdin.close()
        endpoint.wait()
    requests = number * len(bodies)
    return 1000 * own / requests, 1000 * other / requests, len(bodies)


def main() -> None:
    """Measure, print."""
    if sys.argv[1:2] == ["serve"]:
        serve()
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    options = parser.parse_args()
    own, other, requests = measured(options.sessions)
    print(f"{requests} requests a session; processor time a request: session {own:.1f} ms, bare client")
    print(f"{other:.1f} ms, {own / other:.2f} times as much")


if __name__ == "__main__":
    os.environ.setdefault("NO_PROXY", "127.0.0.1")
    main()
