"""RocketMQ's ReputMessageServiceTest: nothing is ever synced; ten messages of 158 bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.peer.message_store import FOUND, MessageStore, rows_of
from tests.integration.writer.faulty_storage import FaultyStorage
from tidemark.read.pull import PullStatus
from tidemark.v1 import commit_log_pb2 as pb

pytestmark = pytest.mark.conformance

MESSAGE = (b"b" * 32, {"TAGS": "TAG1", "KEYS": "1700000000000"})


def put_ten(store: MessageStore, storage: FaultyStorage) -> list[pb.AppendBatchResponse]:
    """Put ten messages while the disk's syncs are blocked."""
    store.create_topic("FooBar")
    storage.fdatasync_gate.clear()
    return [store.put("FooBar", MESSAGE) for _ in range(10)]


def test_rms1_messages_in_sync_mode_are_visible_after_the_flush(tmp_path: Path) -> None:
    """The log ends at 1580, nothing is flushed: the queue is empty. After the sync all ten are there."""
    storage = FaultyStorage()
    with MessageStore(tmp_path, storage=storage, sync_flush_timeout_ms=20) as store:
        try:
            answers = put_ten(store, storage)
            assert {answer.status for answer in answers} == {pb.PUT_STATUS_FLUSH_DISK_TIMEOUT}
            info = store.writer.info()
            assert (info.max_physical_offset, info.flushed_offset, info.committed_offset) == (1580, 0, 0)
            store.dispatch()
            assert store.bounds("FooBar").max_offset == 0
            assert store.get_message("FooBar", 0, 32).status is PullStatus.NO_MESSAGE_IN_QUEUE
        finally:
            storage.fdatasync_gate.set()
        store.put("FooBar", MESSAGE)
        store.wait_for_commit()
        store.dispatch()
        assert store.bounds("FooBar").max_offset == 11


def test_rms2_messages_in_async_mode_are_visible_before_the_flush(tmp_path: Path) -> None:
    """All ten are returned although nothing is flushed."""
    storage = FaultyStorage()
    with MessageStore(tmp_path, storage=storage, flush_mode="async") as store:
        try:
            put_ten(store, storage)
            info = store.writer.info()
            assert (info.max_physical_offset, info.flushed_offset) == (1580, 0)
            store.dispatch()
            assert store.bounds("FooBar").max_offset == 10
            result = store.get_message("FooBar", 0, 32)
            assert (result.status, len(rows_of(result))) == (FOUND, 10)
        finally:
            storage.fdatasync_gate.set()
