from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from grpc_status import rpc_status

from tests.unit.client.fake_writer import FakeWriter, refusal
from tidemark.client.errors.address_faults import members_of, require_store_address
from tidemark.client.wire.store_members import StoreMembers
from tidemark.client.wire.topic_admin import Topics
from tidemark.errors import ArgumentIllegalError, NotLeaderError, WriterUnreachableError
from tidemark.local.local_stack import free_port

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
    return f"127.0.0.1:{free_port()}"


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
