"""MemberTable and offsets together: a commit and the hand-over of its queue are ordered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from services.indexer.query.config import QuerySettings
from services.indexer.query.groups.consumer_groups import ConsumerGroups
from services.indexer.query.groups.consumer_offsets import ConsumerOffsets
from services.indexer.query.groups.member_table import MemberTable
from services.indexer.query.schema.request_bodies import HeartbeatBody, JoinBody, OffsetsBody, QueueOffset
from tests.built_store import BuiltStore
from tests.unit.query.groups.test_member_table import Clock
from tidemark.errors import DiskFullError, GenerationStaleError
from tidemark.read.store_reader import StoreReader
from tidemark.store.storage import DiskStorage


class GatedStorage(DiskStorage):
    """A slow disk: a write waits until the gate is open, and fails if the test says so."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.reached = threading.Event()
        self.is_full = False

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        self.reached.set()
        assert self.gate.wait(30)
        if self.is_full:
            raise DiskFullError("the disk is full")
        super().pwrite(descriptor, data, at)


class World(NamedTuple):
    """One store's groups, its disk and its clock."""

    groups: ConsumerGroups
    storage: GatedStorage
    clock: Clock

    async def join(self, member_id: str, session_timeout_ms: int) -> int:
        body = JoinBody(topics=["orders"], member_id=member_id, session_timeout_ms=session_timeout_ms)
        return (await self.groups.join("billing", body)).lease.generation

    async def heartbeat(self, member_id: str, generation: int) -> dict[int, int | None]:
        """Return the member's queues with the group's offsets."""
        told = await self.groups.heartbeat("billing", member_id, HeartbeatBody(generation=generation, holds=[]))
        return {queue.queue_id: offset for queue, offset in zip(told.lease.assigned, told.offsets, strict=True)}

    async def commit(self, member_id: str, generation: int, offset: int) -> None:
        one = QueueOffset(topic="orders", queue_id=1, offset=offset)
        await self.groups.commit("billing", OffsetsBody(member_id=member_id, generation=generation, offsets=[one]))

    async def commit_that_hangs(self, generation: int) -> asyncio.Task[None]:
        """Start a commit of 5 by `a` that hangs in its write after its check; then end the session of `a`."""
        self.storage.gate.clear()
        self.storage.reached.clear()
        committing = asyncio.create_task(self.commit("a", generation, 5))
        await asyncio.to_thread(self.storage.reached.wait, 30)
        self.clock.now_s += 10
        return committing


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = BuiltStore(tmp_path / "store")
    built.topic("orders", queues=2)
    for number in range(20):
        built.append("orders", queue_id=number % 2)
    built.publish()
    store, storage, clock = StoreReader(built.root), GatedStorage(), Clock()
    offsets = ConsumerOffsets(store.paths, storage)
    leases = MemberTable("tidemark-0", max_groups=1, max_members=2, clock=clock)
    settings = QuerySettings(store_root=built.root)
    yield World(
        ConsumerGroups(settings, store=store, offsets=offsets, leases=leases, read=asyncio.to_thread), storage, clock
    )
    storage.gate.set()
    offsets.close()


def test_the_next_holder_waits_for_a_commit_that_is_under_way(world: World) -> None:
    """It gets the offset that was being written when the previous holder expired, not an older one."""

    async def run() -> None:
        generation = await world.join("a", 1_000)
        other = await world.join("b", 300_000)
        committing = await world.commit_that_hangs(generation)
        telling = asyncio.create_task(world.heartbeat("b", other))
        await asyncio.sleep(0.1)
        assert not telling.done()
        world.storage.gate.set()
        assert await telling == {0: None, 1: 5}
        await committing

    asyncio.run(run())


def test_a_hand_over_continues_when_the_commit_under_way_fails(world: World) -> None:
    """The next holder gets the durable offset; the late committer gets an error."""

    async def run() -> None:
        generation = await world.join("a", 1_000)
        other = await world.join("b", 300_000)
        committing = await world.commit_that_hangs(generation)
        telling = asyncio.create_task(world.heartbeat("b", other))
        await asyncio.sleep(0.05)
        world.storage.is_full = True
        world.storage.gate.set()
        assert await telling == {0: None, 1: None}
        with pytest.raises(DiskFullError):
            await committing

    asyncio.run(run())


def test_a_late_commit_does_not_overwrite_the_successors_offset(world: World) -> None:
    """However slow the disk is, the successor's offset is the last one, and a commit after the hand-over is refused."""

    async def run() -> None:
        generation = await world.join("a", 1_000)
        other = await world.join("b", 300_000)
        committing = await world.commit_that_hangs(generation)
        telling = asyncio.create_task(world.heartbeat("b", other))
        await asyncio.sleep(0.05)
        with pytest.raises(GenerationStaleError):
            await world.commit("a", generation, 6)
        world.storage.gate.set()
        await telling
        state = world.groups.leases.state("billing")
        assert state is not None
        await world.commit("b", state.generation, 9)
        await committing
        assert (await world.heartbeat("b", state.generation))[1] == 9

    asyncio.run(run())


def test_heartbeats_without_changes_do_not_wait_for_the_disk(world: World) -> None:
    """A heartbeat without changes is answered while a write hangs."""

    async def run() -> None:
        generation = await world.join("a", 300_000)
        held = HeartbeatBody.model_validate(
            {"generation": generation, "holds": [{"topic": "orders", "queue_id": i} for i in (0, 1)]}
        )
        committing = await world.commit_that_hangs(generation)
        told = await asyncio.wait_for(world.groups.heartbeat("billing", "a", held), 10)
        assert (len(told.lease.assigned), committing.done()) == (2, False)
        world.storage.gate.set()
        await committing

    asyncio.run(run())


def test_a_cancelled_commit_request_does_not_stop_the_writer(world: World) -> None:
    """The client is gone; its commit is still written, and so is the next one."""

    async def run() -> None:
        generation = await world.join("a", 300_000)
        committing = await world.commit_that_hangs(generation)
        committing.cancel()
        await asyncio.wait([committing])
        world.storage.gate.set()
        assert await world.heartbeat("a", generation) == {0: None, 1: 5}
        await asyncio.wait_for(world.commit("a", generation, 6), 10)

    asyncio.run(run())
