"""FileLog: a store's files, on this machine or on a file system that driver and executors share."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidemark.client.received_message import TopicQueue
from tidemark.errors import CorruptStoreError, OffsetError, RejectedError
from tidemark.read.lookup.key_places import places_of_key
from tidemark.read.lookup.offset_by_time import offset_by_time
from tidemark.read.messages.message_columns import SCHEMA, message_batch, schema_of
from tidemark.read.pull import PullRequest, PullResult, pull
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.records import REMOVED
from tidemark.read.store_reader import StoreReader
from tidemark.read.tag_filter import TagFilter
from tidemark.read.unit_run import UnitsGoneError
from tidemark.spark.source.log import BATCH_BYTES, Bounds, MessagePage, QueueOffset, gone, short
from tidemark.spark.source.visible import SETTLE_S, wait_until

_BATCH_MESSAGES = 65_536
_UNITS_AT_ONCE = 65_536
_LOOKS = 5


class FileLog:
    """Log over files. state: folder of our own files about an attached broker's directory; columns: of its pages."""

    def __init__(self, path: Path, *, state: Path | None = None, columns: Collection[str] = SCHEMA.names) -> None:
        if not path.is_dir():
            raise _no_store(path)
        self._store = StoreReader(path, state=state, refresh_s=0)
        self._schema = schema_of({"queue_offset", *columns})

    def topics(self) -> list[str]:
        return sorted(self._store.topics())

    def queues_of(self, topic: str) -> list[TopicQueue]:
        return [TopicQueue(topic, queue_id) for queue_id in self._store.queue_ids(self._store.topic(topic))]

    def assigned(self, queue: TopicQueue) -> list[TopicQueue]:
        return [queue]

    def bounds(self, queue: TopicQueue) -> Bounds:
        bounds = self._bounds(self._store.queue(*queue))
        return Bounds(bounds.min_offset, bounds.max_offset)

    def wait_for(self, queue: TopicQueue, end: int) -> bool:
        return self.bounds(queue).max_offset >= end

    def offset_at(self, queue: TopicQueue, timestamp_ms: int) -> int | None:
        reader = self._store.queue(*queue)
        answer = offset_by_time(reader, self._store.log, self._bounds(reader), timestamp_ms)
        return None if answer.store_timestamp is None else answer.offset

    def end_within(self, queue: TopicQueue, start: int, end: int, max_bytes: int) -> int:
        reader = self._store.queue(*queue)
        units = self._bounds(reader).units
        number, reached, left = reader.locate(start, units), start, max_bytes
        while number < units.end and reached < end:
            run = reader.run.read(number, min(units.end - number, _UNITS_AT_ONCE))
            if not len(run):  # a gap without units
                number = min(reader.run.at_or_after(number + 1, units.end)[0], units.end)
                reached = reader.offsets_of(number)[0] if number < units.end else end
                continue
            sizes = np.cumsum(np.where(reader.run.is_live(run), run["message_size"].astype(np.int64), 0))
            fitting = int(np.searchsorted(sizes, left, side="right"))
            if fitting:
                ends = reader.first_offsets(number, run) + reader.message_counts(run)
                reached, left = int(ends[fitting - 1]), left - int(sizes[fitting - 1])
            if fitting < len(run):
                return min(reached, end)
            number += len(run)
        return end

    def places_of_key(self, topic: str, key: str, most: int) -> list[QueueOffset] | None:
        places = places_of_key(self._store, self._store.watermark(), topic=topic, key=key, most=most)
        if places is None:
            return None
        return [QueueOffset(TopicQueue(topic, place.queue_id), place.queue_offset) for place in places]

    def pages(self, queue: TopicQueue, start: int, end: int, *, tags: frozenset[str] | None) -> Iterator[MessagePage]:
        """Also raises CorruptStoreError if the whole store is inaccessible, because that is not a loss of messages."""
        try:
            yield from self._pages(queue, start, end, tags)
        except (OffsetError, RejectedError):
            if not any(folder.is_dir() for folder in self._store.paths.log_folders.all):
                raise _no_store(self._store.paths.root) from None
            raise

    def _pages(self, queue: TopicQueue, start: int, end: int, tags: frozenset[str] | None) -> Iterator[MessagePage]:
        reader = self._store.queue(*queue)
        wanted = None if tags is None else TagFilter(tags)
        self._wait_for(reader, end)
        while start < end:
            result = self._pull(reader, start, end, wanted)
            for part in result.parts[:-1]:
                yield MessagePage(_below(message_batch(part, self._schema), end), start, [])
            last = message_batch(result.parts[-1], self._schema) if result.parts else _NOTHING
            damage = [f"{skip.reason} at queue offset {skip.queue_offset}" for skip in result.skipped]
            start = max(result.next_offset, start + 1)
            yield MessagePage(_below(last, end), start, damage)

    def _pull(self, reader: QueueReader, start: int, end: int, tags: TagFilter | None) -> PullResult:
        asked = PullRequest(start, min(end - start, _BATCH_MESSAGES), BATCH_BYTES, tags=tags)
        for look in range(_LOOKS):
            bounds = self._bounds(reader)
            if start < bounds.min_offset:
                raise gone(TopicQueue(reader.topic, reader.queue_id), start, bounds.min_offset)
            if start >= bounds.max_offset:
                raise short(TopicQueue(reader.topic, reader.queue_id), start, bounds.max_offset)
            with contextlib.suppress(UnitsGoneError):  # files expired meanwhile: retry with new bounds
                result = pull(reader, self._store.log, _clipped(reader, bounds, end), asked)
                if look == _LOOKS - 1 or not any(skip.reason == REMOVED for skip in result.skipped):
                    return result
        raise UnitsGoneError(f"queue files expired during each of {_LOOKS} attempts to read them")

    def _bounds(self, reader: QueueReader) -> QueueBounds:
        for _ in range(_LOOKS - 1):
            try:
                return self._store.bounds(reader, self._store.watermark())
            except UnitsGoneError:
                continue
        return self._store.bounds(reader, self._store.watermark())

    def _wait_for(self, reader: QueueReader, end: int) -> None:
        """Wait until the queue has the length that the plan, maybe made on another machine, has seen."""
        wait_until(lambda: self._bounds(reader).max_offset >= end, SETTLE_S)

    def settle(self) -> None:
        wanted = self._store.watermark().committed_offset
        wait_until(lambda: self._store.watermark().physical_offset >= wanted, SETTLE_S)

    def close(self) -> None:
        self._store.watermarks.close()


def _no_store(path: Path) -> CorruptStoreError:
    return CorruptStoreError(f"no store at {path}: check that this machine mounts its file system", path=str(path))


def _clipped(reader: QueueReader, bounds: QueueBounds, end: int) -> QueueBounds:
    """Clip *bounds* at *end*; a batch that contains *end* is kept."""
    if end >= bounds.max_offset:
        return bounds
    units = bounds.units
    return QueueBounds(bounds.min_offset, end, units._replace(end=reader.locate(end - 1, units) + 1))


def _below(batch: pa.RecordBatch, end: int) -> pa.RecordBatch:
    """Remove messages from queue offset *end* on, which an inner batch can contain."""
    offsets = batch.column("queue_offset").to_numpy()
    return batch if not len(offsets) or offsets[-1] < end else batch.slice(0, int(np.searchsorted(offsets, end)))


_NOTHING = pa.RecordBatch.from_pylist([], schema=SCHEMA)
