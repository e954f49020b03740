"""One benchmark: sends, waits until all is visible, and reads back."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterator

from tidemark.cli.bench.load import Load, Reader, Run, read_back, send_all
from tidemark.cli.bench.measurements import BenchResult, Latencies, Rate
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.service_addresses import topic_path
from tidemark.client import Query, TopicQueue, Topics
from tidemark.client.producer.producer import Producer
from tidemark.errors import StoreError
from tidemark.v1.commit_log_pb2 import FLUSH_MODE_ASYNC


@contextlib.contextmanager
def new_topic(writer: str, name: str, queues: int) -> Iterator[None]:
    """Create a topic for the block, and delete it after it, if this caller is allowed to."""
    with Topics(writer) as topics:
        topics.create(name, queues=queues)
        try:
            yield
        finally:
            try:
                topics.delete(name)
            except StoreError as error:
                say(f"warning: the topic {name} was not deleted: {error.message}")


def measure(load: Load, service: Query, writer: str) -> BenchResult:
    """Return the measurements of *load*.

    Raises TopicNotFoundError for an unknown topic, and the StoreError of a producer or consumer.
    """
    with Producer(writer) as producer:
        is_async = producer.log_info().flush_mode == FLUSH_MODE_ASYNC
    offsets = {
        TopicQueue(load.topic, queue["queue_id"]): queue["max_offset"]
        for queue in service.get(topic_path(load.topic))["queues"]
    }
    run = Run(load)
    reader = Reader(run, service.url, offsets)
    reader.start()
    try:
        elapsed_s = send_all(run, writer)
        reader.finish(run.sent)
    finally:
        run.stop.set()
        reader.close()
    found, read_s = read_back(run, service.url, offsets, run.sent)
    latencies = array("d", (one for part in run.latencies for one in part))
    return BenchResult(
        "async" if is_async else "sync",
        Rate.of(run.sent, elapsed_s, size_bytes=load.size_bytes),
        Latencies.of(latencies),
        Latencies.of(reader.arrivals) if reader.arrivals else None,
        Rate.of(found, read_s, size_bytes=load.size_bytes),
    )
