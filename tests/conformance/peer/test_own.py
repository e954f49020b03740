"""Behaviours that follow from RocketMQ's source, though none of its tests asserts them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders import MAGIC_BLANK, properties, wire_batch, write_log
from tests.conformance.format import vectors
from tests.conformance.peer.message_store import MessageStore
from tests.integration.writer.harness import log_bytes
from tests.pipeline_runs import build, plan_of, queue_files
from tidemark.format.batch_consume_queue import decode_units
from tidemark.format.check import Checker
from tidemark.format.dispatch_request import DISPATCH_REQUEST
from tidemark.format.primitives import masked_crc32
from tidemark.format.properties import decode_properties
from tidemark.format.record import decode_record
from tidemark.index.build import ConsumeQueueBuilder
from tidemark.read.queue_reader import QueueReader
from tidemark.read.watermark import Watermark
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name
from tidemark.store.marks import Marks
from tidemark.store.originals.consumer_offsets import load_consumer_offsets
from tidemark.store.originals.topics import TopicConfig, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance

INDEX: dict[str, Any] = {"index_slots": 16, "index_entries": 64}


@pytest.mark.parametrize("spare", [8, 7])
def test_own3_a_record_fills_its_file_except_for_8_bytes(tmp_path: Path, spare: int) -> None:
    """In a file of 4096 bytes a record with 8 bytes left fits; with 7 a blank record fills it."""
    first, second = 1000, 4096 - 1000 - spare
    with MessageStore(tmp_path, log_file_size=4096) as store:
        assert store.put("t", (bytes(first - 92), {})).end_physical_offset == first
        answer = store.put("t", (bytes(second - 92), {}))
        assert answer.queue_offset == 1
        if spare == 8:
            assert (answer.physical_offset, answer.end_physical_offset) == (first, 4096 - 8)
            assert store.put("t", (b"x", {})).physical_offset == 4096
            assert log_bytes(tmp_path)[0][-8:] == struct.pack(">ii", 8, MAGIC_BLANK)
        else:
            assert (answer.physical_offset, answer.end_physical_offset) == (4096, 4096 + second)
            assert log_bytes(tmp_path)[0][first : first + 8] == struct.pack(">ii", 4096 - first, MAGIC_BLANK)
            assert not any(log_bytes(tmp_path)[0][first + 8 :])


def test_own4_a_batch_that_does_not_fit_moves_as_a_whole(tmp_path: Path) -> None:
    """Its first record would fit, but is not left behind; positions are the next file's, and queue offsets continue."""
    with MessageStore(tmp_path, log_file_size=4096) as store:
        store.put("t", (bytes(3000), {}))
        answer = store.put("t", *[(bytes(400), {})] * 3)
        assert answer.physical_offset == 4096
        assert struct.unpack(">3q", answer.physical_offsets) == (4096, 4096 + 492, 4096 + 984)
        records = store.records()
        assert [record.physical_offset for record in records] == [0, 4096, 4588, 5080]
        assert [record.queue_offset for record in records] == [0, 1, 2, 3]


@pytest.mark.parametrize(("first", "start", "blanks"), [(1000, 0, 1000), (300_005, 6_000_000, 5)])
def test_own5_a_queue_that_begins_above_0_has_a_pre_blank_head(
    tmp_path: Path, first: int, start: int, blanks: int
) -> None:
    """In files of 6,000,000 bytes the unit is at its position in its file, and is the queue's minimum."""
    requests = np.zeros(1, DISPATCH_REQUEST)
    requests["physical_offset"], requests["message_size"], requests["batch_size"] = 5000, 100, 1
    requests["queue_offset"] = requests["base_offset"] = first
    ConsumeQueueBuilder(MappedFileQueue(tmp_path, 6_000_000, DiskStorage()), mark=0).build(requests)
    (path,) = tmp_path.iterdir()
    assert path.name == file_name(start)
    expected = struct.pack(">qiq", 0, 0x7FFFFFFF, 0) * blanks + struct.pack(">qiq", 5000, 100, 0)
    assert path.read_bytes() == expected.ljust(6_000_000, b"\0")
    queue = QueueReader(tmp_path, topic="t", queue_id=0, batch=False)
    bounds = queue.bounds(Watermark(0, 1 << 40, 0, 1 << 40), log_min=0)
    assert (bounds.min_offset, bounds.max_offset) == (first, first + 1)


def mixed_batch_queue(root: Path) -> list[int]:
    """Write a BatchCQ topic `b` and a simple one; return each record's position.

    Topic `b` has an inner batch of three, a single message, and a broker's legacy batch of two.
    """
    inner = {"INNER_NUM": "3", "INNER_BASE": "0", "UNIQ_KEY": "k"}
    body = wire_batch(*[(b"x", b"", 0)] * 3)
    placed = write_log(
        root / "commitlog",
        8192,
        [
            {"topic": b"b", "body": body, "sys_flag": 0xC0, "queue_offset": 0, "properties": properties(inner)},
            *({"topic": b"b", "queue_offset": offset} for offset in (3, 4, 5)),
            *({"topic": b"s", "queue_offset": offset} for offset in range(5)),
        ],
    )
    topics = {"b": TopicConfig("b", 1, 1, attributes={"queue.type": "BatchCQ"}), "s": TopicConfig("s", 1, 1)}
    save_topics(StorePaths(root).topics, topics, DiskStorage(), counter=1)
    build(plan_of(root, **INDEX))
    return [one.physical_offset for one in placed]


def test_own6_records_already_built_change_no_queue(tmp_path: Path) -> None:
    """They are dispatched again from any record on: the same bytes, in queues of both kinds."""
    places = mixed_batch_queue(tmp_path)
    before = queue_files(tmp_path)
    for place in places:
        marks = Marks.open_to_write(StorePaths(tmp_path).marks, DiskStorage(), shards=3, term=0)
        for shard in range(3):
            marks.set_back(shard, place)
        marks.close()
        build(plan_of(tmp_path, **INDEX))
        assert queue_files(tmp_path) == before


def test_own7_batches_of_all_kinds_share_one_batch_queue(tmp_path: Path) -> None:
    """The bases are 0, 3, 4, 5 with 3, 1, 1 and 1 messages."""
    mixed_batch_queue(tmp_path)
    (path,) = (tmp_path / "batchconsumequeue" / "b" / "0").iterdir()
    units = decode_units(path.read_bytes())[:5]
    assert units["base_offset"].tolist() == [0, 3, 4, 5, 0]
    assert units["batch_size"].tolist() == [3, 1, 1, 1, 0]


def test_own8_last_of_equal_names_wins_and_crcs_are_masked() -> None:
    """Every golden record decodes."""
    assert decode_properties(b"A\x01x\x02B\x01y\x02A\x01z\x02") == {"A": "z", "B": "y"}
    assert masked_crc32(b"Hello") == 0x77D18982  # unmasked it is 0xF7D18982
    for data in (vectors.A, vectors.A6, vectors.B, vectors.V2, vectors.R1, vectors.R2, vectors.IB):
        record = decode_record(data)
        assert masked_crc32(record.body) == record.body_crc
        result = Checker().check(np.frombuffer(data, np.uint8), base_offset=record.physical_offset)
        assert result.records == 1


@pytest.mark.parametrize("main", ["as it is", "empty", "missing"])
def test_own9_consumer_offsets_with_unquoted_integer_keys_are_read(tmp_path: Path, main: str) -> None:
    """fastjson writes them so; `.bak` replaces an empty or missing file."""
    path = tmp_path / "consumerOffset.json"
    text = '{"dataVersion":{"counter":1},"offsetTable":{"T@group":{0:5280,1:5312}}}'
    if main == "as it is":
        path.write_text(text)
    else:
        path.with_name("consumerOffset.json.bak").write_text(text)
        if main == "empty":
            path.write_text("")
    assert load_consumer_offsets(path) == {"T@group": {0: 5280, 1: 5312}}
