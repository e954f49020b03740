"""StreamReader: plans the triggers of a stream. It runs in a process of its own, next to the driver."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from tidemark.client.received_message import TopicQueue
from tidemark.errors import QueueIllegalError, TopicNotFoundError
from tidemark.spark.option_values import End
from tidemark.spark.source.group_progress import GroupProgress
from tidemark.spark.source.log import Bounds, Log
from tidemark.spark.source.open_log import open_log
from tidemark.spark.source.ranges import QueueRange
from tidemark.spark.source.read_task import read_ranges
from tidemark.spark.source.resolve import Resolver
from tidemark.spark.source.source_options import SourceOptions
from tidemark.spark.source.stream_offsets import Json, from_json, to_json
from tidemark.spark.source.tasks import Task, in_tasks
from tidemark.spark.source.trigger_limits import within_bytes, within_messages

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a streaming query. Its offsets are exclusive ends of queues, at most the watermark."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options.require_stream()
        self._schema = schema
        self._open: tuple[Log, Resolver] | None = None
        self._progress: GroupProgress | None = None
        self._target: dict[TopicQueue, int] | None = None  # ends for Trigger.AvailableNow
        self._waits_since: float | None = None  # start of the wait for minOffsetsPerTrigger

    def __getstate__(self) -> dict[str, object]:
        """Return the state for tasks, without connections."""
        return self.__dict__ | {"_open": None, "_progress": None}

    @property
    def _log(self) -> Log:
        return self._opened()[0]

    @property
    def _resolver(self) -> Resolver:
        return self._opened()[1]

    def _opened(self) -> tuple[Log, Resolver]:
        if self._open is None:
            log = open_log(self._options)
            self._open = log, Resolver(log, self._options)
        return self._open

    # ── called by Spark ───────────────────────────────────────────────────────────────────────────────────────────

    def initialOffset(self) -> Json:  # noqa: N802
        """Return the start of a query without a checkpoint."""
        if self._options.asks_for_offsets:
            self._log.settle()
        bounds = self._resolver.bounds(self._resolver.queues())
        return to_json(self._resolver.starts(bounds, End.LATEST))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return one of the limits, since Spark has no combination; `latestOffset` applies all of them."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(int(options.max_bytes_per_trigger))
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802
        """Return the end of the trigger that starts at *start*."""
        starts, bounds = self._read(start), self._bounds()
        ends = self._ends(starts, bounds)
        begins = {queue: self._begin(queue, starts, bounds) for queue in ends}
        if isinstance(limit, ReadAllAvailable):
            return to_json(ends)
        if self._target is None and self._must_wait(sum(max(0, ends[queue] - begins[queue]) for queue in ends)):
            return start
        if self._options.max_offsets_per_trigger is not None:
            ends = within_messages(begins, ends, self._options.max_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            ends = within_bytes(begins, ends, int(self._options.max_bytes_per_trigger), self._log.end_within)
        return to_json(ends)

    def reportLatestOffset(self) -> Json:  # noqa: N802
        """Return the current ends, independent of limits; Spark shows the difference as lag."""
        return to_json({queue: bounds.max_offset for queue, bounds in self._bounds().items()})

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the query at the current ends."""
        self._log.settle()
        self._target = {queue: bounds.max_offset for queue, bounds in self._bounds().items()}

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """Return the tasks of one trigger. Raises OffsetTooSmallError for deleted messages with failOnDataLoss."""
        starts, ends = self._read(start), self._read(end)
        ranges = [QueueRange.of(queue, self._begin_of(queue, starts, ends), ends[queue]) for queue in ends]
        return cast(list[InputPartition], in_tasks(ranges, self._options, self._log))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield batches of the messages of a Task. Fails like `read_ranges`."""
        assert isinstance(partition, Task)
        return read_ranges(partition.ranges, self._options, self._schema, self._options.tags)

    def commit(self, end: Json) -> None:
        """Commit *end* to the consumer group, if one is set."""
        if self._options.commit_group is None:
            return
        if self._progress is None:
            self._progress = GroupProgress(self._options)
        self._progress.commit(self._read(end))

    def _read(self, written: Json) -> dict[TopicQueue, int]:
        return from_json(written, self._options.several_stores)

    def stop(self) -> None:
        """Close the connections."""
        if self._open is not None:
            self._open[0].close()
        if self._progress is not None:
            self._progress.close()

    # ── available messages ────────────────────────────────────────────────────────────────────────────────────────────

    def _bounds(self) -> dict[TopicQueue, Bounds]:
        return self._resolver.bounds_of_existing()

    def _begin_of(self, queue: TopicQueue, starts: Mapping[TopicQueue, int], ends: Mapping[TopicQueue, int]) -> int:
        """Return the start of *queue* in an already planned trigger; its end if its topic was deleted meanwhile."""
        if queue in starts:
            return starts[queue]
        try:
            return self._log.bounds(queue).min_offset
        except (TopicNotFoundError, QueueIllegalError) as error:
            self._resolver.lost(error)
            return ends[queue]

    def _begin(self, queue: TopicQueue, starts: Mapping[TopicQueue, int], bounds: Mapping[TopicQueue, Bounds]) -> int:
        """Return the start of *queue*; a new queue is read from its minimum."""
        return starts[queue] if queue in starts else bounds[queue].min_offset

    def _ends(self, starts: Mapping[TopicQueue, int], bounds: Mapping[TopicQueue, Bounds]) -> dict[TopicQueue, int]:
        """Return the readable ends, limited by the target; for a deleted queue, the offset already read."""
        ends = {}
        for queue, one in bounds.items():
            within = one.max_offset if self._target is None else min(one.max_offset, self._target.get(queue, 0))
            begin = self._begin(queue, starts, bounds)
            if begin > one.max_offset:
                begin = self._resolver.within(queue, begin, one)
            ends[queue] = max(begin, within)
        for queue in starts.keys() - ends.keys():
            self._resolver.lost(TopicNotFoundError(f"queue {queue.queue_id} of {queue.topic} does not exist any more"))
        return ends

    def _must_wait(self, available: int) -> bool:
        """Return True if there are fewer than minOffsetsPerTrigger messages and maxTriggerDelay has not passed."""
        least = self._options.min_offsets_per_trigger
        if least is None or available >= least or available == 0:
            self._waits_since = None
            return False
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        if now - self._waits_since < self._options.max_trigger_delay:
            return True
        self._waits_since = None
        return False
