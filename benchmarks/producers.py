"""Producer processes that append packed batches as fast as the writer accepts them, and the measured rate."""

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
    """The load of each producer: *batches* of *messages* to its own queue of *topic*.

    unique_keys  each message has a UNIQ_KEY, so that all batches differ
    keyed        each message has a key `<queue id>-<number>`, and a UNIQ_KEY, too
    scattered    the keys look random, like UUIDs, so that their slots are scattered over the key index
    ahead        the batches are made before the clock starts; False for a store that is filled, not measured
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
        """Return the number of batches sent before the clock starts: as many again.

        It is 0 for a store, and with keys, because each key belongs to one message.
        """
        return self.batches if self.ahead and not self.keyed else 0

    def make(self, count: int, queue_id: int) -> Iterator[bytes]:
        """Return *count* wire batches."""
        if not (self.unique_keys or self.keyed):
            packed = plain_batch(self.messages, self.body_bytes)
            return iter([packed] * count)
        prefix = f"{queue_id}-" if self.keyed else ""
        key_of = scattered if self.scattered else str
        return unique_batches(count, self.messages, self.body_bytes, key_prefix=prefix, key_of=key_of)


class Rate(NamedTuple):
    """Acknowledged messages per second while all producers were sending; line: over time."""

    messages_per_s: float
    line: Line


def append(address: str, load: Load, *, producers: int = PRODUCERS) -> Rate:
    """Send *load* from producer processes, each on a stream of its own to the queue with its number."""
    clients = run_clients([partial(_produce, address, load, queue_id) for queue_id in range(producers)])
    begin, end = max(times[0] for times in clients), min(times[-1] for times in clients)
    acknowledged = np.concatenate([times[1:] for times in clients])
    within = np.count_nonzero((acknowledged > begin) & (acknowledged <= end)) * load.messages
    line = throughput_line(acknowledged, np.full(len(acknowledged), float(load.messages)))
    return Rate(float(within / (end - begin)), line)


def _produce(address: str, load: Load, queue_id: int, start: Start) -> NDArray[np.float64]:
    """Return the monotonic times, in seconds, of the start and of each acknowledgement, ascending."""
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
    """Return the time of each acknowledgement. Raises for a batch that was not stored or that counted as a repeat."""
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
    producer.flush(TIMEOUT_S)  # the last callback may run after its result
    return times


def require_stored(result: SendResult) -> None:
    """Raise RuntimeError unless the message was stored, flushed as required, and new."""
    if result.status is not SendStatus.PUT_OK or result.duplicate:
        raise RuntimeError(
            f"queue {result.queue_id}: expected a new, flushed message, but the answer is {result.status.name}, "
            f"duplicate: {result.duplicate}"
        )
