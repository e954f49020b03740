"""What verbs print: tables for people, JSON for programs. Knows no verb.

JSON is one document, or of streams one line an item; nothing else is on standard output then.
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

_META = "tidemark.output"  # in the command's context
_Form = TypeVar("_Form", bound=enum.StrEnum)
_WIDE = 200  # columns of what is no terminal


class Output(enum.StrEnum):
    """The form of what is printed."""

    TABLE = "table"
    JSON = "json"


def remember_output(ctx: typer.Context, output: _Form) -> _Form:
    """Callback of an --output option: an error is told in the same form."""
    if output == Output.JSON:
        ctx.meta[_META] = True
    return output


def _remember_flag(ctx: typer.Context, as_json: bool) -> bool:
    if as_json:
        ctx.meta[_META] = True
    return as_json


OutputOption = Annotated[
    Output,
    typer.Option("--output", "-o", help="For people, or for programs: one JSON document.", callback=remember_output),
]
StreamOption = Annotated[
    Output,
    typer.Option(
        "--output", "-o", help="For people, or for programs: one line of JSON an item.", callback=remember_output
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="The same as --output json.", callback=_remember_flag)]


def is_json(ctx: typer.Context) -> bool:
    """Whether the command that runs was asked for JSON; *ctx*: its own context, or one above."""
    return bool(ctx.meta.get(_META))


def print_json(document: object) -> None:
    """One JSON document, or one item of a stream, as a line."""
    import orjson

    sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))


def print_error_json(message: str, reason: str, facts: Mapping[str, object], next_steps: Sequence[str]) -> None:
    """A failure as one line of JSON on standard error."""
    import orjson

    document = {"error": message, "reason": reason, "facts": facts, "next_steps": next_steps}
    typer.echo(orjson.dumps(document, default=str).decode(), err=True)


def console(*, stderr: bool = False) -> Console:
    """A terminal's width, or a wide one where it is a pipe or a file. No markup is read in what is printed."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr, width=None if stream.isatty() else _WIDE, markup=False, highlight=False, soft_wrap=True
    )


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows under their columns' names; numbers to the right, None as nothing."""
    console().print(make_table(columns, rows), soft_wrap=False)


def make_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Any:
    """The same, to be shown."""
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
    """A name and its value a line."""
    console().print(make_facts(facts), soft_wrap=False)


def make_facts(facts: Mapping[str, object]) -> Any:
    """The same, to be shown."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, cell_text(value))
    return table


def cell_text(value: object) -> str:
    """What a cell shows; of a list a line each."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list):
        return "\n".join(printable(str(line)) for line in value)
    return printable(str(value))


def printable(text: str) -> str:
    """*text* without what would move a terminal's cursor or change its colours: control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def time_text(epoch_ms: int) -> str:
    """RFC 3339, UTC, milliseconds; the number itself where it is no time of this calendar."""
    try:
        moment = datetime.datetime.fromtimestamp(epoch_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return str(epoch_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1000:03d}Z"
