"""The verb `produce`: sends rows of a file or of standard input as messages."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.cli.terminal.output import Output, OutputOption
from tidemark.cli.terminal.service_addresses import WriterAddress

if TYPE_CHECKING:
    from tidemark.cli.sending.line_input import FieldNames, Rows

EXAMPLE = "Example: tidemark produce orders --file orders.csv --key-field id"


class Format(enum.StrEnum):
    """Input formats."""

    LINES = "lines"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


_BY_ENDING = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
}


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File to send. Default: standard input.")
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Format of the input. Default: by the file's suffix, otherwise lines."),
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
    batch_size: Annotated[int, typer.Option(min=1, max=32_767, help="Maximum number of messages per batch.")] = 1000,
    writer: WriterAddress = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send lines, JSON lines, CSV or Parquet, one message per row. Lines of a pipe are sent as they arrive.

    A line ends with LF or CRLF, and a UTF-8 byte order mark at the start of the input is left out. A field that is the
    body is sent exactly as it is written: numbers keep their digits. CSV and Parquet need the extra `table`.

    A malformed line or row is reported with its number, and nothing after it is sent. The command always reports, even
    after Ctrl-C, how many messages were acknowledged and are therefore stored.
    """
    from tidemark.cli.sending.line_input import FieldNames
    from tidemark.cli.sending.send_rows import send_rows

    chosen = form or (_BY_ENDING.get(file.suffix, Format.LINES) if file else Format.LINES)
    names = FieldNames(body_field, key_field, tag_field)
    if chosen is Format.LINES and any(names):
        raise typer.BadParameter("lines have no fields: give --format jsonl, csv or parquet", param_hint="--format")
    if exact and chosen is not Format.LINES:
        raise typer.BadParameter(f"applies only to lines, but the input is {chosen.value}", param_hint="--exact")
    rows = _rows(file, chosen, names, infer_types=infer_types, exact=exact)
    is_typed = file is None and sys.stdin.isatty()
    send_rows(
        rows,
        topic,
        writer,
        batch_size=batch_size,
        as_json=output is Output.JSON,
        with_progress=sys.stderr.isatty() and not is_typed,
    )


def _rows(file: Path | None, form: Format, names: FieldNames, *, infer_types: bool, exact: bool) -> Iterator[Rows]:
    """Open the input when the first row is requested: by then the topic's writer has answered."""
    from tidemark.cli.sending import line_input as rows
    from tidemark.cli.sending.line_reader import Arrivals, line_chunks

    with file.open("rb") if file else open(sys.stdin.fileno(), "rb", closefd=False) as stream:
        match form:
            case Format.LINES:
                yield from rows.rows_of_lines(line_chunks(Arrivals(stream.fileno()).take), exact=exact)
            case Format.JSONL:
                yield from rows.rows_of_json_lines(line_chunks(Arrivals(stream.fileno()).take), names)
            case Format.CSV:
                from tidemark.cli.sending.table_input import rows_of_csv

                yield from rows_of_csv(stream, names, infer_types=infer_types)
            case Format.PARQUET:
                import pyarrow as pa

                from tidemark.cli.sending.table_input import rows_of_parquet

                yield from rows_of_parquet(file or pa.BufferReader(stream.read()), names)
