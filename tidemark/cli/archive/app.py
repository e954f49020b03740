"""`tidemark archive …`: archives of messages as Parquet. One module per verb; this one only registers them."""

from __future__ import annotations

import typer

from tidemark.cli.archive.run import run
from tidemark.cli.archive.verify import verify

app = typer.Typer(no_args_is_help=True, help="Archive topics as Parquet, and verify archives.")


@app.callback()
def _archive() -> None:
    """Archive topics as Parquet, and verify archives."""


app.command(epilog="Example: tidemark archive run data /archives/data --topic orders")(run)
app.command(epilog="Example: tidemark archive verify /archives/data --against data")(verify)
