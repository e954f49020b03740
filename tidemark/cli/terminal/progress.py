"""The progress bar of verbs that go through a store's bytes."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


def byte_progress(*, quiet: bool) -> Progress:
    """Bytes done of bytes in all, on standard error; gone when it ends. quiet: no bar at all."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet,
    )
