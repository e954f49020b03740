"""The load of a benchmark: producers that wait for each answer, and a reader that waits for their messages."""

from __future__ import annotations

import os
import struct
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidemark.client import Consumer, Message, Producer, ReceivedMessage, TopicQueue

_HEAD = struct.Struct(">16sHQ")  # run, producer, call
LEAST_SIZE_BYTES = 26  # of a body: `bench --size`
assert _HEAD.size == LEAST_SIZE_BYTES
_POLL_S = 0.2
_PATIENCE_S = 30.0  # without a further message


class Load(NamedTuple):
    """Messages to send to *topic*. Exactly one of messages and seconds is given. size_bytes: of each body."""

    topic: str
    messages: int | None
    seconds: float | None
    size_bytes: int
    producers: int
    batch: int


class Run:
    """One run: an id that its messages carry, and the time of each call by producer and number."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.id = os.urandom(16)
        self.starts = [array("d") for _ in range(load.producers)]
        self.latencies = [array("d") for _ in range(load.producers)]
        self.acknowledged = [0] * load.producers
        self.stop = threading.Event()
        self._padding = os.urandom(load.size_bytes - _HEAD.size)

    def body(self, producer: int, call: int) -> bytes:
        """Return the body of the messages of one call."""
        return _HEAD.pack(self.id, producer, call) + self._padding

    def started(self, message: ReceivedMessage) -> float | None:
        """Return the time of the call that sent *message*; None for a message of another run."""
        if len(message.body) < _HEAD.size:
            return None
        run, producer, call = _HEAD.unpack_from(message.body)
        return self.starts[producer][call] if run == self.id else None

    @property
    def sent(self) -> int:
        """Return the number of acknowledged messages."""
        return sum(self.acknowledged)


def send_all(run: Run, writer: str) -> float:
    """Send with all producers, each in a thread with its own connection. Return the elapsed seconds.

    Before the measurement, each producer sends one message that is not counted: it connects with it. Raises the first
    error of a producer.
    """
    load = run.load
    failures: list[Exception] = []
    times: list[tuple[float, float]] = []
    barrier = threading.Barrier(load.producers)

    def work(number: int) -> None:
        try:
            with Producer(writer) as producer:
                producer.send(load.topic, b"warm-up")
                barrier.wait()
                times.append(_send(run, producer, number))
        except Exception as error:
            failures.append(error)
            run.stop.set()
            barrier.abort()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(load.producers)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:  # also after Ctrl-C: the caller may delete the topic
        run.stop.set()
        barrier.abort()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    for failure in failures:
        if not isinstance(failure, threading.BrokenBarrierError):
            raise failure
    return max(end for _, end in times) - min(begin for begin, _ in times)


def _send(run: Run, producer: Producer, number: int) -> tuple[float, float]:
    """Send the share of producer *number*; return begin and end."""
    load, starts, latencies = run.load, run.starts[number], run.latencies[number]
    begin = end = time.perf_counter()
    for call, count in enumerate(_calls(load, number)):
        if run.stop.is_set() or (load.seconds is not None and end - begin >= load.seconds):
            break
        body = run.body(number, call)
        start = time.perf_counter()
        starts.append(start)
        if load.batch == 1:
            producer.send(load.topic, body)
        else:
            producer.send_batch([Message(load.topic, body)] * count)
        end = time.perf_counter()
        latencies.append(end - start)
        run.acknowledged[number] += count
    return begin, end


def _calls(load: Load, number: int) -> Iterator[int]:
    """Yield the number of messages of each call of producer *number*."""
    if load.messages is None:
        while True:
            yield load.batch
    share = load.messages // load.producers + (number < load.messages % load.producers)
    for sent in range(0, share, load.batch):
        yield min(load.batch, share - sent)


class Reader:
    """Reads a run's messages from given offsets, and measures when they arrive."""

    def __init__(self, run: Run, url: str, offsets: dict[TopicQueue, int]) -> None:
        self._run = run
        self._url = url
        self._offsets = offsets
        self.arrivals = array("d")  # seconds from each message's call
        self._thread = threading.Thread(target=self._follow)
        self._is_over = threading.Event()
        self._failure: Exception | None = None

    def start(self) -> None:
        """Start to follow the queues."""
        self._thread.start()

    def finish(self, sent: int) -> None:
        """Wait until *sent* messages have arrived, or none more within 30 s. Raises the error of the reading."""
        known, changed_at = -1, time.monotonic()
        while len(self.arrivals) < sent and self._thread.is_alive():
            if len(self.arrivals) != known:
                known, changed_at = len(self.arrivals), time.monotonic()
            elif time.monotonic() - changed_at > _PATIENCE_S:
                break
            time.sleep(_POLL_S / 10)
        self.close()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Stop reading."""
        self._is_over.set()
        self._thread.join()

    def _follow(self) -> None:
        try:
            with open_consumer(self._url, self._offsets) as consumer:
                while not self._is_over.is_set():
                    page = consumer.poll(_POLL_S)
                    now = time.perf_counter()
                    started = (self._run.started(message) for message in page)
                    self.arrivals.extend(now - start for start in started if start is not None)
        except Exception as error:
            self._failure = error


def read_back(run: Run, url: str, offsets: dict[TopicQueue, int], sent: int) -> tuple[int, float]:
    """Read the run's messages once more; return their number and the elapsed seconds."""
    found = 0
    with open_consumer(url, offsets) as consumer:
        begin = end = time.perf_counter()
        while found < sent:
            page = consumer.poll(_PATIENCE_S)
            if not page:
                break
            found += sum(run.started(message) is not None for message in page)
            end = time.perf_counter()
    return found, end - begin


def open_consumer(url: str, offsets: dict[TopicQueue, int]) -> Consumer:
    """Return a consumer without a group, at *offsets*."""
    queues: Sequence[TopicQueue] = list(offsets)
    consumer = Consumer(queues=queues, url=url)
    consumer.poll(0, max_messages=0)
    for queue, offset in offsets.items():
        consumer.seek(queue, offset)
    return consumer
