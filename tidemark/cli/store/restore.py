"""`tidemark store restore`: creates a store from its backup."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.terminal.output import Output, OutputOption, print_json


def restore(
    backup: Annotated[
        Path, typer.Argument(metavar="BACKUP", help="The backup's folder.", exists=True, file_okay=False)
    ],
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The new store's directory, empty or not existing yet.")
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a store from a backup, comparing every file with its hash.

    Then start the services on it: the pipeline builds queues and index. Message ids stay valid if the advertised
    address stays the same. An interrupted restore leaves a directory that no service opens: empty it and start again.
    """
    from tidemark.backup.restore import restore_backup
    from tidemark.cli.terminal.progress import byte_progress
    from tidemark.store.paths import StorePaths
    from tidemark.store.storage import DiskStorage

    with byte_progress(quiet=not sys.stderr.isatty()) as progress:
        task = progress.add_task("restoring", total=None)
        manifest = restore_backup(
            backup,
            StorePaths(directory.absolute()),
            DiskStorage(),
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if output is Output.JSON:
        print_json({"start": manifest.start, "end": manifest.end})
    else:
        typer.echo(f"restored {manifest.start:,} to {manifest.end:,}: start the services")
