"""The pipeline on a disk that fails at a random moment, then on a good one: the bytes are those without the fault."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import properties, write_log
from tests.pipeline_runs import build, index_contents, plan_of, queue_files
from tests.query_server import serve_query
from tidemark.errors import StoreError
from tidemark.index.ledger import read_ledger
from tidemark.store.marks import Marks

from .seeded_faults import DiskFault, SeededFaults, flipped_reads, short_writes

pytestmark = pytest.mark.crash

SETTINGS: dict[str, Any] = {
    "index_slots": 16,
    "index_entries": 64,
    "consume_queue_file_size_bytes": 200,
    "chunk_size_bytes": 4096,
}
COUNT, QUEUES = 150, 3
QUICK_SEEDS, ALL_SEEDS = range(4), range(4, 60)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a log of 150 records in three queues; each record has a CRC of all its bytes."""
    root = tmp_path / "store"
    fields = (
        {
            "topic": b"t",
            "body": b"%d:" % i + bytes(i % 300),
            "queue_id": i % QUEUES,
            "queue_offset": i // QUEUES,
            "properties": properties({"KEYS": f"k{i}", "TAGS": "AB"[i % 2]}),
            "property_crc": True,
        }
        for i in range(COUNT)
    )
    write_log(root / "commitlog", 16_384, fields)
    return root


@pytest.fixture
def right(store: Path, tmp_path: Path) -> Path:
    """Return the result of the pipeline on a good disk."""
    copy = Path(shutil.copytree(store, tmp_path / "right"))
    build(plan_of(copy, **SETTINGS))
    return copy


def require_same(root: Path, right: Path) -> None:
    """Require the same queue files and keys, an empty ledger, and full visibility."""
    assert queue_files(root) == queue_files(right)
    assert index_contents(root) == index_contents(right)
    assert read_ledger(root / "tidemark" / "indexer") == []
    marks = Marks.open_read_only(root / "tidemark" / "indexer" / "marks")
    assert marks.watermark() == marks.durable_floor() == plan_of(root, **SETTINGS).limit
    marks.close()


def fail_and_build_again(root: Path, right: Path, fault: DiskFault, seed: int) -> bool:
    """Run once with a random fault; return True if the fault occurred."""
    random_ = random.Random(seed)
    storage = SeededFaults(fault, random_)
    storage.arm(random_.randrange(60))
    try:
        build(plan_of(root, **SETTINGS), storage)
    except (StoreError, OSError):
        assert storage.happened
    assert storage.retried_syncs == 0, "a failed sync must not be retried"
    build(plan_of(root, **SETTINGS))
    require_same(root, right)
    return storage.happened


@pytest.mark.parametrize("fault", DiskFault, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_a_failed_pipeline_is_completed_by_the_next_one(store: Path, right: Path, fault: DiskFault, seed: int) -> None:
    """Whatever state a failed pipeline leaves, the next one ends with the bytes of one that never failed."""
    fail_and_build_again(store, right, fault, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", DiskFault, ids=lambda fault: fault.name.lower())
def test_promises_hold_for_a_fault_with_many_seeds(
    store: Path, right: Path, tmp_path: Path, fault: DiskFault, tell: Callable[[str], None]
) -> None:
    """There are more seeds."""
    happened = sum(
        fail_and_build_again(Path(shutil.copytree(store, tmp_path / str(seed))), right, fault, seed)
        for seed in ALL_SEEDS
    )
    tell(f"pipeline, {fault.value}: {len(ALL_SEEDS)} seeds, {happened} runs with the fault")
    assert happened > len(ALL_SEEDS) // 4


@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_partial_writes_are_completed(store: Path, right: Path, seed: int) -> None:
    """A short write is no error: the rest of it follows."""
    with short_writes(random.Random(seed)) as count:
        build(plan_of(store, **SETTINGS))
    assert count[0] > 20
    require_same(store, right)


@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_bits_flipped_on_a_read_are_not_damage(store: Path, right: Path, seed: int) -> None:
    """The second read counts: no unit is built wrongly, and nothing is reported as damage or hidden from readers.

    One shard reads all of it, because a shard verifies only its own records, and the key index verifies none.
    """
    random_ = random.Random(seed)
    with flipped_reads(random_, 0.4) as flips:
        build(plan_of(store, shards=1, **SETTINGS))
    assert flips[0] > 0
    assert queue_files(store) == queue_files(right)
    assert read_ledger(store / "tidemark" / "indexer") == []
    with serve_query(store, index_slots=16, index_entries=64) as client, flipped_reads(random_, 0.4) as flips:
        for queue_id in range(QUEUES):
            bodies: list[str] = []
            while len(bodies) < COUNT // QUEUES:
                page = client.get(
                    f"/v1/topics/t/queues/{queue_id}/messages",
                    params={"offset": len(bodies), "max_messages": 7, "body_encoding": "utf8"},
                ).json()
                assert page["skipped"] == []
                bodies += [message["body"].rstrip("\0") for message in page["messages"]]
            assert bodies == [f"{i}:" for i in range(queue_id, COUNT, QUEUES)]
        assert flips[0] > 0
