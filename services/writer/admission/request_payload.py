"""Encodes the `messages` of a request as a wire batch."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.errors import (
    BatchEmptyError,
    MessageSizeExceededError,
    PropertiesIllegalError,
    PropertiesSizeExceededError,
)
from tidemark.format.elements import Element, encode_elements
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES
from tidemark.format.properties import KEY_SEPARATOR, KEYS, TAGS, encode_properties, require_writable
from tidemark.format.text_rules import require_findable, require_key
from tidemark.format.topic_name import DEAD_LETTER_PREFIX, RETRY_PREFIX
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, Message


def wire_of(request: AppendBatchRequest, *, max_body_size: int) -> bytes:
    """Encode the `messages` of *request* as a wire batch.

    Raises BatchEmptyError, MessageSizeExceededError, PropertiesIllegalError or PropertiesSizeExceededError (fact: at,
    the index of the message).
    """
    if not request.HasField("messages"):
        raise BatchEmptyError("the request has no messages: set `packed` or `messages`")
    comes_back = request.topic.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX))
    return encode_elements(_elements(request.messages.messages, max_body_size, comes_back=comes_back))


def _elements(messages: Iterable[Message], max_body_size: int, *, comes_back: bool) -> Iterable[Element]:
    for at, message in enumerate(messages):
        if len(message.body) > max_body_size:
            raise MessageSizeExceededError(
                f"the body of message {at} is {len(message.body):,} bytes, and the limit is {max_body_size:,}",
                at=at,
                size=len(message.body),
                limit=max_body_size,
            )
        properties = encode_properties(_properties(message, at, comes_back=comes_back))
        if len(properties) > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError(
                f"the properties of message {at} are {len(properties):,} bytes, and the limit is "
                f"{MAX_PROPERTIES_SIZE_BYTES:,}",
                at=at,
                size=len(properties),
                limit=MAX_PROPERTIES_SIZE_BYTES,
            )
        yield Element(message.body, properties, message.flag)


def _properties(message: Message, at: int, *, comes_back: bool) -> dict[str, str]:
    """Return the properties of message *at*. comes_back: it is a retry, so its tag and keys are kept unchecked."""
    properties: dict[str, str] = {}
    if message.tag:
        properties[TAGS] = message.tag
    if message.keys:
        for key in message.keys:
            if not key or KEY_SEPARATOR in key or not comes_back:
                require_key(key, at=at)
        properties[KEYS] = KEY_SEPARATOR.join(message.keys)
    for name, value in message.properties.items():
        if name in properties:
            raise PropertiesIllegalError(
                f"message {at} has {name} both as a field and as a property: give it once", at=at, name=name
            )
        properties[name] = value
    require_writable(properties, at=at)
    if not comes_back:
        require_findable(properties, at=at)
    return properties
