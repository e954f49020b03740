"""`python -m benchmarks run | check | profile`, for `make bench`, `make bench-check` and `make profile`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.benchmark import Benchmark
from benchmarks.catalog import BENCHMARKS, pick
from benchmarks.check import CHECK_SCALE, check_figures, write_figures
from benchmarks.page import save
from benchmarks.profile_shares import keep_profile, shares, shares_table
from benchmarks.profiler import PROCESSES, profile_benchmark
from benchmarks.runner import Run, run_benchmarks
from benchmarks.table import make_table

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Tidemark's own benchmarks.")
RESULTS, PROFILES = Path(__file__).parent / "results", Path(__file__).parent / "profiles"

Picks = Annotated[
    str, typer.Option(envvar="BENCH", help="Run these comma-separated names, keys or patterns; empty: the default set.")
]
Scale = Annotated[
    float, typer.Option(envvar="BENCH_SCALE", min=0.001, help="Multiply the duration by this; use 1 for figures.")
]
Folder = Annotated[
    Path,
    typer.Option(envvar="BENCH_FOLDER", exists=True, file_okay=False, help="Create stores in this folder."),
]


@app.command()
def run(names: Picks = "", scale: Scale = 1.0, folder: Folder = Path()) -> None:
    """Measure, print a table, and write results/<time>.json and .html. The exit status is 1 if a benchmark failed."""
    console = _console()
    done = run_benchmarks(_picked(names), folder, scale, console)
    console.print(make_table(done.rows))
    _tell_end(done, console)
    for path in save(done, RESULTS):
        console.print(f"written: {path}", highlight=False, soft_wrap=True)
    raise typer.Exit(1 if done.failures else 0)


@app.command()
def check(
    names: Picks = "",
    scale: Scale = CHECK_SCALE,
    folder: Folder = Path(),
    write: Annotated[
        bool, typer.Option("--write", help="Replace the committed figures with the measured ones.")
    ] = False,
) -> None:
    """Compare the quick rows with benchmarks/figures.json, relative to calibration loops of the same run.

    The exit status is 0, even with warnings; 1 if a benchmark failed.
    """
    console = _console()
    benchmarks = [benchmark for benchmark in _picked(names) if benchmark.calibration]
    measure = write_figures if write else check_figures
    done = measure(benchmarks, folder, scale, console)
    _tell_end(done, console)
    raise typer.Exit(1 if done.failures else 0)


@app.command()
def profile(
    row: Annotated[str, typer.Argument(help="Name of a benchmark, or key of one of its rows.")],
    process: Annotated[
        str, typer.Option(envvar="PROCESS", help=f"Profile these, comma-separated: {', '.join(PROCESSES)}; empty: all.")
    ] = "",
    scale: Scale = 1.0,
    folder: Folder = Path(),
    only: Annotated[
        int,
        typer.Option(
            "--round", envvar="ROUND", help="Show this measured round of the benchmark, from 1; -1: the last one."
        ),
    ] = -1,
    keep: Annotated[
        bool, typer.Option(envvar="KEEP", help="Also write the shares to profiles/, for benchmarks/NOTES.md.")
    ] = False,
) -> None:
    """Run one benchmark under py-spy, write a flame graph of each process to results/, and print the shares."""
    console = _console()
    wanted = [name for name in process.split(",") if name] or list(PROCESSES)
    if unknown := set(wanted) - set(PROCESSES):
        raise typer.BadParameter(f"unknown process {', '.join(sorted(unknown))}: use {', '.join(PROCESSES)}")
    for benchmark in _picked(row):
        done, paths = profile_benchmark(benchmark, folder, scale, console, wanted=wanted, results=RESULTS, only=only)
        console.print(make_table(done.rows), "measured under a profiler: do not use these as figures")
        by_process = {process: shares(graphs) for process, graphs in paths.items()}
        console.print(shares_table(by_process))
        written = [path for graphs in paths.values() for path in graphs]
        if keep:
            name = benchmark.name if only < 0 else f"{benchmark.name}_round_{only}"
            written.append(keep_profile(PROFILES, name, done.machine, by_process))
        for path in written:
            console.print(f"written: {path}", highlight=False, soft_wrap=True)


def _picked(names: str) -> list[Benchmark]:
    words = [word.strip() for word in names.split(",") if word.strip()]
    try:
        return pick(words)
    except KeyError as error:
        raise typer.BadParameter(f"unknown benchmark {error}: use {', '.join(BENCHMARKS)}") from None


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 200)  # a log file has no width


def _tell_end(done: Run, console: Console) -> None:
    console.print(f"[dim]load average after:[/] {done.machine['load average after']}", highlight=False)
    for name, why in done.failures.items():
        console.print(f"{name} failed: {why}", style="bold red", markup=False)


if __name__ == "__main__":
    app()
