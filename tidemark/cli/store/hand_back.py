"""`tidemark store hand-back`: prepares a store for a RocketMQ broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.output import Output, OutputOption, print_json


def hand_back(
    directory: Annotated[
        Path, typer.Argument(help="The store's directory. No service may be running on it.", metavar="DIR")
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Bring a stopped store to the state that a RocketMQ broker opens cleanly.

    It recovers the log, builds the missing parts of queues and index, and marks the store as complete for the broker in
    `checkpoint` and by removing the `abort` file. It prints the file sizes that broker.conf must have.
    """
    from tidemark.local.hand_back import hand_back as run

    done = run(directory, on_step=lambda step: say(f"{step} …"))
    if output is Output.JSON:
        print_json({"end_offset": done.end_offset, "broker_settings": done.broker_settings})
        return
    typer.echo(f"A broker may open {directory}: complete up to {done.end_offset}.")
    for name, size in done.broker_settings.items():
        typer.echo(f"  {name}={size}")
