"""One pull request: look, wait if asked to, look again."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from tidemark.errors import Fact, OffsetOutOfRangeError, OffsetTooSmallError
from tidemark.read.body import AnswerFullError
from tidemark.read.pull import PullRequest, PullResult, PullStatus, pull
from tidemark.read.pull_as_broker import pull_as_broker
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.records import REMOVED
from tidemark.read.tag_filter import TagFilter
from tidemark.read.unit_run import UnitsGoneError
from tidemark.read.watermark import Watermark

from .arguments import PullArguments, Semantics
from .facade import Facade, steady

_FEW_MESSAGES, _FEW_BYTES = 32, 1 << 20
_MOST_RECORDS_BYTES = 8 << 20
T = TypeVar("T")
_WORTH_WAITING = frozenset(
    {
        PullStatus.NO_MATCHED_MESSAGE,
        PullStatus.MESSAGE_WAS_REMOVING,
        PullStatus.OFFSET_OVERFLOW_ONE,
        PullStatus.NO_MESSAGE_IN_QUEUE,
    }
)


@dataclass
class Pulled:
    """What a pull came to, and the effective limits."""

    watermark: Watermark
    result: PullResult
    requested_offset: int
    max_messages: int
    max_bytes: int
    wait_ms: int


class Puller:
    """Answers one request for messages of one queue."""

    def __init__(
        self, facade: Facade, topic: str, queue_id: int, arguments: PullArguments, *, whole_records: bool
    ) -> None:
        settings = facade.settings
        self._facade = facade
        self._store = facade.store
        self._topic = topic
        self._queue_id = queue_id
        self._queue: QueueReader
        self._arguments = arguments
        self._tags = TagFilter.parse(arguments.tag)
        self._whole_records = whole_records
        self._max_messages = min(arguments.max_messages or settings.query_default_messages, settings.query_max_messages)
        self._max_bytes = min(arguments.max_bytes or settings.query_default_bytes, settings.query_max_bytes)
        self._wait_ms = min(arguments.wait_ms, settings.query_max_wait_ms)
        self._requested: int | None = None
        self._cursor = 0
        self._seen: Watermark | None = None  # a moment ago, and not used yet
        self._known: tuple[Watermark, QueueBounds] | None = None  # of the last look at it

    async def run(self, request: Request, answer: Callable[[Pulled], Response]) -> Response:
        """The response that *answer* makes, on a reading thread too.

        raises OffsetTooSmallError or OffsetOutOfRangeError for a cursor the queue does not have, and what the store
        raises for an unknown topic or queue
        """
        deadline = time.monotonic() + self._wait_ms / 1000

        def look(*, last: bool) -> Pulled | Response:
            pulled = self._look()
            if not last and pulled.result.status in _WORTH_WAITING:
                return pulled
            self._require_answer(pulled)
            return self._answer_with_fewer(pulled, answer)

        if self._wait_ms > 0 and steady(self._is_at_known_end):
            seen = steady(functools.partial(look, last=False))
        else:
            seen = await self._look_where_it_costs_least(functools.partial(look, last=self._wait_ms == 0))
        while isinstance(seen, Pulled):
            self._cursor = seen.result.next_offset
            last = time.monotonic() >= deadline
            if self._cursor >= seen.result.bounds.max_offset:
                last = not await self._facade.wait(request, self._has_grown, deadline)
            seen = await self._look_where_it_costs_least(functools.partial(look, last=last))
        return seen

    def _answer_with_fewer(self, pulled: Pulled, answer: Callable[[Pulled], Response]) -> Response:
        """The answer; of fewer messages where the bodies of all of them would take too much once decompressed."""
        while True:
            try:
                return answer(pulled)
            except AnswerFullError:
                self._max_messages = max(1, min(self._max_messages, pulled.result.message_count) // 2)
                pulled = self._look()

    async def _look_where_it_costs_least(self, look: Callable[[], T]) -> T:
        """In place where the answer is soon made, else on a thread."""
        return await (self._facade.read_in_place if self._is_light() else self._facade.read)(look)

    def _is_light(self) -> bool:
        """Whether the answer takes so little that the event loop may make it. Records are sent as they are read."""
        if self._whole_records and self._tags is None:
            return self._max_bytes <= _MOST_RECORDS_BYTES
        ahead = math.inf if self._known is None else self._known[1].max_offset - self._cursor
        looked_at = ahead if self._tags is not None else min(ahead, self._max_messages)
        return looked_at <= _FEW_MESSAGES and self._max_bytes <= _FEW_BYTES

    def _is_at_known_end(self) -> bool:
        """Whether a look finds nothing to read, and where the queue ends is known: then it needs no thread."""
        if self._arguments.offset == "earliest" or self._arguments.semantics is Semantics.ROCKETMQ:
            return False
        queue = self._store.known_queue(self._topic, self._queue_id)
        if queue is None or not queue.run.is_known:
            return False
        max_offset = self._bounds(queue, self._look_at_watermark()).max_offset
        return self._arguments.offset == "latest" or int(self._arguments.offset) >= max_offset

    def _has_grown(self, watermark: Watermark) -> bool:
        self._seen = watermark
        return self._bounds(self._queue, watermark).max_offset > self._cursor

    def _bounds(self, queue: QueueReader, watermark: Watermark) -> QueueBounds:
        """What of the queue may be read: of each watermark asked once."""
        if self._known is None or self._known[0] is not watermark:
            self._known = watermark, self._store.bounds(queue, watermark)
        return self._known[1]

    def _look_at_watermark(self) -> Watermark:
        self._seen = self._store.watermark()
        return self._seen

    def _look(self) -> Pulled:
        self._queue = self._store.queue(self._topic, self._queue_id)
        watermark, log_min = self._seen or self._store.watermark(), self._store.log_min
        self._seen = None
        bounds = self._bounds(self._queue, watermark)
        self._resolve_offset(bounds)
        asked = PullRequest(
            self._cursor,
            self._max_messages,
            self._max_bytes,
            tags=self._tags,
            whole_records=self._whole_records,
            max_scanned_units=self._facade.settings.query_max_scanned_units,
        )
        if self._arguments.semantics is Semantics.ROCKETMQ:
            log_end = watermark.committed_offset
            result = pull_as_broker(self._queue, self._store.log, bounds, asked, log_end=log_end)
        else:
            result = pull(self._queue, self._store.log, bounds, asked)
            self._spare_what_is_to_come(result, watermark)
            if any(skip.reason == REMOVED for skip in result.skipped) and self._store.log_min > log_min:
                raise UnitsGoneError("log files have expired meanwhile")
        assert self._requested is not None, "resolved above"
        return Pulled(watermark, result, self._requested, self._max_messages, self._max_bytes, self._wait_ms)

    def _resolve_offset(self, bounds: QueueBounds) -> None:
        """The cursor at first; `earliest` also goes with the minimum while the request waits."""
        named = {"earliest": bounds.min_offset, "latest": bounds.max_offset}
        offset = self._arguments.offset
        if self._requested is None:
            self._requested = self._cursor = named[offset] if offset in named else int(offset)
        elif offset == "earliest" and self._cursor < bounds.min_offset:
            self._requested = self._cursor = bounds.min_offset

    def _spare_what_is_to_come(self, result: PullResult, watermark: Watermark) -> None:
        """While the watermark is behind what is committed, an offset above the visible end may be acknowledged."""
        if watermark.lag_bytes == 0:
            return
        if result.status is PullStatus.OFFSET_OVERFLOW_BADLY:
            result.status = PullStatus.OFFSET_OVERFLOW_ONE
        if result.status in (PullStatus.OFFSET_OVERFLOW_ONE, PullStatus.NO_MESSAGE_IN_QUEUE):
            result.next_offset = self._cursor

    def _require_answer(self, pulled: Pulled) -> None:
        result, watermark = pulled.result, pulled.watermark
        facts: dict[str, Fact] = {
            "store": self._facade.settings.store_name,
            "topic": self._queue.topic,
            "queue_id": self._queue.queue_id,
            "requested_offset": pulled.requested_offset,
            "next_offset": result.next_offset,
            "min_offset": result.bounds.min_offset,
            "max_offset": result.bounds.max_offset,
            "term": watermark.term,
            "watermark_offset": watermark.physical_offset,
            "committed_offset": watermark.committed_offset,
            "pull_status": result.status.value,
        }
        if result.status is PullStatus.OFFSET_TOO_SMALL:
            raise OffsetTooSmallError(f"offset {self._cursor} is below the queue's minimum", **facts)
        if result.status is PullStatus.OFFSET_OVERFLOW_BADLY:
            raise OffsetOutOfRangeError(f"offset {self._cursor} is above everything committed", **facts)
