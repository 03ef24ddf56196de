"""The commands that set a project up: its files, what is wrong with them, its model."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from chatproc.cli import render
from chatproc.cli.command import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chatproc.check import Server
    from chatproc.cli.voice import Voice
    from chatproc.config import Config


@command(
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


@command(
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


@command(
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
