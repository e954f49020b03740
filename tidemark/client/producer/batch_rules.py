"""Rules for the messages of one batch (docs/client.md), with the reasons that the writer would answer."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.client.message import Message
from tidemark.errors import ArgumentIllegalError, BatchDelayError, BatchEmptyError, BatchRetryTopicError
from tidemark.format.properties import DELAY, WAIT, timer_name
from tidemark.format.topic_name import RETRY_PREFIX

_WAITS = "true"  # RocketMQ's default of WAIT


def is_delayed(message: Message) -> bool:
    """Whether it asks for a later delivery."""
    properties = message.properties
    return bool(message.delay_level or (properties and (properties.get(DELAY, "0") != "0" or timer_name(properties))))


def require_batch(messages: Sequence[Message]) -> None:
    """What the messages of one batch have in common: a topic, WAIT; none is delayed or for a retry topic.

    raises BatchEmptyError, BatchDelayError, BatchRetryTopicError, ArgumentIllegalError
    """
    if not messages:
        raise BatchEmptyError("a batch needs messages")
    first = messages[0]
    for at, message in enumerate(messages):
        if is_delayed(message):
            raise BatchDelayError("a message of the batch asks for a delayed delivery", at=at)
        if message.topic.startswith(RETRY_PREFIX):
            raise BatchRetryTopicError("a batch to a retry topic", topic=message.topic)
        if message.topic != first.topic:
            raise ArgumentIllegalError("the messages of a batch have one topic", argument="topic", at=at)
        if message.properties.get(WAIT, _WAITS) != first.properties.get(WAIT, _WAITS):
            raise ArgumentIllegalError("the messages of a batch have one WAIT", argument=WAIT, at=at)
