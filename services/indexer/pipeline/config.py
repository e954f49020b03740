"""Settings of the pipeline: environment (TIDEMARK_…), then the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from tidemark.metrics.address import listen_host
from tidemark.settings.door import service_config
from tidemark.settings.engine import Engine
from tidemark.settings.logs import LogLevel, LogLevelSetting
from tidemark.store.log_folders import LogFolders
from tidemark.tracing.settings import MessageTraceSettings, Traces


class PipelineSettings(MessageTraceSettings):
    """Settings of the indexer's pipeline. File sizes default to those of existing files, otherwise to RocketMQ's."""

    model_config = service_config("python -m services.indexer pipeline")

    store_root: Path = Field(Path("data"), description="folder of the store")
    once: bool = Field(False, description="index the committed messages and exit")
    epoch_ms: int = Field(
        30_000,
        ge=0,
        le=3_600_000,
        description="time for which a task follows the log; 0: drain and stop",
    )
    warm_up_ms: int = Field(
        15_000,
        ge=0,
        le=600_000,
        description="time after the start with epochs of at most 500 ms",
    )
    shards: int = Field(
        1,
        ge=1,
        le=64,
        description="shards of queues, one task each; above 1, the key index has its own task",
    )
    pipeline: Engine = Field(
        Engine.SPARK, description="spark: run tasks on Spark; plain: in this service's own process, no Java"
    )
    spark_master: str = Field("", description="empty: local[n,4], a slot per following task")
    spark_driver_memory_mb: int = Field(512, ge=256, description="heap of the driver, MiB")
    spark_executor_memory_mb: int = Field(
        512,
        ge=480,
        description="on a cluster: heap of an executor, MiB; Python's memory is extra",
    )
    spark_cores_max: int | None = Field(
        None,
        ge=1,
        description="on a cluster: slots to take; unset: one per following task, all for a drain",
    )
    spark_executor_timeout_ms: int = Field(
        20_000,
        ge=2_000,
        le=120_000,
        description="on a cluster: an executor without a heartbeat for this long is lost",
    )
    spark_restart_pause_ms: int = Field(
        60_000,
        ge=1_000,
        le=3_600_000,
        description="longest pause before Spark is started again; from 1 s, it doubles with each loss",
    )
    lease_ms: int = Field(
        10_000,
        ge=500,
        le=600_000,
        description="on a cluster: time without renewal after which a task loses its shards",
    )
    commit_log_paths: str = Field(
        "",
        description="comma-separated folders of the CommitLog, relative to the store; empty: commitlog",
    )
    commit_log_read_only_paths: str = Field("", description="further folders of the CommitLog, without new files")
    commit_log_segment_size_bytes: int | None = Field(
        None, ge=4096, description="size of a CommitLog file; unset: as existing files, otherwise 1073741824"
    )
    consume_queue_file_size_bytes: int = Field(6_000_000, ge=20, description="size of a ConsumeQueue file")
    batch_consume_queue_file_size_bytes: int = Field(13_800_000, ge=46, description="size of a BatchConsumeQueue file")
    enable_consume_queue_ext: bool = Field(
        False, description="build consume queue extensions, as a broker's enableConsumeQueueExt"
    )
    consume_queue_ext_file_size_bytes: int = Field(
        50_331_648, ge=24, description="size of a consume queue extension file"
    )
    index_slots: int | None = Field(
        None,
        ge=1,
        description="slots of an index file; unset: from existing files at 4 entries per slot, otherwise 5000000",
    )
    index_entries: int | None = Field(None, ge=2, description="entries of an index file; unset: 4 per slot")
    enable_multi_dispatch: bool = Field(
        False, description="build light queues, as a broker's enableLmq and enableMultiDispatch"
    )
    chunk_size_bytes: int = Field(
        4 << 20, ge=1 << 12, description="largest part of the log that a task builds before it publishes"
    )
    scan_range_size_bytes: int | None = Field(
        None,
        ge=1 << 12,
        description="with once: size of log ranges scanned in parallel; unset: 268435456 if cores exceed shards",
    )
    durable_interval_ms: int = Field(1_000, ge=10, description="interval between syncs of built files")
    set_aside_files: int = Field(
        16,
        ge=0,
        le=10_000,
        description="damaged files and folders kept in set-aside",
    )
    scrub_bytes_per_s: int = Field(
        1 << 20,
        ge=0,
        le=1 << 30,
        description="rate of the scrub; with once: 64 seconds of it at the start; 0: off",
    )
    start_timeout_s: float = Field(120.0, gt=0, description="time until each shard must be followed")
    log_level: LogLevelSetting = LogLevel.INFO
    pipeline_metrics_listen: str = Field(
        "127.0.0.1:8083",
        description="address:port of /metrics (not with once); port 0: any free port; empty: off",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.log_folders(self.store_root)
        listen_host(self.pipeline_metrics_listen)
        return self

    def log_folders(self, root: Path) -> LogFolders:
        """Return the folders of the CommitLog of the store at *root*."""
        return LogFolders.parse(root, self.commit_log_paths, self.commit_log_read_only_paths)

    @property
    def traced_messages(self) -> int:
        """Most traced messages that an epoch reports; 0 if traces are off."""
        return 0 if self.once or self.traces is Traces.OFF else self.trace_max_messages

    @property
    def runs_spark(self) -> bool:
        """True if Spark runs the tasks."""
        return self.pipeline is Engine.SPARK

    @property
    def is_local(self) -> bool:
        """True if tasks run on this host."""
        return not self.spark_master or self.spark_master.startswith("local")
