"""What `init` writes: the configuration, the rules, the folders and the lines of `.gitignore`.

It never overwrites or removes anything, and writes no key.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from chatproc.config import project_root
from chatproc.whole import whole_file

if TYPE_CHECKING:
    from pathlib import Path

_FOLDERS = ("data", "data/inbox", "data/import", "secrets")
_RULES = {"zh": "default.md", "en": "default.en.md"}
_IGNORED = (".env", "secrets/", "data/")


@dataclass(frozen=True)
class Scaffold:
    """What `init` wrote and what it found."""

    root: Path
    written: list[str]
    """Paths and `.gitignore` lines, relative to the root."""
    kept: list[str]
    """What was there already and was left as it is."""

    def to_dict(self) -> dict[str, object]:
        """The document of `init --json`, but for the servers."""
        return {"root": str(self.root), "written": self.written, "kept": self.kept}


def write_scaffold(config_file: Path, language: Literal["zh", "en"]) -> Scaffold:
    """Write what a project needs and does not have.

    Args:
        config_file: Where the configuration goes; the project root follows from it.
        language: Of the rules.

    Raises:
        OSError: A file or folder cannot be written; what was written before stays.

    Example:
        >>> write_scaffold(Path("/p/config/processor.toml"), "zh").written[0]  # doctest: +SKIP
        'config/processor.toml'
    """
    root = project_root(config_file)
    written: list[str] = []
    kept: list[str] = []
    texts = {
        config_file: _template("processor.toml"),
        root / "processing-rules" / "default.md": _template(_RULES[language]),
    }
    for file, text in texts.items():
        (written if _write_new(file, text) else kept).append(str(file.relative_to(root)))
    for name in _FOLDERS:
        (kept if (root / name).is_dir() else written).append(f"{name}/")
        (root / name).mkdir(mode=0o700, exist_ok=True)
    missing = _add_ignored_lines(root / ".gitignore")
    written += [f".gitignore: {line}" for line in missing]
    kept += [f".gitignore: {line}" for line in _IGNORED if line not in missing]
    return Scaffold(root=root, written=written, kept=kept)


def _template(name: str) -> str:
    return (files("chatproc") / "templates" / name).read_text(encoding="utf-8")


def _write_new(file: Path, text: str) -> bool:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        return False
    try:
        # Half a configuration would be kept for ever.
        with whole_file(file, new=True) as opened:
            opened.write(text.encode())
    except FileExistsError:
        return False
    return True


def _add_ignored_lines(file: Path) -> list[str]:
    try:
        present = file.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        present = ""
    lines = {line.strip().removeprefix("/").rstrip("/") for line in present.splitlines()}
    missing = [line for line in _IGNORED if line.rstrip("/") not in lines]
    if missing:
        border = "" if not present or present.endswith("\n") else "\n"
        with file.open("a", encoding="utf-8", newline="") as opened:
            opened.write(border + "".join(f"{line}\n" for line in missing))
    return missing
