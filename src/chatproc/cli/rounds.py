"""The commands of rounds and connections: what would be done, doing it, and how things stand."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from chatproc.cli import render
from chatproc.cli.command import PART_DONE, command
from chatproc.cli.voice import flush_or_leave
from chatproc.plaintext import escaped_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.cli.voice import Voice


@command("status", example="chatproc status --json")
def _status(voice: Voice) -> None:
    """Show counts, the last round, and what waits; reads no batch."""
    from chatproc import store

    voice.show(store.status(voice.config()).to_dict(), render.status_blocks)


@command(
    "preview",
    example="chatproc preview --limit 1 --full > request.json",
    options=(
        click.option(
            "--limit", type=click.IntRange(min=1), default=5, show_default=True, help="How many groups."
        ),
        click.option("--group", metavar="ID", help="Only this group."),
        click.option("--full", is_flag=True, help="The exact request documents, one a line."),
    ),
)
def _preview(voice: Voice, *, limit: int, group: str | None, full: bool) -> None:
    """Show the next groups, their sizes and cost; nothing is written or sent."""
    from chatproc import pipeline

    with voice.progress() as progress:
        found = pipeline.preview(voice.config(), limit=limit, group=group, full=full, progress=progress)
    if full and not voice.as_json:
        # Byte for byte, but for a terminal, which could obey what stands in a message.
        shown = escaped_json if sys.stdout.isatty() else str
        sys.stdout.writelines(f"{shown(document)}\n" for document in found.documents)
        return
    voice.show(found.to_dict(), render.preview_blocks)


@command("once", example="chatproc once --config config/processor.toml")
def _once(voice: Voice) -> int:
    """Export what waits, read new input, run one round, export."""
    from chatproc import pipeline

    with voice.progress() as progress:
        report = pipeline.run_round(voice.config(), progress=progress)
    voice.show(report.to_dict(), render.round_blocks)
    return report.exit_code


@command("export", example="chatproc export")
def _export(voice: Voice) -> int:
    """Publish the task events that wait in the outbox."""
    from chatproc import pipeline

    with voice.progress() as progress:
        report = pipeline.export(voice.config(), progress=progress).to_dict()
    voice.show(report, render.export_blocks)
    return PART_DONE if report["waiting"] else 0


@command(
    "run",
    example="chatproc run --config config/processor.toml",
    options=(click.option("--dry-run", is_flag=True, help="Only say what would be synced, and why."),),
)
def _run(voice: Voice, *, dry_run: bool) -> int:
    """Sync connections and run rounds until SIGTERM or Ctrl-C; then exit 0.

    The configuration is read again at every tick. A second signal ends it at once; neither loses anything.
    """
    from chatproc.loop.running import run_loop

    if dry_run:
        from chatproc.schedule import plan_run

        plan = plan_run(voice.config())
        _say_if_none(voice, plan["connections"])
        voice.show(plan, render.plan_blocks)
        return 0
    report = run_loop(voice.config_file, tell=voice.say)
    if report is None:
        voice.say("something hangs and is left behind; nothing is lost by that")
        flush_or_leave()
        os._exit(0)
    voice.show(report.to_dict(), render.answer_blocks)
    return 0


@command(
    "sync",
    example="chatproc sync imap/work",
    options=(
        click.argument("connection", metavar="[CONNECTION]", required=False),
        click.option("--force", is_flag=True, help="Also what stopped or failed too often."),
    ),
)
def _sync(voice: Voice, connection: str | None, *, force: bool) -> int:
    """Sync one connection now, or all that are enabled, due or not.

    CONNECTION is TOOLKIT/ID, or an id that only one connection has. No model is asked.
    """
    from chatproc import schedule

    report = schedule.sync_connections(voice.config(), connection, force=force)
    _say_if_none(voice, report.connections)
    voice.show(report.to_dict(), render.sync_blocks)
    return report.exit_code


@command("connections", example="chatproc connections --json")
def _connections(voice: Voice) -> None:
    """Show how each connection stands: why it is not synced now, and when it will be."""
    from chatproc import schedule

    states = schedule.connections(voice.config())
    _say_if_none(voice, states.connections)
    voice.show(states.to_dict(), render.connections_blocks)


def _say_if_none(voice: Voice, entries: Sequence[object]) -> None:
    if not entries:
        voice.say("no connection is configured: a source is a table [[connections]] in the configuration")
