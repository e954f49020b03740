"""Output of verbs: tables for people, JSON for programs. Depends on no verb.

JSON output is one document, or one line per item for streams, and nothing else on standard output.
"""

from __future__ import annotations

import datetime
import enum
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console

_META = "tidemark.output"  # key in the command's context
_Form = TypeVar("_Form", bound=enum.StrEnum)
_WIDE = 200  # columns when the output is not a terminal


class Output(enum.StrEnum):
    """Output forms."""

    TABLE = "table"
    JSON = "json"


def remember_output(ctx: typer.Context, output: _Form) -> _Form:
    """Store the value of an --output option, so that errors are printed in the same form."""
    if output == Output.JSON:
        ctx.meta[_META] = True
    return output


def _remember_flag(ctx: typer.Context, as_json: bool) -> bool:
    if as_json:
        ctx.meta[_META] = True
    return as_json


OutputOption = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        help="Output form: a table, or one JSON document.",
        callback=remember_output,
        is_eager=True,  # errors of other options are printed in this form, too
    ),
]
StreamOption = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        help="Output form: a table, or one line of JSON per item.",
        callback=remember_output,
        is_eager=True,
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Same as --output json.", callback=_remember_flag)]


def is_json(ctx: typer.Context) -> bool:
    """Return True if the running command's output form is JSON. *ctx*: its context, or a parent of it."""
    return bool(ctx.meta.get(_META))


def print_json(document: object) -> None:
    """Print one JSON document, or one item of a stream, as a line."""
    import orjson

    sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))


def print_error_json(message: str, reason: str, facts: Mapping[str, object], next_steps: Sequence[str]) -> None:
    """Print a failure as one line of JSON on standard error."""
    import orjson

    document = {"error": message, "reason": reason, "facts": facts, "next_steps": next_steps}
    typer.echo(orjson.dumps(document, default=str).decode(), err=True)


def console(*, stderr: bool = False) -> Console:
    """Return a console with the terminal's width, or a wide one for a pipe or file. It interprets no markup."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr, width=None if stream.isatty() else _WIDE, markup=False, highlight=False, soft_wrap=True
    )


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under the columns' names: numbers right-aligned, None as an empty cell."""
    console().print(make_table(columns, rows), soft_wrap=False)


def make_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Any:
    """Return the table that `print_table` prints."""
    from rich.table import Table

    cells = [list(row) for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        is_number = bool(cells) and all(isinstance(row[number], int | None) for row in cells)
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in cells:
        table.add_row(*(cell_text(cell) for cell in row))
    return table


def print_facts(facts: Mapping[str, object]) -> None:
    """Print one line per name and value."""
    console().print(make_facts(facts), soft_wrap=False)


def make_facts(facts: Mapping[str, object]) -> Any:
    """Return the table that `print_facts` prints."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, cell_text(value))
    return table


def cell_text(value: object) -> str:
    """Return the text of a cell; for a list, one line per item."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list):
        return "\n".join(printable(str(line)) for line in value)
    return printable(str(value))


def printable(text: str) -> str:
    """Return *text* with control characters escaped, so that it cannot move a terminal's cursor or set colours."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def time_text(epoch_ms: int) -> str:
    """Return a time as RFC 3339 in UTC with milliseconds; the number itself if it is out of the calendar's range."""
    try:
        moment = datetime.datetime.fromtimestamp(epoch_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return str(epoch_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1000:03d}Z"
