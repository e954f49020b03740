"""Benchmark: a name, the keys of its rows, and the function that measures them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Result, Row


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that can be selected and run.

    keys         keys of all its rows, in order
    measure      (a folder for its stores, scale) → Result; raises on any error, because a failed run has no figures
    flush_mode   of the writer during the measurement; "" without a writer
    calibration  the loops of `calibrate` with which it scales; empty: `check` leaves it out
    when_named   True if it runs only when it is named
    """

    name: str
    keys: tuple[str, ...]
    measure: Callable[[Path, float], Result]
    flush_mode: str = ""
    calibration: tuple[str, ...] = ()
    when_named: bool = False

    def run(self, folder: Path, scale: float) -> list[Row]:
        """Measure and return the rows only."""
        return self.result(folder, scale).rows

    def result(self, folder: Path, scale: float) -> Result:
        """Measure and return rows and plots. scale: 1 for figures, less for a trial."""
        result = self.measure(folder, scale)
        keys = tuple(row.key for row in result.rows)
        if keys != self.keys:
            raise ValueError(f"{self.name} returned the rows {keys}, but declares {self.keys}")
        return result
