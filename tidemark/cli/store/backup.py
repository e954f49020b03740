"""`tidemark store backup`: backs up a running store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.terminal.output import Output, OutputOption, print_json


def backup(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The store's directory.", exists=True, file_okay=False)
    ],
    destination: Annotated[
        Path, typer.Argument(metavar="DEST", help="The backup's folder: new, or with an earlier backup of the store.")
    ],
    store_name: Annotated[
        str, typer.Option(help="Name of the store to record in the backup.", envvar="TIDEMARK_STORE_NAME")
    ] = "tidemark-0",
    output: OutputOption = Output.TABLE,
) -> None:
    """Back up a store, up to the committed offset, while writer and pipeline run.

    The next backup into the same folder copies only new data. Queue files and index are not included, because they are
    built from the log. Log files that retention has deleted are also removed from the backup. A failed run leaves the
    previous backup intact.
    """
    from tidemark.backup.take import take_backup
    from tidemark.cli.terminal.progress import byte_progress
    from tidemark.store.paths import StorePaths
    from tidemark.store.storage import DiskStorage

    with byte_progress(quiet=not sys.stderr.isatty()) as progress:
        task = progress.add_task("copying", total=None)
        taken = take_backup(
            StorePaths(directory),
            destination,
            DiskStorage(),
            store_name=store_name,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    manifest = taken.manifest
    if output is Output.JSON:
        print_json(
            {
                "start": manifest.start,
                "end": manifest.end,
                "copied_files": taken.copied_files,
                "copied_bytes": taken.copied_bytes,
                "kept_files": taken.kept_files,
            }
        )
        return
    typer.echo(
        f"backed up {manifest.start:,} to {manifest.end:,}: {taken.copied_files} log files copied "
        f"({taken.copied_bytes:,} bytes), {taken.kept_files} were already there"
    )
