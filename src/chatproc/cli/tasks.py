"""The commands of tasks: list, show, decide, and bring them to where people look."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chatproc.cli import render
from chatproc.cli.command import command

if TYPE_CHECKING:
    from chatproc.cli.voice import Voice


@command(
    "tasks",
    example="chatproc tasks --status open --priority P0 --priority P1 --query 报告",
    options=(
        click.option("--status", multiple=True, help="Repeatable.",
                     type=click.Choice(["open", "completed", "cancelled", "superseded"])),
        click.option("--priority", multiple=True, type=click.Choice(["P0", "P1", "P2", "P3", "P4"]),
                     help="Repeatable."),
        click.option("--query", help="Words in title, event, people, place, notes or texts; all must occur."),
        click.option("--people", multiple=True, metavar="NAME", help="Repeatable."),
        click.option("--platform", metavar="NAME", help="As in the events: qq, wechat, telegram …"),
        click.option("--conversation", metavar="ID", help="Its id on the platform."),
        click.option("--due-from", metavar="TIME", help="Due then or later: RFC 3339, or a date."),
        click.option("--due-to", metavar="TIME", help="Due then or earlier."),
        click.option("--updated-from", metavar="TIME", help="Changed then or later."),
        click.option("--sort", type=click.Choice(["due", "priority", "updated", "created"]), default="due",
                     show_default=True, help="What comes first."),
        click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True,
                     help="Tasks a page."),
        click.option("--cursor", help="Where the last page said to go on."),
        click.option("--format", "form", type=click.Choice(["ics", "md", "csv", "json", "todo.txt"]),
                     help="The page in a format that other programs read."),
    ),
)  # fmt: skip
def _tasks(voice: Voice, form: str | None, **filters: Any) -> None:  # noqa: ANN401 - click hands over what was declared
    """List tasks."""
    from chatproc import tasks
    from chatproc.shapes import shape

    if voice.as_json and form not in {None, "json"}:
        raise click.UsageError(f"--json and --format {form} ask for two documents: leave one out")
    several = {name: list(filters[name]) or None for name in ("status", "priority", "people")}
    page = tasks.list_tasks(voice.config(), **{**filters, **several})
    if form is None:
        voice.show(page.to_dict(), render.tasks_blocks)
    else:
        sys.stdout.write(f"{render.json_text(page.to_dict())}\n" if form == "json" else shape(page, form))
    if page.next_cursor is not None:
        least = "at least " if page.at_least else ""
        voice.say(f"{len(page)} of {least}{page.total} tasks; more with --cursor {page.next_cursor}")


@command(
    "task",
    example="chatproc task t_mzxw6ytboi2xk4tsnf3gk3dpne --history",
    options=(
        click.argument("task_id", metavar="ID"),
        click.option("--history", is_flag=True, help="Every revision, with who and why."),
    ),
)
def _task(voice: Voice, task_id: str, *, history: bool) -> None:
    """Show one task and the messages that it rests on."""
    from chatproc import tasks

    config = voice.config()
    document: render.Document = {"task": tasks.get_task(config, task_id).to_dict()}
    if history:
        document["history"] = [entry.to_dict() for entry in tasks.task_history(config, task_id)]
    voice.show(document, render.task_blocks)


_CHANGE = (
    click.argument("task_id", metavar="ID"),
    click.option("--actor", metavar="NAME", help="Who decides; your user name when left out."),
    click.option("--note", metavar="TEXT", help="Why."),
    click.option(
        "--expected-revision", type=click.IntRange(min=1), help="Refuse (exit 1) when the task moved on."
    ),
)


def _change_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that every user's change has, with a request id of its own."""
    import getpass
    import uuid

    try:
        actor = arguments["actor"] or getpass.getuser()
    except (KeyError, OSError):
        raise click.UsageError("this system has no name for you: give --actor NAME") from None
    return {**arguments, "actor": actor, "request_id": str(uuid.uuid4())}


def _set_status(voice: Voice, task_id: str, status: str, arguments: dict[str, Any]) -> None:
    from chatproc import tasks

    event = tasks.update_task_status(voice.config(), task_id, status, **_change_of(arguments))
    voice.show(event.to_dict(), render.event_blocks)


@command("done", example='chatproc done t_mzxw6ytboi2xk4tsnf3gk3dpne --note "handed in"', options=_CHANGE)
def _done(voice: Voice, task_id: str, **arguments: Any) -> None:  # noqa: ANN401
    """Mark a task completed."""
    _set_status(voice, task_id, "completed", arguments)


@command("reopen", example="chatproc reopen t_mzxw6ytboi2xk4tsnf3gk3dpne", options=_CHANGE)
def _reopen(voice: Voice, task_id: str, **arguments: Any) -> None:  # noqa: ANN401
    """Mark a task open again."""
    _set_status(voice, task_id, "open", arguments)


@command("cancel", example="chatproc cancel t_mzxw6ytboi2xk4tsnf3gk3dpne", options=_CHANGE)
def _cancel(voice: Voice, task_id: str, **arguments: Any) -> None:  # noqa: ANN401
    """Mark a task cancelled."""
    _set_status(voice, task_id, "cancelled", arguments)


@command(
    "priority",
    example="chatproc priority t_mzxw6ytboi2xk4tsnf3gk3dpne P1",
    options=(
        _CHANGE[0],
        click.argument("priority", type=click.Choice(["P0", "P1", "P2", "P3", "P4"])),
        *_CHANGE[1:],
    ),
)
def _priority(voice: Voice, task_id: str, priority: str, **arguments: Any) -> None:  # noqa: ANN401
    """Set a task's priority."""
    from chatproc import tasks

    event = tasks.update_task_priority(voice.config(), task_id, priority, **_change_of(arguments))
    voice.show(event.to_dict(), render.event_blocks)


@command(
    "console",
    example="chatproc console --no-browser",
    options=(
        click.option("--port", type=click.IntRange(0, 65_535), default=0, show_default=True,
                     help="On 127.0.0.1; 0 takes one that is free."),
        click.option("--no-browser", is_flag=True, help="Only show the address."),
    ),
)  # fmt: skip
def _console(voice: Voice, *, port: int, no_browser: bool) -> None:
    """Look at everything and decide on it on a local web page, until Ctrl-C.

    The address works once and only on this machine.
    """
    from chatproc.console.server import serve

    def opened(address: str) -> None:
        voice.show({"address": address}, render.answer_blocks)
        sys.stdout.flush()
        voice.say("open this address once; Ctrl-C ends the console")
        if not no_browser:
            import webbrowser

            webbrowser.open(address)

    voice.config()
    serve(Path(os.path.abspath(voice.config_file)), port, opened)  # noqa: PTH100 - a link keeps its folder


@command(
    "publish",
    example="chatproc publish phone",
    options=(click.argument("target", metavar="[NAME]", required=False),),
)
def _publish(voice: Voice, target: str | None) -> int:
    """Bring tasks to a CalDAV list, a calendar file or a note, and take over what was completed there.

    NAME is that of a [[publish]] entry; without it, all of them. What has not changed is not written.
    """
    from chatproc.publishing import publish

    report = publish(voice.config(), target)
    if not report.targets:
        voice.say("nowhere to publish to: a target is a table [[publish]] in the configuration")
    voice.show(report.to_dict(), render.publish_blocks)
    for entry in report.targets:
        if entry["error"] is not None and entry["error"]["hint"]:
            voice.say(f"hint: {entry['name']}: {entry['error']['hint']}")
    return report.exit_code
