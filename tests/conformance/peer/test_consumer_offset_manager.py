"""RocketMQ's ConsumerOffsetManagerTest."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from services.indexer.query.groups.consumer_offsets import ConsumerOffset, ConsumerOffsets
from tidemark.store.originals.consumer_offsets import load_consumer_offsets
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance


def test_co1_offsets_survive_being_written_and_read(tmp_path: Path) -> None:
    """A group has {0: 1, 1: 3}; the queue ids are integers again; a queue without a commit has none."""
    paths = StorePaths(tmp_path)
    offsets = ConsumerOffsets(paths, DiskStorage())

    async def put() -> None:
        await offsets.put(ConsumerOffset("g", "t", 0, 1))
        await offsets.put(ConsumerOffset("g", "t", 1, 3))
        await offsets.put(ConsumerOffset("g", "t2", 0, 9))

    asyncio.run(put())
    offsets.close()
    assert load_consumer_offsets(paths.consumer_offsets) == {"t@g": {0: 1, 1: 3}, "t2@g": {0: 9}}
    assert set(json.loads(paths.consumer_offsets.read_text())) == {"dataVersion", "offsetTable"}
    again = ConsumerOffsets(paths, DiskStorage())
    assert [again.get("g", "t", queue_id) for queue_id in (0, 1, 2)] == [1, 3, None]
    assert again.get("g", "t3", 0) is None
    again.close()
