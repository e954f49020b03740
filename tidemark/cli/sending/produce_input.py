"""ProduceInput: the rows of `produce`, from a file or standard input in one of the formats."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from tidemark.cli.terminal.escapes import unescape
from tidemark.cli.terminal.exit_status import say

if TYPE_CHECKING:
    from tidemark.cli.sending.line_input import CommonParts, FieldNames, Rows
    from tidemark.cli.sending.line_reader import Chunk


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


def format_of(file: Path | None) -> Format:
    """Return the format by the file's suffix; lines for any other suffix, and for standard input."""
    return Format.LINES if file is None else _BY_ENDING.get(file.suffix, Format.LINES)


class ProduceInput(NamedTuple):
    """The input of `produce` without a body. separator: between key and body of a line; None without keys."""

    file: Path | None
    form: Format
    names: FieldNames
    infer_types: bool
    exact: bool
    separator: bytes | None

    @property
    def is_typed(self) -> bool:
        """Return True if the lines are typed at a terminal."""
        return self.file is None and sys.stdin.isatty()

    def require_fit(self, parts: CommonParts) -> None:
        """Raise a usage error for options of other formats, and for parts that the rows have themselves."""
        if self.form is Format.LINES and any(self.names):
            raise typer.BadParameter("lines have no fields: give --format jsonl, csv or parquet", param_hint="--format")
        for is_given, option in ((self.exact, "--exact"), (self.separator is not None, "--key-separator")):
            if is_given and self.form is not Format.LINES:
                raise typer.BadParameter(
                    f"applies only to lines, but the input is {self.form.value}", param_hint=option
                )
        if self.form in (Format.CSV, Format.PARQUET) and any(parts):
            raise typer.BadParameter(
                f"--key, --tag, --property and --delay-level do not apply to {self.form.value}: name columns with "
                "--key-field and --tag-field, or send JSON lines",
                param_hint="--format",
            )
        if parts.key is not None and (self.names.key is not None or self.separator is not None):
            raise typer.BadParameter("cannot be combined with --key-field or --key-separator", param_hint="--key")
        if parts.tag is not None and self.names.tag is not None:
            raise typer.BadParameter("cannot be combined with --tag-field", param_hint="--tag")

    def rows(self) -> Iterator[Rows]:
        """Open the input when the first row is requested: by then the topic's writer has answered."""
        from tidemark.cli.sending import line_input
        from tidemark.cli.sending.line_reader import Arrivals, line_chunks

        with self.file.open("rb") if self.file else open(sys.stdin.fileno(), "rb", closefd=False) as stream:
            match self.form:
                case Format.LINES:
                    chunks = line_chunks(Arrivals(stream.fileno()).take)
                    if self.is_typed:
                        say(f"one message per line{', with its key' if self.separator else ''}; Ctrl-D ends")
                        chunks = _without_empty_lines(chunks)
                    yield from line_input.rows_of_lines(chunks, exact=self.exact, separator=self.separator)
                case Format.JSONL:
                    yield from line_input.rows_of_json_lines(line_chunks(Arrivals(stream.fileno()).take), self.names)
                case Format.CSV:
                    from tidemark.cli.sending.table_input import rows_of_csv

                    yield from rows_of_csv(stream, self.names, infer_types=self.infer_types)
                case Format.PARQUET:
                    import pyarrow as pa

                    from tidemark.cli.sending.table_input import rows_of_parquet

                    yield from rows_of_parquet(self.file or pa.BufferReader(stream.read()), self.names)


def separator_of(text: str, *, option: str) -> bytes:
    """Return the bytes of a key separator. Raises a usage error for an unknown escape and for an empty text."""
    separator = unescape(text, option=option)
    if not separator:
        raise typer.BadParameter("it is empty", param_hint=option)
    return separator


def _without_empty_lines(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield the lines typed at a terminal, one by one, without the empty ones."""
    for chunk in chunks:
        for number, line in enumerate(chunk.lines, chunk.first):
            if line:
                yield chunk._replace(first=number, lines=[line])
            else:
                say("an empty line is no message; Ctrl-D ends")
