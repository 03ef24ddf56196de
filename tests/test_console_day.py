"""A person's day at the console, in a real Chromium: look, search, read, complete, edit rules, run a round.

With `CHATPROC_SCREENSHOTS=docs/images` the pictures of the documentation are made on the way.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from chatproc import get_task, list_tasks, load_config, status, task_history
from chatproc.console.server import ConsoleServer
from tests import sse
from tests.project import ROOT, Project, chat, event

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PICTURES = os.environ.get("CHATPROC_SCREENSHOTS")
ZONE = ZoneInfo("Asia/Shanghai")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")

FOUND = {
    "实验报告": {
        "title": "交实验报告到 302",
        "event": "计算机网络实验",
        "priority": "P1",
        "priority_reason": "影响成绩",
        "people": [{"name": "王老师", "role": "收报告"}],
        "location": "302",
        "original": "昨天 17:00 前",
    },
    "确认选课": {
        "title": "在教务系统确认选课",
        "event": "选课确认",
        "priority": "P0",
        "original": "今天",
    },
    "组会": {
        "title": "参加组会并准备进度汇报",
        "event": "课题组组会",
        "priority": "P2",
        "location": "A401",
        "original": "后天下午三点",
    },
    "投稿模板": {"title": "按模板修改论文格式", "event": "论文投稿", "priority": "P3"},
    "体检": {"title": "预约年度体检", "event": "年度体检", "priority": "P3"},
}


def model(request: dict[str, Any]) -> sse.Answer:
    """A task of each message that has one of the words; reads attachments first."""
    document = sse.document_of(request)
    if document["attachments"] and not sse.results_of(request):
        return sse.call("read_attachment", {"ref": "f1"})
    tasks: dict[str, list[dict[str, Any]]] = {}
    for conversation in document["conversations"]:
        known = [task["ref"] for task in document["tasks"] if task["ref"] in conversation["related_tasks"]]
        tasks[conversation["id"]] = [
            _task(message, found, known)
            for segment in conversation["segments"]
            for message in segment["messages"]
            for word, found in FOUND.items()
            if word in message.get("text", "")
        ]
    return sse.submits(tasks)


def _task(message: dict[str, Any], found: dict[str, Any], known: list[str]) -> dict[str, Any]:
    original = found.get("original")
    sources, quotes = [message["id"]], [{"ref": message["id"], "text": original or message["text"][:12]}]
    if message.get("attachments"):
        sources.append("f1:b2")
        quotes.append({"ref": "f1:b2", "text": "双栏"})
    fields = {name: value for name, value in found.items() if name != "original"}
    when = {"start": None, "due": None, "original": original}
    task = sse.new_task(fields.pop("title"), sources, quotes=quotes, time=when, **fields)
    return task | {"task_ref": known[0] if known else None}


@pytest.fixture(scope="module")
def server() -> Iterator[sse.ModelServer]:
    with sse.ModelServer(model) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, server: sse.ModelServer) -> Project:
    """Chats of a few days, with the tasks of a first round."""
    project = Project(tmp_path / "p", server.base_url)
    project.configure(
        input={"archive_root": "archive"}, agent={"batching": "single_conversation", "model": "stand-in"}
    )
    file = project.root / "config" / "processor.toml"
    prices = "[agent.prices]\ninput = 0.8\noutput = 2\n"
    file.write_text(file.read_text(encoding="utf-8") + prices, encoding="utf-8")
    project.rules.write_text("# 规则\n\nP0: 今天到期。\nP1: 影响成绩。\n其余为 P3。\n", encoding="utf-8")
    (project.root / "archive").mkdir()
    pages = "投稿须知\n\n正文使用双栏排版，不超过 8 页。\n\n参考文献按 GB/T 7714。\n"
    (project.root / "archive" / "须知.txt").write_text(pages, encoding="utf-8")
    now = datetime.now(ZONE)
    project.batch(
        "a.jsonl",
        *talk("实验课", now, "大家实验做完了吗", "请在昨天 17:00 前把实验报告交到 302", "收到，谢谢老师"),
        *talk("2026 级通知", now, "选课系统已开放", "请务必在今天之内确认选课", "好的"),
        *talk("课题组", now, "下周期中检查", "后天下午三点组会，在 A401，每人汇报进度", "👌"),
        event(
            "paper",
            "论文请按投稿模板修改",
            conversation={"id": "paper", "name": "论文小组", "type": "group"},
            sent_at=now.timestamp() // 1,
            attachments=[{"id": "a1", "name": "须知.txt", "path": "须知.txt", "state": "present"}],
        ),
        "{broken",
    )
    project.once(code=3)
    return project


def talk(name: str, at: datetime, *texts: str) -> list[dict[str, Any]]:
    """Messages of the last hour, all of today."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    begin = max(at - timedelta(minutes=40), midnight).timestamp() // 1
    place = {"id": name, "name": name, "type": "group"}
    return [
        {**message, "conversation": place, "sent_at": begin + 60 * number}
        for number, message in enumerate(chat(name, *texts))
    ]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--lang=en"]
        )
        yield browser
        browser.close()


@pytest.fixture
def console(project: Project) -> Iterator[ConsoleServer]:
    with ConsoleServer(project.root / "config" / "processor.toml") as console:
        yield console


def watched(context: BrowserContext, console: ConsoleServer) -> tuple[Page, list[str]]:
    """A page behind the gate, and what goes wrong on it: errors, refused contents, foreign requests."""
    faults: list[str] = []
    page = context.new_page()
    page.on("console", lambda said: faults.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("response", lambda got: faults.append(got.url) if got.status >= 400 else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    own = f"http://127.0.0.1:{console.port}/"
    page.on("request", lambda asked: None if asked.url.startswith(own) else faults.append(asked.url))
    page.goto(console.address)
    page.wait_for_url("**/tasks")
    return page, faults


def picture(page: Page, name: str) -> None:
    if PICTURES:
        folder = ROOT / PICTURES
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"console-{name}.png")


def test_a_day(  # noqa: PLR0915 - a day is long
    chromium: Browser, project: Project, console: ConsoleServer
) -> None:
    context = chromium.new_context(locale="en-GB", viewport={"width": 1100, "height": 860})
    page, faults = watched(context, console)
    config = load_config(project.root / "config" / "processor.toml")

    # Look: what is overdue and due today stands first.
    assert page.locator("h2").all_inner_texts() == ["Overdue", "Today", "Later", "Without a due time"]
    picture(page, "tasks-light")
    page.emulate_media(color_scheme="dark")
    picture(page, "tasks-dark")
    page.emulate_media(color_scheme="light")

    # Search, read a source.
    page.get_by_role("searchbox").fill("302")
    page.keyboard.press("Enter")
    sync_api.expect(page.locator("#found")).to_have_text("Tasks found: 1")
    page.get_by_role("link", name="交实验报告到 302").click()
    sync_api.expect(page.locator(".source mark")).to_have_text(["昨天 17:00 前", "302"])
    assert "大家实验做完了吗" in page.locator(".talk").inner_text()
    picture(page, "task")

    # Complete it, with a note.
    page.get_by_label("Note").fill("交给了助教")
    page.get_by_role("button", name="Done").click()
    sync_api.expect(page.get_by_role("status")).to_have_text("Done.")
    (done,) = list_tasks(config, query="302")
    assert (done.status, done.record["status_by"]) == ("completed", "user")

    # A page of an attachment, and the way back.
    page.goto(f"http://127.0.0.1:{console.port}/tasks?q=%E6%A8%A1%E6%9D%BF")
    page.locator(".task h3 a").click()
    page.locator(".evidence a").click()
    sync_api.expect(page.locator("mark")).to_have_text(["双栏"])
    page.go_back()
    page.get_by_label("Priority").select_option("P1")
    page.get_by_role("button", name="Set").click()
    sync_api.expect(page.locator("main")).to_contain_text("Priority set.")

    # Edit the rules: nothing is saved before its consequence was shown.
    before = project.rules.read_text(encoding="utf-8")
    page.get_by_role("link", name="Rules").click()
    page.get_by_label("The rules").fill(before + "P2: 体检。\n")
    page.get_by_role("button", name="Look at the changes").click()
    page.get_by_text("With this draft").wait_for()
    assert page.locator(".diff .added").all_inner_texts() == ["+ P2: 体检。"]
    assert re.search(r"With this draft\s+groups: 4, price about 0\.\d+", page.locator("main").inner_text())
    assert project.rules.read_text(encoding="utf-8") == before
    picture(page, "rules")
    page.get_by_role("button", name="Save the rules").click()
    page.get_by_role("status").wait_for()
    assert project.rules.read_text(encoding="utf-8") == before + "P2: 体检。\n"

    # Something new comes; preview, then run a round and watch it to its end.
    project.batch("b.jsonl", event("new", "请大家预约体检", conversation="体检"))
    page.get_by_role("link", name="Preview").click()
    page.get_by_text("Pending groups: 5").wait_for()
    page.get_by_text("Request 1").click()
    assert '"text":' in page.locator("pre").first.inner_text()
    picture(page, "preview")
    page.get_by_role("link", name="Rounds").click()
    page.get_by_role("button", name="Start a round").click()
    page.get_by_role("heading", name="Round 20").wait_for(timeout=60_000)
    assert page.locator("td strong").all_inner_texts() == ["done"] * 5
    picture(page, "rounds")

    # What the store holds after it.
    assert get_task(config, done.task_id).status == "completed"
    assert task_history(config, done.task_id)[1].actor.startswith("user:")
    (new,) = list_tasks(config, query="体检")
    assert new.status == "open"
    assert status(config).document["pending_segments"] == 0
    assert {known["task_id"] for known in project.events()} >= {done.task_id, new.task_id}
    assert faults == []
    context.close()


def test_by_keyboard_alone(chromium: Browser, project: Project, console: ConsoleServer) -> None:
    context = chromium.new_context(locale="en-GB")
    page, faults = watched(context, console)
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.inner_text() == "Skip to the content"
    assert skip.bounding_box()["x"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        assert focused.evaluate("it => getComputedStyle(it).outlineStyle") != "none"
        if (focused.get_attribute("aria-label") or "").startswith("Done: 在教务系统确认选课"):
            break
    page.keyboard.press("Enter")
    page.get_by_role("status").wait_for()
    config = load_config(project.root / "config" / "processor.toml")
    assert [task.title for task in list_tasks(config, status="completed")] == ["在教务系统确认选课"]
    assert faults == []
    context.close()


def test_without_scripts_a_round_is_started_and_told(
    chromium: Browser, project: Project, console: ConsoleServer
) -> None:
    project.batch("b.jsonl", event("new", "请大家预约体检", conversation="体检"))
    context = chromium.new_context(locale="zh-CN", java_script_enabled=False)
    page, _ = watched(context, console)
    page.get_by_role("link", name="轮次").click()
    page.get_by_role("button", name="开始一轮").click()
    page.locator("td strong").wait_for(timeout=60_000)
    assert page.locator("td strong").inner_text() == "完成"
    context.close()


SHAPES = {
    "light": {"color_scheme": "light", "viewport": {"width": 1100, "height": 860}, "locale": "en-GB"},
    "phone": {"color_scheme": "dark", "viewport": {"width": 375, "height": 812}, "locale": "zh-CN"},
}


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_every_page_is_accessible_and_fits(
    chromium: Browser, project: Project, console: ConsoleServer, shape: str
) -> None:
    project.configure(context={"max_conversation_chars": 500})
    project.connect(jsonl={"id": "files", "paths": ["elsewhere/*"]})
    context = chromium.new_context(**SHAPES[shape])
    page, faults = watched(context, console)
    page.goto(f"http://127.0.0.1:{console.port}/tasks?q=%E6%A8%A1%E6%9D%BF")
    task = page.locator(".task h3 a").get_attribute("href")
    page.goto(f"http://127.0.0.1:{console.port}/rules")
    page.locator("#text").fill("P0: 今天\n")
    page.locator("main button").click()
    draft = page.url.partition(str(console.port))[2]
    paths = ["/tasks", f"{task}", f"{task}/evidence/1", "/preview", "/rounds", "/connections", "/refused"]
    paths += ["/coverage/conversation?platform=qq&account_id=10000&id=paper"]
    paths += ["/coverage", "/coverage?key=paper", "/rules", draft, "/settings", "/tasks?cursor=x", "/nowhere"]
    for path in paths:
        page.goto(f"http://127.0.0.1:{console.port}{path}")
        until = time.monotonic() + 60
        while page.locator("[data-work]").count():
            assert time.monotonic() < until
            page.wait_for_timeout(100)
        if path == "/tasks" and shape == "phone":
            picture(page, "phone")
        for details in page.locator("details:not([open]) > summary").all():
            details.click()
        found = axe.Axe().run(page).response["violations"]
        grave = [
            (one["id"], [node["html"] for node in one["nodes"]])
            for one in found
            if one["impact"] in {"serious", "critical"}
        ]
        assert grave == [], path
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, path
    assert [fault for fault in faults if not re.search("/nowhere$|cursor=x$|status of 40[04]", fault)] == []
    context.close()
