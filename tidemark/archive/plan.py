"""Plan of a run: the messages of each queue after the archived ones, up to one physical offset.

That end is at most the watermark; with sealed files only, it is the start of the file that contains the watermark.
Records below it do not change, so reading the same queue offsets again returns the same messages.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.archive.manifest import ArchivedQueue, ArchiveManifest
from tidemark.archive.options import ArchiveOptions
from tidemark.errors import StoreClosedError, StoreContradictionError
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import UnitsGoneError
from tidemark.read.watermark import Watermark

_LOOKS = 5


class OffsetRange(NamedTuple):
    """A range of a queue: first ≤ queue offset < next."""

    topic: str
    queue_id: int
    first: int
    next: int


class Plan(NamedTuple):
    """Messages to archive. stretches: new ranges, none empty; lost: ranges that expired before they were archived.

    start, end: physical range of the log that contains the new records
    """

    stretches: list[OffsetRange]
    lost: list[OffsetRange]
    start: int
    end: int
    log_file_size: int
    term: int


def make_plan(store: StoreReader, options: ArchiveOptions, before: ArchiveManifest | None) -> Plan:
    """Plan what to archive after the archive *before*.

    Raises StoreClosedError if the pipeline has never run on the store, StoreContradictionError if *before* is an
    archive of another store or of a later state, and TopicNotFoundError if a named topic does not exist.
    """
    store.refresh()
    watermark = store.watermark()
    listing = store.log.listing()
    if store.watermarks.marks is None or not listing.starts:
        raise StoreClosedError(
            f"{store.paths.root} has no index: run the pipeline on it first", path=str(store.paths.root)
        )
    if before is not None:
        _require_same_log(store, options, before, watermark)
    reached = watermark.physical_offset
    end = reached if options.all_records else reached - reached % listing.file_size
    known = {} if before is None else before.by_queue()
    start = listing.starts[0] if before is None else before.physical_end
    stretches, lost = [], []
    for reader in _queues(store, options):
        topic, queue_id = reader.topic, reader.queue_id
        whole, below = (
            _bounds(store, reader, watermark),
            _bounds(store, reader, watermark._replace(physical_offset=end)),
        )
        queue = known.get((topic, queue_id))
        if queue is not None:
            _require_same_queue(reader, queue, whole)
        first = whole.min_offset if queue is None else max(queue.next, whole.min_offset)
        if queue is not None and queue.next < whole.min_offset:
            lost.append(OffsetRange(topic, queue_id, queue.next, whole.min_offset))
        if first < below.max_offset:
            stretches.append(OffsetRange(topic, queue_id, first, below.max_offset))
            start = min(start, _physical_offset(reader, first, whole))
    start = max(start, listing.starts[0])
    return Plan(stretches, lost, start, max(start, end), listing.file_size, watermark.term)


def bounds_now(store: StoreReader, topic: str, queue_id: int) -> QueueBounds:
    """Return the readable bounds of a queue. Raises TopicNotFoundError or QueueIllegalError."""
    return _bounds(store, store.queue(topic, queue_id), store.watermark())


def _queues(store: StoreReader, options: ArchiveOptions) -> list[QueueReader]:
    named = {store.topic(name).name for name in options.topics}
    topics = sorted(named | {name for name in store.topics() if options.matches(name)})
    return [reader for topic in topics for reader in store.queues(topic)]


def _bounds(store: StoreReader, reader: QueueReader, watermark: Watermark) -> QueueBounds:
    for _ in range(_LOOKS - 1):
        try:
            return store.bounds(reader, watermark)
        except UnitsGoneError:  # files expired meanwhile
            continue
    return store.bounds(reader, watermark)


def _require_same_log(
    store: StoreReader, options: ArchiveOptions, before: ArchiveManifest, watermark: Watermark
) -> None:
    said = before.store
    if said.store_name != options.store_name:
        raise _other(f"belongs to store {said.store_name}, not {options.store_name}", store)
    if said.log_file_size != store.log.known.file_size:
        raise _other(f"has log files of {said.log_file_size} bytes, the store {store.log.known.file_size}", store)
    if before.physical_end > watermark.physical_offset:
        raise _other(f"ends at {before.physical_end}, after the store's end {watermark.physical_offset}", store)


def _require_same_queue(reader: QueueReader, queue: ArchivedQueue, bounds: QueueBounds) -> None:
    """Require that the last archived message, if the store still has it, has the same physical offset."""
    place = f"queue {queue.queue_id} of {queue.topic}"
    if 0 < bounds.max_offset < queue.next:
        raise _other(f"has {place} up to offset {queue.next}, the store only up to {bounds.max_offset}")
    last = queue.last_queue_offset
    if last is None or not bounds.min_offset <= last < bounds.max_offset:
        return
    found = _physical_offset(reader, last, bounds)
    if found != queue.last_physical_offset:
        raise _other(f"has message {last} of {place} at {queue.last_physical_offset}, the store at {found}")


def _physical_offset(reader: QueueReader, queue_offset: int, bounds: QueueBounds) -> int:
    """Return the physical offset of a message within *bounds*."""
    return int(reader.run.unit(reader.locate(queue_offset, bounds.units))["physical_offset"])


def _other(difference: str, store: StoreReader | None = None) -> StoreContradictionError:
    facts = {} if store is None else {"path": str(store.paths.root)}
    return StoreContradictionError(
        f"the archive {difference}: it is of another store or a later state; choose another folder", **facts
    )
