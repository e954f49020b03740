"""Rows on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from benchmarks.report import Row

COLUMNS = ("figure", "value", "unit", "aim", "flush", "note")


def cells(row: Row, flush_mode: str) -> tuple[str, ...]:
    """Texts of *row*, one a column."""
    return (row.name, number_text(row.value), row.unit, row.target, flush_mode, row.note)


def number_text(value: float) -> str:
    """With as many digits as anybody wants to read."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"


def make_table(rows: Iterable[tuple[Row, str]]) -> Table:
    """*rows*, each with its flush mode."""
    table = Table(title="client and server on the same machine")
    for name in COLUMNS:
        table.add_column(name, justify="right" if name == "value" else "left")
    for row, flush_mode in rows:
        table.add_row(*cells(row, flush_mode))
    return table
