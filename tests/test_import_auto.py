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
EMAIL = sorted(path for path in (SAMPLES / "email").glob("*.eml"))
TELEGRAM = sorted(path for path in (SAMPLES / "telegram").glob("*.json"))
KINDS = [
    *((path, "eml") for path in EMAIL),
    *((path, "telegram") for path in TELEGRAM),
    (SAMPLES / "qq/qce_v5_single.json", "qq-qce"),
    (SAMPLES / "email", "eml"),
    (DEMO / "qq", "qq-qce"),
    (DEMO / "telegram", "telegram"),
]


@pytest.mark.parametrize(("path", "form"), KINDS, ids=lambda value: getattr(value, "name", value))
def test_each_sample_is_recognized_as_its_own_format_and_no_other(path: Path, form: str) -> None:
    assert [known.name for known in FORMATS.values() if known.recognizes(path)] == [form]


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
