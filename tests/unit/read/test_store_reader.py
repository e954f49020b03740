"""A store as readers see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tidemark.errors import TopicNotFoundError
from tidemark.read.store_reader import StoreReader


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
