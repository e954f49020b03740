"""The whole measurement, part by part: constants, then checks against them, then several pairs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from benchmarks.indexing import index_once
from benchmarks.machine import describe_machine, load_average
from benchmarks.producers import Load
from benchmarks.scale.constants import Constants, Measured
from benchmarks.scale.measure import checks, disk, lookup, pairs, pipeline, query, queues, visible, writer
from benchmarks.scale.measure.repeat import medians
from benchmarks.stores import append_log, passing_store

_T = TypeVar("_T")


def measure_all(folder: Path, console: Console) -> Measured:
    """Measure everything with stores below *folder*, which are deleted. This takes about ten minutes."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as name:
        stores = Path(name).absolute()
        machine = describe_machine(stores)
        values: dict[str, float] = {}
        for part, measure in _parts(stores):
            values |= _timed(part, measure, console)
    machine["load average after"] = load_average()
    return check_all(Measured(machine, Constants(**values), [], []), folder, console)


def check_all(measured: Measured, folder: Path, console: Console) -> Measured:
    """Return *measured* with new checks of its constants and new figures of several pairs."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as name:
        stores = Path(name).absolute()
        found = _timed("checks", lambda: checks.measure(stores, measured.constants), console)
        figures = _timed("pairs", lambda: pairs.measure(stores), console)
    return measured._replace(checks=found, pairs=figures)


def _parts(stores: Path) -> list[tuple[str, Callable[[], dict[str, float]]]]:
    logs: dict[Load, Path] = {}

    def of_pipeline() -> dict[str, float]:
        logs.update(pipeline.make_logs(stores))
        return pipeline.measure(logs)

    def of_query() -> dict[str, float]:
        query.index(logs)
        return medians(lambda: query.measure(logs))

    return [
        ("disk", lambda: medians(lambda: disk.measure(stores))),
        ("visible", lambda: visible.measure(stores)),
        ("queues", lambda: queues.measure(stores)),
        ("writer", lambda: medians(lambda: writer.measure(stores))),
        ("pipeline", of_pipeline),
        ("query", of_query),
        ("lookup", lambda: lookup.measure(logs[pipeline.SMALL])),
        ("rebuild", lambda: medians(lambda: _rebuild_start(stores))),
    ]


def _rebuild_start(stores: Path) -> dict[str, float]:
    """Return the time of a rebuild of an almost empty store, which is the time of the start."""
    with passing_store(stores / "empty") as data:
        append_log(data, Load("empty", 10, 100, 1, keyed=True))
        return {"rebuild_start_s": index_once(data, "tidemark.cli.main", "store", "rebuild", str(data)).total_s}


def _timed(part: str, measure: Callable[[], _T], console: Console) -> _T:
    began = time.monotonic()
    found = measure()
    console.print(f"[dim]{part}: {time.monotonic() - began:.0f} s[/]", highlight=False)
    return found
