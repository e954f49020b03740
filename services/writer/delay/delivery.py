"""DelayedDelivery: appends due messages to the log in order, like any batch; they count once they are acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog

from tidemark.errors import RejectedError, StoreError
from tidemark.format.primitives import MAX_TOPIC_SIZE_BYTES
from tidemark.format.record import BLANK_SIZE
from tidemark.format.topic_name import FORBIDDEN_TOPICS

from ..batch.batch import Batch
from ..batch.delayed_message import delivered, destination_of
from ..batch.record_encoder import Encoder
from ..log.commit_log import CommitLog
from ..topics.topic_table import TopicTable, WritableTopic
from .schedule_reader import DueMessage

log = structlog.get_logger()

_MAX_DIGITS = (1 << 63) - 1
_TOLD_MESSAGES = 20


class DeliveryOutcome(NamedTuple):
    """The result of a delivery of messages, in their order."""

    done: int  # number of messages, from the first, that are stored at their destination, or skipped and logged
    error: StoreError | None = None  # why the next message could not be stored


class _SteppedOver(NamedTuple):
    """A message that cannot be delivered, and the reason."""

    message: DueMessage
    reason: str
    topic: str | None


class DelayedDelivery:
    """Delivers messages on the event loop and counts them. repeated: messages that the log already contained."""

    def __init__(self, commit_log: CommitLog, topics: TopicTable, store_host: bytes) -> None:
        self._commit_log = commit_log
        self._topics = topics
        self._encoder = Encoder(store_host)  # for sizes only
        self.end_offset = 0  # end of the last append
        self.counts = {"delivered": 0, "repeated": 0, "stepped_over": 0}

    def is_flushed(self, end_offset: int) -> bool:
        """Return True if deliveries below *end_offset* are flushed; in flush mode `async` that is after the answer."""
        return self._commit_log.flushed_offset >= end_offset

    async def deliver(self, messages: Sequence[DueMessage]) -> DeliveryOutcome:
        """Append *messages* and wait until all are answered."""
        begun: list[asyncio.Future[Batch] | _SteppedOver] = []
        refusal: StoreError | None = None
        for message in messages:
            try:
                begun.append(self._begin(message))
            except StoreError as error:
                refusal = error
                break
        await asyncio.gather(*(one for one in begun if isinstance(one, asyncio.Future)))
        stepped_over: list[_SteppedOver] = []
        outcome = DeliveryOutcome(len(begun), refusal)
        for number, one in enumerate(begun):
            if isinstance(one, _SteppedOver):
                stepped_over.append(one)
                continue
            batch = one.result()
            if isinstance(batch.error, RejectedError):
                stepped_over.append(_SteppedOver(messages[number], batch.error.message, batch.key.topic))
            elif batch.appended is None or batch.is_late:
                outcome = DeliveryOutcome(number, batch.error)
                break
            else:
                self.end_offset = max(self.end_offset, batch.appended.end_offset)
                self.counts["repeated" if batch.appended.duplicate else "delivered"] += 1
        self._log_skipped(stepped_over)
        return outcome

    def _begin(self, message: DueMessage) -> asyncio.Future[Batch] | _SteppedOver:
        """Submit a message to the log. Raises UnavailableError if the log does not accept it."""
        answered: asyncio.Future[Batch] = asyncio.get_running_loop().create_future()
        batch = self._batch_of(message, answered.set_result)
        if isinstance(batch, _SteppedOver):
            return batch
        self._commit_log.submit(batch)
        return answered

    def _batch_of(self, message: DueMessage, answer: Callable[[Batch], None]) -> Batch | _SteppedOver:
        record = message.record
        if record is None:
            return _SteppedOver(message, message.fault, None)
        destination = destination_of(record)
        if destination is None or destination.topic in FORBIDDEN_TOPICS:
            return _SteppedOver(message, "NO_DESTINATION", None)
        topic = self._topics.get(destination.topic)
        if topic is None:
            return _SteppedOver(message, "TOPIC_NOT_FOUND", destination.topic)
        if message.physical_offset < self._topics.dead_end(destination.topic):  # the topic was deleted meanwhile
            return _SteppedOver(message, "TOPIC_DELETED", destination.topic)
        batch = delivered(record, destination, topic.field, answer)
        if not self._fits(batch, topic):
            return _SteppedOver(message, "MESSAGE_SIZE_EXCEEDED", destination.topic)
        return batch

    def _fits(self, batch: Batch, topic: WritableTopic) -> bool:
        """Return True if the message is within the writer's limits; a broker may have stored it under other limits."""
        size = self._encoder.size(batch, _MAX_DIGITS)
        return len(topic.config.name) <= MAX_TOPIC_SIZE_BYTES and size + BLANK_SIZE <= self._commit_log.segment_size

    def _log_skipped(self, stepped_over: list[_SteppedOver]) -> None:
        if not stepped_over:
            return
        self.counts["stepped_over"] += len(stepped_over)
        told = [
            {"physical_offset": one.message.physical_offset, "topic": one.topic, "reason": one.reason}
            for one in stepped_over[:_TOLD_MESSAGES]
        ]
        log.warning("delayed_messages_not_delivered", messages=len(stepped_over), told=told)
