"""The local model's server, and a session against a real, small model: structure is held, never wording."""

from __future__ import annotations

import asyncio
import json
import os
import re
import runpy
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatproc.agent import local, weights
from chatproc.errors import ConfigError, MissingFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import openai

SMALL: weights.Weights = runpy.run_path(str(Path(__file__).with_name("fetch_small_model.py")))["SMALL"]
KEPT_AT = weights.folder()
TITLE = "把实验报告（纸质版）交给学习委员"


# --- the file's own template


def gguf(keys: dict[str, tuple[int, bytes]], *, version: int = 3) -> bytes:
    head = struct.pack("<4sIQQ", b"GGUF", version, 0, len(keys))
    return head + b"".join(
        text(name.encode()) + struct.pack("<I", kind) + raw for name, (kind, raw) in keys.items()
    )


def text(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


BEFORE_THE_TEMPLATE = {
    "general.architecture": (8, text(b"qwen2")),
    "qwen2.context_length": (4, struct.pack("<I", 32768)),
    "tokenizer.ggml.tokens": (9, struct.pack("<IQ", 8, 2) + text(b"a") + text("字".encode())),
    "tokenizer.ggml.token_type": (9, struct.pack("<IQ", 5, 2) + struct.pack("<ii", 1, 3)),
    "tokenizer.ggml.add_bos_token": (7, b"\0"),
}
TEMPLATE = "{{ '<tool_call>' }}模板"
WITH_TEMPLATE = gguf(BEFORE_THE_TEMPLATE | {"tokenizer.chat_template": (8, text(TEMPLATE.encode()))})


def test_the_chat_template_is_read_past_values_of_every_shape(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(WITH_TEMPLATE)
    assert local.chat_template(file) == TEMPLATE
    file.write_bytes(gguf(BEFORE_THE_TEMPLATE))
    assert local.chat_template(file) is None


def template_or_plain_error(file: Path) -> str:
    """The template; empty where there is none, or where the file is refused with the one error allowed."""
    try:
        return local.chat_template(file) or ""
    except ConfigError as refused:
        where = str(refused.where)
    assert str(file) in where
    return ""


@given(
    st.one_of(
        st.binary(max_size=200), st.integers(0, len(WITH_TEMPLATE) - 1).map(lambda n: WITH_TEMPLATE[:n])
    )
)
def test_a_damaged_file_ends_in_one_plain_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "damaged.gguf"
    file.write_bytes(content)
    assert template_or_plain_error(file) == ""


@given(st.integers(0, len(WITH_TEMPLATE) - 1), st.integers(0, 255))
def test_a_changed_byte_reads_as_something_or_ends_in_one_plain_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "changed.gguf"
    file.write_bytes(WITH_TEMPLATE[:place] + bytes([byte]) + WITH_TEMPLATE[place + 1 :])
    assert len(template_or_plain_error(file)) <= len(WITH_TEMPLATE)


# --- what is missing is said with its remedy


def test_without_a_fetched_model_the_error_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingFileError) as caught, local.serve():
        pytest.fail("nothing can be served")
    assert caught.value.hint == "chatproc model fetch"


def test_without_the_extra_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(WITH_TEMPLATE)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError) as caught, local.serve(file):
        pytest.fail("nothing can be served")
    assert caught.value.hint == "pip install 'chatproc[local]'"


def test_a_file_without_a_model_in_it_is_refused_and_nothing_keeps_running(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    file = tmp_path / "model.gguf"
    file.write_bytes(WITH_TEMPLATE)
    with pytest.raises(ConfigError, match="cannot be loaded"), local.serve(file):
        pytest.fail("nothing can be served")
    assert local._served == {}
    assert capfd.readouterr() == ("", "")


# --- the small model


@pytest.fixture(scope="module")
def small_model() -> Path:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    path = KEPT_AT / SMALL.file
    if not path.exists():
        pytest.skip(f"{SMALL.name} is not at {path}: python tests/fetch_small_model.py brings it")
    return path


@pytest.fixture(scope="module")
def base_url(small_model: Path) -> Iterator[str]:
    with local.serve(small_model, context=8192) as url:
        yield url


@pytest.fixture(scope="module")
def client(base_url: str) -> Iterator[openai.OpenAI]:
    import openai

    with openai.OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=500) as opened:
        yield opened


def submit_tool(title: dict[str, Any], sources: dict[str, Any]) -> dict[str, Any]:
    task = {
        "type": "object",
        "properties": {"title": title, "sources": sources},
        "required": ["title", "sources"],
        "additionalProperties": False,
    }
    conversation = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "enum": ["c1"]},
            "tasks": {"type": "array", "items": task, "minItems": 1},
        },
        "required": ["id", "tasks"],
        "additionalProperties": False,
    }
    parameters = {
        "type": "object",
        "properties": {
            "conversations": {"type": "array", "items": conversation, "minItems": 1, "maxItems": 1}
        },
        "required": ["conversations"],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": "submit_tasks", "description": "Hand in.", "parameters": parameters},
    }


ANY_TITLE = {"type": "string"}
OWN_MESSAGES = {
    "type": "array",
    "items": {"type": "string", "enum": ["m1", "m2"]},
    "minItems": 1,
    "maxItems": 2,
}
PROMPT = [
    {"role": "system", "content": "从聊天中找出待办事项，用 submit_tasks 交回，注明来源消息。"},
    {"role": "user", "content": "m1 王老师：周五下午五点前交实验报告。m2 小李：收到。"},
]


def ask(client: Any, messages: list[Any], tool: dict[str, Any], **more: float) -> Any:  # noqa: ANN401
    settings = {"max_tokens": 600, "parallel_tool_calls": False, **more}
    return client.chat.completions.create(
        model="local", messages=messages, tools=[tool], tool_choice="required", stream=True, **settings
    )


def reply_to(
    client: openai.OpenAI, messages: list[Any], tool: dict[str, Any], **more: float
) -> tuple[str, str, list[str], str]:
    """The finish reason, the name of the only call, its argument fragments, its id."""
    finish, names, fragments, ident = "", [], [], ""
    for chunk in ask(client, messages, tool, **more):
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or []:
                names += [call.function.name] if call.function.name else []
                ident = call.id or ident
                fragments.append(call.function.arguments or "")
    assert len(names) <= 1
    return finish, "".join(names), fragments, ident


@pytest.mark.model
@pytest.mark.timeout(600)
class TestTheWire:
    def test_chinese_arguments_come_in_fragments_that_join_to_the_one_required_call(
        self, client: openai.OpenAI
    ) -> None:
        tool = submit_tool({"type": "string", "enum": [TITLE]}, {**OWN_MESSAGES, "minItems": 2})
        finish, name, fragments, ident = reply_to(client, PROMPT, tool)
        assert (finish, name) == ("tool_calls", "submit_tasks")
        assert ident
        assert len(fragments) > 5
        (conversation,) = json.loads("".join(fragments))["conversations"]
        assert conversation["id"] == "c1"
        assert all(task["title"] == TITLE and len(task["sources"]) == 2 for task in conversation["tasks"])

    def test_required_makes_a_call_where_nothing_in_the_chat_wants_one(self, client: openai.OpenAI) -> None:
        chat = [PROMPT[0], {"role": "user", "content": "m1 小李：哈哈。m2 小张：今天食堂的鸡腿真好吃。"}]
        finish, name, fragments, _ = reply_to(client, chat, submit_tool(ANY_TITLE, OWN_MESSAGES))
        assert (finish, name) == ("tool_calls", "submit_tasks")
        assert isinstance(json.loads("".join(fragments))["conversations"], list)

    def test_a_result_with_faults_is_answered_by_another_call(self, client: openai.OpenAI) -> None:
        tool = submit_tool(ANY_TITLE, OWN_MESSAGES)
        _, name, fragments, ident = reply_to(client, PROMPT, tool)
        call = {"id": ident, "type": "function", "function": {"name": name, "arguments": "".join(fragments)}}
        history = [
            *PROMPT,
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": ident, "content": "1. c1.tasks[0].sources: cite m1 only"},
        ]
        finish, name, fragments, second = reply_to(client, history, tool)
        assert (finish, name) == ("tool_calls", "submit_tasks")
        assert second != ident
        assert json.loads("".join(fragments))["conversations"][0]["tasks"]

    def test_an_answer_cut_by_its_limit_says_length_and_is_no_whole_call(self, client: openai.OpenAI) -> None:
        finish, _, fragments, _ = reply_to(
            client, PROMPT, submit_tool(ANY_TITLE, OWN_MESSAGES), max_tokens=12
        )
        assert finish == "length"
        with pytest.raises(json.JSONDecodeError):
            json.loads("".join(fragments))

    def test_a_request_that_was_given_up_leaves_the_server_to_the_next_one(
        self, client: openai.OpenAI
    ) -> None:
        # It fills the whole context: the next answer comes in time only when this one is really given up.
        endless = submit_tool({"type": "string", "minLength": 1_900}, OWN_MESSAGES)
        stream = ask(client, PROMPT, endless, max_tokens=8_000, temperature=1.5)
        for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.tool_calls:
                break
        stream.close()
        finish, name, _, _ = reply_to(
            client, PROMPT, submit_tool({"type": "string", "enum": [TITLE]}, OWN_MESSAGES)
        )
        assert (finish, name) == ("tool_calls", "submit_tasks")

    def test_a_page_in_a_browser_may_not_read_and_nobody_sees_the_prompts(self, base_url: str) -> None:
        import httpx2

        origin = base_url.removesuffix("/v1")
        assert urlsplit(origin).hostname == "127.0.0.1"
        answer = httpx2.get(f"{base_url}/models", headers={"Origin": "https://example.org"})
        assert answer.is_success
        assert answer.headers.get("Access-Control-Allow-Origin", "") == ""
        assert not httpx2.get(f"{origin}/slots").is_success


@pytest.mark.model
@pytest.mark.timeout(600)
class TestTheServer:
    def test_blocks_that_overlap_share_one_server_and_the_last_one_ends_it(self, small_model: Path) -> None:
        with local.serve(small_model, context=512) as first:
            with local.serve(small_model, context=512) as second:
                assert first == second
            assert accepts(first)
        assert not accepts(first)

    @pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
    def test_ctrl_c_in_the_middle_of_an_answer_ends_the_process_quietly(self, small_model: Path) -> None:
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", INTERRUPTED, str(small_model)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            text=True,
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == "answering\n"
            process.send_signal(signal.SIGINT)
            said, complained = process.communicate(timeout=120)
        assert process.returncode == 130
        assert (said, complained) == ("stopped\n", "")


INTERRUPTED = """
import pathlib, sys, openai
from chatproc.agent import local
try:
    with local.serve(pathlib.Path(sys.argv[1]), context=4096) as url:
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        chat = [{"role": "user", "content": "从一数到一百万。"}]
        told = False
        more = {"ignore_eos": True}
        # As a session does, the connection is closed on the way out: the server then gives up the answer.
        with client.chat.completions.create(model="m", messages=chat, stream=True, extra_body=more) as answer:
            for chunk in answer:
                if not told:
                    print("answering", flush=True)
                    told = True
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(130)
"""


def accepts(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=5):
            return True
    except OSError:
        return False


# --- the session


def batch() -> dict[str, Any]:
    chat = [
        ("王老师", "各位同学，实验报告请在周五下午五点前交给学习委员，纸质版。"),
        ("小李", "收到"),
        ("班长", "明天上午九点在三教201开班会，全体都要来。通知见附件。"),
    ]
    messages: list[dict[str, Any]] = [
        {"id": f"m{number}", "time": f"2026-07-01T10:0{number}:00+08:00", "sender": sender, "text": words}
        for number, (sender, words) in enumerate(chat, 1)
    ]
    messages[2]["attachments"] = ["f1"]
    file = {"ref": "f1", "name": "通知.txt", "type": "txt", "size": 20, "available": True}
    segment = {"continuity": "proven", "messages": messages}
    conversation = {"id": "c1", "platform": "qq", "segments": [segment]}
    document = {"timezone": "Asia/Shanghai", "conversations": [conversation], "attachments": [file]}
    return {
        "batch": 1,
        "document": json.dumps(document, ensure_ascii=False, separators=(",", ":")),
        "conversations": [
            {"ref": "c1", "group": "g_1", "platform": "qq", "messages": ["m1", "m2", "m3"], "related": []}
        ],
        "messages": {
            message["id"]: {
                "conversation": "c1",
                "key": f"qq:{message['id']}",
                "subject": True,
                "text": message["text"],
                "sent_at": 1_782_871_200.0,
            }
            for message in messages
        },
        "attachments": {
            "f1": {
                "conversation": "c1",
                "message": "m3",
                "id": "a1",
                "name": "通知.txt",
                "mime": None,
                "type": "txt",
                "size": 20,
                "sha256": None,
                "path": "通知.txt",
                "available": True,
            }
        },
        "tasks": {},
    }


def session(base_url: str, **settings: Any) -> Any:  # noqa: ANN401
    """The coroutine of one session of the batch."""
    from chatproc.agent.client import Endpoint
    from chatproc.agent.session import run_session
    from chatproc.attachments import Archive
    from chatproc.config import AgentConfig
    from tests.batches import JUDGE

    def nothing(_query: dict[str, Any]) -> dict[str, Any]:
        return {"total": 0, "tasks": []}

    return run_session(
        batch(),
        agent=AgentConfig.model_validate({"base_url": "local", "max_output_tokens": 900, **settings}),
        endpoint=Endpoint(base_url, "local", lambda: None),
        rules="只收需要大家去做的事。",
        timezone="Asia/Shanghai",
        archive=Archive(None),
        search=nothing,
        judge=JUDGE,
    )


@pytest.mark.model
@pytest.mark.timeout(900)
class TestTheSession:
    def test_a_session_ends_with_tasks_that_are_proven_or_with_a_reason(self, base_url: str) -> None:
        result = asyncio.run(session(base_url, max_turns=2, max_output_tokens=400))
        (end,) = result.conversations
        assert (end["ref"], end["group"]) == ("c1", "g_1")
        if end["outcome"] == "accepted":
            keys = {"qq:m1", "qq:m2", "qq:m3"}
            assert all(task["sources"] and keys.issuperset(task["sources"]) for task in end["tasks"])
            assert end["tasks"] or end["no_task_reason"]
        else:
            assert end["outcome"] == "failed"
            assert end["reason"]
        assert 1 <= result.usage["requests"] <= 2
        assert result.usage["input_tokens"] > 0

    def test_an_answer_that_never_fits_is_asked_again_and_then_given_up_with_its_reason(
        self, base_url: str
    ) -> None:
        result = asyncio.run(session(base_url, max_output_tokens=24, max_turns=2))
        assert result.usage["requests"] == 2
        assert result.error["kind"] == "max_turns"
        assert [end["outcome"] for end in result.conversations] == ["failed"]

    def test_a_session_that_is_cancelled_leaves_the_server_to_the_next_one(self, base_url: str) -> None:
        async def cancel_in_the_middle() -> None:
            running = asyncio.create_task(session(base_url))
            await asyncio.wait([running], timeout=2)
            running.cancel()
            await running

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(cancel_in_the_middle())
        result = asyncio.run(session(base_url, max_output_tokens=24, max_turns=1))
        assert result.usage["requests"] == 1

    def test_evidence_that_a_model_claims_beyond_what_it_was_shown_is_refused(
        self, client: openai.OpenAI
    ) -> None:
        from chatproc.agent.record import SessionRecord
        from chatproc.agent.submission import check_submission
        from tests.batches import JUDGE

        # The grammar makes the model cite a unit that it never read and a message that is not there.
        beyond = {
            "type": "array",
            "items": {"type": "string", "enum": ["m1", "f1:b1", "m99"]},
            "minItems": 5,
            "maxItems": 8,
        }
        task = submit_tool({"type": "string", "enum": [TITLE]}, beyond)
        _, _, fragments, _ = reply_to(client, PROMPT, task)
        submission = json.loads("".join(fragments))
        claimed = [source for task in submission["conversations"][0]["tasks"] for source in task["sources"]]
        verdict = check_submission(SessionRecord(batch()), ZoneInfo("Asia/Shanghai"), JUDGE, submission)
        assert verdict.accepted == {}
        for ref in {"f1:b1", "m99"}.intersection(claimed):
            assert any(re.search(rf"\.sources\[\d+\]: .*{ref}", fault) for fault in verdict.faults)
