"""The `tidemark` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tidemark.cli.store.app import app as store_app

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Tidemark: an append-only event log.")
app.add_typer(store_app, name="store")


@app.callback()
def _root() -> None:
    """Tidemark: an append-only event log in RocketMQ's file format."""


@app.command()
def serve(
    data: Annotated[
        Path, typer.Option(help="The store's directory; made when it is missing.", envvar="TIDEMARK_STORE_ROOT")
    ] = Path("data"),
    writer_port: Annotated[int, typer.Option(min=1, max=65535, help="gRPC, for producers.")] = 8081,
    query_port: Annotated[int, typer.Option(min=1, max=65535, help="REST, for consumers.")] = 8080,
) -> None:
    """Start writer, pipeline and query on this machine; one Ctrl-C stops them cleanly.

    A new store gets 64 MiB segments and a small index; an existing one keeps its sizes. Every TIDEMARK_ setting of the
    services may be given in the environment.
    """
    from tidemark.cli.serve import serve as run

    raise typer.Exit(run(data, writer_port=writer_port, query_port=query_port, console=Console()))


if __name__ == "__main__":
    app()
