"""A pipeline that is killed while it repairs its files: the next start loses no key and no unit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from services.indexer.pipeline.epoch import run_epoch
from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.prepare import prepare
from tests.crash.pipeline.test_every_write import SETTINGS, DyingStorage, Killed, make_store
from tests.crash.simulated_disk.boots import FIRST, NEXT, booted
from tests.pipeline_runs import build, index_contents, plan_of, queue_files
from tidemark.index.key_index import index_files
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import begin_term
from tidemark.store.storage import DiskStorage, Words

pytestmark = pytest.mark.crash

STORAGE = DiskStorage()


class DyingWords:
    """Each store and each flush is a step, too."""

    def __init__(self, words: Words, step: Callable[[], None]) -> None:
        self._words = words
        self._step = step

    def load(self, index: int) -> int:
        return self._words.load(index)

    def load_every(self, step: int, start: int, end: int) -> list[int]:
        return self._words.load_every(step, start, end)

    def store(self, index: int, value: int) -> None:
        self._step()
        self._words.store(index, value)

    def flush(self) -> None:
        self._step()
        self._words.flush()

    def address(self, index: int) -> int | None:
        return self._words.address(index)

    def close(self) -> None:
        self._words.close()


class DyingEverywhere(DyingStorage):
    """Dies at any write, including mapped ones."""

    def words(self, path: Path, size: int) -> Words:
        return DyingWords(super().words(path, size), self._step)


def die_everywhere(store: Path, die: Callable[[Path, DyingStorage], None], check: Callable[[Path, int], None]) -> None:
    """Run *die* once for each of its writes, which is the last one; then *check*."""
    for lives in range(1000):
        copy = store.with_name(f"{store.name}-{lives}")
        shutil.copytree(store, copy)
        try:
            die(copy, DyingEverywhere(lives))
        except Killed:
            check(copy, lives)
        else:
            assert lives > 10
            return
    raise AssertionError("the number of writes has no end")


def test_a_killed_start_after_a_power_cut_distrusts_the_index_again(tmp_path: Path) -> None:
    """The newest file is a mix of old and new pages, but the marks page on the disk does not show it."""
    clean, store = make_store(tmp_path / "clean"), make_store(tmp_path / "store")
    with booted(FIRST):
        build(plan_of(clean, **SETTINGS))
        plan = plan_of(store, **SETTINGS)
        build(plan)
        marks = Marks.open_to_write(plan.paths.marks, STORAGE, shards=plan.all_shards, term=0)
        marks.say_index_synced(False)
        marks.close()
    newest = index_files(plan.paths.index)[-1]
    data = bytearray(newest.read_bytes())
    data[40:60] = bytes(20)  # slots that did not reach the disk
    newest.write_bytes(data)

    def check(root: Path, lives: int) -> None:
        with booted(NEXT):
            build(plan_of(root, **SETTINGS))
        assert index_contents(root) == index_contents(clean), f"killed at write {lives}"
        assert queue_files(root) == queue_files(clean)

    def die(root: Path, storage: DyingStorage) -> None:
        with booted(NEXT):
            prepare(plan_of(root, **SETTINGS), storage)

    die_everywhere(store, die, check)


def follow(plan: EpochPlan, storage: DiskStorage) -> None:
    """Prepare and drain as with a running writer, up to its checkpoint."""
    prepare(plan, storage)
    for shard in range(plan.all_shards):
        run_epoch(plan, shard=shard, follower=0, storage=storage)


def test_a_task_killed_while_adopting_a_new_term_loses_no_key(tmp_path: Path) -> None:
    """Marks go back before index files are removed: the keys in these are built again by any next builder."""
    store = make_store(tmp_path / "store")
    plan = plan_of(store, **SETTINGS)
    build(plan)
    assert plan.limit is not None
    cut = plan.limit // 2 - plan.limit // 2 % 4096 + 4096  # a file's start, so a record's start
    for path in sorted(plan.paths.commit_log.iterdir()):
        if int(path.name) >= cut:
            path.unlink()
    begin_term(plan.paths.terms, plan.limit, STORAGE)
    begin_term(plan.paths.terms, cut, STORAGE)
    checkpoint = Checkpoint.open_to_write(plan.paths.checkpoint, STORAGE)
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, cut)
    checkpoint.close()
    fresh = make_store(tmp_path / "fresh")
    for path in sorted((fresh / "commitlog").iterdir()):
        if int(path.name) >= cut:
            path.unlink()
    build(plan_of(fresh, **SETTINGS))

    def living(root: Path) -> EpochPlan:
        return EpochPlan(**{**vars(plan), "root": root, "limit": None, "epoch_ms": 0})

    def check(root: Path, lives: int) -> None:
        follow(living(root), STORAGE)
        assert queue_files(root) == queue_files(fresh), f"killed at write {lives}"
        assert index_contents(root) == index_contents(fresh), f"killed at write {lives}"

    die_everywhere(store, lambda root, storage: follow(living(root), storage), check)
