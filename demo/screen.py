"""The demo's output: one console, progress bars with rates, and tables of messages."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

CONSOLE = Console(width=None if sys.stdout.isatty() else 120)  # a log file has no width


class RateColumn(ProgressColumn):
    """A column with the completed steps per second since the bar started."""

    def render(self, task: Task) -> Text:
        """Return the rate in whole steps."""
        seconds = task.finished_time or task.elapsed
        rate = task.completed / seconds if seconds else 0.0
        return Text(f"{rate:,.0f} {task.fields.get('unit', 'msg')}/s", style="cyan")


def progress_bars() -> Progress:
    """Return progress bars for steps that are counted in messages or MB."""
    return Progress(
        TextColumn("{task.description:<34}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeElapsedColumn(),
        console=CONSOLE,
    )


def heading(text: str) -> None:
    """Print the heading of a step."""
    CONSOLE.rule(f"[bold]{text}", align="left")


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a small table."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    CONSOLE.print(table)
