"""Failures of trusted logs with their log files and appends: each is one test, named by its number.

A docstring states the failure elsewhere, and after "; here" Tidemark's behaviour: docs/guarantees.md is made of them.
"""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from services.writer.log.recovery import recover
from services.writer.log.segments import Segments
from tests.builders import BODY_OF_CRC_0, properties, record_bytes, wire_batch
from tests.conformance.peer.message_store import FOUND, MessageStore, rows_of
from tests.crash.writer.test_recovery import FILE_SIZE, confirm, content, make_log, patch, run
from tests.crash.writer.test_torn_batch import recovered_end
from tests.integration.writer.faulty_storage import FaultyStorage, full_for_records
from tests.integration.writer.harness import RunningWriter, log_bytes, stored_records
from tests.query_server import serve_query
from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths

pytestmark = pytest.mark.crash


def test_kf01_a_stale_record_after_the_end_is_not_recovered(tmp_path: Path) -> None:
    """A record left in a reused file was recovered (rocketmq#10017); here a record must be at the position that it
    states.
    """
    log = make_log(tmp_path, 5)
    patch(log.paths, log.end, record_bytes(topic=b"T", queue_id=1, queue_offset=2, physical_offset=log.end + FILE_SIZE))
    recovered = run(log.paths)
    assert (recovered.end, recovered.damages) == (log.end, [])
    assert not any(content(log.paths)[log.end :])


def test_kf02_a_crash_at_any_step_of_a_truncation_restores_no_record(tmp_path: Path) -> None:
    """A cut tail was valid again after a crash, because truncation only moved pointers (rocketmq#10666); here truncated
    bytes are zeroed and synced.
    """
    log = make_log(tmp_path, 60)
    torn = log.places[10]
    patch(log.paths, torn + 100, b"?")
    before = {path: path.read_bytes() for path in log.paths.commit_log.iterdir()}
    died = 0
    for step in range(100):
        for path, data in before.items():
            path.write_bytes(data)
        storage = RecordingStorage(die_before=step)
        segments = Segments(MappedFileQueue(log.paths.commit_log, FILE_SIZE, storage))
        try:
            recover(log.paths, segments, rebuild_bytes=0)
        except KilledHere:
            died += 1
        finally:
            segments.log.close()
        assert run(log.paths).end == torn
        assert not any(content(log.paths)[torn:])
        if died <= step:
            break
    assert died >= 3
    assert "fdatasync" in storage.steps[storage.steps.index("pwrite") :], "zeroed bytes must be synced"


def test_kf03_a_last_message_torn_at_any_byte_is_cut(tmp_path: Path) -> None:
    """Torn properties, which the body's CRC does not cover, stopped the dispatch later (rocketmq#7437); here the batch
    journal covers every byte, and the torn message is removed.
    """
    wire = wire_batch((b"body", properties({"UNIQ_KEY": "k1", "TAGS": "tag", "name": "a value"}), 0))
    with RunningWriter(tmp_path) as writer:
        start = writer.append("t", wire_batch((b"first", b"", 0))).end_physical_offset
        end = writer.append("t", wire).end_physical_offset
    assert end > start
    paths = StorePaths(tmp_path)
    confirm(paths, start)
    path = paths.commit_log / f"{0:020d}"
    whole = path.read_bytes()
    for torn in range(start, end):
        path.write_bytes(whole[:torn] + bytes(len(whole) - torn))
        assert recovered_end(paths) == start, torn
        assert not any(path.read_bytes()[start:])
    path.write_bytes(whole)
    assert recovered_end(paths) == end


def test_kf04_a_body_with_crc_0_is_valid(tmp_path: Path) -> None:
    """A CRC of 0 was taken for none, and good messages were cut (rocketmq#9121); here 0 is a valid CRC in recovery,
    pipeline and readers.
    """
    with MessageStore(tmp_path) as store:
        end = store.put("t", (BODY_OF_CRC_0, {})).end_physical_offset
    with MessageStore(tmp_path) as store:
        assert store.max_physical_offset == end
        store.dispatch()
        result = store.get_message("t", 0, 1)
        assert (result.status, rows_of(result)[0]["body_crc"]) == (FOUND, 0)


def test_kf09_restarts_without_appends_change_no_byte(tmp_path: Path) -> None:
    """Each restart cut more of the log (rocketmq#6665); here a log is the same after any number of restarts."""
    with RunningWriter(tmp_path) as writer:
        for number in range(50):
            writer.append("t", wire_batch((b"%d" % number * 100, b"", 0)))
    before = {start: data for start, data in log_bytes(tmp_path).items() if any(data)}
    for _ in range(5):
        with RunningWriter(tmp_path):
            pass
        assert {start: data for start, data in log_bytes(tmp_path).items() if any(data)} == before


def test_kf10_a_refused_append_leaves_no_hole(tmp_path: Path) -> None:
    """A failed append left a hole in its queue (rocketmq#6570); here refused and failed appends use no queue offset."""
    storage = FaultyStorage()
    with MessageStore(tmp_path, storage=storage, max_message_size_bytes=10_000) as store:
        assert store.put("t", (b"0", {})).queue_offset == 0
        store.refused("t", (bytes(10_001), {}))
        store.refused("t", (b"x", {}), sys_flag=0x4)
        storage.fail_pwrite = full_for_records
        store.refused("t", (b"x" * 500, {}))
        storage.fail_pwrite = lambda data: None
        assert store.put("t", (b"1", {})).queue_offset == 1
        store.dispatch()
        assert [row["body"] for row in rows_of(store.get_message("t", 0, 10))] == ["0", "1"]


def test_kf11_concurrent_appends_share_no_queue_offset(tmp_path: Path) -> None:
    """Two messages got one queue offset, assigned outside of the lock (rocketmq#7689, rocketmq#2865); here concurrent
    batches use each offset once, densely.
    """
    with RunningWriter(tmp_path, default_queues=2) as writer:

        def send(client: int) -> None:
            for number in range(40):
                elements = [(b"%d-%d-%d" % (client, number, part), b"", 0) for part in range(number % 5 + 1)]
                writer.append("t", wire_batch(*elements), queue_id=number % 2)

        threads = [threading.Thread(target=send, args=(client,)) for client in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = stored_records(tmp_path)
    assert len({record.body for record in records}) == len(records) == 8 * sum(n % 5 + 1 for n in range(40))
    for queue_id in range(2):
        offsets = [record.queue_offset for record in records if record.queue_id == queue_id]
        assert offsets == list(range(len(offsets)))


def test_kf17_a_queue_holds_only_batches_its_readers_can_unwrap(tmp_path: Path) -> None:
    """Batches reached topics whose clients could not unwrap them, and could not be read by id (rocketmq#4563,
    rocketmq#7764); here flags must fit the topic, and an id gives every message of its batch.
    """
    with MessageStore(tmp_path) as store:
        store.create_topic("simple")
        store.create_topic("batch", batch=True)
        for flags in (0x40, 0x80, 0xC0):
            assert store.refused("simple", (b"x", {}), sys_flag=flags).reason == "INNER_BATCH_ILLEGAL"
        assert store.refused("simple", (b"x", {"INNER_NUM": "2"})).reason == "INNER_BATCH_ILLEGAL"
        assert store.refused("batch", (b"x", {}), sys_flag=1).reason == "INNER_BATCH_ILLEGAL"
        answer = store.put("batch", (b"a", {}), (b"b", {}))
        message_id = (answer.store_host + answer.physical_offsets).hex().upper()
        store.dispatch()
        with serve_query(tmp_path, index_slots=100, index_entries=1000) as client:
            found = client.get(f"/v1/messages/{message_id}?body_encoding=utf8").json()["messages"]
        assert [(message["queue_offset"], message["body"]) for message in found] == [(0, "a"), (1, "b")]


@pytest.mark.parametrize(
    ("number", "reason"), [(errno.ENOSPC, "DISK_FULL"), (errno.EROFS, "DISK_FAILED"), (errno.EIO, "DISK_FAILED")]
)
def test_kf18_an_unwritable_disk_is_an_error_and_not_a_crash(tmp_path: Path, number: int, reason: str) -> None:
    """Writing through a mapping to a full or read-only disk killed the process (rocketmq#9693, rocketmq#8405); here
    pwrite writes data files, and the failing append is refused.
    """
    storage = FaultyStorage()
    with MessageStore(tmp_path, storage=storage) as store:
        store.put("t", (b"0", {}))
        storage.fail_pwrite = lambda data: OSError(number, "injected") if len(data) > 64 and any(data) else None
        assert store.refused("t", (b"x" * 500, {})).reason == reason
        storage.fail_pwrite = lambda data: None
        assert store.put("t", (b"1", {})).queue_offset == 1
        assert store.writer.failure is None


def test_kf20_appends_succeed_again_when_a_full_disk_has_room(tmp_path: Path) -> None:
    """The flag of a full disk was never cleared (alibaba/rocketmq#331); here each append is tried anew."""
    storage = FaultyStorage()
    with MessageStore(tmp_path, storage=storage) as store:
        store.put("t", (b"0", {}))
        storage.fail_pwrite = full_for_records
        for _ in range(3):
            assert store.refused("t", (b"x" * 500, {})).reason == "DISK_FULL"
        storage.fail_pwrite = lambda data: None
        assert store.put("t", (b"1" * 500, {})).queue_offset == 1
