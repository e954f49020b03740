"""Append → visible: the time from when a message was due until a consumer has it over REST, by long poll, open loop.

The sender does not wait for answers, and the time of a late message counts from when it was due, so that every message
shows a pause of the system or of the sender. Sender and consumer are separate processes, as in production; both read
the machine's monotonic clock.
"""

from __future__ import annotations

import base64
import struct
import time
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.clients import Start, run_clients
from benchmarks.open_loop import LEAD_S, send_at_rate
from tidemark.client import Producer, Query, SendResult

TOPIC = "bench-visible"
BODY_BYTES = 1024
_STAMP = struct.Struct(">q")  # when it was due, ns
_WAIT_MS = 2000


class Latencies(NamedTuple):
    """Latencies in ms, from when a message was due, in the order of sends."""

    acknowledged: NDArray[np.float64]
    visible: NDArray[np.float64]  # the consumer has the message
    began: float  # when the first was due, seconds since the epoch


def measure(
    writer_address: str, query_url: str, *, count: int, rate: float, body_bytes: int = BODY_BYTES, topic: str = TOPIC
) -> Latencies:
    """Measure *count* single sends to queue 0 of *topic*, *rate* per second. Raises if a message is not stored."""
    with Producer(writer_address) as producer:
        producer.topics.create(topic, queues=1)
        first = producer.send(topic, b"start", queue_id=0).queue_offset + 1
    send = partial(_send, writer_address, topic, count, rate, body_bytes)
    consume = partial(_consume, query_url, topic, first, count)
    (acknowledged, began), (visible, _) = run_clients([send, consume])
    return Latencies(acknowledged, visible, began)


def _send(
    address: str, topic: str, count: int, rate: float, body_bytes: int, start: Start
) -> tuple[NDArray[np.float64], float]:
    filler = bytes(body_bytes - _STAMP.size)

    def send(_: int, due_ns: int) -> Future[SendResult]:
        return producer.send_async(topic, _STAMP.pack(due_ns) + filler, queue_id=0)

    with Producer(address) as producer:
        producer.log_info()  # connects
        start()
        began = time.time() + LEAD_S
        sends = send_at_rate(producer, count, rate, send)
    return (sends.acknowledged - sends.due) / 1e6, began


def _consume(query_url: str, topic: str, first: int, count: int, start: Start) -> tuple[NDArray[np.float64], float]:
    latencies = np.full(count, np.nan)
    next_offset, end = first, first + count
    with Query(query_url) as query:
        query.pull(topic, 0, next_offset, wait_ms=_WAIT_MS)  # connects, and the topic becomes known
        start()
        while next_offset < end:
            page = query.pull(topic, 0, next_offset, wait_ms=_WAIT_MS, body_encoding="base64")
            now = time.perf_counter_ns()
            for message in page["messages"]:
                (due,) = _STAMP.unpack_from(base64.b64decode(message["body"]))
                latencies[message["queue_offset"] - first] = (now - due) / 1e6
            next_offset = page["next_offset"]
    return latencies, time.time()
