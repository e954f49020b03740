"""Files that a broker trusts in a directory: `abort`, and the times in `checkpoint`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders import properties, write_log
from tests.pipeline_runs import build, plan_of
from tidemark.index.broker_trust import give_trust, last_store_timestamp, mark_running, withdraw_trust
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

FIRST_MS = 1_700_000_000_000
RECORDS, SHARDS = 40, 2
KEYS_UNTIL = 30  # records from here on have no key, so the index ends before the log
TIMES = (Field.PHYSIC_MESSAGE_TIMESTAMP, Field.LOGICS_MESSAGE_TIMESTAMP, Field.INDEX_MESSAGE_TIMESTAMP)


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    """Return a fully built store of several files that its writer has marked as running."""
    fields = [
        {
            "queue_offset": i,
            "store_timestamp": FIRST_MS + 10 * i,
            "properties": properties({"UNIQ_KEY": f"u{i}"} if i < KEYS_UNTIL else {"TAGS": "A"}),
        }
        for i in range(RECORDS)
    ]
    paths = StorePaths(tmp_path)
    write_log(paths.commit_log, 4096, fields)
    build(plan_of(tmp_path, shards=SHARDS, index_slots=16, index_entries=20, consume_queue_file_size_bytes=200))
    withdraw_trust(paths, DiskStorage())
    mark_running(paths, DiskStorage())
    return paths


def times(paths: StorePaths) -> list[int]:
    checkpoint = Checkpoint.open_read_only(paths.checkpoint)
    try:
        return [checkpoint.get(field) for field in TIMES]
    finally:
        checkpoint.close()


def end_and_time(paths: StorePaths) -> tuple[int, int]:
    plan = plan_of(paths.root)
    assert plan.limit is not None
    log = plan.open_log()
    try:
        return plan.limit, last_store_timestamp(log, plan.limit)
    finally:
        log.close()


def test_trust_is_given_when_everything_is_built(paths: StorePaths) -> None:
    """`abort` is removed; the times of log and queues reach the last record, the index's its last key."""
    end, store_timestamp = end_and_time(paths)
    assert store_timestamp == FIRST_MS + 10 * (RECORDS - 1)
    assert give_trust(paths, end, store_timestamp=store_timestamp, storage=DiskStorage())
    assert not paths.abort.exists()
    assert times(paths) == [store_timestamp, store_timestamp, FIRST_MS + 10 * (KEYS_UNTIL - 1)]


@pytest.mark.parametrize("shard", range(SHARDS + 1))
def test_one_lagging_shard_prevents_trust(paths: StorePaths, shard: int) -> None:
    """The key index, which is the last shard, counts as the others; no file is changed."""
    end, store_timestamp = end_and_time(paths)
    marks = Marks.open_to_write(paths.marks, DiskStorage(), shards=SHARDS + 1, term=0)
    marks.set_back(shard, 0)
    marks.close()
    assert not give_trust(paths, end, store_timestamp=store_timestamp, storage=DiskStorage())
    assert paths.abort.read_text().split()[0] == str(os.getpid())
    assert times(paths)[1:] == [0, 0]


def test_marks_beyond_the_log_give_no_trust(paths: StorePaths) -> None:
    """A truncated log has queue units past its end."""
    end, store_timestamp = end_and_time(paths)
    assert not give_trust(paths, end - 200, store_timestamp=store_timestamp, storage=DiskStorage())


def test_withdrawing_trust_zeroes_both_times(paths: StorePaths) -> None:
    """Both times are zero: a single one would make a broker lose index files."""
    end, store_timestamp = end_and_time(paths)
    give_trust(paths, end, store_timestamp=store_timestamp, storage=DiskStorage())
    withdraw_trust(paths, DiskStorage())
    assert times(paths) == [store_timestamp, 0, 0]


def test_the_abort_file_is_recreated_at_each_start(paths: StorePaths) -> None:
    """The writer's journal of batches identifies its run by the file."""
    before = paths.abort.stat().st_ino
    kept = paths.abort.open()  # so that the inode number is not reused
    mark_running(paths, DiskStorage())
    assert paths.abort.stat().st_ino != before
    kept.close()


def test_an_empty_log_has_no_time(tmp_path: Path) -> None:
    """The files claim nothing."""
    paths = StorePaths(tmp_path)
    paths.commit_log.mkdir()
    assert end_and_time(paths) == (0, 0)
