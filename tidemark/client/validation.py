"""What a producer refuses before anything is sent (format.md §15), with the reasons that the writer would answer."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidemark.errors import (
    BatchEmptyError,
    InnerBatchIllegalError,
    MessageSizeExceededError,
    PropertiesIllegalError,
)
from tidemark.format import topic_name
from tidemark.format.properties import (
    INNER_MULTI_DISPATCH,
    INNER_NUM,
    PROPERTY_CRC,
    require_writable,
)

if TYPE_CHECKING:
    from tidemark.format.elements import Element

require_sendable_topic = functools.lru_cache(maxsize=1024)(topic_name.require_sendable_topic)  # what raises is not kept


def require_body(body: bytes, max_size: int) -> None:
    """BatchEmptyError or MessageSizeExceededError for a body without bytes, or with more than *max_size*."""
    if not body:
        raise BatchEmptyError("a message without a body")
    if len(body) > max_size:
        raise MessageSizeExceededError(
            f"a body is {len(body):,} bytes, and at most {max_size:,} fit", size=len(body), limit=max_size
        )


def require_property_types(properties: Mapping[str, str]) -> None:
    """TypeError for a name or value that is no text."""
    for name, value in properties.items():
        if not isinstance(name, str):
            raise TypeError(f"a property's name is a text (str), not {name!r} of type {type(name).__name__}")
        if not isinstance(value, str):
            raise TypeError(
                f"the value of property {name!r} is a text (str), not {value!r} of type {type(value).__name__}: "
                "write str(...) for a number, .decode() for bytes, and leave a None out"
            )


def require_sendable_properties(properties: Mapping[str, str]) -> None:
    """PropertiesIllegalError, InnerBatchIllegalError: for what a properties string cannot carry, or a store writes."""
    require_writable(properties)
    if PROPERTY_CRC in properties:  # where it is wrong, the record would count as damaged
        raise PropertiesIllegalError(f"{PROPERTY_CRC} is the store's to write", name=PROPERTY_CRC)
    if INNER_NUM in properties:
        raise InnerBatchIllegalError("a message says that it is a batch", name=INNER_NUM)
    if "/" in properties.get(INNER_MULTI_DISPATCH, ""):
        raise PropertiesIllegalError("a queue's name holds a slash", name=INNER_MULTI_DISPATCH)


def require_batch_size(elements: Sequence[Element], size: int, max_size: int) -> None:
    """As `require_body`, of each message of a batch, and of its *size* as a whole."""
    for element in elements:
        require_body(element.body, max_size)
    if size > max_size:
        raise MessageSizeExceededError(
            f"the batch is {size:,} bytes with 22 for each message, and at most {max_size:,} fit: send it in parts",
            size=size,
            limit=max_size,
        )
