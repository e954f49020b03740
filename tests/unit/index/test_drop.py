"""Removal of built files: after a kill at any step, the same call and a build restore the same bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from services.indexer.pipeline.prepare import own_indexer
from tests.pipeline_runs import GOLDEN_SETTINGS, build, index_contents, plan_of, queue_files, without_derived
from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.errors import StoreLockedError
from tidemark.index.drop import drop_built, forget_dropped, no_pipeline, sizes_of_built
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

GoldenStore = Callable[[str], Path]
NAME = "killed/store-recovered"


@pytest.fixture
def built(golden_store: GoldenStore, tmp_path: Path) -> Path:
    """Build a store with file sizes that differ from every default."""
    root = without_derived(golden_store(NAME), tmp_path / "built")
    build(plan_of(root, **GOLDEN_SETTINGS[NAME]))
    return root


def rebuild(root: Path) -> None:
    """Rebuild as the verb does, without Spark."""
    paths = StorePaths(root)
    with no_pipeline(paths, DiskStorage()):
        sizes = sizes_of_built(paths)
        drop_built(paths, DiskStorage(), queues=True, index=True)
    build(plan_of(root, **sizes))
    forget_dropped(paths)


def test_a_drop_killed_at_any_step_still_rebuilds_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """The files keep their sizes, though the folders that showed the sizes are already gone."""
    wanted = queue_files(built), index_contents(built)
    step = 0
    while True:
        root = Path(shutil.copytree(built, tmp_path / str(step)))
        try:
            drop_built(StorePaths(root), RecordingStorage(die_before=step), queues=True, index=True)
            break
        except KilledHere:
            rebuild(root)
            assert (queue_files(root), index_contents(root)) == wanted
            assert not [path for path in root.iterdir() if path.suffix in (".dropped", ".part")]
        step += 1
    assert step >= 3


def test_a_killed_rebuild_starts_over(built: Path) -> None:
    """Partly or wrongly built files do not stay."""
    wanted = queue_files(built)
    drop_built(StorePaths(built), DiskStorage(), queues=True, index=True)
    folder = built / "consumequeue" / "Orders" / "0"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}").write_bytes(b"\x7f" * 4000)
    rebuild(built)
    assert queue_files(built) == wanted


def test_a_drop_removes_only_the_requested_files(built: Path) -> None:
    """Readers see no messages while the marks are back at the log's start."""
    paths = StorePaths(built)
    drop_built(paths, DiskStorage(), queues=False, index=True)
    assert paths.consume_queue.is_dir()
    assert not paths.index.exists()
    marks = Marks.open_read_only(paths.marks)
    visible = [marks.visible(shard) for shard in range(marks.shards)]
    assert visible[-1] == marks.watermark() == 0
    assert min(visible[:-1]) > 0
    marks.close()


def test_a_drop_is_refused_while_the_pipeline_runs(built: Path) -> None:
    """The lock of the pipeline shows that it runs."""
    plan = plan_of(built)
    with (
        own_indexer(plan, DiskStorage()),
        pytest.raises(StoreLockedError),
        no_pipeline(plan.paths, DiskStorage()),
    ):
        pass
