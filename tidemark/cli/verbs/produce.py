"""The verb `produce`: rows of a file or of standard input, as messages of a topic."""

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
    """What the input is."""

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
        Path | None, typer.Option(exists=True, dir_okay=False, help="What to send. Without: standard input.")
    ] = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="Of the input. Without: by the file's ending, else lines.")
    ] = None,
    body_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Field or column that is the body. Without: the row, as JSON.")
    ] = None,
    key_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Field or column that is the key; it chooses the queue, too.")
    ] = None,
    tag_field: Annotated[str | None, typer.Option(metavar="NAME", help="Field or column that is the tag.")] = None,
    infer_types: Annotated[
        bool, typer.Option("--infer-types", help="Of CSV: numbers, booleans and times instead of text.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Of lines: keep a carriage return before a newline, and a byte order mark at the start."
        ),
    ] = False,
    batch_size: Annotated[int, typer.Option(min=1, max=32_767, help="The most messages in a batch.")] = 1000,
    writer: WriterAddress = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Send lines, JSON lines, CSV or Parquet, a message a row. Lines of a pipe are sent as they come.

    A line ends with LF or CRLF, and a UTF-8 byte order mark at the start of the input is left out; --exact keeps both.
    A field that is a body is sent as it stands in the line: numbers keep their digits.

    CSV and Parquet need the extra `table`. A malformed line or row is named by its number, and nothing after it is
    sent. However the command ends, also by Ctrl-C, it reports how many messages are acknowledged: these are stored.
    """
    from tidemark.cli.sending.line_input import FieldNames
    from tidemark.cli.sending.send_rows import send_rows

    chosen = form or (_BY_ENDING.get(file.suffix, Format.LINES) if file else Format.LINES)
    names = FieldNames(body_field, key_field, tag_field)
    if chosen is Format.LINES and any(names):
        raise typer.BadParameter("lines have no fields: give --format jsonl, csv or parquet", param_hint="--format")
    if exact and chosen is not Format.LINES:
        raise typer.BadParameter(f"--exact is for lines, and the input is {chosen.value}", param_hint="--exact")
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
    """Opens what is to be read when the first row is asked for: by then the topic's writer has answered."""
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
