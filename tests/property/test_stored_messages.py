"""A consumer's decoding of records as stored equals the service's own, for arbitrary records."""

from __future__ import annotations

import zlib
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import MAGIC_V1, MAGIC_V2, buffer_of_records, wire_batch
from tests.property.test_message_json import BYTES, ELEMENTS, HOSTS, I4, I8, PROPERTIES
from tidemark.client.answers import MessageAnswer
from tidemark.client.consumer.stored_messages import decode_records
from tidemark.client.received_message import ReceivedMessage, TopicQueue
from tidemark.format import message
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_json import message_json
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.pull import PulledPart
from tidemark.read.records import Records

QUEUE = TopicQueue("orders", 3)
FLAGS = [0, 0, 0xC0, 0xC0, 0x40, 0x80, 0xC1, 0x1, 0x101, 0x201, 0x301, 0x701, 0x1C1, 0x8]
NUMBERED = st.integers(0, 20).map(lambda number: b"INNER_BASE\x01%d\x02INNER_NUM\x01%d\x02" % (number, number))
ENTRIES = PROPERTIES | NUMBERED | st.tuples(NUMBERED, PROPERTIES).map(b"".join)


def compressed(codec: str) -> st.SearchStrategy[bytes]:
    return BYTES.map(lambda body: bytes(pa.compress(body, codec=codec, asbytes=True)))


def batch(elements: list[tuple[bytes, bytes, int]]) -> bytes:
    return wire_batch(*elements)


BODIES = st.one_of(
    BYTES,
    BYTES.map(zlib.compress),
    compressed("lz4"),
    compressed("zstd"),
    ELEMENTS.map(batch),
    ELEMENTS.map(lambda elements: batch([(zlib.compress(body), text, flag) for body, text, flag in elements])),
    st.tuples(ELEMENTS.map(batch), st.binary(max_size=3)).map(b"".join),
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "magic": st.sampled_from([MAGIC_V1, MAGIC_V2]),
            "topic": st.sampled_from([b"t", "主题".encode(), b"%RETRY%" + b"g" * 120]),
            "body": BODIES,
            "body_crc": st.sampled_from([None, None, None, 1, -1]),
            "properties": ENTRIES,
            "sys_flag": st.sampled_from(FLAGS),
            "queue_offset": st.integers(0, 30) | st.integers(0, 1 << 62),
            "flag": I4,
            "reconsume_times": I4,
            "born_timestamp": I8,
            "store_timestamp": I8,
            "born_host": HOSTS,
            "store_host": HOSTS,
        }
    ),
    max_size=4,
)


def decoded_by_service(
    records: list[dict[str, Any]], least: int
) -> tuple[list[ReceivedMessage], list[tuple[int, int, str]], bytes]:
    """Return the messages of the service's rows, the records that it skips, and the records as stored."""
    buffer, places, sizes = buffer_of_records(records)
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes)
    found = Records(buffer, places, rows)
    part = PulledPart(found, found.messages(), found.right)
    answer = b"[%s]" % b"".join(message_json(part, BodyEncoding.BASE64, terminator=b","))[:-1]
    as_rows = message_rows(part, BodyEncoding.BASE64)
    assert orjson.loads(answer) == as_rows
    skipped = found.skipped(np.array([one["queue_offset"] for one in records], np.int64))
    return (
        [ReceivedMessage.of(QUEUE, cast(MessageAnswer, row)) for row in as_rows if row["queue_offset"] >= least],
        [(one.physical_offset, one.queue_offset, one.reason) for one in skipped],
        buffer.tobytes(),
    )


@given(RECORDS, st.sampled_from([0, 0, 5, 1 << 40]))
def test_decoded_records_equal_the_rows_of_the_service(records: list[dict[str, Any]], least: int) -> None:
    messages, skipped, page = decoded_by_service(records, least)
    found = decode_records(QUEUE, page, least_offset=least)
    assert found.messages == messages
    assert [(one["physical_offset"], one["queue_offset"], one["reason"]) for one in found.skipped] == skipped
    assert all(one["message_count"] == 1 for one in found.skipped)


@settings(max_examples=30)
@given(RECORDS, st.frozensets(st.sampled_from(["A", "é", "k"]), min_size=1))
def test_tags_are_compared_as_text(records: list[dict[str, Any]], tags: frozenset[str]) -> None:
    tagged = [{**one, "properties": one["properties"] + b"\x02TAGS\x01A\x02"} for one in records[:2]] + records[2:]
    messages, _, page = decoded_by_service(tagged, 0)
    found = decode_records(QUEUE, page, least_offset=0, tags=tags)
    assert found.messages == [one for one in messages if one.tag in tags]


@settings(max_examples=30)
@given(RECORDS, st.data())
def test_the_attributes_may_be_read_in_any_order(records: list[dict[str, Any]], data: st.DataObject) -> None:
    messages, _, page = decoded_by_service(records, 0)
    for expected, found in zip(messages, decode_records(QUEUE, page, least_offset=0).messages, strict=True):
        for name in data.draw(st.permutations(sorted(expected.as_dict()))):
            assert getattr(found, name) == getattr(expected, name), name
