"""The verb `serve`; `tidemark.local.foreground` does it."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: tidemark serve --data ./data"


class Profile(enum.StrEnum):
    """Sizes of files that a store does not have yet."""

    LAPTOP = "laptop"
    SERVER = "server"


def serve(
    data: Annotated[
        Path, typer.Option(help="The store's directory; made when it is missing.", envvar="TIDEMARK_STORE_ROOT")
    ] = Path("data"),
    writer_port: Annotated[int, typer.Option(min=1, max=65535, help="gRPC, for producers.")] = 8081,
    query_port: Annotated[int, typer.Option(min=1, max=65535, help="REST, for consumers.")] = 8080,
    profile: Annotated[
        Profile,
        typer.Option(help="Files of a new store. laptop: 64 MiB segments and a small index; server: RocketMQ's sizes."),
    ] = Profile.LAPTOP,
    start_timeout: Annotated[
        float,
        typer.Option(
            min=1, help="Seconds that each service may take until it is healthy.", envvar="TIDEMARK_START_TIMEOUT_S"
        ),
    ] = 600.0,
    attach: Annotated[
        Path | None, typer.Option(help="Read the store of a living broker instead; nothing in it is written.")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="With --attach: the directory for files of our own.")] = None,
) -> None:
    """Start all services here; one Ctrl-C stops them.

    They are writer, pipeline and query.

    With --attach DIR --state DIR2: only query, and a follower of the log of a broker whose storePathRootDir is DIR.

    Where a store has files already, their sizes hold, whatever the profile. Every TIDEMARK_ setting of the services may
    be given in the environment.
    """
    from rich.console import Console

    from tidemark.local.foreground import attach as run_attached
    from tidemark.local.foreground import serve as run

    if (attach is None) != (state is None):
        raise typer.BadParameter("--attach and --state go together")
    if attach is not None and state is not None:
        raise typer.Exit(
            run_attached(attach, state, query_port=query_port, console=Console(), start_timeout_s=start_timeout)
        )
    is_small = profile is Profile.LAPTOP
    raise typer.Exit(
        run(
            data,
            writer_port=writer_port,
            query_port=query_port,
            console=Console(),
            small_new_files=is_small,
            start_timeout_s=start_timeout,
        )
    )
