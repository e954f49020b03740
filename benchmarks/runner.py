"""Runs benchmarks one after the other, with a progress bar. A failed benchmark has no figures and is reported."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.benchmark import Benchmark
from benchmarks.machine import describe_machine, load_average
from benchmarks.report import Plot, Row

_REDRAWS_A_SECOND = 1  # few, because the measured processes share the processors


@dataclass
class Run:
    """The result of a run. machine: facts by name; rows: with their flush modes; failures: reason by benchmark."""

    machine: dict[str, str]
    rows: list[tuple[Row, str]] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)


def run_benchmarks(benchmarks: Sequence[Benchmark], folder: Path, scale: float, console: Console) -> Run:
    """Run *benchmarks* with their stores below *folder*, and delete the stores."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as name:
        stores = Path(name).absolute()
        run = Run({**describe_machine(stores), "scale": f"{scale:g}"})
        for fact, text in run.machine.items():
            console.print(f"[dim]{fact}:[/] {text}", highlight=False)
        with _progress(console) as progress:
            task = progress.add_task("", total=len(benchmarks))
            for benchmark in benchmarks:
                progress.update(task, description=benchmark.name)
                _run_one(benchmark, stores, scale, run, progress.console)
                progress.advance(task)
    run.machine["load average after"] = load_average()
    return run


def _run_one(benchmark: Benchmark, stores: Path, scale: float, run: Run, console: Console) -> None:
    began = time.monotonic()
    try:
        result = benchmark.result(stores, scale)
    except Exception as error:
        run.failures[benchmark.name] = f"{type(error).__name__}: {error}"
        console.print(f"{benchmark.name} failed: {run.failures[benchmark.name]}", style="red", markup=False)
        return
    run.rows += [(row, benchmark.flush_mode) for row in result.rows]
    run.plots += result.plots
    console.print(f"[dim]{benchmark.name}: {time.monotonic() - began:.0f} s[/]", highlight=False)


def _progress(console: Console) -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=console, refresh_per_second=_REDRAWS_A_SECOND)
