"""The key: where it is looked for, in which order, when it is refused, and that it never shows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatproc.config import Config, load_config
from chatproc.credentials import _sendable, read_api_key, read_secret
from chatproc.errors import CredentialError

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE = "CHAT_PROCESSOR_API_KEY"
KEY = "sk-0123456789abcdef"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "secrets").mkdir()
    return tmp_path


def configuration(root: Path, extra: str = "") -> Config:
    file = root / "processor.toml"
    file.write_text(f'[agent]\nbase_url = "https://example.org/v1"\nmodel = "m"\n{extra}', encoding="utf-8")
    return load_config(file)


def write_key(root: Path, content: bytes, mode: int = 0o600) -> Path:
    file = root / "secrets" / "processor-api-key.txt"
    file.write_bytes(content)
    file.chmod(mode)
    return file


def write_dotenv(root: Path, text: str) -> None:
    (root / ".env").write_text(text, encoding="utf-8")


def refusal(config: Config) -> CredentialError:
    with pytest.raises(CredentialError) as raised:
        read_api_key(config)
    assert raised.value.exit_code == 5
    return raised.value


def everything_about(error: BaseException | None) -> str:
    told = ""
    while error is not None:
        told += f"{error!r} {error} {error.__dict__}"
        error = error.__cause__ or error.__context__
    return told


def test_the_variable_comes_before_dotenv_and_dotenv_before_the_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configuration(root)
    write_key(root, b"from-file")
    assert read_api_key(config) == "from-file"
    write_dotenv(root, f"{VARIABLE}=from-dotenv\n")
    assert read_api_key(config) == "from-dotenv"
    monkeypatch.setenv(VARIABLE, "from-variable")
    assert read_api_key(config) == "from-variable"


def test_an_empty_variable_is_no_key(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "  ")
    write_key(root, b"from-file")
    assert read_api_key(configuration(root)) == "from-file"


def test_the_key_is_read_anew_at_each_call(root: Path) -> None:
    config = configuration(root)
    write_key(root, b"old")
    assert read_api_key(config) == "old"
    write_key(root, b"new")
    assert read_api_key(config) == "new"


def test_surrounding_white_space_and_a_byte_order_mark_are_no_part_of_the_key(root: Path) -> None:
    write_key(root, b"\xef\xbb\xbf " + KEY.encode() + b"\r\n")
    assert read_api_key(configuration(root)) == KEY


@pytest.mark.parametrize("places", ["", f'api_key_env = "{VARIABLE}"\n'])
def test_the_error_lists_every_place_that_was_looked_at(root: Path, places: str) -> None:
    error = refusal(configuration(root, places))
    where = error.where or ""
    assert where.index(VARIABLE) < where.index(str(root / ".env")) < where.index("processor-api-key.txt")
    assert "chmod 600" in (error.hint or "")


def test_both_settings_empty_mean_that_no_key_is_wanted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    assert read_api_key(configuration(root, 'api_key_env = ""\napi_key_file = ""')) is None


def test_one_setting_empty_still_wants_a_key_from_the_other(root: Path) -> None:
    config = configuration(root, 'api_key_env = ""')
    assert VARIABLE not in (refusal(config).where or "")
    write_key(root, b"from-file")
    assert read_api_key(config) == "from-file"


@pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_file_open_to_others_is_refused_with_the_command_that_mends_it(root: Path, mode: int) -> None:
    file = write_key(root, KEY.encode(), mode)
    error = refusal(configuration(root))
    assert error.hint == f"chmod 600 {file}"
    assert KEY not in everything_about(error)
    file.chmod(0o600)
    assert read_api_key(configuration(root)) == KEY


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_in_the_file_s_place_does_not_hang(root: Path) -> None:
    os.mkfifo(root / "secrets" / "processor-api-key.txt", 0o600)
    assert "regular file" in refusal(configuration(root)).what


@pytest.mark.parametrize(
    "content",
    [
        f"{KEY}\nX-Other: 1".encode(),
        f"{KEY} {KEY}".encode(),
        f"{KEY}\x00".encode(),
        f"{KEY}\x1b[0m".encode(),
        f"{KEY}钥".encode(),
        f"{KEY}é".encode("latin-1"),
        KEY.encode("utf-16"),
        KEY.encode() * 10_000,
    ],
)
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(root: Path, content: bytes) -> None:
    write_key(root, content)
    error = refusal(configuration(root))
    assert KEY not in everything_about(error)
    assert KEY not in everything_about(error).replace("\\x00", "").replace("\x00", "")
    assert "processor-api-key.txt" in (error.where or "")


@given(st.text(min_size=1))
def test_what_is_accepted_fits_into_a_header_and_what_is_refused_never_shows(key: str) -> None:
    try:
        accepted = _sendable(key, "here")
    except CredentialError as error:
        assert len(key) < 4 or key not in everything_about(error)  # noqa: PT017 - either way is right
    else:
        assert accepted.isascii()
        assert accepted.isprintable()
        assert " " not in accepted


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"{VARIABLE}=abc", "abc"),
        (f"export {VARIABLE} = abc", "abc"),
        (f'{VARIABLE}="abc" # mine', "abc"),
        (f"{VARIABLE}='a#c'", "a#c"),
        (f"{VARIABLE}=abc # mine", "abc"),
        (f"{VARIABLE}=a#c", "a#c"),
        (f"# {VARIABLE}=no\nOTHER=x\r\n{VARIABLE}=abc\r\n", "abc"),
        (f"{VARIABLE}=first\n{VARIABLE}=second", "second"),
        (f"\ufeff{VARIABLE}=abc", "abc"),
        (f"{VARIABLE}=$HOME", "$HOME"),
    ],
)
def test_the_usual_spellings_of_dotenv_are_understood(root: Path, text: str, key: str) -> None:
    write_dotenv(root, text)
    assert read_api_key(configuration(root)) == key


@pytest.mark.parametrize(
    "text", [f"{VARIABLE}=", f'{VARIABLE}=""', f"{VARIABLE}= # none", f"X{VARIABLE}=abc"]
)
def test_a_dotenv_without_the_key_is_said_to_be_without(root: Path, text: str) -> None:
    write_dotenv(root, text)
    assert f"{root / '.env'} (has no {VARIABLE})" in (refusal(configuration(root)).where or "")


# ── secrets of connections ───────────────────────────────────────────────────────────────────────────


def secret_of(root: Path, keys: str) -> str | None:
    entry = f'[[connections]]\ntoolkit = "imap"\nid = "work"\nhost = "h"\nuser = "u"\n{keys}'
    config = configuration(root, entry)
    return read_secret(config, config.connections[0])


def test_a_secret_is_looked_for_like_the_key_and_none_is_needed_where_none_is_configured(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert secret_of(root, "") is None
    keys = 'secret_env = "MAIL_SECRET"\nsecret_file = "secrets/processor-api-key.txt"'
    with pytest.raises(CredentialError, match="no secret found for imap/work") as raised:
        secret_of(root, keys)
    assert "MAIL_SECRET" in (raised.value.where or "")
    assert "chmod 600" in (raised.value.hint or "")
    write_key(root, b"from-file\n")
    assert secret_of(root, keys) == "from-file"
    write_dotenv(root, "MAIL_SECRET=from-dotenv\n")
    assert secret_of(root, keys) == "from-dotenv"
    monkeypatch.setenv("MAIL_SECRET", "from-variable")
    assert secret_of(root, keys) == "from-variable"


@pytest.mark.parametrize("secret", ["abcd efgh ijkl", "grüße", "密码 1", "à", '"quoted"'])
def test_a_secret_may_hold_spaces_and_any_letter(root: Path, secret: str) -> None:
    write_key(root, secret.encode() + b"\n")
    assert secret_of(root, 'secret_file = "secrets/processor-api-key.txt"') == secret


@pytest.mark.parametrize(
    ("content", "mode"), [(b"two\nlines", 0o600), (b"\xff\xfes\0e\0", 0o600), (b"secret", 0o640)]
)
def test_a_secret_that_is_no_line_or_open_to_others_is_refused_and_not_repeated(
    root: Path, content: bytes, mode: int
) -> None:
    write_key(root, content, mode)
    with pytest.raises(CredentialError) as raised:
        secret_of(root, 'secret_file = "secrets/processor-api-key.txt"')
    told = everything_about(raised.value)
    assert "lines" not in told
    assert "'secret'" not in told
