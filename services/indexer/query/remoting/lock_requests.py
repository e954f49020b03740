"""LockRequests: locks of queues for orderly consumers (41, 42)."""

from __future__ import annotations

from tidemark.access.right import Action, on_group
from tidemark.errors import ArgumentIllegalError
from tidemark.remoting.codes import RequestCode
from tidemark.remoting.groups import QueueLock, locked_queues_body, parse_queue_lock
from tidemark.remoting_server.exchange import Exchange, Handler

from .queue_locks import QueueLocks


class LockRequests:
    """Answers requests for locks. max_queues: most queues of one request."""

    def __init__(self, locks: QueueLocks, *, max_queues: int) -> None:
        self._locks = locks
        self._max_queues = max_queues

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {RequestCode.LOCK_BATCH_MQ: self._lock, RequestCode.UNLOCK_BATCH_MQ: self._unlock}

    def _lock(self, exchange: Exchange) -> None:
        asked = self._asked(exchange)
        wanted = {(queue.topic, queue.queue_id): queue for queue in asked.queues}
        granted = self._locks.lock(asked.consumer_group, asked.client_id, wanted)
        exchange.answer(body=locked_queues_body(queue for key, queue in wanted.items() if key in granted))

    def _unlock(self, exchange: Exchange) -> None:
        asked = self._asked(exchange)
        queues = [(queue.topic, queue.queue_id) for queue in asked.queues]
        self._locks.unlock(asked.consumer_group, asked.client_id, queues)
        exchange.answer()

    def _asked(self, exchange: Exchange) -> QueueLock:
        asked = parse_queue_lock(exchange.frame.body)
        exchange.caller.require(on_group(asked.consumer_group, Action.SUB))
        if len(asked.queues) > self._max_queues:
            raise ArgumentIllegalError(
                f"mqSet: {len(asked.queues)} queues in one request, at most {self._max_queues}",
                argument="mqSet",
                limit=self._max_queues,
            )
        return asked
