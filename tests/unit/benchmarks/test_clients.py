"""Clients of a benchmark: processes that start together."""

from __future__ import annotations

import os
import time
from functools import partial

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
    """None starts before all are ready."""
    (one, one_ready, one_began), (other, other_ready, other_began) = run_clients(
        [partial(_note_times, 0.0), partial(_note_times, 0.3)]
    )
    assert len({one, other, os.getpid()}) == 3
    assert min(one_began, other_began) >= max(one_ready, other_ready)


def test_a_client_that_fails_ends_the_benchmark_with_its_reason() -> None:
    """Also when the others wait for it."""
    with pytest.raises(ArithmeticError, match="no figure"):
        run_clients([partial(_note_times, 0.0), partial(_fail)])
