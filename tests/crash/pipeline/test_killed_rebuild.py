"""A pipeline that is killed while it rebuilds damaged files: the next one finishes, and the watermark stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.crash.pipeline.test_every_write import SETTINGS, Killed, make_store
from tests.crash.pipeline.test_killed_start import DyingEverywhere
from tests.pipeline_runs import build, index_contents, plan_of, queue_files
from tidemark.read.watermark import WatermarkReader
from tidemark.store.paths import StorePaths


def watermark(root: Path) -> int:
    reader = WatermarkReader(StorePaths(root))
    try:
        return reader.read().physical_offset
    finally:
        reader.close()


def kill_at(tmp_path: Path, first: int, step: int) -> None:
    store = make_store(tmp_path / "store")
    build(plan_of(store, **SETTINGS))
    clean, index, end = queue_files(store), index_contents(store), watermark(store)
    for number in (0, 2):
        for path in (store / "consumequeue" / "TopicTest" / str(number)).iterdir():
            path.write_bytes(path.read_bytes()[:-1])
    damaged = sorted((store / "index").iterdir())[0]
    damaged.write_bytes(b"")
    for lives in range(first, 1000, step):
        copy = Path(shutil.copytree(store, tmp_path / f"{lives}"))
        try:
            build(plan_of(copy, **SETTINGS), DyingEverywhere(lives))
        except Killed:
            assert watermark(copy) == end, f"killed at step {lives}"
        else:
            assert lives > 50
            return
        build(plan_of(copy, **SETTINGS))
        assert queue_files(copy) == clean, f"killed at step {lives}"
        assert index_contents(copy) == index, f"killed at step {lives}"
        assert watermark(copy) == end
        assert not list((copy / "tidemark" / "indexer").glob("rebuild-*"))
        shutil.rmtree(copy)
    raise AssertionError("the number of steps has no end")


def test_a_rebuild_that_is_killed_at_some_steps_is_completed(tmp_path: Path) -> None:
    kill_at(tmp_path, 5, 23)


@pytest.mark.crash
@pytest.mark.timeout(1200)
def test_a_rebuild_that_is_killed_at_any_step_is_completed(tmp_path: Path) -> None:
    kill_at(tmp_path, 0, 1)
