"""A service in memory that keeps its promises: it makes right histories, which tests then spoil."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import Any, TypeVar

from tests.soak.facts import Queue
from tests.soak.history import (
    ACKNOWLEDGED,
    NOT_YET_VISIBLE,
    OK,
    REFUSED,
    UNAVAILABLE,
    Answer,
    Append,
    Operation,
    Seen,
)

RECORD_SIZE = 100
One = TypeVar("One", bound=Operation)


class Simulated:
    """Every operation takes effect at `clock`, which rises by 1, and lasts from *early* before to *late* after it."""

    def __init__(self) -> None:
        self.history: list[Operation] = []
        self.queues: defaultdict[Queue, list[Seen]] = defaultdict(list)
        self.clock = 1000.0
        self.term = 1
        self.end = 0
        self.watermark = 0
        self._names = 0
        self._boundaries = [0]  # ends of records

    # -- changes of the store ----------------------------------------------------------------------------------------

    def append(
        self,
        topic: str = "orders",
        queue_id: int = 0,
        count: int = 1,
        *,
        inner: bool = False,
        early: float = 0.1,
        late: float = 0.1,
        **fields: Any,
    ) -> Append:
        """Store a batch; *inner*: as one record."""
        self.clock += 1
        contents = tuple(f"m{self._names + i}/0" for i in range(count))
        self._names += count
        first = len(self.queues[Queue(topic, queue_id)])
        starts = self.store(Queue(topic, queue_id), contents, inner=inner)
        return self._add(
            Append(
                "producer",
                topic,
                queue_id,
                self.clock - early,
                self.clock + late,
                ACKNOWLEDGED,
                contents,
                queue_offset=first,
                physical_offsets=starts,
                end_physical_offset=self.end,
                store_ms=int(self.clock),
                term=self.term,
                **fields,
            )
        )

    def store(self, queue: Queue, contents: tuple[str, ...], *, inner: bool = False) -> tuple[int, ...]:
        """Put messages at the end of the log; return the positions of their records."""
        starts: list[int] = []
        for i, content in enumerate(contents):
            if i == 0 or not inner:
                starts.append(self.end)
                self.end += RECORD_SIZE
                self._boundaries.append(self.end)
            place = len(self.queues[queue])
            self.queues[queue].append(Seen(queue.queue_id, place, starts[-1], int(self.clock), content, self.end))
        return tuple(starts)

    def refuse(self, topic: str = "orders", queue_id: int = 0, *, early: float = 0.1) -> Append:
        """Record a compare-and-append that expected another offset."""
        self.clock += 1
        self._names += 1
        actual = len(self.queues[Queue(topic, queue_id)])
        return self._add(
            Append(
                "producer",
                topic,
                queue_id,
                self.clock - early,
                self.clock + 0.1,
                REFUSED,
                (f"m{self._names - 1}/0",),
                expected_next_offset=actual + 1,
                actual_next_offset=actual,
                reason="NEXT_OFFSET_MISMATCH",
            )
        )

    def publish(self, share: float = 1.0) -> None:
        """Move the watermark by this share of its distance to the end."""
        wanted = self.watermark + share * (self.end - self.watermark)
        self.watermark = max(end for end in self._boundaries if end <= max(wanted, self.watermark))

    # -- requests -----------------------------------------------------------------------------------------------------

    def visible(self, queue: Queue) -> list[Seen]:
        """Return the messages below the watermark."""
        return [
            seen for seen in self.queues[queue] if seen.end_offset is not None and seen.end_offset <= self.watermark
        ]

    def pull(self, topic: str = "orders", queue_id: int = 0, offset: int = 0, **fields: Any) -> Answer:
        """Pull at most ten messages."""
        seen = tuple(self.visible(Queue(topic, queue_id))[offset : offset + 10])
        return self._queue_answer(
            "pull", topic, queue_id, requested_offset=offset, next_offset=offset + len(seen), seen=seen, **fields
        )

    def bounds(self, topic: str = "orders", queue_id: int = 0, **fields: Any) -> Answer:
        return self._queue_answer("bounds", topic, queue_id, **fields)

    def offset_at(self, time_ms: int, boundary: str, topic: str = "orders", queue_id: int = 0, **fields: Any) -> Answer:
        times = [seen.store_ms for seen in self.visible(Queue(topic, queue_id))]
        if boundary == "lower":
            at = bisect_left(times, time_ms)
            found = times[at] if at < len(times) else None
        else:
            at = bisect_right(times, time_ms) - 1
            at, found = (at, times[at]) if at >= 0 else (0, None)
        return self._queue_answer(
            "offset_by_time",
            topic,
            queue_id,
            time_ms=time_ms,
            boundary=boundary,
            offset=at,
            store_ms=found,
            **fields,
        )

    def by_id(self, append: Append, **fields: Any) -> Answer:
        """Look up the first message of *append* by its id."""
        seen = self._first_of(append)
        if seen is None:
            return self._answer("by_id", NOT_YET_VISIBLE, topic=append.topic, wanted=append.contents[0], **fields)
        return self._right_answer("by_id", topic=append.topic, wanted=append.contents[0], seen=(seen,), **fields)

    def by_key(self, append: Append, **fields: Any) -> Answer:
        seen = self._first_of(append)
        found = () if seen is None else (seen,)
        return self._right_answer("by_key", topic=append.topic, wanted=append.contents[0], seen=found, **fields)

    def unavailable(self) -> Answer:
        return self._answer("pull", UNAVAILABLE, topic="orders", queue_id=0)

    def finish(self) -> list[Operation]:
        """Make everything visible, read it, and return the history."""
        self.publish()
        for topic, queue_id in sorted(self.queues):
            for offset in range(0, len(self.queues[Queue(topic, queue_id)]), 10):
                self.pull(topic, queue_id, offset, final=True)
        return self.history

    def _first_of(self, append: Append) -> Seen | None:
        visible = self.visible(Queue(append.topic, append.queue_id))
        return next((seen for seen in visible if seen.content == append.contents[0]), None)

    def _queue_answer(self, kind: str, topic: str, queue_id: int, **fields: Any) -> Answer:
        end = len(self.visible(Queue(topic, queue_id)))
        return self._right_answer(kind, topic=topic, queue_id=queue_id, min_offset=0, max_offset=end, **fields)

    def _right_answer(self, kind: str, **fields: Any) -> Answer:
        return self._answer(kind, OK, term=self.term, watermark=self.watermark, committed=self.end, **fields)

    def _answer(self, kind: str, outcome: str, *, early: float = 0.1, late: float = 0.1, **fields: Any) -> Answer:
        self.clock += 1
        return self._add(Answer("consumer", kind, self.clock - early, self.clock + late, outcome, **fields))

    def _add(self, operation: One) -> One:
        self.history.append(operation)
        return operation


def spoiled(history: list[Operation], operation: Operation, **changes: Any) -> list[Operation]:
    """Return *history* with other facts in one of its operations."""
    assert operation in history
    return [dataclasses.replace(one, **changes) if one is operation else one for one in history]
