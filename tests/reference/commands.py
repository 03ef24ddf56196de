"""The parts of docs/cli.md that say how a command is called, from the program itself."""

from __future__ import annotations

import click

from chatproc.cli.command import COMMON
from chatproc.cli.main import cli
from tests.reference import table

EVERYWHERE = "## Options of every command"


def sections() -> dict[str, str]:
    """Heading to example, usage and options of each command."""

    @click.command("any", help="")
    def alone() -> None:
        """Do nothing."""

    for option in COMMON:
        option(alone)
    found = {EVERYWHERE: _options(alone, click.Context(alone))}
    common = {parameter.name for parameter in alone.params}
    for name, command in cli.commands.items():
        context = click.Context(command, info_name=name, parent=click.Context(cli, info_name="chatproc"))
        example = (command.epilog or "").split("Example:\n")[1].strip()
        usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
        parts = [f"```\n{example}\n```", f"Usage: `{usage}`", _options(command, context, common)]
        found[f"## {name}"] = "\n\n".join(part for part in parts if part)
    return found


def _options(
    command: click.Command, context: click.Context, but: frozenset[str] | set[str | None] = frozenset()
) -> str:
    """A row an option: how it is written, what it means; nothing where there is none."""
    rows = []
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or parameter.name in but:
            continue
        record = parameter.get_help_record(context)
        if record is None:
            continue
        written, meaning = record
        if not (parameter.help or "").strip():
            raise ValueError(f"`{command.name} {written}` has no help")
        written = written.replace("INTEGER RANGE", "N")
        words, _, extra = meaning.replace("x>=", "at least ").partition("  [")
        rows.append((f"`{written}`", f"{words} ({extra[:-1]})" if extra else words))
    return table(("option", "meaning"), rows) if rows else ""
