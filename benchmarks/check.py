"""The performance check: compares the quick rows with the committed figures, relative to the machine's present speed.

A figure scales with one or more calibration loops (`Benchmark.calibration`): with the geometric mean of their rates
before and after the rows. Another machine, or a busy one, changes figure and rates alike, so that the rest of the
difference is due to the program.
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
    """One row's value, and the speed of its calibration loops in the same run."""

    value: float
    unit: str
    calibration: tuple[str, ...]
    machine_speed: float


class Compared(NamedTuple):
    """The comparison of one row. speed: ratio to the committed figure, corrected by the speed of the machine."""

    key: str
    committed: Figure
    now: Figure
    speed: float

    @property
    def verdict(self) -> str:
        """The verdict; "" within the tolerance."""
        if self.speed < 1 - TOLERANCE:
            return "slower"
        return "faster: write the figures again" if self.speed > 1 / (1 - TOLERANCE) else ""


def check_figures(benchmarks: Sequence[Benchmark], folder: Path, scale: float, console: Console) -> Run:
    """Measure, compare and print the rows. A row without a committed figure is only listed."""
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
    """Measure, and replace the committed figures of the measured rows."""
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
    """Return the figures by key; none if the file does not exist."""
    if not path.exists():
        return {}
    content: dict[str, dict[str, Any]] = orjson.loads(path.read_bytes())["figures"]
    return {key: Figure(**{**figure, "calibration": tuple(figure["calibration"])}) for key, figure in content.items()}


def compare(key: str, committed: Figure, now: Figure) -> Compared:
    """Compare two figures of one row. Raises ValueError if their units or calibrations differ."""
    if (committed.unit, committed.calibration) != (now.unit, now.calibration):
        raise ValueError(
            f"{key}: the committed figure has the unit {committed.unit} and the calibration {committed.calibration}, "
            f"not {now.unit} and {now.calibration}: write the figures again (python -m benchmarks check --write)"
        )
    ratio = now.value / committed.value
    speed = 1 / ratio if now.unit in _LOWER_IS_BETTER else ratio
    return Compared(key, committed, now, speed * committed.machine_speed / now.machine_speed)


def machine_speed(names: Sequence[str], *measured: Mapping[str, float]) -> float:
    """Return the geometric mean of the loops *names*; the rate of each is its mean over *measured*."""
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
    table = Table(title="compared with the committed figures, corrected by the speed of the machine")
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
