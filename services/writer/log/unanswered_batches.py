"""UnansweredBatches: batches that were accepted and wait for their answer. Lives on the event loop.

Bounds the bytes in flight, and answers a written batch that is not committed in time with a timeout.
"""

from __future__ import annotations

import asyncio
from collections import deque

from tidemark.errors import InFlightLimitError, StoreError

from ..batch.batch import Batch, PutStatus

_LOOK_AGAIN_S = 0.1


class UnansweredBatches:
    """The waiting batches, in order of arrival.

    timeout_s: None for no timeout (async mode answers after the write). late: status of a batch after the timeout
    """

    def __init__(
        self,
        *,
        limit_bytes: int,
        retry_after_ms: int,
        timeout_s: float | None,
        late: PutStatus = PutStatus.FLUSH_DISK_TIMEOUT,
    ) -> None:
        self._limit_bytes = limit_bytes
        self._retry_after_ms = retry_after_ms
        self._timeout_s = timeout_s
        self._late = late
        self._loop = asyncio.get_running_loop()
        self._batches: deque[Batch] = deque()  # answered ones leave at the head
        self.bytes = 0  # in flight
        self._timer: asyncio.TimerHandle | None = None
        self._all_answered: asyncio.Future[None] | None = None  # of a caller that waits for it

    def add(self, batch: Batch) -> None:
        """Add *batch*. Raises InFlightLimitError (facts: limit_bytes, retry_after_ms) if the bytes exceed the limit."""
        if self.bytes and self.bytes + batch.size > self._limit_bytes:
            raise InFlightLimitError(
                f"{self.bytes:,} bytes are in flight, and {batch.size:,} more exceed the limit of "
                f"{self._limit_bytes:,}: try again later",
                limit_bytes=self._limit_bytes,
                retry_after_ms=self._retry_after_ms,
            )
        self.bytes += batch.size
        self._batches.append(batch)
        if self._timeout_s is not None:
            batch.deadline_s = self._loop.time() + self._timeout_s
            if self._timer is None:
                self._timer = self._loop.call_at(batch.deadline_s, self._answer_late)

    def complete(self, batches: list[Batch]) -> None:
        """Answer *batches*, which are done, unless they were answered late already."""
        for batch in batches:
            self.bytes -= batch.size
            _answer(batch)
        self._forget_answered()

    def fail(self, error: StoreError) -> None:
        """Answer all waiting batches with *error*, because the log has failed."""
        for batch in self._batches:
            batch.appended, batch.error = None, error
            _answer(batch)
        self._forget_answered()
        self.close()

    async def wait_until_all_are_answered(self) -> None:
        """Wait until each batch is answered, at the latest after its timeout."""
        if self._batches and self._timeout_s is not None:
            self._all_answered = self._loop.create_future()
            await self._all_answered

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answer_late(self) -> None:
        """Answer overdue batches that are written. A batch that is not written has no offsets, so it keeps waiting."""
        now = self._loop.time()
        for batch in self._batches:
            if batch.deadline_s > now:
                break
            if not batch.answered and batch.written_ns:
                batch.status = self._late
                _answer(batch)
        self._forget_answered()
        waiting = next((batch for batch in self._batches if not batch.answered), None)
        self._timer = None
        if waiting is not None:
            self._timer = self._loop.call_at(max(waiting.deadline_s, now + _LOOK_AGAIN_S), self._answer_late)

    def _forget_answered(self) -> None:
        while self._batches and self._batches[0].answered:
            self._batches.popleft()
        if self._all_answered is not None and not self._batches and not self._all_answered.done():
            self._all_answered.set_result(None)


def _answer(batch: Batch) -> None:
    if not batch.answered:
        batch.answered = True
        batch.answer(batch)
