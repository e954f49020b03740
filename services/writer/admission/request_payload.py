"""Messages that a request spells out → wire batch bytes."""

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
    """The wire batch of what *request* spells out.

    raises BatchEmptyError, MessageSizeExceededError, PropertiesIllegalError, PropertiesSizeExceededError (fact: at, the
    number of the message)
    """
    if not request.HasField("messages"):
        raise BatchEmptyError("the request carries no messages")
    comes_back = request.topic.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX))
    return encode_elements(_elements(request.messages.messages, max_body_size, comes_back=comes_back))


def _elements(messages: Iterable[Message], max_body_size: int, *, comes_back: bool) -> Iterable[Element]:
    for at, message in enumerate(messages):
        if len(message.body) > max_body_size:
            raise MessageSizeExceededError("a body is too large", at=at, size=len(message.body), limit=max_body_size)
        properties = encode_properties(_properties(message, at, comes_back=comes_back))
        if len(properties) > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError(
                "a message's properties are too long", at=at, size=len(properties), limit=MAX_PROPERTIES_SIZE_BYTES
            )
        yield Element(message.body, properties, message.flag)


def _properties(message: Message, at: int, *, comes_back: bool) -> dict[str, str]:
    """Return the properties of message number *at*. comes_back: it failed, and keeps its tag and keys as they are."""
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
            raise PropertiesIllegalError(f"{name} is given twice, as a field and as a property", at=at, name=name)
        properties[name] = value
    require_writable(properties, at=at)
    if not comes_back:
        require_findable(properties, at=at)
    return properties
