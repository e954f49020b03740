"""The watermark over kills of the pipeline and the writer, without a power cut: it never goes back.

A life of the pipeline is killed at a step (each write and each mapped store is one), a new term of the writer begins,
and the next life is killed at a step of its own. A reader checks before each step.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch import run_share
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.prepare import prepare
from tests.crash.pipeline.test_every_write import SETTINGS, Killed, make_store
from tests.crash.pipeline.test_killed_start import DyingEverywhere
from tests.pipeline_runs import build, end_of, index_contents, plan_of, queue_files
from tidemark.read.watermark import WatermarkReader
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.originals.terms import begin_term
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

STORAGE = DiskStorage()
SIZES = {**SETTINGS, "shards": 1, "index_entries": 60, "chunk_size_bytes": 4096}
PARTS = 8  # of the exhaustive test
ORDERS = ([[0], [1]], [[1], [0]], [[0, 1]])  # queues first, key index first, both in one task


class WatchedStorage(DyingEverywhere):
    """Lets a reader check the watermark before each step."""

    def __init__(self, lives: int, store: Store) -> None:
        super().__init__(lives)
        self._store = store

    def _step(self) -> None:
        self._store.look()
        super()._step()


class Store:
    """A log whose committed part grows from life to life, and the greatest watermark that a reader has seen."""

    def __init__(self, root: Path, seen: int = 0) -> None:
        self.root = root
        self.paths = StorePaths(root)
        self.seen = seen

    def copy(self, name: str) -> Store:
        return Store(Path(shutil.copytree(self.root, self.root.with_name(name))), self.seen)

    def look(self) -> int:
        reader = WatermarkReader(self.paths)
        watermark = reader.read().physical_offset
        reader.close()
        assert watermark >= self.seen, f"the watermark went back from {self.seen} to {watermark}"
        self.seen = watermark
        return watermark

    def begin_term(self, recovered_end: int) -> None:
        begin_term(self.paths.terms, recovered_end, STORAGE)
        checkpoint = Checkpoint.open_to_write(self.paths.checkpoint, STORAGE)
        checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, recovered_end)
        checkpoint.close()

    def plan(self) -> EpochPlan:
        return make_plan(PipelineSettings(store_root=self.root, epoch_ms=0, **SIZES))

    def live(self, order: Sequence[Sequence[int]], lives: int) -> bool:
        """Start a pipeline and drain; return True if it was killed at step number *lives*."""
        storage = WatchedStorage(lives, self)
        plan = self.plan()
        plan.paths.indexer.mkdir(parents=True, exist_ok=True)
        try:
            prepare(plan, storage)
            for share in order:
                run_share(plan, share, follower=0, storage=storage)
        except Killed:
            return True
        finally:
            self.look()
        return False


def edges(root: Path, end: int) -> tuple[int, int]:
    """Return two record edges of the log, at about a third and two thirds."""
    plan = plan_of(root, **SIZES)
    log = plan.open_log()
    places, at = [0], 0
    while at < end:
        size = int.from_bytes(log.read(at, 4), "big")
        at = at + size if log.read(at + 4, 1) != b"\xcb" else log.file_start(at) + log.file_size
        places.append(at)
    log.close()
    return places[len(places) // 3], places[2 * len(places) // 3]


def killed_lives(tmp_path: Path, order: Sequence[Sequence[int]], steps: Iterator[int]) -> int:
    """Kill a first life at each of *steps* and the second at more of them; then build to the end.

    Return the number of kills.
    """
    clean = make_store(tmp_path / "clean")
    end = end_of(clean, **SIZES)
    first_end, second_end = edges(clean, end)
    build(plan_of(clean, **SIZES))
    original = Store(make_store(tmp_path / "original"))
    original.begin_term(0)
    original.begin_term(first_end)
    original.live(order, 1 << 30)
    kills = 0
    for number, lives in enumerate(steps):
        first = original.copy(f"first-{number}")
        first.begin_term(second_end)
        was_killed = first.live(order, lives)
        for more in (lives, 2, number % 40, number % 90):
            second = first.copy("second")
            second.begin_term(end)
            kills += second.live(order, more)
            third = second
            third.begin_term(end)
            assert not third.live(order, 1 << 30)
            assert third.look() == end
            assert queue_files(third.root) == queue_files(clean)
            assert index_contents(third.root) == index_contents(clean), f"killed at {lives} and {more}"
            shutil.rmtree(second.root)
        shutil.rmtree(first.root)
        kills += was_killed
        if not was_killed:
            return kills
    return kills


@pytest.mark.parametrize("order", ORDERS)
def test_the_watermark_never_decreases_after_kills_at_some_steps(tmp_path: Path, order: list[list[int]]) -> None:
    assert killed_lives(tmp_path, order, iter(range(3, 400, 17))) > 8


@pytest.mark.exhaustive
@pytest.mark.crash
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first_step", range(PARTS))
@pytest.mark.parametrize("order", ORDERS)
def test_the_watermark_never_decreases_after_kills_at_every_step(
    tmp_path: Path, order: list[list[int]], first_step: int
) -> None:
    assert killed_lives(tmp_path, order, itertools.count(first_step, PARTS)) > 10
