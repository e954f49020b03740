"""`--once` on a directory that its broker, or Tidemark's writer, left clean: the files that a broker trusts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.indexer.pipeline.prepare import give_trust_back, withdraw_trust_without_writer
from tests.builders import write_log
from tests.pipeline_runs import build, plan_of
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

STORE_MS = 1_700_000_000_000


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    """Return a log without queues and without an `abort` file; the checkpoint is a broker's."""
    paths = StorePaths(tmp_path)
    write_log(paths.commit_log, 8192, ({"queue_offset": i, "store_timestamp": STORE_MS} for i in range(100)))
    checkpoint = Checkpoint.open_to_write(paths.checkpoint, DiskStorage())
    for field in (Field.LOGICS_MESSAGE_TIMESTAMP, Field.INDEX_MESSAGE_TIMESTAMP):
        checkpoint.set(field, STORE_MS - 1)
    checkpoint.close()
    return paths


def logics_time(paths: StorePaths) -> int:
    checkpoint = Checkpoint.open_read_only(paths.checkpoint)
    try:
        return checkpoint.get(Field.LOGICS_MESSAGE_TIMESTAMP)
    finally:
        checkpoint.close()


def test_a_killed_pipeline_leaves_the_index_untrusted(paths: StorePaths) -> None:
    """Before it changes a queue, `abort` exists and the times are zero."""
    process = subprocess.Popen(
        [sys.executable, "-m", "services.indexer", "pipeline", "--once", "--store-root", str(paths.root)],
        env={**os.environ, "TIDEMARK_INDEX_SLOTS": "16"},
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while not paths.consume_queue.exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.002)
    finally:
        process.kill()
        process.wait()
    assert paths.abort.exists()
    assert logics_time(paths) == 0


@pytest.mark.parametrize("was_clean", [True, False])
def test_a_clean_store_is_trusted_again_after_the_build(paths: StorePaths, was_clean: bool) -> None:
    """An existing `abort` file stays: the log's tail may be torn, which only a writer can repair."""
    if not was_clean:
        paths.abort.touch()
    plan = plan_of(paths.root, index_slots=16)
    was_trusted = withdraw_trust_without_writer(plan, DiskStorage())
    assert was_trusted == was_clean
    assert paths.abort.exists()
    build(plan)
    if was_trusted:
        give_trust_back(plan, DiskStorage())
    assert paths.abort.exists() != was_clean
    assert logics_time(paths) == (STORE_MS if was_clean else 0)
