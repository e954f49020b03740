"""Producer processes that append packed batches as fast as the writer takes them, and what rate that was."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.batches import plain_batch, scattered, unique_batches
from benchmarks.clients import Start, run_clients
from benchmarks.report import Line, throughput_line
from tidemark.client import Producer, SendResult, SendStatus

PRODUCERS = 4
TIMEOUT_S = 120.0


class Load(NamedTuple):
    """What each producer sends: *batches* of *messages* to its own queue of *topic*.

    unique_keys  a UNIQ_KEY in each message, so that every batch is another one
    keyed        a key `<queue id>-<number>` in each message; then UNIQ_KEYs, too
    scattered    such keys look like random ones, as UUIDs do: their slots in the key index lie anywhere
    ahead        whether batches are made before the clock starts; else it is a store that is made, not measured
    """

    topic: str
    messages: int
    body_bytes: int
    batches: int
    unique_keys: bool = False
    keyed: bool = False
    scattered: bool = False
    ahead: bool = True

    @property
    def warm_up(self) -> int:
        """Batches before the clock: as many again; none for a store, or with keys, which are for one message each."""
        return self.batches if self.ahead and not self.keyed else 0

    def make(self, count: int, queue_id: int) -> Iterator[bytes]:
        """*count* wire batches."""
        if not (self.unique_keys or self.keyed):
            packed = plain_batch(self.messages, self.body_bytes)
            return iter([packed] * count)
        prefix = f"{queue_id}-" if self.keyed else ""
        key_of = scattered if self.scattered else str
        return unique_batches(count, self.messages, self.body_bytes, key_prefix=prefix, key_of=key_of)


class Rate(NamedTuple):
    """Acknowledged messages a second while all producers were sending; line: over time."""

    messages_per_s: float
    line: Line


def append(address: str, load: Load, *, producers: int = PRODUCERS) -> Rate:
    """Let producer processes send *load*, each on a stream of its own to the queue of its number."""
    clients = run_clients([partial(_produce, address, load, queue_id) for queue_id in range(producers)])
    begin, end = max(times[0] for times in clients), min(times[-1] for times in clients)
    acknowledged = np.concatenate([times[1:] for times in clients])
    within = np.count_nonzero((acknowledged > begin) & (acknowledged <= end)) * load.messages
    line = throughput_line(acknowledged, np.full(len(acknowledged), float(load.messages)))
    return Rate(float(within / (end - begin)), line)


def _produce(address: str, load: Load, queue_id: int, start: Start) -> NDArray[np.float64]:
    """Seconds of the machine's monotonic clock: when it began, and when each batch was acknowledged, ascending."""
    with Producer(address, timeout_s=TIMEOUT_S) as producer:
        if load.warm_up:
            _send(producer, load.topic, queue_id, load.make(load.warm_up, queue_id))
        batches: Iterable[bytes] = load.make(load.batches, queue_id)
        if load.ahead:
            batches = list(batches)
        start()
        begin = time.perf_counter()
        return np.array([begin, *sorted(_send(producer, load.topic, queue_id, batches))])


def _send(producer: Producer, topic: str, queue_id: int, batches: Iterable[bytes]) -> list[float]:
    """When each was acknowledged; raises for one that was not, or that the writer took for a repeat."""
    times: list[float] = []

    def note(_: Future[SendResult]) -> None:
        times.append(time.perf_counter())

    futures = []
    for packed in batches:
        future = producer.send_packed_async(topic, packed, queue_id=queue_id)
        future.add_done_callback(note)
        futures.append(future)
    for future in futures:
        require_stored(future.result())
    producer.flush(TIMEOUT_S)  # the last callback may come behind its result
    return times


def require_stored(result: SendResult) -> None:
    """RuntimeError unless it was stored, flushed as asked for, and new."""
    if result.status is not SendStatus.PUT_OK or result.duplicate:
        raise RuntimeError(f"queue {result.queue_id}: {result.status.name}, duplicate: {result.duplicate}")
