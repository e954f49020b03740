"""The progress bar of verbs that process a store's bytes."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


def byte_progress(*, quiet: bool) -> Progress:
    """Return a progress bar of bytes on standard error, which disappears when it ends. quiet: show nothing."""
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
