"""Handling: runs a handler on a consumer's messages in several threads, and sends failed messages back."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tidemark.client.consumer.messages_in_progress import InWork
from tidemark.client.consumer.retry_later import RetryLater
from tidemark.client.consumer.retry_properties import as_first_sent, is_retry, origin_topic
from tidemark.client.consumer.retry_writers import SendBack
from tidemark.client.received_message import ReceivedMessage, TopicQueue
from tidemark.client.tracing.spans import processing
from tidemark.errors import UnauthenticatedError, UnavailableError
from tidemark.status import status_of

Handler = Callable[[ReceivedMessage], object]
OnError = Callable[[ReceivedMessage, BaseException], object]
_PAUSE_S = 1.0  # before a failed step is tried again
_REVOKE_S = 10.0  # limit for handlers to finish messages of queues that move to another member

_STOPPED = InterruptedError("the handling stops")
_log = logging.getLogger(__name__)


class _Task(NamedTuple):
    received: ReceivedMessage
    message: ReceivedMessage  # the message as the handler gets it, with its original topic

    @property
    def queue(self) -> TopicQueue:
        """Return the queue that the message was received from."""
        return self.received.queue


class Handling:
    """Runs a handler over messages in *workers* threads.

    group     consumer group, for traces
    topics    topics of the handler: a retry of another topic is forwarded to the members that read it. None: all
    ordered   handle one message per queue at a time, in order; retry a failed message before the next one
    on_error  called with each failure, in the worker's thread
    stop      when set, no further message is begun
    """

    def __init__(
        self,
        handler: Handler,
        send_back: RetryLater | SendBack,
        *,
        group: str | None = None,
        topics: frozenset[str] | None = None,
        workers: int,
        ordered: bool,
        max_attempts: int,
        on_error: OnError | None,
        stop: threading.Event,
    ) -> None:
        self._handler = handler
        self._send_back = send_back
        self._group = group
        self._topics = topics
        self._ordered = ordered
        self._max_attempts = max_attempts
        self._on_error = on_error or _log_failure
        self._stop = stop
        self._in_work = InWork()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="tidemark-handler")
        self._lock = threading.Lock()
        # ordered: the messages that wait for the queue's current one; guarded by _lock
        self._chains: dict[TopicQueue, deque[_Task]] = {}
        self._most = 2 * workers

    def room(self, timeout_s: float) -> int:
        """Return how many more messages may begin; wait up to *timeout_s* for room for one."""
        self._in_work.wait_below(self._most, timeout_s)
        return max(0, self._most - self._in_work.count)

    def begin(self, messages: Iterable[ReceivedMessage]) -> None:
        """Hand *messages* to the workers."""
        for message in messages:
            task = _Task(message, as_first_sent(message))
            self._in_work.begin(task.queue, message.queue_offset)
            if not self._ordered:
                self._pool.submit(self._handle, task)
            elif self._is_first(task):
                self._pool.submit(self._handle_chain, task)

    def first_unfinished(self) -> dict[TopicQueue, int]:
        """Return the lowest offset that is still being handled, by queue; queues without one are left out."""
        return self._in_work.first_unfinished()

    def drain(self, queues: frozenset[TopicQueue]) -> None:
        """Wait for running handlers of *queues*, which move to another member."""
        self._in_work.drain(queues, _REVOKE_S)

    def forget(self, queues: frozenset[TopicQueue]) -> None:
        """Stop tracking *queues*, which this consumer no longer reads."""
        self._in_work.forget(queues)

    def close(self) -> None:
        """Wait for the running handlers; messages that have not begun are not handled."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    # ── in the workers ──────────────────────────────────────────────────────────────────────────────────────────────

    def _is_first(self, task: _Task) -> bool:
        """Return True if no message of the task's queue is being handled; otherwise queue the task."""
        with self._lock:
            if task.queue in self._chains:
                self._chains[task.queue].append(task)
                return False
            self._chains[task.queue] = deque()
            return True

    def _next_of(self, queue: TopicQueue) -> _Task | None:
        with self._lock:
            if self._chains[queue] and not self._stop.is_set():
                return self._chains[queue].popleft()
            del self._chains[queue]
            return None

    def _handle_chain(self, task: _Task) -> None:
        following: _Task | None = task
        while following is not None:
            self._handle_in_place(following)
            following = self._next_of(task.queue)

    def _handle(self, task: _Task) -> None:
        if self._is_foreign(task.received):
            is_done = self._stored(task, self._send_back.forward)
        else:
            is_done = self._attempt(task.message) is None or self._stored(task, self._send_back.send)
        if is_done:
            self._in_work.finish(task.queue, task.received.queue_offset)

    def _is_foreign(self, received: ReceivedMessage) -> bool:
        """Return True for a failed message of a topic that is not among the handler's topics.

        All retries of a group arrive through one topic, as in RocketMQ, so any of its members may receive them.
        """
        return (
            self._topics is not None
            and is_retry(received)
            and origin_topic(received)
            not in {
                *self._topics,
                received.topic,
            }
        )

    def _handle_in_place(self, task: _Task) -> None:
        for attempt in range(1, self._max_attempts + 1):
            if self._attempt(task.message) is None:
                break
            if attempt < self._max_attempts and self._stop.wait(_PAUSE_S):
                return
        else:
            last = task._replace(received=task.received.replace(reconsume_times=self._max_attempts - 1))
            if not self._stored(last, self._send_back.send):
                return
        self._in_work.finish(task.queue, task.received.queue_offset)

    def _attempt(self, message: ReceivedMessage) -> BaseException | None:
        try:
            with processing(message, self._group):
                self._handler(message)
        except BaseException as error:  # including SystemExit: otherwise the message would stay in progress forever
            self._report(message, error)
            return error
        return None

    def _report(self, message: ReceivedMessage, error: BaseException) -> None:
        try:
            self._on_error(message, error)
        except Exception:
            _log.exception("on_error raised an exception")

    def _stored(self, task: _Task, store: Callable[[ReceivedMessage], None]) -> bool:
        """Store the message again with *store*; return False if `stop` is set before that succeeds.

        If the store permanently refuses it, store it as a dead letter with the reason. If that is refused, too, skip
        the message: one message must not block the group.
        """
        refusal = self._refusal(task, store)
        if refusal is _STOPPED:
            return False
        if refusal is None:
            return True
        reason = status_of(refusal).reason
        second = self._refusal(task, lambda message: self._send_back.bury(message, reason))
        if second is _STOPPED:
            return False
        if second is not None:
            _log.error(
                "message skipped, its retry and its dead letter were refused: %s",
                _place(task.message),
                exc_info=second,
            )
        return True

    def _refusal(self, task: _Task, store: Callable[[ReceivedMessage], None]) -> BaseException | None:
        """Call *store* until the store is available; return its final exception, or None for success."""
        while True:
            try:
                store(task.received)
            except (UnavailableError, UnauthenticatedError) as error:  # a token may be replaced meanwhile
                self._report(task.message, error)
                if self._stop.wait(_PAUSE_S):
                    return _STOPPED
            except Exception as error:
                self._report(task.message, error)
                return error
            else:
                return None


def _log_failure(message: ReceivedMessage, error: BaseException) -> None:
    _log.warning("message not handled: %s", _place(message), exc_info=error)


def _place(message: ReceivedMessage) -> str:
    return f"{message.topic} queue {message.queue_id} offset {message.queue_offset}"
