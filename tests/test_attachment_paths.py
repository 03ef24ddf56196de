"""Paths of attachments: whatever an event says, nothing outside of the archive is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from chatproc.attachments import Archive, UnreadableError, _inside, _read_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../secret.txt", "outside_archive"),
        ("folder/../../secret.txt", "outside_archive"),
        ("folder/../a.txt", "outside_archive"),
        ("/etc/hostname", "outside_archive"),
        ("a.txt\0.png", "outside_archive"),
        ("\ud800.txt", "outside_archive"),
        ("out.txt", "outside_archive"),
        ("out/secret.txt", "outside_archive"),
        ("loop", "outside_archive"),
        ("zero", "outside_archive"),
        ("pipe", "outside_archive"),
        ("", "missing"),
        ("folder", "missing"),
        (".", "missing"),
        ("a" * 5000, "missing"),
        ("/".join("a" * 3000), "missing"),
        ("a.txt/b", "missing"),
        ("..\\secret.txt", "missing"),
        ("\uff0e\uff0e/secret.txt", "missing"),
        ("file:///etc/hostname", "missing"),
        ("~/secret.txt", "missing"),
    ],
)
def test_no_path_leads_out_of_the_archive(tmp_path: Path, path: str, code: str) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "a.txt").write_text("inside")
    (tmp_path / "secret.txt").write_text("secret")
    (root / "out.txt").symlink_to("../secret.txt")
    (root / "out").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    (root / "zero").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe")
    with Archive(root) as archive, pytest.raises(UnreadableError) as refused:
        archive.read({"path": path, "type": "txt", "available": True})
    assert refused.value.code == code


@pytest.mark.parametrize("swapped", ["folder", "folder/inner", "folder/inner/a.txt"])
def test_a_link_that_comes_after_the_path_was_looked_at_is_not_followed(tmp_path: Path, swapped: str) -> None:
    for place, words in (("root", "inside"), ("elsewhere", "secret")):
        (tmp_path / place / "folder" / "inner").mkdir(parents=True)
        (tmp_path / place / "folder" / "inner" / "a.txt").write_text(words)
    root, path = _inside(tmp_path / "root", "folder/inner/a.txt")
    assert _read_file(root, path, 1) == b"inside"
    (root / swapped).rename(tmp_path / "aside")
    (root / swapped).symlink_to(tmp_path / "elsewhere" / swapped)
    with pytest.raises(UnreadableError) as refused:
        _read_file(root, path, 1)
    assert refused.value.code == "outside_archive"
