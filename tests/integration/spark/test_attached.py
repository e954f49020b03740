"""A running broker's directory, read from Spark."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.built_store import BuiltStore
from tests.integration.attach.attached import attach, look_at


def test_an_attached_brokers_messages_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """The options are `path` and `statePath`; the broker keeps writing, and nothing of its directory is changed."""
    broker = BuiltStore(tmp_path / "broker", marked=False)
    broker.topic("orders", queues=2)
    for number in range(10):
        broker.append("orders", b"%d" % number, queue_id=number % 2)
    with attach(broker.root, tmp_path / "state") as attached:
        attached.wait_for_watermark(broker.end)
        before = look_at(broker.root)
        options = {"path": str(broker.root), "statePath": str(tmp_path / "state"), "subscribe": "orders"}
        reader = spark.read.format("tidemark").options(**options)
        assert sorted(int(row.body) for row in reader.load().collect()) == list(range(10))
        assert look_at(broker.root) == before
        broker.append("orders", b"10")
        attached.wait_for_watermark(broker.end)
        assert reader.load().count() == 11
