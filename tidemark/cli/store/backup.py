"""`tidemark store backup`: a copy of a store while it runs, from which it can be made again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tidemark.cli.store.outcome import errors_told
from tidemark.cli.store.progress import byte_progress
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage


def backup(
    directory: Annotated[Path, typer.Argument(help="The store's directory.", exists=True, file_okay=False)],
    destination: Annotated[Path, typer.Argument(help="The backup's folder: new, or with an earlier backup of it.")],
    store_name: Annotated[str, typer.Option(help="Noted in the backup.", envvar="TIDEMARK_STORE_NAME")] = "tidemark-0",
) -> None:
    """Back a store up, up to what is committed now, while writer and pipeline run.

    Full files of the log are copied once: the next backup into the same folder copies only what is new. Queue files and
    index are not in it: they are made from the log. What retention has deleted leaves the backup, too.

    Exit status: 0 done, 2 not; then the backup before it is as it was.
    """
    from tidemark.backup.take import take_backup

    with errors_told(), byte_progress(quiet=not sys.stderr.isatty()) as progress:
        task = progress.add_task("copying", total=None)
        taken = take_backup(
            StorePaths(directory),
            destination,
            DiskStorage(),
            store_name=store_name,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    manifest = taken.manifest
    Console(highlight=False, soft_wrap=True).print(
        f"backed up {manifest.start:,} to {manifest.end:,}: {taken.copied_files} log files copied "
        f"({taken.copied_bytes:,} bytes), {taken.kept_files} there already"
    )
