"""Settings of the pipeline: environment (TIDEMARK_…), then the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from tidemark.metrics.address import listen_host
from tidemark.settings.logs import LogLevel, LogLevelSetting
from tidemark.store.log_folders import LogFolders
from tidemark.tracing.settings import MessageTraceSettings, Traces


class PipelineSettings(MessageTraceSettings):
    """How the indexer's pipeline runs. File sizes are RocketMQ's; where files exist already, theirs hold."""

    model_config = SettingsConfigDict(
        env_prefix="TIDEMARK_",
        frozen=True,
        cli_prog_name="python -m services.indexer pipeline",
        cli_kebab_case=True,
        cli_implicit_flags=True,
    )

    store_root: Path = Field(Path("data"), description="the store's directory")
    once: bool = Field(False, description="index what is committed, publish, and exit")
    epoch_ms: int = Field(30_000, ge=0, le=3_600_000, description="how long a task follows; 0: drain and stop")
    warm_up_ms: int = Field(
        15_000,
        ge=0,
        le=600_000,
        description="for so long from the start epochs last half a second: Spark's JVM warms up",
    )
    shards: int = Field(
        1, ge=1, le=64, description="tasks that share the queues; 1: the key index with them, else it is one more"
    )
    spark: bool = Field(
        True, description="off, with once: tasks are processes of this machine, and no JVM has to start"
    )
    spark_master: str = Field("", description="Spark master; empty: local[n,4] with a slot for every following task")
    spark_driver_memory_mb: int = Field(512, ge=256, description="heap of the Spark driver, MiB")
    spark_executor_memory_mb: int = Field(
        512, ge=480, description="on a cluster: heap of an executor, MiB; what tasks need is Python's, beside it"
    )
    spark_cores_max: int | None = Field(
        None,
        ge=1,
        description="on a cluster: slots that are taken; unset: one for every following task, and all for a drain",
    )
    spark_executor_timeout_ms: int = Field(
        20_000,
        ge=2_000,
        le=120_000,
        description="on a cluster: an executor that is not heard for so long is given up, its tasks start elsewhere",
    )
    lease_ms: int = Field(
        10_000,
        ge=500,
        le=600_000,
        description="on a cluster: a task that gives no sign of life for so long loses its shards to another",
    )
    commit_log_paths: str = Field(
        "", description="folders of the CommitLog between commas; relative ones below the store; empty: commitlog"
    )
    commit_log_read_only_paths: str = Field(
        "", description="further folders of the CommitLog, in which no new file is made"
    )
    commit_log_segment_size_bytes: int | None = Field(
        None, ge=4096, description="size of a CommitLog file; as it is, if unset"
    )
    consume_queue_file_size_bytes: int = Field(6_000_000, ge=20, description="size of a ConsumeQueue file")
    batch_consume_queue_file_size_bytes: int = Field(13_800_000, ge=46, description="size of a BatchConsumeQueue file")
    enable_consume_queue_ext: bool = Field(
        False, description="build consume queue extensions (a broker's enableConsumeQueueExt)"
    )
    consume_queue_ext_file_size_bytes: int = Field(
        50_331_648, ge=24, description="size of a file of a consume queue extension"
    )
    index_slots: int | None = Field(
        None,
        ge=1,
        description="slots of an index file; unset: 5000000, or as existing files have at 4 entries a slot",
    )
    index_entries: int | None = Field(None, ge=2, description="entries of an index file; unset: four times the slots")
    enable_multi_dispatch: bool = Field(
        False, description="build light queues (a broker's enableLmq and enableMultiDispatch)"
    )
    chunk_size_bytes: int = Field(
        4 << 20, ge=1 << 12, description="the most of the log a task builds before it publishes"
    )
    scan_range_size_bytes: int | None = Field(
        None,
        ge=1 << 12,
        description="with once: tasks first scan the log in ranges of so many bytes, whole files, side by side; "
        "unset: 268435456 where there are more cores than shards to build, else each shard's task reads the log",
    )
    durable_interval_ms: int = Field(
        1_000, ge=10, description="how often built files are synced and durable marks move"
    )
    set_aside_files: int = Field(
        16,
        ge=0,
        le=10_000,
        description="damaged files and queue folders that are kept in tidemark/indexer/set-aside; older ones go",
    )
    scrub_bytes_per_s: int = Field(
        1 << 20,
        ge=0,
        le=1 << 30,
        description="how much of the log per second is compared with queues and key index in the background; "
        "with once: 64 seconds' worth at the start; 0: off",
    )
    start_timeout_s: float = Field(120.0, gt=0, description="until the first task of a query must follow")
    log_level: LogLevelSetting = LogLevel.INFO
    pipeline_metrics_listen: str = Field(
        "127.0.0.1:8083",
        description="address:port of the pipeline's /metrics, not with once; port 0: any free one; empty: off",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.log_folders(self.store_root)
        listen_host(self.pipeline_metrics_listen)
        if not self.spark and not self.once:
            raise ValueError("following runs on Spark: spark may be off with once only")
        return self

    def log_folders(self, root: Path) -> LogFolders:
        """Where the CommitLog of the store at *root* lies."""
        return LogFolders.parse(root, self.commit_log_paths, self.commit_log_read_only_paths)

    @property
    def traced_messages(self) -> int:
        """How many traced messages an epoch looks for."""
        return 0 if self.once or self.traces is Traces.OFF else self.trace_max_messages

    @property
    def is_local(self) -> bool:
        """Whether tasks run on this host."""
        return not self.spark_master or self.spark_master.startswith("local")
