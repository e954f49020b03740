"""RocketMQ's ConsumeQueueTest and queue/ConsumeQueueTest: units of SimpleCQ queues, their bounds, duplicates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.builders import BORN_HOST, BORN_HOST_V6, STORE_HOST, STORE_HOST_V6, write_log
from tests.pipeline_runs import build, plan_of, queue_files
from tidemark.errors import TopicNotFoundError
from tidemark.format.dispatch_request import DISPATCH_REQUEST, RequestArray
from tidemark.index.build import ConsumeQueueBuilder
from tidemark.read.pull import PullStatus, refuse
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.originals.topics import TopicConfig, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance

END = 1 << 40


def dispatched(count: int, size: int) -> RequestArray:
    """Return contiguous records of *size* bytes; record i has queue offset i and tag code i."""
    requests = np.zeros(count, DISPATCH_REQUEST)
    numbers = np.arange(count)
    requests["physical_offset"], requests["message_size"] = size * numbers, size
    requests["queue_offset"] = requests["base_offset"] = requests["tags_code"] = numbers
    requests["batch_size"] = 1
    return requests


def built_queue(folder: Path, requests: RequestArray, *, units_a_file: int) -> QueueReader:
    """Return a reader of a queue of these records."""
    builder = ConsumeQueueBuilder(MappedFileQueue(folder, 20 * units_a_file, DiskStorage()), mark=0)
    assert builder.build(requests) == []
    builder.files.close()
    return QueueReader(folder, topic="t", queue_id=0, batch=False)


def bounds_of(queue: QueueReader, log_min: int = 0) -> QueueBounds:
    return queue.bounds(Watermark(0, END, 0, END), log_min=log_min)


def test_cq1_a_record_that_is_already_built_adds_no_unit(tmp_path: Path) -> None:
    """Of 2000 records every second has IPv6 hosts: dispatched again from the first on, no byte changes."""
    hosts = [
        {"born_host": BORN_HOST, "store_host": STORE_HOST},
        {"born_host": BORN_HOST_V6, "store_host": STORE_HOST_V6},
    ]
    write_log(tmp_path / "commitlog", 8192, ({"queue_offset": i, **hosts[i % 2]} for i in range(2000)))
    settings = {"consume_queue_file_size_bytes": 200, "index_slots": 16, "index_entries": 64}
    build(plan_of(tmp_path, **settings))
    before = queue_files(tmp_path)
    assert len(before) == 200
    marks = Marks.open_to_write(StorePaths(tmp_path).marks, DiskStorage(), shards=3, term=0)
    for shard in range(3):
        marks.set_back(shard, 0)
    marks.close()
    build(plan_of(tmp_path, **settings))
    assert queue_files(tmp_path) == before
    reader = StoreReader(tmp_path)
    bounds = reader.bounds(reader.queue("TopicTest", 0), reader.watermark())
    assert (bounds.min_offset, bounds.max_offset) == (0, 2000)


def test_cq4_cq5_cq6_the_minimum_follows_the_log(tmp_path: Path) -> None:
    """10,000 records of 100 bytes. Log from 0: minimum 0; from 2000: 20, although it was 5; after the last: the end."""
    queue = built_queue(tmp_path, dispatched(10_000, 100), units_a_file=10)
    for log_min, minimum in ((0, 0), (500, 5), (2000, 20), (999_900, 9_999), (1_000_000, 10_000), (1_000_000, 10_000)):
        bounds = bounds_of(queue, log_min)
        assert (bounds.min_offset, bounds.max_offset) == (minimum, 10_000)


def test_qcq1_a_queue_without_writes_is_empty(tmp_path: Path) -> None:
    """A topic without attributes is SimpleCQ, 0 to 0. An unknown topic is unknown here, not created by the request."""
    save_topics(StorePaths(tmp_path).topics, {"t": TopicConfig("t", 1, 1)}, DiskStorage(), counter=1)
    reader = StoreReader(tmp_path)
    queue = reader.queue("t", 0)
    bounds = reader.bounds(queue, reader.watermark())
    assert (queue.is_batch, bounds.min_offset, bounds.max_offset) == (False, 0, 0)
    with pytest.raises(TopicNotFoundError):
        reader.queue("nowhere", 0)
    assert not (tmp_path / "consumequeue").exists()


def test_qcq2_a_hundred_units_have_their_bounds(tmp_path: Path) -> None:
    """They are 0 to 100; nothing is at -1 and at 100."""
    bounds = bounds_of(built_queue(tmp_path, dispatched(100, 1000), units_a_file=100))
    assert (bounds.min_offset, bounds.max_offset, bounds.units) == (0, 100, (0, 100))
    below, beyond = refuse(bounds, -1), refuse(bounds, 100)
    assert below is not None
    assert below.status is PullStatus.OFFSET_TOO_SMALL
    assert beyond is not None
    assert beyond.status is PullStatus.OFFSET_OVERFLOW_ONE


def test_qcq3_iteration_starts_at_any_unit(tmp_path: Path) -> None:
    """From i on come i to 99, each one message, at 1000 times its offset."""
    queue = built_queue(tmp_path, dispatched(100, 1000), units_a_file=100)
    bounds = bounds_of(queue)
    assert len(list(tmp_path.iterdir())) == 1
    for offset in range(100):
        number = queue.locate(offset, bounds.units)
        units = queue.run.read(number, bounds.units.end - number)
        assert queue.first_offsets(number, units).tolist() == list(range(offset, 100))
        assert units["physical_offset"].tolist() == list(range(1000 * offset, 100_000, 1000))
        assert set(units["message_size"].tolist()) == {1000}
        assert units["tags_code"].tolist() == list(range(offset, 100))
        assert set(queue.message_counts(units).tolist()) == {1}
