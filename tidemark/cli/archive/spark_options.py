"""Options of verbs that run Spark, and the progress bar of their jobs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from tidemark.errors import ArgumentIllegalError

MasterOption = Annotated[str, typer.Option(help="Spark master: local, or a cluster that also has access to DIR.")]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Set a Spark property. Repeatable.")
]
LOCAL = "local[*]"
JobProgress = Callable[[str, int, int], None]


def parse_conf(given: list[str] | None) -> dict[str, str]:
    """Return the properties by name. Raises ArgumentIllegalError for an entry without a name or `=`."""
    pairs = [entry.partition("=") for entry in given or []]
    wrong = next((name for name, equals, _ in pairs if not equals or not name), None)
    if wrong is not None:
        raise ArgumentIllegalError(f"--conf {wrong}: must be KEY=VALUE", argument="--conf")
    return {name: value for name, _, value in pairs}


@contextlib.contextmanager
def job_progress(*, quiet: bool) -> Iterator[JobProgress]:
    """Show a bar of the current step's Spark tasks on standard error. No bar if quiet, or without a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("planning", total=None)
        yield lambda step, done, total: progress.update(task, description=step, completed=done, total=total or None)
