"""The two streaming queries: Spark schedules the tasks, and `epoch` implements them.

Planning rows come from Spark's built-in `rate-micro-batch` source, one row per task; see docs/decisions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from tidemark.index.scan.scan_range import RangeProgress

from ..config import PipelineSettings
from ..epoch import run_epochs
from ..epoch_reports import EpochListener
from ..plan import EpochPlan
from ..shards.shard_builder import ShardProgress
from .scan import scan_planned

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

FOLLOWERS = 2  # queries: one follows, the other waits, warm
_TASK_FAILURES = 4  # local[n] never retries a failed task, local[n,4] does
_WAIT_FOR_SLOTS = "10s"
_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_SQL_TYPES = {"int": "long", "float": "double", "bool": "boolean", "str": "string", "list[int]": "array<long>"}


def _schema(row: type[Any]) -> str:
    return ", ".join(f"{field.name} {_SQL_TYPES[str(field.type)]}" for field in fields(row))


PROGRESS_SCHEMA = _schema(ShardProgress)
_SCAN_SCHEMA = _schema(RangeProgress)


def make_session(settings: PipelineSettings, plan: EpochPlan) -> SparkSession:
    """Create the Spark session: a slot for each following task of both queries, and warm Python workers."""
    slots = len(plan.shares) * FOLLOWERS
    master = settings.spark_master or f"local[{slots},{_TASK_FAILURES}]"
    options = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),  # the default one forks a shell per file
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",  # the default adds a checksum file
        "spark.sql.streaming.minBatchesToRetain": "4",
        "spark.sql.streaming.numRecentProgressUpdates": "4",
        "spark.scheduler.mode": "FAIR",
        "spark.python.unix.domain.socket.enabled": "true",  # over TCP each task loses 42 ms to delayed ACKs
        "spark.python.daemon.module": f"{__package__}.daemon",
        "spark.driver.memory": f"{settings.spark_driver_memory_mb}m",
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.retainedJobs": "8",
        "spark.ui.retainedStages": "8",
        "spark.sql.ui.retainedExecutions": "8",
    }
    if not settings.is_local:
        is_drain = settings.once or plan.scanned is not None
        options |= cluster_options(settings, None if is_drain else slots)
    builder = SparkSession.builder.appName("tidemark-pipeline").master(master)
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def cluster_options(settings: PipelineSettings, slots: int | None) -> dict[str, str]:
    """Return the options for executors of a cluster. Others belong in `spark-defaults.conf` of SPARK_CONF_DIR.

    slots: the number of following tasks; None for a drain, which takes all slots.

    The session waits for the requested slots, so that the first tasks are spread as well. Heartbeats are far more
    frequent than Spark's default, which gives an executor up after two to three minutes: a lost executor's shards must
    be followed elsewhere soon.
    """
    timeout_ms = settings.spark_executor_timeout_ms
    cores_max = settings.spark_cores_max or slots
    return {
        **({} if cores_max is None else {"spark.cores.max": str(cores_max)}),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": _WAIT_FOR_SLOTS,
        "spark.task.maxFailures": str(_TASK_FAILURES),
        "spark.executor.memory": f"{settings.spark_executor_memory_mb}m",
        "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
        "spark.executor.heartbeatInterval": f"{timeout_ms // 4}ms",
        "spark.storage.blockManagerHeartbeatTimeoutMs": f"{timeout_ms}ms",
        "spark.network.timeoutInterval": f"{timeout_ms // 4}ms",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }


def python_path() -> str:
    """Return the PYTHONPATH entry with which Spark's Python processes find this package."""
    return str(Path(__file__).resolve().parents[4])


def start_query(
    session: SparkSession, plan: EpochPlan, follower: int, checkpoint: Path, reports: EpochListener
) -> StreamingQuery:
    """Start one of the two follower queries. Its micro-batches are epochs."""
    session.sparkContext.setLocalProperty("spark.scheduler.pool", f"follower-{follower}")
    shards = (
        session.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", len(plan.shares))
        .option("numPartitions", len(plan.shares))
        .load()
    )
    indexed = shards.select("value").mapInArrow(follow(plan, follower), PROGRESS_SCHEMA)
    return (
        indexed.writeStream.queryName(f"follower-{follower}")
        .option("checkpointLocation", checkpoint.as_uri())
        .foreachBatch(report_progress(plan, reports))
        .start()
    )


class Drain:
    """Runner of a drain's tasks, as batch jobs. Spark repeats a lost task."""

    def __init__(self, session: SparkSession, *, is_local: bool) -> None:
        self._session = session
        self._is_local = is_local

    def slots(self) -> int:
        """Return the cores of this machine; on a cluster, where the number varies, a practically unlimited one."""
        return len(os.sched_getaffinity(0)) if self._is_local else sys.maxsize

    def start(self) -> None:
        """Start a Python worker for each concurrent task; the daemon loads the compiled loops."""
        self._numbers(self._session.sparkContext.defaultParallelism).mapInArrow(_pass_on, "value long").collect()

    def scan(self, plan: EpochPlan) -> list[RangeProgress]:
        """Scan the plan's ranges, one task per range."""
        assert plan.scanned is not None, "the caller has planned it"
        rows = self._numbers(len(plan.scanned.ranges)).mapInArrow(_scan_tasks(plan), _SCAN_SCHEMA).collect()
        return [RangeProgress(**row.asDict()) for row in rows]

    def drain(self, plan: EpochPlan) -> list[dict[str, Any]]:
        """Build up to the committed offset in one batch job and return the rows of progress."""
        rows = self._numbers(len(plan.shares)).mapInArrow(follow(plan, 0), PROGRESS_SCHEMA).collect()
        return [row.asDict() for row in rows]

    def _numbers(self, count: int) -> DataFrame:
        """Return a frame with one partition for each of *count* tasks."""
        return self._session.range(count, numPartitions=count).toDF("value")


def _pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _scan_tasks(plan: EpochPlan) -> Any:
    def tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist([asdict(scan_planned(plan, number))])

    return tasks


def follow(plan: EpochPlan, follower: int) -> Any:
    """Return the function that Spark's tasks run: it maps planning rows to rows of progress."""

    def tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        values = (value for batch in batches for value in batch.column(0).to_pylist())
        for progress in run_epochs(plan, follower=follower, values=values):
            yield pa.RecordBatch.from_pylist([asdict(progress)])

    return tasks


def report_progress(plan: EpochPlan, reports: EpochListener) -> Callable[[DataFrame, int], None]:
    """Return the function for foreachBatch: it runs an epoch and reports its rows of progress."""

    def report(frame: DataFrame, epoch: int) -> None:
        if plan.stop_flag.exists():
            return
        try:
            rows = [row.asDict() for row in frame.collect()]
        except Exception:
            if plan.stop_flag.exists():  # interrupted by the stop: Spark's stack overflows on this exception's text
                return
            raise
        reports.epoch_finished(rows)

    return report
