"""Rules for the messages of one batch (docs/client.md); the reasons are those that the writer answers."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.client.message import Message
from tidemark.errors import ArgumentIllegalError, BatchDelayError, BatchEmptyError, BatchRetryTopicError
from tidemark.format.properties import DELAY, WAIT, timer_name
from tidemark.format.topic_name import RETRY_PREFIX

_WAITS = "true"  # RocketMQ's default of WAIT


def is_delayed(message: Message) -> bool:
    """Return True if *message* asks for a delayed delivery."""
    properties = message.properties
    return bool(message.delay_level or (properties and (properties.get(DELAY, "0") != "0" or timer_name(properties))))


def require_batch(messages: Sequence[Message]) -> None:
    """Check that the messages have one topic and one WAIT, and that none is delayed or for a retry topic.

    raises BatchEmptyError, BatchDelayError, BatchRetryTopicError, ArgumentIllegalError
    """
    if not messages:
        raise BatchEmptyError("the batch has no messages; it needs at least one")
    first = messages[0]
    for at, message in enumerate(messages):
        if is_delayed(message):
            raise BatchDelayError("a message of the batch asks for a delayed delivery: send it alone", at=at)
        if message.topic.startswith(RETRY_PREFIX):
            raise BatchRetryTopicError("a batch cannot go to a retry topic: send single messages", topic=message.topic)
        if message.topic != first.topic:
            raise ArgumentIllegalError("all messages of a batch must have the same topic", argument="topic", at=at)
        if message.properties.get(WAIT, _WAITS) != first.properties.get(WAIT, _WAITS):
            raise ArgumentIllegalError("all messages of a batch must have the same WAIT", argument=WAIT, at=at)
