"""Reads an export through the importer as a person would, and says what a valid event is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chatproc.importers import ImportReport, import_chats

SAMPLES = Path(__file__).parent / "samples"
Imported = tuple[list[dict[str, Any]], ImportReport]

STATES = {"normal", "edited", "recalled"}
ROLES = {"user", "self", "bot", "system", "unknown"}
TYPES = {"group", "private", "channel", "thread", "mailbox", "unknown"}
PLATFORMS = {"wechat", "slack", "discord", "feishu", "matrix", "qq", "telegram", "unknown"}


def read(form: str, path: Path, out: Path, **settings: Any) -> Imported:  # noqa: ANN401 - passed on
    report = import_chats(form, [path], out=out, **settings)
    assert len(report.files) == 1
    return [json.loads(line) for line in Path(report.files[0]).read_text("utf-8").splitlines()], report


def fields(event: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(event[name] for name in names)


def reasons(report: ImportReport) -> list[str]:
    return [note["reason"] for note in report.not_understood]


def attachment(number: int = 1, **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    absent = {"mime": None, "size": None, "sha256": None, "path": None, "state": "not_exported"}
    return {"id": f"a{number}", "name": None, **absent, **members}


def assert_valid(event: dict[str, Any]) -> None:
    """The bounds of `chatproc.event/1`, written from its page, not from the importers."""
    assert event["schema"] == "chatproc.event/1"
    assert 1 <= len(event["event_id"]) <= 256
    assert 1 <= len(event["message_key"]) <= 512
    assert type(event["revision"]) is int
    assert 0 <= event["revision"] < 1 << 53
    assert event["state"] in STATES
    assert event["kind"] in {"message", "system"}
    assert event["platform"] in PLATFORMS
    assert isinstance(event["account_id"], str)
    assert event["conversation"]["id"]
    assert event["conversation"]["type"] in TYPES
    assert event["sent_at"] >= 0
    assert event["sender"]["role"] in ROLES
    assert {type(event["sender"]["id"]), type(event["sender"]["name"])} <= {str, type(None)}
    assert isinstance(event["text"], str)
    for mention in event["mentions"]:
        assert mention == {"all": True} or (set(mention) == {"id", "name"} and any(mention.values()))
    for found in event["attachments"]:
        assert found["id"]
        assert found["state"] in {"present", "missing", "not_exported", "expired"}
        assert (found["path"] is None) == (found["state"] != "present")
        assert not (found["path"] or "").startswith(("/", ".."))
    if event["state"] == "recalled":
        assert (event["text"], event["attachments"]) == ("", [])
