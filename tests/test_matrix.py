"""Rooms of a real Synapse: every message once, its last revision, in one chain where the server proves it."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from chatproc.config import load_config
from chatproc.connectors.matrix import TOOLKIT
from chatproc.core import plan_events
from chatproc.errors import ConfigError
from chatproc.importers import import_chats
from tests import synapse
from tests.pulls import Puller, Purse
from tests.synapse import Person, Synapse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(synapse.why_not() is not None, reason=str(synapse.why_not()))

ONE_CHAIN = {"max_messages": 100_000, "max_conversation_chars": 10_000_000, "max_input_chars": 20_000_000}


@pytest.fixture(scope="module")
def server() -> Iterator[Synapse]:
    with Synapse() as running:
        yield running


@pytest.fixture
def wang(server: Synapse) -> Person:
    return server.person("wang")


@pytest.fixture
def reader(server: Synapse) -> Person:
    return server.person("reader")


def puller(person: Person, *, since: int = 0, **more: Any) -> Puller:  # noqa: ANN401 - any key
    settings = {"toolkit": "matrix", "id": "rooms", "homeserver": person.server.url, "user": person.user}
    return Puller(TOOLKIT, {**settings, **more}, person.token, since)


def newest(pull: Puller) -> dict[str, dict[str, Any]]:
    """The last revision of each message by its key, as the store settles it."""
    found: dict[str, dict[str, Any]] = {}
    for event in sorted(pull.events, key=lambda event: event["revision"]):
        if event["kind"] == "message":
            found[event["message_key"]] = event
    return found


def texts(pull: Puller) -> list[str]:
    return [event["text"] for event in newest(pull).values()]


def chains(pull: Puller) -> list[list[str]]:
    """Message keys of each segment: what is proven to be contiguous."""
    return [segment["messages"] for segment in plan_events(pull.lines, ONE_CHAIN).segments]


def key(event_id: str) -> str:
    return f"matrix:{event_id}"


def test_a_gap_of_a_thousand_messages_is_closed_into_one_chain(wang: Person, reader: Person) -> None:
    room = wang.new_room(reader, name="实验室")
    first = wang.say(room, "first")
    pull = puller(reader)
    assert pull.run() is None
    sent = wang.say_many(room, [f"m{number}" for number in range(1000)])
    last = wang.say(room, "last")

    purse = Purse()
    assert pull.run(purse) is None

    assert set(newest(pull)) == {key(event) for event in (first, *sent, last)}
    assert purse.used < 15
    (chain,) = chains(pull)
    assert (chain[0], chain[-1], len(chain)) == (key(first), key(last), 1002)
    assert not pull.quarantined
    lines = len(pull.lines)
    pull.run()
    assert len(pull.lines) == lines


def test_a_cap_inside_a_gap_leaves_no_hole_and_links_nothing_across_it(wang: Person, reader: Person) -> None:
    room = wang.new_room(reader)
    sent = [wang.say(room, "begin")]
    pull = puller(reader)
    pull.run()
    for _ in range(3):  # each run is capped, so that gaps lie above gaps
        sent += [wang.say(room, f"m{number}") for number in range(12)]
        pull.run(Purse(requests=2, page=4))
    assert len(pull.cursor["rooms"][room]["gaps"]) == 3
    order = [key(event) for event in sent]
    for chain in chains(pull):
        at = order.index(chain[0])
        assert chain == order[at : at + len(chain)], "what is linked is contiguous"
    assert len(chains(pull)) == 4

    while pull.cursor["rooms"][room]["gaps"]:
        pull.run(Purse(requests=3, page=4))

    assert chains(pull) == [order]
    assert not pull.quarantined


def test_the_last_edit_counts_in_whatever_order_deliveries_come(wang: Person, reader: Person) -> None:
    room = wang.new_room(reader)
    first = wang.say(room, "周五交报告")
    pull = puller(reader)
    pull.run()
    wang.edit(room, first, "周四交报告")
    pull.run()
    wang.edit(room, first, "周三交报告")
    pull.run()

    revisions = [event for event in pull.events if event["message_key"] == key(first)]
    assert [event["text"] for event in revisions] == ["周五交报告", "周四交报告", "周三交报告"]
    assert sorted(event["revision"] for event in revisions) == [event["revision"] for event in revisions]
    plans = [plan_events(order, ONE_CHAIN).segments for order in itertools.permutations(pull.lines[-3:])]
    assert all(plan == plans[0] for plan in plans)
    assert texts(pull) == ["周三交报告"]


def test_an_edit_of_anothers_message_is_refused_and_listed(wang: Person, reader: Person) -> None:
    room = wang.new_room(reader)
    first = wang.say(room, "the truth")
    pull = puller(reader)
    pull.run()
    reader.edit(room, first, "a lie")
    pull.run()
    assert texts(pull) == ["the truth"]
    (refused,) = pull.quarantined
    assert json.loads(pull.lines[refused["line"] - 1])["content"]["body"] == "* a lie"

    own = wang.say(room, "mine")
    wang.edit(room, own, "mine, better")
    wang.edit(room, first, "the whole truth")
    pull.run()
    assert texts(pull) == ["the whole truth", "mine, better"]


def test_a_redaction_recalls_whether_the_text_was_seen_or_not(wang: Person, reader: Person) -> None:
    room = wang.new_room(reader)
    seen, unseen = wang.say(room, "seen"), wang.say(room, "unseen")
    wang.redact(room, unseen)
    pull = puller(reader)
    pull.run()
    wang.redact(room, seen)
    pull.run()

    assert b"unseen" not in b"".join(pull.lines)
    states = {name: (event["state"], event["text"]) for name, event in newest(pull).items()}
    assert states == {key(seen): ("recalled", ""), key(unseen): ("recalled", "")}
    again = puller(reader)
    again.run()
    assert not plan_events([*pull.lines, *again.lines]).quarantined, "it is the same revision"


def test_a_redacted_edit_gives_the_text_before_it_back(wang: Person, reader: Person) -> None:
    room = wang.new_room(reader)
    first = wang.say(room, "周五")
    edits = [wang.edit(room, first, "周四"), wang.edit(room, first, "周三")]
    pull = puller(reader)
    pull.run()
    assert texts(pull) == ["周三"]
    wang.redact(room, edits[1])
    pull.run()
    assert texts(pull) == ["周四"]
    wang.redact(room, edits[0])
    pull.run()
    assert texts(pull) == ["周五"]
    assert not pull.quarantined


def test_a_server_that_is_killed_in_a_gap_costs_no_message(
    server: Synapse, wang: Person, reader: Person
) -> None:
    room = wang.new_room(reader)
    sent = [wang.say(room, "begin")]
    pull = puller(reader)
    pull.run()
    sent += [wang.say(room, f"m{number}") for number in range(30)]

    fault = pull.run(Purse(page=5), after_page=lambda page: server.kill() if page == 3 else None)

    assert fault is not None
    assert (fault.fault, fault.what[:14]) == ("network", "no connection:")
    server.start()
    assert pull.run(Purse(page=5)) is None
    assert chains(pull) == [[key(event) for event in sent]]


def test_the_first_sync_reaches_back_as_far_as_it_is_told(wang: Person, reader: Person) -> None:
    room = wang.new_room(reader)
    sent = [wang.say(room, f"m{number}") for number in range(30)]
    everything = puller(reader)
    everything.run()
    times = {event["message_key"]: event["sent_at"] for event in everything.events}
    pull = puller(reader, since=round(times[key(sent[18])] * 1000))

    purse = Purse(page=5)
    assert pull.run(purse) is None

    assert sorted(newest(pull)) == sorted(key(event) for event in sent[18:])
    assert purse.used < 6
    oldest = min(pull.events, key=lambda event: event["sent_at"])
    assert oldest["sequence"]["predecessor"] == key(sent[17])


def test_a_room_of_the_configuration_is_read_back_when_it_is_added(wang: Person, reader: Person) -> None:
    alias = f"lab{wang.server.number()}"
    rooms = [wang.new_room(reader, room_alias_name=alias), wang.new_room(reader)]
    for room in rooms:
        wang.say(room, f"in {rooms.index(room)}")
    pull = puller(reader, rooms=[f"#{alias}:localhost"])
    pull.run()
    assert texts(pull) == ["in 0"]
    assert pull.cursor["rooms"][rooms[0]]["name"] == f"#{alias}:localhost"

    pull.settings["rooms"] = rooms
    pull.run()
    assert sorted(texts(pull)) == ["in 0", "in 1"]
    wang.say(rooms[1], "more")
    pull.run()
    assert sorted(texts(pull)) == ["in 0", "in 1", "more"]
    assert not pull.quarantined


def test_a_room_that_is_joined_later_is_read_back(wang: Person, reader: Person) -> None:
    joined = wang.new_room(reader)
    pull = puller(reader)
    pull.run()
    room = wang.new_room(initial_state=[], preset="public_chat")
    sent = [wang.say(room, f"m{number}") for number in range(8)]
    reader.ask("POST", f"join/{room}", {})
    pull.run(Purse(page=3))
    assert set(newest(pull)) == {key(event) for event in sent}
    assert joined in pull.cursor["rooms"]


def test_a_room_that_may_not_be_read_is_told_once(wang: Person, reader: Person) -> None:
    foreign = wang.new_room()
    own = wang.new_room(reader)
    wang.say(own, "hello")
    pull = puller(reader, rooms=[foreign, own, "#nowhere:localhost"])
    assert pull.run() is None
    assert texts(pull) == ["hello"]
    told = [json.loads(pull.lines[refused["line"] - 1]) for refused in pull.quarantined]
    assert {line["room"] for line in told} == {foreign, "#nowhere:localhost"}
    assert all("403" in line["why"] for line in told)
    pull.run()
    assert len(pull.quarantined) == 2

    wang.ask("POST", f"rooms/{foreign}/invite", {"user_id": reader.user})
    reader.ask("POST", f"join/{foreign}", {})
    wang.say(foreign, "welcome")
    pull.run()
    assert texts(pull) == ["hello", "welcome"]


def test_encrypted_messages_are_notices_in_the_chain_and_told_once(wang: Person, reader: Person) -> None:
    room = wang.new_room(reader)
    before = wang.say(room, "before")
    secret = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AwgA", "session_id": "s"}
    for _ in range(2):
        wang.send(room, secret, "m.room.encrypted")
    after = wang.say(room, "after")
    pull = puller(reader)
    pull.run()

    assert chains(pull) == [[key(before), key(after)]]
    notices = [event for event in pull.events if event["text"] == "[encrypted]"]
    assert [event["kind"] for event in notices] == ["system", "system"]
    assert len(pull.quarantined) == 1
    assert "encrypted" in json.loads(pull.lines[pull.quarantined[0]["line"] - 1])["why"]


def test_a_place_that_the_server_no_longer_knows_begins_anew(wang: Person, reader: Person) -> None:
    room = wang.new_room(reader)
    sent = [wang.say(room, f"m{number}") for number in range(3)]
    pull = puller(reader)
    pull.run()
    sent += [wang.say(room, f"n{number}") for number in range(20)]
    pull.cursor["next_batch"] = "lost"
    assert pull.run(Purse(page=5)) is None
    assert chains(pull) == [[key(event) for event in sent]]
    assert not pull.quarantined


def test_a_pull_and_an_import_of_a_room_are_the_same_messages(
    wang: Person, reader: Person, tmp_path: Path
) -> None:
    room = wang.new_room(reader, name="群")
    first = wang.say(room, "周五交报告")
    wang.edit(room, first, "周四交报告")
    wang.redact(room, wang.say(room, "typo"))
    reader.send(
        room,
        {
            "msgtype": "m.text",
            "body": f"> <{wang.user}> 周五交报告\n\n好的",
            "m.relates_to": {"m.in_reply_to": {"event_id": first}},
            "m.mentions": {"user_ids": [wang.user]},
        },
    )
    wang.send(room, {"msgtype": "m.file", "body": "报表.pdf", "url": "mxc://x/y", "info": {"size": 7}})
    pull = puller(reader)
    pull.run()
    synced = reader.ask("GET", "sync")["rooms"]["join"][room]["timeline"]["events"]
    export = tmp_path / "export.json"
    messages = [{"room_id": room, **event} for event in synced]
    export.write_text(json.dumps({"room_name": "群", "messages": messages}))
    report = import_chats("matrix", [export], out=tmp_path / "out", account=reader.user)
    (batch,) = report.files
    with open(batch, "rb") as file:  # noqa: PTH123 - its lines as bytes
        imported = file.read().splitlines()

    both = plan_events([*pull.lines, *imported], ONE_CHAIN)
    assert not both.quarantined
    assert [segment["messages"] for segment in both.segments] == [
        segment["messages"] for segment in plan_events(pull.lines, ONE_CHAIN).segments
    ]


def test_a_wrong_token_and_anothers_token_are_auth(wang: Person, reader: Person) -> None:
    pull = puller(reader)
    pull.secret = "wrong"  # noqa: S105 - wrong on purpose
    fault = pull.run()
    assert fault is not None
    assert (fault.fault, fault.what) == ("auth", "the server answered 401: Invalid access token passed.")

    pull.secret = wang.token
    fault = pull.run()
    assert fault is not None
    assert fault.fault == "auth"
    assert fault.what == f"the access token belongs to {wang.user}, not to {reader.user}"

    pull.secret = None
    fault = pull.run()
    assert fault is not None
    assert fault.fault == "auth"


def test_plain_http_goes_to_this_machine_only(tmp_path: Path) -> None:
    file = tmp_path / "processor.toml"
    lines = '[[connections]]\ntoolkit = "matrix"\nid = "m"\nuser = "@u:example.org"\n'
    file.write_text(f'{lines}homeserver = "http://example.org"\n')
    with pytest.raises(ConfigError, match="homeserver"):
        load_config(file)
    file.write_text(f'{lines}homeserver = "http://127.0.0.1:8008"\n')
    assert len(load_config(file).connections) == 1
