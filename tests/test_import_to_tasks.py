"""From an export to tasks, for every platform, with the very commands that the READMEs show."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.importers import FORMATS
from tests import sse
from tests.exports import SAMPLES
from tests.project import ROOT, Project

if TYPE_CHECKING:
    from collections.abc import Callable

# For each command: a sample, how a message in it begins (read by hand), the exit code of the import.
EXPORTS = {
    "qq-qce group.json": ("qq/qce_v5_single.json", "周五前交表", 0),
    "qq-txt group.txt": ("qq/pcqq_txt_utf8_bom.txt", "@乙 周五前", 3),
    "weflow chat.json": ("wechat/weflow.json", "周五前交表", 3),
    "memotrace messages.csv": ("wechat/memotrace_full_gbk.csv", "周五交，\n带附件", 0),
    "chatlog chat.json": ("wechat/chatlog_api.json", "@乙\u2005 周五前把报表发我", 0),
    "telegram result.json": ("telegram/chatminer_single_export.json", "Minimal Message", 0),
    "whatsapp chat.txt": ("whatsapp/chatminer_test_ddmmyy_24hrs.txt", "Lorem ipsum : dolor sit amet.", 0),
    "line chat.txt": ("line/zh_tw.txt", "第一行\n09:06\t假\t這行在引號內", 3),
    "slack export.zip": ("slack/slack-export-viewer_testarchive.zip", "Need that done before it can b", 0),
    "discord channel.json": ("discord/zulip_general_part3.json", "random link: chat.zulip.org", 0),
    "feishu messages.json": ("feishu/im_v1_messages.json", "@乙 @所有人 周五前交表", 3),
    "matrix export.json": ("matrix/element_export_shape.json", "周四交报告", 0),
    "mbox Inbox": ("mbox/thread.mbox", "实验报告一\n\n实验报告一请在 7 月 10 日", 0),
    "eml mails/": ("email/legacy_000.eml", "Test message from Microsoft Outlook 00", 0),
    "chatlab chat.jsonl": ("chatlab/cipher_talk_string_ts.jsonl", "字符串时间", 0),
}


def commands(readme: str) -> list[str]:
    """The imports of the READMEs' table: format and file."""
    rows = [line for line in (ROOT / readme).read_text("utf-8").splitlines() if line.startswith("| ")]
    return [found for row in rows for found in re.findall(r"`chatproc import (\S+ [^`]+)`", row)]


def ready(root: Path, server: sse.ModelServer) -> Project:
    """A project as `init` makes it, with a model and `grouping` written as the READMEs say."""
    maker = Project(root)
    shutil.rmtree(maker.root / "config")
    shutil.rmtree(maker.rules.parent)
    maker.call("init", ".")
    file = maker.root / "config/processor.toml"
    text = file.read_text("utf-8")
    for line in (f'base_url = "{server.base_url}"', 'model = "stand-in"'):
        text, count = re.subn(rf'^{line.split()[0]} = ""$', line, text, flags=re.MULTILINE)
        assert count == 1
    for section, line in (
        ("agent", 'api_key_env = ""\napi_key_file = ""'),
        ("context", 'grouping = "session"'),
    ):
        assert text.count(f"\n[{section}]\n") == 1
        text = text.replace(f"\n[{section}]\n", f"\n[{section}]\n{line}\n")
    file.write_text(text, "utf-8")
    return maker


def test_both_readmes_show_the_same_import_for_every_format() -> None:
    english, chinese = map(commands, ("README.md", "README.zh-CN.md"))
    assert english == chinese == list(EXPORTS)
    assert {command.split()[0] for command in english} == set(FORMATS)


def tasks_of(beginning: str) -> Callable[[dict[str, Any]], sse.Answer]:
    """A stand-in model that makes a task of each new message that begins so, and nothing of the others."""

    def answer(request: dict[str, Any]) -> sse.Answer:
        found = {
            conversation["id"]: [
                sse.new_task("交", [message["id"]])
                for segment in conversation["segments"]
                for message in segment["messages"]
                if message.get("text", "").startswith(beginning) and not message.get("history")
            ]
            for conversation in sse.document_of(request)["conversations"]
        }
        return sse.submits(found)

    return answer


@pytest.mark.parametrize("command", EXPORTS)
def test_three_commands_lead_from_an_export_to_tasks_on_its_messages(command: str, tmp_path: Path) -> None:
    sample, beginning, code = EXPORTS[command]
    form, name = shlex.split(command)
    with sse.ModelServer(tasks_of(beginning)) as server:
        project = ready(tmp_path / "my-tasks", server)
        export = project.root / name
        if name.endswith("/"):
            export.mkdir()
            export /= "1.eml"
        shutil.copy(SAMPLES / sample, export)
        report = project.document("import", form, name, code=code)
        worked = project.document("once")
    batches = [Path(file).read_text("utf-8").splitlines() for file in report["files"]]
    events = [json.loads(line) for lines in batches for line in lines]
    meant = {event["message_key"] for event in events if event["text"].startswith(beginning)}
    assert len(meant) == 1
    assert worked["ingest"]["accepted"] == report["messages"] == len(events)
    assert (worked["ingest"]["quarantined"], worked["round"]["oversized"]) == (0, [])
    # What was exported names the imported message and says its words.
    published = [json.loads(line) for file in todos(project) for line in file.read_text("utf-8").splitlines()]
    sources = [source for event in published for source in event["task"]["sources"]]
    assert {source["message_key"] for source in sources} == meant
    shown = project.document("tasks")["tasks"]
    assert [task["task_id"] for task in shown] == [event["task_id"] for event in published]


def todos(project: Project) -> list[Path]:
    return sorted((project.root / "data/todos").glob("*.jsonl"))
