from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from isal.isal_zlib import crc32

from services.writer.log.batch_journal import BatchJournal, stretch_of
from tidemark.store.batch_journal import ENTRIES, BatchRange, Journal, encode_abort, read_journal
from tidemark.store.storage import DiskStorage

TOKEN = bytes(range(16))


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[BatchJournal]:
    (tmp_path / "abort").write_bytes(encode_abort(TOKEN))
    made = BatchJournal(tmp_path / "batches", DiskStorage(), token=TOKEN, start=1000)
    yield made
    made.close()


def read(folder: Path) -> Journal:
    found = read_journal(folder / "batches", folder / "abort")
    assert found is not None
    return found


def stretches(first: int, count: int) -> list[BatchRange]:
    """Return *count* stretches of ten bytes each, the first at 1000 + 10 * *first*."""
    return [BatchRange(1000 + 10 * n, 1010 + 10 * n, n) for n in range(first, first + count)]


def test_a_new_journal_has_the_start_of_its_run_and_no_batch(tmp_path: Path, journal: BatchJournal) -> None:
    assert read(tmp_path) == Journal(1000, [], has_wrapped=False)


def test_written_batches_are_read_in_their_order(tmp_path: Path, journal: BatchJournal) -> None:
    journal.write(stretches(0, 2))
    journal.write(stretches(2, 1))
    assert read(tmp_path).stretches == stretches(0, 3)


def test_forgotten_batches_are_overwritten_by_later_ones(tmp_path: Path, journal: BatchJournal) -> None:
    journal.write(stretches(0, 3))
    journal.take_back(2)
    assert read(tmp_path).stretches == stretches(0, 1)
    journal.write(stretches(1, 1))
    assert read(tmp_path).stretches == stretches(0, 2)


def test_a_full_ring_keeps_the_latest_batches(tmp_path: Path, journal: BatchJournal) -> None:
    """A write over the edge of the ring is one in two parts."""
    journal.write(stretches(0, ENTRIES - 1))
    journal.write(stretches(ENTRIES - 1, 3))
    found = read(tmp_path)
    assert found.has_wrapped
    assert found.stretches == stretches(2, ENTRIES)


def test_a_stretch_has_the_checksum_of_its_bytes() -> None:
    data = np.frombuffer(b"some records", np.uint8)
    assert stretch_of(70, data) == BatchRange(70, 82, crc32(b"some records"))
