"""What a run archives: of each queue the messages behind those that are archived, up to one physical end.

The end is below the watermark; of sealed files alone it is where the file begins that the watermark stands in. Records
below it do not change, so that who reads the same offsets again reads the same messages.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.archive.manifest import ArchivedQueue, Manifest
from tidemark.archive.options import ArchiveOptions
from tidemark.errors import StoreClosedError, StoreContradictionError
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import UnitsGoneError
from tidemark.read.watermark import Watermark

_LOOKS = 5


class Stretch(NamedTuple):
    """Messages of a queue: first ≤ queue offset < next."""

    topic: str
    queue_id: int
    first: int
    next: int


class Plan(NamedTuple):
    """stretches: what is new, none of them empty; lost: what was never archived, and has expired.

    start, end: the part of the log where the new records are, physical
    """

    stretches: list[Stretch]
    lost: list[Stretch]
    start: int
    end: int
    log_file_size: int
    term: int


def make_plan(store: StoreReader, options: ArchiveOptions, before: Manifest | None) -> Plan:
    """What is to be archived now, where *before* is archived already.

    raises StoreClosedError for a store that no pipeline has been on; StoreContradictionError when *before* is another
    store's, or of a later time; TopicNotFoundError for a topic that is named and does not exist
    """
    store.refresh()
    watermark = store.watermark()
    listing = store.log.listing()
    if store.watermarks.marks is None or not listing.starts:
        raise StoreClosedError(
            f"{store.paths.root} was never indexed: run the pipeline on it", path=str(store.paths.root)
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
            lost.append(Stretch(topic, queue_id, queue.next, whole.min_offset))
        if first < below.max_offset:
            stretches.append(Stretch(topic, queue_id, first, below.max_offset))
            start = min(start, _physical_offset(reader, first, whole))
    start = max(start, listing.starts[0])
    return Plan(stretches, lost, start, max(start, end), listing.file_size, watermark.term)


def bounds_now(store: StoreReader, topic: str, queue_id: int) -> QueueBounds:
    """What of a queue may be read; TopicNotFoundError, QueueIllegalError."""
    return _bounds(store, store.queue(topic, queue_id), store.watermark())


def _queues(store: StoreReader, options: ArchiveOptions) -> list[QueueReader]:
    named = {store.topic(name).name for name in options.topics}
    topics = sorted(named | {name for name in store.topics() if options.matches(name)})
    return [reader for topic in topics for reader in store.queues(topic)]


def _bounds(store: StoreReader, reader: QueueReader, watermark: Watermark) -> QueueBounds:
    for _ in range(_LOOKS - 1):
        try:
            return store.bounds(reader, watermark)
        except UnitsGoneError:  # files expire at this moment
            continue
    return store.bounds(reader, watermark)


def _require_same_log(store: StoreReader, options: ArchiveOptions, before: Manifest, watermark: Watermark) -> None:
    said = before.store
    if said.store_name != options.store_name:
        raise _other(f"is of store {said.store_name}, not of {options.store_name}", store)
    if said.log_file_size != store.log.known.file_size:
        raise _other(f"is of log files of {said.log_file_size} bytes, not {store.log.known.file_size}", store)
    if before.physical_end > watermark.physical_offset:
        raise _other(f"reaches to {before.physical_end}, the store only to {watermark.physical_offset}", store)


def _require_same_queue(reader: QueueReader, queue: ArchivedQueue, bounds: QueueBounds) -> None:
    """The last message that is archived, where the store still has it, stands where it stood."""
    place = f"queue {queue.queue_id} of {queue.topic}"
    if 0 < bounds.max_offset < queue.next:
        raise _other(f"holds {place} to {queue.next}, the store only to {bounds.max_offset}")
    last = queue.last_queue_offset
    if last is None or not bounds.min_offset <= last < bounds.max_offset:
        return
    found = _physical_offset(reader, last, bounds)
    if found != queue.last_physical_offset:
        raise _other(f"has message {last} of {place} from {queue.last_physical_offset}, the store has it at {found}")


def _physical_offset(reader: QueueReader, queue_offset: int, bounds: QueueBounds) -> int:
    """Where the record of a message begins that is within *bounds*."""
    return int(reader.run.unit(reader.locate(queue_offset, bounds.units))["physical_offset"])


def _other(difference: str, store: StoreReader | None = None) -> StoreContradictionError:
    facts = {} if store is None else {"path": str(store.paths.root)}
    return StoreContradictionError(
        f"the archive {difference}: it is of another store, or of a later time; choose another folder", **facts
    )
