"""The verb `produce`: sends a body, or rows of a file or of standard input, as messages."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli.sending.produce_input import Format, ProduceInput, format_of, separator_of
from tidemark.cli.terminal.escapes import ESCAPES
from tidemark.cli.terminal.names import TopicName
from tidemark.cli.terminal.output import Output, OutputOption
from tidemark.cli.terminal.pairs import pairs_of
from tidemark.cli.terminal.service_addresses import WriterAddress

EXAMPLE = "Example: tidemark produce orders '{\"id\": 4711}' --key order-4711"
_BATCH_SIZE = 1000


def produce(
    topic: TopicName,
    body: Annotated[
        str | None, typer.Argument(metavar="BODY", help="Body of the only message. Default: read messages.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Key of each message, which also chooses its queue. Default: none.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Tag of each message. Default: none.")] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="Property of each message. Repeatable.")
    ] = None,
    delay_level: Annotated[
        int,
        typer.Option(min=0, max=18, help="RocketMQ's level, 1 to 18: deliver after 1 s, 5 s, 10 s, … 2 h. 0: at once."),
    ] = 0,
    file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File to send. Default: standard input.")
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Format of the input. Default: by the file's suffix, otherwise lines."),
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator",
            "-K",
            metavar="TEXT",
            help=f"For lines: each is a key, this text, and a body. An empty key is none. Escapes: {ESCAPES}.",
        ),
    ] = None,
    body_field: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Field or column with the body. Default: the whole row, as JSON."),
    ] = None,
    key_field: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Field or column with the key, which also chooses the queue. Default: none."),
    ] = None,
    tag_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Field or column with the tag. Default: none.")
    ] = None,
    infer_types: Annotated[
        bool,
        typer.Option("--infer-types", help="For CSV: convert numbers, booleans and times; default: send text."),
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="For lines: keep a carriage return before a newline, and a byte order mark at the start.",
        ),
    ] = False,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, max=32_767, help="Maximum number of messages per batch.", show_default=str(_BATCH_SIZE)),
    ] = None,
    writer: WriterAddress = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send BODY as one message; or lines, JSON lines, CSV or Parquet, one message per row. Print where they are stored.

    Lines of a pipe are sent as they arrive. A line ends with LF or CRLF, and a UTF-8 byte order mark at the start of
    the input is left out. A field that is the body is sent exactly as it is written: numbers keep their digits. CSV and
    Parquet need the extra `table`.

    A malformed line or row is reported with its number, and nothing after it is sent. An empty line is malformed,
    because a message needs a body; at a terminal it is ignored. The command always reports, even after Ctrl-C, how many
    messages were acknowledged and are therefore stored.
    """
    from tidemark.cli.sending.line_input import CommonParts, FieldNames, LineRow, with_parts
    from tidemark.cli.sending.send_body import send_body
    from tidemark.cli.sending.send_rows import SendPlan, send_rows

    parts = CommonParts(key, tag, pairs_of(properties or [], option="--property"), delay_level)
    plan = SendPlan(topic, writer, batch_size or _BATCH_SIZE, delay_level)
    as_json = output is Output.JSON
    names = FieldNames(body_field, key_field, tag_field)
    if body is not None:
        if file or form or key_separator or any(names) or infer_types or exact or batch_size:
            raise typer.BadParameter(
                "with BODY, no other input can be described: leave out --file, --format, --batch-size and the options "
                "of formats",
                param_hint="BODY",
            )
        send_body(LineRow(os.fsencode(body), key, tag, parts.properties), plan, as_json=as_json)
        return
    separator = None if key_separator is None else separator_of(key_separator, option="--key-separator")
    given = ProduceInput(file, form or format_of(file), names, infer_types, exact, separator)
    given.require_fit(parts)
    if delay_level and batch_size:
        raise typer.BadParameter("delayed messages are sent one by one, not in batches", param_hint="--batch-size")
    rows = with_parts(given.rows(), parts)
    send_rows(rows, plan, as_json=as_json, with_progress=sys.stderr.isatty() and not given.is_typed)
