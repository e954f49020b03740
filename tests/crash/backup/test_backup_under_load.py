"""Backups of a store whose writer is under load, one of them killed; and the restored store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders import wire_batch
from tests.crash.writer.process import Load, WriterProcess
from tests.integration.writer.harness import stored_places
from tests.pipeline_runs import build, plan_of
from tests.waiting import until
from tidemark.backup.restore import restore_backup
from tidemark.backup.take import take_backup
from tidemark.backup.verify import verify_backup
from tidemark.index.check.scope import whole_store
from tidemark.index.check.store import check_store
from tidemark.store.originals.terms import current_term
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb

pytestmark = pytest.mark.crash

StartWriter = Callable[[Path], WriterProcess]


@pytest.fixture
def start_writer() -> Iterator[StartWriter]:
    """Yield a function that starts a writer as a separate process; all end with the test."""
    processes: list[WriterProcess] = []

    def start(root: Path) -> WriterProcess:
        processes.append(WriterProcess(root))
        return processes[-1].wait_until_started()

    yield start
    for process in processes:
        process.kill()


def kill_a_backup(root: Path, folder: Path) -> None:
    """Run `tidemark store backup` and kill it once it has begun to copy; it may already have finished."""
    command = [sys.executable, "-m", "tidemark.cli", "store", "backup", str(root), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        until(lambda: process.poll() is not None or (folder / "commitlog").exists())
        process.kill()


def test_acknowledged_messages_below_a_backups_end_are_restored(start_writer: StartWriter, tmp_path: Path) -> None:
    """While a writer appends and rolls, each backup is sound, a killed one is repaired, and the last one is restored.

    The restored store has every acknowledged batch below its end, whole and at its place; its writer begins a new term
    there and continues the numbering; its queues are built and a check finds nothing.
    """
    root, folder = tmp_path / "store", tmp_path / "backup"
    load = Load(start_writer(root), "load", body_size=2000)
    until(lambda: len(load.acknowledged) > 300)
    kill_a_backup(root, folder)
    ends = []
    for _ in range(3):
        ends.append(take_backup(StorePaths(root), folder, DiskStorage(), store_name="s").manifest.end)
        assert verify_backup(folder).flaws == []
        seen = len(load.acknowledged)
        until(lambda seen=seen: len(load.acknowledged) > seen + 100)  # type: ignore[misc]
    load.stop()
    assert ends == sorted(set(ends))
    restored = StorePaths(tmp_path / "restored")
    restore_backup(folder, restored, DiskStorage())
    bodies = {physical_offset: record.body for physical_offset, record in stored_places(restored.root)}
    kept = {n: a for n, a in load.acknowledged.items() if a.physical_offset < ends[-1]}
    assert len(kept) > 300
    for number, answer in kept.items():
        assert bodies[answer.physical_offset] == load.body(number, 0)
    assert {load.body(n, part) for n in kept for part in (0, 1)} <= set(bodies.values())
    check_the_restored(restored, ends[-1], start_writer)


def check_the_restored(restored: StorePaths, end: int, start_writer: StartWriter) -> None:
    term = current_term(restored.terms).number
    writer = start_writer(restored.root)
    recovered = writer.event("store_recovered")
    assert (recovered["recovered_end"], recovered["damages"], recovered["term"]) == (end, 0, term + 1)
    counts = [0, 0, 0, 0]
    for _, record in stored_places(restored.root):
        counts[record.queue_id] += 1
    answer = writer.log.AppendBatch(pb.AppendBatchRequest(topic="load", queue_id=1, packed=wire_batch((b"on", b"", 0))))
    assert answer.queue_offset == counts[1]
    assert writer.terminate() == 0
    build(plan_of(restored.root))
    report = check_store(restored, whole_store(restored))
    assert (report.findings, report.notes) == ([], [])
    assert report.records == sum(counts) + 1


def test_a_check_during_writer_load_finds_nothing(start_writer: StartWriter, tmp_path: Path) -> None:
    """The check ends at the committed offset; no queues are built yet."""
    load = Load(start_writer(tmp_path), "load", body_size=2000)
    until(lambda: len(load.acknowledged) > 200)
    paths = StorePaths(tmp_path)
    ends = []
    for _ in range(5):
        report = check_store(paths, whole_store(paths))
        assert report.findings == []
        ends.append(report.end)
        seen = len(load.acknowledged)
        until(lambda seen=seen: len(load.acknowledged) > seen)  # type: ignore[misc]
    load.stop()
    assert len(set(ends)) == 5
