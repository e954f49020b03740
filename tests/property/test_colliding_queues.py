"""Queues whose hashes are equal stay apart on the whole path: append, recovery, build, scan, rebuild, key index, check.

The walk's hash of a queue is cut to two bits here, so that nearly all queues collide.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch import run_epoch
from services.indexer.pipeline.plan import make_plan
from services.indexer.pipeline.prepare import prepare
from tests.crash.simulated_disk.in_process import InProcessWriter
from tests.crash.simulated_disk.reading import seen_of
from tests.pipeline_runs import build, index_contents, plan_of, queue_files, without_derived
from tidemark.format.kernels import walk as walk_kernel
from tidemark.index.check.scope import whole_store
from tidemark.index.check.store import check_store
from tidemark.index.ledger import read_ledger
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key
from tidemark.read.pull import PullRequest, pull
from tidemark.read.store_reader import StoreReader
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb

SIMPLE, BATCHES = ("orders", "m", "flights"), ("inner",)
QUEUES, ALL = 4, 1 << 20
FILES: dict[str, Any] = {
    "consume_queue_file_size_bytes": 200,
    "batch_consume_queue_file_size_bytes": 460,
    "index_slots": 16,
    "index_entries": 40,
}

appends = st.tuples(st.sampled_from(SIMPLE + BATCHES), st.integers(0, QUEUES - 1), st.integers(1, 3))
steps = st.lists(st.one_of(appends, appends, appends, st.sampled_from(["restart", "build"])), min_size=5, max_size=40)


@pytest.fixture(scope="module", autouse=True)
def two_bits() -> Iterator[None]:
    """Keep two bits of the hash of every walked row."""
    original = walk_kernel.walk

    def walk(*arguments: Any) -> Any:
        result = original(*arguments)
        rows = arguments[9]
        rows["topic_hash"][: result[0]] &= np.uint64(3)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk_kernel, "walk", walk)
        yield


class Store:
    """A writer with its acknowledged messages: bodies by queue, in the order of their offsets."""

    def __init__(self, root: Path, shards: int) -> None:
        self.root = root
        self.settings = {**FILES, "shards": shards}
        self.sent: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        self.numbers = itertools.count()
        self.writer = self.open_writer()
        for topic in SIMPLE + BATCHES:
            attributes = {"queue.type": "BatchCQ"} if topic in BATCHES else {}
            self.writer.create_topic(topic, attributes=attributes)

    def open_writer(self) -> InProcessWriter:
        return InProcessWriter(self.root, default_queues=QUEUES, commit_log_segment_size_bytes=8192)

    def do(self, step: Any) -> None:
        if step == "restart":
            self.writer.abandon()
            self.writer = self.open_writer()
        elif step == "build":
            self.build()
        else:
            self.append(*step)

    def append(self, topic: str, queue_id: int, count: int) -> None:
        bodies = [b"%d" % next(self.numbers) for _ in range(count if topic in BATCHES else 1)]
        messages = [pb.Message(body=body, keys=["k" + body.decode()]) for body in bodies]
        request = pb.AppendBatchRequest(
            topic=topic, queue_id=queue_id, messages=pb.MessageList(messages=messages), request_id=bodies[0].decode()
        )
        (answer,) = self.writer.append(request)
        assert isinstance(answer, pb.AppendBatchResponse), answer
        queue = self.sent[topic, queue_id]
        assert answer.queue_offset == len(queue), f"{topic} {queue_id}"
        queue += bodies

    def build(self) -> None:
        """Build the committed bytes in small chunks."""
        plan = make_plan(PipelineSettings(store_root=self.root, epoch_ms=0, chunk_size_bytes=4096, **self.settings))
        storage = DiskStorage()
        storage.make_folder(plan.paths.indexer)
        prepare(plan, storage)
        for shard in range(plan.all_shards):
            run_epoch(plan, shard=shard, follower=0, storage=storage)

    def require_served(self, root: Path) -> None:
        """Require that every queue has the acknowledged messages, and that every key finds its message alone."""
        reader = StoreReader(root)
        index = IndexReader(root / "index", slots=FILES["index_slots"], entries=FILES["index_entries"])
        with contextlib.closing(reader.watermarks):
            watermark = reader.watermark()
            for (topic, queue_id), bodies in self.sent.items():
                queue = reader.queue(topic, queue_id)
                bounds = reader.bounds(queue, watermark)
                result = pull(queue, reader.log, bounds, PullRequest(bounds.min_offset, ALL, ALL))
                assert [one.body for one in seen_of(result.parts)] == bodies, (topic, queue_id)
                assert not result.skipped
                for body in bodies if topic in SIMPLE else ():
                    query = KeyQuery(topic, "k" + body.decode(), limit=ALL)
                    assert [one.body for one in seen_of(find_by_key(reader, index, watermark, query).parts)] == [body]

    def require_sound(self, root: Path) -> None:
        paths = StorePaths(root)
        report = check_store(paths, whole_store(paths), index_slots=FILES["index_slots"])
        assert report.findings == []
        assert read_ledger(paths.indexer) == []


@settings(max_examples=12, deadline=None)
@given(steps, st.sampled_from([1, 3]))
def test_queues_with_equal_hashes_stay_separate_on_the_whole_path(taken: list[Any], shards: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store", shards)
        for step in [*taken, ("orders", 0, 1), ("m", 1, 1), "restart", ("orders", 0, 1), ("m", 1, 1), "build"]:
            store.do(step)
        store.require_served(store.root)
        store.writer.close()
        store.require_sound(store.root)
        for name, scan_range_size_bytes in (("rebuilt", None), ("scanned", 8192)):
            copy = without_derived(store.root, Path(folder) / name)
            shutil.rmtree(copy / "tidemark" / "indexer")
            log_size = sum(path.stat().st_size for path in (copy / "commitlog").iterdir())
            if scan_range_size_bytes is not None and log_size <= 2 * scan_range_size_bytes:
                continue  # a scan needs more than one range
            build(plan_of(copy, **store.settings), scan_range_size_bytes=scan_range_size_bytes)
            assert queue_files(copy) == queue_files(store.root)
            assert index_contents(copy) == index_contents(store.root)
            store.require_served(copy)
            store.require_sound(copy)
