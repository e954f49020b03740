"""Checks that a producer makes before it sends (docs/format.md §15); the reasons are those that the writer answers."""

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

require_sendable_topic = functools.lru_cache(maxsize=1024)(topic_name.require_sendable_topic)  # exceptions not cached


def require_body(body: bytes, max_size: int) -> None:
    """Raise BatchEmptyError for an empty *body*, MessageSizeExceededError for more than *max_size* bytes."""
    if not body:
        raise BatchEmptyError("a message without a body cannot be stored: its body needs at least 1 byte")
    if len(body) > max_size:
        raise MessageSizeExceededError(
            f"the body is {len(body):,} bytes; the limit is {max_size:,}", size=len(body), limit=max_size
        )


def require_property_types(properties: Mapping[str, str]) -> None:
    """Raise TypeError for a name or value that is not a str."""
    for name, value in properties.items():
        if not isinstance(name, str):
            raise TypeError(f"a property's name must be a str, not {name!r} of type {type(name).__name__}")
        if not isinstance(value, str):
            raise TypeError(
                f"the value of property {name!r} must be a str, not {value!r} of type {type(value).__name__}: "
                "use str(...) for a number, .decode() for bytes, and omit the property for None"
            )


def require_sendable_properties(properties: Mapping[str, str]) -> None:
    """Raise PropertiesIllegalError or InnerBatchIllegalError for properties that cannot be encoded or are reserved."""
    require_writable(properties)
    if PROPERTY_CRC in properties:  # a wrong value would mark the record as damaged
        raise PropertiesIllegalError(f"{PROPERTY_CRC} is reserved for the store: omit it", name=PROPERTY_CRC)
    if INNER_NUM in properties:
        raise InnerBatchIllegalError(f"{INNER_NUM} marks a batch; a message cannot have it", name=INNER_NUM)
    if "/" in properties.get(INNER_MULTI_DISPATCH, ""):
        raise PropertiesIllegalError(
            f"{INNER_MULTI_DISPATCH} has a queue name with a slash; queue names have none", name=INNER_MULTI_DISPATCH
        )


def require_batch_size(elements: Sequence[Element], size: int, max_size: int) -> None:
    """Apply `require_body` to each of *elements*, and compare the batch's *size* with *max_size*."""
    for element in elements:
        require_body(element.body, max_size)
    if size > max_size:
        raise MessageSizeExceededError(
            f"the batch is {size:,} bytes, including 22 for each message; the limit is {max_size:,}: split it",
            size=size,
            limit=max_size,
        )
