"""Formats rows as a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from benchmarks.report import Row

COLUMNS = ("figure", "value", "unit", "aim", "flush", "note")


def cells(row: Row, flush_mode: str) -> tuple[str, ...]:
    """Return the texts of *row*, one per column."""
    return (row.name, number_text(row.value), row.unit, row.target, flush_mode, row.note)


def number_text(value: float) -> str:
    """Return *value* with a readable number of digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"


def make_table(rows: Iterable[tuple[Row, str]]) -> Table:
    """Return a table of *rows*, each with its flush mode."""
    table = Table(title="client and server on the same machine")
    for name in COLUMNS:
        table.add_column(name, justify="right" if name == "value" else "left")
    for row, flush_mode in rows:
        table.add_row(*cells(row, flush_mode))
    return table
