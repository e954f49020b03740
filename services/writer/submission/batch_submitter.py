"""BatchSubmitter: checks the received appends of every interface and submits them to the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from tidemark.access.guard import Caller
from tidemark.access.right import Action, on_topic
from tidemark.errors import StoreError
from tidemark.format.tags import SCHEDULE_TOPIC
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

from ..admission.admission import Admission
from ..admission.append_request import Received
from ..admission.dead_letters import redirect
from ..admission.request_payload import wire_of
from ..admission.request_rules import check_request
from ..batch.batch import Batch
from ..config import WriterSettings
from ..log.append_counts import AppendCounts
from ..log.commit_log import CommitLog
from ..topics.topic_table import TopicTable, WritableTopic
from .append_times import AppendTimes

if TYPE_CHECKING:
    from .append_spans import AppendSpan, AppendSpans, Metadata

Answer = Callable[[Batch], None]
_MANY_MESSAGES = 1_000


class Sender(NamedTuple):
    """The sender of batches. metadata: of a call with a single batch, for traces."""

    caller: Caller
    born_host: bytes
    metadata: Metadata | None = None


class _Append(NamedTuple):
    """A received append that has passed the checks of its request."""

    received: Received
    topic: WritableTopic  # as it was at the check
    is_redirected: bool
    born_host: bytes
    answer: Answer


class BatchSubmitter:
    """The way of all appends to the log. Lives on the event loop.

    on_delayed: called with each stored batch whose message is delayed. spans: None if traces are off.
    """

    def __init__(
        self,
        settings: WriterSettings,
        commit_log: CommitLog,
        topics: TopicTable,
        admission: Admission,
        counts: AppendCounts,
        times: AppendTimes,
        *,
        on_delayed: Callable[[Batch], None],
        spans: AppendSpans | None,
    ) -> None:
        self.times = times
        self.counts = counts
        self.has_spans = spans is not None
        self._settings = settings
        self._commit_log = commit_log
        self._topics = topics
        self._admission = admission
        self._on_delayed = on_delayed
        self._spans = spans

    async def submit(self, sender: Sender, received: Received, answer: Answer) -> None:
        """Submit an append; *answer* is called when its batch is stored or has failed.

        Raises StoreError if the append is refused; *answer* is not called then.
        """
        rest = self.submit_now(sender, received, answer)
        if rest is not None:
            await rest

    def submit_now(self, sender: Sender, received: Received, answer: Answer) -> Coroutine[Any, Any, None] | None:
        """Submit an append as `submit` does, without a switch of tasks if its topic exists and its batch is packed.

        Return the rest of the work, which the caller must await, or None if there is none.
        """
        answer = self.times.measuring(answer)
        span = None if self._spans is None else self._spans.begin(received.request, sender.metadata)
        caller = sender.caller
        try:
            if not caller.is_open:
                caller.require(on_topic(received.request.topic, Action.PUB))
                caller.take_append(received.size)
            append = self._checked(received, sender.born_host, answer if span is None else span.ending(answer))
            payload = append.received.packed
            if payload is not None and not self._try_place(append, payload):
                return None
        except StoreError as error:
            self._refuse(error, span)
            raise
        return self._finish(append, span)

    def _checked(self, received: Received, born_host: bytes, answer: Answer) -> _Append:
        sent = received
        if sent.request.reconsume_times:
            received = redirect(
                sent,
                max_body_size=self._settings.max_message_size_bytes,
                max_reconsume_times=self._settings.max_reconsume_times,
            )
        is_redirected = received is not sent
        request = received.request
        topic = self._topics.expect(request.topic, create=is_redirected)
        check_request(received, topic.config)
        return _Append(received, topic, is_redirected, born_host, answer)

    async def _finish(self, append: _Append, span: AppendSpan | None) -> None:
        request, payload = append.received.request, append.received.packed
        try:
            if payload is None:
                payload = await self._spelled_out(request)
            while missing := self._try_place(append, payload):
                await self._create(missing)
        except StoreError as error:
            self._refuse(error, span)
            raise

    def _try_place(self, append: _Append, payload: bytes | memoryview) -> set[str]:
        """Submit as `place` does if all topics exist; otherwise return the topics to create."""
        request, topic = append.received.request, append.topic
        if self._topics.get(request.topic) is not topic:  # it did not exist at the check, or has changed since
            topic = self._topics.expect(request.topic, create=append.is_redirected)
            check_request(append.received, topic.config)
        batch = self._admission.admit(request, topic, payload, born_host=append.born_host, answer=append.answer)
        batch.is_redirected = append.is_redirected
        return self._submit(batch, topic)

    async def place(self, name: str, make: Callable[[WritableTopic], Batch], *, create: bool) -> None:
        """Submit the batch that *make* returns for topic *name*, once that topic exists.

        create: create a missing topic even if auto_create_topics is off.
        """
        while missing := self.try_place(name, make, create=create):
            await self._create(missing)

    def try_place(self, name: str, make: Callable[[WritableTopic], Batch], *, create: bool) -> set[str]:
        """Submit as `place` does if all topics exist; otherwise return the topics to create."""
        topic = self._topics.expect(name, create=create)
        return self._submit(make(topic), topic)

    def _submit(self, batch: Batch, topic: WritableTopic) -> set[str]:
        """Submit *batch*, which was made for *topic*, if all topics exist; otherwise return the topics to create."""
        name = topic.config.name
        missing = set() if self._topics.get(name) is topic else {name}
        if batch.delay is not None:
            if self._topics.get(SCHEDULE_TOPIC) is None:
                missing.add(SCHEDULE_TOPIC)
            batch.answer = self._scheduling(batch.answer)
        if not missing:
            self._commit_log.submit(batch)
        return missing

    async def _create(self, missing: set[str]) -> None:
        for name in missing:
            if name == SCHEDULE_TOPIC:
                await self._topics.ensure_schedule()
            else:
                await self._topics.ensure(name)  # another caller may have created it in another shape

    def _scheduling(self, answer: Answer) -> Answer:
        """Return a function that passes a delayed message to the scheduler and then calls *answer*."""

        def schedule_and_answer(batch: Batch) -> None:
            if batch.appended is not None:
                self._on_delayed(batch)
            answer(batch)

        return schedule_and_answer

    async def _spelled_out(self, request: AppendBatchRequest) -> bytes:
        """Encode the request's messages as a wire batch; many in a thread, so that the event loop is not blocked."""
        limit = self._settings.max_message_size_bytes
        if len(request.messages.messages) > _MANY_MESSAGES:
            return await asyncio.to_thread(wire_of, request, max_body_size=limit)
        return wire_of(request, max_body_size=limit)

    def _refuse(self, error: StoreError, span: AppendSpan | None) -> None:
        self.counts.refuse(error)
        if span is not None:
            span.refuse(error)
