"""The verb `bench`: measures a running server."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.terminal.exit_status import ExitStatus, say
from tidemark.cli.terminal.names import complete_topic
from tidemark.cli.terminal.output import Output, OutputOption, print_facts, print_json, print_table
from tidemark.cli.terminal.service_addresses import DEFAULT_WRITER_ADDRESS, QueryUrl, WriterAddress, open_query

if TYPE_CHECKING:
    from tidemark.cli.bench.load import Load
    from tidemark.cli.bench.measurements import BenchResult, Latencies, Rate

EXAMPLE = "Example: tidemark bench --size 1000 --producers 4 --seconds 10"
_SECONDS = 5.0


def bench(
    count: Annotated[int | None, typer.Option(min=1, help="Number of messages to send, instead of a time.")] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="Time for which to send.", show_default=f"{_SECONDS:g}")
    ] = None,
    size: Annotated[int, typer.Option(min=26, help="Size of each body, in bytes.")] = 100,
    producers: Annotated[
        int, typer.Option(min=1, max=256, help="Number of producers; each waits for an answer before its next send.")
    ] = 1,
    batch: Annotated[int, typer.Option(min=1, max=32_767, help="Number of messages in each send.")] = 1,
    topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="Existing topic, which keeps the messages. Default: a new one, which is deleted at the end.",
            autocompletion=complete_topic,
        ),
    ] = None,
    queues: Annotated[int, typer.Option(min=1, max=1024, help="Number of queues of the new topic.")] = 4,
    writer: WriterAddress = None,
    query: QueryUrl = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send messages to a running server, read them back, and print rates and latencies.

    The latency of a send is the time from the call to the writer's answer. The latency to visible is the time from the
    call until a consumer that waits has the message. Percentiles are those of all samples. The producers and consumers
    are threads of this one Python process, so its own processor time is part of every figure. Each producer first sends
    one message that is not measured.

    The messages are stored like any others: they use disk space until retention removes them, even if the topic is
    deleted. Exit status 1 if not all messages were read back.
    """
    from tidemark.cli.bench.load import Load
    from tidemark.cli.bench.run import measure, new_topic

    if count is not None and seconds is not None:
        raise typer.BadParameter("give either --count or --seconds", param_hint="--seconds")
    address = writer or DEFAULT_WRITER_ADDRESS
    name = topic or f"bench-{uuid.uuid4().hex[:12]}"
    duration_s = None if count is not None else seconds or _SECONDS
    load = Load(name, count, duration_s, size_bytes=size, producers=producers, batch=batch)
    own_topic = contextlib.nullcontext() if topic is not None else new_topic(address, name, queues)
    with open_query(query) as service, own_topic:
        result = measure(load, service, address)
    if output is Output.JSON:
        print_json(_document(load, result))
    else:
        _print(load, result)
    missing = result.send.messages - result.read_back.messages
    if missing:
        say(f"{missing:,} of {result.send.messages:,} messages were not read back")
        raise typer.Exit(ExitStatus.FAILED)


def _document(load: Load, result: BenchResult) -> dict[str, object]:
    visible = result.visible_latency_ms
    return {
        "topic": load.topic,
        "size_bytes": load.size_bytes,
        "producers": load.producers,
        "batch": load.batch,
        "flush_mode": result.flush_mode,
        "send": {**result.send._asdict(), "latency_ms": result.send_latency_ms._asdict()},
        "visible": {"latency_ms": None if visible is None else visible._asdict()},
        "read_back": result.read_back._asdict(),
    }


def _print(load: Load, result: BenchResult) -> None:
    many = "1 producer" if load.producers == 1 else f"{load.producers} producers"
    print_facts(
        {
            "measured": f"{result.send.messages:,} messages of {load.size_bytes:,} bytes, {many}, {load.batch:,} in "
            f"each send, flush mode {result.flush_mode}",
            "send": _rate_text(result.send),
            "read back": _rate_text(result.read_back),
        }
    )
    rows = [("send to answer", *_cells(result.send_latency_ms))]
    if result.visible_latency_ms is not None:
        rows.append(("send to visible", *_cells(result.visible_latency_ms)))
    print_table(("latency, ms", "p50", "p99", "p99.9", "max", "samples"), rows)


def _rate_text(rate: Rate) -> str:
    return f"{rate.messages_per_s:,.0f} messages/s, {rate.bytes_per_s / 1e6:,.2f} MB/s, in {rate.seconds:,.2f} s"


def _cells(latencies: Latencies) -> tuple[object, ...]:
    shown = (latencies.p50, latencies.p99, latencies.p999, latencies.max)
    return (*(f"{value:,.2f}" for value in shown), latencies.samples)
