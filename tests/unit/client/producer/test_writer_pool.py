from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.builders import wire_batch
from tests.unit.client.fake_service import GENEROUS_S
from tests.unit.client.fake_writer import FakeWriter, Gate
from tidemark.client.producer.writer_pool import Writers
from tidemark.client.wire.pending_batches import Pending, PendingLimits
from tidemark.errors import ArgumentIllegalError, StoreClosedError
from tidemark.tls.credentials import Credentials
from tidemark.v1 import commit_log_pb2


class Listed:
    """A list of writers that a test changes."""

    def __init__(self, *addresses: str) -> None:
        self.now = addresses

    def addresses(self) -> tuple[str, ...]:
        return self.now


def pool(listed: Listed) -> Writers:
    return Writers(listed, timeout_s=GENEROUS_S, limits=PendingLimits(1 << 20, 100), credentials=Credentials())


def batch(request_id: str, *, messages: int = 1) -> Pending:
    request = commit_log_pb2.AppendBatchRequest(topic="orders", request_id=request_id)
    packed = wire_batch((b"x", b"", 0))
    return Pending(request, packed, len(packed), time.monotonic() + GENEROUS_S, messages=messages)


@pytest.fixture
def pair() -> Iterator[tuple[FakeWriter, FakeWriter]]:
    writers = FakeWriter(store_name="a"), FakeWriter(store_name="b")
    for one in writers:
        one.start()
    yield writers
    for one in writers:
        one.stop()


def test_a_new_writer_gets_a_connection_and_the_others_keep_theirs() -> None:
    listed = Listed("127.0.0.1:1")
    writers = pool(listed)
    first = writers.link("127.0.0.1:1")
    listed.now = ("127.0.0.1:1", "127.0.0.1:2")
    writers.look()
    assert [link.address for link in writers.links()] == ["127.0.0.1:1", "127.0.0.1:2"]
    assert writers.link("127.0.0.1:1") is first


def test_a_removed_writer_gets_no_route_and_its_pending_batches_complete(
    pair: tuple[FakeWriter, FakeWriter],
) -> None:
    gone, kept = pair
    listed = Listed(gone.address, kept.address)
    writers = pool(listed)
    gate = Gate(gone)
    pending = batch("r")
    writers.link(gone.address).stream.submit(pending)
    listed.now = (kept.address,)
    writers.look()
    assert {queue.writer for queue in writers.routes.route("orders").queues} == {kept.address}
    gate.open()
    assert pending.future.result(GENEROUS_S).writer == gone.address
    writers.close(time.monotonic() + GENEROUS_S)


def test_a_changed_writer_list_invalidates_cached_routes(pair: tuple[FakeWriter, FakeWriter]) -> None:
    listed = Listed(pair[0].address)
    writers = pool(listed)
    writers.routes.route("orders")
    writers.look()
    assert writers.routes.known("orders") is not None
    listed.now = (pair[0].address, pair[1].address)
    writers.look()
    assert writers.routes.known("orders") is None
    writers.close(time.monotonic() + GENEROUS_S)


def test_an_address_that_was_never_listed_is_refused() -> None:
    with pytest.raises(ArgumentIllegalError, match="is not the address of a writer"):
        pool(Listed("127.0.0.1:1")).link("127.0.0.1:9")


def test_a_flush_waits_for_the_answers_of_every_writer(pair: tuple[FakeWriter, FakeWriter]) -> None:
    writers = pool(Listed(*(one.address for one in pair)))
    gate = Gate(pair[1])
    for n, one in enumerate(pair):
        writers.link(one.address).stream.submit(batch(f"r{n}", messages=3))
    assert gate.reached.wait(GENEROUS_S)
    assert not writers.flush(0.05)
    assert writers.unanswered()
    gate.open()
    assert writers.flush(GENEROUS_S)
    assert not writers.unanswered()
    writers.close(time.monotonic())


def test_a_batch_after_close_is_refused(pair: tuple[FakeWriter, FakeWriter]) -> None:
    writers = pool(Listed(pair[0].address))
    writers.close(time.monotonic())
    with pytest.raises(StoreClosedError):
        writers.link(pair[0].address).stream.submit(batch("r"))
