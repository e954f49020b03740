"""Settings of the writer: from the environment (prefix TIDEMARK_), read once at the door and passed down."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from tidemark.access.guard import Guard
from tidemark.access.settings import AccessSettings
from tidemark.format.host import Host, parse_host
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES
from tidemark.metrics.address import listen_host
from tidemark.settings.logs import LogLevel, LogLevelSetting
from tidemark.store.log_folders import LogFolders
from tidemark.tls.server_files import ClientAuth
from tidemark.tls.settings import TlsSettings
from tidemark.tracing.settings import TraceSettings

from .retention_policy import RetentionPolicy

DEFAULT_SEGMENT_SIZE_BYTES = 1 << 30
_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - recognised here, not bound


class FlushMode(enum.StrEnum):
    """When an append is answered: after the fdatasync that covers it, or after the write."""

    SYNC = "sync"
    ASYNC = "async"


class WriterSettings(AccessSettings, TlsSettings, TraceSettings):
    """Everything that can be set. Names of the environment: TIDEMARK_ and the field's name in capitals."""

    model_config = SettingsConfigDict(env_prefix="TIDEMARK_", frozen=True)

    store_root: Path = Field(Path("data"), description="the store's directory")
    writer_listen: str = Field("127.0.0.1:8081", description="address:port to bind; port 0: any free one")
    advertised_address: str | None = Field(
        None, description="address literal and port written into records and offset ids; default: where it listens"
    )
    store_name: str = Field("tidemark-0", min_length=1, max_length=255, description="a broker name")
    log_level: LogLevelSetting = LogLevel.INFO
    writer_metrics_listen: str = Field(
        "127.0.0.1:8082", description="address:port of the writer's /metrics; port 0: any free one; empty: off"
    )
    metrics_max_topics: int = Field(
        1_000, ge=1, le=100_000, description="topics that get a label of their own in metrics; the others share one"
    )

    auto_create_topics: bool = Field(True, description="create a topic when it is first written to")
    default_queues: int = Field(4, ge=1, le=1024, description="queues of such a topic")

    flush_mode: FlushMode = Field(FlushMode.SYNC, description="sync: answer after fdatasync; async: after the write")
    flush_interval_ms: int = Field(500, ge=1, le=60_000, description="between two fdatasyncs in async mode")
    sync_flush_timeout_ms: int = Field(5_000, ge=1, description="then an append is answered FLUSH_DISK_TIMEOUT")
    confirm_interval_ms: int = Field(100, ge=1, le=100, description="the committed offset is durable this often")

    commit_log_paths: str = Field(
        "", description="folders of the CommitLog between commas; relative ones below the store; empty: commitlog"
    )
    commit_log_read_only_paths: str = Field(
        "", description="further folders of the CommitLog, in which no new file is made"
    )
    commit_log_segment_size_bytes: int = Field(
        DEFAULT_SEGMENT_SIZE_BYTES, ge=4096, le=(1 << 31) - 1, description="size of a CommitLog file"
    )
    write_buffer_size_bytes: int = Field(2 << 20, ge=4096, le=64 << 20, description="records gathered for one pwrite")
    max_message_size_bytes: int = Field(
        MAX_MESSAGE_SIZE_BYTES, ge=10, le=256 << 20, description="of one body, and of one batch's wire body"
    )
    max_in_flight_bytes: int = Field(64 << 20, ge=1, description="accepted and not yet answered, all clients together")
    max_append_bytes_per_s: int = Field(
        0, ge=0, description="of one principal, or of one address where there is no access file; 0: no limit"
    )
    max_stream_in_flight_bytes: int = Field(16 << 20, ge=1, description="the same for one stream, which then waits")
    retry_after_ms: int = Field(50, ge=1, description="what RetryInfo says when a limit is reached")
    idempotence_window_batches: int = Field(65_536, ge=0, description="batches whose repeats are recognised")
    idempotence_rebuild_bytes: int = Field(256 << 20, ge=0, description="log read for that window at a start")
    min_free_disk_bytes: int = Field(32 << 20, ge=0, description="appends are refused when less is free")
    retention_hours: float = Field(
        0, ge=0, le=1e6, description="log files whose newest record is older are deleted; 0: kept for ever"
    )
    retention_interval_ms: int = Field(10_000, ge=10, le=3_600_000, description="how often that is looked at")
    retention_disk_percent: int = Field(
        0, ge=0, le=95, description="on a fuller disk the oldest files go at any age (85 in RocketMQ); 0: off"
    )
    retention_clock_grace_ms: int = Field(
        3_600_000,
        ge=0,
        le=7 * 86_400_000,
        description="a clock set ahead by more than a minute makes nothing older until it has stayed so for so long",
    )
    append_warning_ms: int = Field(
        500,
        ge=0,
        le=3_600_000,
        description="an append that waits longer for its answer is reported by the event append_waited, at most once "
        "a second; 0: never",
    )
    grpc_reflection: bool | None = Field(
        None,
        description="answer gRPC reflection, which asks for no token; unset: only where there is no access file",
    )
    max_reconsume_times: int = Field(
        16,
        ge=0,
        le=1_000_000,
        description="tries after which a message sent to a %RETRY% topic is stored in the group's %DLQ% topic",
    )
    delay_offset_interval_ms: int = Field(
        10_000,
        ge=10,
        le=3_600_000,
        description="how often delayOffset.json is saved while delayed messages are delivered",
    )
    max_connections: int = Field(
        16_384, ge=1, le=1 << 20, description="clients' connections at once; never more than the process may open files"
    )
    max_streams_per_connection: int = Field(
        1_024,
        ge=1,
        le=1 << 20,
        description="calls under way at once on one connection; further ones wait in the client",
    )
    handshake_timeout_ms: int = Field(
        10_000, ge=100, le=600_000, description="for a new connection to say that it speaks HTTP/2 (and TLS)"
    )
    keepalive_interval_ms: int = Field(
        60_000, ge=1_000, le=86_400_000, description="a connection on which nothing comes is asked whether it stands"
    )
    keepalive_timeout_ms: int = Field(
        20_000, ge=100, le=600_000, description="then it is cut; so is one whose client reads nothing"
    )
    max_connection_idle_ms: int = Field(
        600_000, ge=1_000, le=86_400_000, description="a connection without a call is closed; clients open another"
    )
    require_deadline: bool = Field(False, description="refuse a call without a deadline, unless it is a stream")
    min_ping_interval_ms: int = Field(
        5_000, ge=100, description="an idle client may ask so often whether the connection stands; else it is sent away"
    )
    drain_ms: int = Field(
        0, ge=0, le=300_000, description="at a stop: served so long after health says not ready, for load balancers"
    )
    shutdown_grace_ms: int = Field(10_000, ge=0, description="for requests in flight at a stop")

    @model_validator(mode="after")
    def _check(self) -> Self:
        parse_host(self.writer_listen.replace("localhost", "127.0.0.1"))
        listen_host(self.writer_metrics_listen)
        self.log_folders(self.store_root)
        if self.advertised_address is not None:
            parse_host(self.advertised_address)
        if self.max_in_flight_bytes < self.max_message_size_bytes:
            raise ValueError("max_in_flight_bytes is less than max_message_size_bytes: such a batch could never pass")
        if self.tls_client_auth is ClientAuth.OPTIONAL:
            raise ValueError(
                "tls_client_auth: gRPC in Python asks every client for a certificate or none, not optional"
            )
        return self

    def advertised_host(self, bound_port: int) -> Host:
        """What records and offset ids carry as the store's host."""
        if self.advertised_address is not None:
            return parse_host(self.advertised_address)
        host = parse_host(self.writer_listen.replace("localhost", "127.0.0.1"))
        address = "127.0.0.1" if host.address in _WILDCARDS else host.address
        return Host(address, bound_port)

    def log_folders(self, root: Path) -> LogFolders:
        """Where the CommitLog of the store at *root* lies."""
        return LogFolders.parse(root, self.commit_log_paths, self.commit_log_read_only_paths)

    @property
    def answers_reflection(self) -> bool:
        """Whether clients may ask for the services and their messages. The answer holds no data of the store."""
        return self.access_file is None if self.grpc_reflection is None else self.grpc_reflection

    @property
    def retention(self) -> RetentionPolicy:
        """Which files of the log may be deleted."""
        return RetentionPolicy(round(self.retention_hours * 3_600_000), self.retention_disk_percent)

    @property
    def receive_limit_bytes(self) -> int:
        """Greatest request: a legal batch whose messages are spelled out needs more bytes than its wire form."""
        return 2 * self.max_message_size_bytes + (1 << 20)

    def open_writer_guard(self) -> Guard | None:
        """What stands before every request. AccessFileError."""
        return self.open_guard(
            "writer",
            append_bytes_per_s=self.max_append_bytes_per_s,
            greatest_append_bytes=self.max_message_size_bytes,
        )
