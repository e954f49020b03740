"""What becomes of a message whose handler failed: it comes again later, and after too many attempts is laid aside.

As RocketMQ's consumers do: to `%RETRY%group` with a delay that grows with each attempt, then to `%DLQ%group`.
"""

from __future__ import annotations

from tidemark.client.message import Message
from tidemark.client.producer import Producer
from tidemark.client.received import ReceivedMessage
from tidemark.format.properties import DELAY, REAL_QUEUE_ID, REAL_TOPIC
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, RETRY_PREFIX

RETRY_TOPIC = "RETRY_TOPIC"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID"
STORES_OWN = frozenset({REAL_TOPIC, REAL_QUEUE_ID, DELAY})  # what a delayed delivery leaves in a message


class SendBack:
    """Sends failed messages of one group back to the store.

    max_attempts       of handling; after the last the message goes to the dead letters
    first_delay_level  after the first attempt; one level more after each further one
    """

    def __init__(self, producer: Producer, group: str, *, max_attempts: int, first_delay_level: int) -> None:
        self._producer = producer
        self._group = group
        self._max_attempts = max_attempts
        self._first_delay_level = first_delay_level

    def send(self, message: ReceivedMessage) -> None:
        """Store *message* again; acknowledged when it returns. A StoreError when it could not be.

        Done twice (by a consumer that died before it committed) it is stored once: the request id tells the attempt.
        """
        attempts = message.reconsume_times + 1
        origin = message.properties.get(ORIGIN_MESSAGE_ID) or message.message_id or f"@{message.physical_offset}"
        properties = {name: value for name, value in message.properties.items() if name not in STORES_OWN}
        properties.setdefault(ORIGIN_MESSAGE_ID, origin)
        if attempts >= self._max_attempts:
            topic, delay_level = f"{DEAD_LETTER_PREFIX}{self._group}", 0
            properties |= {DLQ_ORIGIN_TOPIC: message.topic, DLQ_ORIGIN_MESSAGE_ID: origin}
        else:
            topic, delay_level = f"{RETRY_PREFIX}{self._group}", self._first_delay_level + message.reconsume_times
        properties.setdefault(RETRY_TOPIC, message.topic)
        self._producer.send(
            Message(
                topic,
                message.body,
                tag=message.tag,
                keys=message.keys,
                properties=properties,
                delay_level=delay_level,
                flag=message.flag,
            ),
            request_id=f"{origin}-{self._group}-{attempts}"[:255],
            reconsume_times=attempts,
        )


def as_first_sent(message: ReceivedMessage) -> ReceivedMessage:
    """*message* under the topic that it was sent to first, when it is one that comes again."""
    topic = message.properties.get(RETRY_TOPIC)
    return message._replace(topic=topic) if topic and message.topic.startswith(RETRY_PREFIX) else message
