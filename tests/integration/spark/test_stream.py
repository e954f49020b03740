"""Streams through Spark: starts, limits of triggers, restarts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.integration.conftest import QUEUES, Served
from tests.waiting import until
from tidemark.client import Query

_DEADLINE_S = 60


class Collected:
    """The messages of a stream's batches: (queue id, offset, body) of each."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[int, int, bytes]]] = []

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        rows = frame.select("queue_id", "queue_offset", "body").collect()
        self.batches.append(sorted((row.queue_id, row.queue_offset, bytes(row.body)) for row in rows))

    @property
    def bodies(self) -> list[bytes]:
        return sorted(body for batch in self.batches for _, _, body in batch)

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches if batch]


class Streams:
    """Starts streams of one store, which end with the test."""

    def __init__(self, spark: SparkSession, served: Served, folder: Path) -> None:
        self._spark, self._served, self._folder = spark, served, folder
        self.running: list[StreamingQuery] = []

    def start(
        self, collected: Collected, *, from_files: bool = True, available_now: bool = False, **options: Any
    ) -> StreamingQuery:
        place = {"path": str(self._served.store.root)} if from_files else {"url": self._served.url}
        frame = self._spark.readStream.format("tidemark").options(**(place | options)).load()
        writer = frame.writeStream.foreachBatch(collected).option("checkpointLocation", str(self._folder))
        trigger = {"availableNow": True} if available_now else {"processingTime": "0 seconds"}
        query = writer.trigger(**trigger).start()
        self.running.append(query)
        return query

    def run(self, collected: Collected, **options: Any) -> StreamingQuery:
        """Read everything that exists now."""
        query = self.start(collected, available_now=True, **options)
        assert query.awaitTermination(_DEADLINE_S)
        return query


@pytest.fixture
def streams(spark: SparkSession, served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streams]:
    streams = Streams(spark, served, tmp_path_factory.mktemp("checkpoint"))
    yield streams
    for query in streams.running:
        query.stop()


def put(served: Served, first: int, count: int) -> list[bytes]:
    """Write messages over all queues of `orders`."""
    bodies = [b"%03d" % number for number in range(first, first + count)]
    for number, body in enumerate(bodies):
        served.put(body, queue_id=(first + number) % QUEUES)
    return bodies


@pytest.mark.parametrize("from_files", [True, False], ids=["files", "service"])
def test_a_stream_begins_at_latest_and_follows(served: Served, streams: Streams, from_files: bool) -> None:
    """Earlier messages are skipped, new ones are read once."""
    put(served, 0, 10)
    collected = Collected()
    query = streams.start(collected, from_files=from_files, subscribe="orders")
    until(lambda: query.lastProgress is not None)
    new = put(served, 10, 7)
    until(lambda: len(collected.bodies) >= len(new))
    assert collected.bodies == new


@pytest.mark.parametrize("from_files", [True, False], ids=["files", "service"])
def test_available_messages_are_read_in_limited_batches_and_a_restart_continues(
    served: Served, streams: Streams, from_files: bool
) -> None:
    """AvailableNow obeys maxOffsetsPerTrigger; messages that come after its start are read once, by the next run."""
    old = put(served, 0, 50)
    options = {"subscribe": "orders", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "20"}
    first, second = Collected(), Collected()
    streams.run(first, from_files=from_files, **options)
    assert first.bodies == old
    assert len(first.sizes) >= 3
    assert max(first.sizes) <= 20
    new = put(served, 50, 6)
    query = streams.run(second, from_files=from_files, **options)
    assert second.bodies == new
    assert query.exception() is None


def test_bytes_of_a_trigger_are_limited(served: Served, streams: Streams) -> None:
    """Stored bytes count; a larger message is read alone."""
    for number in range(12):
        served.put(b"x" * 1000, queue_id=number % 2)
    collected = Collected()
    streams.run(collected, subscribe="orders", startingOffsets="earliest", maxBytesPerTrigger="5000")
    assert sum(collected.sizes) == 12
    assert max(collected.sizes) <= 4
    served.put(b"y" * 20_000, b"z")
    alone = Collected()
    streams.run(alone, subscribe="orders", startingOffsets="earliest", maxBytesPerTrigger="5000")
    assert alone.sizes == [1, 1]


def test_a_trigger_waits_for_enough_messages(served: Served, streams: Streams) -> None:
    """It waits at most for maxTriggerDelay."""
    collected = Collected()
    query = streams.start(
        collected, subscribe="events", startingOffsets="earliest", minOffsetsPerTrigger="5", maxTriggerDelay="3s"
    )
    served.put(*[b"%d" % n for n in range(5)], topic="events")
    until(lambda: sum(collected.sizes) >= 5)
    began = time.monotonic()
    served.put(b"late", topic="events")
    until(lambda: sum(collected.sizes) >= 6)
    assert time.monotonic() - began >= 2.5
    assert collected.sizes[-1] == 1
    assert query.exception() is None


def test_new_topics_and_queues_are_read_from_their_beginning(served: Served, streams: Streams) -> None:
    """No restart is needed."""
    collected = Collected()
    query = streams.start(collected, subscribePattern="new.*|events", startingOffsets="latest")
    until(lambda: query.lastProgress is not None)
    served.store.topic("new-one", queues=1)
    served.put(b"first", topic="new-one")
    until(lambda: bool(collected.bodies))
    served.store.topic("new-one", queues=2)
    served.put(b"second", topic="new-one", queue_id=1)
    until(lambda: len(collected.bodies) == 2)
    assert collected.bodies == [b"first", b"second"]


def test_a_stream_reads_nothing_above_the_watermark(served: Served, streams: Streams) -> None:
    """A committed but not yet visible message comes when it is visible."""
    put(served, 0, 4)
    visible = served.store.end
    served.store.append("orders", b"later", queue_id=0)
    served.store.publish(visible)
    first, second = Collected(), Collected()
    streams.run(first, subscribe="orders", startingOffsets="earliest")
    assert len(first.bodies) == 4
    served.store.publish()
    streams.run(second, subscribe="orders", startingOffsets="earliest")
    assert second.bodies == [b"later"]


def test_lag_is_reported(served: Served, streams: Streams) -> None:
    """Spark shows the latest offsets next to the read ones."""
    put(served, 0, 8)
    query = streams.start(Collected(), subscribe="orders", startingOffsets="earliest", maxOffsetsPerTrigger="4")
    until(lambda: query.lastProgress is not None and query.lastProgress["numInputRows"] > 0)
    source = query.recentProgress[0]["sources"][0]
    assert '"0":2' in source["latestOffset"].replace(" ", "")


def test_progress_is_committed_to_a_group(served: Served, streams: Streams) -> None:
    """The group gets the end of the batch before the last one: Spark reports a batch when the next one begins."""
    put(served, 0, 8)
    options = {
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "4",
        "commitGroup": "readers",
        "url": served.url,
    }
    streams.run(Collected(), from_files=True, **options)
    with Query(served.url) as query:
        queues = query.get("/v1/groups/readers")["queues"]
    assert {one["queue_id"] for one in queues} == set(range(QUEUES))
    assert all(1 <= one["offset"] <= 2 for one in queues)


def test_json_bodies_are_columns(spark: SparkSession, served: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A stream gives the same as a batch."""
    served.put(*[b'{"n": %d}' % number for number in range(9)], b"none")
    options = {"path": str(served.store.root), "subscribe": "orders", "startingOffsets": "earliest"}
    frame = spark.readStream.format("tidemark").options(bodySchema="n int", **options).load()
    found: list[Any] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: found.extend(row.n for row in batch.select("n").collect()))
    query = writer.option("checkpointLocation", str(tmp_path_factory.mktemp("json"))).trigger(availableNow=True).start()
    assert query.awaitTermination(_DEADLINE_S)
    assert found == [*range(9), None]


def test_kafkas_columns_are_those_of_a_batch(
    spark: SparkSession, served: Served, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """So code for streams of Spark's Kafka source runs, too."""
    served.put(b"one", b"two", KEYS="k1", colour="red")
    options = {"path": str(served.store.root), "subscribe": "orders", "startingOffsets": "earliest"}
    options |= {"kafkaColumns": "true", "includeHeaders": "true"}
    frame = spark.readStream.format("tidemark").options(**options).load()
    found: list[Any] = []
    writer = frame.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", "offset", "headers").writeStream
    writer = writer.foreachBatch(lambda batch, _: found.extend(batch.collect())).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path_factory.mktemp("kafka"))).start()
    assert query.awaitTermination(_DEADLINE_S)
    headers = [("colour", bytearray(b"red"))]
    assert found == [("k1", "one", 0, headers), ("k1", "two", 1, headers)]


def test_a_checkpoint_below_the_minimum_fails_the_stream_or_is_skipped(served: Served, streams: Streams) -> None:
    """failOnDataLoss decides."""
    put(served, 0, 8)
    streams.run(Collected(), subscribe="orders", startingOffsets="earliest")
    for _ in range(2 * served.store.log_file_size // 4000):
        served.put(b"x" * 4000, queue_id=0)
    new = put(served, 8, 4)
    (served.store.root / "commitlog" / f"{0:020d}").unlink()
    with pytest.raises(PySparkException, match="gone"):
        streams.run(Collected(), subscribe="orders", startingOffsets="earliest")
    collected = Collected()
    streams.run(collected, subscribe="orders", startingOffsets="earliest", failOnDataLoss="false")
    assert [body for body in collected.bodies if len(body) < 10] == new


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"endingOffsets": "latest"}, "option endingOffsets: not allowed for a stream"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "but maxOffsetsPerTrigger is 4"),
        ({"commitGroup": "g"}, "commitGroup requires `url`"),
        ({"subscribe": "nobody"}, "topic nobody does not exist"),
        ({"startingOffsets": '{"orders": {"0": 3, "1": 0, "2": 0, "3": 0}}'}, "ends at offset 0"),
    ],
)
def test_invalid_stream_options_are_reported(
    served: Served, streams: Streams, options: dict[str, str], told: str
) -> None:
    """The error is one sentence."""
    with pytest.raises(PySparkException) as caught:
        streams.run(Collected(), **({"subscribe": "orders"} | options))
    assert told in str(caught.value)
