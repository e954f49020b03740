"""The verb `follow`; see `services.writer.follow` and `tidemark.local.foreground`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.verbs.serve import PipelineOption, StartTimeoutOption
from tidemark.settings.engine import Engine

EXAMPLE = "Example: tidemark follow rocketmq://10.0.0.1:9876/broker-a --data ./copy"


def follow(
    broker: Annotated[str, typer.Argument(help="rocketmq://NAMESERVER/BROKER; several name servers: with ; between.")],
    data: Annotated[
        Path, typer.Option(help="The copy's directory; created if it is missing.", envvar="TIDEMARK_STORE_ROOT")
    ] = Path("data"),
    writer_port: Annotated[
        int, typer.Option(min=1, max=65535, help="gRPC port, which refuses appends while the broker is followed.")
    ] = 8081,
    query_port: Annotated[int, typer.Option(min=1, max=65535, help="REST port, for consumers.")] = 8080,
    query_remoting_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port for RocketMQ's consumers, and their name server. 0: off.")
    ] = 0,
    pipeline: PipelineOption = Engine.SPARK,
    start_timeout: StartTimeoutOption = 600.0,
) -> None:
    """Copy the log of a running RocketMQ broker here, as a slave of it, and serve it; one Ctrl-C stops all.

    The broker may be on another machine; nothing is written there. The copy has its whole log, topics, delays and
    offsets of groups. To move to Tidemark, stop the producers, wait until the copy is not behind, stop this command,
    and start `tidemark serve` with the same directory. Access keys: TIDEMARK_FOLLOW_ACCESS_KEY.
    """
    from rich.console import Console

    from tidemark.local.foreground import serve as run

    raise typer.Exit(
        run(
            data,
            writer_port=writer_port,
            query_port=query_port,
            writer_remoting_port=0,
            query_remoting_port=query_remoting_port,
            console=Console(),
            small_new_files=False,  # the copy has the broker's sizes
            environment={"TIDEMARK_PIPELINE": pipeline.value, "TIDEMARK_FOLLOW": broker},
            start_timeout_s=start_timeout,
        )
    )
