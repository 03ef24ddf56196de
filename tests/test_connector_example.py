"""The example of a connector of one's own: installed by pip, run by the real program over a real service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.lines_server import Fault, LinesServer, install, messages
from tests.project import Project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def server() -> Iterator[LinesServer]:
    with LinesServer(messages(5)) as server:
        yield server


@pytest.fixture
def project(tmp_path: Path, packages: Path, server: LinesServer) -> Project:
    project = Project(tmp_path / "project")
    project.paths = (packages,)
    return project.connect(lines={"id": "news", "url": server.url})


def sync(project: Project, *arguments: str, code: int = 0) -> dict[str, Any]:
    (entry,) = project.document("sync", *arguments, code=code)["connections"]
    found: dict[str, Any] = entry
    return found


def test_an_installed_connector_is_found_and_what_it_brings_is_stored_once(
    project: Project, server: LinesServer
) -> None:
    first = sync(project, "lines/news")
    assert (first["outcome"], first["read"], first["written"], first["requests"]) == ("done", 5, 5, 1)
    server.lines += messages(2, begin=6)
    second = sync(project, "news")
    assert (second["read"], second["written"]) == (2, 2)
    assert [query["after"] for query in server.requests] == ["0", "5"]
    assert project.status()["messages"] == 7


def test_a_line_that_is_not_understood_is_quarantined_and_the_others_go_in(
    project: Project, server: LinesServer
) -> None:
    server.lines.insert(2, "<html>")
    entry = sync(project, code=3)
    assert (entry["read"], entry["written"], entry["quarantined"]) == (6, 5, 1)
    (line,) = project.document("quarantine")["lines"]
    assert (line["file"], line["raw"]) == ("lines/news", "<html>")


def test_its_settings_are_checked_by_its_own_model(project: Project) -> None:
    project.connect(lines={"id": "news", "ulr": "x", "url": "x"})
    error = project.call("connections", code=2).err
    assert "[[connections]] 1 (lines) unknown key `ulr`; the nearest known one is `url`" in error


def test_a_refused_token_stops_it_until_the_token_changes(project: Project, server: LinesServer) -> None:
    server.token = "Bearer right"  # noqa: S105 - of a test
    project.connect(lines={"id": "news", "url": server.url, "secret_env": "NEWS_TOKEN"})
    assert sync(project, code=5)["error"]["class"] == "auth"
    project.environment["NEWS_TOKEN"] = "wrong"  # noqa: S105
    assert sync(project, code=5)["error"]["class"] == "auth"
    refused = sync(project, code=5)
    assert refused["outcome"] == "skipped"
    assert "stopped until configuration or credential changes" in refused["why"]
    asked = len(server.requests)
    project.environment["NEWS_TOKEN"] = "right"  # noqa: S105
    assert sync(project)["outcome"] == "done"
    assert len(server.requests) == asked + 1
    assert "right" not in json.dumps(project.document("connections"))


@pytest.mark.parametrize(
    ("fault", "name"), [(Fault(503), "server"), (Fault(429, {"Retry-After": "7200"}), "rate")]
)
def test_faults_of_the_service_have_their_class_and_the_next_sync_goes_on(
    project: Project, server: LinesServer, fault: Fault, name: str
) -> None:
    server.script.append(fault)
    entry = sync(project, code=1)
    assert (entry["error"]["class"], entry["written"]) == (name, 0)
    (state,) = project.document("connections")["connections"]
    assert (state["state"], state["failures_in_row"]) == ("waiting", 1)
    assert sync(project)["written"] == 5


def test_what_is_too_large_is_asked_for_in_halves_and_that_is_remembered(
    project: Project, server: LinesServer
) -> None:
    server.script += [Fault(413), Fault(413)]
    assert sync(project)["written"] == 5
    assert [query["limit"] for query in server.requests] == ["200", "100", "50"]
    sync(project)
    assert server.requests[-1]["limit"] == "50"


def test_a_spent_budget_pauses_without_a_hole_and_without_a_fault(
    project: Project, server: LinesServer
) -> None:
    server.lines = list(messages(7))
    project.connect(lines={"id": "news", "url": server.url, "daily_items": 3})
    entry = sync(project)
    assert (entry["outcome"], entry["written"], entry["error"]) == ("paused", 3, None)
    assert entry["why"].startswith("paused until ")
    assert entry["more_pending"] is True
    (state,) = project.document("connections")["connections"]
    assert (state["state"], state["budget"]["items_left"]) == ("paused", 0)
    assert sync(project)["outcome"] == "skipped"
    project.connect(lines={"id": "news", "url": server.url, "daily_items": 100})
    assert sync(project)["written"] == 4
    assert [query["after"] for query in server.requests] == ["0", "3"]
    project.connect(lines={"id": "news", "url": server.url, "daily_requests": 1})
    assert sync(project)["outcome"] == "skipped"
