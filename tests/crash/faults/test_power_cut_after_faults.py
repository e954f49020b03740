"""A random workload over a disk that fails at random calls: every answer holds, and the store opens again."""

from __future__ import annotations

import copy
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash.simulated_disk.boots import FIRST, NEXT, booted
from tests.crash.simulated_disk.checker import Checker
from tests.crash.simulated_disk.explore import keep
from tests.crash.simulated_disk.in_process import SEGMENT_SIZE, InProcessWriter
from tests.crash.simulated_disk.pipeline import drain
from tests.crash.simulated_disk.promises import ACKNOWLEDGED, SENT, TOPIC_CREATED, Sent
from tests.crash.simulated_disk.states import Counts, crash_states
from tests.crash.simulated_disk.tree import put_tree
from tests.crash.simulated_disk.workloads import BATCHES, SIMPLE
from tidemark.errors import DiskFailedError, DiskFullError, StoreError
from tidemark.store.storage import DiskStorage

from .faulty_disk import Fault, FaultyDisk

pytestmark = pytest.mark.crash

SEED = int(os.environ.get("CRASH_SEED", "1"))
SEEDS = int(os.environ.get("CRASH_FAULTS", "30"))
SETTINGS: dict[str, Any] = {"commit_log_segment_size_bytes": SEGMENT_SIZE}
STEPS = 12
POWER_CUTS = 12


class Ordeal:
    """One store, its clients, and a failing disk; a stopped service is restarted once the disk is whole."""

    def __init__(self, root: Path, fault: Fault, seed: int) -> None:
        root.mkdir(parents=True)
        self.source = random.Random(f"{fault.name} {seed}")
        self.disk = FaultyDisk(root, self.source)
        self.happened: Counter[str] = Counter()
        self.refused: set[int] = set()
        self._fault = fault
        self._storage = self.disk.storage(DiskStorage())
        self._number = 0
        self._writer: InProcessWriter | None = None

    def go(self) -> None:
        """Create topics without faults; then run the steps, about every second one with a fault."""
        with booted(FIRST), self.disk:
            self._start()
            assert self._writer is not None
            self._writer.create_topic(SIMPLE)
            self._writer.create_topic(BATCHES, attributes={"queue.type": "BatchCQ"})
            for topic in (SIMPLE, BATCHES):
                self.disk.note(TOPIC_CREATED, topic)
            for _ in range(STEPS):
                if self.source.random() < 0.6:
                    self.disk.arm(self._fault, after=self.source.randint(0, 6), times=self.source.choice([1, 1, 2, 20]))
                self.source.choice([self._append, self._append, self._append, self._build, self._restart])()
                self.disk.mend()
                self._start()
            end = len(self.disk.trace)
            self._stop()
        del self.disk.trace[end:]

    def _start(self) -> None:
        if self._writer is None:
            self._writer = InProcessWriter(self.disk.root, self._storage, **SETTINGS)

    def _stop(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None

    def _append(self) -> None:
        assert self._writer is not None
        inner = self.source.random() < 0.3
        many = [
            Sent(
                self._number + i,
                BATCHES if inner else SIMPLE,
                self.source.randint(1, 4),
                self.source.choice([30, 700, 1800]),
                inner=inner,
            )
            for i in range(self.source.randint(1, 3))
        ]
        many = [sent if sent.messages * sent.body_size < 7000 else sent._replace(messages=3) for sent in many]
        self._number += len(many)
        for sent in many:
            self.disk.note(SENT, sent)
        for sent, answer in zip(many, self._writer.append(*(sent.request() for sent in many)), strict=True):
            if isinstance(answer, StoreError):
                self.happened[type(answer).__name__] += 1
                if isinstance(answer, DiskFullError | DiskFailedError):
                    self.refused.add(sent.number)
            else:
                place = (sent.number, answer.queue_offset, answer.physical_offset, answer.end_physical_offset)
                self.disk.note(ACKNOWLEDGED, place)
        if self._writer.commit_log.failure is not None:
            self.happened["writer stopped"] += 1
            self._stop()

    def _build(self) -> None:
        try:
            drain(self.disk.root, self._storage)
        except (StoreError, OSError):
            self.happened["pipeline stopped"] += 1

    def _restart(self) -> None:
        assert self._writer is not None
        writer, self._writer = self._writer, None
        try:
            writer.close()
            self._start()
        except (StoreError, OSError):
            self.happened["restart failed"] += 1


def undergo(fault: Fault, seed: int, folder: Path) -> Counter[str]:
    """Run it, check the states after a kill and some power cuts at its end, and return the counts of events."""
    shutil.rmtree(folder, ignore_errors=True)
    ordeal = Ordeal(folder / "store", fault, seed)
    ordeal.go()
    counts = Counts()
    end = len(ordeal.disk.trace)
    states = list(crash_states(ordeal.disk, counts, seed=seed, samples=POWER_CUTS, first=end))
    killed, cuts = states[:1], states[1:]
    chosen = killed + ordeal.source.sample(cuts, min(POWER_CUTS, len(cuts)))
    checker = Checker(folder / "state", folder / "scratch", **SETTINGS)
    for number, state in enumerate(chosen):
        put_tree(state.tree, checker.root)
        with booted(NEXT if state.power_cut else FIRST):
            try:
                checker.check(copy.deepcopy(state.promises), build_first=number % 2 == 0)
                stored = {message.number for message in checker.recovered_messages}
                assert not stored & ordeal.refused, "a refused batch is stored"
            except Exception as error:
                raise AssertionError(f"{fault.value}, seed {seed}: {state}; {keep(state.tree)}") from error
    ordeal.happened["failed calls"] = ordeal.disk.failed
    ordeal.happened["states"] = len(chosen)
    return ordeal.happened


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
def test_promises_hold_on_a_failing_disk(fault: Fault, folder: Path) -> None:
    """The quick part has two seeds per fault."""
    happened = sum((undergo(fault, seed, folder) for seed in (1, 2)), Counter[str]())
    assert happened["failed calls"] > 0 or fault is Fault.SHORT_WRITES


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
def test_promises_hold_on_a_failing_disk_for_many_seeds(
    fault: Fault, folder: Path, tell: Callable[[str], None]
) -> None:
    """The seeds are CRASH_FAULTS numbers from CRASH_SEED on."""
    happened: Counter[str] = Counter()
    for seed in range(SEED, SEED + SEEDS):
        happened += undergo(fault, seed, folder)
    tell(f"{fault.value}, seeds {SEED} to {SEED + SEEDS - 1}: {dict(sorted(happened.items()))}")
