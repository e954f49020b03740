"""Every ```python block of docs/spark.md runs, in order, in one namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.integration.examples.test_client_page import blocks
from tidemark.client import Producer, Query
from tidemark.local.local_stack import LocalStack

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"


def test_every_block_of_the_page_runs(
    spark: SparkSession, stack: LocalStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They run as typed, with the addresses and folders of this test's services, in an existing session."""
    with Producer(stack.writer_address) as producer:
        for number in range(20):
            sent = producer.send("orders", f'{{"price": {number}}}', tag="books", key=f"k{number}")
    with Query(stack.query_url) as query:
        query.message(sent.offset_message_ids[0], wait_ms=10_000)
    places_here = {
        "http://127.0.0.1:8080": stack.query_url,
        "127.0.0.1:8081": stack.writer_address,
        '"data"': repr(str(stack.data)),
        '"tables"': repr(str(tmp_path)),
    }
    names: dict[str, Any] = {"__name__": "__main__"}
    first, *others = blocks(PAGE.read_text())
    for there, here in places_here.items():
        assert first[1].count(there) == 1, "the first block must name every place"
        first = (first[0], first[1].replace(there, here))
    try:
        for line, text in (first, *others):
            exec(compile("\n" * line + text, PAGE, "exec"), names)
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert "1 task" in capsys.readouterr().out
    copies = spark.read.format("tidemark").options(url=stack.query_url, subscribe="copies").load()
    assert copies.count() == 1000
    orders = spark.read.format("tidemark").options(url=stack.query_url, subscribe="orders").load()
    assert stored(spark, tmp_path / "tail") == places(orders)
    of_the_hour = orders.where(orders.store_timestamp.between(names["an_hour_ago"], names["now"]))
    assert stored(spark, tmp_path / "hours") == stored(spark, tmp_path / "replay") == places(of_the_hour)
    named = {(row.order_key, row.customer) for row in spark.table("named_orders").collect()}
    assert named == {("k1", "Ada"), ("k2", "Grace")}


def stored(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    """Return the places of the messages that a block has written to *folder*."""
    return places(spark.read.parquet(str(folder)))


def places(messages: DataFrame) -> list[tuple[int, int]]:
    """Return the sorted (queue id, queue offset) of each."""
    return sorted((row.queue_id, row.queue_offset) for row in messages.select("queue_id", "queue_offset").collect())
