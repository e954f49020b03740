from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any, cast

import grpc
import pytest
from grpc_status import rpc_status

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_writer import FakeWriter, refusal
from tidemark.client.errors.address_faults import members_of, require_store_address
from tidemark.client.wire import group_watch, store_members
from tidemark.client.wire.batch_stream import BatchStream
from tidemark.client.wire.store_members import StoreMembers
from tidemark.client.wire.topic_admin import Topics
from tidemark.errors import ArgumentIllegalError, NotLeaderError, WriterUnreachableError

LONG_S = 20.0


@pytest.fixture
def replica() -> Iterator[str]:
    """The address of a member that refuses what only a writer can do."""

    def refuse(request: Any, context: grpc.ServicerContext) -> None:
        context.abort_with_status(rpc_status.to_status(refusal("NOT_LEADER")))

    handler: Any = grpc.unary_unary_rpc_method_handler(refuse)
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("tidemark.v1.CommitLogService", {"GetLogInfo": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.fixture
def members() -> Iterator[Callable[..., StoreMembers]]:
    made: list[StoreMembers] = []

    def of(*addresses: str) -> StoreMembers:
        made.append(StoreMembers("|".join(addresses)))
        return made[-1]

    yield of
    for one in made:
        one.close()


def nobody() -> str:
    return f"127.0.0.1:{fixed_port()}"


def test_addresses_are_separated_by_bars() -> None:
    assert members_of("a:1 | b:2|a:1") == ("a:1", "b:2")
    assert require_store_address("tls://a:1|tls://b:2") == "tls://a:1|tls://b:2"
    with pytest.raises(ArgumentIllegalError, match="'b' is not host:port"):
        require_store_address("a:1|b")


def test_the_member_that_writes_is_found_among_dead_ones_and_replicas(
    members: Callable[..., StoreMembers], writer: FakeWriter, replica: str
) -> None:
    group = members(nobody(), replica, writer.address)
    assert group.find(LONG_S).address == writer.address == group.address


def test_a_group_without_a_writer_is_told_from_one_that_is_not_there(
    members: Callable[..., StoreMembers], replica: str
) -> None:
    with pytest.raises(NotLeaderError):
        members(nobody(), replica).find(LONG_S)
    with pytest.raises(WriterUnreachableError):
        members(nobody(), nobody()).find(LONG_S)


def test_calls_wait_for_a_writer(members: Callable[..., StoreMembers], writer: FakeWriter, replica: str) -> None:
    with Topics(timeout_s=LONG_S, members=members(replica, writer.address)) as topics:
        assert topics.route("orders").name == "orders"
    group = members(replica, nobody())
    with (
        Topics(timeout_s=0.3, members=group) as topics,
        pytest.raises(WriterUnreachableError, match=r"no member of .* was the writer within 0.3 s"),
    ):
        topics.route("orders")


def test_a_member_that_hangs_does_not_end_the_wait_for_a_writer(
    members: Callable[..., StoreMembers], writer: FakeWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_members, "_SLICE_S", 0.2)
    writer.stop()
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        later = threading.Timer(0.6, writer.start)
        later.start()
        with Topics(
            timeout_s=LONG_S, members=members(f"127.0.0.1:{hanging.getsockname()[1]}", writer.address)
        ) as topics:
            assert topics.route("orders").name == "orders"
        later.join()


class Stream:
    """A stream with an unanswered batch, connected to *member*."""

    def __init__(self, member: str) -> None:
        self.member = member
        self.left = threading.Event()

    def waiting_s(self) -> float:
        return 60.0

    def leave_member(self) -> None:
        self.left.set()


@pytest.mark.parametrize("is_connected_to_the_writer", [True, False])
def test_a_stream_to_a_silent_member_is_ended_if_another_one_writes(
    members: Callable[..., StoreMembers],
    writer: FakeWriter,
    replica: str,
    is_connected_to_the_writer: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another call may have found the new writer before."""
    monkeypatch.setattr(group_watch, "SILENCE_S", 0.1)
    group = members(replica, writer.address)
    assert group.find(LONG_S).address == writer.address
    stream = Stream(writer.address if is_connected_to_the_writer else replica)
    watch = group_watch.GroupWatch(group, lambda: cast(BatchStream, stream))
    watch.start()
    assert stream.left.wait(0.5 if is_connected_to_the_writer else LONG_S) is not is_connected_to_the_writer
    watch.close()
