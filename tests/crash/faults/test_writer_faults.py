"""A writer on a disk that fails at a random moment, under a random load; then opened again on a good one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from services.writer.config import WriterSettings
from services.writer.log.open_store import open_store, release_store
from tests.builders import wire_batch
from tests.integration.writer.harness import ADVERTISED, RunningWriter, stored_places
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb

from .seeded_faults import DiskFault, SeededFaults, short_writes

pytestmark = pytest.mark.crash

SEGMENT_SIZE = 16 << 10
SETTINGS: dict[str, Any] = {"commit_log_segment_size_bytes": SEGMENT_SIZE, "confirm_interval_ms": 5}
QUICK_SEEDS, ALL_SEEDS = range(4), range(4, 40)


class Load:
    """Batches of one to three messages to two queues, bodies ``<number>:<part>:…``; records the answers."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_
        self.sent: dict[int, int] = {}  # number → messages
        self.acknowledged: dict[int, pb.AppendBatchResponse] = {}

    def send(self, writer: RunningWriter, count: int) -> None:
        """Append *count* batches one after the other, or until the writer has stopped."""
        for _ in range(count):
            number = len(self.sent)
            parts = self._random.randint(1, 3)
            bodies = [b"%d:%d:" % (number, part) + bytes(self._random.randrange(900)) for part in range(parts)]
            self.sent[number] = parts
            try:
                wire = wire_batch(*[(body, b"", 0) for body in bodies])
                self.acknowledged[number] = writer.append("t", wire, queue_id=number % 2)
            except grpc.RpcError:
                if writer.failure is not None:
                    return

    def check(self, root: Path) -> None:
        """Check acknowledged ⊆ stored ⊆ sent, each once, whole batches, at the acknowledged place, numbers dense."""
        stored: dict[int, list[tuple[int, int]]] = {}
        following = [0, 0]
        for place, record in stored_places(root):
            number, part = (int(word) for word in record.body.split(b":")[:2])
            assert (record.queue_id, record.queue_offset) == (number % 2, following[number % 2])
            following[number % 2] += 1
            assert part == len(stored.setdefault(number, []))
            stored[number].append((place, record.queue_offset))
        assert self.acknowledged.keys() <= stored.keys() <= self.sent.keys()
        assert all(len(places) == self.sent[number] for number, places in stored.items())
        for number, answer in self.acknowledged.items():
            assert stored[number][0] == (answer.physical_offset, answer.queue_offset)


def open_and_check(root: Path, load: Load) -> None:
    """Check that recovery finds no damage, and that the log keeps its promises and accepts appends."""
    store = open_store(
        WriterSettings(store_root=root, advertised_address=ADVERTISED, commit_log_segment_size_bytes=SEGMENT_SIZE),
        DiskStorage(),
    )
    try:
        assert store.recovered.damages == []
    finally:
        release_store(store)
    load.check(root)
    with RunningWriter(root, **SETTINGS) as writer:
        before = len(load.acknowledged)
        load.send(writer, 5)
        assert len(load.acknowledged) == before + 5
    load.check(root)


def run(root: Path, fault: DiskFault, seed: int) -> bool:
    """Run once with a random fault; return True if the fault occurred."""
    random_ = random.Random(seed)
    storage, load = SeededFaults(fault, random_), Load(random_)
    mode = "async" if seed % 2 else "sync"
    with RunningWriter(root, storage, flush_mode=mode, flush_interval_ms=5, **SETTINGS) as writer:
        load.send(writer, random_.randrange(30))
        storage.arm(random_.randrange(6))
        load.send(writer, 40)
        if fault is DiskFault.SYNC and storage.happened:
            writer.wait_for_end()
            assert writer.failure is not None, "a failed sync must end the writer"
            assert storage.retried_syncs == 0, "a failed sync must not be retried"
        elif fault is DiskFault.READ_ONLY:
            assert not storage.happened or len(load.acknowledged) < len(load.sent)
        else:
            storage.heal()
            assert writer.failure is None, "a failed write must refuse its batch only"
            time.sleep(0.01)
            before = len(load.acknowledged)
            load.send(writer, 10)
            assert len(load.acknowledged) == before + 10
    open_and_check(root, load)
    return storage.happened


@pytest.mark.parametrize("fault", DiskFault, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_a_fault_loses_no_acknowledged_message(tmp_path: Path, fault: DiskFault, seed: int) -> None:
    """A failed sync ends the writer; a failed write refuses its batch, and ends the writer if it cannot be undone."""
    assert run(tmp_path, fault, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", DiskFault, ids=lambda fault: fault.name.lower())
def test_promises_hold_for_a_fault_with_many_seeds(
    tmp_path: Path, fault: DiskFault, tell: Callable[[str], None]
) -> None:
    """There are more seeds."""
    happened = sum(run(tmp_path / str(seed), fault, seed) for seed in ALL_SEEDS)
    tell(f"writer, {fault.value}: {len(ALL_SEEDS)} seeds, {happened} runs with the fault")
    assert happened > len(ALL_SEEDS) // 2


@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_partial_writes_are_completed(tmp_path: Path, seed: int) -> None:
    """A short write is no error: the rest of it follows."""
    random_ = random.Random(seed)
    load = Load(random_)
    with short_writes(random_) as count, RunningWriter(tmp_path, **SETTINGS) as writer:
        load.send(writer, 40)
    assert count[0] > 40
    assert len(load.acknowledged) == 40
    open_and_check(tmp_path, load)
