"""One queue of a request for messages: the cursor in the queue, and reads at the cursor."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TypeVar

from tidemark.errors import Fact, OffsetOutOfRangeError, OffsetTooSmallError
from tidemark.read.look import one_look
from tidemark.read.messages.body import AnswerFullError
from tidemark.read.pull import PullRequest, PullResult, PullStatus, pull
from tidemark.read.pull_as_broker import pull_as_broker
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.records import REMOVED, Skipped
from tidemark.read.short_queues import ShortQueue, StoredRecords
from tidemark.read.store_moment import StoreMoment
from tidemark.read.unit_run import UnitsGoneError
from tidemark.read.watermark import Watermark
from tidemark.store.originals.topics import TopicConfig

from ..state.service_state import ServiceState
from .pulled import AnswerLimits, Pulled

A = TypeVar("A")
_QueueMoment = tuple[QueueReader, Watermark, int, QueueBounds]  # with the log's minimum, and the queue's bounds then
MOST_MESSAGES_AS_COLUMNS = 8192  # most messages that the event loop converts to columns: a few milliseconds


class QueuePull:
    """A pull from one queue.

    offset        a queue offset, earliest or latest
    config        the topic's, if it was just read
    max_messages  most messages of this queue in a request for many; None: only the request's limits apply
    """

    def __init__(
        self,
        state: ServiceState,
        topic: str,
        queue_id: int,
        offset: str,
        limits: AnswerLimits,
        config: TopicConfig | None = None,
        *,
        max_messages: int | None = None,
    ) -> None:
        self._state = state
        self._store = state.store
        self.topic = topic
        self.queue_id = queue_id
        self._queue: QueueReader
        self._offset = offset
        self._config = config
        self._max_messages = max_messages
        self.limits: AnswerLimits
        self.limit(limits)
        self.cursor = 0
        self._requested: int | None = None
        self._seen: tuple[StoreMoment, _QueueMoment] | None = None  # read by a check just before, for the next look
        self._last_end = math.inf  # of the units, at the last look or check

    def limit(self, limits: AnswerLimits) -> None:
        """Read within *limits* and within the queue's own max_messages from the next look on."""
        own = self._max_messages
        self.limits = limits if own is None else limits._replace(max_messages=min(own, limits.max_messages))

    def look(self, now: StoreMoment | None = None) -> Pulled:
        """Read the messages at the cursor.

        Args:
            now: watermark and log minimum that were just read; default: read them now.

        Raises:
            TopicNotFoundError, QueueIllegalError: there is no such topic or queue.
            UnitsGoneError: log files have expired, or a topic was deleted, since *now*.
        """
        with one_look():
            return self._look(now)

    def _look(self, now: StoreMoment | None) -> Pulled:
        seen, self._seen = self._seen, None
        if seen is None or (now is not None and seen[0] is not now):
            now = now or self._now()
            seen = now, self._moment_of(now)
        self._queue, watermark, log_min, bounds = seen[1]
        requested = self._resolve_offset(bounds)
        asked = PullRequest(
            self.cursor,
            self.limits.max_messages,
            self.limits.max_bytes,
            tags=self.limits.tags,
            whole_records=self.limits.whole_records,
            tags_by_hash=self.limits.tags_by_hash,
            unchecked=self.limits.unchecked,
            max_scanned_units=self._state.settings.query_max_scanned_units,
            most_in_place=MOST_MESSAGES_AS_COLUMNS if self.limits.as_columns else sys.maxsize,
        )
        if self.limits.as_broker:
            log_end = watermark.committed_offset
            result = pull_as_broker(self._queue, self._store.log, bounds, asked, log_end=log_end)
            if watermark.may_lack:  # other than a broker that has replicas, whose clients then skip messages
                self._spare_what_is_to_come(result, watermark)
        else:
            result = pull(self._queue, self._store.log, bounds, asked)
            self._spare_what_is_to_come(result, watermark)
            if result.skipped and self._store.log_min > log_min and _has_removed(result.skipped):
                raise UnitsGoneError("log files expired during the read")
        return Pulled(watermark, result, requested, self.limits)

    def answer(self, pulled: Pulled, make: Callable[[Pulled], A]) -> A:
        """Return the answer that *make* makes; read fewer messages if their decompressed bodies are too large.

        Raises:
            OffsetTooSmallError, OffsetOutOfRangeError: the cursor is outside the queue.
        """
        self._require_in_range(pulled)
        while True:
            try:
                return make(pulled)
            except AnswerFullError:
                fewer = max(1, min(self.limits.max_messages, pulled.result.message_count) // 2)
                self.limits = self.limits._replace(max_messages=fewer)
                pulled = self.look()

    @property
    def place(self) -> tuple[str, int]:
        """Topic and queue id."""
        return self.topic, self.queue_id

    @property
    def is_named(self) -> bool:
        """True if the request's offset is earliest or latest, so that the caller does not know the number."""
        return not self._offset.isdecimal()

    @property
    def ahead(self) -> float:
        """Number of messages between the cursor and the queue's last known end; infinite before the first look."""
        return self._last_end - self.cursor

    def is_at_known_end(self) -> bool:
        """Return True if the cursor is at the queue's end and the end is known, so that a look needs no thread."""
        if self._offset == "earliest" or self.limits.as_broker:
            return False
        queue = self._store.known_queue(self.topic, self.queue_id, self._config)
        if queue is None or not queue.run.is_known:
            return False
        now = self._now()
        self._seen = now, self._moment(queue, now)
        return self._offset == "latest" or int(self._offset) >= self._last_end

    def has_grown(self, now: StoreMoment) -> bool:
        """Return True if there are messages at or after the cursor. Call it after a look.

        Raises:
            TopicNotFoundError, QueueIllegalError: the topic was deleted, or created again without this queue.
        """
        self._seen = None  # of an earlier check: if the next line raises, the next look reports the error
        self._seen = now, self._moment_of(now)
        return self._last_end > self.cursor

    def short_queue(self, now: StoreMoment) -> ShortQueue | None:
        """Return the units to read if they can be read together with those of other queues, otherwise None.

        Raises as `look`, which is to be called next unless `pulled_together` is.
        """
        self._seen = None
        seen = self._moment_of(now)
        self._seen = now, seen
        self._queue, _, _, bounds = seen
        self._resolve_offset(bounds)
        is_within = bounds.min_offset <= self.cursor < bounds.units.end
        if self._queue.is_batch or not self._queue.record_topic or bounds.lost or not is_within:
            return None
        units = self._queue.run.range(self.cursor, bounds.units.end - self.cursor)
        if units is None:
            return None
        most = sys.maxsize if self._max_messages is None else self._max_messages
        return ShortQueue(self._queue.record_topic, self.queue_id, self.cursor, units, most)

    def pulled_together(self, found: StoredRecords) -> Pulled:
        """Return the outcome of a read of `short_queue`."""
        seen, self._seen = self._seen, None
        assert seen is not None and self._requested is not None
        _, watermark, _, bounds = seen[1]
        result = PullResult(
            PullStatus.FOUND,
            self.cursor + found.messages,
            bounds,
            stored=[found.data],
            message_count=found.messages,
            stored_bytes=len(found.data),
        )
        return Pulled(watermark, result, self._requested, self.limits)

    def _now(self) -> StoreMoment:
        return StoreMoment(self._store.watermark(), self._store.log_min)

    def _moment_of(self, now: StoreMoment) -> _QueueMoment:
        return self._moment(self._store.queue(self.topic, self.queue_id, now.catalog), now)

    def _moment(self, queue: QueueReader, now: StoreMoment) -> _QueueMoment:
        watermark, log_min, catalog = now
        bounds = queue.bounds(watermark, log_min=log_min, tombstone=self._store.tombstone(self.topic, catalog))
        is_short = bounds.units_end <= bounds.min_offset or bounds.lost > 0
        if is_short and catalog is not None and not self._store.is_current(catalog):
            raise UnitsGoneError("a topic was deleted during the read")  # its files may be gone without a tombstone
        self._last_end = bounds.units_end
        return queue, watermark, log_min, bounds

    def _resolve_offset(self, bounds: QueueBounds) -> int:
        """Return the requested offset as a number; `earliest` follows the queue's minimum while the request waits."""
        named = {"earliest": bounds.min_offset, "latest": bounds.max_offset}
        if self._requested is None:
            self._requested = self.cursor = named[self._offset] if self._offset in named else int(self._offset)
        elif self._offset == "earliest" and self.cursor < bounds.min_offset:
            self._requested = self.cursor = bounds.min_offset
        return self._requested

    def _spare_what_is_to_come(self, result: PullResult, watermark: Watermark) -> None:
        """Accept a cursor above the visible end while this service is behind.

        The writer may already have acknowledged messages up to the cursor.
        """
        if not watermark.is_behind:
            return
        if result.status is PullStatus.OFFSET_OVERFLOW_BADLY:
            result.status = PullStatus.OFFSET_OVERFLOW_ONE
        if result.status in (PullStatus.OFFSET_OVERFLOW_ONE, PullStatus.NO_MESSAGE_IN_QUEUE):
            result.next_offset = self.cursor

    def _require_in_range(self, pulled: Pulled) -> None:
        result, watermark = pulled.result, pulled.watermark
        if result.status not in (PullStatus.OFFSET_TOO_SMALL, PullStatus.OFFSET_OVERFLOW_BADLY):
            return
        facts: dict[str, Fact] = {
            "store": self._state.settings.store_name,
            "topic": self._queue.topic,
            "queue_id": self._queue.queue_id,
            "requested_offset": pulled.requested_offset,
            "next_offset": result.next_offset,
            "first_offset": self._store.first_offset(self._queue.topic, self._queue.queue_id),
            "min_offset": result.bounds.min_offset,
            "max_offset": result.bounds.max_offset,
            "term": watermark.term,
            "watermark_offset": watermark.physical_offset,
            "committed_offset": watermark.committed_offset,
            "pull_status": result.status.value,
        }
        if result.status is PullStatus.OFFSET_TOO_SMALL:
            raise OffsetTooSmallError(
                f"offset {self.cursor} is below the queue's minimum, {result.bounds.min_offset}", **facts
            )
        raise OffsetOutOfRangeError(
            f"offset {self.cursor} is above the queue's end, {result.bounds.max_offset}", **facts
        )


def _has_removed(skipped: list[Skipped]) -> bool:
    return any(skip.reason == REMOVED for skip in skipped)
