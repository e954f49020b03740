"""Every metric of the services: name, kind, labels, meaning. What is served and docs/metrics.md are made from it.

Names that begin with `rocketmq_` are RocketMQ's own and mean the same there. It labels all of them with cluster,
node_type and node_id, too: here that is what Prometheus itself adds, job and instance.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class Kind(enum.Enum):
    """Prometheus's types, as far as they are used."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricRow(NamedTuple):
    """One metric. service: which one serves it; bounds: upper ends of a histogram's buckets, without +Inf."""

    name: str
    kind: Kind
    service: str
    text: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


WRITER, PIPELINE, QUERY, EACH, BOTH = "writer", "pipeline", "query", "each", "writer and query"
TLS, ACCESS = "writer and query with TLS", "writer and query with an access file"
_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
_SYNC_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_VISIBLE_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0)
_REQUEST_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0)
_GROUP_BATCHES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
_GROUP_BYTES = tuple(float(1 << power) for power in range(10, 28, 2))  # 1 KiB to 64 MiB

ROWS = (
    MetricRow("tidemark_build_info", _G, EACH, "1; the version stands in the label", ("version",)),
    # -- writer and query, where they speak TLS ----------------------------------------------------------------------
    MetricRow("tidemark_tls_reload_failed", _G, TLS, "1 while the TLS files cannot be used, and old ones are"),
    MetricRow("tidemark_tls_certificate_expires_seconds", _G, TLS, "When the certificate in use ends, Unix time"),
    # -- writer and query, by who may do what ------------------------------------------------------------------------
    MetricRow(
        "tidemark_refused_requests_total",
        _C,
        BOTH,
        "Requests that access control or a rate did not let pass, by the error's reason",
        ("reason",),
    ),
    MetricRow(
        "tidemark_access_reload_failed", _G, ACCESS, "1 while the access file cannot be used, and the old one is"
    ),
    # -- writer -----------------------------------------------------------------------------------------------------
    MetricRow(
        "rocketmq_messages_in_total", _C, WRITER, "Messages appended; delayed ones once more when delivered", ("topic",)
    ),
    MetricRow("rocketmq_throughput_in_total", _C, WRITER, "Bytes of their records", ("topic",)),
    MetricRow(
        "rocketmq_storage_size", _G, WRITER, "Bytes of the CommitLog's files, which have their full size from birth"
    ),
    MetricRow("rocketmq_storage_flush_behind_bytes", _G, WRITER, "Written to the log and not yet synced"),
    MetricRow(
        "rocketmq_processor_watermark", _G, WRITER, "Appends that wait for their turn; processor: send", ("processor",)
    ),
    MetricRow(
        "tidemark_writer_append_seconds",
        _H,
        WRITER,
        "Time from an append's request to its answer, each batch once",
        bounds=_SYNC_SECONDS,
    ),
    MetricRow(
        "tidemark_fdatasync_seconds",
        _H,
        WRITER,
        "Time of one sync of log and batch journal; one serves all appends of a group",
        bounds=_SYNC_SECONDS,
    ),
    MetricRow("tidemark_group_commit_batches", _H, WRITER, "Appends that one sync served", bounds=_GROUP_BATCHES),
    MetricRow("tidemark_group_commit_bytes", _H, WRITER, "Bytes of the log that one sync served", bounds=_GROUP_BYTES),
    MetricRow("tidemark_in_flight_bytes", _G, WRITER, "Appends accepted and not yet answered, all clients together"),
    MetricRow(
        "tidemark_refused_appends_total", _C, WRITER, "Appends that were not taken, by the error's reason", ("reason",)
    ),
    MetricRow("tidemark_duplicate_batches_total", _C, WRITER, "Repeats that were answered with their first offsets"),
    MetricRow(
        "tidemark_disk_free_bytes", _G, WRITER, "What appends may still use; the least of the disks that they need"
    ),
    MetricRow("tidemark_retention_deleted_files_total", _C, WRITER, "Log files that retention has deleted"),
    MetricRow("tidemark_retention_deleted_bytes_total", _C, WRITER, "Room on the disk that this gave back"),
    # -- pipeline ---------------------------------------------------------------------------------------------------
    MetricRow(
        "tidemark_append_visible_seconds",
        _H,
        PIPELINE,
        "From the store timestamp (whole ms) of a chunk's last record until the watermark was seen at the chunk's end; "
        "told when the epoch ends",
        bounds=_VISIBLE_SECONDS,
    ),
    MetricRow(
        "tidemark_epoch_hand_over_seconds",
        _H,
        PIPELINE,
        "From when a task stopped following a shard until the next one held it, of each shard; told when the next "
        "one's epoch ends: one that failed tells nothing and lengthens it",
        bounds=_SYNC_SECONDS,
    ),
    MetricRow("tidemark_pipeline_epochs_total", _C, PIPELINE, "Epochs that ended well"),
    MetricRow("tidemark_pipeline_records_total", _C, PIPELINE, "Records whose queue units they built"),
    MetricRow("tidemark_pipeline_chunks_total", _C, PIPELINE, "Chunks they published, of all shards"),
    MetricRow("tidemark_pipeline_expired_files_total", _C, PIPELINE, "Queue and index files they deleted"),
    MetricRow(
        "tidemark_pipeline_rebuilt_total",
        _C,
        PIPELINE,
        "Queues, and runs of index files, that they built again because files did not agree with the log",
    ),
    MetricRow(
        "tidemark_pipeline_visible_bytes", _G, PIPELINE, "Physical offset below which a shard is built", ("shard",)
    ),
    MetricRow(
        "tidemark_pipeline_durable_bytes", _G, PIPELINE, "Physical offset below which that is synced", ("shard",)
    ),
    MetricRow(
        "tidemark_pipeline_scrubbed_bytes_total", _C, PIPELINE, "Bytes of the log that were compared with derived files"
    ),
    MetricRow("tidemark_pipeline_scrub_rounds_total", _C, PIPELINE, "Times that the scrub has gone over the whole log"),
    MetricRow(
        "tidemark_pipeline_scrub_position_bytes", _G, PIPELINE, "Physical offset up to which this round has come"
    ),
    MetricRow(
        "tidemark_pipeline_scrub_damaged_total",
        _C,
        PIPELINE,
        "Queues, and runs of index files, that did not agree with the log; they are built again",
    ),
    MetricRow("tidemark_pipeline_waits_for_room", _G, PIPELINE, "1 while nothing is built because the disk is full"),
    # -- query ------------------------------------------------------------------------------------------------------
    MetricRow("rocketmq_messages_out_total", _C, QUERY, "Messages given out by pulls", ("topic",)),
    MetricRow(
        "rocketmq_throughput_out_total", _C, QUERY, "Bytes of these answers, in the form that was asked for", ("topic",)
    ),
    MetricRow(
        "rocketmq_consumer_lag_messages",
        _G,
        QUERY,
        "Visible messages that a group has not committed",
        ("topic", "consumer_group"),
    ),
    MetricRow(
        "rocketmq_consumer_lag_latency",
        _G,
        QUERY,
        "Milliseconds since the oldest of them was stored; of the queue where that is longest",
        ("topic", "consumer_group"),
    ),
    MetricRow("rocketmq_storage_dispatch_behind_bytes", _G, QUERY, "Committed and not yet visible"),
    MetricRow(
        "rocketmq_storage_message_reserve_time", _G, QUERY, "Milliseconds since the log's first record was stored"
    ),
    MetricRow("tidemark_watermark_bytes", _G, QUERY, "Physical offset below which messages are visible"),
    MetricRow("tidemark_committed_bytes", _G, QUERY, "Committed physical offset"),
    MetricRow("tidemark_term", _G, QUERY, "The writer's term"),
    MetricRow("tidemark_publication_age_seconds", _G, QUERY, "Since the watermark moved last; 0 before the first time"),
    MetricRow(
        "tidemark_pipeline_alive_age_seconds", _G, QUERY, "Since a follower said that it is there; +Inf without any"
    ),
    MetricRow(
        "tidemark_damaged_places",
        _G,
        QUERY,
        "Places of the log that failed their check, as `GET /v1/corruptions` lists them; NONE: no place",
        ("reason",),
    ),
    MetricRow("tidemark_query_requests_total", _C, QUERY, "Requests answered, by route", ("path", "status")),
    MetricRow(
        "tidemark_query_request_seconds",
        _H,
        QUERY,
        "Time to an answer's first byte, waiting included",
        ("path",),
        bounds=_REQUEST_SECONDS,
    ),
    MetricRow("tidemark_query_body_bytes_total", _C, QUERY, "Bytes of pull answers", ("format",)),
    MetricRow(
        "tidemark_query_skipped_records_total",
        _C,
        QUERY,
        "Messages that pulls passed over as damaged",
    ),
    MetricRow("tidemark_query_waiting_requests", _G, QUERY, "Requests that wait for messages"),
    MetricRow("tidemark_query_owns_consumer_offsets", _G, QUERY, "1 where this process writes them"),
    MetricRow("tidemark_query_group_members", _G, QUERY, "Living members of a group", ("consumer_group",)),
    MetricRow("tidemark_query_group_generation", _G, QUERY, "Generation of a group with members", ("consumer_group",)),
    MetricRow("tidemark_query_group_rebalances_total", _C, QUERY, "New generations of all groups"),
    MetricRow("tidemark_query_fenced_commits_total", _C, QUERY, "Commits refused because another holds the queue"),
)
BY_NAME = {row.name: row for row in ROWS}
