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
    attach: Annotated[
        Path | None, typer.Option(help="Read the store of a living broker instead; nothing in it is written.")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="With --attach: the directory for files of our own.")] = None,
) -> None:
    """Start writer, pipeline and query on this machine; one Ctrl-C stops them cleanly.

    With --attach DIR --state DIR2: only query, and a follower of the log of a broker whose storePathRootDir is DIR.

    A new store gets 64 MiB segments and a small index; an existing one keeps its sizes. Every TIDEMARK_ setting of the
    services may be given in the environment.
    """
    from tidemark.cli.serve import attach as run_attached
    from tidemark.cli.serve import serve as run

    if (attach is None) != (state is None):
        raise typer.BadParameter("--attach and --state go together")
    if attach is not None and state is not None:
        raise typer.Exit(run_attached(attach, state, query_port=query_port, console=Console()))
    raise typer.Exit(run(data, writer_port=writer_port, query_port=query_port, console=Console()))


if __name__ == "__main__":
    app()
