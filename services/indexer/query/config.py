"""Settings of the query service, read once at the start from the environment (prefix TIDEMARK_) or the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from tidemark.access.settings import AccessSettings
from tidemark.remoting_server.settings import RemotingSettings
from tidemark.settings.door import service_config
from tidemark.settings.logs import LogLevel, LogLevelSetting
from tidemark.store.log_folders import LogFolders
from tidemark.store.paths import require_outside
from tidemark.tls.credentials import Credentials
from tidemark.tls.settings import PemFile, TlsSettings
from tidemark.tracing.settings import MessageTraceSettings


class QuerySettings(AccessSettings, TlsSettings, MessageTraceSettings, RemotingSettings):
    """All settings. The environment variable of a field is TIDEMARK_ and the field's name in capitals."""

    model_config = service_config("python -m services.indexer query")

    store_root: Path = Field(Path("data"), description="folder of the store")
    commit_log_paths: str = Field(
        "",
        description="comma-separated folders of the CommitLog, relative to the store; empty: commitlog",
    )
    commit_log_read_only_paths: str = Field("", description="further folders of the CommitLog, without new files")
    state_root: Path | None = Field(None, description="folder of Tidemark's files for an attached store")
    query_listen: str = Field("127.0.0.1:8080", description="address:port; port 0: any free port")
    store_name: str = Field("tidemark-0", min_length=1, max_length=255, description="broker name in answers")
    writer_address: str | None = Field(
        None, description="writer of forwarded appends, host:port or tls://host:port; unset: no appends"
    )
    tls_ca: PemFile = Field(
        None, description="CAs of the certificates of other services, PEM; unset: no TLS to them, unless tls://"
    )
    token_file: PemFile = Field(
        None, description="token for calls to other services, unless a request brings one of its own"
    )
    console: bool = Field(True, description="serve the console at /console")
    log_level: LogLevelSetting = LogLevel.INFO
    metrics_max_topics: int = Field(
        1_000, ge=1, le=100_000, description="topics with their own metrics label; others share one"
    )

    query_default_messages: int = Field(500, ge=1, le=100_000, description="default max_messages of a pull")
    query_max_messages: int = Field(32_768, ge=1, le=1 << 20, description="largest max_messages of a pull")
    query_default_bytes: int = Field(1 << 20, ge=1, le=1 << 30, description="default max_bytes of a pull")
    query_max_bytes: int = Field(64 << 20, ge=1, le=1 << 30, description="largest max_bytes of a pull")
    query_max_body_bytes: int = Field(
        64 << 20,
        ge=64 << 20,  # the largest size of one body, so that each message fits into an answer
        le=1 << 30,
        description="decompressed bodies of one page",
    )
    query_max_pull_queues: int = Field(10_000, ge=1, description="queues of one pull request")
    query_max_wait_ms: int = Field(30_000, ge=0, le=600_000, description="largest wait_ms")
    query_max_waiting: int = Field(10_000, ge=1, description="waiting and followed requests; beyond: 429")
    query_max_waiting_per_client: int = Field(
        5_000,
        ge=1,
        description="waiting and followed requests of one address, such as a proxy; beyond: 429",
    )
    query_max_follow_s: int = Field(
        3_600, ge=1, le=86_400, description="end of a followed answer in seconds: default and largest max_seconds"
    )
    query_heartbeat_ms: int = Field(
        15_000, ge=100, le=600_000, description="time without a message until a followed answer has a heartbeat"
    )
    query_max_follow_queues: int = Field(256, ge=1, le=10_000, description="queues of one followed answer")
    query_max_untaken_bytes: int = Field(512 << 20, ge=1, description="unsent bytes of large answers; beyond: 429")
    query_default_limit: int = Field(32, ge=1, le=10_000, description="default limit of a search's page")
    query_max_limit: int = Field(1_000, ge=1, le=10_000, description="largest limit of a page")
    query_max_lookups: int = Field(
        1_000, ge=1, le=100_000, description="keys or offsets of one POST /v1/topics/{topic}/messages:lookup"
    )
    query_max_scanned_units: int = Field(200_000, ge=1, description="queue units read by one pull by tag")
    query_max_request_bytes: int = Field(16 << 20, ge=1024, le=1 << 30, description="largest request body")
    max_connections: int = Field(
        16_384,
        ge=1,
        le=1 << 20,
        description="client connections, also limited by open files",
    )
    query_max_head_bytes: int = Field(65_536, ge=1_024, le=1 << 20, description="request line and headers; beyond: 431")
    query_head_timeout_ms: int = Field(
        10_000, ge=100, le=600_000, description="time for request line and headers; later: 408"
    )
    query_body_timeout_ms: int = Field(
        60_000, ge=100, le=3_600_000, description="time for a request's body; later: connection closed"
    )
    query_write_timeout_ms: int = Field(
        20_000,
        ge=100,
        le=600_000,
        description="a client that takes less than 64 KiB in this time is disconnected",
    )
    query_max_log_bytes: int = Field(65_536, ge=1, le=16 << 20, description="bytes of one GET /v1/log/bytes")
    query_max_log_scan_bytes: int = Field(
        16 << 20, ge=4096, le=1 << 30, description="log read by one GET /v1/log/records"
    )
    query_read_threads: int = Field(8, ge=1, le=256, description="threads that read files")
    query_writer_timeout_ms: int = Field(
        10_000, ge=1, description="time for the writer's answer to a forwarded request"
    )
    drain_ms: int = Field(0, ge=0, le=300_000, description="at a stop: time to serve after reporting not-ready")
    query_busy_poll_us: int = Field(
        50,
        ge=0,
        le=1_000,
        description="microseconds after an answer for which the event loop stays awake, as long as clients send their "
        "next request so soon; 0: never",
    )
    query_recheck_ms: int = Field(
        250, ge=1, le=10_000, description="interval between checks for deleted topics, expired files and members"
    )

    query_session_timeout_ms: int = Field(
        10_000, ge=1, description="default session timeout: a member without a heartbeat is removed"
    )
    query_min_session_timeout_ms: int = Field(1_000, ge=1, description="smallest session timeout")
    query_max_session_timeout_ms: int = Field(300_000, ge=1, description="largest session timeout")
    query_max_groups: int = Field(1_000, ge=1, description="groups with members; beyond: 429")
    query_max_group_members: int = Field(1_000, ge=1, description="members of a group; beyond: 429")
    query_max_member_topics: int = Field(1_000, ge=1, description="topics of one member")
    query_max_offsets: int = Field(
        100_000,
        ge=1,
        le=10_000_000,
        description="group offsets, one per queue; beyond: 429; each commit writes all",
    )
    query_max_commit_queues: int = Field(10_000, ge=1, description="queues of one offset commit")
    query_max_lost_units: int = Field(10_000, ge=1, le=1_000_000, description="skipped queue units kept on record")
    query_max_retry_messages: int = Field(256, ge=1, le=10_000, description="messages of one retry request")
    query_max_status_offsets: int = Field(
        10_000, ge=0, description="offsets that GET /v1/status reads; with more it reports no lag"
    )

    remoting_offset_interval_ms: int = Field(
        1_000, ge=10, le=60_000, description="interval at which offsets that RocketMQ's clients commit are written"
    )

    index_slots: int | None = Field(None, ge=1, description="slots of an index file; unset: by file size")
    index_entries: int | None = Field(None, ge=1, description="entries of an index file; unset: by file size")

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.log_folders(self.store_root)
        self.check_remoting()
        _, separator, port = self.query_listen.rpartition(":")
        if not separator or not port.isdecimal() or int(port) > 65_535:
            raise ValueError(f"query_listen is {self.query_listen!r}: expected address:port, port at most 65535")
        if self.query_default_messages > self.query_max_messages or self.query_default_bytes > self.query_max_bytes:
            raise ValueError(
                "query_default_messages and query_default_bytes must not exceed query_max_messages and query_max_bytes"
            )
        if self.query_default_limit > self.query_max_limit:
            raise ValueError(
                f"query_default_limit is {self.query_default_limit}: at most query_max_limit, {self.query_max_limit}"
            )
        if not (
            self.query_min_session_timeout_ms <= self.query_session_timeout_ms <= self.query_max_session_timeout_ms
        ):
            raise ValueError(
                f"query_session_timeout_ms is {self.query_session_timeout_ms}: expected "
                f"{self.query_min_session_timeout_ms} to {self.query_max_session_timeout_ms} "
                "(query_min_session_timeout_ms, query_max_session_timeout_ms)"
            )
        if self.state_root is not None:
            require_outside(self.state_root, self.store_root)
            if self.writer_address is not None:
                raise ValueError("writer_address must not be set with state_root: an attached store is read-only")
        return self

    def log_folders(self, root: Path) -> LogFolders:
        """Return the CommitLog's folders of the store at *root*."""
        return LogFolders.parse(root, self.commit_log_paths, self.commit_log_read_only_paths)

    @property
    def dialling(self) -> Credentials:
        """Credentials for the writer: the service's own certificate, and its token for callers that sent none."""
        return Credentials(ca=self.tls_ca, cert=self.tls_cert, key=self.tls_key, token_file=self.token_file)

    @property
    def host(self) -> str:
        """Address to bind, without the port."""
        return self.query_listen.rpartition(":")[0].removeprefix("[").removesuffix("]")

    @property
    def port(self) -> int:
        """Port to bind."""
        return int(self.query_listen.rpartition(":")[2])
