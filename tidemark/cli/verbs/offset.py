"""The verb `offset`: where each queue was at a time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidemark.cli.reading.queue_places import offset_at_time, parse_time, queues_of
from tidemark.cli.terminal.output import Output, OutputOption, print_json, print_table, time_text
from tidemark.cli.terminal.service_addresses import QueryUrl, open_query

EXAMPLE = "Example: tidemark offset orders --time 2026-01-31T12:00:00Z"


def offset(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    time: Annotated[
        str,
        typer.Option(metavar="TIME", help="RFC 3339 (2026-01-31T12:00:00Z), or epoch milliseconds (1795240089391ms)."),
    ],
    queue: Annotated[list[int] | None, typer.Option(min=0, help="A queue; may be repeated. Without: all.")] = None,
    query: QueryUrl = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show where each queue was at a time.

    That is the offset of its first message that was stored then or later."""
    moment = parse_time(time, option="--time")
    with open_query(query) as service:
        found: list[dict[str, Any]] = [
            offset_at_time(service, topic, each["queue_id"], moment) for each in queues_of(service, topic, queue or [])
        ]
    if output is Output.JSON:
        print_json({"topic": topic, "time_ms": moment, "queues": found})
        return
    rows = [(one["queue_id"], one["offset"], _stored(one["store_timestamp_ms"])) for one in found]
    print_table(("queue", "offset", "stored"), rows)


def _stored(store_timestamp_ms: int | None) -> str:
    return "nothing yet: its end" if store_timestamp_ms is None else time_text(store_timestamp_ms)
