"""Sender: sends a batch to a writer, and to another one if the first has certainly not stored it (format.md §15)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.delivery import SendTracker
from tidemark.client.producer.queue_choice import QueueChoice
from tidemark.client.producer.topic_routes import Route
from tidemark.client.producer.writer_pool import Writers
from tidemark.client.send_result import SendResult
from tidemark.client.wire.answer_reader import AnswerReader
from tidemark.client.wire.driven_future import Callback, LockedFuture
from tidemark.client.wire.lone_send import LoneSendStream
from tidemark.client.wire.loop_reader import LoopFuture
from tidemark.client.wire.pending_batches import Pending, Repeat
from tidemark.client.wire.plain_request import AppendRequest, PlainRequest
from tidemark.client.wire.writer_latency import ISOLATION_S
from tidemark.errors import (
    DeadlineExceededError,
    DiskFailedError,
    DiskFullError,
    InFlightLimitError,
    QueueIllegalError,
    StoreClosedError,
    StoreError,
    StoreLockedError,
    TopicForbiddenError,
    TopicNotFoundError,
    WriterUnreachableError,
)

OVERHEAD = 256  # estimate of a request's bytes without its batch
_OTHER_ROUTE = (QueueIllegalError, TopicForbiddenError, TopicNotFoundError)
_MAY_MOVE = (
    *_OTHER_ROUTE,
    DiskFailedError,
    DiskFullError,
    InFlightLimitError,
    StoreClosedError,
    StoreLockedError,
    WriterUnreachableError,
)


@dataclass(slots=True)  # not frozen: that makes each send 2 µs slower
class Outgoing:
    """A batch to send; it is not changed. request: everything except its messages.

    count     the messages in flight that it counts as; queue: None for any of *route*; wait: for room in flight
    once      never repeat it
    messages  the number of messages in it, if that is not *count*
    began     time.monotonic() of the program's call, from which its timeout counts. None: from now
    is_final  True if its failure is the failure of its messages; False if they are sent again one by one. The future of
              such a batch is a LockedFuture, for callbacks only
    """

    request: AppendRequest
    packed: bytes
    count: int
    queue: MessageQueue | None = None
    route: Route | None = None  # None if a queue is given, or the route is not known yet
    wait: bool = True
    once: bool = False
    messages: int = 0
    is_final: bool = True
    began: float | None = None
    message_ids: Sequence[str] = ()  # the UNIQ_KEY of each message, for the result
    reader: AnswerReader = AnswerReader.STREAM  # of the answer


class Sender:
    """Sends each batch within *timeout_s* over all attempts, to at most *retries* further queues."""

    def __init__(
        self,
        writers: Writers,
        choice: QueueChoice,
        delivery: SendTracker,
        *,
        timeout_s: float,
        retries: int,
        observe: bool,
    ) -> None:
        self._writers = writers
        self.delivery = delivery
        self._choice = choice
        self._timeout_s = timeout_s
        self._retries = retries
        self._observe = observe

    def send(self, outgoing: Outgoing) -> Future[SendResult]:
        """Send the batch and return the future of its answer. Its failure counts in `delivery` if *is_final* is True.

        Raises as `AppendStream.submit`, or a StoreError if there is no route.
        """
        self.delivery.open()
        future = self._send(outgoing)
        if outgoing.is_final:
            self.delivery.watch(future, outgoing.messages or outgoing.count, oneway=outgoing.once)
        return future

    def _send(self, outgoing: Outgoing) -> Future[SendResult]:
        deadline = (time.monotonic() if outgoing.began is None else outgoing.began) + self._timeout_s
        if outgoing.queue is None and self._retries and not outgoing.once and len(self._writers.by_address) > 1:
            return _Moving(self, replace(outgoing, reader=AnswerReader.STREAM), deadline, self._retries).start()
        queue = outgoing.queue or self.choose(self.route(outgoing), outgoing)
        return self.submit(outgoing, queue, deadline, Repeat.NEVER if outgoing.once else Repeat.HERE).future

    def route(self, outgoing: Outgoing) -> Route:
        """Return the route for the batch; may wait for a first answer."""
        return outgoing.route or self._writers.routes.route(outgoing.request.topic)

    def choose(self, route: Route, outgoing: Outgoing, *, avoid: str | None = None) -> MessageQueue:
        """Return a queue for a batch without a queue."""
        return self._choice.next(route, outgoing.request.topic, avoid=avoid)

    def submit(self, outgoing: Outgoing, queue: MessageQueue, deadline: float, repeat: Repeat) -> Pending:
        """Submit the batch to the stream of *queue*'s writer."""
        request = outgoing.request
        request.queue_id = queue.queue_id
        size = len(outgoing.packed) + OVERHEAD
        link = self._writers.link(queue.writer)
        link.require_transportable(size)
        while True:
            stream = link.chosen_stream()
            pending = Pending(
                request,
                outgoing.packed,
                size,
                deadline,
                count=outgoing.count,
                repeat=repeat,
                messages=outgoing.messages or outgoing.count,
                message_ids=outgoing.message_ids,
                future=stream.future(outgoing.reader) if outgoing.is_final else LockedFuture(),
            )
            pending.future.add_done_callback(partial(self._learn, queue, pending.given))
            try:
                stream.submit(pending, wait=outgoing.wait)
            except StoreClosedError:
                if stream is link.stream:
                    raise
            else:  # another thread has not chosen another stream meanwhile
                return pending

    def send_alone(
        self,
        stream: LoneSendStream,
        request: PlainRequest,
        packed: bytes,
        queue: MessageQueue,
        *,
        began: float,
        own_id: str | None = None,
    ) -> SendResult:
        """Send one message to *queue* over *stream*, that of its writer, and return its result.

        began   time.monotonic() of the program's call
        own_id  the UNIQ_KEY that the message brings
        raises as `submit`, or the error of its answer, which `flush` then does not report
        """
        future = stream.driven_future(self._on_failure(queue, began))
        try:
            return stream.send_alone(self._pending(request, packed, future, began, own_id))
        except StoreError:
            if future.done():
                self.delivery.seen(1)
            raise

    def begin_on_loop(
        self, stream: LoneSendStream, request: PlainRequest, packed: bytes, queue: MessageQueue, *, began: float
    ) -> LoopFuture:
        """Send as `send_alone` does, but return the future of the result. Call it on an event loop, which reads it."""
        future = LoopFuture(asyncio.get_running_loop(), self._on_failure(queue, began))
        stream.submit(self._pending(request, packed, future, began))
        return future

    def _on_failure(self, queue: MessageQueue, began: float) -> tuple[Callback, Callback]:
        self.delivery.open()
        return partial(self._learn, queue, began), self.delivery.count_one

    def _pending(
        self, request: PlainRequest, packed: bytes, future: LockedFuture, began: float, own_id: str | None = None
    ) -> Pending:
        ids, size = (own_id or request.request_id,), len(packed) + OVERHEAD
        return Pending(request, packed, size, began + self._timeout_s, message_ids=ids, given=began, future=future)

    def _learn(self, queue: MessageQueue, given: float, done: Future[SendResult]) -> None:
        """Note what the answer to a batch, *given* at this time.monotonic(), shows about its queue and writer."""
        error = done.exception()
        if isinstance(error, _OTHER_ROUTE):
            self._writers.routes.forget(queue.topic)
        if self._observe:
            now = time.monotonic()
            failed = isinstance(error, DeadlineExceededError)
            self._writers.link(queue.writer).latency.observe(ISOLATION_S if failed else now - given, now)


class _Moving:
    """A batch that may be sent to several writers in turn; its future is completed once."""

    def __init__(self, sender: Sender, outgoing: Outgoing, deadline: float, moves: int) -> None:
        self._sender = sender
        self._outgoing = outgoing
        self._deadline = deadline
        self._moves = moves
        self._route = sender.route(outgoing)
        self._future: Future[SendResult] = Future()
        self._future.set_running_or_notify_cancel()

    def start(self) -> Future[SendResult]:
        self._try(self._sender.choose(self._route, self._outgoing))
        return self._future

    def _try(self, queue: MessageQueue) -> None:
        """Send it to *queue*. The last attempt repeats on this writer until the deadline."""
        repeat = Repeat.ELSEWHERE if self._moves else Repeat.HERE
        pending = self._sender.submit(self._outgoing, queue, self._deadline, repeat)
        pending.future.add_done_callback(lambda done: self._done(queue, pending, done))

    def _done(self, queue: MessageQueue, pending: Pending, done: Future[SendResult]) -> None:
        error = done.exception()
        if error is None:
            self._future.set_result(done.result())
        elif not (pending.may_move and isinstance(error, _MAY_MOVE) and time.monotonic() < self._deadline):
            self._future.set_exception(error)
        else:
            self._move(queue, error)

    def _move(self, queue: MessageQueue, error: BaseException) -> None:
        """Send it to another writer. Runs in the first stream's thread, so it must not wait for room or a route."""
        self._moves -= 1
        self._outgoing = replace(self._outgoing, wait=False)
        try:
            self._try(self._sender.choose(self._route, self._outgoing, avoid=queue.writer))
        except StoreError as failure:
            failure.__cause__ = error
            self._future.set_exception(failure)
