"""Damaged derived files: each start sets them aside and rebuilds the same bytes; the watermark never goes back."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.indexer.pipeline.shards.rebuilding import request_path
from tests.builders import properties, write_log
from tests.pipeline_runs import build, index_contents, plan_of, queue_files
from tidemark.index.rebuild_request import request_index, request_queues
from tidemark.read.watermark import WatermarkReader
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

SETTINGS: dict[str, Any] = {
    "commit_log_segment_size_bytes": 8192,
    "consume_queue_file_size_bytes": 200,
    "batch_consume_queue_file_size_bytes": 460,
    "consume_queue_ext_file_size_bytes": 400,
    "enable_consume_queue_ext": True,
    "index_slots": 16,
    "index_entries": 30,
    "chunk_size_bytes": 4096,
}
TOPICS = (
    b'{"topicConfigTable": {"inner": {"topicName": "inner", "readQueueNums": 2, "writeQueueNums": 2, '
    b'"attributes": {"queue.type": "BatchCQ"}}}}'
)

DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut by a byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
}


def make_store(root: Path) -> Path:
    """Write 60 records: two queues of single messages, two of inner batches."""
    (root / "config").mkdir(parents=True)
    (root / "config" / "topics.json").write_bytes(TOPICS)
    records = (
        {
            "topic": b"inner" if i % 3 == 0 else b"orders",
            "queue_id": i % 2,
            "queue_offset": i // 6 if i % 3 == 0 else i // 6 * 2 + (i % 6 in (4, 5)),
            "properties": properties({"KEYS": f"k{i}", "TAGS": "t"}),
        }
        for i in range(60)
    )
    write_log(root / "commitlog", 8192, records)
    return root


@pytest.fixture(params=[1, 3])
def shards(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def store(tmp_path: Path, shards: int) -> Path:
    store = make_store(tmp_path / "store")
    build(plan_of(store, shards=shards, **SETTINGS))
    return store


def derived(root: Path) -> Iterator[Path]:
    for folder in ("consumequeue", "batchconsumequeue", "consumequeue_ext", "index"):
        yield from sorted(path for path in (root / folder).rglob("*") if path.is_file())


def contents(root: Path) -> tuple[dict[str, bytes], list[bytes], dict[str, bytes]]:
    ext = {str(path.relative_to(root)): path.read_bytes() for path in derived(root) if "ext" in str(path)}
    return queue_files(root), index_contents(root), ext


def watermark(root: Path) -> int:
    reader = WatermarkReader(StorePaths(root))
    try:
        return reader.read().physical_offset
    finally:
        reader.close()


@pytest.mark.parametrize("how", DAMAGES)
def test_a_file_of_a_wrong_size_is_set_aside_and_rebuilt(store: Path, shards: int, how: str) -> None:
    clean, end = contents(store), watermark(store)
    for path in derived(store):
        copy = Path(shutil.copytree(store, store.with_name("copy")))
        DAMAGES[how](copy / path.relative_to(store))
        assert watermark(copy) == end
        build(plan_of(copy, shards=shards, **SETTINGS))
        assert contents(copy) == clean, path
        assert watermark(copy) == end
        assert list((copy / "tidemark" / "indexer" / "set-aside").iterdir())
        assert not list((copy / "tidemark" / "indexer").glob("rebuild-*"))
        shutil.rmtree(copy)


@pytest.mark.parametrize("how", ["empty", "half", "longer", "zeroed", "junk", "above the log"])
def test_invalid_marks_are_set_aside_and_everything_is_rebuilt(store: Path, shards: int, how: str) -> None:
    clean = contents(store)
    marks = store / "tidemark" / "indexer" / "marks"
    data = bytearray(marks.read_bytes())
    data[64:72] = (1 << 50).to_bytes(8, "little")
    damages: dict[str, Callable[[Path], object]] = {
        **DAMAGES,
        "zeroed": lambda path: path.write_bytes(bytes(4096)),
        "junk": lambda path: path.write_bytes(b"\x5a" * 4096),
        "above the log": lambda path: path.write_bytes(data),
    }
    damages[how](marks)
    build(plan_of(store, shards=shards, **SETTINGS))
    assert contents(store) == clean


def test_requested_queues_and_index_files_are_rebuilt_whatever_their_content(store: Path, shards: int) -> None:
    """A scrub or `store repair` requested them; the bytes of other queues do not change."""
    clean = contents(store)
    paths = StorePaths(store)
    flipped = {("orders", 1), ("inner", 0)}
    for topic, queue_id in flipped:
        for root in (paths.consume_queue, paths.batch_consume_queue):
            for path in sorted((root / topic / str(queue_id)).glob("*"))[:1]:
                path.write_bytes(b"\x77" * path.stat().st_size)
    second = sorted(paths.index.iterdir())[1]
    second.write_bytes(second.read_bytes()[:100] + b"\x77" * (second.stat().st_size - 100))
    untouched = {path: path.stat().st_mtime_ns for path in (paths.consume_queue / "orders" / "0").iterdir()}
    request_queues(paths, flipped, shards=shards, storage=DiskStorage())
    request_index(paths, second.name, DiskStorage())
    rows = build(plan_of(store, shards=shards, **SETTINGS))
    assert contents(store) == clean
    assert sum(row.rebuilt for row in rows) == len(flipped) + 1
    assert {path: path.stat().st_mtime_ns for path in untouched} == untouched


def test_a_missing_or_zeroed_newest_index_file_is_rebuilt_below_the_same_watermark(store: Path, shards: int) -> None:
    clean, end = contents(store), watermark(store)
    damages: tuple[Callable[[Path], object], ...] = (
        Path.unlink,
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
    )
    for damage in damages:
        copy = Path(shutil.copytree(store, store.with_name("copy")))
        damage(sorted((copy / "index").iterdir())[-1])
        build(plan_of(copy, shards=shards, **SETTINGS))
        assert contents(copy) == clean
        assert watermark(copy) == end
        shutil.rmtree(copy)


def test_a_rebuild_request_reaches_the_owning_shard_after_a_change_of_shards(store: Path) -> None:
    clean = contents(store)
    paths = StorePaths(store)
    request_queues(paths, {("orders", 1), ("orders", 0), ("inner", 1)}, shards=5, storage=DiskStorage())
    shutil.rmtree(paths.consume_queue / "orders" / "1")
    build(plan_of(store, shards=2, **SETTINGS))
    assert contents(store) == clean
    assert not list(paths.indexer.glob("rebuild-*"))


def test_only_the_newest_set_aside_files_are_kept(store: Path, shards: int) -> None:
    for _ in range(4):
        for path in derived(store):
            if "batchconsumequeue" in str(path):
                path.write_bytes(b"x")
        build(plan_of(store, shards=shards, set_aside_files=3, **SETTINGS))
    assert len(list((store / "tidemark" / "indexer" / "set-aside").iterdir())) == 3


def test_an_unreadable_rebuild_request_rebuilds_everything(store: Path) -> None:
    clean = contents(store)
    plan = plan_of(store, shards=1, **SETTINGS)
    request_path(plan, 0).write_bytes(b"junk")
    for path in (plan.paths.consume_queue / "orders" / "0").iterdir():
        path.write_bytes(bytes(path.stat().st_size))
    build(plan_of(store, shards=1, **SETTINGS))
    assert contents(store) == clean
    marks = Marks.open_read_only(plan.paths.marks)
    marks.close()
