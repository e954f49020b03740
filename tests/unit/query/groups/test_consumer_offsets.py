"""Consumer offsets: group commits, failed writes, ownership."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.indexer.query.groups.consumer_offsets import ConsumerOffset, ConsumerOffsets
from tidemark.errors import DiskFullError, GenerationStaleError, NotLeaderError, StoreLockedError
from tidemark.replication.member_role import PublishedRole
from tidemark.store.originals.consumer_offsets import load_consumer_offsets
from tidemark.store.originals.topics import save_config
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage


class CountingStorage(DiskStorage):
    """Counts created files, and refuses to write while it is full."""

    def __init__(self) -> None:
        self.created = 0
        self.is_full = False

    def create(self, path: Path, size: int) -> int:
        self.created += 1
        return super().create(path, size)

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        if self.is_full:
            raise DiskFullError("the disk is full")
        super().pwrite(descriptor, data, at)


def offset(number: int) -> ConsumerOffset:
    return ConsumerOffset(f"g{number}", "orders", 0, number)


def test_concurrent_puts_share_a_write(tmp_path: Path) -> None:
    """A hundred concurrent puts cost a few files, and all are durable when they are answered."""
    storage = CountingStorage()
    offsets = ConsumerOffsets(StorePaths(tmp_path), storage)

    async def put_all() -> None:
        await asyncio.gather(*(offsets.put(offset(number)) for number in range(100)))

    asyncio.run(put_all())
    assert storage.created <= 10
    assert len(load_consumer_offsets(StorePaths(tmp_path).consumer_offsets)) == 100
    offsets.close()


def test_a_failed_write_raises_and_keeps_the_previous_offset(tmp_path: Path) -> None:
    """The previous offset stays; when there is room again, puts succeed."""
    storage = CountingStorage()
    offsets = ConsumerOffsets(StorePaths(tmp_path), storage)
    asyncio.run(offsets.put(offset(1)))
    storage.is_full = True
    with pytest.raises(DiskFullError):
        asyncio.run(offsets.put(ConsumerOffset("g1", "orders", 0, 5)))
    assert offsets.get("g1", "orders", 0) == 1
    storage.is_full = False
    asyncio.run(offsets.put(ConsumerOffset("g1", "orders", 0, 6)))
    assert offsets.get("g1", "orders", 0) == 6
    offsets.close()


def test_another_process_takes_over_after_the_owner_closes(tmp_path: Path) -> None:
    """The takeover happens at the next PUT, and includes the owner's offsets."""
    first = ConsumerOffsets(StorePaths(tmp_path), DiskStorage())
    second = ConsumerOffsets(StorePaths(tmp_path), DiskStorage())
    asyncio.run(first.put(offset(1)))
    with pytest.raises(StoreLockedError):
        asyncio.run(second.put(offset(2)))
    assert second.get("g1", "orders", 0) == 1
    first.close()
    asyncio.run(second.put(offset(2)))
    assert [one.group for one in second.all()] == ["g1", "g2"]
    second.close()


def test_offsets_of_one_put_are_stored_atomically(tmp_path: Path) -> None:
    """All of them are in one write; if it fails, none has changed."""
    storage = CountingStorage()
    offsets = ConsumerOffsets(StorePaths(tmp_path), storage)
    asyncio.run(offsets.put(*(offset(number) for number in range(50))))
    assert storage.created == 2  # the file and its checked copy
    storage.is_full = True
    with pytest.raises(DiskFullError):
        asyncio.run(offsets.put(*(ConsumerOffset(f"g{number}", "orders", 0, 99) for number in range(50))))
    assert [one.offset for one in offsets.all()] == [one.offset for one in sorted(map(offset, range(50)))]
    offsets.close()


def test_a_put_whose_check_fails_writes_nothing(tmp_path: Path) -> None:
    """A failed check keeps every offset of the put out of the file."""
    storage = CountingStorage()
    offsets = ConsumerOffsets(StorePaths(tmp_path), storage)

    @contextlib.contextmanager
    def refuse() -> Iterator[None]:
        raise GenerationStaleError("not the holder")
        yield

    with pytest.raises(GenerationStaleError):
        asyncio.run(offsets.put(offset(1), under=refuse()))
    asyncio.run(offsets.settled())
    assert (storage.created, list(offsets.all())) == (0, [])
    offsets.close()


def test_only_the_service_beside_the_groups_writer_owns_offsets(tmp_path: Path) -> None:
    """A replica reads the copied file; once it is the writer it takes it over, and forgets it as a replica again."""
    paths = StorePaths(tmp_path)
    role = PublishedRole(paths.replication, DiskStorage())

    def copy(*copied: ConsumerOffset) -> None:
        content = {"offsetTable": {f"{one.topic}@{one.group}": {str(one.queue_id): one.offset} for one in copied}}
        save_config(paths.consumer_offsets, content, DiskStorage())

    copy(offset(1))
    offsets = ConsumerOffsets(paths, DiskStorage())
    assert (offsets.is_owner, list(offsets.all())) == (False, [offset(1)])
    with pytest.raises(NotLeaderError):
        asyncio.run(offsets.put(offset(2)))
    role.write(2, 0, until_s=None)
    asyncio.run(offsets.put(offset(2)))
    assert (offsets.is_owner, list(offsets.all())) == (True, [offset(1), offset(2)])
    role.follow()
    copy(offset(3))
    assert (offsets.is_owner, list(offsets.all())) == (False, [offset(3)])
    with pytest.raises(NotLeaderError):
        asyncio.run(offsets.put(offset(4)))
    role.write(4, 0, until_s=None)
    asyncio.run(offsets.put(offset(5)))
    assert list(offsets.all()) == [offset(3), offset(5)]
    offsets.close()
