"""Comparison of an archive with its store, as far as the store still has the archived messages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f

from tidemark.archive.digest import differences, digest
from tidemark.archive.folder import DATA
from tidemark.archive.manifest import ArchiveManifest
from tidemark.archive.messages import archived_messages, stored_messages
from tidemark.archive.options import ArchiveSource
from tidemark.archive.plan import OffsetRange, bounds_now
from tidemark.archive.progress import Progress, no_progress
from tidemark.archive.session import own_settings
from tidemark.archive.spark_job import step
from tidemark.archive.verify import ArchiveFault
from tidemark.errors import QueueIllegalError, TopicNotFoundError
from tidemark.read.store_reader import StoreReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Compared(NamedTuple):
    """Result. rows: number of compared messages; gone: number of archived offsets that the store no longer has."""

    findings: list[ArchiveFault]
    rows: int
    gone: int


def compare_with_store(
    session: SparkSession,
    folder: Path,
    manifest: ArchiveManifest,
    source: ArchiveSource,
    *,
    on_progress: Progress = no_progress,
) -> Compared:
    """Compare counts, offsets and content hashes of store and archive by topic, day and queue.

    Raises a StoreError if the store's files cannot be read.
    """
    folder = folder.absolute()
    source = ArchiveSource(source.root.absolute(), None if source.state is None else source.state.absolute())
    stretches, findings = _still_there(source, manifest)
    archived_offsets = sum(queue.next - queue.first for queue in manifest.queues)
    count = sum(one.next - one.first for one in stretches)
    gone = archived_offsets - count
    if not stretches:
        return Compared(findings, 0, gone)
    own = own_settings(session)
    tasks = own.sparkContext.defaultParallelism
    with step(own, "reading the store", on_progress, messages=count):
        stored = digest(stored_messages(own, source, stretches, tasks=tasks))
    with step(own, "reading the archive", on_progress, messages=manifest.rows):
        names = [str(Path(file.path).relative_to(DATA)) for file in manifest.files]
        archived = digest(_within(own, archived_messages(own, folder / DATA, names), stretches)) if names else {}
    for group, text in differences(stored, archived):
        findings.append(ArchiveFault("DIFFERS", f"day {group.day}: {text}", None, group.topic, group.queue_id))
    return Compared(findings, sum(one.rows for one in stored.values()), gone)


def _still_there(source: ArchiveSource, manifest: ArchiveManifest) -> tuple[list[OffsetRange], list[ArchiveFault]]:
    """Return the archived stretches that the store still has, and queues that are shorter in the store."""
    store = StoreReader(source.root, state=source.state, refresh_s=0)
    stretches: list[OffsetRange] = []
    findings: list[ArchiveFault] = []
    try:
        for queue in manifest.queues:
            try:
                bounds = bounds_now(store, queue.topic, queue.queue_id)
            except (TopicNotFoundError, QueueIllegalError):  # deleted after it was archived
                continue
            if 0 < bounds.max_offset < queue.next:
                text = f"the store ends at {bounds.max_offset}, the archive at {queue.next}"
                findings.append(ArchiveFault("STORE_SHORTER", text, None, queue.topic, queue.queue_id))
            first, following = max(queue.first, bounds.min_offset), min(queue.next, bounds.max_offset)
            if first < following:
                stretches.append(OffsetRange(queue.topic, queue.queue_id, first, following))
    finally:
        store.watermarks.close()
    return stretches, findings


def _within(spark: SparkSession, messages: DataFrame, stretches: list[OffsetRange]) -> DataFrame:
    """Return those of *messages* that are in *stretches*."""
    names = ("topic", "queue_id", "from_offset", "to_offset")
    types = (pa.string(), pa.int32(), pa.int64(), pa.int64())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*stretches, strict=True), types, strict=True)]
    limits = f.broadcast(spark.createDataFrame(pa.table(columns, names=list(names))))
    inside = f.expr("queue_offset >= from_offset and queue_offset < to_offset")
    return messages.join(limits, ["topic", "queue_id"]).where(inside).drop("from_offset", "to_offset")
