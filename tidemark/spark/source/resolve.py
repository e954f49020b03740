"""Resolver: determines the queues and offsets to read from the options."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from tidemark.client.received_message import TopicQueue
from tidemark.errors import ArgumentIllegalError, QueueIllegalError, StoreError, TopicNotFoundError
from tidemark.spark.option_values import EARLIEST, LATEST, ByQueue, End
from tidemark.spark.source.log import Bounds, Log, gone, short
from tidemark.spark.source.ranges import QueueRange
from tidemark.spark.source.source_options import SourceOptions

N = TypeVar("N", str, TopicQueue)
_log = logging.getLogger(__name__)


class Resolver:
    """Resolver for one log and its *options*."""

    def __init__(self, log: Log, options: SourceOptions) -> None:
        self._log = log
        self._options = options

    def queues(self) -> list[TopicQueue]:
        """Return the current queues of subscribe, subscribePattern or assign, sorted.

        Raises TopicNotFoundError if a named topic does not exist.
        """
        return self._queues(self._log.queues_of, self._log.assigned)

    def _queues(
        self, queues_of: Callable[[str], list[TopicQueue]], assigned: Callable[[TopicQueue], list[TopicQueue]]
    ) -> list[TopicQueue]:
        if self._options.assign is not None:
            by_topic = self._options.assign.items()
            named = sorted(TopicQueue(topic, queue_id) for topic, ids in by_topic for queue_id in set(ids))
            return [queue for one in named for queue in assigned(one)]
        topics: Iterable[str] = self._options.topics
        if self._options.subscribe_pattern is not None:
            topics = filter(self._options.subscribe_pattern.fullmatch, self._log.topics())
        return [queue for topic in topics for queue in queues_of(topic)]

    def bounds(self, queues: Iterable[TopicQueue]) -> dict[TopicQueue, Bounds]:
        """Return the readable range of each queue."""
        return {queue: self._log.bounds(queue) for queue in queues}

    def bounds_of_existing(self) -> dict[TopicQueue, Bounds]:
        """Return the bounds of every queue that exists now.

        A topic named by a stream may have been deleted since the stream began, even during this call.

        Raises:
            TopicNotFoundError, QueueIllegalError: a named topic or queue does not exist, and failOnDataLoss is true.
        """
        found = {}
        for queue in self._queues(self._unless_gone_of(self._log.queues_of), self._unless_gone_of(self._log.assigned)):
            with self._unless_gone():
                found[queue] = self._log.bounds(queue)
        return found

    def _unless_gone_of(self, queues_of: Callable[[N], list[TopicQueue]]) -> Callable[[N], list[TopicQueue]]:
        def existing(name: N) -> list[TopicQueue]:
            with self._unless_gone():
                return queues_of(name)
            return []

        return existing

    @contextlib.contextmanager
    def _unless_gone(self) -> Iterator[None]:
        try:
            yield
        except (TopicNotFoundError, QueueIllegalError):
            if self._options.fail_on_data_loss:
                raise

    def starts(self, bounds: Mapping[TopicQueue, Bounds], default: End) -> dict[TopicQueue, int]:
        """Return the start offset of each queue.

        Raises OffsetTooSmallError or OffsetOutOfRangeError for an offset that does not exist, with failOnDataLoss.
        """
        options = self._options
        if options.starting_timestamp is not None:
            at = options.starting_timestamp
            return {queue: self._at(queue, at, one, "startingTimestamp") for queue, one in bounds.items()}
        if options.starting_offsets_by_timestamp is not None:
            times = _of_all(bounds, options.starting_offsets_by_timestamp, "startingOffsetsByTimestamp")
            return {
                queue: self._at(queue, times[queue], one, "startingOffsetsByTimestamp") for queue, one in bounds.items()
            }
        return self._at_named(bounds, options.starting_offsets or default, "startingOffsets")

    def ends(self, bounds: Mapping[TopicQueue, Bounds]) -> dict[TopicQueue, int]:
        """Return the end offset of each queue of a batch. Fails like `starts`."""
        options = self._options
        if options.ending_timestamp is not None:
            return {queue: self._before(queue, options.ending_timestamp, one) for queue, one in bounds.items()}
        if options.ending_offsets_by_timestamp is not None:
            times = _of_all(bounds, options.ending_offsets_by_timestamp, "endingOffsetsByTimestamp")
            return {queue: self._before(queue, times[queue], one) for queue, one in bounds.items()}
        return self._at_named(bounds, options.ending_offsets or End.LATEST, "endingOffsets")

    def batch(self) -> list[QueueRange]:
        """Return all ranges of a batch."""
        queues = self.queues()
        if self._options.asks_for_offsets:
            self._log.settle()
        bounds = self.bounds(queues)
        starts, ends = self.starts(bounds, End.EARLIEST), self.ends(bounds)
        return [QueueRange.of(queue, starts[queue], max(starts[queue], ends[queue])) for queue in queues]

    def _at(self, queue: TopicQueue, timestamp_ms: int, bounds: Bounds, option: str) -> int:
        found = self._log.offset_at(queue, timestamp_ms)
        if found is None and self._options.starting_offsets_by_timestamp_strategy == "error":
            raise ArgumentIllegalError(
                f"option {option}: queue {queue.queue_id} of {queue.topic} has no message stored at {timestamp_ms} "
                "or later; set startingOffsetsByTimestampStrategy=latest to start at the end",
                argument=option,
            )
        return bounds.max_offset if found is None else found

    def _before(self, queue: TopicQueue, timestamp_ms: int, bounds: Bounds) -> int:
        found = self._log.offset_at(queue, timestamp_ms)
        return bounds.max_offset if found is None else min(found, bounds.max_offset)

    def _at_named(
        self, bounds: Mapping[TopicQueue, Bounds], named: End | ByQueue, option: str
    ) -> dict[TopicQueue, int]:
        if named is End.EARLIEST:
            return {queue: one.min_offset for queue, one in bounds.items()}
        if named is End.LATEST:
            return {queue: one.max_offset for queue, one in bounds.items()}
        assert not isinstance(named, End)
        offsets = _of_all(bounds, named, option)
        return {queue: self._at_offset(queue, offset, bounds[queue]) for queue, offset in offsets.items()}

    def _at_offset(self, queue: TopicQueue, offset: int, bounds: Bounds) -> int:
        if offset == EARLIEST:
            return bounds.min_offset
        return bounds.max_offset if offset == LATEST else self.within(queue, offset, bounds)

    def within(self, queue: TopicQueue, offset: int, bounds: Bounds) -> int:
        """Return *offset* once it exists; otherwise fail with failOnDataLoss, or return the nearest existing offset."""
        if offset < bounds.min_offset:
            self.lost(gone(queue, offset, bounds.min_offset))
            return bounds.min_offset
        if offset > bounds.max_offset and not self._log.wait_for(queue, offset):
            self.lost(short(queue, offset, bounds.max_offset))
            return bounds.max_offset
        return offset

    def lost(self, error: StoreError) -> None:
        """Raise *error* with failOnDataLoss; otherwise log it."""
        if self._options.fail_on_data_loss:
            raise error
        _log.warning("%s; continuing because failOnDataLoss is false", error.message)


def _of_all(bounds: Mapping[TopicQueue, Bounds], given: ByQueue, option: str) -> dict[TopicQueue, int]:
    """Return the values by queue.

    Raises ArgumentIllegalError unless exactly the queues to read are given, as in Kafka.
    """
    values = {
        TopicQueue(topic, queue_id): value for topic, queues in given.items() for queue_id, value in queues.items()
    }
    missing, unknown = bounds.keys() - values.keys(), values.keys() - bounds.keys()
    if missing or unknown:
        topic, queue_id = min(missing or unknown)
        what = "is missing" if missing else "is not read by this query"
        raise ArgumentIllegalError(f"option {option}: queue {queue_id} of {topic} {what}", argument=option)
    return values
