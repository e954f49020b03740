"""The queues of one request that are read together, as long as their order and the answer's limits allow it."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.errors import StoreError
from tidemark.read.short_queues import ShortQueue, ShortQueues, StoredRecords
from tidemark.read.store_moment import StoreMoment

from ..state.service_state import ServiceState
from .pulled import AnswerLimits, Pulled
from .queue_pull import QueuePull

_AT_ONCE = 32  # queues; those that do not fit into the answer have been prepared in vain


class ReadTogether:
    """Reads *pulls* at the moment *now*, if the answer has checked records as they are stored."""

    def __init__(self, state: ServiceState, pulls: Sequence[QueuePull], now: StoreMoment, limits: AnswerLimits) -> None:
        self._pulls = pulls
        self._now = now
        self._log = state.store.log
        self._is_possible = limits.whole_records and limits.tags is None and not limits.unchecked and len(pulls) > 1
        self._size = limits.max_bytes
        self._reader: ShortQueues | None = None
        self._found: dict[int, StoredRecords] = {}
        self._tried = 0  # number of pulls that were read or cannot be

    def pulled(self, at: int, limits: AnswerLimits) -> Pulled | None:
        """Return the outcome of pull number *at* within *limits*; None if it must be read by itself.

        The numbers ascend. *limits*: what the pulls before have left.
        """
        if self._is_possible and at >= self._tried:
            self._read_from(at, limits)
        found = self._found.pop(at, None)
        return None if found is None else self._pulls[at].pulled_together(found)

    def _read_from(self, first: int, limits: AnswerLimits) -> None:
        queues: list[ShortQueue] = []
        ends_before_other = False
        for pull in self._pulls[first : first + _AT_ONCE]:
            pull.limit(limits)
            queue = _short_queue(pull, self._now)
            if queue is None:
                ends_before_other = True
                break
            queues.append(queue)
        found: list[StoredRecords] = []
        if queues:
            self._reader = self._reader or ShortQueues(self._log, self._size)
            found = self._reader.read(queues, most_messages=limits.max_messages, most_bytes=limits.max_bytes)
        self._found = dict(enumerate(found, first))
        self._tried = first + len(found) + (ends_before_other or len(found) < len(queues))


def _short_queue(pull: QueuePull, now: StoreMoment) -> ShortQueue | None:
    try:
        return pull.short_queue(now)
    except (StoreError, OSError):  # the pull by itself reports it
        return None
