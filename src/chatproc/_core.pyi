from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, TypeAlias, final

_Json: TypeAlias = dict[str, Any]
_Watch: TypeAlias = Callable[[int, int], None] | None

__all__ = [
    "DEBUG_BUILD",
    "Connections",
    "Round",
    "__version__",
    "backup",
    "connections",
    "conversations",
    "coverage",
    "explain",
    "history",
    "judge_time",
    "near",
    "plan_events",
    "preview",
    "quarantine",
    "quarantined",
    "resolve_time",
    "search",
    "status",
    "task",
    "update_priority",
    "update_status",
    "verify",
]

__version__: Final[str]
DEBUG_BUILD: Final[bool]

@final
class Round:
    def __new__(cls, state: str | PathLike[str], holder: str, now: int) -> Round: ...
    def close(self) -> None: ...
    def ingest(self, input: Mapping[str, Any], watch: _Watch = None) -> _Json: ...
    def export(self, output: str | PathLike[str]) -> _Json: ...
    def plan(self, options: Mapping[str, Any], settings: Mapping[str, Any]) -> _Json: ...
    def document(self, groups: list[str]) -> _Json: ...
    def commit(
        self, groups: Sequence[tuple[str, Mapping[str, Any]]], usage: Mapping[str, Any], now: int
    ) -> list[_Json]: ...
    def fail(self, group: str, reason: str, now: int, counts: bool) -> None: ...
    def begin(self, now: int) -> None: ...
    def finish(self, now: int, report: Mapping[str, Any]) -> None: ...
    def retry(self, id: int, max_line_bytes: int) -> _Json: ...
    def discard(self, id: int) -> None: ...

@final
class Connections:
    def __new__(cls, state: str | PathLike[str], now: int) -> Connections: ...
    def close(self) -> None: ...
    def states(self) -> list[_Json]: ...
    def lease(
        self,
        toolkit: str,
        id: str,
        holder: str,
        trigger: str,
        now: int,
        until: int,
        gone: str | None = None,
        seen: int | None = None,
    ) -> _Json | None: ...
    def lease_of(self, toolkit: str, id: str) -> _Json | None: ...
    def renew(self, toolkit: str, id: str, run: int, holder: str, until: int) -> bool: ...
    def reserve(
        self, toolkit: str, id: str, run: int, holder: str, day: str, daily_requests: int
    ) -> bool: ...
    def page(
        self,
        toolkit: str,
        id: str,
        run: int,
        holder: str,
        lines: list[bytes],
        cursor: Mapping[str, Any],
        more: bool,
        day: str,
        max_line_bytes: int,
    ) -> _Json: ...
    def record(
        self, toolkit: str, id: str, run: int, holder: str, outcome: Mapping[str, Any], now: int
    ) -> bool: ...
    def ingest(
        self,
        toolkit: str,
        id: str,
        run: int,
        holder: str,
        input: Mapping[str, Any],
        watch: _Watch = None,
    ) -> _Json: ...

def connections(state: str | PathLike[str]) -> list[_Json]: ...
def plan_events(lines: Iterable[bytes], options: Mapping[str, Any]) -> _Json: ...
def resolve_time(text: str, sent_at: int, timezone: str, lang: str | None = None) -> _Json: ...
def judge_time(
    original: str | None,
    told: list[dict[str, Any]],
    given: tuple[str | None, str | None],
    timezone: str,
) -> _Json: ...
def preview(
    state: str | PathLike[str],
    input: Mapping[str, Any],
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    limit: int,
    group: str | None = None,
    watch: _Watch = None,
) -> _Json: ...
def status(state: str | PathLike[str]) -> _Json: ...
def verify(state: str | PathLike[str], output: str | PathLike[str], watch: _Watch = None) -> _Json: ...
def backup(
    state: str | PathLike[str], target: str | PathLike[str], unique: str, watch: _Watch = None
) -> _Json: ...
def explain(state: str | PathLike[str], key: str, timezone: str) -> _Json | None: ...
def coverage(state: str | PathLike[str], query: Mapping[str, Any], timezone: str) -> _Json | None: ...
def conversations(state: str | PathLike[str], query: Mapping[str, Any]) -> _Json: ...
def search(state: str | PathLike[str], query: Mapping[str, Any], timezone: str) -> _Json: ...
def near(state: str | PathLike[str], new: Mapping[str, Any], timezone: str) -> list[_Json]: ...
def task(state: str | PathLike[str], id: str, timezone: str) -> _Json: ...
def history(state: str | PathLike[str], id: str) -> list[_Json]: ...
def quarantine(state: str | PathLike[str]) -> list[tuple[_Json, bytes | None]]: ...
def quarantined(state: str | PathLike[str], id: int) -> tuple[_Json, bytes | None]: ...
def update_status(
    state: str | PathLike[str], wish: Mapping[str, Any], now: int, timezone: str
) -> _Json: ...
def update_priority(
    state: str | PathLike[str], wish: Mapping[str, Any], now: int, timezone: str
) -> _Json: ...
