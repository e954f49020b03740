"""RetryLater: stores a failed message for a later retry, or as a dead letter of its group.

As in RocketMQ: to `%RETRY%group` with a delay that grows with each attempt, then to `%DLQ%group`.
"""

from __future__ import annotations

import hashlib

from tidemark.client.consumer.retry_properties import (
    DLQ_REASON,
    REQUEST_PREFIX,
    STORES_OWN,
    is_retry,
    origin_message_id,
    origin_topic,
    way_to,
    without,
)
from tidemark.client.message import Message
from tidemark.client.producer.producer import Producer
from tidemark.client.received_message import ReceivedMessage
from tidemark.format.properties import (
    DLQ_ORIGIN_MESSAGE_ID,
    DLQ_ORIGIN_TOPIC,
    MAX_RECONSUME_TIMES,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
)
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, retry_topic, retry_topic_of

_DIGEST_LENGTH = 40
WRITERS_MAX_ATTEMPTS = 16  # the writer's default, unless the message has its own limit


class RetryLater:
    """Sends failed messages of one group back to the store. Thread-safe.

    max_attempts       number of attempts, after which the message becomes a dead letter
    first_delay_level  delay level after the first attempt; it grows by one with each further attempt

    Each method takes a message as it was received, returns once the copy is acknowledged, and raises a StoreError if
    it could not be stored. A repeated call (of a consumer that died before its commit) stores no second copy: the
    request id is derived from the message's position, the group and the attempt.
    """

    def __init__(self, producer: Producer, group: str, *, max_attempts: int, first_delay_level: int) -> None:
        self._producer = producer
        self._group = group
        self._max_attempts = max_attempts
        self._first_delay_level = first_delay_level

    def send(self, message: ReceivedMessage) -> None:
        """Store *message* for its next attempt; after the last attempt, store it as a dead letter."""
        attempts = message.reconsume_times + 1
        if attempts >= self._max_attempts:
            self._store(message, self._dead_letter_topic, attempts, further=_dead_letter_origin(message))
        else:
            delay_level = self._first_delay_level + message.reconsume_times
            limit = {MAX_RECONSUME_TIMES: str(self._max_attempts)} if self._max_attempts > WRITERS_MAX_ATTEMPTS else {}
            self._store(message, retry_topic(self._group), attempts, delay_level=delay_level, further=limit)

    def bury(self, message: ReceivedMessage, reason: str) -> None:
        """Store *message* as a dead letter at once, with *reason*."""
        further = {**_dead_letter_origin(message), DLQ_REASON: reason}
        self._store(message, self._dead_letter_topic, message.reconsume_times + 1, further=further, way="refused")

    def forward(self, message: ReceivedMessage) -> None:
        """Store the retry *message*, unchanged and without a delay, for the members that read its original topic."""
        topic = retry_topic_of(self._group, origin_topic(message))
        self._store(message, topic, message.reconsume_times, way="forward")

    @property
    def _dead_letter_topic(self) -> str:
        return f"{DEAD_LETTER_PREFIX}{self._group}"

    def _store(
        self,
        message: ReceivedMessage,
        topic: str,
        attempts: int,
        *,
        delay_level: int = 0,
        further: dict[str, str] | None = None,
        way: str = "",
    ) -> None:
        # on another topic, a program has copied these properties from a message that it received elsewhere
        properties = without(message.properties, STORES_OWN if is_retry(message) else way_to(message.topic))
        properties.setdefault(RETRY_TOPIC, message.topic)
        properties.setdefault(ORIGIN_MESSAGE_ID, origin_message_id(message) or _place_of(message))
        self._producer.send(
            Message(
                topic,
                message.body,
                tag=message.tag,
                keys=message.keys,
                properties={**properties, **(further or {})},
                delay_level=delay_level,
                flag=message.flag,
            ),
            request_id=self._request_id(message, attempts, way),
            reconsume_times=attempts,
        )

    def _request_id(self, message: ReceivedMessage, attempts: int, way: str) -> str:
        """Return an id that is equal for every store of this attempt at *message*, and unique otherwise.

        It identifies the message by its position in the store, because programs choose message ids. Physical offset,
        time and host distinguish two stores with topics of the same name.
        """
        facts = (
            *message.queue,
            message.queue_offset,
            message.physical_offset,
            message.store_timestamp_ms,
            message.store_host,
            self._group,
            attempts,
            way,
        )
        digest = hashlib.sha256("\n".join(map(str, facts)).encode()).hexdigest()
        return f"{REQUEST_PREFIX}{digest[:_DIGEST_LENGTH]}"


def _dead_letter_origin(message: ReceivedMessage) -> dict[str, str]:
    origin = message.properties.get(ORIGIN_MESSAGE_ID) if is_retry(message) else None
    return {
        DLQ_ORIGIN_TOPIC: origin_topic(message),
        DLQ_ORIGIN_MESSAGE_ID: origin or origin_message_id(message) or _place_of(message),
    }


def _place_of(message: ReceivedMessage) -> str:
    return f"{message.topic}-{message.queue_id}-{message.queue_offset}"
