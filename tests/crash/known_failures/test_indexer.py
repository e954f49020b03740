"""Failures of trusted logs between log and queues: each is one test, named by its number. See test_log.py."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch import run_epoch
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.prepare import prepare
from tests.builders import Placed, properties, write_log
from tests.conformance.peer.message_store import FOUND, MessageStore, rows_of
from tests.crash.pipeline.test_every_write import SETTINGS as STORE_SETTINGS
from tests.crash.pipeline.test_every_write import DyingStorage, Killed, make_store
from tests.crash.pipeline.test_failed_sync import FailingSync, lose_everything
from tests.crash.writer.test_power_cut import lose, reboot
from tests.integration.pipeline.test_pipeline_process import events, run_once
from tests.integration.writer.faulty_storage import FaultyStorage
from tests.pipeline_runs import build, index_contents, plan_of, queue_files
from tidemark.errors import FlushFailedError, StoreContradictionError
from tidemark.format import batch_consume_queue, consume_queue
from tidemark.read.store_reader import StoreReader
from tidemark.store.flushed import Flushed
from tidemark.store.mapped_file_queue import file_name
from tidemark.store.marks import Marks
from tidemark.store.originals.topics import TopicConfig, save_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.crash

INDEX: dict[str, Any] = {"index_slots": 16, "index_entries": 30}


@pytest.mark.parametrize("seed", range(12))
def test_kf05_two_consecutive_kills_leave_the_bytes_of_a_rebuild(tmp_path: Path, seed: int) -> None:
    """After abnormal stops queues held entries of removed records, or missed one (rocketmq#467, rocketmq#495); here two
    kills at any write end with a rebuild's bytes.
    """
    dice = random.Random(seed)
    clean, root = make_store(tmp_path / "clean"), make_store(tmp_path / "store")
    counting = DyingStorage(10_000)
    build(plan_of(clean, **STORE_SETTINGS), counting)
    half = (10_000 - counting.lives) // 2  # of its writes: after the first kill more than that are left
    for _ in range(2):
        with pytest.raises(Killed):
            build(plan_of(root, **STORE_SETTINGS), DyingStorage(dice.randrange(1, half), torn=dice.random() < 0.5))
    build(plan_of(root, **STORE_SETTINGS))
    assert queue_files(root) == queue_files(clean)
    assert index_contents(root) == index_contents(clean)


def numbered_log(root: Path, count: int = 40) -> list[Placed]:
    """Write one queue over several files of 4 KiB, two keys a record."""
    fields = (
        {"body": b"%d" % i, "queue_offset": i, "properties": properties({"KEYS": f"a{i} b"})} for i in range(count)
    )
    return write_log(root / "commitlog", 4096, fields)


def test_kf06_a_tail_before_a_roll_is_indexed_after_a_crash(tmp_path: Path) -> None:
    """A crash after a roll left the previous file's last records without queue entries (rocketmq#1434, rocketmq#405);
    here indexing continues from the mark, whichever file contains it.
    """
    settings = {**INDEX, "consume_queue_file_size_bytes": 200}
    numbered_log(tmp_path / "clean")
    build(plan_of(tmp_path / "clean", **settings))
    places = [one.physical_offset for one in numbered_log(tmp_path / "0")]
    roll = next(i for i, place in enumerate(places) if place >= 4096)
    for number in range(roll - 3, roll + 2):
        root = tmp_path / str(number)
        numbered_log(root)
        build(make_plan(PipelineSettings(store_root=root, once=True, **settings), limit=places[number]))
        build(plan_of(root, **settings))
        assert queue_files(root) == queue_files(tmp_path / "clean")
        assert index_contents(root) == index_contents(tmp_path / "clean")


def test_kf07_a_durable_mark_moves_only_after_the_sync(tmp_path: Path) -> None:
    """The checkpoint was ahead of the flushed data, and a power cut left a gap in the queues (rocketmq#678); here a
    durable mark moves after its data's sync.
    """
    clean, root = make_store(tmp_path / "clean"), make_store(tmp_path / "store")
    build(plan_of(clean, **STORE_SETTINGS))
    plan = plan_of(root, **STORE_SETTINGS)
    plan.paths.indexer.mkdir(parents=True)
    prepare(plan, DiskStorage())
    for shard in range(plan.all_shards):
        with pytest.raises(FlushFailedError):
            run_epoch(plan, shard=shard, follower=0, storage=FailingSync())
    marks = Marks.open_read_only(plan.paths.marks)
    assert marks.greatest_durable() == 0
    marks.close()
    lose_everything(root)
    build(plan_of(root, **STORE_SETTINGS))
    assert queue_files(root) == queue_files(clean)
    assert index_contents(root) == index_contents(clean)


def test_kf08_a_watermark_above_the_recovered_log_is_lowered(tmp_path: Path) -> None:
    """Queues were built past the log's end after the loss of unflushed bytes (rocketmq#6609, rocketmq#6703); here a new
    term sets watermark, queues and index back to the recovered end.
    """
    paths = StorePaths(tmp_path)
    with MessageStore(tmp_path, flush_mode="async") as store:
        answers = [store.put("t", (b"%d" % i, {"KEYS": f"k{i}"})) for i in range(10)]
        store.dispatch()
        assert store.bounds("t").max_offset == 10
    kept, end = answers[7].physical_offset, answers[-1].end_physical_offset
    lose(paths, kept, end)
    reboot(paths)
    flushed = Flushed.open_to_write(paths.flushed, DiskStorage(), flushed_offset=kept, commits_ahead=True)
    flushed.close()
    with MessageStore(tmp_path) as store:
        watermark = StoreReader(tmp_path).watermark()
        assert (watermark.term, watermark.physical_offset) == (2, kept)
        assert store.bounds("t").max_offset == 7
        store.put("t", (b"new", {"KEYS": "k7"}))
        store.dispatch()
        assert [row["body"] for row in rows_of(store.get_message("t", 6, 10))] == ["6", "new"]
        assert [row["body"] for row in store.by_key("t", "k7")] == ["new"]
        assert store.by_key("t", "k9") == []


@pytest.mark.exhaustive
@pytest.mark.spark
def test_kf12_an_indexer_that_cannot_continue_ends_its_process(tmp_path: Path) -> None:
    """The dispatching thread died, and the index stopped silently (rocketmq#7902); here the process exits with status 1
    and the reason.
    """
    write_log(tmp_path / "commitlog", 4096, ({"queue_offset": i} for i in range(9)))
    (tmp_path / "batchconsumequeue" / "TopicTest" / "0").mkdir(parents=True)
    done = run_once(tmp_path)
    assert done.returncode == 1
    assert "should be BatchCQ, but is SimpleCQ" in str(events(done.stderr)["pipeline_failed"]["message"])


@contextmanager
def following(plan: EpochPlan) -> Iterator[None]:
    """Run the tasks of one long epoch, each in a thread."""
    plan.paths.indexer.mkdir(parents=True)
    prepare(plan, DiskStorage())
    threads = [
        threading.Thread(target=run_epoch, args=(plan,), kwargs={"shard": shard, "follower": 0})
        for shard in range(plan.all_shards)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        plan.stop_flag.touch()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)


def test_kf13_a_single_message_without_successors_is_indexed(tmp_path: Path) -> None:
    """The last index entries waited for a batch that no time limit flushed (rocketmq#8698); here a single message is
    indexed although nothing follows it.
    """
    with MessageStore(tmp_path) as store:
        settings = PipelineSettings(store_root=tmp_path, epoch_ms=3_600_000, **store.sizes)
        with following(make_plan(settings)):
            store.put("t", (b"only", {"KEYS": "k"}))
            deadline = time.monotonic() + 60
            while StoreReader(tmp_path).watermark().physical_offset < store.max_physical_offset:
                assert time.monotonic() < deadline, "the message did not become visible"
                time.sleep(0.01)
            assert [row["body"] for row in rows_of(store.get_message("t", 0, 1))] == ["only"]
            assert [row["body"] for row in store.by_key("t", "k")] == ["only"]


QUEUES = pytest.mark.parametrize(
    ("folder", "unit_size"),
    [("consumequeue", consume_queue.UNIT_SIZE), ("batchconsumequeue", batch_consume_queue.UNIT_SIZE)],
)


def queue_of_20(root: Path, folder: str) -> tuple[Path, dict[str, Any]]:
    """Write 20 records to two full queue files of ten units; return the queue's folder, and the settings."""
    queue_type = "BatchCQ" if folder == "batchconsumequeue" else "SimpleCQ"
    topic = TopicConfig("TopicTest", 1, 1, attributes={"queue.type": queue_type})
    save_topics(StorePaths(root).topics, {"TopicTest": topic}, DiskStorage(), counter=1)
    numbered_log(root, 20)
    settings = {**INDEX, "consume_queue_file_size_bytes": 200, "batch_consume_queue_file_size_bytes": 460}
    build(plan_of(root, **settings))
    return root / folder / "TopicTest" / "0", settings


def max_offset(root: Path) -> int:
    reader = StoreReader(root)
    return reader.bounds(reader.queue("TopicTest", 0), reader.watermark()).max_offset


@QUEUES
@pytest.mark.parametrize("size", ["full", "zero bytes"])
def test_kf14_an_empty_last_queue_file_is_ignored(tmp_path: Path, folder: str, unit_size: int, size: str) -> None:
    """An empty last queue file was an exception at every start (rocketmq#9728, rocketmq#10108); here readers and
    pipeline ignore one of zeros or without a byte.
    """
    queue, settings = queue_of_20(tmp_path, folder)
    (queue / file_name(20 * unit_size)).write_bytes(bytes(10 * unit_size if size == "full" else 0))
    assert max_offset(tmp_path) == 20
    numbered_log(tmp_path, 25)
    build(plan_of(tmp_path, **settings))
    assert max_offset(tmp_path) == 25
    numbered_log(tmp_path / "clean", 25)
    save_topics(StorePaths(tmp_path / "clean").topics, StoreReader(tmp_path).topics(), DiskStorage(), counter=1)
    build(plan_of(tmp_path / "clean", **settings))
    assert queue_files(tmp_path) == queue_files(tmp_path / "clean")


@QUEUES
@pytest.mark.parametrize("cut", [1, 19, 45, 100])
def test_kf14_a_short_queue_file_is_reported_by_readers_and_rebuilt(
    tmp_path: Path, folder: str, unit_size: int, cut: int
) -> None:
    """A queue file of an odd size was an exception that named nothing; here readers name its path, and the pipeline
    sets it aside and builds it again.
    """
    queue, settings = queue_of_20(tmp_path, folder)
    before = queue_files(tmp_path)
    last = queue / file_name(10 * unit_size)
    last.write_bytes(last.read_bytes()[: 10 * unit_size - cut])
    numbered_log(tmp_path, 25)
    with pytest.raises(StoreContradictionError) as refused:
        max_offset(tmp_path)
    assert refused.value.facts["path"] == str(last)
    build(plan_of(tmp_path, **settings))
    assert before.items() <= queue_files(tmp_path).items()
    assert max_offset(tmp_path) == 25


def test_kf22_the_indexer_reads_only_synced_data(tmp_path: Path) -> None:
    """The dispatch read beyond the log's end (rocketmq#8394); here it reads only below the committed offset, in sync
    mode only synced data.
    """
    storage = FaultyStorage()
    with MessageStore(tmp_path, storage=storage, sync_flush_timeout_ms=20) as store:
        store.put("t", (b"synced", {}))
        store.wait_for_commit()
        for number in range(5):
            storage.fdatasync_gate.clear()
            try:
                store.put("t", (b"%d" % number, {}))
                info = store.writer.info()
                assert info.committed_offset <= info.flushed_offset < info.max_physical_offset
                store.dispatch()
                assert StoreReader(tmp_path).watermark().physical_offset == info.committed_offset
                result = store.get_message("t", 0, 10)
                assert (result.status, len(rows_of(result))) == (FOUND, 1 + number)
            finally:
                storage.fdatasync_gate.set()
            store.wait_for_commit()
