"""A real broker's logs, indexed by Tidemark: the queue and index files equal the broker's own bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline_runs import GOLDEN_SETTINGS, build, index_contents, plan_of, queue_files, without_derived
from tidemark.index.ledger import read_ledger
from tidemark.store.marks import Marks

GoldenStore = Callable[[str], Path]


@pytest.mark.parametrize("scan_range_size_bytes", [None, 1])
@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("name", ["mixed/store", "killed/store-recovered"])
def test_rebuilt_queue_files_equal_those_of_the_broker(
    golden_store: GoldenStore, tmp_path: Path, name: str, shards: int, scan_range_size_bytes: int | None
) -> None:
    """Every file of every queue is compared, for any number of shards, from the log or from its scan."""
    root = without_derived(golden_store(name), tmp_path / "store")
    plan = plan_of(root, shards=shards, **GOLDEN_SETTINGS[name])
    build(plan, scan_range_size_bytes=scan_range_size_bytes)
    assert queue_files(root) == queue_files(golden_store(name))
    assert read_ledger(plan.paths.indexer) == []
    marks = Marks.open_read_only(plan.paths.marks)
    assert marks.watermark() == marks.durable_floor() == plan.limit


@pytest.mark.parametrize("scan_range_size_bytes", [None, 1])
@pytest.mark.parametrize("chunk_size_bytes", [4096, 50_000, 8 << 20])
def test_rebuilt_index_files_equal_those_of_the_broker(
    golden_store: GoldenStore, tmp_path: Path, chunk_size_bytes: int, scan_range_size_bytes: int | None
) -> None:
    """Slots, chains, times and headers are compared, for any chunk, from the log or from its scan."""
    root = without_derived(golden_store("mixed/store"), tmp_path / "store")
    plan = plan_of(root, chunk_size_bytes=chunk_size_bytes, **GOLDEN_SETTINGS["mixed/store"])
    build(plan, scan_range_size_bytes=scan_range_size_bytes)
    assert index_contents(root) == index_contents(golden_store("mixed/store"))


def test_the_index_of_a_recovered_broker_has_the_last_record_twice(golden_store: GoldenStore, tmp_path: Path) -> None:
    """All index files but the last are equal; there the broker's restart put one record's keys twice."""
    name = "killed/store-recovered"
    root = without_derived(golden_store(name), tmp_path / "store")
    build(plan_of(root, **GOLDEN_SETTINGS[name]))
    ours, theirs = index_contents(root), index_contents(golden_store(name))
    assert len(ours) == len(theirs) > 1
    assert ours[:-1] == theirs[:-1]


def test_a_killed_brokers_log_is_indexed_to_its_torn_end(golden_store: GoldenStore, tmp_path: Path) -> None:
    """The end and the queue files are those of the broker's own recovery."""
    root = without_derived(golden_store("killed/store-killed"), tmp_path / "store")
    plan = plan_of(root, **GOLDEN_SETTINGS["killed/store-killed"])
    build(plan)
    assert queue_files(root) == queue_files(golden_store("killed/store-recovered"))


@pytest.mark.parametrize("name", ["mixed/store", "killed/store-recovered", "killed/store-killed"])
def test_building_over_the_files_of_the_broker_changes_no_byte(
    golden_store: GoldenStore, tmp_path: Path, name: str
) -> None:
    """An adopted store keeps its queues, or gets them completed."""
    root = tmp_path / "store"
    without_derived(golden_store(name), root)
    for path, content in queue_files(golden_store(name)).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    build(plan_of(root, **GOLDEN_SETTINGS[name]))
    finished = "killed/store-recovered" if name.startswith("killed") else name
    assert queue_files(root) == queue_files(golden_store(finished))


def test_units_of_live_records_in_an_expired_log_equal_those_of_the_broker(
    golden_store: GoldenStore, tmp_path: Path
) -> None:
    """Each live unit is at the same position; only units of deleted records are missing."""
    root = without_derived(golden_store("expired/store"), tmp_path / "store")
    plan = plan_of(root, **GOLDEN_SETTINGS["expired/store"])
    build(plan)
    log = plan.open_log()
    theirs = queue_files(golden_store("expired/store"))
    ours = queue_files(root)
    compared = 0
    for path, content in theirs.items():
        if not path.startswith("consumequeue/"):
            continue
        for at in range(0, len(content), 20):
            unit = content[at : at + 20]
            if int.from_bytes(unit[:8], "big") >= log.min_offset and int.from_bytes(unit[8:12], "big"):
                assert ours[path][at : at + 20] == unit
                compared += 1
    assert compared > 100
