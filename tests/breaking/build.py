"""The package with fail points, which no wheel has: built once, beside the installed one."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from tests.project import ROOT


@functools.cache
def failpoint_package() -> Path | None:
    """The folder of a copy of the package whose extension has the fail points; none without cargo."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return None
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    command = [cargo, "build", "-q", "--locked", "-p", "chatproc-python", "--features", "failpoints"]
    environment = {**os.environ, "PYO3_BUILD_EXTENSION_MODULE": "1", "CARGO_TARGET_DIR": str(target)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    # One for each process that wants it, else two that test side by side would replace each other's.
    package = target / "failpoints" / str(os.getpid()) / "chatproc"
    _sweep(package.parent.parent)
    shutil.copytree(
        ROOT / "src" / "chatproc", package, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    )
    built = target / "debug" / ("lib_core.dylib" if os.uname().sysname == "Darwin" else "lib_core.so")
    shutil.copy(built, package / "_core.abi3.so")
    return package.parent


def _sweep(folder: Path) -> None:
    """Remove the copies of processes that are gone."""
    for copy in folder.glob("*"):
        if not Path(f"/proc/{copy.name}").exists():
            shutil.rmtree(copy, ignore_errors=True)
