"""Client processes of a benchmark, which start together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from benchmarks.clients import Start, run_clients


def _note_times(prepare_s: float, start: Start) -> tuple[int, float, float]:
    time.sleep(prepare_s)
    ready = time.perf_counter()
    start()
    return os.getpid(), ready, time.perf_counter()


def _fail(start: Start) -> tuple[int, float, float]:
    raise ArithmeticError("no figure from this")


def test_clients_are_processes_that_wait_for_the_slowest() -> None:
    """No client starts before all are ready."""
    (one, one_ready, one_began), (other, other_ready, other_began) = run_clients(
        [partial(_note_times, 0.0), partial(_note_times, 0.3)]
    )
    assert len({one, other, os.getpid()}) == 3
    assert min(one_began, other_began) >= max(one_ready, other_ready)


def test_a_client_that_fails_ends_the_benchmark_with_its_reason() -> None:
    """This also holds while the other clients wait for it."""
    with pytest.raises(ArithmeticError, match="no figure"):
        run_clients([partial(_note_times, 0.0), partial(_fail)])


_PROGRAM = """
import pathlib, signal, sys, time
from functools import partial
from benchmarks.clients import run_clients

def measure_long(started, start):
    start()
    pathlib.Path(started).touch()
    time.sleep(300)

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    run_clients([partial(measure_long, sys.argv[1])])
"""


def test_an_interrupted_wait_ends_the_clients(tmp_path: Path) -> None:
    """Stopping a benchmark does not wait for minutes until its clients have measured."""
    program, started = tmp_path / "program.py", tmp_path / "started"
    program.write_text(_PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen([sys.executable, program, started], env=environment) as runner:
        try:
            while not started.exists():
                assert runner.poll() is None
                time.sleep(0.05)
            runner.send_signal(signal.SIGTERM)
            assert runner.wait(20) == 128 + signal.SIGTERM
        finally:
            runner.kill()
