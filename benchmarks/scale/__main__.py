"""`python -m benchmarks.scale measure`: measures constants into constants.json. `make scale` writes the tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.scale.constants import PATH, Measured, load, save

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The model of docs/scale.md.")
Folder = Annotated[
    Path,
    typer.Option(envvar="BENCH_FOLDER", exists=True, file_okay=False, help="Create stores in this folder."),
]


@app.command()
def measure(folder: Folder = Path()) -> None:
    """Measure the constants, check the model, and write constants.json. This takes about ten minutes."""
    from benchmarks.scale.measure.run import measure_all

    console = _console()
    _save(measure_all(folder, console), console)


@app.command()
def check(folder: Folder = Path()) -> None:
    """Check the model with the existing constants, and write the results to constants.json."""
    from benchmarks.scale.measure.run import check_all

    console = _console()
    _save(check_all(load(), folder, console), console)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 200)


def _save(measured: Measured, console: Console) -> None:
    save(measured)
    console.print(f"written: {PATH}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    app()
