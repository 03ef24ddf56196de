"""The configuration: what is accepted, what is refused, and how a refusal reads."""

from __future__ import annotations

import contextlib
import glob
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatproc import _core
from chatproc import config as config_module
from chatproc.cli.command import DEFAULT_CONFIG
from chatproc.config import Config, is_loopback, load_config, not_configured_error, require_model
from chatproc.connectors import BUILT_IN, toolkit
from chatproc.errors import ConfigError
from chatproc.given import reading

ROOT = Path(__file__).parent.parent
FEED = '[[publish]]\nkind = "ics"\nfile = "x.ics"\n'
NOTE = FEED.replace("ics", "markdown", 1)
CALDAV = '[[publish]]\nkind = "caldav"\nname = "a"\nurl = "{}"'
JSONL = '[[connections]]\ntoolkit = "jsonl"\nid = "a"\npaths = ["x"]\n'


def write(folder: Path, text: str, name: str = "config/processor.toml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def load(folder: Path, text: str) -> Config:
    return load_config(write(folder, text))


def refusal(folder: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as raised:
        load(folder, text)
    assert raised.value.exit_code == 2
    assert str(folder / "config" / "processor.toml") in (raised.value.where or "")
    return raised.value


def test_an_empty_file_has_the_defaults_of_the_contract(tmp_path: Path) -> None:
    config = load(tmp_path, "")
    assert config.storage.state == tmp_path / "data/processor/state.db"
    assert config.storage.output == tmp_path / "data/todos"
    assert config.rules.file == tmp_path / "processing-rules/default.md"
    assert config.rules.timezone == "Asia/Shanghai"
    assert config.input.model_dump() == {
        "paths": (),
        "archive_root": None,
        "start_at_ms": 0,
        "max_line_bytes": 16 * 1024 * 1024,
        "settle_seconds": 5,
        "max_memory_mb": 512,
    }
    assert config.context.model_dump() == {
        "grouping": "sql",
        "gap_minutes": 30,
        "carry_messages": 5,
        "max_conversation_chars": 20000,
        "max_messages": 80,
        "max_related_chars": 6000,
    }
    assert config.processing.model_dump() == {"max_input_chars": 60000, "max_groups_per_round": 10}
    assert config.schedule.model_dump() == {"tick_seconds": 1200, "settle_seconds": 0, "watch": True}
    assert config.attachments.model_dump() == {
        "max_file_mb": 50,
        "max_memory_mb": 1024,
        "timeout_seconds": 30,
        "max_chars_per_read": 12000,
        "max_images_per_read": 4,
        "max_image_px": 1568,
    }
    agent = config.agent
    assert (agent.retries, agent.submit_attempts, agent.max_turns, agent.max_requests) == (4, 3, 30, 60)
    assert (agent.timeout_seconds, agent.max_session_seconds, agent.concurrency) == (120, 900, 4)
    assert (agent.base_url, agent.model, agent.batching, agent.local_threads) == ("", "", "auto", 1)
    assert agent.api_key_env == "CHAT_PROCESSOR_API_KEY"
    assert agent.api_key_file == tmp_path / "secrets/processor-api-key.txt"
    assert config.connections == ()


def test_the_root_is_the_parent_of_a_folder_called_config_else_the_file_s_own_folder(tmp_path: Path) -> None:
    beside = write(tmp_path, "", "processor.toml")
    assert load_config(beside).root == tmp_path
    within = write(tmp_path, '[storage]\nstate = "s.db"', "config/mine.toml")
    assert load_config(within).root == tmp_path
    assert load_config(within).storage.state == tmp_path / "s.db"
    assert load_config(within).file == within


def test_relative_configuration_paths_count_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "")
    monkeypatch.chdir(tmp_path)
    assert load_config().root == tmp_path


def test_globs_count_from_the_root_and_brackets_of_the_root_match_themselves(tmp_path: Path) -> None:
    root = tmp_path / "p[1]"
    config = load(root, '[input]\npaths = ["in/*.jsonl", "/elsewhere/*.gz"]')
    (root / "in").mkdir()
    (root / "in" / "a.jsonl").touch()
    found = glob.glob(config.input.paths[0])  # noqa: PTH207 - the glob is absolute
    assert [Path(path) for path in found] == [root / "in/a.jsonl"]
    assert config.input.paths[1] == "/elsewhere/*.gz"


@pytest.mark.parametrize(
    ("glob", "counts"),
    [
        ("**", True), ("a/**/b", True), ("**/*.jsonl", True), ("[]]", True), ("[[]", True), ("[!]]", True),
        ("***", False), ("a**", False), ("**a", False), ("[x]**", False), ("[]", False), ("[!]", False),
        ("[!a]*", True), ("[a", False), ("a]", True),
    ],
)  # fmt: skip
def test_a_glob_is_taken_where_the_core_takes_it(tmp_path: Path, glob: str, counts: bool) -> None:  # noqa: FBT001
    if counts:
        load(tmp_path, f"[input]\npaths = ['{glob}']")
    else:
        assert "must be a glob" in refusal(tmp_path, f"[input]\npaths = ['{glob}']").what
    config = load(tmp_path, "")
    paths = (f"{tmp_path}/{glob}",)
    unchecked = config.model_copy(update={"input": config.input.model_copy(update={"paths": paths})})
    core = _core.Connections(tmp_path / "state.db", 1)
    run = core.lease("jsonl", "a", "me", "sync", 1, 60_000)["run"]
    wanted = {**reading(unchecked), "paths": list(paths), "now": 1}
    with contextlib.nullcontext() if counts else pytest.raises(ConfigError, match="is no pattern"):
        core.ingest("jsonl", "a", run, "me", wanted)
    core.close()


@pytest.mark.parametrize(
    ("text", "table", "key", "nearest"),
    [
        ('[agent]\nmodle = "x"', "[agent]", "modle", "model"),
        ("[agnet]", "", "agnet", "agent"),
        ("[context]\nmax_message = 3", "[context]", "max_message", "max_messages"),
        ("[agent.prices]\ninptu = 3", "[agent.prices]", "inptu", "input"),
        ("[input]\nstart_ta = 3", "[input]", "start_ta", "start_at"),
        (JSONL + 'pahts = ["x"]', "[[connections]] 1 (jsonl)", "pahts", "paths"),
        (FEED + 'name = "a"\nkeep_day = 3', "[[publish]] 1 (ics)", "keep_day", "keep_days"),
        ('root = "x"', "", "root", ""),
        ('file = "x"', "", "file", ""),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(
    tmp_path: Path, text: str, table: str, key: str, nearest: str
) -> None:
    error = refusal(tmp_path, text)
    assert error.what.startswith(table)
    assert f"unknown key `{key}`" in error.what
    assert f"nearest known one is `{nearest}" in error.what


def test_a_key_of_another_table_is_told_where_it_belongs(tmp_path: Path) -> None:
    error = refusal(tmp_path, '[agent]\ntimezone = "UTC"')
    assert error.hint == "`timezone` belongs to [rules]"


@pytest.mark.parametrize(
    ("text", "key", "value", "bound"),
    [
        ("[agent]\nretries = -1", "retries", "-1", "at least 0"),
        ("[agent]\nretries = true", "retries", "true", "a whole number"),
        ('[agent]\nretries = "4"', "retries", "'4'", "a whole number"),
        ("[agent]\nconcurrency = 0", "concurrency", "0", "at least 1"),
        ("[agent]\ntimeout_seconds = -0.5", "timeout_seconds", "-0.5", "at least 0"),
        ("[agent]\ntimeout_seconds = inf", "timeout_seconds", "inf", "a finite number"),
        ("[agent]\nvision = 1", "vision", "1", "true or false"),
        ("[agent]\nmodel = 3", "model", "3", "text in quotes"),
        ('[agent]\ntools = "some"', "tools", "'some'", "'all' or 'submit'"),
        ('[agent]\nbase_url = "example.org/v1"', "base_url", "'example.org/v1'", "https://"),
        ('[agent]\nbase_url = "http://example.org"', "base_url", "'http://example.org'", "allow_http"),
        ("[agent]\nreserve_tokens = 999999", "reserve_tokens", "999999", "less than context_window (131072)"),
        ("[agent.prices]\noutput = -1", "output", "-1", "at least 0"),
        ("[input]\nmax_line_bytes = 0", "max_line_bytes", "0", "at least 1"),
        ("[input]\nmax_memory_mb = 0", "max_memory_mb", "0", "at least 1"),
        ('[input]\npaths = "x"', "paths", "'x'", "a list"),
        ('[input]\npaths = ["x", 3]', "paths[1]", "3", "in quotes"),
        ('[input]\nstart_at = "2026-07-01"', "start_at", "'2026-07-01'", "RFC 3339"),
        ("[input]\nstart_at = 2026-07-01T00:00:00", "start_at", "2026", "RFC 3339"),
        ("[input]\nstart_at = -1", "start_at", "-1", "from 0"),
        ('[storage]\nstate = ""', "state", "''", "not empty"),
        ('[storage]\nstate = "a\\u0000b"', "state", "", "a path"),
        ('[rules]\ntimezone = "Mars/Base"', "timezone", "'Mars/Base'", "Asia/Shanghai"),
        ('[rules]\ntimezone = "../../etc/passwd"', "timezone", "passwd", "Asia/Shanghai"),
        ('[context]\ngrouping = "sqll"', "grouping", "'sqll'", "'sql', 'time' or 'session'"),
        ("[context]\nmax_messages = 0", "max_messages", "0", "at least 1"),
        ("[schedule]\ntick_seconds = 0", "tick_seconds", "0", "at least 1"),
        ("[schedule]\nsettle_seconds = -1", "settle_seconds", "-1", "at least 0"),
        ("[attachments]\nmax_image_px = 9999999999999999", "max_image_px", "9999999999999999", "at most"),
        ("input = 3", "input", "3", "a table"),
        ("connections = 3", "connections", "(not shown)", "[[connections]]: two brackets"),
        ('[connections]\npassword = "x"', "connections", "(not shown)", "[[connections]]: two brackets"),
        ('[input]\npaths = ["a/**b"]', "paths[0]", "'a/**b'", "stands alone between slashes"),
        (JSONL.replace('"x"', '"a/[x.jsonl"'), "paths[0]", "'a/[x.jsonl'", "each `[` has its `]`"),
        ('[[connections]]\ntoolkit = "telex"\nid = "a"', "toolkit", "'telex'", "jsonl, imap"),
        ('[[connections]]\ntoolkit = 3\nid = "a"', "toolkit", "3", "jsonl, imap"),
        ("connections = [3]", "connections[0]", "3", "a table"),
        ("publish = [3]", "publish[0]", "3", "a table"),
        ('[publish]\nname = "x"', "publish", "(not shown)", "[[publish]]: two brackets"),
        ('[[publish]]\nkind = "icz"\nname = "a"', "kind", "'icz'", "caldav, ics, markdown"),
        ('[[publish]]\nkind = ["ics"]\nname = "a"', "kind", "['ics']", "caldav, ics, markdown"),
        (f'{FEED}name = "a/b"', "name", "'a/b'", "letters, digits"),
        (f'{FEED}name = "a"\n{FEED}name = "a"', "publish.name", "'a'", "given once"),
        (f'{FEED}name = "a"\n{NOTE}name = "b"', "publish.file", "'/", "one entry"),
        (CALDAV.format("http://example.org/x"), "url", "http://example.org/x", "https://"),
        (CALDAV.format("https://u:p@example.org/x"), "url", "(not shown)", "without user"),
        (JSONL + JSONL.replace("jsonl", "JSONL"), "id", "'a'", "once within jsonl"),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_with_key_value_bound_and_file(
    tmp_path: Path, text: str, key: str, value: str, bound: str
) -> None:
    what = refusal(tmp_path, text).what
    assert re.search(rf"(^|\W){re.escape(key)} = ", what)
    assert value in what
    assert bound in what.split(": must be ", 1)[1]


def test_a_missing_key_of_a_connection_is_named(tmp_path: Path) -> None:
    error = refusal(tmp_path, '[[connections]]\ntoolkit = "imap"\nid = "a"\nuser = "u"')
    assert error.what == "[[connections]] 1 (imap) `host` is missing"
    assert refusal(tmp_path, '[[connections]]\nid = "a"').what == "[[connections]] 1 `toolkit` is missing"


@pytest.mark.parametrize("name", [name for name in BUILT_IN if find_spec(f"chatproc.connectors.{name}")])
def test_a_connector_of_the_package_has_the_settings_that_the_configuration_checks(name: str) -> None:
    found = toolkit(name)
    assert (found.name, found.settings) == (name, config_module._CONNECTIONS[name])


def test_toolkits_are_compared_lower_case_and_bare_number_ids_are_text(tmp_path: Path) -> None:
    text = '[[connections]]\ntoolkit = "OneBot"\nid = 7\nbase_url = "http://127.0.0.1:3000"\ngroups = [999]'
    (connection,) = load(tmp_path, text).connections
    assert (connection.toolkit, connection.id, connection.groups) == ("onebot", "7", ("999",))


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    assert "line 2" in refusal(tmp_path, "[agent]\nmodel = = 3").what


def test_a_file_that_is_not_utf8_names_its_line(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    file.write_bytes(b"[agent]\nmodel = '\xd6\xd0'")
    with pytest.raises(ConfigError, match="not UTF-8") as raised:
        load_config(file)
    assert raised.value.where == f"{file}, line 2"


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    assert load(tmp_path, '\ufeff[agent]\nmodel = "m"').agent.model == "m"


def test_a_missing_file_is_a_configuration_error_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(tmp_path / "nothing.toml")
    assert isinstance(raised.value, FileNotFoundError)
    assert "chatproc init" in (raised.value.hint or "")
    assert raised.value.exit_code == 2


def test_a_folder_in_place_of_the_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load_config(tmp_path)


@pytest.mark.parametrize(
    "text", ["1782864000", "1782864000.0", '"2026-07-01T00:00:00Z"', "2026-07-01T08:00:00+08:00"]
)
def test_every_spelling_of_start_at_is_the_same_moment(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, f"[input]\nstart_at = {text}").input.start_at_ms == 1_782_864_000_000


@given(seconds=st.integers(0, 253_402_300_799), thousandths=st.integers(0, 999))
def test_start_at_keeps_milliseconds(seconds: int, thousandths: int) -> None:
    section = config_module.InputConfig.model_validate({"start_at": seconds + thousandths / 1000})
    assert section.start_at_ms == seconds * 1000 + thousandths


@pytest.mark.parametrize(
    "text",
    [
        'api_key_env = "sk-SECRET"',
        'api_key_file = ["SECRET"]',
        'base_url = "https://user:SECRET@example.org/v1"',
        'base_url = "https://example.org/v1?key=SECRET"',
        'base_url = "ftp://x:SECRET@example.org/"',
        'api_key = "SECRET"',
        "extra_body = { token = 'SECRET', at = 2026-07-01 }",
        "extra_body = { token = 'SECRET', messages = [] }",
    ],
)
def test_a_key_put_into_the_wrong_place_is_not_repeated(tmp_path: Path, text: str) -> None:
    error = refusal(tmp_path, f"[agent]\n{text}")
    assert "SECRET" not in f"{error!r} {error} {error.what} {error.where} {error.hint} {error.__dict__}"


def test_local_has_its_own_defaults_and_what_is_written_wins(tmp_path: Path) -> None:
    agent = load(tmp_path, '[agent]\nbase_url = "local"').agent
    assert (agent.tools, agent.tool_choice, agent.context_window) == ("submit", "required", 16384)
    assert agent.is_local
    assert agent.is_configured
    assert not agent.wants_key
    assert load(tmp_path, '[agent]\nbase_url = "local"\ntools = "all"').agent.tools == "all"
    assert load(tmp_path, '[agent]\nbase_url = "https://example.org/v1"').agent.tools == "all"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:11434/v1", "http://localhost:8080/v1", "http://[::1]:1234/v1"]
)
def test_plain_http_to_loopback_needs_no_leave(tmp_path: Path, url: str) -> None:
    assert load(tmp_path, f'[agent]\nbase_url = "{url}"').agent.base_url == url


def test_plain_http_elsewhere_needs_leave(tmp_path: Path) -> None:
    text = '[agent]\nbase_url = "http://10.0.0.2/v1"\nallow_http = true'
    assert load(tmp_path, text).agent.base_url == "http://10.0.0.2/v1"


@pytest.mark.parametrize("host", ["localhost.example.org", "127.0.0.1.example.org", "0.0.0.0", "10.0.0.1"])  # noqa: S104
def test_a_host_that_looks_like_loopback_is_not_loopback(host: str) -> None:
    assert not is_loopback(f"http://{host}/v1")


def test_without_a_model_the_error_names_three_commands(tmp_path: Path) -> None:
    config = load(tmp_path, '[agent]\nbase_url = "https://example.org/v1"')
    with pytest.raises(ConfigError) as raised:
        require_model(config)
    assert raised.value.hint == not_configured_error(config.file).hint
    assert re.findall(r"`(chatproc [^`]*)`", raised.value.hint or "") == [
        "chatproc check",
        "chatproc model fetch",
        "chatproc check --ping",
    ]


def test_the_configuration_is_frozen(tmp_path: Path) -> None:
    config = load(tmp_path, "")
    with pytest.raises(ValueError, match="frozen"):
        config.agent.model = "x"  # type: ignore[misc]


def test_the_shipped_file_says_the_true_defaults(tmp_path: Path) -> None:
    shipped = (ROOT / "config/processor.toml").read_text(encoding="utf-8")
    shown = re.sub(r"^# ([a-z_]+ = )", r"\1", shipped, flags=re.MULTILINE)
    keys = tomllib.loads(shown)
    assert {name: sorted(keys[name]) for name in keys} == {
        name: sorted(
            field.alias or key
            for key, field in getattr(config_module, f"{name.title()}Config").model_fields.items()
        )
        for name in keys
    }
    del keys["input"]["paths"], keys["agent"]["prices"], keys["agent"]["parallel_tool_calls"]
    keys["agent"].pop("extra_body")
    defaults = load(tmp_path, "")
    for name, section in keys.items():
        given = getattr(config_module, f"{name.title()}Config").model_validate(
            section, context={"root": tmp_path}
        )
        assert given == getattr(defaults, name), name


def test_the_packaged_templates_are_the_shipped_files() -> None:
    templates = ROOT / "src/chatproc/templates"
    pairs = {
        "processor.toml": "config/processor.toml",
        "default.md": "processing-rules/default.md",
        "default.en.md": "processing-rules/default.en.md",
    }
    assert sorted(path.name for path in templates.iterdir()) == sorted(pairs)
    for packaged, shipped in pairs.items():
        assert (templates / packaged).read_bytes() == (ROOT / shipped).read_bytes(), (
            f"cp {shipped} {templates}"
        )


def test_the_command_line_looks_where_load_config_looks() -> None:
    assert DEFAULT_CONFIG == config_module.DEFAULT_CONFIG


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[agent]\nmodel = "a"\nmodel = ""\n', "stands twice"),
        ('[agent]\nmodel = "a"\n[agent]\nretries = 1\n', "stands twice"),
        ("[agent]\nmodel = a\n", "in quotes"),
    ],
)
def test_a_slip_in_the_writing_is_told_with_what_mends_it(tmp_path: Path, text: str, hint: str) -> None:
    error = refusal(tmp_path, text)
    assert "line" in str(error)
    assert hint in (error.hint or "")
