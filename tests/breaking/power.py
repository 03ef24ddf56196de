"""Disks whose power can be cut: file systems on image files that are shut down as they are, by the ioctl that
ext4 and xfs have for it. What was not synced until then is gone when they are mounted again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSHING = struct.pack("i", 2)
SIZES = {"ext4": 32, "xfs": 304}
"""MiB of an image; xfs makes none smaller."""


class NoDiskError(Exception):
    """Why there can be none here."""


class Disk:
    """A mounted image, or the image of one whose power was cut."""

    def __init__(self, kind: str, folder: Path, name: str) -> None:
        self.image = folder / f"{name}.img"
        self.fresh = folder / f"{name}.fresh"
        self.root = folder / name
        self.root.mkdir()
        self._mounted = False
        maker = shutil.which(f"mkfs.{kind}")
        if maker is None:
            raise NoDiskError(f"mkfs.{kind} is not there")
        with self.fresh.open("wb") as file:
            file.truncate(SIZES[kind] << 20)
        _run(maker, "-q", str(self.fresh))

    def renew(self) -> None:
        """An empty disk, mounted."""
        self.unmount()
        _run("cp", "--sparse=always", str(self.fresh), str(self.image))
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.root))
        self._mounted = True

    def unmount(self) -> None:
        # Not asked of the file system: one that was shut down answers nothing any more.
        if self._mounted:
            _run("umount", str(self.root))
            self._mounted = False

    def cut_power(self) -> None:
        """From now on nothing reaches the disk, and what did not reach it yet never will."""
        handle = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, _SHUTDOWN, _WITHOUT_FLUSHING)
        finally:
            os.close(handle)


@contextlib.contextmanager
def disks(kinds: tuple[str, ...], folder: Path) -> Iterator[list[Disk]]:
    """A disk of each kind; they can be made, or `NoDiskError` says why not."""
    made: list[Disk] = []
    try:
        for number, kind in enumerate(kinds):
            made.append(Disk(kind, folder, f"{kind}{number}"))
            made[-1].renew()
        yield made
    finally:
        for disk in made:
            disk.unmount()
            disk.image.unlink(missing_ok=True)
            disk.fresh.unlink()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoDiskError(f"{' '.join(command)}: {done.stderr.strip()}")
