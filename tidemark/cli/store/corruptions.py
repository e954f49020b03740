"""`tidemark store corruptions`: the ledger of damage, as `GET /v1/corruptions` shows it."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from tidemark.cli.store.outcome import ExitStatus, errors_told
from tidemark.index.ledger import read_ledger
from tidemark.store.format_file import require_known_format
from tidemark.store.paths import StorePaths


def corruptions(
    directory: Annotated[Path, typer.Argument(help="The store's directory.", exists=True, file_okay=False)],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Show the damage that the pipeline has found in the log.

    Exit status: 0 none, 1 some, 2 it cannot be read.
    """
    with errors_told():
        paths = StorePaths(directory)
        require_known_format(paths)
        entries = read_ledger(paths.indexer)
    if as_json:
        sys.stdout.buffer.write(
            orjson.dumps({"total": len(entries), "corruptions": entries}, option=orjson.OPT_APPEND_NEWLINE)
        )
    elif entries:
        table = Table("physical offset", "bytes", "reason", "topic", "queue", "queue offset", "found")
        for entry in entries:
            found = datetime.datetime.fromtimestamp(entry["found_ms"] / 1000, datetime.UTC)
            names = ("physical_offset", "size", "reason", "topic", "queue_id", "queue_offset")
            cells = ["" if entry[name] is None else str(entry[name]) for name in names]
            table.add_row(*cells, f"{found:%Y-%m-%d %H:%M:%S} UTC")
        Console().print(table)
    else:
        Console().print("no damage was found")
    raise typer.Exit(ExitStatus.FINDINGS if entries else ExitStatus.DONE)
