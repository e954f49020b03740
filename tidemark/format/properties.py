"""Properties string ⇄ dict (docs/format.md §2): ``name U+0001 value U+0002`` for each entry.

The parser is as lenient as RocketMQ's, to the letter: real stores hold what it accepts.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.errors import PropertiesIllegalError

NAME_END = 0x01
VALUE_END = 0x02

TAGS = "TAGS"
KEYS = "KEYS"
UNIQ_KEY = "UNIQ_KEY"
WAIT = "WAIT"
DELAY = "DELAY"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE_ID = "REAL_QID"
INNER_NUM = "INNER_NUM"
INNER_BASE = "INNER_BASE"
INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
TRACEPARENT = "traceparent"  # W3C trace context, as OpenTelemetry's instrumentations write it into headers
TRACESTATE = "tracestate"
PROPERTY_CRC = "__CRC32#"  # a whole record's CRC in decimal, its last digit first; the properties end with it
PROPERTY_CRC_DIGITS = 10
PROPERTY_CRC_SIZE = len(PROPERTY_CRC) + 1 + PROPERTY_CRC_DIGITS + 1
RETRY_TOPIC = "RETRY_TOPIC"  # of a retry: the topic to which it was sent first
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID"
TRAN_MSG = "TRAN_MSG"
TIMER_PREFIX = "TIMER_"  # of the names by which RocketMQ's clients and brokers time a delivery
START_DELIVER_TIME = "__STARTDELIVERTIME"  # the same, in the words of the cloud service's clients

KEY_SEPARATOR = " "


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """UTF-8 of all entries in the mapping's order. Names and values must hold no separator: the edges check."""
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()


def require_writable(properties: Mapping[str, str], *, at: int | None = None) -> None:
    """PropertiesIllegalError for a name or value that is empty, or holds one of the text's separators.

    at  the number of the message in its batch, as a fact of the error
    """
    for name, value in properties.items():
        if not name or not value:  # a reader would drop the entry
            raise PropertiesIllegalError("a property's name or value is empty", at=at, name=name)
        if "\x01" in name or "\x02" in name or "\x01" in value or "\x02" in value:
            raise PropertiesIllegalError("a property's name or value holds U+0001 or U+0002", at=at, name=name)


def decode_properties(data: bytes | memoryview) -> dict[str, str]:
    """Entries of a properties string; empty names and values are dropped, a later duplicate wins."""
    segments = [segment.partition("\x01") for segment in str(data, "utf-8", "replace").split("\x02")]
    return {name: value for name, _, value in segments if name and value}


def timer_name(properties: Mapping[str, str]) -> str | None:
    """Return the first name that asks for a delivery at a time, or None."""
    return next((name for name in properties if name.startswith(TIMER_PREFIX) or name == START_DELIVER_TIME), None)


def is_transactional(properties: Mapping[str, str]) -> bool:
    """Return True if the message is the first half of a transaction."""
    return is_java_true(properties.get(TRAN_MSG, ""))


def is_java_true(text: str) -> bool:
    """Return True if Java's Boolean.parseBoolean does: for the word true in any case."""
    return text.lower() == "true"


def split_keys(value: str) -> list[str]:
    """The index keys of a KEYS value: pieces between single spaces, empty ones dropped (docs/format.md §2)."""
    return [piece for piece in value.split(KEY_SEPARATOR) if piece]
