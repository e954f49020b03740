from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.writer.batch.batch import QueueKey
from services.writer.batch.record_encoder import u8
from services.writer.config import WriterSettings
from services.writer.log.batch_journal import stretch_of
from services.writer.log.open_store import OpenStore, close_store, open_store, release_store, segment_size
from services.writer.log.queue_offsets import QueueOffsets, Snapshot
from tests.builders import STORE_MS, record_bytes
from tidemark.errors import StoreContradictionError, StoreLockedError
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

FILE_SIZE = 1 << 14
RECORD = record_bytes()
NEXT_OFFSETS = {QueueKey("TopicTest", 0): 1}


def settings_of(root: Path, **given: Any) -> WriterSettings:
    return WriterSettings(
        store_root=root, min_free_disk_bytes=0, **{"commit_log_segment_size_bytes": FILE_SIZE, **given}
    )


def opened(root: Path) -> OpenStore:
    return open_store(settings_of(root), DiskStorage())


def close(store: OpenStore) -> None:
    """Stop cleanly after one record."""
    offsets = QueueOffsets()
    for key, offset in NEXT_OFFSETS.items():
        offsets.set(key, offset)
    close_store(store, Snapshot(len(RECORD), STORE_MS, offsets))


def write_record(store: OpenStore) -> None:
    store.segments.ensure(0)
    store.journal.write([stretch_of(0, u8(RECORD))])
    store.segments.log.write(0, RECORD)


def test_a_store_is_opened_by_one_writer_at_a_time(tmp_path: Path) -> None:
    store = opened(tmp_path)
    with pytest.raises(StoreLockedError):
        opened(tmp_path)
    release_store(store)
    release_store(opened(tmp_path))


@pytest.mark.parametrize("is_clean", [True, False], ids=["a clean stop", "a kill"])
def test_a_restart_keeps_the_log_and_queue_offsets_and_raises_the_term(tmp_path: Path, is_clean: bool) -> None:
    store = opened(tmp_path)
    write_record(store)
    (close if is_clean else release_store)(store)
    again = opened(tmp_path)
    assert (again.recovered.end, dict(again.recovered.offsets)) == (len(RECORD), NEXT_OFFSETS)
    assert again.checkpoint.committed_offset == len(RECORD)
    assert again.term.number > store.term.number
    release_store(again)


def test_a_running_store_has_the_abort_file_of_a_broker(tmp_path: Path) -> None:
    """RocketMQ: a store that has `abort` was not closed, and a broker that finds it recovers."""
    store = opened(tmp_path)
    assert StorePaths(tmp_path).abort.exists()
    release_store(store)
    assert StorePaths(tmp_path).abort.exists()


def test_a_clean_stop_deletes_preallocated_files(tmp_path: Path) -> None:
    store = opened(tmp_path)
    write_record(store)
    store.segments.ensure(FILE_SIZE)
    close(store)
    again = opened(tmp_path)
    assert again.segments.log.starts == [0]
    release_store(again)


def test_a_missing_log_is_not_started_anew(tmp_path: Path) -> None:
    """Numbering that began at 0 again would give queue offsets a second time."""
    store = opened(tmp_path)
    write_record(store)
    close(store)
    (tmp_path / "commitlog").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreContradictionError):
        opened(tmp_path)
    release_store(open_store(settings_of(tmp_path, commit_log_paths="elsewhere"), DiskStorage()))


def test_a_segment_size_that_contradicts_existing_files_is_refused(tmp_path: Path) -> None:
    store = opened(tmp_path)
    write_record(store)
    close(store)
    unset = WriterSettings(store_root=tmp_path)
    assert segment_size(unset, StorePaths(tmp_path)) == FILE_SIZE
    with pytest.raises(StoreContradictionError):
        segment_size(settings_of(tmp_path, commit_log_segment_size_bytes=2 * FILE_SIZE), StorePaths(tmp_path))
