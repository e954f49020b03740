"""Properties string ⇄ dict (docs/format.md §2): ``name U+0001 value U+0002`` for each entry.

The parser is exactly as lenient as RocketMQ's, because real stores contain such strings.
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
TRACEPARENT = "traceparent"  # W3C trace context, named as in the headers of OpenTelemetry's instrumentations
TRACESTATE = "tracestate"
PROPERTY_CRC = "__CRC32#"  # a whole record's CRC in decimal, its last digit first; the properties end with it
PROPERTY_CRC_DIGITS = 10
PROPERTY_CRC_SIZE = len(PROPERTY_CRC) + 1 + PROPERTY_CRC_DIGITS + 1
RETRY_TOPIC = "RETRY_TOPIC"  # original topic of a retried message
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
DLQ_ORIGIN_TOPIC, DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID"
TRAN_MSG = "TRAN_MSG"
TIMER_PREFIX = "TIMER_"  # prefix of RocketMQ's properties for timed delivery
START_DELIVER_TIME = "__STARTDELIVERTIME"  # the same, as set by clients of the cloud service

KEY_SEPARATOR = " "


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Return UTF-8 of all entries in order. Names and values must not contain separators; callers check that."""
    return "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()


def require_writable(properties: Mapping[str, str], *, at: int | None = None) -> None:
    """Raise PropertiesIllegalError for a name or value that is empty or contains a separator.

    at  index of the message in its batch, a fact of the error
    """
    for name, value in properties.items():
        if not name or not value:  # a reader would drop the entry
            raise PropertiesIllegalError("a property's name and value must not be empty", at=at, name=name)
        if "\x01" in name or "\x02" in name or "\x01" in value or "\x02" in value:
            raise PropertiesIllegalError("a property's name or value contains U+0001 or U+0002", at=at, name=name)


def decode_properties(data: bytes | memoryview) -> dict[str, str]:
    """Parse a properties string; empty names and values are dropped, and of duplicates the last one counts."""
    segments = [segment.partition("\x01") for segment in str(data, "utf-8", "replace").split("\x02")]
    return {name: value for name, _, value in segments if name and value}


def timer_name(properties: Mapping[str, str]) -> str | None:
    """Return the first property name that requests timed delivery, or None."""
    return next((name for name in properties if name.startswith(TIMER_PREFIX) or name == START_DELIVER_TIME), None)


def is_transactional(properties: Mapping[str, str]) -> bool:
    """Return True if the message is the half message of a transaction."""
    return is_java_true(properties.get(TRAN_MSG, ""))


def is_java_true(text: str) -> bool:
    """Return True if Java's Boolean.parseBoolean does: for "true" in any case."""
    return text.lower() == "true"


def split_keys(value: str) -> list[str]:
    """Return the index keys of a KEYS value: the non-empty pieces between spaces (docs/format.md §2)."""
    return [piece for piece in value.split(KEY_SEPARATOR) if piece]
