"""Append → visible: from before `send` until a consumer holds the message over REST, by long poll, open loop.

The sender keeps its times whatever the answers do, so that a pause of the system is seen by every message in it. Sender
and consumer are processes of their own, as in real life; both read the machine's monotonic clock.
"""

from __future__ import annotations

import base64
import functools
import multiprocessing
import struct
import time
from concurrent.futures import Future
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from benchmarks.report import Row, percentile_rows
from tidemark.cli.local_stack import PIPELINE, LocalStack
from tidemark.client import Producer, Query, SendResult

TOPIC = "bench-visible"
RATE = 200.0
BODY_BYTES = 1024
EPOCH_MS = 3000
HAND_OVERS = 12
TARGETS = {50.0: "≤ 5", 99.0: "≤ 25", 100.0: "≤ 150"}
_STAMP = struct.Struct(">q")
_WAIT_MS = 2000


class Latencies(NamedTuple):
    """In ms, from before `send`, in the order of sends."""

    acknowledged: NDArray[np.float64]
    visible: NDArray[np.float64]  # the consumer holds it


def run(folder: Path, scale: float) -> list[Row]:
    """200 messages a second over at least ten hand-overs of epochs."""
    seconds = max(10.0, EPOCH_MS / 1000 * HAND_OVERS * scale)
    environment = {"TIDEMARK_EPOCH_MS": str(EPOCH_MS)}
    with LocalStack(folder / "visible", environment=environment) as stack:
        measure(stack.writer_address, stack.query_url, count=200, rate=RATE)  # warm
        epochs_before = _epochs(stack)
        latencies = measure(stack.writer_address, stack.query_url, count=int(seconds * RATE), rate=RATE)
        hand_overs = _epochs(stack) - epochs_before
    note = f"{len(latencies.visible):,} of 1 KiB at {RATE:.0f}/s, {hand_overs} hand-overs of epochs of {EPOCH_MS} ms"
    return [
        *percentile_rows("append→visible", latencies.visible, TARGETS, note),
        *percentile_rows("append→acknowledged", latencies.acknowledged, note="the same messages"),
    ]


def _epochs(stack: LocalStack) -> int:
    """Epochs in which a follower held its shards, as the pipeline has logged them."""
    count = 0
    for line in stack.services[PIPELINE].log_path.read_text().splitlines():
        if line.startswith("{") and '"epoch_finished"' in line:
            count += orjson.loads(line)["held_s"] > EPOCH_MS / 2000
    return count


def measure(
    writer_address: str, query_url: str, *, count: int, rate: float, body_bytes: int = BODY_BYTES, topic: str = TOPIC
) -> Latencies:
    """Of *count* single sends to queue 0 of *topic*, *rate* a second."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with Producer(writer_address) as producer:
        producer.topics.create(topic, queues=1)
        first = producer.send(topic, b"start", queue_id=0).queue_offset + 1
        consumer = context.Process(target=_consume, args=(query_url, topic, first, count, theirs))
        consumer.start()
        ours.recv()  # it is connected and waits
        acknowledged = _produce(producer, topic, count=count, rate=rate, body_bytes=body_bytes)
        visible: NDArray[np.float64] = ours.recv()
        consumer.join()
    return Latencies(acknowledged, visible)


def _produce(producer: Producer, topic: str, *, count: int, rate: float, body_bytes: int) -> NDArray[np.float64]:
    filler = bytes(body_bytes - _STAMP.size)
    latencies = np.full(count, np.nan)

    def note(number: int, sent: int, _: Future[SendResult]) -> None:
        latencies[number] = (time.perf_counter_ns() - sent) / 1e6

    start = time.perf_counter()
    futures = []
    for number in range(count):
        time.sleep(max(0.0, start + number / rate - time.perf_counter()))
        sent = time.perf_counter_ns()
        future = producer.send_async(topic, _STAMP.pack(sent) + filler, queue_id=0)
        future.add_done_callback(functools.partial(note, number, sent))
        futures.append(future)
    for future in futures:
        future.result()
    return latencies


def _consume(query_url: str, topic: str, first: int, count: int, results: Connection) -> None:
    latencies = np.full(count, np.nan)
    next_offset, end = first, first + count
    with Query(query_url) as query:
        query.pull(topic, 0, "latest")
        results.send("ready")
        while next_offset < end:
            page = query.pull(topic, 0, next_offset, wait_ms=_WAIT_MS)
            now = time.perf_counter_ns()
            for message in page["messages"]:
                (sent,) = _STAMP.unpack_from(base64.b64decode(message["body"]))
                latencies[message["queue_offset"] - first] = (now - sent) / 1e6
            next_offset = page["next_offset"]
    results.send(latencies)
