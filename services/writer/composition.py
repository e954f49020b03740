"""Composition: builds the parts of a writer from its settings and its open store. Nothing here starts a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from tidemark.access.guard import Guard
from tidemark.errors import StoreError
from tidemark.format.host import encode_host
from tidemark.format.tags import MAX_DELAY_LEVEL, SCHEDULE_TOPIC
from tidemark.replication.group_state import GroupState
from tidemark.replication.group_store import GroupStore
from tidemark.replication.member import Member
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.multi_path_mapped_file_queue import open_log
from tidemark.tls.reloading import Reloading

from .admission.admission import Admission, SizeLimits
from .batch.batch import QueueKey
from .batch.record_encoder import Encoder
from .config import WriterSettings
from .dedup.recent_batches import RecentBatches
from .delay.delivery import DelayedDelivery
from .delay.schedule_reader import DelayQueues
from .delay.scheduler import Scheduler
from .log.append_counts import AppendCounts
from .log.commit_log import CommitLog
from .log.disk_guard import DiskGuard
from .log.group_appender import GroupAppender
from .log.log_tail import LogTail
from .log.open_store import OpenStore
from .log.page_preallocation import PagePreallocation
from .log.record_starts import RecordStarts
from .log.replicated_log import ReplicatedLog
from .metrics import WriterMetrics
from .remoting.composition import WriterRemoting
from .replication.log_repair import LogRepair
from .replication.writer_replication import WriterReplication
from .retention.retention_thread import Retention
from .retention.trusted_clock import TrustedClock
from .rpc.commit_log_service import CommitLogService, WriterIdentity
from .rpc.committed_bytes import LogReader
from .rpc.send_back import SendBack
from .rpc.topic_service import TopicService
from .slaves.slave_server import SlaveServer
from .submission.append_times import AppendTimes
from .submission.batch_submitter import BatchSubmitter
from .topics.topic_table import TopicTable

if TYPE_CHECKING:
    from tidemark.tracing.exporting import Tracing

    from .submission.append_spans import AppendSpans


class WriterParts(NamedTuple):
    """The parts that the server starts and stops."""

    commit_log: CommitLog
    reader: LogReader
    retention: Retention
    scheduler: Scheduler
    commit_log_service: CommitLogService
    topic_service: TopicService
    metrics: WriterMetrics
    remoting: WriterRemoting | None
    replication: WriterReplication | None


class GroupRole(NamedTuple):
    """The writer's role of this member. state: of the group, in which it is elected."""

    member: Member
    repair: LogRepair
    state: GroupState
    group_store: GroupStore
    release_to: Callable[[str], Awaitable[None]]
    on_handed_over: Callable[[], None]


def compose(
    settings: WriterSettings,
    store: OpenStore,
    *,
    port: int,
    guard: Guard,
    tls: Reloading | None = None,
    tracing: Tracing | None = None,
    on_failure: Callable[[], None],
    group: GroupRole | None = None,
) -> WriterParts:
    """Build all parts. Call it on the event loop.

    port: the bound port, part of the advertised address. tls: None for plaintext.
    on_failure: called on the event loop when the log fails. group: None without replication.
    """
    advertised = settings.advertised_host(port)
    store_host = encode_host(advertised)
    counts, times = AppendCounts(settings.metrics_max_topics), AppendTimes(settings.append_warning_ms)
    replication = None if group is None else _compose_replication(settings, store, group)
    topics = TopicTable(
        store.paths,
        store.storage,
        auto_create=settings.auto_create_topics,
        default_queues=settings.default_queues,
        share=None if replication is None else replication.share_files,
    )
    commit_log = compose_commit_log(settings, store, store_host, counts, topics.dead_end, on_failure, replication)
    if replication is not None:
        replication.on_stale = commit_log.fail
        replication.in_flight_bytes = lambda: commit_log.in_flight_bytes
    reader = LogReader(lambda: open_log_again(store))
    retention = compose_retention(
        settings,
        store,
        ask_for_snapshot=commit_log.ask_for_snapshot,
        on_deleted=reader.close_deleted,
        on_failure=commit_log.fail,
        needed=None if replication is None else replication.needed,
    )
    scheduler = _compose_scheduler(settings, store, DelayedDelivery(commit_log, topics, store_host))
    submitter = BatchSubmitter(
        settings,
        commit_log,
        topics,
        Admission(SizeLimits(settings.max_message_size_bytes, store.segments.size), store_host),
        counts,
        times,
        on_delayed=scheduler.appended,
        spans=_compose_spans(tracing),
    )
    remoting = None
    if settings.writer_remoting_listen:
        slaves = None
        if settings.slaves_listen:
            slaves = SlaveServer(
                commit_log.committed,
                lambda: commit_log.min_offset,
                reader.read,
                lambda: topics.batch_changes,
                most=settings.max_slaves,
            )
        remoting = WriterRemoting(settings, store, submitter, topics, store_host, guard, tls, slaves)
    remoting_address = (lambda: "") if remoting is None else remoting.address
    service = CommitLogService(
        settings,
        WriterIdentity(store.term, store_host, str(advertised), remoting_address),
        commit_log,
        submitter,
        reader,
        SendBack(commit_log, topics, reader, store_host, settings.max_reconsume_times),
        free_disk_bytes=lambda: store.free_bytes(store.paths.root),
    )
    topic_service = TopicService(
        topics,
        store.recovered.offsets,
        commit_log,
        store_name=settings.store_name,
        address=str(advertised),
        remoting_address=remoting_address,
    )
    metrics = WriterMetrics(store, commit_log, retention, counts, times, remoting)
    return WriterParts(commit_log, reader, retention, scheduler, service, topic_service, metrics, remoting, replication)


def compose_commit_log(
    settings: WriterSettings,
    store: OpenStore,
    store_host: bytes,
    counts: AppendCounts,
    dead_end: Callable[[str], int],
    on_failure: Callable[[], None],
    replication: ReplicatedLog | None = None,
) -> CommitLog:
    """Build the commit log and what it appends with. store_host: encoded host of the writer, 8 or 20 bytes."""
    recovered, log = store.recovered, store.segments.log
    window = RecentBatches(settings.idempotence_window_batches, recovered.tail_keys)
    tail = LogTail(
        store.segments,
        Encoder(store_host),
        recovered.offsets,
        window,
        DiskGuard(store.paths.root, settings.min_free_disk_bytes, look=store.free_bytes),
        store.journal,
        PagePreallocation(log),
        RecordStarts(settings.idempotence_rebuild_bytes, recovered.record_starts),
        position=recovered.end,
        store_timestamp=recovered.store_timestamp,
        buffer_size=settings.write_buffer_size_bytes,
        replication=replication,
    )
    return CommitLog(settings, store, GroupAppender(log, tail, window, counts, dead_end), on_failure, replication)


def _compose_replication(settings: WriterSettings, store: OpenStore, group: GroupRole) -> WriterReplication:
    return WriterReplication(
        settings,
        store,
        group.member,
        group.state,
        group.group_store,
        release_to=group.release_to,
        on_handed_over=group.on_handed_over,
    )


def compose_retention(
    settings: WriterSettings,
    store: OpenStore,
    *,
    ask_for_snapshot: Callable[[], None],
    on_deleted: Callable[[], None],
    on_failure: Callable[[StoreError], None],
    needed: Callable[[], int] | None = None,
) -> Retention:
    """Build the retention of an open store, whose parameters it describes.

    needed: returns the physical offset from which another member may have to copy the log; None without a group
    """
    return Retention(
        settings.retention,
        store.segments.log,
        store.paths,
        store.snapshot_path,
        term=store.term.number,
        interval_s=settings.retention_interval_ms / 1000,
        open_log=lambda: open_log_again(store),
        ask_for_snapshot=ask_for_snapshot,
        on_deleted=on_deleted,
        on_failure=on_failure,
        clock=TrustedClock(grace_ms=settings.retention_clock_grace_ms),
        needed=needed,
        retain_bytes=settings.replica_retain_bytes,
    )


def _compose_scheduler(settings: WriterSettings, store: OpenStore, delivery: DelayedDelivery) -> Scheduler:
    offsets = store.recovered.offsets
    return Scheduler(
        lambda: DelayQueues(store.paths),
        delivery,
        store.paths.delay_offsets,
        store.storage,
        next_offsets={
            level: offsets.next(QueueKey(SCHEDULE_TOPIC, level - 1)) for level in range(1, MAX_DELAY_LEVEL + 1)
        },
        log_end=store.recovered.end,
        save_interval_ms=settings.delay_offset_interval_ms,
    )


def _compose_spans(tracing: Tracing | None) -> AppendSpans | None:
    if tracing is None:
        return None
    from .submission.append_spans import AppendSpans  # OpenTelemetry is imported only if traces are on

    return AppendSpans(tracing.tracer)


def open_log_again(store: OpenStore) -> MappedFileQueue:
    """Open the log's files again, read-only."""
    return open_log(store.paths.log_folders, store.segments.size)
