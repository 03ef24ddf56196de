"""The commands of what comes in: exports of chat programs, and lines that could not be accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from chatproc.cli import render
from chatproc.cli.command import PART_DONE, command

if TYPE_CHECKING:
    from chatproc.cli.voice import Voice


@command(
    "import",
    example="chatproc import telegram export/result.json",
    options=(
        click.argument("form", metavar="FORMAT"),
        click.argument("paths", metavar="PATH...", nargs=-1, required=True),
        click.option(
            "--account", default="", metavar="ID", help="Whose export it is, where it does not say."
        ),
        click.option("--out", metavar="DIR", help="Where batches go; left out: data/import of the project."),
        click.option("--timezone", metavar="ZONE", help="For times without one; left out: rules.timezone."),
        click.option(
            "--complete",
            is_flag=True,
            help="The export holds whole conversations: its neighbours are neighbours.",
        ),
        click.option(
            "--date-order",
            type=click.Choice(["dmy", "mdy", "ymd"]),
            help="For a text export whose dates do not show their order.",
        ),
    ),
)
def _import(  # noqa: PLR0913 - each an option of the command
    voice: Voice,
    form: str,
    paths: tuple[str, ...],
    *,
    account: str,
    out: str | None,
    timezone: str | None,
    complete: bool,
    date_order: Literal["dmy", "mdy", "ymd"] | None,
) -> int:
    """Turn exports of chat programs into batches."""
    from chatproc.importers import import_chats

    config = voice.config()
    with voice.progress() as progress:
        report = import_chats(
            form,
            paths,
            account=account,
            out=out or config.root / "data/import",
            timezone=timezone or config.rules.timezone,
            complete=complete,
            date_order=date_order,
            archive_root=config.input.archive_root,
            progress=lambda name, done, total: progress.show(name, done, total, "bytes"),
        ).to_dict()
    voice.show(report, render.import_blocks)
    if report["timezone_assumed"]:
        voice.say(f"times without a zone were read as {timezone or config.rules.timezone}")
    if report["attachments"]["missing"] and config.input.archive_root is None:
        voice.say("hint: attachments are read below input.archive_root alone; set it and import again")
    if config.context.grouping != "session":
        voice.say('hint: for a full export write grouping = "session" under [context]')
    return PART_DONE if report["not_understood"] else 0


@command(
    "quarantine",
    example="chatproc quarantine show 3",
    options=(
        click.argument("action", type=click.Choice(["list", "show", "retry", "discard"]), default="list"),
        click.argument("line_id", metavar="[N]", type=int, required=False),
    ),
)
def _quarantine(voice: Voice, action: str, line_id: int | None) -> int:
    """List, show, retry or discard lines that could not be accepted."""
    from chatproc import refused

    config = voice.config()
    if action == "list":
        lines = [line.to_dict() for line in refused.quarantine(config)]
        voice.show({"lines": lines}, render.quarantine_blocks)
        return 0
    if line_id is None:
        raise click.UsageError(f"`quarantine {action}` needs the number of a line")
    if action == "show":
        voice.show(refused.quarantined_line(config, line_id).to_dict(), render.line_blocks)
        return 0
    if action == "retry":
        answer = refused.retry_quarantined(config, line_id)
        voice.show(answer, render.answer_blocks)
        return PART_DONE if answer["outcome"] == "refused" else 0
    refused.discard_quarantined(config, line_id)
    voice.show({"id": line_id, "outcome": "discarded"}, render.answer_blocks)
    return 0
