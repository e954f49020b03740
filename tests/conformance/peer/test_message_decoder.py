"""RocketMQ's MessageDecoderTest, MessageEncodeDecodeTest and MessageClientIDSetterTest."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.builders import BORN_HOST_V6, STORE_HOST, STORE_HOST_V6, properties, record_bytes
from tidemark.format.check import Checker
from tidemark.format.elements import Element, decode_elements, encode_elements
from tidemark.format.host import decode_host, encode_host, parse_host
from tidemark.format.message_id import (
    UniqueKeys,
    decode_offset_message_id,
    decode_unique_key,
    encode_offset_message_id,
)
from tidemark.format.properties import decode_properties, encode_properties
from tidemark.format.record import Record, decode_record, encode_record

pytestmark = pytest.mark.conformance

V4: dict[str, Any] = {"born_host": encode_host(parse_host("127.0.0.1:9001")), "store_host": STORE_HOST}
V6: dict[str, Any] = {"born_host": BORN_HOST_V6, "store_host": STORE_HOST_V6}
HOSTS = pytest.mark.parametrize("hosts", [V4, V6], ids=["IPv4", "IPv6"])
ENTRIES = {"a": "123", "b": "hello", "c": "3.14"}


@HOSTS
def test_md1_a_record_decodes_to_its_fields(hosts: dict[str, Any]) -> None:
    """Topic abc, body hello!q!, queue 1, offset 123, position 123456; its id has its store and position."""
    record = Record(
        topic=b"abc", body=b"hello!q!", properties=encode_properties(ENTRIES), queue_id=1, queue_offset=123,
        physical_offset=123_456, flag=4, born_timestamp=1, store_timestamp=2, **hosts,
    )  # fmt: skip
    data = encode_record(record)
    assert data == record_bytes(
        topic=b"abc", body=b"hello!q!", properties=properties(ENTRIES), queue_id=1, queue_offset=123,
        physical_offset=123_456, flag=4, born_timestamp=1, store_timestamp=2, **hosts,
    )  # fmt: skip
    decoded = decode_record(data)
    sys_flag = 0x30 if hosts is V6 else 0
    assert decoded._replace(body_crc=None) == record._replace(sys_flag=sys_flag)
    message_id = encode_offset_message_id(decoded.store_host, decoded.physical_offset)
    assert len(message_id) == (56 if hosts is V6 else 32)
    assert decode_offset_message_id(message_id) == (decode_host(hosts["store_host"]), 123_456)


@HOSTS
def test_md2_properties_are_read_from_a_records_bytes(hosts: dict[str, Any]) -> None:
    """The check returns their position."""
    data = np.frombuffer(record_bytes(properties=properties(ENTRIES), **hosts), np.uint8)
    (row,) = Checker().check(data, base_offset=0).requests
    at = int(row["properties_at"])
    assert decode_properties(data[at : at + int(row["properties_length"])].data) == ENTRIES


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("k1=v1", {"k1": "v1"}),
        ("k1=v1;", {"k1": "v1"}),
        ("", {}),
        (" ", {}),
        ("aaa", {}),
        ("k1=", {}),
        ("=v1", {}),
        ("k1=v1;k2=v2", {"k1": "v1", "k2": "v2"}),
        ("k1=v1;=v2;k3=v3", {"k1": "v1", "k3": "v3"}),
        ("k1=v1;k2=;k3=v3;", {"k1": "v1", "k3": "v3"}),
        ("=v;k2=v2", {"k2": "v2"}),
        ("1=1", {"1": "1"}),
        ("1=1;2=2", {"1": "1", "2": "2"}),
    ],
)
def test_md4_property_texts_are_parsed(text: str, entries: dict[str, str]) -> None:
    """U+0001 is written as =, U+0002 as ; here: the last separator is optional, empty names and values are dropped."""
    assert decode_properties(text.replace("=", "\x01").replace(";", "\x02").encode()) == entries


@pytest.mark.parametrize("host", ["127.0.0.1:9103", "[::1]:9103"])
def test_md5_an_id_decodes_to_host_and_offset(host: str) -> None:
    """The offset is 123456."""
    message_id = encode_offset_message_id(encode_host(parse_host(host)), 123_456)
    assert decode_offset_message_id(message_id) == (parse_host(host), 123_456)


def test_md6_wire_elements_keep_flag_properties_and_body() -> None:
    """A list keeps its order and count."""
    elements = [Element(b"body%d" % i, properties({"n": str(i)}), i) for i in range(5)]
    assert list(decode_elements(encode_elements(elements))) == elements


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_md7_a_unique_key_encodes_time_number_address_and_process(address: str) -> None:
    """The time is between the clock before and after; numbers rise by one; there are 32 or 56 digits."""
    keys = UniqueKeys(address)
    before = time.time_ns() // 1_000_000
    made = keys.make_many(10)
    after = time.time_ns() // 1_000_000
    assert {len(key) for key in made} == {56 if ":" in address else 32}
    told = [decode_unique_key(key, now_ms=after + 2) for key in made]
    assert all(before - 1 <= one.born_ms <= after + 1 for one in told)
    assert {(one.address, one.pid) for one in told} == {(address, os.getpid() & 0xFFFF)}
    assert all(int(right[-4:], 16) - int(left[-4:], 16) == 1 for left, right in pairwise(made))
