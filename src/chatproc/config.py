"""The configuration: one TOML file read into frozen, checked models, every path absolute.

It only reads that file: no key, no environment variable, no network, nothing created. What it refuses it
names: the key, the value, the bound and the file.
"""

from __future__ import annotations

import difflib
import glob
import ipaddress
import json
import os
import re
import tomllib
import zoneinfo
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails

from chatproc.errors import ConfigError, MissingFileError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

DEFAULT_CONFIG = "config/processor.toml"
"""Where the CLI looks when nothing is said."""

LOCAL = "local"
"""The `agent.base_url` that means: a model served in this process."""

_LARGEST = 2**53 - 1
_LONGEST_SECONDS = 10 * 366 * 86400


def _from_root(value: object, info: ValidationInfo) -> object:
    """A path as written, absolute: relative ones count from the project root."""
    if not isinstance(value, (str, Path)):
        raise ValueError("a path in quotes")  # noqa: TRY004 - pydantic reads ValueError
    text = str(value)
    if text in {"", "."} or "\0" in text:
        raise ValueError("a path that is not empty")
    return Path(os.path.abspath(_root(info) / Path(text).expanduser()))  # noqa: PTH100 - symlinks stay


def _optional_from_root(value: object, info: ValidationInfo) -> object:
    return None if value in ("", None) else _from_root(value, info)


_CLASS = re.compile(r"\[(?:!.|[^!])[^]]*\]", re.DOTALL)
_NO_GLOB = re.compile(r"\[|\*\*\*|[^/]\*\*|\*\*[^/]")


def _glob_from_root(value: object, info: ValidationInfo) -> object:
    """A glob made absolute; a `[` in the root's own name matches itself."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("a path or glob in quotes")
    if _NO_GLOB.search(_CLASS.sub("x", value)):
        raise ValueError("a glob in which `**` stands alone between slashes and each `[` has its `]`")
    pattern = os.path.expanduser(value)  # noqa: PTH111 - a glob is not a path yet
    return pattern if Path(pattern).is_absolute() else str(Path(glob.escape(str(_root(info)))) / pattern)


def _root(info: ValidationInfo) -> Path:
    context: dict[str, Path] = info.context or {}
    return context.get("root", Path())


def _tuple_of_list(value: object) -> object:
    if not isinstance(value, (list, tuple)):
        raise ValueError("a list in square brackets")  # noqa: TRY004 - pydantic reads ValueError
    return tuple(value)


def _text_of_id(value: object) -> object:
    """Ids of groups and users are often written as bare numbers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


_Item = TypeVar("_Item")
_Listed = Annotated[tuple[_Item, ...], BeforeValidator(_tuple_of_list)]
_Path = Annotated[Path, BeforeValidator(_from_root)]
_OptionalPath = Annotated[Path | None, BeforeValidator(_optional_from_root)]
_Glob = Annotated[str, BeforeValidator(_glob_from_root)]
_Count = Annotated[int, Field(ge=1, le=_LARGEST)]
_Amount = Annotated[int, Field(ge=0, le=_LARGEST)]
_Seconds = Annotated[float, Field(ge=0, le=_LONGEST_SECONDS)]
_Text = Annotated[str, Field(min_length=1)]
_Id = Annotated[str, BeforeValidator(_text_of_id), Field(min_length=1)]
_Price = Annotated[float, Field(ge=0)]

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_START_BOUND = "Unix seconds from 0, or an RFC 3339 time with its offset"


def _milliseconds(value: object) -> int:
    """Unix seconds or an RFC 3339 time, as milliseconds since 1970."""
    if isinstance(value, str):
        if not _RFC3339.fullmatch(value):
            raise ValueError(_START_BOUND)
        try:
            value = datetime.fromisoformat(value.upper())
        except ValueError:
            raise ValueError(_START_BOUND) from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(_START_BOUND)
        since = value.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        value = since.days * 86400 + since.seconds + since.microseconds / 1_000_000
    latest = 253_402_300_800  # the year 10000
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < latest:
        raise ValueError(_START_BOUND)
    return round(value * 1000)


_OWN_FIELDS = {"model", "messages", "stream", "stream_options", "tools", "tool_choice"}


def _sendable(value: object) -> object:
    """TOML has dates and `inf`, JSON has not; what makes a request is not to be overwritten."""
    if isinstance(value, dict) and (own := sorted(_OWN_FIELDS & value.keys())):
        raise ValueError(f"a table without {', '.join(own)}: chatproc sets that itself")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("a table of values that JSON has: no dates, no inf, no nan") from None
    return value


def _known_zone(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError('a time zone name in quotes such as "Asia/Shanghai"')  # noqa: TRY004
    try:
        zoneinfo.ZoneInfo(value)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise ValueError('a time zone name such as "Asia/Shanghai"') from None
    return value


_ENV_BOUND = 'the name of an environment variable (letters, digits, "_"), not the key itself'


def _variable_name(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)?", value):
        raise ValueError(_ENV_BOUND)
    return value


_VariableName = Annotated[str, BeforeValidator(_variable_name)]


def _endpoint(value: object) -> object:
    """An http(s) URL that carries no secret; the key goes elsewhere."""
    if not isinstance(value, str):
        raise ValueError("a URL in quotes")  # noqa: TRY004 - pydantic reads ValueError
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not value.isascii() or re.search(r"[\s\x00-\x1f\x7f]", value):
        raise ValueError("a URL that begins with https:// or http://")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("a URL without user, query or fragment; a key belongs into the key file")
    return value.rstrip("/")


_Endpoint = Annotated[str, BeforeValidator(_endpoint)]


def _model_endpoint(value: object) -> object:
    return value if value in ("", LOCAL) else _endpoint(value)


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine by its name or address.

    Args:
        url: An absolute URL.

    Example:
        >>> is_loopback("http://127.0.0.1:11434/v1"), is_loopback("http://example.org/v1")
        (True, False)
    """
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _DisagreementError(ValueError):
    """A value that its own bound allows and another value does not."""

    def __init__(self, key: str, value: object, bound: str) -> None:
        super().__init__(bound)
        self.key = key
        self.value = value


class _Section(BaseModel):
    """One table of the file: frozen, no key unknown, no value bent into another type."""

    model_config = ConfigDict(
        defer_build=True,  # most sections are checked as part of the whole, never by themselves
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        validate_default=True,
    )


class InputConfig(_Section):
    """`[input]`: where batches lie and how they are read."""

    paths: _Listed[_Glob] = ()
    """Globs of batch files (`.jsonl`, also `.gz` and `.zst`). A pattern without a match is no error; `*.tmp`
    is never read."""
    archive_root: _OptionalPath = None
    """The folder that attachment paths are relative to. Empty: no attachment can be read. Importers write
    paths relative to it, so set it before importing."""
    start_at_ms: Annotated[int, BeforeValidator(_milliseconds, json_schema_input_type=float | str)] = Field(
        default=0, alias="start_at"
    )
    """Messages sent before are history: shown where a segment holds them, never able to bring up a task by
    themselves. Unix seconds, or RFC 3339 with an offset."""
    max_line_bytes: _Count = 16 * 1024 * 1024
    """A longer line is quarantined as `too-long` without being held in memory."""
    settle_seconds: _Seconds = 5.0
    """A last line without a newline is read once its file has been quiet for so long and the line parses."""
    max_memory_mb: _Count = 512
    """What reading takes at most, in MiB, but for long lines. While the first input is read, what is known of
    it is held in memory, about 80 bytes a message; where that would be more, the store is asked, and that is
    slower."""


class StorageConfig(_Section):
    """`[storage]`: the store and the output folder."""

    state: _Path = Path("data/processor/state.db")
    """The store. Beside it lies `state.db.lock`, which says who is running a round. While the first input is
    read the store is in the making as `state.db.build`; a round that is killed then begins anew."""
    output: _Path = Path("data/todos")
    """Where task events are published."""


class RulesConfig(_Section):
    """`[rules]`: the user's rules and the zone in which dates are meant."""

    file: _Path = Path("processing-rules/default.md")
    """What counts as a task, how urgent, how to word it: at most 256 KiB of UTF-8, sent whole with every
    request. A changed file makes every segment pending again."""
    timezone: Annotated[str, BeforeValidator(_known_zone)] = "Asia/Shanghai"
    """The zone in which dates and clock times are meant, an IANA name."""


class Prices(_Section):
    """`[agent.prices]`: money for a million tokens, in any currency; `None`: not known."""

    input: _Price | None = None
    """For input tokens."""
    output: _Price | None = None
    """For output tokens."""
    cached: _Price | None = None
    """For input tokens that the endpoint had in its cache. Not set: as `input`."""


class AgentConfig(_Section):
    """`[agent]`: the model endpoint, what it can do and how far a session may go."""

    base_url: Annotated[str, BeforeValidator(_model_endpoint)] = ""
    """The endpoint up to `/v1`, without user, query or fragment; or `"local"`: a model served in this
    process."""
    model: str = ""
    """The model's name there."""
    tools: Literal["all", "submit"] = "all"
    """`"submit"` (the default of `local`): only the tool that hands in the tasks; attachments are then not
    read and earlier tasks not searched."""
    local_model: _OptionalPath = None
    """A GGUF file for `local`. Empty: the one of `chatproc model fetch`."""
    local_threads: _Count = 1
    """Threads for `local`. On a busy machine one is faster than two."""
    api_key_env: _VariableName = "CHAT_PROCESSOR_API_KEY"
    """The environment variable that holds the key; the same name is looked for in the project's `.env`."""
    api_key_file: _OptionalPath = Path("secrets/processor-api-key.txt")
    """The file that holds the key; refused while other users can open it. Both empty: the endpoint wants no
    key."""
    vision: bool = False
    """Whether the model sees pictures; without it, it is told that there is one. Changing it makes every
    segment pending again."""
    context_window: _Count = 131_072
    """Tokens of a request and its answer together (`16384` for `local`)."""
    reserve_tokens: _Count = 8192
    """Tokens of the window kept free (`4096` for `local`); a session that comes closer is compacted. Less
    than `context_window`."""
    max_output_tokens: _Count = 8192
    """Tokens of one reply (`4096` for `local`)."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens", ""] = "max_tokens"
    """The field that carries `max_output_tokens`; `""`: it is not sent."""
    tool_choice: Literal["auto", "required", ""] = "auto"
    """Sent as it stands here (`"required"` for `local`); `""`: not sent."""
    strict_tools: bool = False
    """Send the tools' schemas as strict ones."""
    parallel_tool_calls: bool | None = None
    """Sent when set to `true` or `false`."""
    send_back_reasoning: bool = True
    """Reasoning that came in `reasoning_content` goes back in the next request."""
    stream_usage: bool = True
    """Ask for token counts in the stream."""
    assistant_bridge_after_tool: bool = False
    """An assistant message between a tool's answer and a user message, for endpoints that refuse the two side
    by side."""
    extra_body: Annotated[dict[str, Any], BeforeValidator(_sendable)] = Field(default_factory=dict)
    """Further fields of each request, sent as they are."""
    prices: Prices = Prices()
    """What tokens cost: a table of its own."""
    timeout_seconds: _Seconds = 120.0
    """Silence on the wire that ends a request; 0: no limit."""
    retries: _Amount = 4
    """Further tries of one request."""
    submit_attempts: _Count = 3
    """How often a session may hand in its result; what it is asked once does not count."""
    max_turns: _Count = 30
    """Replies of one session."""
    max_requests: _Count = 60
    """Requests of one session, repeated ones counted."""
    max_total_tokens: _Count = 1_000_000
    """Tokens of one session, input and output of all its requests."""
    max_session_seconds: _Seconds = 900.0
    """Time of one session; 0: no limit."""
    allow_http: bool = False
    """Plain http to another machine. It shows chats and key to the network."""
    concurrency: _Count = 4
    """Sessions at once. Groups of one conversation always run one after the other."""
    batching: Literal["auto", "single_conversation"] = "auto"
    """`"auto"`: one session may hold several conversations; `"single_conversation"`: one group a session."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_local(cls, section: object) -> object:
        if not isinstance(section, dict) or section.get("base_url") != LOCAL:
            return section
        of_local = {
            "tools": "submit",
            "tool_choice": "required",
            "context_window": 16_384,
            "reserve_tokens": 4096,
            "max_output_tokens": 4096,
            "parallel_tool_calls": False,
        }
        return {**of_local, **section}

    @model_validator(mode="after")
    def _agree(self) -> AgentConfig:
        plain = self.base_url.startswith("http:")
        if plain and not self.allow_http and not is_loopback(self.base_url):
            bound = "https:// (plain http shows chats and key to the network; allow_http = true permits it)"
            raise _DisagreementError("base_url", self.base_url, bound)
        if self.reserve_tokens >= self.context_window:
            bound = f"less than context_window ({self.context_window})"
            raise _DisagreementError("reserve_tokens", self.reserve_tokens, bound)
        return self

    @property
    def is_local(self) -> bool:
        """Whether the model runs in this process."""
        return self.base_url == LOCAL

    @property
    def is_configured(self) -> bool:
        """Whether there is a model to ask."""
        return self.is_local or bool(self.base_url and self.model)

    @property
    def wants_key(self) -> bool:
        """Whether the endpoint wants a credential."""
        return not self.is_local and (self.api_key_env != "" or self.api_key_file is not None)


class ContextConfig(_Section):
    """`[context]`: how messages become segments and groups. Sizes in characters."""

    grouping: Literal["sql", "time", "session"] = "sql"
    """`"sql"`: only chains that the source proves; `"session"`: the same, cut at silences, for full exports;
    `"time"`: silences alone, for sources that prove nothing."""
    gap_minutes: _Seconds = 30.0
    """The longest silence inside a segment (`session` and `time`)."""
    carry_messages: _Amount = 5
    """Messages shown as history before a piece that follows a silence (`session`)."""
    max_conversation_chars: _Count = 20_000
    """What a group may cost. A segment that costs more alone is oversized: reported, never cut short, never
    sent."""
    max_messages: _Count = 80
    """A group is closed once it holds so many; a segment is never cut for it."""
    max_related_chars: _Amount = 6000
    """Room for earlier tasks in a document."""


class ProcessingConfig(_Section):
    """`[processing]`: limits of one session and one round."""

    max_input_chars: _Count = 60_000
    """What a session's document may cost, earlier tasks aside."""
    max_groups_per_round: _Count = 10
    """Groups of one round; the others wait for the next."""


class AttachmentsConfig(_Section):
    """`[attachments]`: limits of reading one attachment."""

    max_file_mb: _Count = 50
    """A larger file is not read, in MiB."""
    max_memory_mb: _Count = 1024
    """Memory of the process that reads one, in MiB."""
    timeout_seconds: Annotated[float, Field(ge=1, le=_LONGEST_SECONDS)] = 30.0
    """Time for one file."""
    max_chars_per_read: _Count = 12_000
    """Characters of text that one reading returns."""
    max_images_per_read: _Amount = 4
    """Pictures that one reading returns; 0: none."""
    max_image_px: _Count = 1568
    """Long side of a picture as it is sent, in pixels."""


class ScheduleConfig(_Section):
    """`[schedule]`: the loop of `run`."""

    tick_seconds: Annotated[float, Field(ge=1, le=_LONGEST_SECONDS)] = 1200.0
    """Seconds between two ticks."""
    settle_seconds: _Seconds = 0.0
    """A stretch of talk with a message younger than this waits."""
    watch: bool = True
    """A new batch file wakes the loop at once. Without it files wait for the tick."""


class ConnectionConfig(_Section):
    """What every `[[connections]]` entry has, whatever its toolkit."""

    toolkit: str
    """How it is pulled, written in any case."""
    id: _Id
    """The connection's name, unique within the toolkit."""
    enabled: bool = True
    """Whether it is synced."""
    account_id: Annotated[str, BeforeValidator(_text_of_id)] = ""
    """The collecting account."""
    interval_seconds: _Seconds = 1200.0
    """Seconds between syncs, at least the toolkit's minimum; 0: never by itself."""
    backfill_days: _Amount = 30
    """How far the first sync reaches back."""
    daily_requests: _Count = 500
    """Requests a day in `rules.timezone`, failed ones too."""
    daily_items: _Count = 20_000
    """Messages a day. A page that was asked for is taken whole."""
    secret_env: _VariableName = ""
    """The environment variable that holds its password or token; the same name is looked for in the project's
    `.env`."""
    secret_file: _OptionalPath = None
    """The file that holds it; refused while other users can open it."""

    wants_secret: ClassVar[bool] = False
    """Whether it cannot be synced without one."""


class JsonlConnection(ConnectionConfig):
    """Batches of an outside collector."""

    toolkit: Literal["jsonl"]
    paths: Annotated[_Listed[_Glob], Field(min_length=1)]
    """Globs of batch files, read like `input.paths`. No minimum interval; requests and items are not
    counted."""


class ImapConnection(ConnectionConfig):
    """Mail folders."""

    wants_secret = True

    toolkit: Literal["imap"]
    host: _Text
    """The mail server."""
    port: Annotated[int, Field(ge=1, le=65_535)] = 993
    """The server's port."""
    tls: bool = True
    """TLS from the first byte; `false` is for a server on this machine only."""
    ca_file: _OptionalPath = None
    """Certificates to trust beside the system's."""
    user: _Text
    """The name to log in with, often the address."""
    folders: Annotated[_Listed[_Text], Field(min_length=1)] = ("INBOX",)
    """Folders to read, by their names: `"工作"`."""
    max_body_chars: _Count = 16_000
    """Characters of a mail's text that are kept."""
    attachments_dir: _OptionalPath = None
    """Where attachments are kept; below `input.archive_root`. Empty: they are not kept."""

    @model_validator(mode="after")
    def _agree(self) -> ImapConnection:
        if not self.tls and not is_loopback(f"imap://{self.host}"):
            bound = "true (plain text shows mails and password to the network; it is for this machine)"
            raise _DisagreementError("tls", self.tls, bound)
        return self


class MatrixConnection(ConnectionConfig):
    """Matrix rooms."""

    wants_secret = True

    toolkit: Literal["matrix"]
    homeserver: _Endpoint
    """Its URL; plain `http://` only for this machine."""
    user: _Text
    """Whose rooms: `"@wang:example.org"`."""
    rooms: _Listed[_Text] = ()
    """Ids (`!…`) or addresses (`#…`) of rooms to read; empty: all that the user has joined."""

    @model_validator(mode="after")
    def _agree(self) -> MatrixConnection:
        if self.homeserver.startswith("http:") and not is_loopback(self.homeserver):
            bound = "https:// (plain http shows messages and token to the network; it is for this machine)"
            raise _DisagreementError("homeserver", self.homeserver, bound)
        return self


class _HttpConnection(ConnectionConfig):
    """A program with an HTTP API."""

    base_url: _Endpoint
    """Where the program listens, as `"http://127.0.0.1:5030"`; plain `http://` for this machine only."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.base_url.startswith("http:") and not is_loopback(self.base_url):
            bound = "https:// (plain http shows messages and token to the network; it is for this machine)"
            raise _DisagreementError("base_url", self.base_url, bound)
        return self


class ChatlogConnection(_HttpConnection):
    """The HTTP API of chatlog (WeChat)."""

    toolkit: Literal["chatlog"]
    talkers: _Listed[_Id] = ()
    """Ids of chats to read (`wxid_…`, `…@chatroom`); empty: all in chatlog's list of chats."""
    window_minutes: _Count = 60
    """How much time a request asks for at first; more where there is little, less where there is much."""


class ChatlabConnection(_HttpConnection):
    """ChatLab Pull."""

    toolkit: Literal["chatlab"]
    sources: _Listed[_Id] = ()
    """Ids or names of its sessions to read; empty: all."""


class OnebotConnection(_HttpConnection):
    """OneBot v11 history over HTTP."""

    toolkit: Literal["onebot"]
    groups: _Listed[_Id] = ()
    """Numbers of groups to read. With `users` empty too: all groups."""
    users: _Listed[_Id] = ()
    """Numbers of friends whose private chats are read."""


_CONNECTIONS: dict[str, type[ConnectionConfig]] = {
    "jsonl": JsonlConnection,
    "imap": ImapConnection,
    "matrix": MatrixConnection,
    "chatlog": ChatlogConnection,
    "chatlab": ChatlabConnection,
    "onebot": OnebotConnection,
}


class PublishConfig(_Section):
    """What every `[[publish]]` entry has, whatever its kind."""

    kind: str
    """What it is."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
    """The target's name, given once: letters, digits, `-` and `_`, at most 64. A new name is a new target."""


class CaldavTarget(PublishConfig):
    """A task list of a CalDAV server."""

    kind: Literal["caldav"]
    url: _Endpoint
    """The address of the task list itself; plain `http://` only for this machine."""
    user: str = ""
    """The name to log in with."""
    secret_env: _VariableName = ""
    """The environment variable that holds the password; the same name is looked for in the project's
    `.env`."""
    secret_file: _OptionalPath = None
    """The file that holds it; refused while other users can open it."""
    ca_file: _OptionalPath = None
    """Certificates to trust beside the system's."""

    @model_validator(mode="after")
    def _agree(self) -> CaldavTarget:
        if self.url.startswith("http:") and not is_loopback(self.url):
            bound = "https:// (plain http shows tasks and password to the network; it is for this machine)"
            raise _DisagreementError("url", self.url, bound)
        return self


class _FileTarget(PublishConfig):
    """A file that is written as a whole."""

    file: _Path
    """The file to write; of a note, the one in which the block of tasks is kept."""
    keep_days: _Amount = 30
    """How many days a completed or cancelled task stays in it."""


class IcsTarget(_FileTarget):
    """An iCalendar file to subscribe to."""

    kind: Literal["ics"]


class MarkdownTarget(_FileTarget):
    """A note of a vault."""

    kind: Literal["markdown"]


Target = CaldavTarget | IcsTarget | MarkdownTarget
"""An entry of `[[publish]]`."""

_TARGETS: dict[str, type[PublishConfig]] = {
    "caldav": CaldavTarget,
    "ics": IcsTarget,
    "markdown": MarkdownTarget,
}


def _target(entry: object, info: ValidationInfo) -> object:
    """An entry of `[[publish]]`, checked by the model of its kind."""
    if isinstance(entry, PublishConfig):
        return entry
    kind = _named(entry, "kind")
    settings = _TARGETS.get(kind) if isinstance(kind, str) else None
    if settings is None:
        raise _DisagreementError("kind", kind, f"one of {', '.join(_TARGETS)}")
    return _checked(entry, kind, settings, info)


def _settings_of(name: str) -> type[ConnectionConfig] | None:
    """The model that checks a toolkit's entries; only unknown names look at what else is installed."""
    if name in _CONNECTIONS:
        return _CONNECTIONS[name]
    from chatproc.connectors import find

    found = find(name)
    return None if found is None else found.settings


def _connection(entry: Any, info: ValidationInfo) -> object:  # noqa: ANN401 - any TOML value
    """An entry of `[[connections]]`, checked by the model of its toolkit."""
    if isinstance(entry, ConnectionConfig):
        return entry
    named = _named(entry, "toolkit")
    name = named.lower() if isinstance(named, str) else named
    settings = _settings_of(name) if isinstance(name, str) else None
    if settings is None:
        from chatproc.connectors import names

        raise _DisagreementError("toolkit", named, f"one of {', '.join(names())}")
    return _checked({**entry, "toolkit": name}, name, settings, info)


def _named(entry: object, key: str) -> Any:  # noqa: ANN401 - any TOML value
    """What an entry says in the key that chooses its model."""
    if not isinstance(entry, dict):
        raise ValueError("a table")  # noqa: TRY004 - pydantic reads ValueError
    if key not in entry:
        missing = InitErrorDetails(type="missing", loc=(key,), input=entry)
        raise ValidationError.from_exception_data("entry", [missing])
    return entry[key]


def _checked(entry: object, name: str, settings: type[BaseModel], info: ValidationInfo) -> object:
    """An entry, checked by its model; faults are told under the model's name."""
    try:
        return settings.model_validate(entry, context=info.context)
    except ValidationError as error:
        faults = [
            InitErrorDetails(
                type=fault["type"], loc=(name, *fault["loc"]), input=fault["input"], ctx=fault.get("ctx", {})
            )
            for fault in error.errors(include_url=False)
        ]
        raise ValidationError.from_exception_data(name, faults) from None


def _tables(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, (list, tuple)):
        what = f"tables, each under a line [[{info.field_name}]]: two brackets"
        raise ValueError(what)  # noqa: TRY004 - pydantic reads ValueError
    return tuple(value)


_Connection = Annotated[ConnectionConfig, PlainValidator(_connection)]
_Target = Annotated[Target, PlainValidator(_target)]


class _Document(_Section):
    """The file's tables."""

    input: InputConfig
    storage: StorageConfig
    rules: RulesConfig
    agent: AgentConfig
    context: ContextConfig
    processing: ProcessingConfig
    attachments: AttachmentsConfig
    schedule: ScheduleConfig
    connections: Annotated[tuple[_Connection, ...], BeforeValidator(_tables)]
    publish: Annotated[tuple[_Target, ...], BeforeValidator(_tables)]

    @model_validator(mode="after")
    def _distinct_connections(self) -> _Document:
        seen: set[tuple[str, str]] = set()
        for connection in self.connections:
            name = (connection.toolkit, connection.id)
            if name in seen:
                raise _DisagreementError(
                    "connections.id", connection.id, f"given once within {connection.toolkit}"
                )
            seen.add(name)
        return self

    @model_validator(mode="after")
    def _distinct_targets(self) -> _Document:
        names = [target.name for target in self.publish]
        for name in names:
            if names.count(name) > 1:
                raise _DisagreementError("publish.name", name, "given once")
        files = [target.file for target in self.publish if isinstance(target, _FileTarget)]
        for target in self.publish:
            if isinstance(target, IcsTarget) and files.count(target.file) > 1:
                bound = "a calendar file of one entry alone, as it is replaced as a whole"
                raise _DisagreementError("publish.file", str(target.file), bound)
        return self

    @model_validator(mode="after")
    def _readable_attachments(self) -> _Document:
        root = self.input.archive_root
        for connection in self.connections:
            folder = getattr(connection, "attachments_dir", None)
            if folder is not None and (root is None or not folder.is_relative_to(root)):
                bound = "a folder below input.archive_root, where attachments are read"
                raise _DisagreementError("connections.attachments_dir", str(folder), bound)
        return self


class Config(_Document):
    """A whole configuration, with the file it was read from and the project root.

    Example:
        >>> config = load_config("config/processor.toml")  # doctest: +SKIP
        >>> config.context.grouping, config.agent.is_configured  # doctest: +SKIP
        ('sql', False)
    """

    root: Path
    file: Path


def load_config(path: str | os.PathLike[str] = DEFAULT_CONFIG) -> Config:
    """Read and check a configuration file.

    Args:
        path: The TOML file. Relative paths in it count from the project root: the parent of the folder that
            holds the file when that folder is called `config`, else the folder itself.

    Returns:
        The frozen configuration, all paths absolute.

    Raises:
        MissingFileError: There is no such file (a `ConfigError` and a `FileNotFoundError`).
        ConfigError: The file cannot be read, is no TOML, has an unknown key or a bad value.

    Example:
        >>> load_config("config/processor.toml").processing.max_groups_per_round  # doctest: +SKIP
        10
    """
    file = Path(os.path.abspath(path))  # noqa: PTH100 - a linked file keeps the folder it is named in
    return config_of(file, _read(file))


def config_of(file: Path, content: bytes) -> Config:
    """The configuration that a file has, or would have.

    Args:
        file: Absolute; relative paths in it count from its project root.
        content: Its bytes.

    Raises:
        ConfigError: It is no TOML, has an unknown key or a bad value.

    Example:
        >>> config_of(Path("/p/config/processor.toml"), b"").storage.output
        PosixPath('/p/data/todos')
    """
    root = project_root(file)
    tables = _tables_of(file, content)
    missing: dict[str, object] = {name: {} for name in _Document.model_fields}
    missing |= {"connections": [], "publish": []}
    try:
        document = _Document.model_validate({**missing, **tables}, context={"root": root})
    except ValidationError as error:
        raise _config_error(error, file) from None
    return Config(root=root, file=file, **dict(document))


def project_root(file: Path) -> Path:
    """The folder that relative paths count from.

    Args:
        file: The configuration file; it need not exist.

    Example:
        >>> project_root(Path("/p/config/processor.toml")), project_root(Path("/p/mine.toml"))
        (PosixPath('/p'), PosixPath('/p'))
    """
    return file.parent.parent if file.parent.name == "config" else file.parent


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        hint = "`chatproc init` writes one; --config names another"
        raise MissingFileError("there is no configuration", where=str(file), hint=hint) from None
    except OSError as error:
        raise ConfigError(f"the configuration cannot be read: {error.strerror}", where=str(file)) from error


def _tables_of(file: Path, content: bytes) -> dict[str, object]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "the configuration is not UTF-8", where=f"{file}, line {line}", hint="save it as UTF-8"
        ) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = f"the configuration is not TOML: {error}"
        raise ConfigError(what, where=str(file), hint=_hint_of(error)) from None


def _hint_of(error: tomllib.TOMLDecodeError) -> str:
    """What mends the usual slips: lines that were added to a file that has them, and texts without quotes."""
    if re.match("Cannot (overwrite|declare|mutate)", str(error)):
        return (
            "a key or a [section] stands twice: write your lines under the [section] that is there already, "
            "in place of the line of the same key"
        )
    return 'a text stands in quotes, as in model = "name"; a list in brackets'


_LISTS = ("connections", "publish")
"""Keys that are lists of tables, each checked by a model of its own."""

_NOT_SHOWN = {*_LISTS, "api_key_env", "api_key_file", "secret_env", "secret_file", "extra_body"}


def _config_error(error: ValidationError, file: Path) -> ConfigError:
    faults = error.errors(include_url=False)
    fault = faults[0]
    location = fault["loc"]
    table, key = _table(location[:-1]), str(location[-1]) if location else ""
    cause = fault.get("ctx", {}).get("error")
    hint = None
    if fault["type"] == "extra_forbidden":
        nearest, hint = _nearest(location)
        what = f"{table}unknown key `{key}`; the nearest known one is `{nearest}`"
    elif fault["type"] == "missing":
        what = f"{table}`{key}` is missing"
    elif isinstance(cause, _DisagreementError):
        what = f"{_table(location)}{cause.key} = {_shown(cause.key, cause.value)}: must be {cause}"
    else:
        key = f"{location[-2]}[{key}]" if isinstance(location[-1], int) and len(location) > 1 else key
        table = _table(location[:-2]) if key.endswith("]") else table
        what = f"{table}{key} = {_shown(key, fault['input'])}: must be {_bound(fault)}"
    if len(faults) > 1:
        hint = f"{hint}; " if hint else ""
        hint += f"{len(faults) - 1} more to mend in this file"
    return ConfigError(what, where=str(file), hint=hint)


def _table(location: tuple[int | str, ...]) -> str:
    """`[agent.prices] ` or `[[connections]] 2 (imap) `: where in the file a key stands."""
    if not location:
        return ""
    if location[0] not in _LISTS:
        return f"[{'.'.join(str(part) for part in location)}] "
    number = f" {int(location[1]) + 1}" if len(location) > 1 else ""
    model = f" ({location[2]})" if len(location) > 2 else ""  # noqa: PLR2004 - list, number, model
    return f"[[{location[0]}]]{number}{model} "


def _bound(fault: ErrorDetails) -> str:
    """What a value must be, in words."""
    bounds = fault.get("ctx", {})
    if fault["type"] == "value_error":
        return str(bounds["error"])
    for name, words in (
        ("ge", "at least"),
        ("le", "at most"),
        ("expected", "one of"),
    ):
        if name in bounds:
            bound = bounds[name]
            return f"{words} {bound:.15g}" if isinstance(bound, float) else f"{words} {bound}"
    return {
        "int_type": "a whole number",
        "float_type": "a number",
        "finite_number": "a finite number",
        "bool_type": "true or false",
        "string_type": "text in quotes",
        "string_pattern_mismatch": "letters, digits, `-` and `_`",
        "string_too_short": "text that is not empty",
        "too_short": "a list that is not empty",
        "model_type": "a table",
        "dict_type": "a table",
        "model_attributes_type": "a table",
    }.get(fault["type"], str(fault["msg"]))


def _shown(key: str, value: object) -> str:
    """A value for an error; places where a key might have been put by mistake are not shown."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    if key in _NOT_SHOWN or "@" in text or (key in {"base_url", "homeserver", "url"} and "?" in text):
        return "(not shown)"
    return text if len(text) <= 80 else f"{text[:77]}…"  # noqa: PLR2004 - one line


def _nearest(location: tuple[int | str, ...]) -> tuple[str, str | None]:
    """The nearest known key of the same table, and the table that the unknown key belongs to, if any."""
    key = str(location[-1])
    known = _keys_of(_model_at(location[:-1]))
    nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
    homes = [name for name in _Document.model_fields if key in _keys_of(_model_at((name,)))]
    hint = f"`{key}` belongs to [{homes[0]}]" if homes else f"write `{nearest}`, or remove `{key}`"
    return nearest, hint


def _keys_of(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_at(location: tuple[int | str, ...]) -> type[BaseModel]:
    if location[:1] == ("publish",):
        return _TARGETS[str(location[2])] if len(location) > 2 else PublishConfig  # noqa: PLR2004
    if location[:1] == ("connections",):
        settings = _settings_of(str(location[2])) if len(location) > 2 else None  # noqa: PLR2004
        return settings or ConnectionConfig
    model: type[BaseModel] = _Document
    for part in location:
        annotation = model.model_fields[str(part)].annotation
        model = annotation if isinstance(annotation, type) else model
    return model


def parse_start_at(value: object) -> int:
    """What `input.start_at` means, in milliseconds since 1970.

    Args:
        value: Unix seconds, or an RFC 3339 time as text or `datetime`.

    Raises:
        ConfigError: It is none of these.

    Example:
        >>> parse_start_at("2026-07-01T08:00:00+08:00")
        1782864000000
    """
    try:
        return _milliseconds(value)
    except ValueError as bound:
        raise ConfigError(f"start_at = {_shown('start_at', value)}: must be {bound}") from None


def require_model(config: Config) -> None:
    """Refuse to go on without a model, with the commands that mend it.

    Raises:
        ConfigError: `agent.base_url` or `agent.model` is empty. Nothing is ever chosen silently.

    Example:
        >>> require_model(load_config())  # doctest: +SKIP
    """
    if not config.agent.is_configured:
        raise not_configured_error(config.file)


_MENDING_COMMANDS = (
    "`chatproc check` finds model servers on this machine and shows the lines to write; "
    '`chatproc model fetch`, then base_url = "local", needs no key; '
    "`chatproc check --ping` tries any endpoint that you wrote"
)


def not_configured_error(file: Path) -> ConfigError:
    """The error of a command that needs a model while none is configured.

    Args:
        file: The configuration file to edit.
    """
    return ConfigError(
        "no model is configured",
        where=f"{file}: [agent] base_url, model",
        hint=_MENDING_COMMANDS,
    )
