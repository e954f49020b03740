"""Sends at a fixed rate without waiting for answers, so that each message shows a pause of the system or the sender."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.producers import require_stored
from tidemark.client import Producer, SendResult

LEAD_S = 0.05  # from the start to the first message


class Sends(NamedTuple):
    """Times in ns of the machine's monotonic clock, by the number of the message."""

    due: NDArray[np.int64]
    acknowledged: NDArray[np.int64]


def send_at_rate(producer: Producer, count: int, rate: float, send: Callable[[int, int], Future[SendResult]]) -> Sends:
    """Call `send(number, due_ns)` for each of *count* messages when it is due, *rate* per second.

    Raises the first failure of a send, or RuntimeError if a message is not stored.
    """
    begin = time.perf_counter_ns() + int(LEAD_S * 1e9)
    due = begin + (np.arange(count) / rate * 1e9).astype(np.int64)
    acknowledged = np.zeros(count, np.int64)
    failures: list[BaseException] = []

    def note(number: int, future: Future[SendResult]) -> None:
        acknowledged[number] = time.perf_counter_ns()
        try:
            require_stored(future.result())
        except Exception as failure:
            failures.append(failure)

    for number, due_ns in enumerate(due.tolist()):
        time.sleep(max(0, due_ns - time.perf_counter_ns()) / 1e9)
        send(number, due_ns).add_done_callback(functools.partial(note, number))
    producer.flush()  # futures are not kept: garbage collection among thousands would pause the sender
    if failures:
        raise failures[0]
    return Sends(due, acknowledged)
