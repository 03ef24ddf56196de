"""`publish`: what is written where, what comes back, and that nothing of a person's is lost or done twice."""

from __future__ import annotations

import os
import re
import shutil
import socket
import threading
import tracemalloc
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

import chatproc
from chatproc import (
    get_task,
    list_tasks,
    load_config,
    task_history,
    update_task_priority,
    update_task_status,
)
from chatproc.errors import ChatprocError
from chatproc.publishing import dav
from chatproc.publishing.items import There
from chatproc.shapes import FORMATS, shape
from tests import sse
from tests.project import Project, chat
from tests.radicale_server import PASSWORD, USER, Radicale
from tests.test_shapes import task, todos

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chatproc.config import Config

TEXTS = ("周五前交报告", "把 [[表]] 发给 #全体", "带上\u202e钥匙; a,b\\N", "- [x] 打印 ^chatproc-a")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A store with a task of each text."""
    with sse.ModelServer(sse.one_task_each) as server:
        project = Project(tmp_path_factory.mktemp("publish") / "p", server.base_url)
        chats = [chat(name, text) for name, text in zip("abcd", TEXTS, strict=True)]
        project.batch("a.jsonl", *(line for messages in chats for line in messages))
        project.once()
    assert len(tasks(project)) == len(TEXTS)
    return project


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    shutil.copytree(made.root, tmp_path / "p")
    return Project(tmp_path / "p")


@pytest.fixture
def radicale(project: Project) -> Iterator[Radicale]:
    with Radicale() as server:
        target = {"kind": "caldav", "name": "phone", "url": f"{server.url}/", "user": USER}
        project.targets({**target, "secret_env": "NO_SUCH_NAME", "secret_file": "password"})
        write_password(project, PASSWORD)
        yield server


def write_password(project: Project, password: str) -> None:
    file = project.root / "password"
    file.write_text(password, encoding="utf-8")
    file.chmod(0o600)


def config_of(project: Project) -> Config:
    return load_config(project.root / "config" / "processor.toml")


def publish(project: Project, code: int = 0) -> dict[str, Any]:
    """The entry of the one target."""
    report = chatproc.publish(config_of(project))
    assert report.exit_code == code
    (entry,) = report.targets
    return entry


def tasks(project: Project) -> list[dict[str, Any]]:
    return [task.to_dict() for task in list_tasks(config_of(project), limit=1000)]


def decide(project: Project, task_id: str, status: str) -> None:
    """What `done`, `cancel` and `reopen` do."""
    update_task_status(config_of(project), task_id, status, request_id=uuid4().hex, actor="me")


def raise_priority(project: Project, task_id: str) -> None:
    update_task_priority(config_of(project), task_id, "P0", request_id=uuid4().hex, actor="me")


def told(entry: dict[str, Any]) -> tuple[int, int, int]:
    return entry["writes"], entry["returned"], entry["left"]


def statuses(project: Project) -> list[str]:
    return sorted(task["status"] for task in tasks(project))


def id_of(name: str) -> str:
    return f"t_{name.removeprefix('chatproc-').removesuffix('.ics')}"


# ── a list of a server ─────────────────────────────────────────────────────────────────────────────────


def test_tasks_are_created_once_and_an_unchanged_list_costs_one_request(
    project: Project, radicale: Radicale
) -> None:
    assert told(publish(project)) == (4, 0, 0)
    assert radicale.asked == {"REPORT": 1, "PUT": 4}
    written = {str(todos(text)[0]["uid"]): text for text in radicale.texts().values()}
    assert set(written) == {f"{task['task_id']}@chatproc" for task in tasks(project)}
    assert any("SUMMARY:带上钥匙\\; a\\,b\\\\N" in text for text in written.values())
    radicale.asked.clear()
    entry = publish(project)
    assert (told(entry), entry["tasks"], entry["requests"]) == ((0, 0, 0), 4, 1)
    assert radicale.asked == {"REPORT": 1}


def test_a_lost_memory_costs_reading_and_no_write(project: Project, radicale: Radicale) -> None:
    publish(project)
    shutil.rmtree(project.state.parent / "published")
    radicale.asked.clear()
    assert told(publish(project)) == (0, 0, 0)
    assert radicale.asked == {"REPORT": 2}
    publish(project)
    assert radicale.asked == {"REPORT": 3}


def test_a_task_completed_there_is_completed_here_once(project: Project, radicale: Radicale) -> None:
    publish(project)
    name = radicale.names()[0]
    radicale.complete(name)
    assert told(publish(project)) == (1, 1, 0)
    (entry,) = [entry for entry in tasks(project) if entry["task_id"] == id_of(name)]
    assert (entry["status"], entry["status_by"], entry["revision"]) == ("completed", "user", 2)
    (todo,) = todos(radicale.texts()[name])
    assert (todo["status"], str(todo["x-chatproc-revision"])) == ("COMPLETED", "2")
    assert todo["completed"].to_ical() == b"20260708T010203Z"  # as the person's program had it
    radicale.asked.clear()
    assert told(publish(project)) == (0, 0, 0)
    assert radicale.asked == {"REPORT": 1}


def test_a_decision_made_here_is_shown_there_both_ways(project: Project, radicale: Radicale) -> None:
    publish(project)
    name = radicale.names()[0]
    for here, status in (("cancelled", "CANCELLED"), ("completed", "COMPLETED"), ("open", "NEEDS-ACTION")):
        decide(project, id_of(name), here)
        assert told(publish(project)) == (1, 0, 0)
        (todo,) = todos(radicale.texts()[name])
        assert todo["status"] == status
        assert ("completed" in todo) == (status == "COMPLETED")


def test_reopening_there_comes_back_although_a_user_completed_it_here(
    project: Project, radicale: Radicale
) -> None:
    publish(project)
    name = radicale.names()[0]
    decide(project, id_of(name), "completed")
    publish(project)
    radicale.edit(name, ("STATUS:COMPLETED", "STATUS:IN-PROCESS"), ("COMPLETED:[^\r]*\r\n", ""))
    assert told(publish(project)) == (1, 1, 0)
    assert statuses(project) == ["open"] * 4
    assert "STATUS:IN-PROCESS" in radicale.texts()[name]


def test_where_both_sides_decided_what_was_set_there_stands_and_both_are_in_the_history(
    project: Project, radicale: Radicale
) -> None:
    publish(project)
    name = radicale.names()[0]
    decide(project, id_of(name), "cancelled")
    radicale.complete(name)
    assert told(publish(project)) == (1, 1, 0)
    history = task_history(config_of(project), id_of(name))
    assert [past.task["status"] for past in history] == ["open", "cancelled", "completed"]
    assert "publish/phone" in history[-1].actor


def test_what_a_program_counts_further_or_drops_is_no_decision(project: Project, radicale: Radicale) -> None:
    publish(project)
    dropped, counted = radicale.names()[:2]
    decide(project, id_of(dropped), "completed")
    decide(project, id_of(counted), "completed")
    radicale.edit(dropped, ("X-CHATPROC-REVISION:1\r\n", ""), ("SUMMARY:", "SUMMARY:mine "))
    radicale.edit(counted)
    publish(project)
    assert statuses(project) == ["completed", "completed", "open", "open"]


def test_words_and_alarms_of_a_person_stay_until_the_same_field_changes_here(
    project: Project, radicale: Radicale
) -> None:
    publish(project)
    name = radicale.names()[0]
    alarm = "BEGIN:VALARM\r\nACTION:DISPLAY\r\nDESCRIPTION:长\\nn\r\nTRIGGER:-PT1H\r\nEND:VALARM\r\n"
    radicale.edit(
        name,
        ("SUMMARY:[^\r]*", "SUMMARY:我的\\\\N说法"),
        ("END:VTODO", f'{alarm}X-MINE;A="b:c":d\r\nEND:VTODO'),
    )
    assert told(publish(project)) == (0, 0, 0)
    raise_priority(project, id_of(name))
    assert told(publish(project)) == (1, 0, 0)
    text = radicale.texts()[name]
    assert "SUMMARY:我的\\\\N说法\r\n" in text
    assert "PRIORITY:1\r\n" in text
    assert "ACTION:DISPLAY" in text
    assert "X-MINE" in text


def test_what_was_deleted_there_comes_back_only_when_it_changes(project: Project, radicale: Radicale) -> None:
    publish(project)
    name = radicale.names()[0]
    radicale.delete(name)
    assert told(publish(project)) == (0, 0, 0)
    assert len(radicale.names()) == 3
    decide(project, id_of(name), "completed")
    assert told(publish(project)) == (0, 0, 0)
    decide(project, id_of(name), "open")
    assert told(publish(project)) == (1, 0, 0)
    assert name in radicale.names()


def test_files_of_others_on_the_list_are_left_alone(project: Project, radicale: Radicale) -> None:
    radicale.request("PUT", "mine.ics", shape([task("我的")], "ics").replace("@chatproc", "@mine"))
    before = radicale.texts()
    publish(project)
    publish(project)
    assert radicale.texts()["mine.ics"] == before["mine.ics"]


def test_a_server_that_goes_down_midway_loses_nothing_and_writes_nothing_twice(
    project: Project, radicale: Radicale
) -> None:
    radicale.before = lambda method: "503 Down" if radicale.asked["PUT"] > 2 and method == "PUT" else None
    entry = publish(project, code=1)
    assert (told(entry), entry["outcome"], len(radicale.names())) == ((2, 0, 0), "failed", 2)
    radicale.before = lambda _: None
    radicale.asked.clear()
    assert told(publish(project)) == (2, 0, 0)
    assert radicale.asked["PUT"] == 2


def test_a_task_that_the_server_cannot_take_keeps_no_other_from_its_turn(
    project: Project, radicale: Radicale
) -> None:
    radicale.before = lambda method: "500 No" if method == "PUT" and radicale.asked["PUT"] == 2 else None
    entry = publish(project, code=3)
    assert (told(entry), entry["outcome"]) == ((3, 0, 1), "part")
    assert told(publish(project)) == (1, 0, 0)


def test_a_wrong_or_missing_password_is_exit_5_and_told_nowhere(project: Project, radicale: Radicale) -> None:
    write_password(project, "wrong-and-secret")
    done = project.call("publish", "-vv", code=5)
    assert "refuses user or password" in done.out
    assert "wrong-and-secret" not in done.out + done.err
    assert radicale.asked == {"REPORT": 1}
    (project.root / "password").unlink()
    entry = publish(project, code=5)
    assert "environment variable NO_SUCH_NAME" in entry["error"]["text"]
    project.call("check", code=5)
    assert radicale.asked == {"REPORT": 1}


def test_a_server_that_repeats_the_password_makes_nobody_else_repeat_it(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = f"http://127.0.0.1:{listening.getsockname()[1]}/l"
        target = {"kind": "caldav", "name": "phone", "url": place, "user": USER, "secret_file": "password"}
        project.targets(target)
        write_password(project, PASSWORD)
        running = project.start("publish", "-vv")
        listening.settimeout(60)
        peer, _ = listening.accept()
        with peer:
            asked = peer.recv(65536).decode()
            (login,) = re.findall(r"authorization: Basic (\S+)", asked, re.IGNORECASE)
            peer.sendall(f"HTTP/1.1 {PASSWORD} {login}\r\n\r\n".encode())
        done = running.wait()
    assert done.code == 1
    assert b64decode(login).decode() == f"{USER}:{PASSWORD}"
    said = done.out + done.err
    assert not [part for part in (PASSWORD, *PASSWORD.split(), login[8:-4]) if part in said]


def test_no_redirect_is_followed(project: Project, radicale: Radicale) -> None:
    radicale.before = lambda _: "302 Found"
    entry = publish(project, code=1)
    assert "redirects" in entry["error"]["text"]
    assert radicale.asked.total() == 1


def test_a_list_that_is_not_there_says_what_url_must_be(project: Project, radicale: Radicale) -> None:
    lost = {"kind": "caldav", "name": "phone", "url": f"{radicale.origin}/{USER}/no", "user": USER}
    project.targets({**lost, "secret_file": "password"})
    entry = publish(project, code=1)
    assert "address of the list" in entry["error"]["hint"]


def test_who_edits_at_the_same_moment_is_not_overwritten(project: Project, radicale: Radicale) -> None:
    publish(project)
    name = radicale.names()[0]
    raise_priority(project, id_of(name))

    def edit_first(method: str) -> None:
        if method == "PUT":
            radicale.before = lambda _: None
            radicale.edit(name, ("SUMMARY:[^\r]*", "SUMMARY:mine"))

    radicale.before = edit_first
    assert told(publish(project, code=3)) == (0, 0, 1)
    assert "SUMMARY:mine" in radicale.texts()[name]
    assert told(publish(project)) == (1, 0, 0)
    assert "SUMMARY:mine" in radicale.texts()[name]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_midway_the_next_publish_does_the_rest_and_nothing_twice(
    project: Project, radicale: Radicale, moment: str
) -> None:
    publish(project)
    for name in radicale.names():
        radicale.complete(name)
    radicale.asked.clear()
    reached, gone = threading.Event(), threading.Event()

    def hold(method: str) -> str | None:
        if method != "PUT" or radicale.asked["PUT"] != 2:
            return None
        reached.set()
        gone.wait(60)
        return "503 Lost"

    setattr(radicale, moment, hold)
    running = project.start("publish")
    assert reached.wait(60)
    running.kill()
    gone.set()
    assert statuses(project).count("completed") == 2
    assert sum(told(publish(project))) == (2 if moment == "after" else 3) + 2
    assert statuses(project) == ["completed"] * 4
    assert [entry["revision"] for entry in tasks(project)] == [2] * 4
    assert all("X-CHATPROC-REVISION:2\r\n" in text for text in radicale.texts().values())
    radicale.asked.clear()
    assert told(publish(project)) == (0, 0, 0)
    assert radicale.asked["PUT"] == 0


# ── what a server says ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content",
    [
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b"<a>",
        b"",
        b"\xff\xfe\x00",
        b'<?xml version="1.0" encoding="none"?><a/>',
        b"<a>" * 10_000 + b"</a>" * 10_000,
    ],
)
def test_xml_that_declares_or_breaks_is_refused(content: bytes) -> None:
    with pytest.raises(ChatprocError, match="no XML"):
        list(dav._responses(content, "x"))


def test_of_the_addresses_of_a_server_only_names_are_read() -> None:
    hrefs = ("http://evil/chatproc-a.ics", "/x/../../chatproc-b.ics", "/x/..%2fc.ics", "/d%0d%0ae.ics", "/x/")
    of_one = '<response><href>{}</href><getetag>"a	b"</getetag></response>'
    listed = "".join(of_one.format(href) for href in hrefs)
    found = dict(dav._responses(f'<m xmlns="DAV:">{listed}</m>'.encode(), "x"))
    assert set(found) == {"chatproc-a.ics", "chatproc-b.ics", "c.ics"}
    assert {item.etag for item in found.values()} == {""}


def test_of_xml_only_what_is_told_of_files_is_kept() -> None:
    content = b"<a>b</a>" * 200_000
    tracemalloc.start()
    assert list(dav._responses(b'<m xmlns="urn:x">' + content + b"</m>", "x")) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * len(content)


def test_an_answer_that_never_ends_ends_the_publish(
    project: Project, radicale: Radicale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dav, "_LONGEST", -1.0)
    assert "takes over" in publish(project, code=1)["error"]["text"]
    assert radicale.asked.total() == 1


@pytest.mark.parametrize(
    ("listed", "given", "put", "said", "requests"),
    [
        (False, "", "429 Slow down", "answered 429", 2),
        (False, "", "507 Full", "", 5),
        (True, "", "", "", 2),
        (True, "BEGIN:VCALENDAR", "", "", 2),
    ],
)
def test_a_server_that_gives_or_takes_nothing_is_told(  # noqa: PLR0913 - a table
    project: Project, *, listed: bool, given: str, put: str, said: str, requests: int
) -> None:
    """What is about the server ends the publish; what is about a task leaves that task."""
    files = "".join(
        f'<response><href>/l/chatproc-{one["task_id"][2:]}.ics</href><propstat><prop><getetag>"a"</getetag>'
        f'<calendar-data xmlns="urn:ietf:params:xml:ns:caldav">{given}</calendar-data></prop>'
        f"<status>HTTP/1.1 999 Hm</status></propstat></response>"
        for one in tasks(project)
        if listed
    )

    class Answers(BaseHTTPRequestHandler):
        def do_REPORT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(f'HTTP/1.0 207 Hm\r\n\r\n<m xmlns="DAV:">{files}</m>'.encode())

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(f"HTTP/1.0 {put}\r\nContent-Length: 0\r\n\r\n".encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        try:
            target = {"kind": "caldav", "name": "phone", "url": f"http://127.0.0.1:{server.server_port}/l"}
            project.targets(target)
            entry = publish(project, code=1 if said else 3)
        finally:
            server.shutdown()
    assert said in ((entry["error"] or {}).get("text") or "")
    assert (entry["writes"], entry["requests"]) == (0, requests)
    assert entry["left"] == (0 if said else len(TEXTS))


TEXT = shape([task("交报告")], "ics")
ID = "t_mzxw6ytboi2xk4tsnf3gk3dpne"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "BEGIN:VTODO",
        TEXT.replace("@chatproc", "@x"),
        TEXT + TEXT,
        "END:VTODO\r\nBEGIN:VTODO\r\n",
        "\x00\r\n :",
    ],
)
def test_a_calendar_that_is_not_the_task_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="task"):
        There(text, ID)


def test_a_field_that_changed_here_is_written_and_the_others_stay() -> None:
    mine = TEXT.replace("SUMMARY:交报告", "SUMMARY:mine").replace("LOCATION:交报告", 'LOCATION;X="a:b":mine')
    newer = task("交报告", due="2026-07-13")
    newer.record["location"] = "302"
    text = There(mine, ID).with_revision(task("交报告"), newer)
    assert "SUMMARY:mine\r\n" in text
    assert "LOCATION:302\r\n" in text
    assert "DUE;VALUE=DATE:20260713\r\n" in text
    assert There(mine, ID).with_revision(None, newer).count("SUMMARY:交报告") == 1
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))


# ── a note ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def note(project: Project) -> Path:
    project.targets({"kind": "markdown", "name": "vault", "file": "vault/todo.md"})
    return project.root / "vault" / "todo.md"


def tick(note: Path, number: int, box: str) -> str:
    """Write into the n-th box; the id of its task."""
    lines = note.read_text().split("\n")
    at = [place for place, line in enumerate(lines) if re.match(r"- \[.\] ", line)][number]
    lines[at] = f"- [{box}] {lines[at][6:]}"
    note.write_text("\n".join(lines))
    return "t_" + lines[at].split("^chatproc-")[-1].split()[0]


def status_of(project: Project, task_id: str) -> str:
    return get_task(config_of(project), task_id).status


def test_lines_outside_the_marks_stay_and_what_is_unchanged_is_not_written(
    project: Project, note: Path
) -> None:
    note.parent.mkdir()
    note.write_text("# 我的\n- [ ] mine ^mine")
    note.chmod(0o640)
    assert told(publish(project)) == (1, 0, 0)
    text = note.read_text()
    assert text.startswith("# 我的\n- [ ] mine ^mine\n\n<!-- chatproc:begin vault -->\n- [ ] ")
    assert text.endswith("<!-- chatproc:end vault -->\n")
    assert len(re.findall(r"\^chatproc-[a-z2-7]{26}$", text, re.MULTILINE)) == 4
    assert note.stat().st_mode & 0o777 == 0o640
    note.write_text(text + "below\r\n")
    before = note.stat()
    assert told(publish(project)) == (0, 0, 0)
    assert (note.stat().st_ino, note.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    decide(project, tasks(project)[0]["task_id"], "completed")
    assert told(publish(project)) == (1, 0, 0)
    assert note.read_bytes().startswith("# 我的\n- [ ] mine ^mine\n\n<!--".encode())
    assert note.read_bytes().endswith(b"-->\nbelow\r\n")


def test_boxes_come_back_each_once(project: Project, note: Path) -> None:
    publish(project)
    done, off = tick(note, 0, "x"), tick(note, 1, "-")
    assert told(publish(project)) == (1, 2, 0)
    assert (status_of(project, done), status_of(project, off)) == ("completed", "cancelled")
    assert told(publish(project)) == (0, 0, 0)
    boxes = [line[3] for line in note.read_text().split("\n") if line.startswith("- [")]
    assert boxes.count(" ") == 2
    assert boxes[:2] == [" ", " "]  # open ones first
    tick(note, 2, " ")
    assert told(publish(project)) == (1, 1, 0)
    assert statuses(project).count("open") == 3


def test_a_box_that_nobody_touched_undoes_nothing_that_was_decided_here(project: Project, note: Path) -> None:
    publish(project)
    shown = note.read_text()
    ids = [task["task_id"] for task in tasks(project)]
    decide(project, ids[0], "completed")
    decide(project, ids[1], "cancelled")
    assert told(publish(project)) == (1, 0, 0)
    note.write_text(shown)  # an older copy, as a slow synchronisation brings it
    assert told(publish(project)) == (1, 0, 0)
    note.write_text(re.sub(r", r\d\)", ")", shown))  # without the revisions
    assert told(publish(project)) == (1, 0, 0)
    assert (status_of(project, ids[0]), status_of(project, ids[1])) == ("completed", "cancelled")


def test_what_plugins_add_behind_the_id_and_foreign_ids_hurt_nothing(project: Project, note: Path) -> None:
    publish(project)
    tick(note, 0, "x")
    text = re.sub(r"(- \[x\].*)", r"\1 ✅ 2026-07-08", note.read_text())
    foreign = f"- [x] other (P1, r1) ^chatproc-{'a' * 26}\n"
    note.write_text(text.replace("<!-- chatproc:end", f"{foreign}<!-- chatproc:end"))
    assert told(publish(project)) == (1, 1, 0)
    assert foreign not in note.read_text()


@pytest.mark.parametrize(
    ("box", "end"), [("> - [", "\n"), (">\t> * [", "\n"), ("12. [", "\n"), ("\t+ [", "\n"), ("- [", "\r\n")]
)
def test_a_box_is_read_however_a_person_set_the_list(
    project: Project, note: Path, box: str, end: str
) -> None:
    publish(project)
    done = tick(note, 0, "x")
    text = re.sub(r"(?m)^- \[", box, note.read_text()).replace("\n", end)
    note.write_bytes(text.encode())
    assert told(publish(project)) == (1, 1, 0)
    assert status_of(project, done) == "completed"
    assert told(publish(project)) == (0, 0, 0)


@pytest.mark.parametrize(
    "content",
    [
        b"<!-- chatproc:begin vault -->\nmine\n",
        b"<!-- chatproc:end vault -->\n<!-- chatproc:begin vault -->\n",
        b"<!-- chatproc:begin vault -->\n<!-- chatproc:begin vault -->\n<!-- chatproc:end vault -->\n",
        "不".encode("gbk"),
    ],
)
def test_a_note_that_cannot_be_read_is_left_as_it_is(project: Project, note: Path, content: bytes) -> None:
    note.parent.mkdir()
    note.write_bytes(content)
    assert publish(project, code=1)["outcome"] == "failed"
    assert note.read_bytes() == content


# ── a calendar file, and several targets ───────────────────────────────────────────────────────────────


def test_a_feed_has_what_is_open_or_ended_lately_and_is_written_when_that_changes(
    project: Project,
) -> None:
    project.targets(
        {"kind": "ics", "name": "feed", "file": "feed.ics", "keep_days": 1},
        {"kind": "ics", "name": "ever", "file": "ever.ics", "keep_days": 10**9},
    )
    feed = project.root / "feed.ics"
    decide(project, tasks(project)[0]["task_id"], "completed")
    assert [told(entry) for entry in chatproc.publish(config_of(project)).targets] == [(1, 0, 0)] * 2
    assert (
        sorted(str(todo["status"]) for todo in todos(feed.read_text()))
        == ["COMPLETED"] + ["NEEDS-ACTION"] * 3
    )
    inode = feed.stat().st_ino
    assert [told(entry) for entry in chatproc.publish(config_of(project)).targets] == [(0, 0, 0)] * 2
    assert feed.stat().st_ino == inode


@pytest.mark.parametrize(
    "mine", [b"BEGIN:VCALENDAR\r\nPRODID:-//Me//EN\r\nEND:VCALENDAR\r\n", b"# Notes\n", b"\x00\xff"]
)
def test_a_feed_replaces_no_file_of_somebody_else(project: Project, mine: bytes) -> None:
    project.targets({"kind": "ics", "name": "feed", "file": "feed.ics"})
    feed = project.root / "feed.ics"
    feed.write_bytes(mine)
    entry = publish(project, code=1)
    assert "no calendar of chatproc" in entry["error"]["text"]
    assert feed.read_bytes() == mine
    feed.write_bytes(b"")
    assert told(publish(project)) == (1, 0, 0)


@pytest.mark.parametrize("kind", ["ics", "markdown"])
def test_what_is_no_file_is_told_in_words_and_stays(project: Project, kind: str) -> None:
    project.targets({"kind": kind, "name": "a", "file": "place"})
    place = project.root / "place"
    for make, undo in ((Path.mkdir, Path.rmdir), (os.mkfifo, Path.unlink), (_link_to_itself, Path.unlink)):
        make(place)
        before = place.lstat()
        text = publish(project, code=1)["error"]["text"]
        assert str(place) in text
        assert "Errno" not in text
        assert place.lstat().st_ino == before.st_ino
        undo(place)
    place.symlink_to(project.root / "elsewhere" / "there")
    assert told(publish(project)) == (1, 0, 0)
    assert place.is_symlink()


def _link_to_itself(place: Path) -> None:
    place.symlink_to(place)


def test_a_target_that_fails_keeps_no_other_from_its_turn(project: Project, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    project.targets(
        {"kind": "ics", "name": "broken", "file": str(tmp_path / "file" / "feed.ics")},
        {"kind": "markdown", "name": "vault", "file": "todo.md"},
    )
    document = project.document("publish", code=3)
    assert [entry["outcome"] for entry in document["targets"]] == ["failed", "done"]
    assert project.document("publish", "vault")["targets"][0]["name"] == "vault"
    assert "vault" in project.call("publish", "nowhere", code=2).err


def test_without_a_store_or_a_target_nothing_is_lost(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    assert project.document("publish") == {"targets": []}
    project.targets({"kind": "markdown", "name": "vault", "file": "todo.md"})
    assert told(publish(project)) == (1, 0, 0)
    assert not project.state.exists()


# ── tasks on stdout ────────────────────────────────────────────────────────────────────────────────────


def test_a_page_of_tasks_is_written_in_every_format_and_nothing_else_with_it(made: Project) -> None:
    page = list_tasks(config_of(made), status="open", limit=3)
    for form in FORMATS:
        done = made.call("tasks", "--status", "open", "--limit", "3", "--format", form)
        assert done.out == shape(page, form).replace("\r\n", "\n")
        assert page.next_cursor is not None
        assert page.next_cursor in done.err
    assert made.call("tasks", "--format", "json").document == made.document("tasks")
    assert "leave one out" in made.call("tasks", "--json", "--format", "csv", code=2).err
