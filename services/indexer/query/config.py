"""Settings of the query facade: from the environment (prefix TIDEMARK_) or the command line, read once at the door."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from tidemark.access.settings import AccessSettings
from tidemark.settings.logs import LogLevel, LogLevelSetting
from tidemark.store.log_folders import LogFolders
from tidemark.store.paths import require_outside
from tidemark.tls.credentials import Credentials
from tidemark.tls.settings import PemFile, TlsSettings
from tidemark.tracing.settings import MessageTraceSettings


class QuerySettings(AccessSettings, TlsSettings, MessageTraceSettings):
    """Everything that can be set. Names of the environment: TIDEMARK_ and the field's name in capitals."""

    model_config = SettingsConfigDict(
        env_prefix="TIDEMARK_",
        frozen=True,
        cli_prog_name="python -m services.indexer query",
        cli_kebab_case=True,
        cli_implicit_flags=True,
    )

    store_root: Path = Field(Path("data"), description="the store's directory")
    commit_log_paths: str = Field(
        "", description="folders of the CommitLog between commas; relative ones below the store; empty: commitlog"
    )
    commit_log_read_only_paths: str = Field(
        "", description="further folders of the CommitLog, in which no new file is made"
    )
    state_root: Path | None = Field(
        None, description="attach, read-only: the store is a broker's, and what we write ourselves lies here"
    )
    query_listen: str = Field("127.0.0.1:8080", description="address:port to bind; port 0: any free one")
    store_name: str = Field(
        "tidemark-0", min_length=1, max_length=255, description="a broker name; part of every answer"
    )
    writer_address: str | None = Field(
        None, description="where POST is forwarded to (host:port, tls://host:port); unset: POST is off"
    )
    tls_ca: PemFile = Field(
        None, description="CAs of the writer that POST is forwarded to, PEM; unset: no TLS there, unless it is tls://"
    )
    token_file: PemFile = Field(
        None, description="file of the token that the service shows the writer where its own caller showed none"
    )
    console: bool = Field(True, description="serve the console at /console")
    log_level: LogLevelSetting = LogLevel.INFO
    metrics_max_topics: int = Field(
        1_000, ge=1, le=100_000, description="topics that get a label of their own in metrics; the others share one"
    )

    query_default_messages: int = Field(500, ge=1, le=100_000, description="max_messages of a pull that does not say")
    query_max_messages: int = Field(32_768, ge=1, le=1 << 20, description="the most a pull may ask for")
    query_default_bytes: int = Field(1 << 20, ge=1, le=1 << 30, description="max_bytes of a pull that does not say")
    query_max_bytes: int = Field(64 << 20, ge=1, le=1 << 30, description="the most a pull may ask for")
    query_max_body_bytes: int = Field(
        64 << 20,
        ge=64 << 20,  # as much as one body may have: then each message fits into an answer
        le=1 << 30,
        description="bodies of one answer, decompressed; a page ends before it has more",
    )
    query_max_pull_queues: int = Field(10_000, ge=1, description="queues that one request may pull from")
    query_max_wait_ms: int = Field(30_000, ge=0, le=600_000, description="the longest wait_ms")
    query_max_waiting: int = Field(10_000, ge=1, description="requests that may wait at once; beyond: 429")
    query_max_waiting_per_client: int = Field(
        5_000, ge=1, description="of them, of one client's address; beyond: 429. A proxy is one address"
    )
    query_max_untaken_bytes: int = Field(
        512 << 20, ge=1, description="large answers that clients have not taken yet, all together; beyond: 429"
    )
    query_default_limit: int = Field(
        32, ge=1, le=10_000, description="messages on a page of a lookup that does not say"
    )
    query_max_limit: int = Field(1_000, ge=1, le=10_000, description="the most a lookup may ask for")
    query_max_scanned_units: int = Field(200_000, ge=1, description="queue units one pull by tag looks at")
    query_max_request_bytes: int = Field(16 << 20, ge=1024, le=1 << 30, description="the largest request body")
    max_connections: int = Field(
        16_384, ge=1, le=1 << 20, description="clients' connections at once; never more than the process may open files"
    )
    query_max_head_bytes: int = Field(
        65_536, ge=1_024, le=1 << 20, description="a request's line and headers; more: 431"
    )
    query_head_timeout_ms: int = Field(
        10_000, ge=100, le=600_000, description="for a request's line and headers to come; later: 408"
    )
    query_body_timeout_ms: int = Field(
        60_000, ge=100, le=3_600_000, description="for a request's body to come; then the connection is cut"
    )
    query_write_timeout_ms: int = Field(
        20_000,
        ge=100,
        le=600_000,
        description="a client that takes less than 64 KiB of its answer meanwhile is cut off",
    )
    query_max_log_bytes: int = Field(
        65_536, ge=1, le=16 << 20, description="of the log as stored, that one request may ask for"
    )
    query_max_log_scan_bytes: int = Field(
        16 << 20, ge=4096, le=1 << 30, description="of the log, that one request for its records reads"
    )
    query_read_threads: int = Field(8, ge=1, le=256, description="requests that read files at the same time")
    query_writer_timeout_ms: int = Field(10_000, ge=1, description="for a forwarded append")
    drain_ms: int = Field(
        0, ge=0, le=300_000, description="at a stop: served so long after health says not ready, for load balancers"
    )
    query_recheck_ms: int = Field(
        250, ge=1, le=10_000, description="waiting requests, and sessions of members, are looked at at least this often"
    )

    query_session_timeout_ms: int = Field(
        10_000, ge=1, description="a member of a group that was not heard for so long is gone, if it does not say"
    )
    query_min_session_timeout_ms: int = Field(1_000, ge=1, description="the shortest session a member may ask for")
    query_max_session_timeout_ms: int = Field(300_000, ge=1, description="the longest session a member may ask for")
    query_max_groups: int = Field(1_000, ge=1, description="groups that may have members at once; beyond: 429")
    query_max_group_members: int = Field(1_000, ge=1, description="members a group may have; beyond: 429")
    query_max_member_topics: int = Field(1_000, ge=1, description="topics a member may subscribe to")
    query_max_offsets: int = Field(
        100_000,
        ge=1,
        le=10_000_000,
        description="offsets on record, one per group and queue; beyond: 429. Each commit writes all of them",
    )
    query_max_commit_queues: int = Field(10_000, ge=1, description="queues whose offsets one request may set")
    query_max_lost_units: int = Field(
        10_000, ge=1, le=1_000_000, description="places that pulls had to pass over, and that are kept on record"
    )
    query_max_retry_messages: int = Field(
        256, ge=1, le=10_000, description="messages that one request may send back for another try"
    )
    query_max_status_offsets: int = Field(
        10_000, ge=0, description="offsets of groups that GET /v1/status looks at; where there are more it tells no lag"
    )

    index_slots: int | None = Field(None, ge=1, description="of an index file; unset: from its size, 4 entries a slot")
    index_entries: int | None = Field(None, ge=1, description="of an index file")

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.log_folders(self.store_root)
        _, separator, port = self.query_listen.rpartition(":")
        if not separator or not port.isdecimal() or int(port) > 65_535:
            raise ValueError("query_listen is not address:port")
        if self.query_default_messages > self.query_max_messages or self.query_default_bytes > self.query_max_bytes:
            raise ValueError("a default is greater than its maximum")
        if self.query_default_limit > self.query_max_limit:
            raise ValueError("query_default_limit is greater than query_max_limit")
        if not (
            self.query_min_session_timeout_ms <= self.query_session_timeout_ms <= self.query_max_session_timeout_ms
        ):
            raise ValueError("query_session_timeout_ms is not between its minimum and its maximum")
        if self.state_root is not None:
            require_outside(self.state_root, self.store_root)
            if self.writer_address is not None:
                raise ValueError("an attached store takes no appends: writer_address must not be set")
        return self

    def log_folders(self, root: Path) -> LogFolders:
        """Where the CommitLog of the store at *root* lies."""
        return LogFolders.parse(root, self.commit_log_paths, self.commit_log_read_only_paths)

    @property
    def dialling(self) -> Credentials:
        """Towards the writer, which is shown the service's own certificate, and its token where a caller shows none."""
        return Credentials(ca=self.tls_ca, cert=self.tls_cert, key=self.tls_key, token_file=self.token_file)

    @property
    def host(self) -> str:
        """The address to bind."""
        return self.query_listen.rpartition(":")[0].removeprefix("[").removesuffix("]")

    @property
    def port(self) -> int:
        """The port to bind."""
        return int(self.query_listen.rpartition(":")[2])
