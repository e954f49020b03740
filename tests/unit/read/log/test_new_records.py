"""Queues of the newest records of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_store import BuiltStore, Written
from tests.page_cache import require_refused
from tidemark.errors import CorruptStoreError
from tidemark.read.file_run import FileRun
from tidemark.read.log import new_records
from tidemark.read.log.new_records import NewRecords
from tidemark.read.store_reader import StoreReader


def end_of(written: Written) -> int:
    return written.physical_offset + written.size


def new_records_of(built: BuiltStore) -> NewRecords:
    built.publish()
    return NewRecords(StoreReader(built.root).log)


def test_the_queues_of_a_range_are_those_of_its_records(built: BuiltStore) -> None:
    written = [built.append("orders", bytes(number), queue_id=number % 2) for number in range(6)]
    batch = built.append_batch("batches", [(b"a", {}, 0), (b"b", {}, 0)])
    records = new_records_of(built)
    end = end_of(batch)
    assert records.queues(0, end) == {("orders", 0), ("orders", 1), ("batches", 0)}
    assert records.queues(written[4].physical_offset, written[5].physical_offset) == {("orders", 0)}
    assert records.queues(batch.physical_offset, end) == {("batches", 0)}
    assert records.queues(end, end) == set()


def test_the_first_file_of_a_log_is_noticed(built: BuiltStore) -> None:
    records = new_records_of(built)
    written = built.append("orders")
    assert records.queues(0, end_of(written)) == {("orders", 0)}


def test_unknown_records_have_no_queues(built: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller then expects records of any queue: the range goes back, ends within a record, or is not written."""
    written = [built.append("orders", bytes(100)) for _ in range(3)]
    records = new_records_of(built)
    end = end_of(written[-1])
    assert records.queues(0, end) == {("orders", 0)}
    assert records.queues(end, 0) is None
    assert records.queues(0, end - 1) is None
    assert records.queues(1, end) is None
    assert records.queues(end, end + 100) is None
    built.write_log(written[1].physical_offset + 4, b"\1\2\3\4")
    assert records.queues(0, end) is None
    assert records.queues(written[2].physical_offset, end) == {("orders", 0)}
    monkeypatch.setattr(new_records, "_MOST_BYTES", 100)
    assert records.queues(written[2].physical_offset, end) is None


def test_records_of_many_queues_are_not_examined(built: BuiltStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of all waiting requests takes less time."""
    monkeypatch.setattr(new_records, "_MOST_QUEUES", 1)
    first, second = (built.append("orders", queue_id=number) for number in range(2))
    records = new_records_of(built)
    assert records.queues(0, end_of(first)) == {("orders", 0)}
    assert records.queues(0, end_of(second)) is None


@pytest.mark.parametrize("error", [OSError("EIO"), CorruptStoreError("a file is empty")], ids=type)
def test_a_failing_read_leaves_the_queues_unknown(
    built: BuiltStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> bool:
        raise error

    written = built.append("orders")
    records = new_records_of(built)
    monkeypatch.setattr(FileRun, "read_into", fail)
    assert records.queues(0, end_of(written)) is None


def test_records_of_two_files_or_outside_the_memory_are_unknown(tmp_path: Path) -> None:
    built = BuiltStore(tmp_path / "store", log_file_size=4096)
    built.topic("orders")
    written = [built.append("orders", bytes(1000)) for _ in range(6)]
    records = new_records_of(built)
    assert records.queues(0, written[1].physical_offset) == {("orders", 0)}
    assert records.queues(0, end_of(written[-1])) is None
    require_refused(lambda: records.queues(0, written[1].physical_offset) is None, built.root / "commitlog")
