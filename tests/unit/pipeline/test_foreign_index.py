"""An index that a broker changed while it owned the directory: afterwards it equals a rebuild."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.builders import properties, write_log
from tests.pipeline_runs import build, index_contents, plan_of, without_derived
from tidemark.format.check import Checker
from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.index.key_index import KeyIndex, index_files
from tidemark.index.part_keys import hash_rows
from tidemark.store.storage import DiskStorage

SLOTS, ENTRIES = 16, 30
OURS, ALL = 50, 90  # records at Tidemark's stop, and after the broker's appends


def write_records(root: Path, count: int) -> None:
    """Write the first *count* records, with two keys each."""
    keys = [{"UNIQ_KEY": f"u{i}", "KEYS": f"k{i % 7}"} for i in range(count)]
    write_log(
        root / "commitlog", 65_536, ({"queue_offset": i, "properties": properties(k)} for i, k in enumerate(keys))
    )


def index_store(root: Path) -> None:
    build(plan_of(root, index_slots=SLOTS, index_entries=ENTRIES))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a store with Tidemark's index, to which a broker has appended afterwards."""
    root = tmp_path / "store"
    write_records(root, OURS)
    index_store(root)
    write_records(root, ALL)
    return root


def walked(root: Path) -> tuple[U8Array, RequestArray]:
    (path,) = (root / "commitlog").iterdir()
    buffer = np.frombuffer(bytearray(path.read_bytes()), np.uint8)
    return buffer, Checker().check(buffer, base_offset=0).requests.copy()


def append_as_broker(root: Path, *records: range) -> None:
    """Append the keys of these records to the existing entries."""
    buffer, rows = walked(root)
    index = KeyIndex(root / "index", slots=SLOTS, entries=ENTRIES, storage=DiskStorage())
    for numbers in records:
        index.append(hash_rows(buffer, rows[numbers.start : numbers.stop]))
    index.flush()
    index.close()


def assert_as_rebuilt(root: Path) -> None:
    index_store(root)
    copy = without_derived(root, root.parent / "rebuilt")
    index_store(copy)
    assert index_contents(root) == index_contents(copy)


def test_keys_that_a_broker_duplicated_or_lost_are_rebuilt(root: Path) -> None:
    """A killed and restarted broker indexes its last record twice, and omits records that it does not dispatch."""
    append_as_broker(root, range(OURS, 60), range(59, 65), range(80, 85))
    assert_as_rebuilt(root)


def test_an_index_file_that_a_broker_destroyed_is_rebuilt(root: Path) -> None:
    """After a kill it destroys the newest files and fills a new one with only some of their keys."""
    index_files(root / "index")[-1].unlink()
    append_as_broker(root, range(OURS - 2, ALL))
    assert_as_rebuilt(root)


def test_an_index_that_a_broker_continued_is_kept(root: Path) -> None:
    """Its older files stay; entries above the mark are rebuilt to the same bytes."""
    first = index_files(root / "index")[0]
    before = first.stat().st_ino
    append_as_broker(root, range(OURS, ALL))
    assert_as_rebuilt(root)
    assert first.stat().st_ino == before
