"""A Spark stream reads a group's topic over failovers: each message once in the result, whichever member answers."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.integration.spark.conftest import spark  # noqa: F401 - a fixture
from tests.replication.conftest import MakeElected
from tests.replication.elected import TOPIC
from tests.replication.nemesis.faults import LinkedMembers
from tests.replication.test_clients_follow import FAILOVERS, TIMEOUT_S, Sending, fail_over
from tests.waiting import until
from tidemark.client import Consumer, Producer, Query, ReceivedMessage

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.exhaustive,
    pytest.mark.timeout(300 + 30 * FAILOVERS),
]

ROWS = 50  # in a batch


@pytest.fixture
def members(make_elected: MakeElected) -> LinkedMembers:
    return make_elected(with_readers=True)


class Stream:
    """A stream of the topic, whose batches are collected. rows: how often each body came."""

    def __init__(self, session: SparkSession, url: str, checkpoint: Path) -> None:
        self.rows: Counter[bytes] = Counter()
        source = session.readStream.format("tidemark")
        frame = source.options(url=url, subscribe=TOPIC, startingOffsets="earliest").load()
        self.query = begun(frame.writeStream.foreachBatch(self._take), checkpoint)

    def _take(self, frame: DataFrame, _: int) -> None:
        self.rows.update(bytes(row.body) for row in frame.select("body").collect())

    def require_running(self) -> bool:
        """Raise the exception that has ended the stream."""
        if (error := self.query.exception()) is not None:
            raise error
        return self.query.isActive


def begun(writer: DataStreamWriter, checkpoint: Path) -> StreamingQuery:
    """Start a query; again if its Python process did not answer within Spark's ten seconds, on a busy machine."""
    trigger = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds")

    def query() -> StreamingQuery | None:
        started = trigger.start()
        until(lambda: started.lastProgress or started.exception(), "the query has begun")
        return None if "failed to connect back" in str(started.exception()) else started

    return until(query, "a query begins")


@pytest.fixture
def stream(spark: SparkSession, members: LinkedMembers, tmp_path: Path) -> Iterator[Stream]:  # noqa: F811
    members.start()
    members.until_all_in_sync()
    with Producer(members.writers, timeout_s=TIMEOUT_S) as producer:
        producer.send(TOPIC, b"first")
    started = Stream(spark, members.url, tmp_path / "checkpoint")
    yield started
    started.query.stop()


def test_a_stream_goes_on_over_failovers(members: LinkedMembers, stream: Stream) -> None:
    with Producer(members.writers, timeout_s=TIMEOUT_S) as producer, Sending(producer) as sending:
        for number in range(FAILOVERS):
            sending.go_on()
            fail_over(members, by_pause=bool(number % 2))
        sending.go_on()
    assert not sending.failures
    expected = {b"first", *(key.encode() for key in sending.sent)}
    until(
        lambda: stream.require_running() and expected <= stream.rows.keys(), "everything is read", found=members.found
    )
    assert stream.rows == Counter(expected)


def test_a_stream_waits_for_a_member_that_is_behind(members: LinkedMembers, stream: Stream) -> None:
    """The first member answers first again after its return, with less than the stream has read already."""
    until(lambda: stream.rows, "the first message is read")
    behind = next(iter(members.ports))
    if members.until_writer() == behind:
        members.group(behind).hand_over(next(name for name in members.ports if name != behind))
    members.kill_query(behind)
    members.signal_pipeline(behind, signal.SIGSTOP)
    with Producer(members.writers, timeout_s=TIMEOUT_S) as producer:
        for number in range(100):
            producer.send(TOPIC, b"%d" % number, key="k")
        until(lambda: stream.require_running() and len(stream.rows) == 101, "another member shows everything")
        members.start_query(behind)
        until(lambda: members.has_query(behind), "the first member answers")
        for number in range(100, 120):
            producer.send(TOPIC, b"%d" % number, key="k")
    time.sleep(3)  # tasks ask the first member
    members.signal_pipeline(behind, signal.SIGCONT)
    until(lambda: stream.require_running() and len(stream.rows) == 121, "everything is read", found=members.found)
    assert max(stream.rows.values()) == 1


def test_a_stream_into_a_group_stores_each_row_once(
    spark: SparkSession,  # noqa: F811
    members: LinkedMembers,
    tmp_path: Path,
) -> None:
    members.start()
    members.until_all_in_sync()
    rows = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=ROWS, numPartitions=2).load()
    bodies = rows.selectExpr("cast(value as string) as body", "concat('k', value) as key")
    sink = bodies.writeStream.format("tidemark").options(writers=members.writers, url=members.url, topic=TOPIC)
    query = begun(sink, tmp_path / "sink")
    for number in range(FAILOVERS):
        fail_over(members, by_pause=bool(number % 2))
        end = ends(members)
        until(lambda end=end: query.exception() or ends(members) > end + ROWS, "rows are stored")  # type: ignore[misc]
    error = query.exception()
    query.stop()
    assert error is None, error
    with Consumer(TOPIC, url=members.url) as consumer:
        stored = Counter(int(message.body) for message in iter_all(consumer))
    committed = ROWS * sum(1 for file in (tmp_path / "sink/commits").iterdir() if file.name.isdecimal())
    assert stored.keys() >= set(range(committed))
    assert max(stored.values()) == 1


def ends(members: LinkedMembers) -> int:
    """Return the number of visible messages of the topic."""
    with Query(members.url, timeout_s=TIMEOUT_S) as query:
        return sum(one["max_offset"] for one in query.get(f"/v1/topics/{TOPIC}")["queues"])


def iter_all(consumer: Consumer) -> Iterator[ReceivedMessage]:
    """Yield the messages that are visible now."""
    while messages := consumer.poll(5.0):
        yield from messages
