"""The start of the `tidemark` command: the time of `tidemark --help`, from exec to exit."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.benchmark import Benchmark
from benchmarks.clock import clock
from benchmarks.report import Result, Row

_RUNS = 20
_COMMANDS = {"command_help": ["-m", "tidemark.cli", "--help"], "command_python": ["-c", "pass"]}
_NAMES = {"command_help": "`tidemark --help`", "command_python": "of that, Python with nothing to do"}
_TARGETS = {"command_help": "≤ 300"}


def _measure(folder: Path, scale: float) -> Result:
    runs = max(5, round(_RUNS * scale))
    rows = []
    for key, arguments in _COMMANDS.items():
        _run_s(arguments)  # loads the files into memory and compiles them
        with clock():
            times = [_run_s(arguments) for _ in range(runs)]
        note = f"median of {runs} runs, the slowest {max(times) * 1000:.0f} ms; files in memory"
        rows.append(Row(key, _NAMES[key], statistics.median(times) * 1000, "ms", _TARGETS.get(key, ""), note))
    return Result(rows, [])


def _run_s(arguments: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


BENCHMARKS = (Benchmark("command", tuple(_COMMANDS), _measure),)
