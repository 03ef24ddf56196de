"""Who reaches the console, and that no text of anyone becomes more than text on its pages."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from chatproc.console.security import Gate
from chatproc.console.server import ConsoleServer
from chatproc.errors import ChatprocError
from tests import sse
from tests.browser import Browser
from tests.project import Project, chat, event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "</textarea></pre><svg onload=alert(1)>",
    "{{ 7777 * 7777 }}{% raw %}",
    "<!--<base href=//evil.example>",
    "\u202egpj.exe\u2066\x1b[2J\x00",
    "&lt;b&gt;&amp;",
    "<a href=https://evil.example>here</a>",
]
HOSTILE = " ".join(PAYLOADS)


def words(text: str) -> set[str]:
    return set(text.split())


TAGS = words(
    """
    html head meta title link script noscript body header main nav section h1 h2 h3 p ul ol li a form
    input button label select option textarea fieldset legend details summary div span bdi q time code
    pre mark blockquote del ins strong dl dt dd table thead tbody tr th td br progress
    """
)
ATTRIBUTES = words(
    """
    action aria-current aria-label autocomplete charset checked class content data-of data-work datetime
    defer dir for href http-equiv id lang max maxlength method name open placeholder rel reversed role
    scope selected size spellcheck src tabindex type value
    """
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    project = Project(tmp_path_factory.mktemp("plain") / "p")
    with ConsoleServer(project.root / "config" / "processor.toml") as server:
        yield server


@pytest.fixture(scope="module")
def browser(plain: ConsoleServer) -> Browser:
    return Browser(plain.port).opened(plain.address)


# ── who comes in ───────────────────────────────────────────────────────────────────────────────────────


def test_the_address_works_once(browser: Browser, plain: ConsoleServer) -> None:
    place = urlsplit(plain.address)
    stranger = Browser(browser.port)
    assert stranger.get(f"{place.path}?{place.query}").status == 403
    assert stranger.get("/tasks").status == 403
    assert stranger.get("/enter?token=").status == 403
    assert stranger.get("/static/console.css").status == 403
    assert stranger.cookies == {}
    # Whoever is in already is led on.
    assert browser.get(f"{place.path}?{place.query}").status == 200


def test_the_cookie_is_for_this_process_and_no_script(tmp_path: Path) -> None:
    cookies = set()
    for name in ("a", "b"):
        project = Project(tmp_path / name)
        with ConsoleServer(project.root / "config" / "processor.toml") as server:
            place = urlsplit(server.address)
            answer = Browser(server.port).get(f"{place.path}?{place.query}")
            cookies.add(answer.headers["set-cookie"].split("; ")[0].split("=")[1])
            assert answer.headers["set-cookie"].split("; ")[1:] == ["Path=/", "HttpOnly", "SameSite=Strict"]
    assert len(cookies) == 2


def test_only_loopback_listens(plain: ConsoleServer) -> None:
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)} - {"127.0.0.1"}
    for address in [*others, "::1"]:
        with pytest.raises(OSError), socket.create_connection((str(address), plain.port), timeout=1):  # noqa: PT011
            pass
    with pytest.raises(ChatprocError, match="cannot be used"):
        ConsoleServer(plain._socket.getsockname()[0], plain.port)


@pytest.mark.parametrize(("port", "host"), [(80, "127.0.0.1"), (80, "localhost"), (81, "127.0.0.1:81")])
def test_the_console_knows_its_name_as_browsers_write_it(port: int, host: str) -> None:
    gate = Gate(port)
    assert gate.is_own_host({"host": host})
    assert gate.is_own_page({"host": host, "origin": f"http://{host}"})
    assert not gate.is_own_host({"host": f"{host}:8080"})
    assert gate.address.startswith("http://127.0.0.1")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "[::1]:{port}", "{port}"],
)
def test_another_name_that_leads_here_is_refused(browser: Browser, host: str) -> None:
    answer = browser.ask("GET", "/tasks", headers={"Host": host.format(port=browser.port)})
    assert answer.status == 421
    assert "chatproc console" not in answer.body


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:{port}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"Origin": "", "Sec_Fetch_Site": ""},
    ],
)
@pytest.mark.parametrize("path", ["/rounds/start", "/language", "/settings", "/nowhere"])
def test_a_form_of_another_page_is_refused(browser: Browser, headers: dict[str, str], path: str) -> None:
    token = dict(browser.get("/rounds").form("/rounds/start").fields)["form_token"]
    sent = {name: value.format(port=browser.port) for name, value in headers.items()}
    assert browser.post(path, [("form_token", token)], **sent).status == 403


def test_a_form_without_this_process_token_is_refused(browser: Browser) -> None:
    good = dict(browser.get("/rounds").form("/rounds/start").fields)["form_token"]
    for fields in ([], [("form_token", "")], [("form_token", good[:-1])], [("token", good)]):
        assert browser.post("/rounds/start", fields).status == 403
    assert browser.post("/language", [("form_token", good)], Sec_Fetch_Site="").status == 303
    assert browser.post("/language", [("form_token", good)], Origin="").status == 303
    assert "at work" not in browser.get("/rounds").text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_no_other_method_does_anything(browser: Browser, method: str) -> None:
    assert browser.ask(method, "/rounds/start").status in {403, 405}


def test_bodies_that_are_no_form_are_refused(browser: Browser) -> None:
    own = {"Origin": f"http://127.0.0.1:{browser.port}", "Content-Type": "application/x-www-form-urlencoded"}
    for body in ("form_token=é", "x" * (4 * 1024 * 1024 + 1)):
        try:
            status = browser.ask("POST", "/language", body, own).status
        except (BrokenPipeError, ConnectionResetError):
            continue  # closed in the middle of too long a body
        assert status == 403


@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x", "/\r\nX: y"]
)
def test_a_form_leads_to_own_paths_alone(browser: Browser, back: str) -> None:
    token = dict(browser.get("/rounds").form("/rounds/start").fields)["form_token"]
    answer = browser.post("/language", [("form_token", token), ("back", back)])
    assert (answer.status, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize(
    "path", ["/tasks", "/static/console.js", "/works/1", "/nowhere", "/enter?token=x", "/static/../x"]
)
@pytest.mark.parametrize("is_inside", [True, False])
def test_every_answer_carries_the_strict_headers(browser: Browser, path: str, is_inside: bool) -> None:  # noqa: FBT001
    asking = browser if is_inside else Browser(browser.port)
    headers = asking.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


# ── hostile texts ──────────────────────────────────────────────────────────────────────────────────────


def hostile_model(request: dict[str, Any]) -> sse.Answer:
    """Writes the payloads into every field that is its own."""
    document = sse.document_of(request)
    if document["attachments"] and not sse.results_of(request):
        return sse.call("read_attachment", {"ref": "f1"})
    found: dict[str, list[dict[str, Any]]] = {}
    for conversation in document["conversations"]:
        messages = conversation["segments"][-1]["messages"]
        if messages[-1]["text"].startswith("no"):
            found[conversation["id"]] = []
            continue
        files = [{"ref": "f1:b1", "text": PAYLOADS[0]}] if messages[-1].get("attachments") else []
        found[conversation["id"]] = [
            sse.new_task(
                HOSTILE[:190],
                [messages[-1]["id"], *(["f1:b1"] if files else [])],
                event=HOSTILE,
                priority_reason=HOSTILE,
                people=[{"name": HOSTILE, "role": HOSTILE}],
                location=HOSTILE,
                action_steps=[HOSTILE, *PAYLOADS],
                notes=HOSTILE,
                quotes=[{"ref": messages[-1]["id"], "text": payload} for payload in PAYLOADS[:4]] + files,
            )
        ]
    answer = sse.submission(found)
    for conversation in answer["conversations"]:
        conversation["no_task_reason"] = conversation["no_task_reason"] and HOSTILE
    return sse.call("submit_tasks", answer)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A console over a project in which every text is an attack, with a work of each kind behind it."""
    with sse.ModelServer(hostile_model) as model_server:
        project = Project(tmp_path_factory.mktemp("hostile") / "p", model_server.base_url)
        archive = project.root / "archive"
        archive.mkdir()
        (archive / "a.txt").write_text("\n".join(PAYLOADS[:7]), encoding="utf-8")
        project.configure(
            input={"archive_root": "archive"},
            agent={"batching": "single_conversation", "model": HOSTILE},
            context={"max_conversation_chars": 4000},
        )
        project.connect(jsonl={"id": HOSTILE.replace("\x00", ""), "paths": ["elsewhere/*"]})
        place = {"id": HOSTILE, "name": HOSTILE, "type": "group"}
        sender = {"id": HOSTILE, "name": HOSTILE}
        file = {
            "id": HOSTILE,
            "name": f"{HOSTILE}.txt".replace("/", "_"),
            "path": "a.txt",
            "state": "present",
        }
        project.rules.write_text(HOSTILE, encoding="utf-8")
        project.batch(
            f"{PAYLOADS[2]}.jsonl",
            event(
                "1" + "".join(PAYLOADS[:3]), HOSTILE, conversation=place, sender=sender, attachments=[file]
            ),
            event("2", f"no {HOSTILE}", conversation={**place, "id": "2"}, sender=sender),
            event("3", HOSTILE * 40, conversation={**place, "id": "3"}, sender=sender),
            HOSTILE.replace("\x00", ""),
            json.dumps({"schema": HOSTILE}),
            *chat("b", HOSTILE, begin=1),
        )
        with ConsoleServer(project.root / "config" / "processor.toml") as server:
            browser = Browser(server.port).opened(server.address)
            browser.submit(browser.get("/rounds").form("/rounds/start"))
            browser.submit(browser.get("/connections").form("/connections/sync"))
            for number in ("1", "2"):
                assert server.works.find(number).over.wait(60)  # type: ignore[union-attr]
            yield browser


def every_page(browser: Browser) -> Iterator[str]:
    """The paths of all pages that have something to show."""
    tasks = [link for link in browser.get("/tasks").links if link.startswith("/tasks/")]
    assert len(tasks) == 2, browser.get("/rounds").text
    rules = browser.get("/rules")
    draft = browser.submit(rules.form("/rules/drafts"), text=f"{HOSTILE}\n{HOSTILE[::-1]}")
    yield from (
        "/preview",
        "/preview?limit=100",
        "/rounds",
        "/connections",
        "/refused",
        "/coverage",
        "/rules",
    )
    yield from ("/settings", f"/tasks?said={'%3Cscript%3E'}&q=%22%3E%3Cscript%3E&sort=%3Cb%3E", draft.path)
    yield from (*tasks, f"/rules?draft={draft.path.rpartition('/')[2]}", "/%3Cscript%3Ealert(1)%3C/script%3E")
    talks = [link for link in browser.get("/coverage").links if link.startswith("/coverage/conversation")]
    assert talks
    for talk in talks:
        yield talk
        yield from (link for link in browser.get(talk).links if link.startswith("/coverage"))
    for task in tasks:
        page = browser.get(task)
        yield from (link for link in page.links if "/evidence/" in link or link.startswith("/coverage"))


def test_no_text_becomes_markup_on_any_page(hostile: Browser) -> None:
    seen = set()
    for path in every_page(hostile):
        page = hostile.get(path)
        while any("data-work" in known for _, known in page.elements):
            page = hostile.get(page.path)
        seen.add(page.path.split("?")[0])
        assert page.status in {200, 404}, (path, page.text)
        assert page.faults == [], path
        assert {tag for tag, _ in page.elements} <= TAGS, path
        for tag, known in page.elements:
            assert set(known) <= ATTRIBUTES, (path, tag, known)
            for name in ("href", "src", "action"):
                target = known.get(name, "/") or ""
                assert target.startswith(("/", "#")), (path, target)
                assert not target.startswith(("//", "/\\")), (path, target)
            assert known.get("http-equiv", "refresh") == "refresh"
        assert [known for tag, known in page.elements if tag == "script"] == [
            {"src": "/static/console.js", "defer": None}
        ]
        assert "60481729" not in page.text, path
        if "<textarea" not in page.body:  # in which a person edits the file as it is
            assert not set(page.body) & set("\x1b\x00\x9b\u202e\u2066"), path
    assert len(seen) >= 14


def test_hostile_texts_are_shown_as_what_they_are(hostile: Browser) -> None:
    task = next(link for link in hostile.get("/tasks").links if link.startswith("/tasks/"))
    text = hostile.get(task).text
    for payload in (*PAYLOADS[:7], *PAYLOADS[8:]):
        assert payload in text


def test_hostile_fields_of_forms_change_no_more_than_they_may(hostile: Browser) -> None:
    task = next(link for link in hostile.get("/tasks").links if link.startswith("/tasks/"))
    form = hostile.get(task).form(f"{task}/status")
    for changed in (
        {"status": HOSTILE},
        {"revision": "1; DROP"},
        {"status": "superseded"},
        {"request": "x" * 999},
    ):
        page = hostile.submit(form, **{"status": "completed", **changed})
        assert page.status == 400, changed
        assert {tag for tag, _ in page.elements} <= TAGS
    noted = hostile.submit(form, status="completed", note=HOSTILE)
    assert PAYLOADS[0] in noted.text
    assert [known for tag, known in noted.elements if tag == "script"] == [
        {"src": "/static/console.js", "defer": None}
    ]
