"""Division of lines into batches by queue, number and size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.client.fake_writer import FakeWriter, Result, refusal
from tidemark.cli.sending.line_input import LineRow
from tidemark.cli.sending.send_lines import send_lines
from tidemark.client import Producer
from tidemark.errors import MessageSizeExceededError, PropertiesIllegalError, TopicForbiddenError
from tidemark.format.primitives import java_hash


@pytest.fixture
def writer() -> Iterator[FakeWriter]:
    """Return a running fake writer."""
    fake = FakeWriter()
    fake.start()
    yield fake
    fake.stop()


def _send(writer: FakeWriter, rows: list[LineRow], *, batch_size: int = 1000) -> list[int]:
    """Send the rows; return the number of acknowledged rows of each batch."""
    acknowledged: list[int] = []
    with Producer(writer.address, timeout_s=5) as producer:
        send_lines(producer, "lines", rows, batch_size=batch_size, on_acknowledged=acknowledged.append)
    return acknowledged


def test_a_batch_has_at_most_batch_size_lines(writer: FakeWriter) -> None:
    """All are acknowledged; the last batch holds the rest."""
    assert sorted(_send(writer, [LineRow(b"%d" % n) for n in range(25)], batch_size=10)) == [5, 10, 10]


def test_a_batch_has_at_most_about_one_mebibyte(writer: FakeWriter) -> None:
    """The limit is about 1 MiB."""
    assert _send(writer, [LineRow(bytes(600_000))] * 3) == [1, 1, 1]


def test_lines_of_a_key_stay_in_order_in_the_keys_queue(writer: FakeWriter) -> None:
    """The queue is the one that a single send would choose."""
    rows = [LineRow(b"%d" % n, key=f"k{n % 7}") for n in range(100)]
    assert sum(_send(writer, rows, batch_size=5)) == 100
    for queue_id, elements in writer.stored.items():
        bodies = [row.body for row in rows if row.key and abs(java_hash(row.key)) % writer.queues == queue_id]
        assert [element.body for element in elements] == bodies


def test_an_invalid_line_is_reported_and_none_is_sent(writer: FakeWriter) -> None:
    """The error names the row's number."""
    with pytest.raises(PropertiesIllegalError) as raised:
        _send(writer, [LineRow(b"a"), LineRow(b"b", key="c d")])
    assert (raised.value.facts["row"], writer.received) == (1, [])


def test_a_refusal_is_raised_and_acknowledged_lines_are_reported() -> None:
    """The first batch is stored, the second is not."""
    fake = FakeWriter(
        lambda entry: (
            Result(correlation_id=entry.correlation_id, error=refusal("TOPIC_FORBIDDEN")) if fake.received else None
        )
    )
    fake.start()
    acknowledged: list[int] = []
    with Producer(fake.address, timeout_s=5, retries=0) as producer, pytest.raises(TopicForbiddenError):
        send_lines(producer, "lines", [LineRow(b"a")] * 4, batch_size=2, on_acknowledged=acknowledged.append)
    fake.stop()
    assert acknowledged == [2]


def test_a_refused_line_sent_alone_is_reported_with_its_row() -> None:
    """A large line is sent as a batch of its own."""
    fake = FakeWriter(
        lambda entry: (
            Result(correlation_id=entry.correlation_id, error=refusal("MESSAGE_SIZE_EXCEEDED"))
            if len(entry.batch.packed) > 1 << 21
            else None
        )
    )
    fake.start()
    with pytest.raises(MessageSizeExceededError) as raised:
        _send(fake, [LineRow(b"a"), LineRow(bytes(3 << 20)), LineRow(b"c")])
    fake.stop()
    assert raised.value.facts["row"] == 1
