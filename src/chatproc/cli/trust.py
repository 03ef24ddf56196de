"""The commands by which a store is trusted: `verify`, `explain`, and `backup`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chatproc.cli import render
from chatproc.cli.command import command

if TYPE_CHECKING:
    from chatproc.cli.voice import Voice


@command("verify", example="chatproc verify --json")
def _verify(voice: Voice) -> int:
    """Compare the store and the exported files with what was written; offline, changes nothing."""
    from chatproc import store

    with voice.progress() as progress:
        verdict = store.verify(voice.config(), progress=progress)
    voice.show(verdict.to_dict(), render.verify_blocks)
    if not verdict.ok:
        voice.say("hint: keep the files as they are; a copy of the store from before is the way back")
    return verdict.exit_code


@command(
    "backup",
    example="chatproc backup ../chatproc-2026-07-01.db",
    options=(click.argument("file", metavar="FILE"),),
)
def _backup(voice: Voice, file: str) -> None:
    """Copy the whole store to one new file; works while rounds run."""
    from chatproc import store

    with voice.progress() as progress:
        copied = store.backup(voice.config(), file, progress=progress)
    voice.show(copied.to_dict(), render.answer_blocks)
    voice.say("it holds the chats and the tasks: keep it as private as the store")


@command(
    "explain",
    example="chatproc explain qq:10000:999000:7550123",
    options=(click.argument("message_key", metavar="MESSAGE_KEY"),),
)
def _explain(voice: Voice, message_key: str) -> None:
    """Tell one message's whole way: line, segment, commits, tasks, outcome and why."""
    from chatproc import store

    voice.show(store.explain(voice.config(), message_key).to_dict(), render.explain_blocks)
