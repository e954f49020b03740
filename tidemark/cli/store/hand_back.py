"""The verb `hand-back`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tidemark.cli.store.outcome import errors_told


def hand_back(
    directory: Annotated[Path, typer.Argument(help="The store's directory. Nothing may run on it.", metavar="DIR")],
) -> None:
    """Bring a stopped store to the state that a RocketMQ broker opens cleanly.

    Recovers the log, builds what queues and index lack, and tells the broker, by `checkpoint` and the missing `abort`
    file, that all is there. Prints the file sizes that its broker.conf must name.
    """
    from tidemark.cli.hand_back import hand_back as run

    console = Console()
    with errors_told():
        done = run(directory, on_step=lambda step: console.print(f"{step} …", highlight=False))
        console.print(f"A broker may open {directory}: complete up to {done.end_offset}.", highlight=False)
        for name, size in done.broker_settings.items():
            console.print(f"  {name}={size}", highlight=False)
