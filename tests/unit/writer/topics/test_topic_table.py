from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from services.writer.topics.topic_table import MAX_QUEUES, Alteration, TopicTable
from tidemark.errors import (
    ArgumentIllegalError,
    DiskFullError,
    StoreError,
    TopicAttributeError,
    TopicExistsError,
    TopicForbiddenError,
    TopicIllegalError,
    TopicNotFoundError,
)
from tidemark.store.originals.tombstones import load_tombstones
from tidemark.store.originals.topics import load_config, load_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

BATCH = {"queue.type": "BatchCQ"}


class FullDisk(DiskStorage):
    """A disk that refuses every new file while *is_full* is set."""

    is_full = False

    def create(self, path: Path, size: int) -> int:
        if self.is_full:
            raise DiskFullError("the disk is full")
        return super().create(path, size)


class Store:
    """The folders of a store, and topic tables over them."""

    def __init__(self, root: Path) -> None:
        self.paths = StorePaths(root)
        self.disk = FullDisk()
        for file in (self.paths.topics, self.paths.tombstones):
            file.parent.mkdir(parents=True, exist_ok=True)

    def table(self, *, auto_create: bool = True) -> TopicTable:
        return TopicTable(self.paths, self.disk, auto_create=auto_create, default_queues=4)

    def change(self, *changes: Callable[[TopicTable], Coroutine[Any, Any, Any]]) -> TopicTable:
        """Make these changes to a new table."""

        async def run() -> TopicTable:
            table = self.table()
            for change in changes:
                await change(table)
            return table

        return asyncio.run(run())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def create(name: str, *, queues: int = 0, **attributes: str) -> Callable[[TopicTable], Coroutine[Any, Any, Any]]:
    named = {name.replace("_", "."): value for name, value in attributes.items()}
    return lambda table: table.create(name, queues=queues, attributes=named)


def delete(
    name: str, end: int = 500, offsets: dict[int, int] | None = None
) -> Callable[[TopicTable], Coroutine[Any, Any, Any]]:
    async def ends() -> tuple[int, dict[int, int]]:
        return end, offsets or {}

    return lambda table: table.delete(name, ends)


def test_a_created_topic_is_on_disk_and_in_the_table(store: Store) -> None:
    table = store.change(create("orders", queues=8, queue_type="BatchCQ"), create("logs"))
    assert load_topics(store.paths.topics) == {config.name: config for config in table.all()}
    orders, logs = table.require("orders"), table.require("logs")
    assert (orders.read_queues, orders.write_queues, orders.is_batch) == (8, 8, True)
    assert (logs.write_queues, logs.is_batch) == (4, False)


def test_a_groups_own_topic_has_one_queue_by_default(store: Store) -> None:
    assert store.change(create("%RETRY%billing")).require("%RETRY%billing").write_queues == 1


def test_creating_the_same_topic_again_changes_nothing(store: Store) -> None:
    async def run() -> None:
        table = store.table()
        assert (await table.create("orders", queues=2, attributes={}))[1]
        for queues, attributes in ((0, {}), (2, {"queue.type": "SimpleCQ"})):
            config, is_new = await table.create("orders", queues=queues, attributes=attributes)
            assert (config.write_queues, is_new) == (2, False)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (create("orders", queues=3), TopicExistsError),
        (create("orders", queue_type="BatchCQ"), TopicExistsError),
        (create("other", queues=MAX_QUEUES + 1), ArgumentIllegalError),
        (create("other", queues=-1), ArgumentIllegalError),
        (create("other", color="red"), TopicAttributeError),
        (create("a/b"), TopicIllegalError),
        (create("TBW102"), TopicForbiddenError),
    ],
    ids=["other queues", "another type", "too many queues", "negative", "an attribute", "a name", "a broker's"],
)
def test_invalid_creations_are_refused_and_change_nothing(
    store: Store, change: Callable[[TopicTable], Coroutine[Any, Any, Any]], error: type[StoreError]
) -> None:
    store.change(create("orders", queues=2))
    before = store.paths.topics.read_bytes()
    with pytest.raises(error):
        store.change(change)
    assert store.paths.topics.read_bytes() == before


def test_a_topic_that_cannot_be_saved_does_not_exist(store: Store) -> None:
    store.disk.is_full = True
    table = store.table()
    with pytest.raises(DiskFullError):
        asyncio.run(table.create("orders", queues=0, attributes={}))
    assert table.get("orders") is None


def test_a_first_message_creates_a_topic_only_with_auto_create(store: Store) -> None:
    assert store.table().expect("orders").config.queues == 4
    strict = store.table(auto_create=False)
    with pytest.raises(TopicNotFoundError):
        strict.expect("orders")
    assert strict.expect("%RETRY%billing", create=True).config.queues == 1
    assert strict.get("%RETRY%billing") is None, "nothing is created before `ensure`"


def test_alter_changes_only_the_given_attributes(store: Store) -> None:
    change = Alteration(write_queues=2, attributes={"+message.type": "NORMAL"})
    table = store.change(create("orders", queues=4, queue_type="BatchCQ"), lambda table: table.alter("orders", change))
    orders = table.require("orders")
    assert (orders.read_queues, orders.write_queues, orders.permission) == (4, 2, 6)
    assert orders.attributes == {**BATCH, "message.type": "NORMAL"}
    assert load_topics(store.paths.topics)["orders"] == orders


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("missing", Alteration(), TopicNotFoundError),
        ("orders", Alteration(read_queues=0), ArgumentIllegalError),
        ("orders", Alteration(write_queues=MAX_QUEUES + 1), ArgumentIllegalError),
        ("orders", Alteration(permission=8), ArgumentIllegalError),
        ("SCHEDULE_TOPIC_XXXX", Alteration(write_queues=1), TopicForbiddenError),
    ],
)
def test_invalid_alterations_are_refused(store: Store, name: str, change: Alteration, error: type[StoreError]) -> None:
    with pytest.raises(error):
        store.change(create("orders"), TopicTable.ensure_schedule, lambda table: table.alter(name, change))


def test_a_deleted_topic_leaves_its_end_and_its_next_offsets(store: Store) -> None:
    table = store.change(create("orders"), delete("orders", 500, {0: 7, 2: 9}))
    assert table.get("orders") is None
    assert load_topics(store.paths.topics) == {}
    (stone,) = load_tombstones(store.paths.tombstones)
    assert (stone.topic, stone.physical_offset, stone.next_offsets) == ("orders", 500, {0: 7, 2: 9})
    assert table.dead_end("orders") == store.table().dead_end("orders") == 500
    assert table.dead_end("other") == 0


def test_a_topic_that_is_deleted_twice_has_one_tombstone_of_the_later_end(store: Store) -> None:
    store.change(create("orders"), delete("orders", 500), create("orders"), delete("orders", 900))
    assert [stone.physical_offset for stone in load_tombstones(store.paths.tombstones)] == [900]


def test_a_topic_refuses_messages_during_deletion_and_returns_if_it_fails(store: Store) -> None:
    async def run() -> None:
        table = store.table()
        await table.create("orders", queues=0, attributes={})

        async def ends() -> tuple[int, dict[int, int]]:
            assert table.get("orders") is None
            raise DiskFullError("the log has failed")

        with pytest.raises(DiskFullError):
            await table.delete("orders", ends)
        assert table.get("orders") is not None
        assert table.dead_end("orders") == 0

    asyncio.run(run())


def test_the_schedule_topic_has_one_queue_per_level_and_cannot_be_deleted(store: Store) -> None:
    table = store.change(TopicTable.ensure_schedule)
    assert table.require("SCHEDULE_TOPIC_XXXX").queues == 18
    with pytest.raises(TopicForbiddenError):
        store.change(delete("SCHEDULE_TOPIC_XXXX"))


def test_each_change_increases_the_data_version(store: Store) -> None:
    """A broker compares DataVersion counters to see that its topics are older; a restart continues the count."""
    store.change(create("a"), create("b"))
    store.change(create("c"))
    assert load_config(store.paths.topics)["dataVersion"]["counter"] == 3


class SlowDisk(DiskStorage):
    """A disk whose renames wait, and note how many happen at once."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()
        self.at_once = self.most_at_once = 0

    def rename(self, source: Path, target: Path) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.began.set()
        assert self.may_end.wait(20)
        super().rename(source, target)
        self.at_once -= 1


def test_a_cancelled_creation_ends_before_the_next_change_begins(store: Store) -> None:
    """A caller is cancelled when its connection ends, while a thread writes the files."""
    disk = SlowDisk()

    async def run() -> None:
        table = TopicTable(store.paths, disk, auto_create=True, default_queues=4)
        first = asyncio.create_task(table.create("a", queues=2, attributes={}))
        await asyncio.to_thread(disk.began.wait, 20)
        second = asyncio.create_task(table.create("b", queues=3, attributes={}))
        first.cancel()
        await asyncio.sleep(0.05)
        assert not second.done()
        disk.may_end.set()
        await asyncio.wait_for(asyncio.wait([first, second]), 20)
        assert second.result()[0].queues == 3
        assert {config.name for config in table.all()} == {"a", "b"}

    asyncio.run(run())
    assert disk.most_at_once == 1
    assert set(load_topics(store.paths.topics)) == {"a", "b"}
