"""Delayed messages: their level, their stored form until they are due (docs/format.md §2, §15), and the delivered form.

RocketMQ: HookUtils.transformDelayLevelMessage, ScheduleMessageService.messageTimeUp. Holds no state.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tidemark.errors import BatchDelayError, PropertiesIllegalError, PropertiesSizeExceededError
from tidemark.format.dispatch_request import U8Array
from tidemark.format.elements import Element, decode_elements, encode_elements
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES
from tidemark.format.properties import (
    DELAY,
    PROPERTY_CRC,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    UNIQ_KEY,
    decode_properties,
    encode_properties,
    timer_name,
)
from tidemark.format.record import Record
from tidemark.format.tags import MAX_DELAY_LEVEL, SCHEDULE_TOPIC, delivery_time

from .batch import Batch, Delay, QueueKey, Wrapper
from .record_encoder import u8

_SCHEDULE_FIELD = u8(len(SCHEDULE_TOPIC).to_bytes(1, "big") + SCHEDULE_TOPIC.encode())
_GREATEST_LEVEL = (1 << 31) - 1
_NO_EXTRA = u8(b"")


class Destination(NamedTuple):
    """The topic and queue to which a delayed record is delivered."""

    topic: str
    queue_id: int


def delay_level(properties: Mapping[str, str]) -> int:
    """Return the delay level in *properties*, 1 to 18; 0 for none.

    Raises PropertiesIllegalError if DELAY is not an integer from 0 to 2**31 - 1.
    """
    if not properties:
        return 0
    text = properties.get(DELAY, "0")
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > _GREATEST_LEVEL:
        raise PropertiesIllegalError(
            f"DELAY={text[:64]} is not a delay level: give 1 to {MAX_DELAY_LEVEL}, or 0 for none",
            name=DELAY,
            value=text[:64],
        )
    return min(int(text), MAX_DELAY_LEVEL)


def require_no_timer(properties: Mapping[str, str], *, at: int | None = None) -> None:
    """Raise BatchDelayError if *properties*, of message *at* of the batch, request a delivery time."""
    name = timer_name(properties)
    if name is not None:
        raise BatchDelayError(
            f"the property {name[:64]} requests a delivery time, and this store supports delay levels only: "
            f"use {DELAY} (1 to {MAX_DELAY_LEVEL}) instead",
            at=at,
            name=name[:64],
        )


def delayed(batch: Batch, level: int, make_unique_key: Callable[[], str]) -> Batch:
    """Return *batch*, a single message, in its form for SCHEDULE_TOPIC_XXXX, with topic and queue as properties.

    The message gets a UNIQ_KEY if it has none, so that a delivery repeated after a crash is recognised.
    Raises PropertiesSizeExceededError.
    """
    (element,) = decode_elements(batch.wire.tobytes())
    properties = decode_properties(element.properties + batch.first_extra.tobytes())
    properties.setdefault(UNIQ_KEY, make_unique_key())
    properties[DELAY] = str(level)
    delay = Delay(level, batch.key.topic, batch.key.queue_id)
    return with_destination(
        dataclasses.replace(
            batch,
            key=QueueKey(SCHEDULE_TOPIC, level - 1),
            topic_field=_SCHEDULE_FIELD,
            wire=u8(encode_elements([element._replace(properties=encode_properties(properties))])),
            first_extra=_NO_EXTRA,
            delay=delay,
        ),
        delay,
    )


def with_destination(batch: Batch, delay: Delay) -> Batch:
    """Return a delayed *batch* with the destination of *delay* as its last properties, as in RocketMQ."""
    (element,) = decode_elements(batch.wire.tobytes())
    properties = decode_properties(element.properties)
    for name, value in ((REAL_TOPIC, delay.topic), (REAL_QUEUE_ID, str(delay.queue_id))):
        properties.pop(name, None)
        properties[name] = value
    encoded = encode_properties(properties)
    if len(encoded) > MAX_PROPERTIES_SIZE_BYTES:
        raise PropertiesSizeExceededError(
            f"the message's properties are {len(encoded):,} bytes with the {REAL_TOPIC} and {REAL_QUEUE_ID} of a "
            f"delayed message, and the limit is {MAX_PROPERTIES_SIZE_BYTES:,}",
            at=0,
            size=len(encoded),
            limit=MAX_PROPERTIES_SIZE_BYTES,
        )
    wire = u8(encode_elements([element._replace(properties=encoded)]))
    return dataclasses.replace(batch, wire=wire, parts_size=len(element.body) + len(encoded), delay=delay)


def due_ms(delay: Delay, store_timestamp: int) -> int:
    """Return when a delayed message is due, in epoch milliseconds. Its unit stores this as the tags code."""
    return delivery_time(delay.level, store_timestamp)


def destination_of(record: Record) -> Destination | None:
    """Return the destination of a record of SCHEDULE_TOPIC_XXXX; None if its properties do not contain a valid one."""
    properties = decode_properties(record.properties)
    topic, queue_id = properties.get(REAL_TOPIC), properties.get(REAL_QUEUE_ID, "")
    if topic is None or not re.fullmatch(r"[0-9]{1,10}", queue_id) or int(queue_id) >= 1 << 31:
        return None
    return Destination(topic, int(queue_id))


def delivered(record: Record, destination: Destination, topic_field: U8Array, answer: Callable[[Batch], None]) -> Batch:
    """Return the batch that delivers a record of SCHEDULE_TOPIC_XXXX to its destination.

    Body, flags, born host and time, and reconsume times are as stored. So are the properties, DELAY included, as in
    RocketMQ, which removes DELAY from its map but stores the text encoded before. DELAY has no effect in a delivered
    message.
    """
    text = record.properties
    properties = decode_properties(text)
    if properties.pop(PROPERTY_CRC, None) is not None:  # the CRC belongs to the stored record, not to the new one
        text = encode_properties(properties)
    wire = encode_elements([Element(record.body, text, record.flag)])
    return Batch(
        key=QueueKey(*destination),
        topic_field=topic_field,
        wire=u8(wire),
        count=1,
        parts_size=len(record.body) + len(text),
        wrapper=Wrapper(
            born_host=record.born_host,
            born_timestamp=record.born_timestamp,
            sys_flag=record.sys_flag,
            reconsume_times=record.reconsume_times,
        ),
        unique_key=properties.get(UNIQ_KEY, "").encode(),
        first_extra=_NO_EXTRA,
        may_share_key=True,
        answer=answer,
    )
