"""A topic that is spread over two stores, read by one query."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.integration.several_stores import Pair

pytestmark = pytest.mark.integration

TIMEOUT_S = 60


def batch(spark: SparkSession, pair: Pair, **options: Any) -> DataFrame:
    given = {"url": ",".join(pair.urls), "subscribe": pair.topic} | options
    return spark.read.format("tidemark").options(**{name: value for name, value in given.items() if value}).load()


def bodies(frame: DataFrame) -> list[tuple[str, bytes]]:
    return sorted((row.store, bytes(row.body)) for row in frame.select("store", "body").collect())


def test_a_batch_reads_both_stores(spark: SparkSession, pair: Pair) -> None:
    """The column `store` distinguishes messages with equal topic, queue and offset."""
    pair.send(0, b"a0", b"a1")
    pair.send(1, b"b0")
    frame = batch(spark, pair)
    expected = sorted([(pair.urls[0], b"a0"), (pair.urls[0], b"a1"), (pair.urls[1], b"b0")])
    assert bodies(frame) == expected
    assert frame.columns[:3] == ["store", "topic", "queue_id"]
    assert bodies(batch(spark, pair, minPartitions="7")) == expected
    assigned = batch(spark, pair, subscribe="", assign=f'{{"{pair.topic}": [0]}}')
    assert bodies(assigned) == expected
    kafka = batch(spark, pair, kafkaColumns="true")
    assert sorted(bytes(row.value) for row in kafka.collect()) == [b"a0", b"a1", b"b0"]


def test_a_key_is_looked_up_in_both_stores(spark: SparkSession, pair: Pair) -> None:
    for server in pair.servers:
        with server.producer() as producer:
            for number in range(200):
                producer.send(pair.topic, b"%d" % number, queue_id=0, key="mine" if number in (7, 150) else "other")
        server.wait_until_visible()
    frame = batch(spark, pair, key="mine")
    assert bodies(frame) == sorted((url, body) for url in pair.urls for body in (b"7", b"150"))


def test_a_topic_may_be_in_one_store(spark: SparkSession, pair: Pair) -> None:
    pair.send(1, b"b0")
    assert bodies(batch(spark, pair)) == [(pair.urls[1], b"b0")]
    with pytest.raises(PySparkException, match="nowhere"):
        batch(spark, pair, subscribe="nowhere").count()


class Collected:
    """How often each body came from each store."""

    def __init__(self) -> None:
        self.found: Counter[tuple[str, bytes]] = Counter()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        store = "store" if "store" in frame.columns else "topic"
        self.found.update((row[store], bytes(row.body)) for row in frame.select(store, "body").collect())


def run(spark: SparkSession, pair: Pair, url: str, checkpoint: Path, **options: str) -> Counter[tuple[str, bytes]]:
    """Read the messages that are visible now; return how often each came."""
    collected = Collected()
    source = spark.readStream.format("tidemark").options(
        url=url, subscribe=pair.topic, startingOffsets="earliest", **options
    )
    writer = source.load().writeStream.foreachBatch(collected).option("checkpointLocation", str(checkpoint))
    assert writer.trigger(availableNow=True).start().awaitTermination(TIMEOUT_S)
    return collected.found


def test_a_stream_of_one_store_continues_with_two(spark: SparkSession, pair: Pair, tmp_path: Path) -> None:
    """The offsets of its checkpoint are those of the first URL; the new store is read from its beginning."""
    for store, name in enumerate("ab"):
        pair.send(store, *(f"{name}{number}".encode() for number in range(3)))
    both = ",".join(pair.urls)
    assert run(spark, pair, pair.urls[0], tmp_path) == Counter(
        {(pair.topic, b"a%d" % number): 1 for number in range(3)}
    )
    assert run(spark, pair, both, tmp_path) == Counter({(pair.urls[1], b"b%d" % number): 1 for number in range(3)})
    pair.send(0, b"a3", queue_id=1)
    pair.send(1, b"b3", queue_id=2)
    group = {"commitGroup": pair.topic, "maxOffsetsPerTrigger": "1"}
    assert run(spark, pair, both, tmp_path, **group) == Counter({(pair.urls[0], b"a3"): 1, (pair.urls[1], b"b3"): 1})
    assert not run(spark, pair, both, tmp_path, **group)
    for server in pair.servers:
        with server.query() as query:
            assert query.get(f"/v1/groups/{pair.topic}")["queues"], "progress is committed to each store"


def test_a_stream_that_has_lost_a_store_says_so(spark: SparkSession, pair: Pair, tmp_path: Path) -> None:
    for store in (0, 1):
        pair.send(store, b"0")
    run(spark, pair, ",".join(pair.urls), tmp_path)
    with pytest.raises(PySparkException, match="does not exist any more"):
        run(spark, pair, pair.urls[0], tmp_path)
    run(spark, pair, pair.urls[0], tmp_path, failOnDataLoss="false")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffsets": '{"t": {"0": 1}}'}, "url names 2 stores, so queues cannot be named"),
        ({"path": "/data", "commitGroup": "g"}, "path is one store, but url names 2"),
    ],
)
def test_options_without_a_store_are_refused(
    spark: SparkSession,
    pair: Pair,
    options: dict[str, str],
    said: str,
) -> None:
    with pytest.raises(PySparkException, match=said):
        batch(spark, pair, **options).count()
