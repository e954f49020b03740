"""The guard: the quick rows against the committed figures, each relative to what the machine can do at that moment.

A figure scales with one or more calibration loops (`Benchmark.calibration`): their geometric mean, taken before and
after the rows. So another machine, or a busy one, moves both sides, and what is left is the program.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.benchmark import Benchmark
from benchmarks.calibrate import calibrate
from benchmarks.runner import Run, run_benchmarks
from benchmarks.table import make_table, number_text

FIGURES = Path(__file__).parent / "figures.json"
CHECK_SCALE = 0.2
TOLERANCE = 0.3
_LOWER_IS_BETTER = frozenset({"ms", "s", "MB"})


class Figure(NamedTuple):
    """One row's value, and how fast the calibration loops it scales with were then."""

    value: float
    unit: str
    calibration: tuple[str, ...]
    machine_speed: float


class Compared(NamedTuple):
    """One row. speed: how many times as fast as committed, the machine's own speed taken out."""

    key: str
    committed: Figure
    now: Figure
    speed: float

    @property
    def verdict(self) -> str:
        """ "" within the tolerance."""
        if self.speed < 1 - TOLERANCE:
            return "slower"
        return "faster: write the figures again" if self.speed > 1 / (1 - TOLERANCE) else ""


def check_figures(benchmarks: Sequence[Benchmark], folder: Path, scale: float, console: Console) -> Run:
    """Measure, compare, print; a row without a committed figure is only shown."""
    committed = read_figures(FIGURES)
    run, now = _measure(benchmarks, folder, scale, console)
    compared = [compare(key, committed[key], figure) for key, figure in now.items() if key in committed]
    console.print(_table(compared))
    for one in compared:
        if one.verdict == "slower":
            console.print(f"warning: {one.key} is {1 - one.speed:.0%} slower than committed", style="yellow")
    if unknown := now.keys() - committed.keys():
        console.print(f"not committed: {', '.join(sorted(unknown))} (python -m benchmarks check --write)")
    return run


def write_figures(benchmarks: Sequence[Benchmark], folder: Path, scale: float, console: Console) -> Run:
    """Measure, and take the result as the committed figures; the rows that are not measured stay."""
    run, now = _measure(benchmarks, folder, scale, console)
    figures = {**read_figures(FIGURES), **now}
    content = {
        "machine": run.machine,
        "figures": {key: figure._asdict() for key, figure in sorted(figures.items())},
    }
    FIGURES.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    console.print(f"written: {FIGURES}", highlight=False, soft_wrap=True)
    return run


def read_figures(path: Path) -> dict[str, Figure]:
    """By key; none when the file is not there."""
    if not path.exists():
        return {}
    content: dict[str, dict[str, Any]] = orjson.loads(path.read_bytes())["figures"]
    return {key: Figure(**{**figure, "calibration": tuple(figure["calibration"])}) for key, figure in content.items()}


def compare(key: str, committed: Figure, now: Figure) -> Compared:
    """ValueError when the two are not of one kind."""
    if (committed.unit, committed.calibration) != (now.unit, now.calibration):
        raise ValueError(f"{key}: committed as {committed.unit} by {committed.calibration}; write the figures again")
    ratio = now.value / committed.value
    speed = 1 / ratio if now.unit in _LOWER_IS_BETTER else ratio
    return Compared(key, committed, now, speed * committed.machine_speed / now.machine_speed)


def machine_speed(names: Sequence[str], *measured: Mapping[str, float]) -> float:
    """The geometric mean of the loops *names*, each the mean of what was *measured* before and after."""
    return math.prod(statistics.fmean(rates[name] for rates in measured) for name in names) ** (1 / len(names))


def _measure(
    benchmarks: Sequence[Benchmark], folder: Path, scale: float, console: Console
) -> tuple[Run, dict[str, Figure]]:
    with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as name:
        before = calibrate(Path(name))
        run = run_benchmarks(benchmarks, folder, scale, console)
        after = calibrate(Path(name))
    console.print(make_table(run.rows))
    by_key = {key: benchmark for benchmark in benchmarks for key in benchmark.keys}
    figures = {}
    for row, _ in run.rows:
        names = by_key[row.key].calibration
        figures[row.key] = Figure(row.value, row.unit, names, machine_speed(names, before, after))
    return run, figures


def _table(compared: Sequence[Compared]) -> Table:
    table = Table(title="against the committed figures, the machine's own speed taken out")
    for name in ("row", "committed", "now", "unit", "scales with", "machine", "speed", ""):
        table.add_column(name, justify="left" if name in {"row", "unit", "scales with", ""} else "right")
    for one in compared:
        machine = one.now.machine_speed / one.committed.machine_speed
        table.add_row(
            one.key,
            number_text(one.committed.value),
            number_text(one.now.value),
            one.now.unit,
            " × ".join(one.now.calibration),
            f"× {machine:.2f}",
            f"× {one.speed:.2f}",
            one.verdict,
        )
    return table
