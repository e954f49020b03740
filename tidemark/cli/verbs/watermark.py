"""The verb `watermark`: shows the watermark and the committed offset."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer

from tidemark.cli.terminal.output import Output, StreamOption, print_facts, print_json, time_text
from tidemark.cli.terminal.service_addresses import QueryUrl, open_query

EXAMPLE = "Example: tidemark watermark --follow"


def watermark(
    query: QueryUrl = None,
    output: StreamOption = Output.TABLE,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Repeat until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.01, help="With --follow: seconds between two requests.")] = 1.0,
) -> None:
    """Show the watermark and the committed offset.

    Messages below the watermark are visible."""
    with open_query(query) as service:
        if not follow:
            _show(service.watermark(), output)
            return
        while True:
            _show_line(service.watermark(), output)
            time.sleep(interval)


def _show(answer: dict[str, Any], output: Output) -> None:
    if output is Output.JSON:
        print_json(answer)
        return
    mark = answer["watermark"]
    print_facts(
        {
            "watermark": mark["physical_offset"],
            "committed": answer["committed_offset"],
            "lag, bytes": answer["lag_bytes"],
            "term": mark["term"],
            "published": time_text(mark["published_ms"]),
        }
    )


def _show_line(answer: dict[str, Any], output: Output) -> None:
    if output is Output.JSON:
        print_json(answer)
    else:
        mark = answer["watermark"]
        typer.echo(
            f"{time_text(mark['published_ms'])}  watermark {mark['physical_offset']:,}  "
            f"committed {answer['committed_offset']:,}  lag {answer['lag_bytes']:,} bytes"
        )
    sys.stdout.flush()
