"""Cuts of the key index at the end of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.shards.index_cut import cut_index
from tests.builders import Placed
from tests.pipeline_runs import build, index_contents, plan_of
from tests.unit.pipeline.keyed_log import (
    ENTRIES,
    FIRST_MS,
    SETTINGS,
    SLOTS,
    STEP_MS,
    indexed_offsets,
    write_keyed_log,
)
from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.index.key_index import KeyIndex, index_files, read_header
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage, Storage

COUNT = 120  # three index files and a part of a fourth
A_FILE = ENTRIES - 1


class Cut:
    """A built store, its open marks, and cuts of its index."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.placed: list[Placed] = write_keyed_log(root, COUNT)
        self.plan: EpochPlan = plan_of(root, **SETTINGS)
        build(self.plan)
        self.marks = Marks.open_to_write(self.plan.paths.marks, DiskStorage(), shards=2, term=0)

    def at(self, number: int, storage: Storage | None = None) -> None:
        """Cut at the start of record *number*."""
        index = KeyIndex(self.plan.paths.index, slots=SLOTS, entries=ENTRIES, storage=storage or DiskStorage())
        end = self.placed[number].physical_offset if number < COUNT else self.plan.limit
        assert end is not None
        try:
            cut_index(index, end, self.plan, self.marks)
        finally:
            index.close()

    @property
    def newest(self) -> int:
        files = index_files(self.plan.paths.index)
        return int(files[-1].name) if files else 0


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    return Cut(tmp_path / "store")


@pytest.mark.parametrize("kept", [COUNT - 1, 3 * A_FILE + 1, 3 * A_FILE, 2 * A_FILE + 1, 50, 1])
def test_the_rest_equals_the_index_of_the_shorter_log(cut: Cut, tmp_path: Path, kept: int) -> None:
    """The header's end time is the store time of the last record that stays, which the log still holds."""
    shorter = tmp_path / "shorter"
    write_keyed_log(shorter, kept)
    build(plan_of(shorter, **SETTINGS))
    cut.at(kept)
    assert index_contents(cut.root) == index_contents(shorter)
    assert cut.marks.index_file == cut.newest
    cut.marks.close()


def test_a_cut_at_the_first_record_removes_all_files(cut: Cut) -> None:
    cut.at(0)
    assert index_files(cut.plan.paths.index) == []
    assert cut.marks.index_file == 0
    cut.marks.close()


def test_the_end_time_covers_the_last_record_if_the_log_does_not_hold_it(cut: Cut) -> None:
    """An entry keeps whole seconds: the header's end is then the latest possible time, so that no lookup misses it."""
    kept = 50
    (cut.root / "commitlog" / f"{0:020d}").write_bytes(bytes(SETTINGS["commit_log_segment_size_bytes"]))
    cut.at(kept)
    stored = FIRST_MS + STEP_MS * (kept - 1)
    header = read_header(index_files(cut.plan.paths.index)[-1])
    assert stored <= header.end_timestamp < stored + 1000
    cut.marks.close()


def test_the_index_does_not_count_as_synced_while_it_is_cut(cut: Cut) -> None:
    cut.marks.say_index_synced(True)
    cut.at(COUNT)
    assert cut.marks.is_index_synced, "nothing had to be removed"
    cut.at(COUNT - 1)
    assert not cut.marks.is_index_synced
    cut.marks.close()


def test_the_marks_never_name_a_file_that_is_gone(cut: Cut) -> None:
    """A start after a kill would blame a broker for the loss and build the whole index again."""
    for step in range(1000):
        try:
            cut.at(A_FILE // 2, RecordingStorage(die_before=step))
            break
        except KilledHere:
            assert cut.marks.index_file in (int(path.name) for path in index_files(cut.plan.paths.index))
    assert step > 3
    assert indexed_offsets(cut.root) == [record.physical_offset for record in cut.placed[: A_FILE // 2]]
    cut.marks.close()
