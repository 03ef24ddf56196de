"""Slack's export, zip and folder: what the samples say, and archives that mean harm."""

from __future__ import annotations

import json
import shutil
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from chatproc.core import plan_events
from chatproc.errors import ConfigError
from chatproc.importers import FORMATS, archive
from chatproc.importers.slack_text import attachment_text, block_text, plain_text
from tests.json_exports import SAMPLES, Imported, attachment, fields, read, reasons

CONSTRUCTED = SAMPLES / "slack" / "constructed"
ARCHIVE = SAMPLES / "slack" / "slack-export-viewer_testarchive.zip"
THREAD = SAMPLES / "slack" / "zulip_thread_with_broadcast_reply.json"
LAST_REVISION = (1 << 53) - 1


def said(ts: str, text: str = "x", **members: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    return {"type": "message", "user": "U1", "text": text, "ts": ts, **members}


def files_of(*days: tuple[str, list[dict[str, Any]]], **lists: Any) -> dict[str, str]:  # noqa: ANN401
    users = [{"id": "U1", "name": "an", "profile": {"display_name": "安娜", "real_name": "Anna"}}]
    known = {"channels": [{"id": "C1", "name": "general"}], "users": users, **lists}
    named = {f"{name}.json": json.dumps(value) for name, value in known.items()}
    return named | {f"{name}.json": json.dumps(messages) for name, messages in days}


def folder(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


def zipped(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(name, text)
    return path


def imported(tmp_path: Path, *messages: dict[str, Any], **lists: Any) -> Imported:  # noqa: ANN401
    files = files_of(("general/2026-07-01", list(messages)), **lists)
    return read("slack", folder(tmp_path / "in", files), tmp_path / "out")


def test_the_constructed_sample_reads_as_it_says(tmp_path: Path) -> None:
    events, report = read("slack", CONSTRUCTED, tmp_path)
    bot, slackbot, asked, gone, file, done = events
    assert {json.dumps(event["conversation"]) for event in events} == {
        '{"id": "C1", "name": "general", "type": "channel"}'
    }
    assert fields(bot, "message_key", "sent_at", "text") == (
        "slack::C1:1782871200.000100",
        1782871200,
        "build failed",
    )
    assert bot["sender"] == {"id": "B1", "name": "CI", "role": "bot"}
    assert slackbot["sender"] == {"id": "USLACKBOT", "name": None, "role": "bot"}
    assert fields(asked, "text", "mentions", "state", "revision", "reply_to") == (
        "@U2 ship by Fri & <b> doc (https://e.test)",
        [{"id": "U2", "name": None}],
        "edited",
        1782871300000000,
        None,
    )
    # Neither a display name nor a real name: the account's name is one.
    assert asked["sender"] == {"id": "U1", "name": "a", "role": "user"}
    assert fields(gone, "state", "text", "revision", "sender") == (
        "recalled",
        "",
        LAST_REVISION,
        {"id": None, "name": None, "role": "unknown"},
    )
    assert file["attachments"] == [attachment(state="expired")]
    # Somebody whom the list of users does not know: the id is all there is.
    assert file["sender"] == {"id": "U3", "name": None, "role": "user"}
    assert fields(done, "text", "reply_to") == ("done", asked["message_key"])
    keys = [event["message_key"] for event in events]
    assert [event["sequence"].get("predecessor") for event in events] == [None, *keys[:-1]]
    assert bot["sequence"]["index"] == 1782871200000100
    assert [fields(note, "file", "line", "reason") for note in report.not_understood] == [
        ("general/2026-07-02.json", 10, "no message with a time")
    ]
    assert (report.messages, report.edits, report.recalls) == (6, 1, 1)


def test_a_true_archive_of_two_channels_gives_every_message(tmp_path: Path) -> None:
    """158 messages by counting them in the archive's days; the first ones are of January 2016."""
    events, report = read("slack", ARCHIVE, tmp_path)
    assert (len(events), report.not_understood) == (158, ())
    first = events[0]
    assert fields(first, "message_key", "sent_at", "kind", "text") == (
        "slack::C0JGLMMNX:1452837318.000002",
        1452837318,
        "system",
        "@hamza has joined the channel",
    )
    asked = events[4]
    assert asked["text"].startswith("@abilinski: Created an issue for a setup.py")
    assert asked["mentions"] == [{"id": "U0BMYT2FL", "name": "abilinski"}]
    starts = [event for event in events if "predecessor" not in event["sequence"]]
    assert [event["conversation"]["name"] for event in starts] == ["enrique", "traveling-sailor"]


def test_archive_and_folder_are_the_same_messages(tmp_path: Path) -> None:
    with zipfile.ZipFile(ARCHIVE) as made:
        made.extractall(tmp_path / "unpacked")
    from_zip, _ = read("slack", ARCHIVE, tmp_path / "out")
    from_folder, _ = read("slack", tmp_path / "unpacked", tmp_path / "out")
    assert from_zip == from_folder


def test_an_answer_in_a_thread_on_another_day_and_to_all_names_its_root(tmp_path: Path) -> None:
    thread = json.loads(THREAD.read_text("utf-8"))
    files = files_of(("random/2015-06-12", thread[:1]), ("random/2015-06-13", thread[1:]))
    events, report = read("slack", folder(tmp_path / "in", files), tmp_path / "out")
    root, reply, broadcast = events
    assert root["reply_to"] is None
    assert {reply["reply_to"], broadcast["reply_to"]} == {root["message_key"]}
    assert broadcast["text"] == "everyone should see this"
    assert root["conversation"] == {"id": "random", "name": "random", "type": "unknown"}
    assert reasons(report) == ["a folder that no list of channels names"]


def test_channels_of_every_sort_are_known_by_their_folder(tmp_path: Path) -> None:
    lists = {
        "groups": [{"id": "G1", "name": "secret"}],
        "mpims": [{"id": "G2", "name": "mpdm-a--b-1"}],
        "dms": [{"id": "D1", "members": ["U1", "U2"]}],
    }
    folders = ("general", "secret", "mpdm-a--b-1", "D1")
    files = files_of(*((f"{name}/2026-07-01", [said("1782871200.000001")]) for name in folders), **lists)
    events, report = read("slack", folder(tmp_path / "in", files), tmp_path / "out")
    assert {(event["conversation"]["id"], event["conversation"]["type"]) for event in events} == {
        ("C1", "channel"),
        ("G1", "group"),
        ("G2", "group"),
        ("D1", "private"),
    }
    assert report.not_understood == ()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<@U1>", "@an"),
        ("<@U9>", "@U9"),
        ("<@U9|bo>", "@bo"),
        ("<#C1|general>", "#general"),
        ("<#C1>", "#C1"),
        ("<!here> <!channel> <!everyone>", "@here @channel @everyone"),
        ("<!here|@here>", "@here"),
        ("<!subteam^S1|@ops>", "@ops"),
        ("<!date^1392734382^{date}|18 Feb>", "18 Feb"),
        ("<https://e.test|doc>", "doc (https://e.test)"),
        ("<https://e.test/?a=1&amp;b=2>", "https://e.test/?a=1&b=2"),
        ("<mailto:a@e.test|a@e.test>", "a@e.test"),
        ("a &lt; b &amp;amp; c &gt; d", "a < b &amp; c > d"),
        ("&lt;@U1&gt;", "<@U1>"),
        ("a < b", "a < b"),
    ],
)
def test_markup_reads_as_slack_shows_it(written: str, shown: str) -> None:
    assert plain_text(written, lambda user: {"U1": "an"}.get(user, user)) == shown


def test_mentions_have_ids_and_todays_names_and_everybody_is_all(tmp_path: Path) -> None:
    events, _ = imported(
        tmp_path, said("1782871200.000001", "<@U1> <@U9|bo> <!subteam^S1|@ops> <!here> <!channel>")
    )
    assert events[0]["mentions"] == [
        {"id": "U1", "name": "安娜"},
        {"id": "U9", "name": "bo"},
        {"id": "S1", "name": "ops"},
        {"all": True},
    ]
    assert events[0]["sender"]["name"] == "安娜"


def test_a_new_name_changes_no_message(tmp_path: Path) -> None:
    lines: list[bytes] = []
    for name in ("安娜", "Anna B."):
        users = [{"id": "U1", "name": "an", "profile": {"display_name": name}}]
        files = files_of(("general/2026-07-01", [said("1782871200.000001", "<@U1> 好")]), users=users)
        _, report = read("slack", folder(tmp_path / name, files), tmp_path / "out")
        lines += Path(report.files[0]).read_bytes().splitlines(keepends=True)
    plan = plan_events(lines)
    assert (plan.quarantined, plan.messages) == ([], 1)


def test_a_preview_of_a_link_is_no_part_of_a_message_and_what_an_app_says_is() -> None:
    def same(user: str) -> str:
        return user

    assert attachment_text({"from_url": "https://e.test", "title": "t", "text": "preview"}, same) == ""
    assert (
        attachment_text({"from_url": "https://e.test", "text": "shared", "is_share": True}, same) == "shared"
    )
    assert attachment_text({"fallback": "f"}, same) == "f"
    fields_ = [{"title": "Due", "value": "Fri"}]
    given = {
        "pretext": "p",
        "title": "t",
        "title_link": "u",
        "text": "<@U1>",
        "fields": fields_,
        "fallback": "f",
    }
    assert attachment_text(given, same) == "p\nt (u)\n@U1\nDue: Fri"


def test_rich_text_is_read_where_there_is_no_text(tmp_path: Path) -> None:
    def section(*elements: dict[str, str], kind: str = "section") -> dict[str, Any]:
        return {"type": f"rich_text_{kind}", "elements": list(elements)}

    def words(text: str) -> dict[str, str]:
        return {"type": "text", "text": text}

    user, link = (
        {"type": "user", "user_id": "U1"},
        {"type": "link", "url": "https://e.test?a&b", "text": "form"},
    )
    rich = [
        section(words("Dear "), user, words(", <all> of "), {"type": "broadcast", "range": "channel"}),
        {**section(kind="list"), "elements": [section(link), section(words("sign "), {"name": "ok"})]},
        section(words("by Friday\n"), kind="quote"),
    ]
    blocks = [{"type": "rich_text", "elements": rich}]
    events, report = imported(
        tmp_path,
        said("1782871200.000001", "", blocks=blocks),
        said("1782871200.000002", "what it says", blocks=blocks),
    )
    lines = ["Dear @an, <all> of @channel", "form (https://e.test?a&b)", "sign :ok:", "by Friday"]
    assert events[0]["text"].split("\n") == lines
    assert [mention.get("id") for mention in events[0]["mentions"]] == ["U1", None]
    assert events[1]["text"] == "what it says"
    assert report.not_understood == ()


def test_blocks_of_an_app_are_read_where_the_text_does_not_say_them(tmp_path: Path) -> None:
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Deploy"}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "<@U1> by &lt;Fri&gt;"}},
        {"type": "section", "fields": [{"type": "mrkdwn", "text": "a"}, {"type": "plain_text", "text": "b"}]},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": "c"}]},
        {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "OK"}}]},
        {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": []}]},
    ]
    assert block_text(blocks, lambda _user: "an") == "Deploy\n@an by <Fri>\na\nb\nc\nOK"
    events, _ = imported(tmp_path, said("1782871200.000001", "Notice", blocks=blocks))
    assert events[0]["text"].startswith("Notice\nDeploy\n@an by <Fri>")


@pytest.mark.parametrize(
    ("subtype", "kind", "noted"),
    [
        ("channel_topic", "system", False),
        ("pinned_item", "system", False),
        ("me_message", "message", False),
        ("brand_new", "message", True),
    ],
)
def test_a_subtype_tells_notices_from_messages(
    subtype: str, kind: str, *, noted: bool, tmp_path: Path
) -> None:
    events, report = imported(tmp_path, said("1782871200.000001", "x", subtype=subtype))
    assert (events[0]["kind"], bool(report.not_understood)) == (kind, noted)
    assert events[0]["text"] == ("* x" if subtype == "me_message" else "x")


def test_a_change_and_a_deletion_are_revisions_of_what_they_name(tmp_path: Path) -> None:
    edited = said("1782871200.000001", "new", edited={"user": "U1", "ts": "1782871300.000000"})
    events, report = imported(
        tmp_path,
        said("1782871200.000001", "old"),
        said("1782871200.000002", "b"),
        {"type": "message", "subtype": "message_changed", "ts": "1782871300.000000", "message": edited},
        {"subtype": "message_deleted", "ts": "1782871400.000000", "deleted_ts": "1782871200.000002"},
        said("1782871500.000000", "c"),
    )  # fmt: skip
    assert [fields(event, "message_id", "text", "state") for event in events] == [
        ("1782871200.000001", "old", "normal"),
        ("1782871200.000002", "b", "normal"),
        ("1782871200.000001", "new", "edited"),
        ("1782871200.000002", "", "recalled"),
        ("1782871500.000000", "c", "normal"),
    ]
    assert ["sequence" in event for event in events] == [True, True, False, False, True]
    assert events[4]["sequence"]["predecessor"] == events[1]["message_key"]
    assert (report.edits, report.recalls) == (1, 1)


def test_reactions_and_answers_counted_later_change_nothing(tmp_path: Path) -> None:
    plain = said("1782871200.000001")
    later = {**plain, "reactions": [{"name": "+1", "count": 2}], "reply_count": 3, "replies": [{}]}
    first, _ = imported(tmp_path / "a", plain)
    second, _ = imported(tmp_path / "b", later)
    assert first == second


def test_files_of_a_folder_that_has_them_are_found(tmp_path: Path) -> None:
    described = {"id": "F1", "name": "a.pdf", "mimetype": "application/pdf", "size": 3}
    root = folder(
        tmp_path / "in", files_of(("general/2026-07-01", [said("1782871200.000001", files=[described])]))
    )
    (root / "__uploads" / "F1").mkdir(parents=True)
    (root / "__uploads" / "F1" / "a.pdf").write_bytes(b"abc")
    events, report = read("slack", root, tmp_path / "out")
    assert fields(events[0]["attachments"][0], "name", "mime", "path", "state") == (
        "a.pdf",
        "application/pdf",
        "__uploads/F1/a.pdf",
        "present",
    )
    assert report.attachments_present == 1


@pytest.mark.parametrize("ts", [None, "", "soon", "1.2.3", 1782871200.5, "-1.0", "9" * 40 + ".0"])
def test_a_message_without_a_true_time_is_listed_and_breaks_the_chain(ts: object, tmp_path: Path) -> None:
    events, report = imported(
        tmp_path, said("1782871200.000001"), {**said(""), "ts": ts}, said("1782871200.000003")
    )
    assert len(events) == 2
    assert "predecessor" not in events[1]["sequence"]
    assert reasons(report) == ["no message with a time"]


# ── archives ──────────────────────────────────────────────────────────────────────────────────────────


def hostile(path: Path, *members: tuple[zipfile.ZipInfo | str, str]) -> Path:
    zipped(path, files_of(("general/2026-07-01", [said("1782871200.000001", "good")])))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as made:
        for name, text in members:
            made.writestr(name, text)
    return path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../general/2026-07-02.json", "a name that leads out of the export"),
        ("general/../../2026-07-02.json", "a name that leads out of the export"),
        ("/etc/2026-07-02.json", "a name that leads out of the export"),
        ("C:\\general\\2026-07-02.json", "a name that leads out of the export"),
        ("inner.zip", "an archive in the archive"),
        ("general/deep/2026-07-02.json", "not a day of messages"),
    ],
)
def test_a_name_that_means_harm_is_listed_and_never_read(name: str, reason: str, tmp_path: Path) -> None:
    bad = json.dumps([said("1782871200.000009", "bad")])
    events, report = read("slack", hostile(tmp_path / "x.zip", (name, bad)), tmp_path / "out")
    assert [event["text"] for event in events] == ["good"]
    assert reason in reasons(report)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out", "x.zip"]


def test_a_link_in_an_archive_is_listed_and_never_followed(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("general/2026-07-02.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    events, report = read("slack", hostile(tmp_path / "x.zip", (link, "/etc/passwd")), tmp_path / "out")
    assert [event["text"] for event in events] == ["good"]
    assert reasons(report) == ["a link"]


def test_an_archive_that_would_grow_beyond_measure_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "FREE_BYTES", 1 << 20)
    bomb = hostile(tmp_path / "x.zip", ("general/2026-07-02.json", " " * (8 << 20)))
    with pytest.raises(ConfigError, match="would grow to"):
        read("slack", bomb, tmp_path / "out")
    assert not FORMATS["slack"].recognizes(bomb)


def test_a_damaged_archive_gives_what_can_be_read_and_says_what_not(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    files = files_of(
        ("general/2026-07-01", [said("1782871200.000001", "a" * 5000)]),
        ("general/2026-07-02", [said("1782871300.000001", "good")]),
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as made:
        for name, text in files.items():
            made.writestr(name, text)
    damaged = path.read_bytes().replace(b"aaaaaaaaaa", b"aaaaaaaaab", 1)
    path.write_bytes(damaged)
    events, report = read("slack", path, tmp_path / "out")
    assert events[-1]["text"] == "good"
    assert any("the archive is damaged here" in reason for reason in reasons(report))


def test_an_archive_with_one_folder_around_it_all_is_read(tmp_path: Path) -> None:
    files = files_of(("general/2026-07-01", [said("1782871200.000001")]))
    around = {f"export/{name}": text for name, text in files.items()} | {"__MACOSX/export/._x.json": "?"}
    events, report = read("slack", zipped(tmp_path / "x.zip", around), tmp_path / "out")
    assert len(events) == 1
    assert report.not_understood == ()


def test_a_folder_of_exports_gives_each_of_them(tmp_path: Path) -> None:
    shutil.copy(ARCHIVE, tmp_path / "a.zip")
    shutil.copytree(CONSTRUCTED, tmp_path / "b")
    sources = FORMATS["slack"].find(tmp_path)
    assert [source.name for source in sources] == ["a.zip", "b"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b'{"messages": []}'])
def test_a_file_that_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    assert not FORMATS["slack"].recognizes(path)
    with pytest.raises(ConfigError, match="not a zip archive"):
        read("slack", path, tmp_path / "out")


def test_a_link_that_leads_out_of_a_folder_is_listed_and_never_followed(tmp_path: Path) -> None:
    root = folder(tmp_path / "in", files_of(("general/2026-07-01", [said("1782871200.000001", "good")])))
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps([said("1782871200.000009", "bad")]))
    (root / "general" / "2026-07-02.json").symlink_to(outside)
    events, report = read("slack", root, tmp_path / "out")
    assert [event["text"] for event in events] == ["good"]
    assert reasons(report) == ["a link that leads out of the export"]
