"""Batch reads through Spark, from files and from the query service."""

from __future__ import annotations

import itertools
import json
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.integration.conftest import QUEUES, Served
from tests.query_server import serve_query
from tidemark.client import Consumer, TopicQueue
from tidemark.spark.columns import KAFKA_SCHEMA

PUSH = "spark.sql.python.filterPushdown.enabled"


def read(spark: SparkSession, served: Served, *, from_files: bool = True, **options: Any) -> DataFrame:
    place = {"path": str(served.store.root)} if from_files else {"url": served.url}
    return spark.read.format("tidemark").options(**place, **options).load()


def bodies(frame: DataFrame) -> list[bytes]:
    return sorted(bytes(row.body) for row in frame.select("body").collect())


@pytest.fixture
def mixed(served: Served) -> Served:
    """Write single messages with and without tag and keys, compressed ones, and inner batches."""
    served.store.topic("batches", batch=True)
    for number in range(40):
        entries = {"TAGS": "AB"[number % 2], "KEYS": f"k{number} all", "UNIQ_KEY": f"u{number}", "x": "y"}
        served.store.append("orders", b"%d" % number, entries, queue_id=number % QUEUES)
    served.store.append("events", zlib.compress(b"long" * 100), {"TAGS": "ü"}, sys_flag=0x1)
    served.store.append("events", b"plain")
    served.store.append_batch("batches", [(b"b%d" % i, {"TAGS": "AB"[i % 2]}, i) for i in range(7)])
    served.store.append_batch("batches", [(b"c%d" % i, {}, i) for i in range(5)])
    served.store.publish()
    return served


@pytest.mark.parametrize("from_files", [True, False], ids=["files", "service"])
def test_a_batch_read_equals_a_consumer(spark: SparkSession, mixed: Served, from_files: bool) -> None:
    """Every column of every message of every topic is compared."""
    rows = read(spark, mixed, from_files=from_files, subscribePattern=".*").collect()
    found = {(row.topic, row.queue_id, row.queue_offset): row.asDict() for row in rows}
    queues = [TopicQueue("orders", n) for n in range(QUEUES)] + [TopicQueue("events", 0), TopicQueue("batches", 0)]
    with Consumer(queues=queues, store=mixed.store.root) as consumer:
        expected = []
        while messages := consumer.poll(timeout_s=0.3):
            expected += messages
    assert len(rows) == len(found) == len(expected) == 40 + 2 + 12
    for message in expected:
        row = found[message.topic, message.queue_id, message.queue_offset]
        assert bytes(row["body"]) == message.body
        assert (row["tag"], tuple(row["keys"]), row["properties"]) == (message.tag, message.keys, message.properties)
        assert (row["message_id"], row["offset_msg_id"]) == (message.message_id, message.offset_msg_id)
        assert row["physical_offset"] == message.physical_offset
        for name, wanted in (("store", message.store_timestamp_ms), ("born", message.born_timestamp_ms)):
            at = row[f"{name}_timestamp"].astimezone(UTC)
            assert at == datetime.fromtimestamp(wanted / 1000, UTC)


@pytest.mark.parametrize("from_files", [True, False], ids=["files", "service"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"subscribe": "batches", "startingOffsets": '{"batches": {"0": 3}}'}, 9),
        ({"subscribe": "batches", "endingOffsets": '{"batches": {"0": 9}}'}, 9),
        ({"subscribe": "orders", "tag": "A"}, 20),
        ({"subscribe": "orders, events"}, 42),
        ({"subscribePattern": "order.?|event"}, 40),
        ({"assign": '{"orders": [1, 3]}'}, 20),
        ({"subscribe": "orders", "key": "k7"}, 1),
        ({"subscribe": "orders", "key": "all", "tag": "B || A", "minPartitions": "7"}, 40),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else str(value),
)
def test_options_select_topics_queues_offsets_tags_and_keys(
    spark: SparkSession, mixed: Served, options: dict[str, str], expected: int, from_files: bool
) -> None:
    """They are topics, queues, offsets, tags and keys."""
    assert read(spark, mixed, from_files=from_files, **options).count() == expected


@pytest.mark.parametrize("from_files", [True, False], ids=["files", "service"])
def test_a_key_is_looked_up_in_the_index(spark: SparkSession, mixed: Served, from_files: bool) -> None:
    """There is a task for each queue with matches, or for every queue if there are more than keyLookupLimit.

    Queues do not share tasks here.
    """
    mixed.store.marks.set_index_file(mixed.store.index_name)
    one = read(spark, mixed, from_files=from_files, subscribe="orders", key="k7")
    assert (one.rdd.getNumPartitions(), bodies(one)) == (1, [b"7"])
    for limit, tasks in (("0", QUEUES), ("1000", 1)):
        options = {"subscribe": "orders", "key": "k7", "keyLookupLimit": limit, "minOffsetsPerPartition": "1"}
        frame = read(spark, mixed, from_files=from_files, **options)
        assert frame.rdd.getNumPartitions() == tasks
    assert read(spark, mixed, from_files=from_files, subscribe="orders", key="nobody").count() == 0


def test_queues_are_split_or_share_tasks(spark: SparkSession, mixed: Served) -> None:
    """The options for partitions determine it; a queue's messages stay in order."""
    chosen: list[tuple[dict[str, Any], int]] = [
        ({}, 1),
        ({"minOffsetsPerPartition": "11"}, QUEUES // 2),
        ({"minOffsetsPerPartition": "10"}, QUEUES),
        ({"minPartitions": "9"}, 4 * -(-9 // 4)),
        ({"minOffsetsPerPartition": "1", "maxBytesPerPartition": "1"}, 40),
    ]
    for (options, tasks), from_files in itertools.product(chosen, (True, False)):
        frame = read(spark, mixed, from_files=from_files, subscribe="orders", **options)
        assert frame.rdd.getNumPartitions() == tasks
        rows = frame.select("queue_id", "queue_offset").collect()
        assert rows == [(queue, offset) for queue in range(QUEUES) for offset in range(40 // QUEUES)]


def test_start_and_end_times_select_messages(spark: SparkSession, mixed: Served) -> None:
    """The range is from the first message at a time to the first one at another, exclusive."""
    first = mixed.store.clock - (40 + 2 + 2) + 1
    frame = read(spark, mixed, subscribe="orders", startingTimestamp=str(first + 4), endingTimestamp=str(first + 8))
    assert bodies(frame) == [b"4", b"5", b"6", b"7"]


@pytest.mark.parametrize("push", ["true", "false"])
@pytest.mark.parametrize(
    ("where", "left", "tasks"),
    [
        ("topic = 'events'", 2, 1),
        ("topic in ('events', 'batches') and queue_id = 0", 14, 2),
        ("topic = 'orders' and queue_id > 1", 20, 2),
        ("queue_offset >= 9 and topic = 'orders'", 4, QUEUES),
        ("tag = 'A' and topic = 'orders'", 20, QUEUES),
        ("topic = 'nobody'", 0, 1),
        ("topic like 'ev%'", 2, QUEUES + 2),
    ],
)
def test_pushed_filters_reduce_tasks_and_keep_the_rows(
    spark: SparkSession, mixed: Served, where: str, left: int, tasks: int, push: str
) -> None:
    """With pushed-down filters fewer tasks are planned; the rows are always the same."""
    spark.conf.set(PUSH, push)
    options: dict[str, Any] = {"subscribePattern": "orders|events|batches", "pushFilters": "true"}
    options["minOffsetsPerPartition"] = "1"
    try:
        assert read(spark, mixed, **options).where(where).count() == left
        frame = read(spark, mixed, **options).where(where)
        assert frame.rdd.getNumPartitions() == (tasks if push == "true" else QUEUES + 2)
    finally:
        spark.conf.unset(PUSH)


def test_concurrent_queries_of_one_frame_get_their_own_rows(spark: SparkSession, mixed: Served) -> None:
    """Spark keeps one plan for all of them, so that filters narrow it only if a frame is good for one query."""
    spark.conf.set(PUSH, "true")
    try:
        frame = read(spark, mixed, subscribe="orders")
        first, second = frame.where("queue_id = 0"), frame.where("tag = 'B'")
        assert [first.count(), frame.count(), second.count(), first.union(second).count()] == [10, 40, 20, 30]
    finally:
        spark.conf.unset(PUSH)


def test_filters_on_time_shorten_ranges(spark: SparkSession, mixed: Served) -> None:
    """The queue's store times decide, with a slack for clocks that were set back."""
    spark.conf.set(PUSH, "true")
    try:
        at = datetime.fromtimestamp((mixed.store.clock + 600_000) / 1000, UTC)
        options: dict[str, Any] = {"subscribe": "orders", "clockSlack": "1m", "pushFilters": "true"}
        frame = read(spark, mixed, **options).where(f.col("store_timestamp") >= f.lit(at))
        assert frame.count() == 0
        assert frame.rdd.getNumPartitions() == 1
    finally:
        spark.conf.unset(PUSH)


def test_a_schema_selects_columns(spark: SparkSession, mixed: Served) -> None:
    """Only named columns are read; unknown ones are refused."""
    reader = spark.read.format("tidemark").options(path=str(mixed.store.root), subscribe="events")
    assert [row.asDict() for row in reader.schema("queue_offset long, tag string").load().collect()] == [
        {"queue_offset": 0, "tag": "ü"},
        {"queue_offset": 1, "tag": None},
    ]
    with pytest.raises(AnalysisException, match="there is no column price"):
        reader.schema("price double").load().collect()


_BODIES = "id int, name string, price double, at timestamp, on date, sizes array<int>, of struct<x: long, y: string>"


@pytest.fixture
def json_bodies(served: Served) -> Served:
    """Write objects, some of them pretty-printed or incomplete, and two bodies that are no objects."""
    for number in range(20):
        body = {
            "id": number,
            "name": f"n{number} }} ü",
            "price": number / 4,
            "at": f"2013-01-01T00:00:{number:02}Z",
            "on": f"2013-01-{number + 1:02}",
            "sizes": [None, number],
            "of": {"x": 1 << number, "y": None},
            "more": [{}],
        }
        kept = dict(list(body.items())[: len(body) - number % 3])
        served.put(json.dumps(kept, indent=number % 2 or None).encode(), queue_id=number % QUEUES)
    served.put(b"plain text", b'{"id": "one"}')
    return served


@pytest.mark.parametrize("from_files", [True, False], ids=["files", "service"])
def test_json_bodies_are_columns(spark: SparkSession, json_bodies: Served, from_files: bool) -> None:
    """The result is that of Spark's own from_json."""
    frame = read(spark, json_bodies, from_files=from_files, subscribe="orders", bodySchema=_BODIES)
    rows = frame.withColumn("expected", f.from_json(f.col("body").cast("string"), _BODIES))
    found = {row.queue_offset * QUEUES + row.queue_id: row for row in rows.collect()}
    assert len(found) == 22
    for number in range(20):
        expected = found[number].expected.asDict()
        assert expected["id"] == number
        assert {name: found[number][name] for name in expected} == expected
    for row in (found[5 * QUEUES], found[6 * QUEUES]):
        assert [row[name] for name in found[0].expected.asDict()] == [None] * 7


def test_invalid_json_bodies_are_counted_or_fail_the_job(spark: SparkSession, json_bodies: Served) -> None:
    """`mode` decides; their texts are included on request."""
    options: dict[str, Any] = {"subscribe": "orders", "bodySchema": "id int, _corrupt_record string"}
    wrong = read(spark, json_bodies, **options).where("_corrupt_record is not null").collect()
    assert sorted(row._corrupt_record for row in wrong) == ["plain text", '{"id": "one"}']
    with pytest.raises(PySparkException, match="the body at offset 5 of queue 0 of orders is not a JSON object"):
        read(spark, json_bodies, mode="FAILFAST", **options).collect()


def test_a_schema_selects_fields_of_bodies(spark: SparkSession, json_bodies: Served) -> None:
    """They may be combined with other columns."""
    reader = spark.read.format("tidemark").options(path=str(json_bodies.store.root), assign='{"orders": [1]}')
    frame = reader.option("bodySchema", _BODIES).schema("of struct<x: long, y: string>, queue_offset long").load()
    assert frame.columns == ["of", "queue_offset"]
    assert sorted((row.queue_offset, row.of.x) for row in frame.where("of is not null").collect()) == [
        (number // QUEUES, 1 << number) for number in range(1, 20, QUEUES) if number % 3 < 2
    ]


@pytest.mark.parametrize("from_files", [True, False], ids=["files", "service"])
def test_code_for_kafkas_source_runs(spark: SparkSession, mixed: Served, from_files: bool) -> None:
    """The query is the one of Spark's Kafka guide, with headers; the rows are compared with those of own columns."""
    options = {"subscribe": "orders", "kafkaColumns": "true", "includeHeaders": "true"}
    frame = read(spark, mixed, from_files=from_files, **options)
    assert frame.schema == KAFKA_SCHEMA
    texts = frame.selectExpr(
        "CAST(key AS STRING)", "CAST(value AS STRING)", "headers", "partition", "offset", "timestamp"
    )
    found = {(row.partition, row.offset): row for row in texts.collect()}
    own = read(spark, mixed, from_files=from_files, subscribe="orders").collect()
    assert len(found) == len(own) == 40
    for row in own:
        kafka = found[row.queue_id, row.queue_offset]
        assert (kafka.key, kafka.value, kafka.timestamp) == (row["keys"][0], row.body.decode(), row.store_timestamp)
        headers = {header.key: bytes(header.value).decode() for header in kafka.headers}
        assert headers == row.properties | {"TAGS": row.tag, "KEYS": " ".join(row["keys"])}


def test_kafkas_columns_are_selected_and_filtered(spark: SparkSession, mixed: Served) -> None:
    """A schema names some of them; pushed filters plan fewer tasks; `tag` and `key` select messages."""
    options = {"subscribe": "orders", "kafkaColumns": "true", "minOffsetsPerPartition": "1", "pushFilters": "true"}
    reader = spark.read.format("tidemark").options(path=str(mixed.store.root), **options)
    spark.conf.set(PUSH, "true")
    try:
        frame = reader.schema("offset long, value binary, partition int").load().where("partition = 1 and offset > 7")
        assert (frame.columns, frame.rdd.getNumPartitions()) == (["offset", "value", "partition"], 1)
        assert sorted((row.offset, bytes(row.value)) for row in frame.collect()) == [(8, b"33"), (9, b"37")]
    finally:
        spark.conf.unset(PUSH)
    tagged = read(spark, mixed, subscribe="orders", kafkaColumns="true", tag="A", key="k4").select("value").collect()
    assert [bytes(row.value) for row in tagged] == [b"4"]
    with pytest.raises(AnalysisException, match="there is no column body; columns: key, value, topic, partition"):
        reader.schema("body binary").load().collect()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "set exactly one of subscribe, subscribePattern and assign"),
        ({"subscribe": "nobody"}, "topic nobody does not exist"),
        ({"assign": '{"orders": [99]}'}, "no queue 99"),
        ({"subscribe": "orders", "startingOffsets": '{"orders": {"0":'}, "option startingOffsets: is not JSON"),
        ({"subscribe": "orders", "startingOffset": "earliest"}, "did you mean startingOffsets?"),
        ({"subscribe": "events", "startingOffsets": '{"events": {"0": 3}}'}, "ends at offset 2"),
        ({"subscribe": "orders", "bodySchema": "tag int"}, "option bodySchema: tag is a column of every message"),
        (
            {"subscribe": "orders", "bodySchema": "a map<string,int>"},
            "option bodySchema: the type map is not supported",
        ),
    ],
)
def test_invalid_read_options_are_reported(
    spark: SparkSession, mixed: Served, options: dict[str, Any], told: str
) -> None:
    """The error is one sentence with the option's name."""
    with pytest.raises(PySparkException) as caught:
        read(spark, mixed, **options).count()
    assert told in str(caught.value)


def test_a_missing_store_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    """The error mentions that an executor may not see it."""
    frame = spark.read.format("tidemark").options(path=str(tmp_path / "gone"), subscribe="t")
    with pytest.raises(PySparkException, match="check that this machine mounts its file system"):
        frame.load().count()


@pytest.mark.parametrize("from_files", [True, False], ids=["files", "service"])
def test_a_damaged_record_fails_the_job_or_is_skipped(spark: SparkSession, mixed: Served, from_files: bool) -> None:
    """failOnCorruption decides."""
    written = mixed.store.append("events", b"to be damaged", {})
    mixed.store.append("events", b"behind it")
    mixed.store.publish()
    mixed.store.write_log(written.physical_offset + written.size - 5, b"\xff\xff")
    with pytest.raises(PySparkException, match="at queue offset 2"):
        read(spark, mixed, from_files=from_files, subscribe="events").collect()
    left = read(spark, mixed, from_files=from_files, subscribe="events", failOnCorruption="false")
    assert [row.queue_offset for row in left.collect()] == [0, 1, 3]


def test_deleted_messages_fail_the_job_or_are_skipped(spark: SparkSession, tmp_path: Path) -> None:
    """failOnDataLoss decides."""
    from tests.built_store import BuiltStore

    store = BuiltStore(tmp_path, log_file_size=512)
    store.topic("t")
    for number in range(20):
        store.append("t", b"%d" % number)
    store.publish()
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    with serve_query(tmp_path) as client:
        served = Served(store, str(client.base_url))
        for from_files in (True, False):
            options = {"subscribe": "t", "startingOffsets": '{"t": {"0": 0}}'}
            with pytest.raises(PySparkException, match="were deleted"):
                read(spark, served, from_files=from_files, **options).collect()
            left = read(spark, served, from_files=from_files, failOnDataLoss="false", **options).collect()
            first = int(client.get("/v1/topics/t/queues/0").json()["min_offset"])
            assert first > 0
            assert [row.queue_offset for row in left] == list(range(first, 20))
