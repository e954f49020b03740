"""Clients of a benchmark, each a process of its own, that prepare, start together, and give back what they measured.

Processes, because threads of one interpreter would measure its lock, and the runner's progress bar with it.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import TypeVar

from benchmarks.clock import clock

_T = TypeVar("_T")
Start = Callable[[], None]
PREPARE_TIMEOUT_S = 600.0
_barrier: Barrier | None = None  # in a client's process: where all meet


def run_clients(clients: Sequence[Callable[[Start], _T]]) -> list[_T]:
    """Call each client in a process of its own; what they returned, in that order.

    A client prepares and warms up, calls what it is given once, which returns when all are ready, and measures. The
    first exception of a client is raised here. Whatever ends the wait for them ends them.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(clients) + 1)
    with ProcessPoolExecutor(len(clients), context, initializer=_remember, initargs=(barrier,)) as pool:
        futures = [pool.submit(_call, client) for client in clients]
        try:
            _wait(barrier, futures)
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    failures = [failure for future in futures if (failure := future.exception()) is not None]
    for failure in sorted(failures, key=lambda failure: isinstance(failure, threading.BrokenBarrierError)):
        raise failure
    return [future.result() for future in futures]


def _wait(barrier: Barrier, futures: Sequence[Future[_T]]) -> None:
    """Until all are done, the clock running since all were ready."""
    with contextlib.suppress(threading.BrokenBarrierError):  # then a future tells why
        barrier.wait(PREPARE_TIMEOUT_S)
        with clock():
            barrier.wait(PREPARE_TIMEOUT_S)
            for future in futures:
                future.exception()


def _remember(barrier: Barrier) -> None:
    global _barrier  # noqa: PLW0603 - a barrier cannot be an argument of a task
    _barrier = barrier


def _call(client: Callable[[Start], _T]) -> _T:
    barrier = _barrier
    assert barrier is not None, "the initializer ran"

    def start() -> None:
        gc.freeze()  # a full collection of all that a benchmark has loaded would be counted as the services' time
        barrier.wait(PREPARE_TIMEOUT_S)
        barrier.wait(PREPARE_TIMEOUT_S)

    try:
        return client(start)
    except BaseException:
        barrier.abort()
        raise
