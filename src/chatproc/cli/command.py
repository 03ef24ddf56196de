"""How a command is declared: a function that takes a `Voice` and its own arguments, run to its exit code."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import click

from chatproc.cli.voice import Voice, flush_or_leave, leave

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DEFAULT_CONFIG = "config/processor.toml"
PART_DONE = 3
"""The exit code of a command that left a part undone."""
INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="chatproc", message="%(version)s")
def cli() -> None:
    """Turn the flood of group chats into to-dos that can be trusted.

    Start with `chatproc init`, then `chatproc check`.
    """


COMMON = (
    click.option("--config", "config_file", default=DEFAULT_CONFIG, show_default=True, metavar="FILE",
                 help="The configuration."),
    click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
    click.option("-q", "--quiet", is_flag=True, help="No talk on stderr, only errors."),
    click.option("-v", "--verbose", count=True, help="More talk; -vv also tracebacks."),
    click.option("--log-format", type=click.Choice(["plain", "json"]), default="plain", show_default=True,
                 help="How stderr is written."),
)  # fmt: skip


def command(
    name: str, *, example: str, options: Iterable[Callable[[Any], Any]] = ()
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command of a function that takes a `Voice` and the command's own arguments."""

    def declare(body: Callable[..., int | None]) -> click.Command:
        @functools.wraps(body)
        def call(**arguments: Any) -> int:  # noqa: ANN401 - click hands over what was declared
            spoken = {option: arguments.pop(option) for option in Voice.__dataclass_fields__}
            voice = Voice(**spoken)
            voice.open_log()
            return guarded(voice, lambda: body(voice, **arguments))

        declared: Any = call
        for option in reversed((*options, *COMMON)):
            declared = option(declared)
        command = click.command(name, epilog=f"\b\nExample:\n  {example}")(declared)
        cli.add_command(command)
        return command

    return declare


def guarded(voice: Voice, body: Callable[[], int | None]) -> int:
    """Run a command to its exit code, whatever happens."""
    try:
        code = body() or 0
        sys.stdout.flush()
    except BrokenPipeError:
        leave(sys.stdout)
        return 1
    except KeyboardInterrupt:
        voice.say("interrupted: what was committed stays, the rest is pending")
        return INTERRUPTED
    except click.ClickException:
        raise
    except Exception as error:  # noqa: BLE001 - a person gets three lines, never a traceback
        code = voice.fail(error)
        flush_or_leave()
    return code
