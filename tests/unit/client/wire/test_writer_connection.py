from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_query import Reply, fake_query
from tests.unit.client.fake_writer import FakeWriter
from tidemark.client.wire.pending_batches import PendingLimits
from tidemark.client.wire.writer_connection import WriterLink
from tidemark.errors import MessageSizeExceededError, WriterUnreachableError
from tidemark.tls.credentials import Credentials

TIMEOUT_S = 20.0
GREATEST = 4 << 20  # the fake writer's limit of one batch


def link_to(address: str, *, timeout_s: float = TIMEOUT_S) -> WriterLink:
    return WriterLink(address, timeout_s=timeout_s, limits=PendingLimits(1 << 20, 100), credentials=Credentials())


@pytest.fixture
def link(writer: FakeWriter) -> Iterator[WriterLink]:
    made = link_to(writer.address)
    yield made
    made.close(time.monotonic())


def test_a_route_is_requested_without_blocking(writer: FakeWriter, link: WriterLink) -> None:
    answer = link.ask_route("orders").result(TIMEOUT_S)
    assert (answer.store_name, answer.topic.name, answer.topic.write_queue_count) == ("fake", "orders", 4)


def test_a_batch_above_twice_the_writers_limit_is_not_sent(link: WriterLink) -> None:
    """The writer refuses it with a reason; its transport would end the stream for a greater one."""
    link.require_transportable(2 * GREATEST)
    with pytest.raises(MessageSizeExceededError) as refused:
        link.require_transportable(2 * GREATEST + 1)
    assert (refused.value.facts["size"], refused.value.facts["limit"]) == (2 * GREATEST + 1, GREATEST)


def test_a_small_batch_is_allowed_without_a_reachable_writer() -> None:
    link = link_to(f"127.0.0.1:{fixed_port()}", timeout_s=0.1)
    link.require_transportable(1 << 20)
    link.close(time.monotonic())


def test_another_service_at_the_writer_port_is_a_wrong_address() -> None:
    with fake_query(lambda _: Reply()) as fake:
        link = link_to(fake.url.removeprefix("http://"))
        assert isinstance(link.wrong_address(), WriterUnreachableError)
        link.close(time.monotonic())


def test_an_address_that_has_answered_as_a_writer_is_never_wrong() -> None:
    """Another service may have its port for a while, as during a restart."""
    with fake_query(lambda _: Reply()) as fake:
        link = link_to(fake.url.removeprefix("http://"))
        link.stream.has_connected = True
        assert link.wrong_address() is None
        link.close(time.monotonic())


def test_links_share_one_connection_for_calls_and_topics(writer: FakeWriter, link: WriterLink) -> None:
    assert link.log_info().max_message_size_bytes == GREATEST
    assert link.topics.route("orders").write_queues == 4
    link.topics.close()
    assert link.topics.route("orders").write_queues == 4
    assert link.log_info().max_message_size_bytes == GREATEST, "the channel is the link's own"
