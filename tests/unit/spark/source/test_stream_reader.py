"""The ranges of each trigger of a stream, while topics are created and deleted."""

from __future__ import annotations

import logging

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from tests.unit.spark.fake_log import FakeLog, run_of
from tidemark.client.received_message import TopicQueue
from tidemark.errors import TopicNotFoundError
from tidemark.spark.source import stream_reader
from tidemark.spark.source.source_options import SourceOptions, read_options
from tidemark.spark.source.stream_offsets import Json, from_json
from tidemark.spark.source.stream_reader import StreamReader
from tidemark.spark.source.tasks import Task

ORDERS, EVENTS = TopicQueue("orders", 0), TopicQueue("events", 0)
ALL = ReadAllAvailable()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> FakeLog:
    """Return `orders` and `events` with ten messages each."""
    log = FakeLog({ORDERS: run_of(0, 10), EVENTS: run_of(0, 10)})
    monkeypatch.setattr(stream_reader, "open_log", lambda _: log)
    return log


def reader(**given: str) -> StreamReader:
    """Return a reader of both topics, unless the options differ."""
    chosen = {} if {"subscribe", "subscribePattern"} & given.keys() else {"subscribe": "orders,events"}
    return StreamReader(read_options(SourceOptions, {"path": "/store", **chosen, **given}), StructType([]))


def read(one: StreamReader, start: Json, limit: ReadLimit = ALL) -> tuple[dict[TopicQueue, range], Json]:
    """Return the ranges of the next trigger, and its end."""
    end = one.latestOffset(start, limit)
    ranges: dict[TopicQueue, range] = {}
    for task in one.partitions(start, end):
        assert isinstance(task, Task)
        ranges |= {part.queue: range(part.start, part.end) for part in task.ranges if part.count}
    return ranges, end


def test_a_topic_created_after_a_start_at_latest_is_read_from_its_beginning(log: FakeLog) -> None:
    one = reader(subscribePattern=".*", startingOffsets="latest")
    start = one.initialOffset()
    log.queues[TopicQueue("new", 0)] = run_of(0, 3)
    log.queues[TopicQueue("orders", 1)] = run_of(0, 2)
    ranges, end = read(one, start)
    assert ranges == {TopicQueue("new", 0): range(3), TopicQueue("orders", 1): range(2)}
    assert read(one, end)[0] == {}


def test_a_new_queue_with_expired_messages_is_read_from_its_minimum(log: FakeLog) -> None:
    one = reader(subscribePattern=".*", startingOffsets="latest")
    start = one.initialOffset()
    log.queues[TopicQueue("new", 0)] = run_of(5, 8)
    assert read(one, start)[0] == {TopicQueue("new", 0): range(5, 8)}


def test_a_restart_at_a_planned_trigger_reads_a_new_queue_from_its_beginning(log: FakeLog) -> None:
    """Its start is not in the checkpoint."""
    one = reader(subscribePattern=".*", startingOffsets="latest")
    start = one.initialOffset()
    log.queues[TopicQueue("new", 0)] = run_of(0, 3)
    end = one.latestOffset(start, ALL)
    (task,) = reader(subscribePattern=".*").partitions(start, end)
    assert isinstance(task, Task)
    assert [(part.queue, part.start, part.end) for part in task.ranges] == [(TopicQueue("new", 0), 0, 3)]


@pytest.mark.parametrize("most", [1, 7, 50, 64])
def test_a_limit_is_held_exactly_with_many_queues(log: FakeLog, most: int) -> None:
    """Every message is read once, and every trigger but the last has exactly the limit."""
    log.queues = {TopicQueue("orders", i): run_of(0, 1 + i % 7) for i in range(50)}
    total = sum(len(messages) for messages in log.queues.values())
    one = reader(subscribe="orders", startingOffsets="earliest", maxOffsetsPerTrigger=str(most))
    position, counts = one.initialOffset(), []
    while True:
        ranges, end = read(one, position, ReadMaxRows(most))
        if not ranges:
            break
        assert all(part.start == from_json(position)[queue] for queue, part in ranges.items())
        counts.append(sum(len(part) for part in ranges.values()))
        position = end
    assert sum(counts) == total
    assert counts[:-1] == [most] * (len(counts) - 1)


def test_a_deleted_topic_fails_a_stream_with_fail_on_data_loss(log: FakeLog) -> None:
    one = reader(startingOffsets="earliest")
    _, end = read(one, one.initialOffset())
    del log.queues[EVENTS]
    with pytest.raises(TopicNotFoundError, match="events"):
        one.latestOffset(end, ALL)


@pytest.mark.parametrize("topics", [{"subscribe": "orders,events"}, {"subscribePattern": ".*"}, {}])
def test_a_deleted_topic_is_skipped_without_fail_on_data_loss(
    log: FakeLog, topics: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """It is reported once; a topic that is created again under its name is read from its beginning."""
    one = reader(startingOffsets="earliest", failOnDataLoss="false", **topics)
    _, end = read(one, one.initialOffset())
    del log.queues[EVENTS]
    log.queues[ORDERS] = run_of(0, 12)
    with caplog.at_level(logging.WARNING):
        ranges, end = read(one, end)
        assert ranges == {ORDERS: range(10, 12)}
        assert read(one, end)[0] == {}
    assert caplog.text.count("queue 0 of events does not exist any more") == 1
    log.queues[EVENTS] = run_of(10, 13)
    assert read(one, end)[0] == {EVENTS: range(10, 13)}


def test_a_topic_deleted_within_a_trigger_is_skipped(log: FakeLog) -> None:
    """It appeared, was planned, and is gone when its beginning is looked up."""
    one = reader(subscribePattern=".*", startingOffsets="latest", failOnDataLoss="false")
    start = one.initialOffset()
    log.queues[TopicQueue("new", 0)] = run_of(0, 3)
    end = one.latestOffset(start, ALL)
    del log.queues[TopicQueue("new", 0)]
    assert [part for task in one.partitions(start, end) if isinstance(task, Task) for part in task.ranges] == []


def test_a_topic_that_never_existed_fails_a_stream_at_its_start(log: FakeLog) -> None:
    """failOnDataLoss does not matter: the name may be misspelt."""
    for choice in ("true", "false"):
        with pytest.raises(TopicNotFoundError, match="nothing"):
            reader(subscribe="orders,nothing", failOnDataLoss=choice).initialOffset()
