"""`tidemark archive …`: messages as Parquet, for good. One file a verb; this one only names them."""

from __future__ import annotations

import typer

from tidemark.cli.archive.run import run
from tidemark.cli.archive.verify import verify

app = typer.Typer(no_args_is_help=True, help="Archive topics as Parquet files, on Spark, and verify them.")


@app.callback()
def _archive() -> None:
    """Archive topics as Parquet files, on Spark, and verify them."""


app.command(epilog="Example: tidemark archive run data /archives/data --topic orders")(run)
app.command(epilog="Example: tidemark archive verify /archives/data --against data")(verify)
