"""Settings of the writer: environment variables with the prefix TIDEMARK_, read once at the start and passed down."""

from __future__ import annotations

import contextlib
import enum
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from tidemark.access.guard import Guard
from tidemark.access.settings import AccessSettings
from tidemark.format.host import Host, parse_host
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES
from tidemark.metrics.address import listen_host
from tidemark.remoting_server.settings import ConnectionLimits
from tidemark.settings.door import service_config
from tidemark.settings.logs import LogLevel, LogLevelSetting
from tidemark.store.log_folders import LogFolders
from tidemark.tls.server_files import ClientAuth
from tidemark.tls.settings import TlsSettings
from tidemark.tracing.settings import TraceSettings

from .follow_settings import FollowSettings
from .group_settings import GroupSettings
from .retention_policy import RetentionPolicy
from .slave_settings import SlaveSettings

DEFAULT_SEGMENT_SIZE_BYTES = 1 << 30
_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - recognised here, not bound


class FlushMode(enum.StrEnum):
    """When an append is answered: after the fdatasync that covers it, or after the write."""

    SYNC = "sync"
    ASYNC = "async"


class WriterSettings(AccessSettings, TlsSettings, TraceSettings, SlaveSettings, GroupSettings, FollowSettings):
    """All settings of the writer. The environment variable is TIDEMARK_ and the field's name in capitals."""

    model_config = service_config("python -m services.writer")

    store_root: Path = Field(Path("data"), description="folder of the store")
    writer_listen: str = Field("127.0.0.1:8081", description="address:port; port 0: any free port")
    advertised_address: str | None = Field(
        None,
        description="IP address:port in records and message ids; unset: the query service's remoting address, if it "
        "has an IP address, or else the listen address",
    )
    store_name: str = Field("tidemark-0", min_length=1, max_length=255, description="broker name in answers")
    log_level: LogLevelSetting = LogLevel.INFO
    writer_metrics_listen: str = Field(
        "127.0.0.1:8082", description="address:port of /metrics; port 0: any free port; empty: off"
    )
    metrics_max_topics: int = Field(
        1_000, ge=1, le=100_000, description="topics with their own metrics label; others share one"
    )

    flush_mode: FlushMode = Field(FlushMode.SYNC, description="sync: answer after fdatasync; async: after the write")
    flush_interval_ms: int = Field(500, ge=1, le=60_000, description="async: time between two fdatasyncs")
    sync_flush_timeout_ms: int = Field(
        5_000, ge=1, description="sync: slower flushes are answered with FLUSH_DISK_TIMEOUT"
    )
    confirm_interval_ms: int = Field(
        100, ge=1, le=100, description="interval at which the committed offset becomes durable"
    )

    commit_log_paths: str = Field(
        "",
        description="comma-separated folders of the CommitLog, relative to the store; empty: commitlog",
    )
    commit_log_read_only_paths: str = Field("", description="further folders of the CommitLog, without new files")
    commit_log_segment_size_bytes: int = Field(
        DEFAULT_SEGMENT_SIZE_BYTES, ge=4096, le=(1 << 31) - 1, description="size of a CommitLog file"
    )
    write_buffer_size_bytes: int = Field(2 << 20, ge=4096, le=64 << 20, description="buffer for one pwrite")
    max_message_size_bytes: int = Field(
        MAX_MESSAGE_SIZE_BYTES, ge=10, le=256 << 20, description="largest body and largest wire body of a batch"
    )
    max_in_flight_bytes: int = Field(64 << 20, ge=1, description="unanswered appends of all clients")
    max_append_bytes_per_s: int = Field(
        0, ge=0, description="limit per principal, or address without an access file; 0: none"
    )
    max_stream_in_flight_bytes: int = Field(
        16 << 20, ge=1, description="unanswered appends of a stream; beyond, it waits"
    )
    retry_after_ms: int = Field(50, ge=1, description="delay suggested by RetryInfo at a limit")
    idempotence_window_batches: int = Field(65_536, ge=0, description="recent batches whose repeats are recognised")
    idempotence_rebuild_bytes: int = Field(
        256 << 20, ge=0, description="log tail that a start reads to recognise repeats"
    )
    min_free_disk_bytes: int = Field(32 << 20, ge=0, description="appends are rejected below this free space")
    retention_hours: float = Field(
        0, ge=0, le=1e6, description="delete log files whose newest record is older; 0: never"
    )
    retention_interval_ms: int = Field(
        10_000, ge=10, le=3_600_000, description="interval between searches for expired log files"
    )
    retention_disk_percent: int = Field(
        0,
        ge=0,
        le=95,
        description="delete the oldest log files while the disk is fuller (RocketMQ: 85); 0: off",
    )
    retention_clock_grace_ms: int = Field(
        3_600_000,
        ge=0,
        le=7 * 86_400_000,
        description="time for which retention ignores a clock set ahead by over a minute",
    )
    append_warning_ms: int = Field(
        500,
        ge=0,
        le=3_600_000,
        description="slower appends are logged as append_waited, one a second; 0: never",
    )
    grpc_reflection: bool | None = Field(
        None,
        description="answer gRPC reflection, without a token; unset: only without an access file",
    )
    max_reconsume_times: int = Field(
        16,
        ge=0,
        le=1_000_000,
        description="tries before a %RETRY% message goes to the group's %DLQ% topic",
    )
    delay_offset_interval_ms: int = Field(
        10_000,
        ge=10,
        le=3_600_000,
        description="interval between saves of delayOffset.json",
    )
    max_connections: int = Field(
        16_384,
        ge=1,
        le=1 << 20,
        description="client connections, also limited by open files",
    )
    max_streams_per_connection: int = Field(
        1_024,
        ge=1,
        le=1 << 20,
        description="concurrent calls of a connection; others wait in the client",
    )
    handshake_timeout_ms: int = Field(
        10_000, ge=100, le=600_000, description="time for a new connection's HTTP/2 and TLS handshake"
    )
    keepalive_interval_ms: int = Field(
        60_000, ge=1_000, le=86_400_000, description="silence after which the writer pings a connection"
    )
    keepalive_timeout_ms: int = Field(
        20_000,
        ge=100,
        le=600_000,
        description="time to answer a ping or to read, before disconnection",
    )
    max_connection_idle_ms: int = Field(
        600_000,
        ge=1_000,
        le=86_400_000,
        description="a connection without a call for this long is closed",
    )
    require_deadline: bool = Field(False, description="reject unary calls without a deadline")
    min_ping_interval_ms: int = Field(5_000, ge=100, description="an idle client that pings faster is disconnected")
    drain_ms: int = Field(0, ge=0, le=300_000, description="at a stop: time to serve after reporting not-ready")
    shutdown_grace_ms: int = Field(10_000, ge=0, description="time at a stop for requests in flight")

    @model_validator(mode="after")
    def _check(self) -> Self:
        parse_host(self.writer_listen.replace("localhost", "127.0.0.1"))
        self.check_remoting()
        self.check_group(is_flush_async=self.flush_mode is FlushMode.ASYNC)
        self.check_follow(is_replicated=self.is_replicated)
        self.check_slaves(
            replication=self.is_replicated,
            follow=bool(self.follow),
            access_file=self.access_file is not None,
            tls_cert=self.tls_cert is not None,
        )
        listen_host(self.writer_metrics_listen)
        self.log_folders(self.store_root)
        if self.advertised_address is not None:
            parse_host(self.advertised_address)
        if self.max_in_flight_bytes < self.max_message_size_bytes:
            raise ValueError(
                f"max_in_flight_bytes ({self.max_in_flight_bytes}) must be at least max_message_size_bytes "
                f"({self.max_message_size_bytes}), because a larger batch could never be accepted"
            )
        if self.tls_client_auth is ClientAuth.OPTIONAL:
            raise ValueError(
                "tls_client_auth=optional is not supported by the writer, because gRPC in Python requires a "
                "certificate from every client or from none: use another value"
            )
        return self

    def advertised_host(self, bound_port: int) -> Host:
        """Return the store host that is written into records and offset ids."""
        if self.advertised_address is not None:
            return parse_host(self.advertised_address)
        with contextlib.suppress(ValueError):  # RocketMQ's clients look up a message at the address in its id
            return parse_host((self.route_addresses().query or "").replace("localhost", "127.0.0.1"))
        host = parse_host(self.writer_listen.replace("localhost", "127.0.0.1"))
        address = "127.0.0.1" if host.address in _WILDCARDS else host.address
        return Host(address, bound_port)

    def log_folders(self, root: Path) -> LogFolders:
        """Return the folders of the CommitLog of the store at *root*."""
        return LogFolders.parse(root, self.commit_log_paths, self.commit_log_read_only_paths)

    @property
    def answers_reflection(self) -> bool:
        """Return True if clients may use gRPC reflection. Its answers contain no data of the store."""
        return self.access_file is None if self.grpc_reflection is None else self.grpc_reflection

    @property
    def retention(self) -> RetentionPolicy:
        """The rule by which files of the log are deleted."""
        return RetentionPolicy(round(self.retention_hours * 3_600_000), self.retention_disk_percent)

    @property
    def receive_limit_bytes(self) -> int:
        """The maximum request size. A legal batch takes more bytes as `messages` than in its wire form."""
        return 2 * self.max_message_size_bytes + (1 << 20)

    @property
    def connection_limits(self) -> ConnectionLimits:
        """The limits of each remoting connection; a frame may be as large as a gRPC request."""
        limits = super().connection_limits
        return limits._replace(frame_bytes=max(limits.frame_bytes, self.receive_limit_bytes))

    def open_writer_guard(self) -> Guard | None:
        """Return the guard that admits every request. Raises AccessFileError."""
        return self.open_guard(
            "writer",
            append_bytes_per_s=self.max_append_bytes_per_s,
            greatest_append_bytes=self.max_message_size_bytes,
        )
