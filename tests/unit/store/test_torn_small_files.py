"""Small files that another program's crash has torn; Tidemark replaces its own atomically (known failure 19)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.indexer.query.groups.consumer_offsets import ConsumerOffset, ConsumerOffsets
from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.errors import CorruptStoreError
from tidemark.store.originals.consumer_offsets import load_consumer_offsets
from tidemark.store.originals.topics import TopicConfig, load_topics, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

OFFSETS = (
    b'{\n\t"offsetTable":{"orders@billing":{0:25,1:7},"%RETRY%billing@billing":{0:3}\n\t}\n}'  # as a 5.x broker writes
)
TOPICS = (
    b'{"dataVersion":{"counter":4},"topicConfigTable":{"orders":{"topicName":"orders","readQueueNums":2,"perm":6}}}'
)
TORN = [b"", b" \n", b"\0" * 512, b"{", OFFSETS[:40], OFFSETS[:-1], OFFSETS + b"}", b"\xff\xfe"]


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    (tmp_path / "config").mkdir()
    return StorePaths(tmp_path)


def bak(path: Path) -> Path:
    return path.with_name(path.name + ".bak")


@pytest.mark.parametrize("torn", [None, *TORN])
def test_own9_consumer_offsets_come_from_bak_when_the_file_is_torn(paths: StorePaths, torn: bytes | None) -> None:
    """The file is empty, truncated, zeroed, or missing: the previous copy counts; integer keys have no quotes."""
    bak(paths.consumer_offsets).write_bytes(OFFSETS)
    if torn is not None:
        paths.consumer_offsets.write_bytes(torn)
    offsets = ConsumerOffsets(paths, DiskStorage())
    assert offsets.get("billing", "orders", 0) == 25
    assert offsets.get("billing", "%RETRY%billing", 0) == 3
    offsets.close()


@pytest.mark.parametrize("torn", TORN)
def test_topics_come_from_bak_when_the_file_is_torn(paths: StorePaths, torn: bytes) -> None:
    bak(paths.topics).write_bytes(TOPICS)
    paths.topics.write_bytes(torn)
    assert load_topics(paths.topics)["orders"].read_queues == 2


@pytest.mark.parametrize("torn", TORN[2:])
def test_unreadable_offsets_are_an_error(paths: StorePaths, torn: bytes) -> None:
    """The service does not start with empty offsets: it names the file."""
    paths.consumer_offsets.write_bytes(torn)
    bak(paths.consumer_offsets).write_bytes(torn)
    with pytest.raises(CorruptStoreError, match="consumerOffset"):
        ConsumerOffsets(paths, DiskStorage())


@pytest.mark.parametrize("other", [b"[]", b"7", b'{"offsetTable":[1]}', b'{"offsetTable":{"t@g":{"x":1}}}'])
def test_offsets_of_another_shape_are_an_error(paths: StorePaths, other: bytes) -> None:
    """The file is JSON, but no table of offsets."""
    paths.consumer_offsets.write_bytes(other)
    with pytest.raises(CorruptStoreError):
        load_consumer_offsets(paths.consumer_offsets)


def test_the_copy_that_was_read_survives_the_next_write(paths: StorePaths) -> None:
    """A torn file does not replace the `.bak` that was read instead of it: a good copy exists at all times."""
    paths.topics.write_bytes(TOPICS[:50])
    bak(paths.topics).write_bytes(TOPICS)
    save_topics(paths.topics, {"new": TopicConfig("new", 1, 1)}, DiskStorage(), counter=5)
    assert set(load_topics(paths.topics)) == {"new"}
    assert bak(paths.topics).read_bytes() == TOPICS


def test_offsets_are_old_or_new_after_a_kill_at_any_step(tmp_path: Path) -> None:
    """Known failure 19: after a kill at any step of a PUT, the next owner has the acknowledged offset, or one more."""
    step = 0
    while True:
        paths = StorePaths(tmp_path / str(step))
        first = ConsumerOffsets(paths, DiskStorage())
        asyncio.run(first.put(ConsumerOffset("g", "t", 0, 1)))
        first.close()
        storage = RecordingStorage(die_before=step)
        try:
            save_offset(paths, storage, 2)
        except KilledHere:
            assert load_consumer_offsets(paths.consumer_offsets) in ({"t@g": {0: 1}}, {"t@g": {0: 2}})
            step += 1
            continue
        assert load_consumer_offsets(paths.consumer_offsets) == {"t@g": {0: 2}}
        assert step > 6
        return


def save_offset(paths: StorePaths, storage: RecordingStorage, offset: int) -> None:
    """Write as the owner does, in this thread."""
    owner = ConsumerOffsets(paths, DiskStorage())
    try:
        owner._storage = storage
        owner._save({"t@g": {0: offset}})
    finally:
        owner.close()
