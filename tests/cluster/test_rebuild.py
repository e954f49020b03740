"""`tidemark store rebuild` with a cluster's master in the environment: its tasks run on the cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.cluster.follow_run import SETTINGS, assert_equal_to_rebuild, command, events
from tests.cluster.holder import executor_of, holder_of
from tests.cluster.standalone import Standalone, parts_of, signal_all
from tests.integration.pipeline.test_pipeline_process import wait_for_watermark
from tests.pipeline_runs import index_contents, queue_files
from tidemark.client import Producer
from tidemark.local.local_stack import PIPELINE, WRITER, LocalStack
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(900)]
_ROWS = 300_000
_TIMEOUT_S = 240.0
_SETTINGS = {
    **SETTINGS,
    "TIDEMARK_COMMIT_LOG_SEGMENT_SIZE_BYTES": str(16 << 20),
    "TIDEMARK_INDEX_SLOTS": "100000",
    "TIDEMARK_INDEX_ENTRIES": "400000",
    "TIDEMARK_SPARK_CORES_MAX": "12",  # slots of both workers, for which it waits
    "TIDEMARK_SCAN_RANGE_SIZE_BYTES": str(16 << 20),
    "TIDEMARK_CHUNK_SIZE_BYTES": str(1 << 13),  # small, so that there is time to kill
}


@pytest.fixture
def followed(tmp_path: Path, cluster: Standalone) -> Path:
    """Return a store that the cluster has followed."""
    environment = {**_SETTINGS, **cluster.environment}
    stack = LocalStack(tmp_path / "store", environment=environment, services=(WRITER, PIPELINE))
    rows = pa.table({"body": np.arange(_ROWS).astype("S64"), "key": np.arange(_ROWS).astype("U")})
    with stack, Producer(stack.writer_address) as producer:
        stack.wait_for_spark()
        sent = producer.send_table(rows, "orders", body="body", key="key")
        wait_for_watermark(stack.data, max(result.end_physical_offset for result in sent.results), _TIMEOUT_S)
        assert stack.stop()[PIPELINE] == 0
    return stack.data


def test_a_cluster_rebuild_gives_the_followers_bytes_even_with_a_killed_executor(
    followed: Path, cluster: Standalone, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    """Ranges are scanned concurrently, each shard is built by a task; those of a killed executor start again."""
    queues, index = queue_files(followed), index_contents(followed)
    (whole,) = events(_rebuild(followed, cluster, kill=False), "drain_finished")
    assert whole["ranges"] > 1
    assert len(set(whole["executors"])) == 2
    assert (queue_files(followed), index_contents(followed)) == (queues, index)
    log = _rebuild(followed, cluster, kill=True)
    assert "Lost executor" in log.read_text()
    assert (queue_files(followed), index_contents(followed)) == (queues, index)
    (killed,) = events(log, "drain_finished")
    tell(f"rebuilt in {whole['build_s']} s; with an executor killed in {killed['build_s']} s")
    assert_equal_to_rebuild(followed, tmp_path / "rebuilt")


def _rebuild(store: Path, cluster: Standalone, *, kill: bool) -> Path:
    """Run it to its end; return the pipeline's log."""
    environment = {**os.environ, **_SETTINGS, **cluster.environment}
    marks = Marks.open_read_only(StorePaths(store).marks)
    end = marks.watermark()
    with subprocess.Popen(command("store", "rebuild", str(store)), env=environment) as process:
        if kill:
            _kill_an_executor_in_the_middle(store, marks, end)
        assert process.wait(_TIMEOUT_S) == 0
    assert marks.watermark() == end
    marks.close()
    return store / "logs" / "rebuild.log"


def _kill_an_executor_in_the_middle(store: Path, marks: Marks, end: int) -> None:
    """Kill the executor of a task that is still far from the log's end."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not (begun := [shard for shard in range(marks.shards) if 0 < marks.intended(shard) < end / 2]):
        assert time.monotonic() < deadline, [marks.intended(shard) for shard in range(marks.shards)]
        time.sleep(0.001)
    task = holder_of(store, begun[0])
    assert task is not None
    signal_all(parts_of(executor_of(task)), signal.SIGKILL)
    assert marks.watermark() < end
