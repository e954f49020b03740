"""Properties of retries and dead letters (RocketMQ's names), and functions that remove them."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.client.received_message import ReceivedMessage
from tidemark.format.properties import (
    DELAY,
    DLQ_ORIGIN_MESSAGE_ID,
    DLQ_ORIGIN_TOPIC,
    MAX_RECONSUME_TIMES,
    ORIGIN_MESSAGE_ID,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    RETRY_TOPIC,
)
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, RETRY_PREFIX

DLQ_REASON = "DLQ_REASON"  # Tidemark's own: why a message became a dead letter before its last attempt
STORES_OWN = frozenset({REAL_TOPIC, REAL_QUEUE_ID, DELAY})  # properties that the store adds for a delayed delivery
_DEAD_LETTERS = frozenset({DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID, DLQ_REASON})
OF_THE_WAY = frozenset({*STORES_OWN, RETRY_TOPIC, ORIGIN_MESSAGE_ID, MAX_RECONSUME_TIMES, *_DEAD_LETTERS})
REQUEST_PREFIX = "retry-"  # prefix of the request ids that `SendBack` generates


def without(properties: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    """Return *properties* without *names*."""
    return {name: value for name, value in properties.items() if name not in names}


def is_retry(message: ReceivedMessage) -> bool:
    """Return True if *message* was received from a retry topic."""
    return message.topic.startswith(RETRY_PREFIX)


def origin_topic(message: ReceivedMessage) -> str:
    """Return the topic that *message* was first sent to: its own topic unless it comes from a retry topic."""
    return (message.properties.get(RETRY_TOPIC) or message.topic) if is_retry(message) else message.topic


def origin_message_id(message: ReceivedMessage) -> str | None:
    """Return the id that *message* had when it was first received.

    The message id of a retry that this client stored is its request id; RocketMQ's brokers keep the original id.
    """
    if is_retry(message) and (message.message_id or "").startswith(REQUEST_PREFIX):
        return message.properties.get(ORIGIN_MESSAGE_ID) or message.message_id
    return message.message_id


def as_first_sent(message: ReceivedMessage) -> ReceivedMessage:
    """Return *message* as its first receiver saw it: with that topic and id, and without properties of retries.

    A handler that copies the properties into a new message then does not copy the retry history.
    """
    topic = origin_topic(message)
    if is_retry(message):
        properties = without(message.properties, way_to(topic))
        return message.replace(topic=topic, message_id=origin_message_id(message), properties=properties)
    carried = message.properties.keys() & (way_to(topic) - STORES_OWN)
    if not carried or topic.startswith(DEAD_LETTER_PREFIX):
        return message
    return message.replace(properties=without(message.properties, frozenset(carried)))


def way_to(topic: str) -> frozenset[str]:
    """Return the retry properties to remove from a message of *topic*. A dead letter keeps its origin."""
    return OF_THE_WAY - _DEAD_LETTERS if topic.startswith(DEAD_LETTER_PREFIX) else OF_THE_WAY
