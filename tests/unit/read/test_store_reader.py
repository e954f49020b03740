"""A store as readers see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tidemark.errors import QueueIllegalError, TopicNotFoundError
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import VisibleUnits
from tidemark.read.watermark import Watermark


@pytest.mark.parametrize("name", ["a\0b", "../outside", "a/b", ".", "a b"])
def test_an_invalid_topic_name_is_not_a_topic(tmp_path: Path, name: str) -> None:
    """topics.json may have been written by another program: its names are not used as paths unchecked."""
    store = BuiltStore(tmp_path / "store")
    store.topic("orders")
    store.publish()
    path = store.root / "config" / "topics.json"
    content = json.loads(path.read_text())
    table = content["topicConfigTable"]
    table[name] = {**table["orders"], "topicName": name}
    path.write_text(json.dumps(content))
    reader = StoreReader(store.root)
    assert set(reader.topics()) == {"orders"}
    with pytest.raises(TopicNotFoundError):
        reader.topic(name)


def test_the_bounds_of_a_queue_are_determined_once_for_each_watermark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many requests wait for messages of the queue."""
    store = BuiltStore(tmp_path / "store")
    store.topic("orders")
    store.append("orders", b"one")
    store.publish()
    reader = StoreReader(store.root)
    queue = reader.queue("orders", 0)
    looks: list[Watermark] = []
    visible = queue.run.visible

    def counted(watermark: Watermark, *, log_min: int) -> VisibleUnits:
        looks.append(watermark)
        return visible(watermark, log_min=log_min)

    monkeypatch.setattr(queue.run, "visible", counted)
    first = reader.watermark()
    assert {reader.bounds(queue, first).max_offset for _ in range(100)} == {1}
    assert len(looks) == 1
    store.append("orders", b"two")
    store.publish()
    assert {reader.bounds(queue, second).max_offset for second in [reader.watermark()] * 100} == {2}
    assert len(looks) == 2


def test_a_queue_that_a_topic_no_longer_has_is_refused(tmp_path: Path) -> None:
    """Also if it was read before."""
    store = BuiltStore(tmp_path / "store")
    store.topic("orders", queues=2)
    reader = StoreReader(store.root)
    assert reader.queue("orders", 1) is reader.queue("orders", 1) is reader.known_queue("orders", 1)
    store.topic("orders", queues=1)
    with pytest.raises(QueueIllegalError):
        reader.queue("orders", 1)
    assert reader.known_queue("orders", 1) is None


def test_a_topic_of_another_queue_type_has_another_reader(tmp_path: Path) -> None:
    store = BuiltStore(tmp_path / "store")
    store.topic("orders")
    reader = StoreReader(store.root)
    single = reader.queue("orders", 0)
    store.topic("orders", batch=True)
    assert reader.queue("orders", 0).is_batch
    store.topic("orders")
    assert reader.queue("orders", 0) is single
