"""The read of a task, also while messages expire during it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.fake_log import FakeLog, FakeMessage, run_of
from tidemark.client.received_message import TopicQueue
from tidemark.errors import (
    CorruptMessageError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    TopicNotFoundError,
    UnavailableError,
)
from tidemark.spark.columns import SCHEMA
from tidemark.spark.source.ranges import QueueRange
from tidemark.spark.source.read_task import read_ranges
from tidemark.spark.source.source_options import SourceOptions, read_options

_QUEUE = TopicQueue("orders", 0)
_WHOLE = QueueRange("orders", 0, 0, 10)
_STRICT: dict[str, str] = {}
_SLOPPY = {"failOnDataLoss": "false", "failOnCorruption": "false"}


def opened(
    log: FakeLog, whole: QueueRange, given: Mapping[str, str] = _STRICT, tags: frozenset[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield batches of *whole*, read from *log*."""
    options = read_options(SourceOptions, {"path": "/store", "subscribe": "orders"} | dict(given))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.spark.source.read_task.open_log", lambda of, columns: log)
        yield from read_ranges([whole], options, SCHEMA, tags)


def read(
    log: FakeLog,
    whole: QueueRange = _WHOLE,
    given: Mapping[str, str] = _STRICT,
    tags: frozenset[str] | None = None,
) -> list[int]:
    """Return the queue offsets of all read messages."""
    batches = list(opened(log, whole, given, tags))
    return [int(offset) for batch in batches for offset in batch.column("queue_offset").to_pylist()]


@pytest.fixture
def log() -> FakeLog:
    """Return a log of ten messages, two a page."""
    return FakeLog({_QUEUE: run_of(0, 10)})


def expire_at(log: FakeLog, offset: int, below: int) -> None:
    """Expire messages below *below* when a page is about to begin at or after *offset*."""

    def lose(begin: int) -> None:
        if begin >= offset:
            log.expire(_QUEUE, below)

    log.on_page = lose


# ── existing messages ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_page_becomes_a_batch_of_spark_columns(log: FakeLog) -> None:
    """Each row has the queue's name."""
    batches = list(opened(log, QueueRange("orders", 0, 3, 8)))
    assert [batch.column("queue_offset").to_pylist() for batch in batches] == [[3, 4], [5, 6], [7]]
    assert {batch.schema.names[0] for batch in batches} == {"topic"}
    assert [row["topic"] for batch in batches for row in batch.to_pylist()] == ["orders"] * 5
    assert [row["body"] for batch in batches for row in batch.to_pylist()] == [b"m3", b"m4", b"m5", b"m6", b"m7"]


def test_an_empty_range_gives_no_batch(log: FakeLog) -> None:
    """Spark gets an empty batch if nothing else is read."""
    assert list(opened(log, QueueRange("orders", 0, 4, 4))) == []
    assert log.closed == 1


def test_only_requested_tags_are_read() -> None:
    """A page without matching messages gives no batch."""
    log = FakeLog({_QUEUE: [FakeMessage(offset, tag="A" if offset in (2, 7) else "B") for offset in range(10)]})
    assert [batch.num_rows for batch in opened(log, _WHOLE, tags=frozenset({"A", "C"}))] == [1, 1]
    assert read(log, tags=frozenset({"A", "C"})) == [2, 7]


def test_only_messages_with_the_key_are_read() -> None:
    """The whole key must match; a page without matching messages gives no batch."""
    keys = [("k1",), ("k2",), ("k", "k3"), (), ("k11",), ("k3", "k1"), (), ("k1", "k1"), (), ()]
    log = FakeLog({_QUEUE: [FakeMessage(offset, keys=own) for offset, own in enumerate(keys)]})
    assert read(log, given={"key": "k1"}) == [0, 5, 7]
    assert [batch.num_rows for batch in opened(log, _WHOLE, {"key": "k1"})] == [1, 1, 1]
    assert read(log, given={"key": "nope"}) == []


# ── damage ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_damaged_record_is_an_error(log: FakeLog) -> None:
    """The error has place and reason; the messages before it were read."""
    log.damaged = frozenset({5})
    batches = opened(log, _WHOLE, {"failOnDataLoss": "false"})
    assert [next(batches).num_rows, next(batches).num_rows] == [2, 2]
    with pytest.raises(CorruptMessageError, match=r"queue 0 of orders.*BODY_CRC at queue offset 5"):
        next(batches)


def test_a_damaged_record_may_be_skipped_with_a_warning(log: FakeLog, caplog: pytest.LogCaptureFixture) -> None:
    """A page may contain nothing else; failOnDataLoss does not matter."""
    log.damaged = frozenset({0, 5, 6, 7})
    with caplog.at_level(logging.WARNING):
        assert read(log, given={"failOnCorruption": "false"}) == [1, 2, 3, 4, 8, 9]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 3
    assert all(any(f"queue offset {offset}" in one for one in told) for offset in (0, 5, 6, 7))


def test_damage_beyond_the_range_is_ignored(log: FakeLog) -> None:
    """Another task reports it."""
    log.damaged = frozenset({2, 7})
    assert read(log, QueueRange("orders", 0, 3, 7)) == [3, 4, 5, 6]


# ── expired messages ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("offset", [0, 4])
def test_deleted_messages_are_an_error(log: FakeLog, offset: int) -> None:
    """The loss may be at the beginning or in the middle of the range."""
    expire_at(log, offset, below=7)
    with pytest.raises(OffsetTooSmallError):
        read(log, given={"failOnCorruption": "false"})
    assert log.closed == 1


@given(
    page_size=st.integers(1, 4),
    cut=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    offset=st.integers(0, 12),
    below=st.integers(0, 11),
)
def test_existing_messages_are_read_once_after_a_loss(
    page_size: int, cut: tuple[int, int], offset: int, below: int
) -> None:
    """With failOnDataLoss=false, all earlier pages and all remaining messages are read once and in order."""
    log = FakeLog({_QUEUE: run_of(0, 12)}, page_size=page_size)
    expire_at(log, offset, below)
    start, end = min(cut), max(cut)
    begins = [begin for begin in range(start, end, page_size) if begin >= offset]
    lost = range(begins[0], min(below, end)) if begins else range(0)
    assert read(log, QueueRange("orders", 0, start, end), _SLOPPY) == [n for n in range(start, end) if n not in lost]


def test_no_message_is_read_twice_after_a_loss_without_new_bounds(log: FakeLog) -> None:
    """A queue's file may be away for a moment; the rest is read, and reading ends."""
    failed: list[int] = []

    def fail_once(begin: int) -> None:
        if begin == 4 and not failed:
            failed.append(begin)
            raise OffsetTooSmallError("the queue's file has expired")

    log.on_page = fail_once
    found = read(log, given=_SLOPPY)
    assert found == sorted(set(found))
    assert set(found) | {4} == set(range(10))


def test_a_skipped_loss_is_logged(log: FakeLog, caplog: pytest.LogCaptureFixture) -> None:
    """There are two warnings if messages expire twice."""

    def lose(begin: int) -> None:
        log.expire(_QUEUE, {2: 4, 6: 9}.get(begin, 0))

    log.on_page = lose
    with caplog.at_level(logging.WARNING):
        assert read(log, given=_SLOPPY) == [0, 1, 4, 5, 9]
    assert len([record for record in caplog.records if "failOnDataLoss" in record.getMessage()]) == 2


def test_a_deleted_topic_ends_the_range(log: FakeLog) -> None:
    """The deletion is an error, or with failOnDataLoss=false the end of the range."""

    def delete(begin: int) -> None:
        if begin == 4:
            del log.queues[_QUEUE]

    log.on_page = delete
    kept = log.queues[_QUEUE]
    with pytest.raises(TopicNotFoundError):
        read(log)
    log.queues[_QUEUE] = kept
    assert read(log, given=_SLOPPY) == [0, 1, 2, 3]


def test_a_range_beyond_the_queues_end_is_a_loss(log: FakeLog) -> None:
    """It is an error; with failOnDataLoss=false the existing messages are read."""
    with pytest.raises(OffsetOutOfRangeError):
        read(log, QueueRange("orders", 0, 7, 12))
    assert read(log, QueueRange("orders", 0, 7, 12), _SLOPPY) == [7, 8, 9]


def test_an_unavailable_log_is_always_an_error(log: FakeLog) -> None:
    """It is no loss: Spark tries the task again."""

    def fail(begin: int) -> None:
        if begin == 4:
            raise UnavailableError("not now")

    log.on_page = fail
    with pytest.raises(UnavailableError):
        read(log, given=_SLOPPY)
    assert log.closed == 1


def test_a_topic_deleted_after_a_loss_ends_the_range(log: FakeLog) -> None:
    """After a loss the queue's bounds are read again, and the queue is gone by then."""

    def delete(begin: int) -> None:
        if begin == 4:
            del log.queues[_QUEUE]
            raise OffsetTooSmallError("messages are gone", min_offset=7)

    log.on_page = delete
    assert read(log, given=_SLOPPY) == [0, 1, 2, 3]


# ── the log is closed ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_log_is_closed_after_the_last_batch(log: FakeLog) -> None:
    """It is not closed before."""
    batches = opened(log, _WHOLE)
    assert (len(next(batches)), log.closed) == (2, 0)
    assert (len(list(batches)), log.closed) == (4, 1)


def test_the_log_is_closed_when_the_reader_stops(log: FakeLog) -> None:
    """`limit` does this."""
    batches = read_ranges(
        [_WHOLE], read_options(SourceOptions, {"path": "/store", "subscribe": "orders"}), SCHEMA, None
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.spark.source.read_task.open_log", lambda of, columns: log)
        next(batches)
    assert log.closed == 0
    batches.close()  # type: ignore[attr-defined]
    assert log.closed == 1


def test_the_log_is_closed_after_an_error(log: FakeLog) -> None:
    """The error is a damaged record."""
    log.damaged = frozenset({3})
    with pytest.raises(CorruptMessageError):
        read(log)
    assert log.closed == 1
