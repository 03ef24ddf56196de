"""`chatproc import auto`: each sample is known as what it is and as nothing else; what is unsure is asked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from chatproc.errors import ConfigError
from chatproc.importers import FORMATS, import_chats

SAMPLES = Path(__file__).parent / "samples"
DEMO = Path(__file__).parent.parent / "examples" / "demo"
# What the files of a folder are; a sample of an answer that holds no messages is nothing.
FOLDERS = {
    "chatlab/*": "chatlab",
    "discord/*.json": "discord",
    "email/*.eml": "eml",
    "feishu/*.json": "feishu",
    "line/*.txt": "line",
    "matrix/element_*.json": "matrix",
    "mbox/*.mbox": "mbox",
    "qq/pcqq_*.txt": "qq-txt",
    "qq/qce_*.json": "qq-qce",
    "slack/*.zip": "slack",
    "slack/constructed": "slack",
    "telegram/*.json": "telegram",
    "wechat/chatlog.csv": "chatlog",
    "wechat/chatlog_api.json": "chatlog",
    "wechat/memotrace_*.csv": "memotrace",
    "wechat/weflow.json": "weflow",
    "whatsapp/*.txt": "whatsapp",
    # Whole folders of one kind.
    "discord": "discord",
    "email": "eml",
    "feishu": "feishu",
    "line": "line",
    "mbox": "mbox",
    "whatsapp": "whatsapp",
    # What an API answers, and parts of exports, are no exports.
    "wechat/chatlog_api_error.json": None,
    "matrix/synapse_*.json": None,
    "slack/constructed/*.json": None,
    "slack/constructed/general/*": None,
    "slack/*.json": None,
}
KINDS = [(path, form) for place, form in FOLDERS.items() for path in sorted(SAMPLES.glob(place))]
KINDS += [(DEMO / "qq", "qq-qce"), (DEMO / "telegram", "telegram")]


@pytest.mark.parametrize(("path", "form"), KINDS, ids=lambda value: getattr(value, "name", value))
def test_each_sample_is_recognized_as_its_own_format_and_no_other(path: Path, form: str | None) -> None:
    assert [known.name for known in FORMATS.values() if known.recognizes(path)] == ([form] if form else [])


def test_no_sample_is_left_out_of_that() -> None:
    told = {path for path, _ in KINDS}
    inside = {path for path in SAMPLES.rglob("*") if path.is_file() and path.name != "SOURCES.md"}
    assert {path for path in inside if not told & {path, *path.parents}} == set()
    assert {form for _, form in KINDS} >= set(FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        "[2019-12-24, 12:23] Jane Doe: Hello John!\n[2020-01-17, 21:49] John Doe: Hello\n",  # Signal
        '{"error": "no such chat"}',
        "From: here to there\nit is far\n",
        "Subject,Date\n1,2\n",
        "Lieber Leser: dies ist ein Text.\n",
        "[]",
        "<html><body>From: x</body></html>",
        "\0" * 100,
    ],
)
def test_what_only_looks_like_an_export_is_none(text: str, tmp_path: Path) -> None:
    for name in ("x.txt", "x.json", "x.csv", "result.json"):
        (tmp_path / name).write_text(text)
        matched = [known.name for known in FORMATS.values() if known.recognizes(tmp_path / name)]
        assert matched == ([] if not text.startswith("From: ") else ["eml"])


def test_auto_imports_what_the_named_format_imports(tmp_path: Path) -> None:
    for path in (DEMO / "qq", SAMPLES / "telegram/edge.json", SAMPLES / "email"):
        form = next(form for known, form in KINDS if known == path)
        told = import_chats(form, [path], out=tmp_path / "told")
        found = import_chats("auto", [path], out=tmp_path / "found")
        assert [Path(file).name for file in found.files] == [Path(file).name for file in told.files]
        for one, other in zip(found.files, told.files, strict=True):
            assert Path(one).read_bytes() == Path(other).read_bytes()


def test_a_folder_of_several_exports_is_read_thing_by_thing(tmp_path: Path) -> None:
    mixed = tmp_path / "exports"
    (mixed / "deep/er").mkdir(parents=True)
    shutil.copy(SAMPLES / "email/legacy_014.eml", mixed / "a.eml")
    shutil.copy(SAMPLES / "qq/qce_v5_single.json", mixed / "qq.json")
    shutil.copy(SAMPLES / "telegram/edge.json", mixed / "deep/er/result.json")
    (mixed / "holiday.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    report = import_chats("auto", [mixed], out=tmp_path / "out")
    forms = sorted(Path(file).name.rsplit("-", 1)[0] for file in report.files)
    assert forms == ["eml", "qq-qce", "telegram"]


def test_what_nobody_knows_is_refused_with_all_that_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk\n")
    (tmp_path / "empty").write_text("")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "empty"):
        with pytest.raises(ConfigError) as error:
            import_chats("auto", [path], out=tmp_path / "out")
        assert str(path) in str(error.value)
        assert all(form.name in (error.value.hint or "") for form in FORMATS.values())
        assert all(form.looks_for in (error.value.hint or "") for form in FORMATS.values())


def test_what_may_be_several_things_is_asked(tmp_path: Path) -> None:
    both = tmp_path / "both.json"
    telegram = json.loads((SAMPLES / "telegram/edge.json").read_text("utf-8"))
    both.write_text(json.dumps({**telegram, "chatInfo": {}}), "utf-8")
    matches = {form.name for form in FORMATS.values() if form.recognizes(both)}
    assert matches >= {"qq-qce", "telegram"}
    with pytest.raises(ConfigError) as error:
        import_chats("auto", [both], out=tmp_path / "out")
    assert all(name in str(error.value) for name in matches)
    assert not (tmp_path / "out").exists()
