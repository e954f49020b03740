"""Compares the engines of the compiled loops, in turn: `python -m benchmarks.extension FOLDER`.

FOLDER has the extension (`make extension`). Prints the time of each loop, of the start of a plain stack until it is
ready, and its memory, with the extension and by numba from its cache.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.append_to_visible import measure
from benchmarks.rows import loops
from tidemark.format.kernels import compiled
from tidemark.local.local_stack import LocalStack

_ROUNDS = 3
_SCALE = 0.3  # of the rounds of a loop
_MESSAGES, _RATE = 1000, 200.0


def measure_engine(folder: Path) -> dict[str, float]:
    """Return figures by name, with this process's engine, which the services inherit."""
    found = {row.key: row.value for row in loops.BENCHMARKS[0].measure(folder, _SCALE).rows}
    before = time.perf_counter()
    with LocalStack(folder / "store", environment={"TIDEMARK_PIPELINE": "plain"}) as stack:
        found["ready_s"] = time.perf_counter() - before
        measure(stack.writer_address, stack.query_url, count=_MESSAGES, rate=_RATE)
        for name, service in stack.services.items():
            found[f"memory_{name}_mb"] = psutil.Process(service.pid).memory_full_info().pss / 1e6
    found["memory_stack_mb"] = sum(value for name, value in found.items() if name.startswith("memory_"))
    return found


def _in_new_process(extension: str | None) -> dict[str, float]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if extension is not None:
        environment["PYTHONPATH"] = extension
    done = subprocess.run([sys.executable, "-m", __spec__.name], env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    assert found.pop("extension") == (extension is not None), "the extension was built from other sources"
    return found


def main(extension: str) -> None:
    """Print the medians of each engine and their ratio."""
    rounds = [(_in_new_process(None), _in_new_process(extension)) for _ in range(_ROUNDS)]
    print(f"{'':24}{'numba':>10}{'extension':>11}{'ratio':>7}")
    for name in rounds[0][0]:
        by_numba, by_extension = (statistics.median(one[engine][name] for one in rounds) for engine in (0, 1))
        print(f"{name:24}{by_numba:10.2f}{by_extension:11.2f}{by_extension / by_numba:7.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure_engine(Path(folder)) | {"extension": compiled.extension is not None}))
