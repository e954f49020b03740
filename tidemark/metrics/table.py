"""Every metric of the services: name, kind, labels, meaning. Source of the exposition and of docs/metrics.md.

Names that begin with `rocketmq_` and their meanings are RocketMQ's. RocketMQ adds the labels cluster, node_type and
node_id to all of them; here Prometheus's own labels job and instance serve that purpose.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class MetricKind(enum.Enum):
    """Types of Prometheus that are used."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricRow(NamedTuple):
    """One metric. service: the services that expose it; bounds: upper bounds of a histogram's buckets, without +Inf."""

    name: str
    kind: MetricKind
    service: str
    text: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


WRITER, PIPELINE, QUERY, EACH, BOTH = "writer", "pipeline", "query", "each", "writer and query"
TLS, ACCESS = "writer and query with TLS", "writer and query with an access file"
GROUP = "writer of a replication group's member"
FOLLOWER = "writer that follows a RocketMQ broker"
SLAVES = "writer whose log RocketMQ's slaves copy"
_C, _G, _H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM
_SYNC_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_VISIBLE_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0)
_REQUEST_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0)
_GROUP_BATCHES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
_GROUP_BYTES = tuple(float(1 << power) for power in range(10, 28, 2))  # 1 KiB to 64 MiB

ROWS = (
    MetricRow("tidemark_build_info", _G, EACH, "Always 1; the label contains the version", ("version",)),
    # -- writer and query with TLS -----------------------------------------------------------------------------------
    MetricRow(
        "tidemark_tls_reload_failed", _G, TLS, "1 if the changed TLS files are invalid and the previous ones are in use"
    ),
    MetricRow("tidemark_tls_certificate_expires_seconds", _G, TLS, "Expiry of the certificate in use, Unix time"),
    # -- writer and query, access control ----------------------------------------------------------------------------
    MetricRow(
        "tidemark_refused_requests_total",
        _C,
        BOTH,
        "Requests refused by access control or a rate limit, by the error's reason",
        ("reason",),
    ),
    MetricRow("tidemark_remoting_connections", _G, BOTH, "Connections of RocketMQ's clients"),
    MetricRow(
        "tidemark_remoting_requests_total",
        _C,
        BOTH,
        "Answered requests of RocketMQ's clients, by RocketMQ's names of request and response",
        ("request", "response"),
    ),
    MetricRow(
        "tidemark_remoting_refused_connections_total",
        _C,
        BOTH,
        "Connections of RocketMQ's clients that were closed without an answer, by reason",
        ("reason",),
    ),
    MetricRow(
        "tidemark_access_reload_failed",
        _G,
        ACCESS,
        "1 if the changed access file is invalid and the previous one is in use",
    ),
    # -- writer -----------------------------------------------------------------------------------------------------
    MetricRow(
        "rocketmq_messages_in_total",
        _C,
        WRITER,
        "Messages appended; delayed messages count again on delivery",
        ("topic",),
    ),
    MetricRow("rocketmq_throughput_in_total", _C, WRITER, "Bytes of the appended records", ("topic",)),
    MetricRow("rocketmq_storage_size", _G, WRITER, "Bytes of the CommitLog's files, which are created at full size"),
    MetricRow("rocketmq_storage_flush_behind_bytes", _G, WRITER, "Bytes written to the log but not yet synced"),
    MetricRow("rocketmq_processor_watermark", _G, WRITER, "Waiting appends; processor: send", ("processor",)),
    MetricRow(
        "tidemark_writer_append_seconds",
        _H,
        WRITER,
        "Time from an append's request to its response, once per batch",
        bounds=_SYNC_SECONDS,
    ),
    MetricRow(
        "tidemark_fdatasync_seconds",
        _H,
        WRITER,
        "Duration of one sync of log and batch journal",
        bounds=_SYNC_SECONDS,
    ),
    MetricRow("tidemark_group_commit_batches", _H, WRITER, "Appends per sync", bounds=_GROUP_BATCHES),
    MetricRow("tidemark_group_commit_bytes", _H, WRITER, "Bytes of the log per sync", bounds=_GROUP_BYTES),
    MetricRow(
        "tidemark_in_flight_bytes",
        _G,
        WRITER,
        "Bytes of appends that are accepted but not yet answered",
    ),
    MetricRow("tidemark_slaves", _G, SLAVES, "Slaves of RocketMQ that copy the log"),
    MetricRow("tidemark_slaves_behind_bytes", _G, SLAVES, "Committed bytes that the slowest of them has not reported"),
    MetricRow("tidemark_follow_connected", _G, FOLLOWER, "1: the RocketMQ broker that is followed sends its log"),
    MetricRow("tidemark_follow_log_end_offset", _G, FOLLOWER, "Physical offset up to which its log is copied"),
    MetricRow(
        "tidemark_follow_behind_bytes",
        _G,
        FOLLOWER,
        "Bytes of the broker's log that the copy lacks, looked at every ten seconds",
    ),
    MetricRow("tidemark_replication_is_writer", _G, GROUP, "1: this member is the writer of its replication group"),
    MetricRow("tidemark_replication_epoch", _G, GROUP, "The newest epoch of the group that this member has heard of"),
    MetricRow("tidemark_replication_members", _G, GROUP, "Members in the settings of this member"),
    MetricRow("tidemark_replication_in_sync_members", _G, GROUP, "Members for which the writer waits, with itself"),
    MetricRow("tidemark_replication_min_in_sync", _G, GROUP, "Least members in sync with which appends are accepted"),
    MetricRow(
        "tidemark_replication_lag_bytes", _G, GROUP, "Bytes that a connected replica has not synced yet", ("member",)
    ),
    MetricRow(
        "tidemark_replication_lag_seconds", _G, GROUP, "Time since a connected replica had everything", ("member",)
    ),
    MetricRow("tidemark_replication_set_changes_total", _C, GROUP, "Changes of the set in sync", ("kind",)),
    MetricRow("tidemark_replication_compared_bytes_total", _C, GROUP, "Bytes compared with the logs of other members"),
    MetricRow(
        "tidemark_replication_repaired_places_total", _C, GROUP, "Damaged places replaced by another member's bytes"
    ),
    MetricRow("tidemark_replication_truncated_bytes_total", _C, GROUP, "Uncommitted bytes that a replica has cut"),
    MetricRow(
        "tidemark_replication_lease_seconds_left", _G, GROUP, "Time for which the writer's lease is held, with etcd"
    ),
    MetricRow("tidemark_refused_appends_total", _C, WRITER, "Appends refused, by the error's reason", ("reason",)),
    MetricRow(
        "tidemark_duplicate_batches_total", _C, WRITER, "Duplicate batches, answered with their original offsets"
    ),
    MetricRow("tidemark_disk_free_bytes", _G, WRITER, "Bytes available to appends, on the fullest disk that they need"),
    MetricRow("tidemark_retention_deleted_files_total", _C, WRITER, "Log files deleted by retention"),
    MetricRow("tidemark_retention_deleted_bytes_total", _C, WRITER, "Bytes of disk space freed by retention"),
    # -- pipeline ---------------------------------------------------------------------------------------------------
    MetricRow(
        "tidemark_append_visible_seconds",
        _H,
        PIPELINE,
        "Time from the store timestamp of a chunk's last record until the watermark reached it, "
        "recorded when the epoch ends",
        bounds=_VISIBLE_SECONDS,
    ),
    MetricRow(
        "tidemark_epoch_hand_over_seconds",
        _H,
        PIPELINE,
        "Time in which no task followed a shard, recorded when the next task's epoch ends; a failed task lengthens it",
        bounds=_SYNC_SECONDS,
    ),
    MetricRow("tidemark_pipeline_epochs_total", _C, PIPELINE, "Epochs that ended without an error"),
    MetricRow("tidemark_pipeline_records_total", _C, PIPELINE, "Records whose queue units were built"),
    MetricRow("tidemark_pipeline_chunks_total", _C, PIPELINE, "Chunks published, of all shards"),
    MetricRow("tidemark_pipeline_expired_files_total", _C, PIPELINE, "Queue and index files deleted"),
    MetricRow(
        "tidemark_pipeline_rebuilt_total",
        _C,
        PIPELINE,
        "Queues and runs of index files that were rebuilt",
    ),
    MetricRow(
        "tidemark_pipeline_visible_bytes", _G, PIPELINE, "Physical offset up to which a shard is built", ("shard",)
    ),
    MetricRow(
        "tidemark_pipeline_durable_bytes", _G, PIPELINE, "Physical offset up to which a shard is synced", ("shard",)
    ),
    MetricRow(
        "tidemark_pipeline_scrubbed_bytes_total",
        _C,
        PIPELINE,
        "Bytes of the log that the scrub has compared",
    ),
    MetricRow("tidemark_pipeline_scrub_rounds_total", _C, PIPELINE, "Completed scrubs of the whole log"),
    MetricRow(
        "tidemark_pipeline_scrub_position_bytes", _G, PIPELINE, "Physical offset that the current scrub has reached"
    ),
    MetricRow(
        "tidemark_pipeline_scrub_damaged_total",
        _C,
        PIPELINE,
        "Queues and runs of index files that the scrub found damaged",
    ),
    MetricRow(
        "tidemark_pipeline_engine",
        _G,
        PIPELINE,
        "1 if this engine builds shards now: spark (if it is wanted) or understudy",
        ("engine",),
    ),
    MetricRow("tidemark_pipeline_waits_for_room", _G, PIPELINE, "1 if the pipeline is paused because the disk is full"),
    # -- query ------------------------------------------------------------------------------------------------------
    MetricRow("rocketmq_messages_out_total", _C, QUERY, "Messages returned by pulls", ("topic",)),
    MetricRow(
        "rocketmq_throughput_out_total", _C, QUERY, "Bytes of pull responses, in the requested format", ("topic",)
    ),
    MetricRow(
        "rocketmq_consumer_lag_messages",
        _G,
        QUERY,
        "Visible messages that a consumer group has not committed",
        ("topic", "consumer_group"),
    ),
    MetricRow(
        "rocketmq_consumer_lag_latency",
        _G,
        QUERY,
        "Age of the oldest uncommitted message in any queue, milliseconds",
        ("topic", "consumer_group"),
    ),
    MetricRow("rocketmq_storage_dispatch_behind_bytes", _G, QUERY, "Bytes committed but not yet visible"),
    MetricRow(
        "rocketmq_storage_message_reserve_time", _G, QUERY, "Milliseconds since the log's first record was stored"
    ),
    MetricRow("tidemark_watermark_bytes", _G, QUERY, "Physical offset below which messages are visible"),
    MetricRow("tidemark_committed_bytes", _G, QUERY, "Committed physical offset"),
    MetricRow("tidemark_term", _G, QUERY, "The writer's term"),
    MetricRow(
        "tidemark_publication_age_seconds", _G, QUERY, "Seconds since the watermark last moved; 0 before its first move"
    ),
    MetricRow(
        "tidemark_pipeline_alive_age_seconds",
        _G,
        QUERY,
        "Seconds since a follower last reported; +Inf before the first report",
    ),
    MetricRow(
        "tidemark_damaged_places",
        _G,
        QUERY,
        "Damaged places in `GET /v1/corruptions`; reason NONE: no damage",
        ("reason",),
    ),
    MetricRow("tidemark_query_requests_total", _C, QUERY, "Requests answered, by route and status", ("path", "status")),
    MetricRow(
        "tidemark_query_request_seconds",
        _H,
        QUERY,
        "Time to a response's first byte, including waiting",
        ("path",),
        bounds=_REQUEST_SECONDS,
    ),
    MetricRow("tidemark_query_body_bytes_total", _C, QUERY, "Bytes of pull responses", ("format",)),
    MetricRow(
        "tidemark_query_skipped_records_total",
        _C,
        QUERY,
        "Damaged messages that pulls skipped",
    ),
    MetricRow("tidemark_query_waiting_requests", _G, QUERY, "Requests waiting for messages"),
    MetricRow("tidemark_query_followers", _G, QUERY, "Followed answers (follow=true) that are open"),
    MetricRow("tidemark_query_owns_consumer_offsets", _G, QUERY, "1 if this process writes the consumer offsets"),
    MetricRow("tidemark_query_group_members", _G, QUERY, "Active members of a consumer group", ("consumer_group",)),
    MetricRow(
        "tidemark_query_group_generation", _G, QUERY, "Generation of a consumer group with members", ("consumer_group",)
    ),
    MetricRow("tidemark_query_group_rebalances_total", _C, QUERY, "New generations of all consumer groups"),
    MetricRow(
        "tidemark_query_fenced_commits_total", _C, QUERY, "Commits refused because another member holds the queue"
    ),
)
BY_NAME = {row.name: row for row in ROWS}
