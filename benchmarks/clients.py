"""Clients of a benchmark, each a process of its own, that prepare, start together, and return their measurements.

They are processes, because threads would share the interpreter's lock with each other and with the progress bar.
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
_barrier: Barrier | None = None  # set in each client's process


def run_clients(clients: Sequence[Callable[[Start], _T]]) -> list[_T]:
    """Call each client in a process of its own, and return their results in that order.

    A client prepares and warms up, calls its argument once, which blocks until all clients are ready, and measures. The
    first exception of a client is raised here. If the wait for the clients is interrupted, they are terminated.
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
    """Block until all are done; the clock runs from when all were ready."""
    with contextlib.suppress(threading.BrokenBarrierError):  # a future has the reason then
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
    assert barrier is not None, "the pool's initializer sets the barrier"

    def start() -> None:
        gc.freeze()  # otherwise a full garbage collection would count as the services' time
        barrier.wait(PREPARE_TIMEOUT_S)
        barrier.wait(PREPARE_TIMEOUT_S)

    try:
        return client(start)
    except BaseException:
        barrier.abort()
        raise
