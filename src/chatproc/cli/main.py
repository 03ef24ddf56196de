"""The commands: each reads its arguments, calls one function of the package and shows what it returns.

Stdout is data, stderr is talk. Nothing is decided here but how to say it and the exit code; what a command
needs is imported when it runs, so that `--help` is instant.
"""

from __future__ import annotations

import errno
import functools
import json
import logging
import os
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TextIO

import click

from chatproc.cli import render
from chatproc.errors import ChatprocError
from chatproc.plaintext import escaped_json, one_line, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from chatproc.check import Server
    from chatproc.cli.progress import ProgressDisplay
    from chatproc.config import Config

_DEFAULT_CONFIG = "config/processor.toml"
_PART_DONE = 3
_INTERRUPTED = 130
_USAGE = 2
_REMEDIES = {
    errno.ENOSPC: "make room on the disk, then try again; what was committed is safe",
    errno.EDQUOT: "your share of the disk is used up: make room, then try again; what was committed is safe",
    errno.EROFS: "the disk is mounted read-only: see how it is mounted",
    errno.EACCES: "see who owns the file and its folder, and whether you may write there",
    errno.EPERM: "see who owns the file and its folder, and whether you may write there",
    errno.ENOTDIR: "a file stands where a folder is wanted: move it away",
    errno.EEXIST: "a file stands where a folder is wanted: move it away",
    errno.EIO: "the disk refuses: see the system's log whether it is failing; what was committed is safe",
    errno.EMFILE: "too many files are open in this process: raise the limit (`ulimit -n`)",
}
"""What mends an error of the system, by its number."""


# ── how a call speaks ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Voice:
    """How one call reads its configuration, says what it does and shows what came out."""

    config_file: str
    as_json: bool
    quiet: bool
    verbose: int
    log_format: str

    def config(self) -> Config:
        """The configuration named by `--config`."""
        from chatproc.config import load_config

        return load_config(self.config_file)

    def show(
        self, document: render.Document, blocks: Callable[[render.Document], list[render.Block]]
    ) -> None:
        """Data to stdout: the document itself with `--json`, else its blocks."""
        if self.as_json:
            sys.stdout.write(render.json_text(document) + "\n")
        else:
            render.show(blocks(document))

    def say(self, text: str) -> None:
        """Talk to stderr, unless `--quiet`."""
        if not self.quiet:
            self._write("info", text)

    def progress(self) -> ProgressDisplay:
        """A display for work that takes long."""
        from chatproc.cli.progress import ProgressDisplay

        drawn = False if self.quiet or self.log_format == "json" else None
        return ProgressDisplay(say=self.say, bar=drawn)

    def fail(self, error: BaseException) -> int:
        """Say what went wrong, where and what mends it; the exit code."""
        told = error if isinstance(error, ChatprocError) else _unforeseen(error)
        if self.verbose > 1:
            sys.stderr.write(plain("".join(traceback.format_exception(error))))
        if self.log_format == "json":
            lines = {"what": told.what, "where": told.where, "hint": told.hint, "exit_code": told.exit_code}
            sys.stderr.write(render.json_text({"level": "error", "error": lines}) + "\n")
            return told.exit_code
        sys.stderr.write(f"error: {one_line(told.what)}\n")
        if told.where:
            sys.stderr.write(f"   at: {one_line(told.where)}\n")
        if told.hint:
            sys.stderr.write(f" hint: {one_line(told.hint)}\n")
        return told.exit_code

    def open_log(self) -> None:
        """Log records of the package go to stderr: warnings always, more with `-v` and `-vv`."""
        handler = _LogTalk(self._write)
        log = logging.getLogger("chatproc")
        log.handlers[:] = [handler]
        log.propagate = False
        level = logging.ERROR if self.quiet else logging.WARNING
        log.setLevel({0: level, 1: logging.INFO}.get(self.verbose, logging.DEBUG))

    def _write(self, level: str, text: str) -> None:
        """Talk that nobody can hear, on a closed pipe or a full disk, ends no work."""
        if self.log_format == "json":
            line = render.json_text({"level": level, "text": text})
        else:
            line = one_line(text if level == "info" else f"{level}: {text}")
        try:
            sys.stderr.write(f"{line}\n")
        except BrokenPipeError:
            _leave(sys.stderr)
        except OSError:
            return


class _LogTalk(logging.Handler):
    """Hands log records to the voice of the call."""

    def __init__(self, write: Callable[[str, str], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        self._write(record.levelname.lower(), record.getMessage())


def _unforeseen(error: BaseException) -> ChatprocError:
    """An error of the system or of the program, in the same three lines."""
    if isinstance(error, OSError):
        what = error.strerror or str(error) or type(error).__name__
        where = None if error.filename is None else str(error.filename)
        return ChatprocError(what, where=where, hint=_REMEDIES.get(error.errno or 0))
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None
    first_line = (str(error).splitlines() or [""])[0]
    hint = "this is a fault of chatproc; -vv shows where it came from"
    return ChatprocError(f"{type(error).__name__}: {first_line}", where=where, hint=hint)


def _guarded(voice: Voice, body: Callable[[], int | None]) -> int:
    """Run a command to its exit code, whatever happens."""
    try:
        code = body() or 0
        sys.stdout.flush()
    except BrokenPipeError:
        _leave(sys.stdout)
        return 1
    except KeyboardInterrupt:
        voice.say("interrupted: what was committed stays, the rest is pending")
        return _INTERRUPTED
    except click.ClickException:
        raise
    except Exception as error:  # noqa: BLE001 - a person gets three lines, never a traceback
        code = voice.fail(error)
        _flush_or_leave()
    return code


def _flush_or_leave() -> None:
    """What stdout holds is written; where it cannot be, the interpreter must not try again at its end."""
    if sys.stdout is None:  # closed before the program began
        return
    try:
        sys.stdout.flush()
    except OSError:
        _leave(sys.stdout)


def _leave(stream: TextIO) -> None:
    """The reader of a stream went away: keep the interpreter from complaining when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="chatproc", message="%(version)s")
def cli() -> None:
    """Turn the flood of group chats into to-dos that can be trusted.

    Start with `chatproc init`, then `chatproc check`.
    """


_COMMON = (
    click.option("--config", "config_file", default=_DEFAULT_CONFIG, show_default=True, metavar="FILE",
                 help="The configuration."),
    click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
    click.option("-q", "--quiet", is_flag=True, help="No talk on stderr, only errors."),
    click.option("-v", "--verbose", count=True, help="More talk; -vv also tracebacks."),
    click.option("--log-format", type=click.Choice(["plain", "json"]), default="plain", show_default=True,
                 help="How stderr is written."),
)  # fmt: skip


def _command(
    name: str, *, example: str, options: Iterable[Callable[[Any], Any]] = ()
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command of a function that takes a `Voice` and the command's own arguments."""

    def declare(body: Callable[..., int | None]) -> click.Command:
        @functools.wraps(body)
        def call(**arguments: Any) -> int:  # noqa: ANN401 - click hands over what was declared
            spoken = {option: arguments.pop(option) for option in Voice.__dataclass_fields__}
            voice = Voice(**spoken)
            voice.open_log()
            return _guarded(voice, lambda: body(voice, **arguments))

        declared: Any = call
        for option in reversed((*options, *_COMMON)):
            declared = option(declared)
        command = click.command(name, epilog=f"\b\nExample:\n  {example}")(declared)
        cli.add_command(command)
        return command

    return declare


# ── setting up ─────────────────────────────────────────────────────────────────────────────────────────


@_command(
    "init",
    example="chatproc init my-project --lang en",
    options=(
        click.argument("folder", metavar="[DIR]", default="."),
        click.option("--lang", "language", type=click.Choice(["zh", "en"]), default="zh", show_default=True,
                     help="Language of the rules."),
    ),
)  # fmt: skip
def _init(voice: Voice, folder: str, language: Literal["zh", "en"]) -> None:
    """Write configuration, rules, folders and .gitignore lines.

    What is there already is left as it is. --config names the file inside DIR.
    """
    from chatproc.check import loopback_servers
    from chatproc.scaffold import write_scaffold

    file = Path(os.path.abspath(Path(folder) / voice.config_file))  # noqa: PTH100 - symlinks stay
    scaffold = write_scaffold(file, language)
    servers = loopback_servers()
    voice.show(
        {**scaffold.to_dict(), "servers": [server.to_dict() for server in servers]}, render.init_blocks
    )
    _say_servers(voice, servers)
    voice.say(f"next 1: put batches into {scaffold.root / 'data/inbox'}, or `chatproc import FORMAT PATH`")
    voice.say(f"next 2: choose a model in {file}: base_url and model under [agent]")
    voice.say("next 3: `chatproc check`, then `chatproc preview`, then `chatproc once`")


def _say_servers(voice: Voice, servers: Sequence[Server]) -> None:
    """The lines that would choose each server; choosing stays with the person."""
    for server in servers:
        if server.chosen:
            continue
        voice.say(f"to use {server.kind}, write under [agent]: {'; '.join(server.config_lines())}")
        if server.note:
            voice.say(f"{server.kind}: {server.note}")


@_command(
    "check",
    example="chatproc check --ping",
    options=(click.option("--ping", is_flag=True, help="Make real tool calls to the endpoint."),),
)
def _check(voice: Voice, *, ping: bool) -> int:
    """Look at configuration, rules, inputs, permissions, tools and model servers."""
    from chatproc import check
    from chatproc.config import require_model

    config = voice.config()
    findings = check.check_project(config)
    servers = check.loopback_servers(config.agent.base_url)
    answered = _ping(config) if ping and config.agent.is_configured else None
    voice.show(check.check_document(findings, servers, answered), render.check_blocks)
    for found in findings:
        if found.hint:
            voice.say(f"hint: {found.topic}: {found.hint}")
    _say_servers(voice, servers)
    if ping:
        require_model(config)
    return check.exit_code(findings)


def _ping(config: Config) -> dict[str, object]:
    from chatproc.agent.ping import ping_endpoint
    from chatproc.credentials import read_api_key

    return ping_endpoint(config.agent, functools.partial(read_api_key, config)).to_dict()


# ── a round ────────────────────────────────────────────────────────────────────────────────────────────


@_command("status", example="chatproc status --json")
def _status(voice: Voice) -> None:
    """Show counts, the last round, and what waits; reads no batch."""
    from chatproc import store

    voice.show(store.status(voice.config()).to_dict(), render.status_blocks)


@_command(
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


@_command("once", example="chatproc once --config config/processor.toml")
def _once(voice: Voice) -> int:
    """Export what waits, read new input, run one round, export."""
    from chatproc import pipeline

    with voice.progress() as progress:
        report = pipeline.run_round(voice.config(), progress=progress)
    voice.show(report.to_dict(), render.round_blocks)
    return report.exit_code


@_command("export", example="chatproc export")
def _export(voice: Voice) -> int:
    """Publish the task events that wait in the outbox."""
    from chatproc import pipeline

    with voice.progress() as progress:
        report = pipeline.export(voice.config(), progress=progress).to_dict()
    voice.show(report, render.export_blocks)
    return _PART_DONE if report["waiting"] else 0


# ── connections ────────────────────────────────────────────────────────────────────────────────────────


@_command(
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
        _flush_or_leave()
        os._exit(0)
    voice.show(report.to_dict(), render.answer_blocks)
    return 0


@_command(
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


@_command("connections", example="chatproc connections --json")
def _connections(voice: Voice) -> None:
    """Show how each connection stands: why it is not synced now, and when it will be."""
    from chatproc import schedule

    states = schedule.connections(voice.config())
    _say_if_none(voice, states.connections)
    voice.show(states.to_dict(), render.connections_blocks)


def _say_if_none(voice: Voice, entries: Sequence[object]) -> None:
    if not entries:
        voice.say("no connection is configured: a source is a table [[connections]] in the configuration")


# ── trust ──────────────────────────────────────────────────────────────────────────────────────────────


@_command("verify", example="chatproc verify --json")
def _verify(voice: Voice) -> int:
    """Compare the store and the exported files with what was written; offline, changes nothing."""
    from chatproc import store

    with voice.progress() as progress:
        verdict = store.verify(voice.config(), progress=progress)
    voice.show(verdict.to_dict(), render.verify_blocks)
    if not verdict.ok:
        voice.say("hint: keep the files as they are; a copy of the store from before is the way back")
    return verdict.exit_code


@_command(
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


@_command(
    "explain",
    example="chatproc explain qq:10000:999000:7550123",
    options=(click.argument("message_key", metavar="MESSAGE_KEY"),),
)
def _explain(voice: Voice, message_key: str) -> None:
    """Tell one message's whole way: line, segment, commits, tasks, outcome and why."""
    from chatproc import store

    voice.show(store.explain(voice.config(), message_key).to_dict(), render.explain_blocks)


# ── tasks ──────────────────────────────────────────────────────────────────────────────────────────────


@_command(
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
        voice.say(f"{len(page)} of {page.total} tasks; more with --cursor {page.next_cursor}")


@_command(
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


@_command("done", example='chatproc done t_mzxw6ytboi2xk4tsnf3gk3dpne --note "handed in"', options=_CHANGE)
def _done(voice: Voice, task_id: str, **arguments: Any) -> None:  # noqa: ANN401
    """Mark a task completed."""
    _set_status(voice, task_id, "completed", arguments)


@_command("reopen", example="chatproc reopen t_mzxw6ytboi2xk4tsnf3gk3dpne", options=_CHANGE)
def _reopen(voice: Voice, task_id: str, **arguments: Any) -> None:  # noqa: ANN401
    """Mark a task open again."""
    _set_status(voice, task_id, "open", arguments)


@_command("cancel", example="chatproc cancel t_mzxw6ytboi2xk4tsnf3gk3dpne", options=_CHANGE)
def _cancel(voice: Voice, task_id: str, **arguments: Any) -> None:  # noqa: ANN401
    """Mark a task cancelled."""
    _set_status(voice, task_id, "cancelled", arguments)


@_command(
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


@_command(
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


# ── tasks elsewhere ────────────────────────────────────────────────────────────────────────────────────


@_command(
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


# ── input ──────────────────────────────────────────────────────────────────────────────────────────────


@_command(
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
    return _PART_DONE if report["not_understood"] else 0


@_command(
    "model",
    example="chatproc model fetch",
    options=(
        click.argument("action", type=click.Choice(["fetch", "list"])),
        click.option(
            "--file", metavar="GGUF", type=click.Path(path_type=Path), help="A model file of your own."
        ),
    ),
)
def _model(voice: Voice, action: str, file: Path | None) -> None:
    """Fetch the local model, or list it and the model servers on this machine."""
    from chatproc.agent import weights

    if action == "list":
        from chatproc.check import loopback_servers

        servers = loopback_servers()
        document: render.Document = {
            "models": [model.to_dict() for model in weights.known()],
            "servers": [server.to_dict() for server in servers],
        }
        voice.show(document, render.model_blocks)
        _say_servers(voice, servers)
        return
    with voice.progress() as progress:
        path = weights.fetch(
            file=file,
            progress=lambda done, total, note: progress.show("model", done, total, "bytes", note),
        )
    voice.show({"path": str(path)}, render.answer_blocks)
    own = "" if file is None else f"; local_model = {json.dumps(str(path), ensure_ascii=False)}"
    voice.say(f'to use it, write under [agent]: base_url = "local"{own}')


@_command(
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
        return _PART_DONE if answer["outcome"] == "refused" else 0
    refused.discard_quarantined(config, line_id)
    voice.show({"id": line_id, "outcome": "discarded"}, render.answer_blocks)
    return 0


# ── the program ────────────────────────────────────────────────────────────────────────────────────────


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: Without the program's name; `None`: those of the process.

    Example:
        >>> run(["status", "--config", "config/processor.toml"])  # doctest: +SKIP
        0
    """
    _write_any_character()
    try:
        code = cli.main(arguments, prog_name="chatproc", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return _USAGE
    except click.UsageError as error:
        return _usage(error)
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    return code if isinstance(code, int) else 0


def _usage(error: click.UsageError) -> int:
    sys.stderr.write(f"error: {one_line(error.format_message())}\n")
    path = error.ctx.command_path if error.ctx else "chatproc"
    sys.stderr.write(f" hint: {path} --help\n")
    return _USAGE


def _write_any_character() -> None:
    """No character of a message ends a command: what the stream cannot write is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def _leave_no_core() -> None:
    """A process that dies leaves no image of its memory, which holds chats and the key."""
    try:
        import resource
    except ImportError:  # not on Windows, which writes none into the folder
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def main() -> NoReturn:
    """The entry point of `chatproc`."""
    _leave_no_core()
    code = run()
    if threading.active_count() > 1:
        # A thread that hangs in a source cannot be stopped, and the interpreter would wait for it.
        _flush_or_leave()
        os._exit(code)
    sys.exit(code)
