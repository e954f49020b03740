from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.writer.batch.batch import Batch, Wrapper
from services.writer.batch.record_encoder import Encoder, RecordPosition
from services.writer.dedup.duplicate_search import find_original
from services.writer.dedup.recent_batches import Earlier
from tests.builders import BORN_HOST, BORN_MS, STORE_HOST, STORE_MS
from tests.unit.writer.batches import batch_of
from tidemark.errors import RequestConflictError
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

AT = 4096


@pytest.fixture
def log(tmp_path: Path) -> Iterator[MappedFileQueue]:
    log = MappedFileQueue(tmp_path / "commitlog", 1 << 16, DiskStorage())
    log.create_file(0)
    yield log
    log.close()


def store(log: MappedFileQueue, batch: Batch, *, queue_offset: int = 5) -> None:
    """Write *batch* at AT, as the writer does."""
    encoder = Encoder(STORE_HOST)
    out = np.zeros(encoder.size(batch, queue_offset), np.uint8)
    encoder.encode(batch, RecordPosition(queue_offset, AT, STORE_MS), out)
    log.write(AT, out.tobytes())


def find(log: MappedFileQueue, batch: Batch, *, count: int | None = None, dead_end: int = 0) -> int | None:
    """Return the queue offset of the original at AT; None if there is none."""
    found = find_original(log, batch, [Earlier(AT, count)], lambda _: dead_end)
    assert found is None or found.duplicate
    return None if found is None else found.queue_offset


def test_a_repeated_batch_has_the_offset_of_its_original(log: MappedFileQueue) -> None:
    store(log, batch_of(b"one", b"two", key="id"))
    assert find(log, batch_of(b"one", b"two", key="id"), count=2) == 5
    assert find(log, batch_of(b"one", b"two", key="id")) == 5, "a place in the log's tail has no count"


def test_a_repeat_from_another_address_and_time_is_a_duplicate(log: MappedFileQueue) -> None:
    store(log, batch_of(b"one", key="id"))
    later = batch_of(b"one", key="id", wrapper=Wrapper(b"\x0a\x00\x00\x01" + BORN_HOST[4:], BORN_MS + 9))
    assert find(log, later, count=1) == 5


@pytest.mark.parametrize("bodies", [(b"other",), (b"one", b"two")], ids=["another body", "another count"])
def test_different_content_under_the_same_key_is_a_conflict(log: MappedFileQueue, bodies: tuple[bytes, ...]) -> None:
    store(log, batch_of(b"one", key="id"))
    with pytest.raises(RequestConflictError) as conflict:
        find(log, batch_of(*bodies, key="id"), count=1)
    assert conflict.value.facts["physical_offset"] == AT


def test_a_record_of_another_key_topic_or_attempt_is_not_an_original(log: MappedFileQueue) -> None:
    """Different keys may have the same hash."""
    store(log, batch_of(b"one", key="id"))
    assert find(log, batch_of(b"one", key="another")) is None
    assert find(log, batch_of(b"one", key="id", topic="others")) is None
    assert find(log, batch_of(b"one", key="id", wrapper=Wrapper(BORN_HOST, BORN_MS, reconsume_times=1))) is None


def test_a_record_of_a_deleted_topic_is_not_an_original(log: MappedFileQueue) -> None:
    store(log, batch_of(b"one", key="id"))
    assert find(log, batch_of(b"one", key="id"), dead_end=AT + 1) is None
    assert find(log, batch_of(b"one", key="id"), dead_end=AT) == 5


def test_a_damaged_or_missing_record_is_not_an_original(log: MappedFileQueue) -> None:
    assert find(log, batch_of(b"one", key="id")) is None
    store(log, batch_of(b"one", key="id"))
    log.write(AT + 4, b"\x00\x00\x00\x00")  # its magic
    assert find(log, batch_of(b"one", key="id")) is None


def test_a_delivery_may_have_the_key_of_another_message(log: MappedFileQueue) -> None:
    store(log, batch_of(b"one", key="id"))
    assert find(log, replace(batch_of(b"other", key="id"), may_share_key=True)) is None


def test_a_repeat_goes_to_the_queue_of_its_original(log: MappedFileQueue) -> None:
    store(log, batch_of(b"one", key="id", queue_id=3))
    found = find_original(log, batch_of(b"one", key="id", queue_id=0), [Earlier(AT, 1)], lambda _: 0)
    assert found is not None
    assert (found.queue_id, found.physical_offset) == (3, AT)
