"""The console over real HTTP: what its pages show, and what their forms do to store and files."""

from __future__ import annotations

import itertools
import json
import re
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from chatproc import coverage, explain, get_task, list_tasks, load_config, status, task_history
from chatproc.console.server import ConsoleServer
from chatproc.console.texts import LANGUAGES, catalogue, preferred
from chatproc.edits import masked, read_config_text, read_rules_text, save_config, save_rules
from chatproc.errors import ConfigError, FileChangedError
from tests import sse
from tests.browser import Answered, Browser
from tests.project import ROOT, Project, chat, event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = ("/tasks", "/preview", "/rounds", "/connections", "/refused", "/coverage", "/rules", "/settings")
CONVERSATION = "/coverage/conversation?platform=qq&account_id=10000&id=a"
REPORT = "请大家周五 17:00 前把报告交到 302"


def model(request: dict[str, Any]) -> sse.Answer:
    """Reads every attachment, then makes a task of the last message of each conversation."""
    document = sse.document_of(request)
    if document["attachments"] and not sse.results_of(request):
        return sse.call("read_attachment", {"ref": "f1"})
    if "fail" in json.dumps(document):
        return sse.failure(400)
    found = {}
    for conversation in document["conversations"]:
        last = conversation["segments"][-1]["messages"][-1]
        sources, quotes = [last["id"]], [{"ref": last["id"], "text": last["text"][:8]}]
        if last.get("attachments"):
            sources.append("f1:b1")
            quotes.append({"ref": "f1:b1", "text": "second line"})
        found[conversation["id"]] = [sse.new_task(last["text"][:40], sources, quotes=quotes)]
    return sse.submits(found)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[sse.ModelServer]:
    with sse.ModelServer(model) as server:
        yield server


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, endpoint: sse.ModelServer) -> Project:
    """Tasks, one with an attachment, a refused line, an oversized segment, a failed group, a connection."""
    project = Project(tmp_path_factory.mktemp("console") / "p", endpoint.base_url)
    (project.root / "archive").mkdir()
    (project.root / "archive" / "a.txt").write_text("first line\nsecond line\n", encoding="utf-8")
    project.configure(
        input={"archive_root": "archive"},
        agent={"batching": "single_conversation"},
        context={"max_conversation_chars": 1500},
    )
    project.connect(jsonl={"id": "files", "paths": ["elsewhere/*"], "interval_seconds": 0})
    attachment = {"id": "a1", "name": "要求.txt", "path": "a.txt", "state": "present"}
    project.batch(
        "a.jsonl",
        *chat("a", "@all", "大家好", REPORT, "收到"),
        event("f", "please read it", conversation="f", attachments=[attachment]),
        event("big", "长" * 3000, conversation="big"),
        event("bad", "fail", conversation="bad"),
        "{broken",
    )
    project.once(code=3)
    return project


@pytest.fixture(scope="module")
def server(project: Project) -> Iterator[ConsoleServer]:
    with ConsoleServer(project.root / "config" / "processor.toml") as server:
        yield server


@pytest.fixture(scope="module")
def browser(server: ConsoleServer) -> Browser:
    return Browser(server.port).opened(server.address)


def settled(browser: Browser, path: str) -> Answered:
    """A page once the work that it shows is over."""
    until = time.monotonic() + 60
    while True:
        page = browser.get(path)
        works = [known["data-work"] for _, known in page.elements if "data-work" in known]
        if not works:
            return page
        assert time.monotonic() < until
        while not json.loads(browser.get(f"/works/{works[0]}").body)["over"]:
            time.sleep(0.02)


def task_of(project: Project, query: str) -> str:
    (task,) = list_tasks(load_config(project.root / "config" / "processor.toml"), query=query)
    return task.task_id


# ── every page ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_page_is_whole_in_every_language(browser: Browser, project: Project, language: str) -> None:
    other = Browser(browser.port, language)
    other.cookies = dict(browser.cookies)
    task = task_of(project, "read")
    for path in (
        *PAGES,
        f"/tasks/{task}",
        f"/tasks/{task}/evidence/1",
        "/coverage?key=a2",
        CONVERSATION,
        "/nowhere",
    ):
        page = settled(other, path)
        assert page.status == (404 if path == "/nowhere" else 200), path
        assert page.faults == []
        assert ("html", {"lang": language}) in page.elements
        assert sum(tag == "h1" for tag, _ in page.elements) == 1
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), path


def test_every_language_has_every_text_with_the_same_places() -> None:
    names = {language: set(catalogue(language)) for language in LANGUAGES}
    assert names["en"] == names["zh"]
    for name, text in catalogue("en").items():
        assert text.strip()
        assert catalogue("zh")[name].strip()
        places = [sorted(re.findall(r"\{(\w+)\}", catalogue(language)[name])) for language in LANGUAGES]
        assert places[0] == places[1], name


def test_every_text_is_used_and_every_used_text_exists() -> None:
    folder = ROOT / "src" / "chatproc" / "console"
    source = "".join(
        file.read_text(encoding="utf-8") for file in (*folder.glob("templates/*"), *folder.glob("*.py"))
    )
    used = set(re.findall(r"say\([\"'](\w+\.[\w-]+)[\"'](?! ~)", source))
    assert used <= set(catalogue("en"))
    # Of a name that is put together the first part stands in the source.
    begun = [*re.findall(r"say\([\"'](\w+\.\w*)[\"'] ~", source), "said.", "day.weekday_", "day."]
    assert [name for name in catalogue("en") if name not in used and not name.startswith(tuple(begun))] == []


def test_a_browser_gets_the_language_that_it_asks_for_until_another_is_chosen(browser: Browser) -> None:
    wishes = {"zh-TW,en;q=0.1": "zh", "fr": "en", "": "en", "en;q=0, zh": "zh", ";;q=x,zh": "zh"}
    assert {wish: preferred(wish) for wish in wishes} == wishes
    other = Browser(browser.port)
    other.cookies = dict(browser.cookies)
    page = other.get("/tasks?sort=priority")
    chosen = other.submit(page.form("/language"), language="zh")
    assert chosen.path.startswith("/tasks?sort=priority")
    assert "待办" in chosen.text


def test_every_page_is_there_before_there_is_a_store(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    with ConsoleServer(project.root / "config" / "processor.toml") as server:
        own = Browser(server.port).opened(server.address)
        assert [settled(own, path).status for path in PAGES] == [200] * len(PAGES)
    assert not project.state.exists()


def test_no_address_breaks_a_page(browser: Browser) -> None:
    """What a person may have typed or bent is refused or passed over; a 500 is a fault of ours."""
    odd = ("%00", "%ff", "-1", "9" * 20, "²", "../..", "%F0%9F%90%88" * 300, "'%22%3B--", "x" * 9000)
    fields = (
        "q",
        "term",
        "status",
        "priority",
        "people",
        "platform",
        "conversation",
        "sort",
        "cursor",
        "said",
    )
    for value in odd:
        addresses = [f"/tasks?{name}={value}" for name in fields]
        addresses += [f"/tasks/{value}", f"/tasks/{value}/evidence/{value}", f"/works/{value}"]
        addresses += [f"/preview?limit={value}", f"/preview?work={value}", f"/refused?from={value}"]
        addresses += [f"/coverage?{name}={value}" for name in ("key", "q", "after")]
        addresses += [f"/coverage/conversation?id={value}"]
        addresses += [f"{CONVERSATION}&{name}={value}" for name in ("platform", "outcome", "after")]
        addresses += [f"/rules?draft={value}", f"/rules/drafts/{value}"]
        for address in addresses:
            assert settled(browser, address.replace("²", "%C2%B2")).status in {200, 400, 404}, address
    token = dict(browser.get("/rounds").form("/rounds/start").fields)["form_token"]
    for value in odd[2:4]:
        for path in (f"/refused/{value}/retry", f"/refused/{value}/discard", f"/rules/drafts/{value}/save"):
            assert browser.post(path, [("form_token", token)]).status == 400, path


# ── tasks ──────────────────────────────────────────────────────────────────────────────────────────────


def test_tasks_are_found_by_words_of_their_sources_and_narrowed_by_filters(browser: Browser) -> None:
    page = browser.get("/tasks")
    assert "Tasks found: 2" in page.text
    found = browser.submit(page.form("/tasks"), q="收到")
    assert "Tasks found: 1" in found.text
    assert "收到" in found.text
    for path in (
        "/tasks?priority=P0",
        "/tasks?term=overdue",
        "/tasks?q=%F0%9F%90%88",
        "/tasks?status=completed",
    ):
        assert "Tasks found: 0" in browser.get(path).text
    for path in (
        "/tasks?sort=priority",
        "/tasks?platform=qq&conversation=f",
        "/tasks?sort=nonsense&status=x",
    ):
        assert browser.get(path).status == 200
    assert "no cursor" in browser.get("/tasks?cursor=nonsense").text


def test_a_task_shows_its_source_within_the_talk_with_the_quote_marked(
    browser: Browser, project: Project
) -> None:
    page = browser.get(f"/tasks/{task_of(project, '收到')}")
    assert "<mark>收到</mark>" in page.body
    assert page.text.index("大家好") < page.text.index(REPORT) < page.text.rindex("收到")
    assert "earlier messages" not in page.text
    assert f"model:{'stand-in'}" in page.text


def test_every_source_of_a_task_is_shown_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"第 {number} 件事" for number in range(30)]

    def all_of_it(request: dict[str, Any]) -> sse.Answer:
        (conversation,) = sse.document_of(request)["conversations"]
        refs = [message["id"] for message in conversation["segments"][0]["messages"][::5]]
        return sse.submits({"c1": [sse.new_task("几件事", refs)]})

    with sse.ModelServer(all_of_it) as model_server:
        project = Project(tmp_path / "p", model_server.base_url)
        project.batch("a.jsonl", *chat("a", *texts))
        project.once()
    with ConsoleServer(project.root / "config" / "processor.toml") as server:
        own = Browser(server.port).opened(server.address)
        address = f"/tasks/{project.tasks()[0]['task_id']}"
        text = own.get(address).text
        assert [told for told in texts if told in text] == [*texts[:14], texts[15], texts[20], texts[25]]
        monkeypatch.setattr("chatproc.console.tasks._OTHERS", 2)
        first = own.get(address)
        assert [told for told in texts if told in first.text] == [*texts[:14], texts[15], texts[20]]
        (following,) = [link for link in first.links if "sources=" in link]
        second = own.get(following.partition("#")[0])
        assert [told for told in texts if told in second.text] == [*texts[:14], texts[25]]
        assert not [link for link in second.links if "sources=" in link]


def test_a_page_of_an_attachment_is_read_anew_with_the_quote_marked(
    browser: Browser, project: Project
) -> None:
    task = task_of(project, "read")
    page = browser.get(f"/tasks/{task}")
    assert f"/tasks/{task}/evidence/1" in page.links
    shown = browser.get(f"/tasks/{task}/evidence/1")
    assert "<mark>second line</mark>" in shown.body
    assert "first line" in shown.text
    assert browser.get(f"/tasks/{task}/evidence/9").status == 400
    file = project.root / "archive" / "a.txt"
    before = file.read_bytes()
    file.write_bytes(b"other")
    assert "not the one that was collected" in browser.get(f"/tasks/{task}/evidence/1").text
    file.write_bytes(before)


def test_what_a_person_decides_reaches_the_store_and_its_history(browser: Browser, project: Project) -> None:
    config = load_config(project.root / "config" / "processor.toml")
    task = task_of(project, "read")
    path = f"/tasks/{task}"
    done = browser.submit(browser.get(path).form(f"{path}/status"), status="completed", note="<b>by mail</b>")
    assert "Done." in done.text
    assert get_task(config, task).record["status_by"] == "user"
    assert "Tasks found: 0" in browser.get("/tasks?q=read").text
    assert browser.submit(done.form(f"{path}/status"), status="open").text.count("Open again.") == 1
    urgent = browser.submit(browser.get(path).form(f"{path}/priority"), priority="P0")
    assert "Priority set." in urgent.text
    listed = browser.get("/tasks")
    form = next(form for form in listed.forms if form.action == f"{path}/status")
    assert browser.submit(form, status="cancelled").path.startswith("/tasks")
    now = get_task(config, task)
    assert (now.status, now.priority) == ("cancelled", "P0")
    assert "<b>by mail</b>" in task_history(config, task)[1].why
    page = browser.get(path)
    assert "<b>by mail</b>" in page.text
    assert browser.submit(page.form(f"{path}/status"), status="open").status == 200


def test_a_form_sent_twice_changes_once_and_a_stale_one_changes_nothing(
    browser: Browser, project: Project
) -> None:
    config = load_config(project.root / "config" / "processor.toml")
    task = task_of(project, "收到")
    form = browser.get(f"/tasks/{task}").form(f"/tasks/{task}/priority")
    browser.submit(form, priority="P1")
    revision = get_task(config, task).revision
    browser.submit(form, priority="P1")
    assert get_task(config, task).revision == revision
    stale = browser.submit(form, priority="P2", request="another")
    assert stale.status == 400
    assert get_task(config, task).priority == "P1"
    assert browser.get("/tasks/t_unknown").status == 400


# ── rounds, connections, refused, coverage ─────────────────────────────────────────────────────────────


def test_a_preview_shows_groups_and_the_exact_request(browser: Browser) -> None:
    page = settled(browser, "/preview?limit=20")
    assert "Pending groups: 1;" in page.text
    (document,) = re.findall(r"<pre[^>]*>(.*?)</pre>", page.body, re.DOTALL)
    assert "&#34;text&#34;:&#34;fail&#34;" in document


def test_a_round_is_started_watched_and_told(
    tmp_path: Path, endpoint: sse.ModelServer, browser: Browser
) -> None:
    project = Project(tmp_path / "p", endpoint.base_url)
    project.configure(agent={"batching": "single_conversation", "prices": {}})
    text = (project.root / "config" / "processor.toml").read_text(encoding="utf-8")
    (project.root / "config" / "processor.toml").write_text(
        text.replace("prices = {}", "prices = { input = 2, output = 8 }"), encoding="utf-8"
    )
    project.batch("a.jsonl", *chat("a", "交报告"), event("b", "fail", conversation="b"))
    with ConsoleServer(project.root / "config" / "processor.toml") as server:
        own = Browser(server.port).opened(server.address)
        assert "There was no round yet." in own.get("/rounds").text
        own.submit(own.get("/rounds").form("/rounds/start"))
        page = settled(own, "/rounds")
        assert "done" in page.text
        assert "failed" in page.text
        assert "400" in page.text
        assert "price 0.0024" in page.text
    (task,) = project.tasks()
    assert f"/tasks/{task['task_id']}" in page.links
    assert browser.get("/works/999").status == 404


def test_a_round_is_stopped_by_its_button_and_by_the_end_of_the_console(tmp_path: Path) -> None:
    hanging = sse.Answer((), end="hang")
    with sse.ModelServer(lambda _: hanging) as model_server:
        project = Project(tmp_path / "p", model_server.base_url)
        project.batch("a.jsonl", *chat("a", "交报告"))
        with ConsoleServer(project.root / "config" / "processor.toml") as server:
            own = Browser(server.port).opened(server.address)
            own.submit(own.get("/rounds").form("/rounds/start"))
            assert model_server.arrived.wait(60)
            own.submit(own.get("/rounds").form("/rounds/stop"))
            assert "stopped: what was committed stays" in settled(own, "/rounds").text
            model_server.arrived.clear()
            own.submit(own.get("/rounds").form("/rounds/start"))
            assert model_server.arrived.wait(60)
        assert project.pending() == 1


def test_a_round_elsewhere_is_told_with_its_holder(project: Project, browser: Browser) -> None:
    from chatproc.pipeline import Writer

    with Writer(load_config(project.root / "config" / "processor.toml")):
        browser.submit(browser.get("/rounds").form("/rounds/start"))
        assert "process" in settled(browser, "/rounds").text


def test_a_connection_is_synced_from_its_page(project: Project, browser: Browser) -> None:
    (project.root / "elsewhere").mkdir(exist_ok=True)
    line = json.dumps(event("late", "later", conversation="late"), ensure_ascii=False) + "\n"
    (project.root / "elsewhere" / "x.jsonl").write_text(line, encoding="utf-8")
    page = browser.get("/connections")
    assert "by hand" in page.text
    browser.submit(page.form("/connections/sync"))
    assert "new events: 1" in settled(browser, "/connections").text
    assert browser.post("/connections/sync", [("form_token", "x")]).status == 403


def test_refused_lines_are_retried_and_discarded_and_oversized_ones_listed(
    project: Project, browser: Browser
) -> None:
    page = browser.get("/refused")
    assert "not-json" in page.text
    assert "{broken" in page.text
    assert "1,500 allowed" in page.text
    (retry,) = [form for form in page.forms if form.action.endswith("/retry")]
    assert "Still refused." in browser.submit(retry).text
    (discard,) = [form for form in page.forms if form.action.endswith("/discard")]
    assert "Discarded." in browser.submit(discard).text
    assert status(load_config(project.root / "config" / "processor.toml")).document["quarantined"] == 0


def test_coverage_adds_up_and_leads_along_a_conversation(browser: Browser) -> None:
    page = browser.get("/coverage?key=a1")
    assert "Each message has one outcome" in page.text
    assert "read, no task" in page.text
    assert "a.jsonl" in page.text
    assert "/coverage?key=a2" in page.links
    assert browser.get("/coverage?key=unknown").status == 400
    assert CONVERSATION.replace("&", "&amp;") in page.body


def test_a_conversation_is_found_and_shows_what_became_of_each_message(
    browser: Browser, project: Project
) -> None:
    config = load_config(project.root / "config" / "processor.toml")
    listed = browser.get("/coverage")
    assert f"Conversations: {status(config).document['conversations']}" in listed.text
    found = browser.submit(next(form for form in listed.forms if ("q", "") in form.fields), q="群A")
    assert [link for link in found.links if link.startswith("/coverage/conversation")] == [CONVERSATION]
    assert "No conversation here." in browser.get("/coverage?q=%F0%9F%90%88").text

    page = browser.get(CONVERSATION)
    ledger = coverage(config, "qq", "10000", "a")
    assert ledger.conversation["messages"] == len(ledger.messages) == sum(ledger.outcomes.values()) == 4
    assert [message["text"] for message in ledger.messages] == ["@all", "大家好", REPORT, "收到"]
    assert page.text.index("大家好") < page.text.index(REPORT) < page.text.rindex("收到")
    for message in ledger.messages:
        assert explain(config, message["message_key"]).outcome == message["outcome"]
        assert f"/coverage?key={message['message_key']}" in page.links
    assert f"/tasks/{task_of(project, '收到')}" in page.links
    assert f"{CONVERSATION}&outcome=cited" in page.links

    cited = browser.get(f"{CONVERSATION}&outcome=cited")
    assert REPORT not in cited.text
    assert "收到" in cited.text
    assert "No message here." in browser.get(f"{CONVERSATION}&outcome=recalled").text
    failed = browser.get(CONVERSATION.replace("id=a", "id=bad"))
    assert "The last attempt at its segment failed: " in failed.text
    big = browser.get(CONVERSATION.replace("id=a", "id=big"))
    assert "a group takes 1500" in big.text
    assert "长" * 200 + "…" in big.text
    assert "长" * 201 not in big.text


def test_pages_of_a_conversation_and_of_conversations_show_each_once(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    project.batch(
        "a.jsonl",
        *chat("a ", *(f"第 {number:03} 条" for number in range(120))),
        *(event(f"one{number}", "x", conversation=f"c{number:02}") for number in range(30)),
    )
    project.call("once", code=2)
    with ConsoleServer(project.root / "config" / "processor.toml") as server:
        own = Browser(server.port).opened(server.address)

        def following(path: str) -> list[Answered]:
            pages = [own.get(path)]
            while onward := [
                known["href"] for tag, known in pages[-1].elements if known.get("rel") == "next"
            ]:
                pages.append(own.get(str(onward[0])))
            return pages

        lists = following("/coverage")
        links = [link for page in lists for link in page.links if link.startswith("/coverage/conversation")]
        assert (len(lists), len(links), len(set(links))) == (2, 31, 31)
        (talk,) = [link for link in links if "id=a+" in link]
        pages = following(f"{talk}&outcome=pending")
        shown = [number for page in pages for number in re.findall(r"第 (\d+) 条", page.text)]
        assert len(pages) == 3
        assert shown == [f"{number:03}" for number in range(120)]
        assert "a group takes" not in pages[0].text
        way = own.get(next(link for link in pages[0].links if link.startswith("/coverage?key=")))
        assert way.status == 200
        assert talk in way.links


# ── rules and configuration ────────────────────────────────────────────────────────────────────────────


def test_an_edit_of_the_rules_shows_diff_and_consequence_and_is_saved_with_a_backup(
    project: Project, browser: Browser
) -> None:
    before = project.rules.read_text(encoding="utf-8")
    page = browser.get("/rules")
    draft = browser.submit(page.form("/rules/drafts"), text=before + "P1: <b>this week</b>\n")
    looked = settled(browser, draft.path)
    assert project.rules.read_text(encoding="utf-8") == before
    assert "+ P1: <b>this week</b>" in looked.text
    assert re.search(r"With this draft\s*groups: [3-9]", looked.text)
    save = next(form for form in looked.forms if form.action.endswith("/save"))
    assert "Rules saved" in browser.submit(save).text
    assert project.rules.read_text(encoding="utf-8") == before + "P1: <b>this week</b>\n"
    (backup,) = project.rules.parent.glob("*.bak")
    assert backup.read_text(encoding="utf-8") == before
    assert "Rules saved" in browser.submit(save).text  # pressed twice, saved once
    assert list(project.rules.parent.glob("*.bak")) == [backup]


def test_rules_that_changed_meanwhile_are_not_overwritten_unseen(project: Project, browser: Browser) -> None:
    page = browser.get("/rules")
    draft = browser.submit(page.form("/rules/drafts"), text="mine\n")
    looked = settled(browser, draft.path)
    save = next(form for form in looked.forms if form.action.endswith("/save"))
    project.rules.write_text("theirs\n", encoding="utf-8")
    refused = browser.submit(save)
    assert refused.path == draft.path  # with the draft, so that nothing written is lost
    assert "has been changed since you began" in refused.text
    assert project.rules.read_text(encoding="utf-8") == "theirs\n"
    again = settled(browser, draft.path)
    assert "− theirs" in again.text
    browser.submit(next(form for form in again.forms if form.action.endswith("/save")))
    assert project.rules.read_text(encoding="utf-8") == "mine\n"
    empty = browser.submit(browser.get("/rules").form("/rules/drafts"), text=" ")
    assert "the rules are empty" in settled(browser, empty.path).text


def test_a_configuration_is_shown_without_keys_checked_and_saved_whole(
    project: Project, browser: Browser
) -> None:
    file = project.root / "config" / "processor.toml"
    key = 'extra_body = { api_key = "sk-123456" }\n'
    file.write_text(
        file.read_text(encoding="utf-8").replace("[agent]\n", "[agent]\n" + key), encoding="utf-8"
    )
    before = file.read_text(encoding="utf-8")
    page = browser.get("/settings")
    assert "sk-123456" not in page.body
    form = page.form("/settings")
    text = dict(form.fields)["text"]
    wrong = browser.submit(form, text=text.replace("retries = 0", "retries = -1"))
    assert wrong.status == 400
    assert "must be at least 0" in wrong.text
    assert "retries = -1" in dict(wrong.form("/settings").fields)["text"]
    assert file.read_text(encoding="utf-8") == before
    assert "Configuration saved" in browser.submit(form, text=text.replace("retries = 0", "retries = 1")).text
    assert file.read_text(encoding="utf-8") == before.replace("retries = 0", "retries = 1")
    assert [kept.read_text(encoding="utf-8") for kept in file.parent.glob("*.bak")] == [before]
    stale = browser.submit(form, text=text.replace("retries = 0", "retries = 2"))
    assert "changed meanwhile" in stale.text
    assert load_config(file).agent.retries == 1


def test_a_configuration_that_cannot_be_used_is_mended_on_its_page(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    file = project.root / "config" / "processor.toml"
    good = file.read_text(encoding="utf-8")
    with ConsoleServer(file) as server:
        own = Browser(server.port).opened(server.address)
        file.write_text(good + "[broken\n", encoding="utf-8")
        assert "is not TOML" in own.get("/tasks").text
        page = own.get("/settings")
        assert "is not TOML" in page.text
        own.submit(page.form("/settings"), text=good)
        assert own.get("/tasks").status == 200


@pytest.mark.parametrize(
    "line",
    [
        'api_key = "SECRET"',
        "'api-key' = 'SECRET'",
        'secret_env = "sk-SECRET"',
        'url = "https://me:SECRET@example.org"',
        'extra_body = { "user" = "SECRET" }',
        "[agent.extra_body]\nuser = 'SECRET'",
        '[agent.extra_body]\nx = """\nSECRET\n"""',
        '# password = "SECRET"',
        'token = "a\\"SECRET"',
    ],
)
def test_what_may_be_a_key_is_masked(line: str) -> None:
    assert "SECRET" not in masked(f'[agent]\nmodel = "m"\n{line}\n')
    assert 'model = "m"' in masked(f'[agent]\nmodel = "m"\n{line}\n')


def test_a_mask_stands_for_its_own_value_alone(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_bytes(b'\xef\xbb\xbf[agent]\r\nextra_body = { a = "one", b = "two" }\r\n')
    file.chmod(0o640)
    shown = read_config_text(file)
    a, b = re.findall(r"\(hidden \w+\)", shown.text)
    swapped = shown.text.replace(a, "x").replace(b, a)
    save_config(file, swapped, expected_sha256=shown.sha256)
    assert file.read_bytes() == b'\xef\xbb\xbf[agent]\r\nextra_body = { a = "x", b = "one" }\r\n'
    assert file.stat().st_mode & 0o777 == 0o640
    shown = read_config_text(file)
    with pytest.raises(ConfigError, match="stands for no value"):
        save_config(file, '[agent]\nmodel = "(hidden 00000000)"\n', expected_sha256=shown.sha256)


def test_a_linked_file_stays_a_link_and_a_full_disk_leaves_the_file(tmp_path: Path) -> None:
    real, link = tmp_path / "real.md", tmp_path / "link.md"
    real.write_text("a\n", encoding="utf-8")
    link.symlink_to(real)
    with pytest.raises(FileChangedError):
        save_rules(link, "b\n", expected_sha256="0")
    save_rules(link, "b\n", expected_sha256=read_rules_text(link).sha256)
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "b\n"
    new = tmp_path / "new" / "rules.md"
    assert save_rules(new, "c\n", expected_sha256=read_rules_text(new).sha256) is None
    assert new.stat().st_mode & 0o777 == 0o600


def test_a_change_in_the_middle_of_saving_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = tmp_path / "rules.md"
    rules.write_text("a\n", encoding="utf-8")
    before = read_rules_text(rules)

    def while_another_saves(_form: str) -> str:
        rules.write_text("theirs\n", encoding="utf-8")
        return "now"

    monkeypatch.setattr("chatproc.edits.time.strftime", while_another_saves)
    with pytest.raises(FileChangedError):
        save_rules(rules, "mine\n", expected_sha256=before.sha256)
    assert rules.read_text(encoding="utf-8") == "theirs\n"
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".tmp"] == []


# ── the command ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_shows_an_address_that_works_once_and_ends_with_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    project = Project(tmp_path / "p")
    process = project.cold("console", "--no-browser", "--json")
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["address"]
    port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/enter\?token=[\w-]{43}", address)[1])  # type: ignore[index]
    browser = Browser(port).opened(address)
    assert browser.get("/").path == "/tasks"
    assert not project.state.exists()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_the_command_says_what_is_missing_and_what_is_taken(tmp_path: Path, server: ConsoleServer) -> None:
    project = Project(tmp_path / "p")
    taken = project.call("console", "--no-browser", "--port", str(server.port), code=1)
    assert "cannot be used" in taken.err
    (tmp_path / "starlette.py").write_text("raise ModuleNotFoundError(name='starlette')", encoding="utf-8")
    project.paths = (tmp_path,)
    missing = project.call("console", "--no-browser", code=2)
    assert "pip install 'chatproc[console]'" in missing.err
