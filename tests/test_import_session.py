"""After the import of a whole chat, `grouping = "session"` cuts it into stretches that can be read."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from chatproc.core import plan_events
from chatproc.importers import import_chats
from tests import sse
from tests.project import PATIENCE, Project

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 20_000


def write_chat(path: Path, count: int) -> None:
    """A class chat of years: talk in bursts, nights and weekends between, long notices now and then."""
    chance = random.Random(7)  # noqa: S311 - the same chat again, not a secret
    seconds = 1_600_000_000
    with path.open("w", encoding="utf-8") as file:
        file.write('{"name": "班级群", "type": "private_supergroup", "id": 1, "messages": [')
        for number in range(1, count + 1):
            silence = chance.expovariate(1 / 90) if chance.random() < 0.98 else chance.expovariate(1 / 20_000)
            seconds += round(silence)
            length = 400 if chance.random() < 0.01 else chance.randint(1, 60)
            message = {
                "id": number,
                "type": "message",
                "date_unixtime": str(seconds),
                "from": f"Name {number % 40}",
                "from_id": f"user{number % 40}",
                "text": "交报告到302。" * (length // 8 + 1),
            }
            file.write((",\n" if number > 1 else "") + json.dumps(message, ensure_ascii=False))
        file.write("]}")


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_whole_chat_is_cut_into_stretches_that_can_be_read(count: int, tmp_path: Path) -> None:
    write_chat(tmp_path / "result.json", count)
    report = import_chats("telegram", [tmp_path / "result.json"], out=tmp_path / "out")
    assert (report.messages, report.not_understood) == (count, ())
    with open(report.files[0], "rb") as lines:  # noqa: PTH123 - as any reader of batches would
        plan = plan_events(lines, {"grouping": "session", "max_conversation_chars": BUDGET})
    assert plan.oversized == []
    assert sum(group["messages"] for group in plan.groups) == count
    assert max(group["chars"] for group in plan.groups) <= BUDGET
    # Stretches, not crumbs: cutting at silences leaves whole talks.
    assert count / len(plan.segments) > 5
    # The same chat without the setting is one stretch that nobody can read, and says so.
    with open(report.files[0], "rb") as lines:  # noqa: PTH123
        assert len(plan_events(lines, {"grouping": "sql"}).oversized) == 1


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_once_works_on_a_whole_chat_and_leaves_no_stretch_too_long(count: int, tmp_path: Path) -> None:
    write_chat(tmp_path / "result.json", count)
    with sse.ModelServer(sse.one_task_each) as server:
        project = Project(tmp_path / "project", server.base_url)
        project.configure(input={"paths": ["data/import/*.jsonl"]}, context={"grouping": "session"})
        project.configure(processing={"max_groups_per_round": 3})
        assert project.document("import", "telegram", "../result.json")["messages"] == count
        done = project.start("once", "--json").wait(20 * PATIENCE)
        assert done.code == 0, done
        worked = done.document
        assert (worked["ingest"]["accepted"], worked["ingest"]["quarantined"]) == (count, 0)
        assert worked["round"]["oversized"] == []
        assert {group["outcome"] for group in worked["round"]["groups"]} == {"done"}
        # The next round goes on where this one ended, and reads no message again.
        pending = worked["round"]["pending"]
        assert pending > 0
        again = project.once()
        assert again["ingest"]["lines"] == 0
        assert again["round"]["pending"] == pending - len(again["round"]["groups"])
    assert project.status()["oversized"] == []
    assert len(project.tasks()) == len(worked["round"]["groups"] + again["round"]["groups"])
