"""Writes through Spark: rows arrive unchanged and once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidemark.client import Query, Topics
from tidemark.local.local_stack import LocalStack

_DEADLINE_S = 120


def write(frame: DataFrame, stack: LocalStack, **options: Any) -> None:
    place = {"writers": stack.writer_address, "url": stack.query_url}
    frame.write.format("tidemark").mode("append").options(**(place | options)).save()


def read(spark: SparkSession, stack: LocalStack, topic: str) -> DataFrame:
    with Query(stack.query_url) as query:
        position = query.watermark()
        deadline = time.monotonic() + _DEADLINE_S
        while query.watermark()["watermark"]["physical_offset"] < position["committed_offset"]:
            assert time.monotonic() < deadline
    return spark.read.format("tidemark").options(url=stack.query_url, subscribe=topic).load()


def numbers(spark: SparkSession, stack: LocalStack, topic: str) -> Counter[int]:
    return Counter(int(row.body) for row in read(spark, stack, topic).select("body").collect())


@pytest.fixture
def topic() -> str:
    """Return a unique topic."""
    return f"sink-{uuid4().hex[:8]}"


def test_written_rows_are_read_back(spark: SparkSession, stack: LocalStack, topic: str) -> None:
    """Bodies, tags, several keys and properties are compared; rows choose their topic; null means none."""
    rows = [
        (f"{topic}-a", "one", "A", ["k1", "k2"], {"colour": "red", "none": None}),
        (f"{topic}-b", "zwei ü", None, None, None),
        (f"{topic}-a", "three", "B", [], {}),
    ]
    schema = "topic string, body string, tag string, keys array<string>, properties map<string,string>"
    write(spark.createDataFrame(rows, schema), stack)
    found = read(spark, stack, f"{topic}-a,{topic}-b").orderBy("body").collect()
    told = [(row.topic, bytes(row.body).decode(), row.tag, list(row["keys"]), row.properties) for row in found]
    assert told == [
        (f"{topic}-a", "one", "A", ["k1", "k2"], {"colour": "red"}),
        (f"{topic}-a", "three", "B", [], {}),
        (f"{topic}-b", "zwei ü", None, [], {}),
    ]


def test_rows_with_kafkas_columns_are_copied(spark: SparkSession, stack: LocalStack, topic: str) -> None:
    """As they were read with kafkaColumns, offsets and times included: each comes into the queue of its partition."""
    rows = [("one", ["k1", "k2"], "A", {"colour": "red"}), ("two", None, None, None), ("three", ["k3"], None, None)]
    schema = "body string, keys array<string>, tag string, properties map<string,string>"
    write(spark.createDataFrame(rows * 20, schema), stack, topic=topic)
    read(spark, stack, topic)
    options = {"url": stack.query_url, "subscribe": topic, "kafkaColumns": "true", "includeHeaders": "true"}
    kafka = spark.read.format("tidemark").options(**options).load()
    write(kafka, stack, topic=f"{topic}-copy", kafkaColumns="true")
    columns = ["queue_id", "queue_offset", "body", "keys", "tag", "properties"]
    original, copy = (
        sorted(read(spark, stack, name).select(columns).collect(), key=lambda row: row[:2])
        for name in (topic, f"{topic}-copy")
    )
    assert len(original) == 60
    assert len({row.queue_id for row in original}) > 1
    assert copy == original


def test_a_partition_that_does_not_exist_is_refused(spark: SparkSession, stack: LocalStack, topic: str) -> None:
    """Nothing is stored in another queue."""
    with pytest.raises(PySparkException, match=f"topic {topic} has no queue 9"):
        write(spark.sql("SELECT 'x' AS value, 9 AS partition"), stack, topic=topic, kafkaColumns="true")


def test_a_key_keeps_its_order(spark: SparkSession, stack: LocalStack, topic: str) -> None:
    """Rows of one partition with one key are in one queue, in their order."""
    frame = spark.range(3000).selectExpr("string(id) AS body", "concat('k', id % 7) AS key").coalesce(1)
    write(frame, stack, topic=topic, batchSize="100")
    found = read(spark, stack, topic).collect()
    assert len(found) == 3000
    for key in {row["keys"][0] for row in found}:
        lying = sorted((row.queue_id, row.queue_offset, int(row.body)) for row in found if row["keys"] == [key])
        assert len({queue for queue, _, _ in lying}) == 1
        assert [number for _, _, number in lying] == sorted(number for _, _, number in lying)


@pytest.mark.parametrize("queue_type", ["SimpleCQ", "BatchCQ"])
def test_a_retried_task_sends_only_the_missing_rows(
    spark: SparkSession, stack: LocalStack, topic: str, tmp_path: Path, queue_type: str
) -> None:
    """It fails once, after some of its rows were sent."""
    with Topics(stack.writer_address) as topics:
        topics.create(topic, queues=2, attributes={"queue.type": queue_type})

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        yield from batches
        if task.attemptNumber() == 0 and task.partitionId() == 1:
            time.sleep(1)  # the rows so far are sent
            raise RuntimeError("the first attempt")

    frame = spark.range(0, 80_000, numPartitions=2).selectExpr("string(id) AS body")
    write(frame.mapInArrow(fail_once, "body string"), stack, topic=topic)
    assert numbers(spark, stack, topic) == Counter(range(80_000))


def test_a_repeated_job_sends_only_the_missing_rows(spark: SparkSession, stack: LocalStack, topic: str) -> None:
    """This needs the same runId; with another one, or none, all rows are sent."""
    frame = spark.range(0, 5000, numPartitions=2).selectExpr("string(id) AS body")
    for _ in range(2):
        write(frame, stack, topic=topic, runId=f"{topic}-monday")
    assert numbers(spark, stack, topic) == Counter(range(5000))
    write(frame.limit(10), stack, topic=topic)
    assert sum(numbers(spark, stack, topic).values()) == 5010


@pytest.mark.parametrize("queue_type", ["SimpleCQ", "BatchCQ"])
def test_a_job_repeated_after_its_topic_was_deleted_stores_all_rows(
    spark: SparkSession, stack: LocalStack, topic: str, queue_type: str
) -> None:
    """The rows of the deleted topic cannot be read any more, so the same runId must not count them as sent."""
    frame = spark.range(0, 2000, numPartitions=2).selectExpr("string(id) AS body")
    with Topics(stack.writer_address) as topics:
        for _ in range(2):
            topics.create(topic, queues=2, attributes={"queue.type": queue_type})
            write(frame, stack, topic=topic, runId=topic)
            assert numbers(spark, stack, topic) == Counter(range(2000))
            topics.delete(topic)


def test_a_repeated_job_with_other_rows_is_refused(spark: SparkSession, stack: LocalStack, topic: str) -> None:
    """A replay with other rows cannot be distinguished from missing messages."""
    for start in (0, 10):
        frame = spark.range(start, start + 5, numPartitions=1).selectExpr("string(id) AS body")
        if not start:
            write(frame, stack, topic=topic, runId=topic)
    with pytest.raises(PySparkException, match="must return the same rows"):
        write(frame, stack, topic=topic, runId=topic)


@pytest.mark.parametrize(
    ("columns", "options", "told"),
    [
        ("'x' AS body", {}, "set the option topic or add a column topic"),
        ("1 AS price", {"topic": "t"}, "there is no column price"),
        ("1 AS body", {"topic": "t"}, "column body must have type binary or string, not int"),
        ("'x' AS body, 'a b' AS key", {"topic": "t"}, "or a key contains a space"),
        ("string(null) AS body", {"topic": "t"}, "row 0: the body is null or empty"),
        ("'x' AS body, map('TAGS', 'A') AS properties", {"topic": "t"}, "TAGS must be set by its own column"),
        ("'x' AS body", {"topic": "t", "writers": ""}, "writers must name at least one writer"),
        ("'x' AS body", {"topic": "t", "writers": "127.0.0.1:1", "timeout": "1s"}, "no writer has answered"),
        ("'x' AS body", {"topic": "bad topic"}, "a topic name must have one or more of letters"),
    ],
)
def test_invalid_write_options_are_reported(
    spark: SparkSession, stack: LocalStack, columns: str, options: dict[str, str], told: str
) -> None:
    """The error comes before or during the write, with the reason."""
    with pytest.raises(PySparkException) as caught:
        write(_select(spark, columns), stack, **options)
    assert told in str(caught.value)


def _select(spark: SparkSession, columns: str) -> DataFrame:
    return spark.sql(f"SELECT {columns} FROM range(3)")


def test_an_overwrite_is_refused(spark: SparkSession, stack: LocalStack) -> None:
    """A write deletes nothing from a log."""
    frame = _select(spark, "'x' AS body")
    writer = frame.write.format("tidemark").mode("overwrite")
    with pytest.raises(PySparkException, match="overwriting is not supported"):
        writer.options(writers=stack.writer_address, topic="t").save()
