"""`tidemark store hand-back` on real stores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline_runs import end_of
from tidemark.cli.terminal.exit_status import ExitStatus
from tidemark.client import Producer
from tidemark.local.local_stack import WRITER, LocalStack
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.lock import FolderLock
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]
ENVIRONMENT = {
    "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": "65536",
    "TIDEMARK_CONSUME_QUEUE_FILE_SIZE_BYTES": "4000",
    "TIDEMARK_INDEX_SLOTS": "500",
    "TIDEMARK_INDEX_ENTRIES": "2000",
}


def hand_back(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidemark.cli", "store", "hand-back", str(root)],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LocalStack]:
    """Run a writer whose messages no pipeline has seen."""
    stack = LocalStack(tmp_path / "data", environment=ENVIRONMENT, services=(WRITER,))
    stack.start()
    try:
        with Producer(stack.writer_address) as producer:
            futures = [producer.send_async("orders", b"%d" % i, key=f"k{i}") for i in range(300)]
            assert [future.result().count for future in futures] == [1] * 300
        yield stack
    finally:
        stack.stop()


def test_hand_back_completes_the_index_of_a_killed_store(writer: LocalStack) -> None:
    """Afterwards all is durably built, the times are right and `abort` is gone."""
    paths = StorePaths(writer.data)
    writer.services.pop(WRITER).kill()
    assert paths.abort.exists()
    done = hand_back(writer.data)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mappedFileSizeCommitLog=65536" in done.stdout
    assert "mappedFileSizeConsumeQueue=4000" in done.stdout
    assert not paths.abort.exists()
    marks = Marks.open_read_only(paths.marks)
    assert marks.durable_floor() == marks.greatest_durable() == end_of(writer.data) > 0
    marks.close()
    checkpoint = Checkpoint.open_read_only(paths.checkpoint)
    assert checkpoint.committed_offset == end_of(writer.data)
    assert checkpoint.get(Field.LOGICS_MESSAGE_TIMESTAMP) == checkpoint.get(Field.INDEX_MESSAGE_TIMESTAMP) > 0
    checkpoint.close()


def test_hand_back_is_refused_while_the_store_is_in_use(writer: LocalStack) -> None:
    """A writer or a pipeline uses the store; a folder without a store is refused too."""
    refused = hand_back(writer.data)
    assert refused.returncode == ExitStatus.UNAVAILABLE
    assert "a writer or a broker runs on this store" in refused.stderr
    assert str(writer.services[WRITER].pid) in refused.stderr
    writer.stop()
    paths = StorePaths(writer.data)
    paths.indexer.mkdir(parents=True, exist_ok=True)
    pipeline = FolderLock(paths.indexer / "lock")
    pipeline.require()
    refused = hand_back(writer.data)
    assert refused.returncode == ExitStatus.UNAVAILABLE
    assert "a pipeline runs on this store" in refused.stderr
    pipeline.release()
    refused = hand_back(writer.data / "logs")
    assert refused.returncode == ExitStatus.UNAVAILABLE
    assert "no commitlog folder" in refused.stderr
    assert paths.abort.exists()
