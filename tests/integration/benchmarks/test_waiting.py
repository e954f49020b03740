"""Waiting readers of a benchmark, and its sender."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from benchmarks.bare_server import bare_server
from benchmarks.connection import Connection
from benchmarks.open_loop import send_at_rate
from benchmarks.rows.waiting import _BareReader, fill, measure_round
from benchmarks.stack import running
from tidemark.client import Producer, SendResult
from tidemark.errors import StoreError
from tidemark.local.local_stack import LocalStack

pytestmark = pytest.mark.integration
_QUEUES = 103  # of two topics


@pytest.fixture(scope="module")
def plain_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Run all services without Spark."""
    data: Path = tmp_path_factory.mktemp("waiting") / "data"
    with running(data, flush_mode="async", settings={"TIDEMARK_PIPELINE": "plain"}) as stack:
        fill(stack, _QUEUES)
        yield stack


def test_each_message_reaches_the_reader_of_its_queue(plain_stack: LocalStack) -> None:
    """A second round begins at the ends of the queues."""
    for _ in range(2):
        sent, read = measure_round(plain_stack, _QUEUES, 2 * _QUEUES, idle_s=0.1)
        assert len(sent.times) == len(read.times) == 2 * _QUEUES
        assert (read.times > sent.times[0] - 1_000_000_000).all()
        assert (sent.times[1:] > 0).all()
        assert read.cpu_s > 0


def test_each_bare_reader_is_woken_by_its_number() -> None:
    with bare_server("benchmarks.bare_waiting", "700") as server, contextlib.ExitStack() as stack:
        other, *connections = (stack.enter_context(Connection(server.address)) for _ in range(4))
        readers = [_BareReader(connection, number) for number, connection in enumerate(connections)]
        for reader in readers:
            reader.ask()
        assert [int(bytes(other.get(f"/{number}/{number + 40}"))) for number in (2, 0, 1)] == [42, 40, 41]
        assert [reader.answer() for reader in readers] == [[40], [41], [42]]


def test_a_failed_send_has_no_figures(plain_stack: LocalStack) -> None:
    """The sender does not wait for answers, so it reports the failure at the end."""
    with Producer(plain_stack.writer_address) as producer:

        def send(number: int, _: int) -> Future[SendResult]:
            return producer.send_async("waiting-0", b"1", queue_id=100 if number == 1 else 0)

        with pytest.raises(StoreError, match="100"):
            send_at_rate(producer, 3, 1000, send)
