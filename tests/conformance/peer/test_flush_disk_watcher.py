"""RocketMQ's FlushDiskWatcherTest: appends whose flush comes too late, and in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import wire_batch
from tests.conformance.peer.message_store import MessageStore
from tests.integration.writer.faulty_storage import FaultyStorage
from tidemark.v1 import commit_log_pb2 as pb

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize(("held_back", "timeout_ms"), [(True, 200), (False, 30_000)], ids=["too late", "at once"])
def test_fw1_a_hundred_appends_are_answered_by_their_flush_or_timeout(
    tmp_path: Path, held_back: bool, timeout_ms: int
) -> None:
    """Too late: all FLUSH_DISK_TIMEOUT, with their offsets. At once: all PUT_OK. No append keeps waiting."""
    storage = FaultyStorage()
    with MessageStore(tmp_path, storage=storage, sync_flush_timeout_ms=timeout_ms) as store:
        store.create_topic("t")
        if held_back:
            storage.fdatasync_gate.clear()
        try:
            calls = [
                store.writer.log.AppendBatch.future(
                    pb.AppendBatchRequest(topic="t", queue_id=0, packed=wire_batch((b"%d" % number, b"", 0))),
                    timeout=60,
                )
                for number in range(100)
            ]
            answers = [call.result() for call in calls]
        finally:
            storage.fdatasync_gate.set()
        expected = pb.PUT_STATUS_FLUSH_DISK_TIMEOUT if held_back else pb.PUT_STATUS_PUT_OK
        assert {answer.status for answer in answers} == {expected}
        assert sorted(answer.queue_offset for answer in answers) == list(range(100))
        assert store.put("t", (b"after", {})).queue_offset == 100
