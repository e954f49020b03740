"""`tidemark store corruptions`: prints the ledger of damage, as `GET /v1/corruptions` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.cli.terminal.output import JsonFlag, Output, OutputOption, print_json, print_table, time_text


def corruptions(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The store's directory.", exists=True, file_okay=False)
    ],
    output: OutputOption = Output.TABLE,
    as_json: JsonFlag = False,
) -> None:
    """Show the damage that the pipeline has found in the log.

    Exit status 1 if there is any.
    """
    from tidemark.index.ledger import read_ledger
    from tidemark.store.originals.format_file import require_known_format
    from tidemark.store.paths import StorePaths

    paths = StorePaths(directory)
    require_known_format(paths)
    entries = read_ledger(paths.indexer)
    if as_json or output is Output.JSON:
        print_json({"total": len(entries), "corruptions": entries})
    elif entries:
        names = ("physical_offset", "size", "reason", "topic", "queue_id", "queue_offset")
        rows = [[*(entry[name] for name in names), time_text(entry["found_ms"])] for entry in entries]
        print_table(("physical offset", "bytes", "reason", "topic", "queue", "queue offset", "found"), rows)
    else:
        typer.echo("no damage was found")
    raise typer.Exit(ExitStatus.FAILED if entries else ExitStatus.OK)
