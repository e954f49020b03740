"""Delayed messages: their level, their stored form while they wait (docs/format.md §2, §15), and the delivered form.

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
    """Where a delayed record goes when it is due."""

    topic: str
    queue_id: int


def delay_level(properties: Mapping[str, str]) -> int:
    """The level that *properties* ask for, 1 to 18; 0 for none.

    raises PropertiesIllegalError when DELAY is no number of 32 bits
    """
    if not properties:
        return 0
    text = properties.get(DELAY, "0")
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > _GREATEST_LEVEL:
        raise PropertiesIllegalError("DELAY is no level", name=DELAY, value=text[:64])
    return min(int(text), MAX_DELAY_LEVEL)


def require_no_timer(properties: Mapping[str, str], *, at: int | None = None) -> None:
    """Raise BatchDelayError if *properties*, of message *at* of the batch, ask for a delivery at a time."""
    name = timer_name(properties)
    if name is not None:
        raise BatchDelayError(
            f"the property {name[:64]} asks for a delivery at a time, and this store delays by levels only: "
            f"give {DELAY}, 1 to {MAX_DELAY_LEVEL}, instead",
            at=at,
            name=name[:64],
        )


def delayed(batch: Batch, level: int, make_unique_key: Callable[[], str]) -> Batch:
    """*batch*, a single message, as it is stored until it is due: in SCHEDULE_TOPIC_XXXX, with its own topic and queue
    as properties. It gets a UNIQ_KEY if it has none: by it a delivery that is repeated after a crash is recognised.

    raises PropertiesSizeExceededError
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
    """A delayed *batch* with the destination of *delay* in its properties, behind the others, where the peer has it."""
    (element,) = decode_elements(batch.wire.tobytes())
    properties = decode_properties(element.properties)
    for name, value in ((REAL_TOPIC, delay.topic), (REAL_QUEUE_ID, str(delay.queue_id))):
        properties.pop(name, None)
        properties[name] = value
    encoded = encode_properties(properties)
    if len(encoded) > MAX_PROPERTIES_SIZE_BYTES:
        raise PropertiesSizeExceededError(
            "the message's properties are too long with its topic and queue",
            at=0,
            size=len(encoded),
            limit=MAX_PROPERTIES_SIZE_BYTES,
        )
    wire = u8(encode_elements([element._replace(properties=encoded)]))
    return dataclasses.replace(batch, wire=wire, parts_size=len(element.body) + len(encoded), delay=delay)


def due_ms(delay: Delay, store_timestamp: int) -> int:
    """When a delayed message is due, epoch milliseconds: what its unit has as tags code."""
    return delivery_time(delay.level, store_timestamp)


def destination_of(record: Record) -> Destination | None:
    """Where a record of SCHEDULE_TOPIC_XXXX goes; None when it does not say."""
    properties = decode_properties(record.properties)
    topic, queue_id = properties.get(REAL_TOPIC), properties.get(REAL_QUEUE_ID, "")
    if topic is None or not re.fullmatch(r"[0-9]{1,10}", queue_id) or int(queue_id) >= 1 << 31:
        return None
    return Destination(topic, int(queue_id))


def delivered(record: Record, destination: Destination, topic_field: U8Array, answer: Callable[[Batch], None]) -> Batch:
    """A record of SCHEDULE_TOPIC_XXXX as it is appended to where it goes.

    Body, flags, born host and time, and reconsume times are as stored. So are the properties, DELAY too: the peer takes
    it out of its map, and stores the text that it made before. It asks for nothing where it then is.
    """
    text = record.properties
    properties = decode_properties(text)
    if properties.pop(PROPERTY_CRC, None) is not None:  # of the record that was
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
        is_delivery=True,
        answer=answer,
    )
