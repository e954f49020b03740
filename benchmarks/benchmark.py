"""Benchmark: a name, the keys of the rows it gives, and the function that measures them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Result, Row


@dataclass(frozen=True)
class Benchmark:
    """What can be picked and run.

    keys         of its rows, in order; always all of them
    measure      (a folder for its stores, scale) → Result; raises when anything failed: an errored run has no figures
    flush_mode   of the writer while it is measured; "" where none writes
    calibration  parts of `calibrate` that it scales with; empty: not a part of the guard
    when_named   whether it runs only when it is picked
    """

    name: str
    keys: tuple[str, ...]
    measure: Callable[[Path, float], Result]
    flush_mode: str = ""
    calibration: tuple[str, ...] = ()
    when_named: bool = False

    def run(self, folder: Path, scale: float) -> list[Row]:
        """Its rows alone."""
        return self.result(folder, scale).rows

    def result(self, folder: Path, scale: float) -> Result:
        """Rows and plots. scale: 1 for the figures, less to try it out."""
        result = self.measure(folder, scale)
        keys = tuple(row.key for row in result.rows)
        if keys != self.keys:
            raise ValueError(f"{self.name} gives the rows {keys}, not {self.keys}")
        return result
