"""The small files of the golden stores: topics.json, consumerOffset.json with its unquoted keys, checkpoint."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.format.golden import STORES
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.mapped_file_queue import MappedFileQueue, size_on_disk
from tidemark.store.originals.topics import load_config, load_topics

pytestmark = pytest.mark.conformance

GoldenStore = Callable[[str], Path]


@pytest.mark.parametrize("name", STORES)
def test_topics_are_read_as_the_broker_wrote_them(golden_store: GoldenStore, name: str) -> None:
    """Names, queue counts and queue types are compared with the file's text."""
    path = golden_store(name) / "config" / "topics.json"
    topics = load_topics(path)
    text = path.read_text()
    assert sorted(topics) == sorted(re.findall(r'"topicName":"([^"]*)"', text))
    assert [topics[key].write_queues for key in sorted(topics)] == [
        int(count) for _, count in sorted(re.findall(r'"topicName":"([^"]*)".*?"writeQueueNums":(\d+)', text, re.S))
    ]
    assert [key for key in sorted(topics) if topics[key].is_batch] == sorted(
        re.findall(r'"queue.type":"BatchCQ".*?"topicName":"([^"]*)"', text, re.S)
    )
    assert topics["BatchOrders"].is_batch
    assert not topics["Orders"].is_batch


@pytest.mark.parametrize("name", STORES)
def test_consumer_offsets_are_read_with_their_unquoted_keys(golden_store: GoldenStore, name: str) -> None:
    """Queue ids are keys of text, offsets are numbers; other entries of the broker are ignored."""
    path = golden_store(name) / "config" / "consumerOffset.json"
    offsets = load_config(path)["offsetTable"]
    told = re.findall(r"[{,]\s*(\d+):(\d+)", path.read_text().partition('"offsetTable"')[2])
    assert [(key, str(value)) for table in offsets.values() for key, value in table.items()] == told


@pytest.mark.parametrize("name", STORES)
def test_the_checkpoint_of_a_broker_is_read(golden_store: GoldenStore, name: str) -> None:
    """There are five big-endian numbers."""
    path = golden_store(name) / "checkpoint"
    checkpoint = Checkpoint.open_read_only(path)
    assert [checkpoint.get(field) for field in Field] == list(struct.unpack_from(">5q", path.read_bytes()))
    checkpoint.close()


@pytest.mark.parametrize("name", STORES)
def test_log_files_of_a_broker_open_as_one_address_space(golden_store: GoldenStore, name: str) -> None:
    """The sizes of a real log's files agree, the log may start above 0, and reads end at a file's end."""
    folder = golden_store(name) / "commitlog"
    size = size_on_disk(folder)
    assert size is not None
    log = MappedFileQueue(folder, size)
    names = sorted(path.name for path in folder.iterdir())
    assert (log.min_offset, log.capacity_end) == (int(names[0]), int(names[-1]) + size)
    assert log.read(log.min_offset + size - 8, 100) == (folder / names[0]).read_bytes()[-8:]
    assert log.read(log.min_offset - 1, 10) == b""
    log.close()


def test_delay_offsets_are_read_with_their_unquoted_keys(golden_store: GoldenStore) -> None:
    """A broker writes JSON with integer keys, which strict parsers refuse."""
    path = golden_store("mixed/store") / "config" / "delayOffset.json"
    assert "{1:3,2:3,3:3" in path.read_text()
    assert load_config(path)["offsetTable"] == {"1": 3, "2": 3, "3": 3}
