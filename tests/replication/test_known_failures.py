"""Failures of RocketMQ's replication that its users have reported; here they are none (docs/guarantees.md)."""

from __future__ import annotations

import asyncio
import signal
import socket

import pytest

from services.writer.replication.messages import Acknowledged, Hello
from services.writer.rpc.member_channel import open_stream
from tests.replication.conftest import Make, MakeElected
from tests.replication.elected import TOPIC, Elected
from tests.replication.load import stored_keys
from tests.replication.members import SEGMENT_BYTES
from tests.waiting import refusal, until
from tidemark.client import Consumer, Producer, Query, SendStatus
from tidemark.client.wire.topic_admin import Topics
from tidemark.errors import (
    DeadlineExceededError,
    InSyncReplicasNotEnoughError,
    NextOffsetMismatchError,
    StoreError,
)
from tidemark.store.originals.consumer_offsets import load_consumer_offsets
from tidemark.store.paths import StorePaths
from tidemark.tls.credentials import Credentials

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def started(members: Elected) -> str:
    members.start()
    return members.until_all_in_sync()


def committed(members: Elected, name: str) -> int:
    described = members.described(name)
    return -1 if described is None or described.committed_offset is None else described.committed_offset


def is_refused(producer: Producer) -> bool:
    """Return True if an append is refused, False if it is open. It must not be acknowledged."""
    try:
        status = producer.send(TOPIC, b"open").status
    except StoreError:
        return True
    assert status is SendStatus.FLUSH_SLAVE_TIMEOUT
    return False


@pytest.mark.exhaustive
def test_kf23_a_writer_without_its_replicas_commits_nothing(make_elected: MakeElected) -> None:
    """A master that was cut off from its slaves moved the confirm offset alone, and the next master lost the messages
    (rocketmq#6662); here such a writer commits nothing and gives up its role, although it still has its lease.
    """
    members = make_elected(TIDEMARK_REPLICA_TIMEOUT_MS="500")
    writer = started(members)
    others = [name for name in members.ports if name != writer]
    with members.producer(writer, timeout_s=2) as producer:
        assert producer.send(TOPIC, b"committed", key="committed").status is SendStatus.PUT_OK
        before = committed(members, writer)
        for other in others:
            members.network.cut(writer, other)
            members.network.cut(other, writer)
        until(lambda: is_refused(producer), "the replicas have left the set")
        assert committed(members, writer) == before
    successor = members.until_writer(writer)
    members.acknowledge(successor)
    members.network.heal()
    members.until_all_in_sync()
    members.until_level(*members.ports)


@pytest.mark.exhaustive
def test_kf24_a_new_writer_uses_no_queue_offset_twice(make_elected: MakeElected) -> None:
    """A new master recovered to its confirm offset, and gave queue offsets above it to other messages (rocketmq#7689);
    here it keeps its whole log, which is committed later, and the next offset follows it.
    """
    members = make_elected(TIDEMARK_REPLICA_LAG_MS="20000", TIDEMARK_REPLICA_TIMEOUT_MS="300")
    writer = started(members)
    with_tail, without = (name for name in members.ports if name != writer)
    with Topics(members.address(writer)) as topics:
        topics.create(TOPIC, queues=1)
    members.signal(without, signal.SIGSTOP)
    with members.producer(writer, timeout_s=5) as producer:
        assert producer.send(TOPIC, b"open", key="open").status is SendStatus.FLUSH_SLAVE_TIMEOUT
    described = members.described(with_tail)
    assert described is not None
    assert described.committed_offset is not None
    assert described.synced_offset is not None
    assert described.committed_offset < described.synced_offset, "it is not known to be committed"
    members.kill(writer)
    successor = members.until_writer(without)
    assert successor == with_tail
    members.signal(without, signal.SIGCONT)
    members.until_in_sync(successor, 2)
    with members.producer(successor) as producer:
        assert producer.send(TOPIC, b"next", key="next").queue_offset == 1
    members.start(writer)
    members.until_all_in_sync()
    members.until_level(*members.ports)
    members.stop()
    assert stored_keys(members.folder(writer)) == {"open": (0, 0), "next": (0, 1)}


def test_kf25_only_members_are_replicas(make: Make) -> None:
    """Any connection that sent eight bytes counted as a slave that has everything (rocketmq#3015, rocketmq#1155); here
    neither a stray connection nor a program with another name counts as a copy, although both acknowledge.
    """
    members = make("ab")
    members.start("a")
    members.promote("a")

    async def acknowledge(name: str) -> None:
        async with open_stream(members.address("a"), Credentials()) as link:
            await link.send(Hello("", name, f"{name}.{'0' * 32}", 0, 0, 0, SEGMENT_BYTES))
            await link.receive()
            await link.send(Acknowledged(1 << 40, 0, 0))
            await link.receive()

    with socket.create_connection(("127.0.0.1", members.ports["a"])) as stray:
        stray.sendall((1 << 40).to_bytes(8, "big"))
        for name in ("x", "b"):  # b is a member, but an acknowledgement is not how its stream starts
            with pytest.raises(StoreError, match=r"not a member of the group|must be its start"):
                asyncio.run(acknowledge(name))
        refusal(members.address("a"), TOPIC, InSyncReplicasNotEnoughError)


def test_kf26_a_writer_that_returns_does_not_bring_back_old_offsets(make_elected: MakeElected) -> None:
    """A master that came back replaced the offsets that groups had reached meanwhile by its older ones (rocketmq#1094);
    here it takes those of the present writer.
    """
    members = make_elected(with_readers=True)
    writer = started(members)
    with Topics(members.writers) as topics, members.producer(writer) as producer:
        topics.create(TOPIC, queues=1)
        for number in range(20):
            producer.send(TOPIC, b"%d" % number, queue_id=0)
    with Query(members.url) as query:
        until(lambda: query.watermark()["lag_bytes"] == 0, "the messages are visible")

    def read(count: int) -> None:
        with Consumer(TOPIC, group="g", url=members.url, auto_commit=False) as consumer:
            got = 0
            while got < count:
                got += len(consumer.poll(5, max_messages=count - got))
            consumer.commit()

    def offsets() -> set[int | None]:
        """Return the group's offset as each member has it."""
        files = (StorePaths(members.folder(name)).consumer_offsets for name in members.ports)
        return {load_consumer_offsets(file).get(f"{TOPIC}@g", {}).get(0) for file in files}

    read(5)
    until(lambda: offsets() == {5}, "the offset is copied")
    members.kill(writer)
    successor = members.until_writer(writer)
    read(4)
    members.start(writer)
    members.until_all_in_sync()
    until(lambda: offsets() == {9}, "the offset is copied to the writer that has returned")
    members.group(successor).hand_over(writer)
    members.until_writer(successor)
    read(1)
    until(lambda: offsets() == {10}, "the group has continued from its offset", found=lambda: str(offsets()))


def test_a_mismatch_is_not_told_by_what_may_be_cut(make: Make) -> None:
    """A writer that was replaced would refuse an append because of messages that never come to be."""
    members = make("abc", TIDEMARK_REPLICA_TIMEOUT_MS="300", TIDEMARK_REPLICA_LAG_MS="60000")
    members.start()
    members.promote("a")
    members.until_in_sync("a", 3)
    with members.producer("a", timeout_s=2) as producer:
        producer.topics.create(TOPIC, queues=1)
        members.signal("b", signal.SIGSTOP)
        assert producer.send(TOPIC, b"open").status is SendStatus.FLUSH_SLAVE_TIMEOUT
        with pytest.raises(DeadlineExceededError):
            producer.send(TOPIC, b"x", queue_id=0, expected_next_offset=0)
        members.signal("b", signal.SIGCONT)
        members.until_in_sync("a", 3)
        with pytest.raises(NextOffsetMismatchError):
            producer.send(TOPIC, b"x", queue_id=0, expected_next_offset=0)
