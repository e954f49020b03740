"""The verb `serve`; see `tidemark.local.foreground`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from tidemark.settings.engine import Engine

EXAMPLE = "Example: tidemark serve --data ./data"

PipelineOption = Annotated[
    Engine,
    typer.Option(help="spark: Spark, once it has started. plain: without Spark and Java.", envvar="TIDEMARK_PIPELINE"),
]
StartTimeoutOption = Annotated[
    float, typer.Option(min=1, help="Seconds for each service to become healthy.", envvar="TIDEMARK_START_TIMEOUT_S")
]


class Profile(enum.StrEnum):
    """File sizes for a new store."""

    LAPTOP = "laptop"
    SERVER = "server"


def serve(
    data: Annotated[
        Path, typer.Option(help="The store's directory; created if it is missing.", envvar="TIDEMARK_STORE_ROOT")
    ] = Path("data"),
    writer_port: Annotated[int, typer.Option(min=1, max=65535, help="gRPC port, for producers.")] = 8081,
    query_port: Annotated[int, typer.Option(min=1, max=65535, help="REST port, for consumers.")] = 8080,
    writer_remoting_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port for RocketMQ's producers, and their name server. 0: off.")
    ] = 10911,
    query_remoting_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port for RocketMQ's consumers, and their name server. 0: off.")
    ] = 10912,
    profile: Annotated[
        Profile,
        typer.Option(
            help="File sizes for a new store. laptop: 64 MiB segments and a small index; server: RocketMQ's sizes."
        ),
    ] = Profile.LAPTOP,
    pipeline: PipelineOption = Engine.SPARK,
    start_timeout: StartTimeoutOption = 600.0,
    attach: Annotated[
        Path | None, typer.Option(help="Read the store of a running broker at this path; nothing in it is written.")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="With --attach: directory for Tidemark's own files.")] = None,
) -> None:
    """Start writer, pipeline and query here; one Ctrl-C stops them.

    With --attach DIR --state DIR2: start only query, and a follower of the log of a broker with storePathRootDir DIR.
    Existing files keep their sizes, whatever the profile. The services read their TIDEMARK_ settings from the
    environment.
    """
    from rich.console import Console

    from tidemark.local.foreground import attach as run_attached
    from tidemark.local.foreground import serve as run

    if (attach is None) != (state is None):
        raise typer.BadParameter("--attach and --state must be given together")
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
            writer_remoting_port=writer_remoting_port,
            query_remoting_port=query_remoting_port,
            console=Console(),
            small_new_files=is_small,
            environment={"TIDEMARK_PIPELINE": pipeline.value},
            start_timeout_s=start_timeout,
        )
    )
