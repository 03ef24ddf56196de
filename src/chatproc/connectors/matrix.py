"""Matrix rooms: `/sync` for what is new, `/messages` for what a limited timeline left out and for backfill.

The cursor has `next_batch`, and for each room its last message and its gaps: stretches that are still to be
read, each with the place from which it is read downwards. A run that ends anywhere leaves no hole. A message
is linked to the one before it where the server gave both in one piece, or the gap between them is closed.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from chatproc.config import MatrixConnection
from chatproc.connectors.base import Page, SyncError, Toolkit
from chatproc.connectors.timeline import Stretch, Timeline, display_names, linked
from chatproc.connectors.web import AnswerError, Web
from chatproc.importers.base import Conversation
from chatproc.importers.values import exact_milliseconds, members, objects, string, strings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from chatproc.connectors.base import Pull

__all__ = ["TOOLKIT"]

_EVENTS_A_PAGE = 100
_API = "/_matrix/client/v3"
# Neither messages nor notices.
_LEFT_OUT = ["m.reaction", "m.poll.response", "org.matrix.msc3381.poll.response", "m.call.candidates"]
_BAD_REQUEST, _GONE = 400, (400, 403, 404)


async def _pull(ask: Pull) -> AsyncIterator[Page]:
    config = cast("MatrixConnection", ask.config)
    token = ask.secret()
    if token is None:
        raise SyncError(
            "no access token for the Matrix account",
            fault="auth",
            where=f"[[connections]] matrix, id = {config.id!r}",
            hint="secret_file names a file with the token, secret_env an environment variable",
        )
    async with Web(config.homeserver, token=token) as web:
        run = _Run(ask, config, web)
        await run.begin()
        page = await run.sync()
        if page.events or page.cursor != ask.cursor or not page.more:
            yield page
        while (gap := run.next_gap()) is not None:
            yield await run.read(*gap)


class _Run:
    """One run over all rooms of a connection."""

    def __init__(self, ask: Pull, config: MatrixConnection, web: Web) -> None:
        self._ask = ask
        self._config = config
        self._web = web
        self._cursor: dict[str, Any] = copy.deepcopy(ask.cursor)
        self._timeline = Timeline({}, self._event)

    async def begin(self) -> None:
        """Make sure that the token is the user's, and that the rooms are those of the configuration."""
        if self._cursor.get("configured_user") != self._config.user:
            user = _required(await self._get(f"{_API}/account/whoami"), "user_id")
            if self._config.user not in (user, user.removeprefix("@").partition(":")[0]):
                raise SyncError(
                    f"the access token belongs to {user}, not to {self._config.user}",
                    fault="auth",
                    where=self._config.homeserver,
                    hint="user and token of the same account",
                )
            self._cursor = {
                "configured_user": self._config.user,
                "user": user,
                "since": self._ask.since,
                "next_batch": None,
                "rooms": {},
                "aliases": {},
                "edits": {},
            }
        for alias in self._config.rooms:
            if alias.startswith("#") and alias not in self._cursor["aliases"]:
                # One that leads nowhere stays as it is, and is told like a room that may not be read.
                said = await self._if_there(f"{_API}/directory/room/{quote(alias, safe='')}")
                if said is not None:
                    self._cursor["aliases"][alias] = _required(said, "room_id")
        wanted = self._wanted()
        if wanted:
            # A room that is left out is forgotten: should it come back, it is read like a new one.
            rooms = self._cursor["rooms"]
            self._cursor["rooms"] = {room: rooms[room] for room in rooms if room in wanted}

    async def sync(self) -> Page:
        """All that is new, and a gap wherever the server left something out."""
        said = await self._synced(self._cursor["next_batch"])
        since = self._cursor["next_batch"]
        self._timeline = Timeline(self._cursor["edits"], self._event)
        lines: list[bytes] = []
        rooms = members(said.get("rooms"))
        wanted = self._wanted()
        for state in ("join", "leave"):
            for room_id, told in members(rooms.get(state)).items():
                # Rooms that were not asked for come all the same, without events.
                if not wanted or room_id in wanted:
                    lines += await self._new_events(room_id, members(told), since)
        next_batch = _required(said, "next_batch")
        for room_id in wanted - self._cursor["rooms"].keys():
            # Named in the configuration and silent so far: joined long ago, or not joined at all.
            self._room(room_id)["gaps"].append(self._gap(next_batch))
        self._cursor["next_batch"] = next_batch
        return self._page(lines)

    def next_gap(self) -> tuple[str, dict[str, Any]] | None:
        """A room with a gap, and the newest of its gaps."""
        for room_id, room in self._cursor["rooms"].items():
            if room["gaps"]:
                return room_id, room["gaps"][-1]
        return None

    async def read(self, room_id: str, gap: dict[str, Any]) -> Page:
        """One page of a gap, from its upper end downwards."""
        room = self._room(room_id)
        self._timeline = Timeline(self._cursor["edits"], self._event)
        try:
            said = await self._messages(room_id, gap)
        except AnswerError as error:
            if error.status not in _GONE:
                raise
            room["gaps"].remove(gap)
            why = f"the server does not give what is older than this: {error.what}"
            return self._page([_told(room_id, room, why)])
        chunk = _list(said.get("chunk"))
        below = gap["below"]
        end = said.get("end")
        is_met = below is not None and below["id"] in map(_event_id, chunk)
        if is_met:
            chunk = chunk[: [_event_id(event) for event in chunk].index(below["id"])]
        # Without `end` there is no more: all is read down to `to`, or to where this user's sight begins.
        is_whole = is_met or not isinstance(end, str) or end in ("", gap["from"])
        is_old = bool(chunk) and all(_sent_at(event) < gap["until"] for event in chunk)
        before = below["key"] if below is not None and is_whole else None
        lines, stretch = await self._stretch(
            room_id, chunk[::-1], [*objects(said.get("state")), *objects(chunk)], before, gap["until"]
        )
        if gap["above"] is None:
            room["last"] = room["last"] or stretch.newest
        elif (key := stretch.newest["key"] if stretch.newest else before) is not None:
            lines += linked(self._conversation(room_id), gap["above"], key, gap["until"])
        gap["above"] = stretch.oldest or gap["above"]
        gap["from"] = end
        if is_whole or is_old:
            room["gaps"].remove(gap)
        return self._page(lines)

    async def _new_events(self, room_id: str, told: dict[str, Any], since: str | None) -> list[bytes]:
        """The events of one room in an answer to `/sync`."""
        timeline = members(told.get("timeline"))
        events = _list(timeline.get("events"))
        known = self._cursor["rooms"].get(room_id)
        is_known = known is not None and bool(known["last"] or known["gaps"])
        room = self._room(room_id)
        state = [*objects(members(told.get("state")).get("events")), *objects(events)]
        _learn(room, state, members(told.get("summary")))
        is_limited = timeline.get("limited") is True
        last = room["last"]
        lines, stretch = await self._stretch(
            room_id,
            events,
            state,
            before=last["key"] if is_known and last and since and not is_limited else None,
            until=0 if is_known else self._cursor["since"],
        )
        # A room that is new here may be older than the place from which this answer counts.
        if is_limited or (since is not None and not is_known):
            start = timeline.get("prev_batch")
            gap = self._gap(start if isinstance(start, str) else None)
            if is_known:
                gap |= {"to": since, "below": last, "until": 0 if since else gap["until"]}
            gap["above"] = stretch.oldest
            if not events or any(_sent_at(event) >= gap["until"] for event in events):
                room["gaps"].append(gap)
            room["last"] = None
        room["last"] = stretch.newest or room["last"]
        return lines

    async def _stretch(
        self, room_id: str, events: list[object], state: list[dict[str, Any]], before: str | None, until: int
    ) -> tuple[list[bytes], Stretch]:
        room = self._room(room_id)
        stretch = await self._timeline.stretch(
            self._conversation(room_id), events, names=display_names(state), before=before, until=until
        )
        is_encrypted = any(event.get("type") == "m.room.encrypted" for event in objects(events))
        if is_encrypted and not room["encrypted"]:
            room["encrypted"] = True
            stretch.lines.append(_told(room_id, room, "encrypted: its messages cannot be read"))
        return stretch.lines, stretch

    def _page(self, lines: list[bytes]) -> Page:
        return Page(lines, copy.deepcopy(self._cursor), more=self.next_gap() is not None)

    def _gap(self, start: str | None) -> dict[str, Any]:
        """A stretch that is to be read from `start` downwards.

        It ends at `to`, the place of an earlier sync; or at the message `below`, for servers that overlook
        `to`; or where all is older than `until`. `above` is the message that stands on its upper end.
        """
        since = self._cursor["since"]
        return {"from": start, "to": None, "below": None, "above": None, "until": since}

    def _room(self, room_id: str) -> dict[str, Any]:
        blank: dict[str, Any] = {"name": None, "private": False, "last": None, "gaps": [], "encrypted": False}
        room: dict[str, Any] = self._cursor["rooms"].setdefault(room_id, blank)
        return room

    def _conversation(self, room_id: str) -> Conversation:
        room = self._room(room_id)
        account = self._config.account_id or self._cursor["user"]
        kind: Literal["private", "group"] = "private" if room["private"] else "group"
        return Conversation("matrix", account, room_id, room["name"], kind)

    def _wanted(self) -> set[str]:
        """Ids of the rooms in the configuration; none: all that the user has joined."""
        aliases = self._cursor["aliases"]
        return {aliases.get(room, room) for room in self._config.rooms}

    async def _synced(self, since: str | None) -> dict[str, Any]:
        query = {"timeout": "0", "filter": json.dumps(self._filter())}
        try:
            return await self._get(f"{_API}/sync", {**query, **({"since": since} if since else {})})
        except AnswerError as error:
            if since is None or error.status != _BAD_REQUEST:
                raise
        # The server no longer knows the place: its database was restored or replaced.
        self._cursor["next_batch"] = None
        return await self._get(f"{_API}/sync", query)

    def _filter(self) -> dict[str, Any]:
        nothing: dict[str, list[str]] = {"types": []}
        room: dict[str, Any] = {
            "timeline": self._event_filter(),
            "state": {
                "types": ["m.room.member", "m.room.name", "m.room.canonical_alias"],
                "lazy_load_members": True,
                "include_redundant_members": True,
            },
            "ephemeral": nothing,
            "account_data": nothing,
        }
        wanted = self._wanted()
        if wanted:
            room["rooms"] = sorted(name for name in wanted if name.startswith("!"))
        return {"room": room, "presence": nothing, "account_data": nothing}

    def _event_filter(self) -> dict[str, Any]:
        limit = self._ask.budget.page_size(_EVENTS_A_PAGE)
        return {"limit": limit, "not_types": _LEFT_OUT, "lazy_load_members": True}

    async def _messages(self, room_id: str, gap: dict[str, Any]) -> dict[str, Any]:
        filtered = self._event_filter()
        query = {"dir": "b", "limit": str(filtered.pop("limit")), "filter": json.dumps(filtered)}
        ends = {name: gap[name] for name in ("from", "to") if gap[name]}
        return await self._get(f"{_API}/rooms/{quote(room_id, safe='')}/messages", {**query, **ends})

    async def _event(self, room_id: str, event_id: str) -> dict[str, Any] | None:
        return await self._if_there(
            f"{_API}/rooms/{quote(room_id, safe='')}/event/{quote(event_id, safe='')}"
        )

    async def _if_there(self, path: str) -> dict[str, Any] | None:
        try:
            return await self._get(path)
        except AnswerError as error:
            if error.status not in _GONE:
                raise
            return None

    async def _get(self, path: str, params: dict[str, str] | None = None) -> dict[str, Any]:
        await self._ask.budget.request()
        said = await self._web.get(path, params)
        if not isinstance(said, dict):
            raise SyncError("the answer is no object", fault="bad_data", where=self._config.homeserver)
        return said


def _learn(room: dict[str, Any], state: Sequence[dict[str, Any]], summary: dict[str, Any]) -> None:
    """Keep a room's name: the one it was given, else its address, else who is in it."""
    for event in state:
        content = members(event.get("content"))
        if event.get("type") == "m.room.name":
            room["name"] = string(content.get("name")) or None
        elif event.get("type") == "m.room.canonical_alias":
            room["name"] = room["name"] or string(content.get("alias")) or None
    heroes = strings(summary.get("m.heroes"))
    if room["name"] is None and heroes:
        names = display_names(state)
        room["name"] = ", ".join(names.get(hero, hero) for hero in heroes)
        room["private"] = len(heroes) == 1


def _told(room_id: str, room: dict[str, Any], why: str) -> bytes:
    """What stands in the quarantine for a stretch of a room that cannot be read."""
    return json.dumps({"room": room_id, "name": room["name"], "why": why}, ensure_ascii=False).encode()


def _required(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str) or not value:
        raise SyncError(f"the answer has no {name}", fault="bad_data")
    return value


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _event_id(event: object) -> str:
    return string(members(event).get("event_id"))


def _sent_at(event: object) -> int:
    return exact_milliseconds(members(event).get("origin_server_ts")) or 0


TOOLKIT = Toolkit("matrix", 60, MatrixConnection, _pull)
