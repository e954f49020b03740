"""Encoding choices that the record layout leaves open."""

from __future__ import annotations

import pytest

from tests import builders
from tidemark.errors import CorruptMessageError
from tidemark.format.record import Magic, Record, decode_record, encode_record, magic_of_topic, with_host_flags


@pytest.mark.parametrize(
    ("topic", "magic"),
    [
        ("t" * 127, Magic.V1),
        ("t" * 128, Magic.V2),
        ("主" * 127, Magic.V1),
        ("\U0001f600" * 64, Magic.V2),
        ("", Magic.V1),
    ],
)
def test_topics_longer_than_127_utf16_units_are_v2(topic: str, magic: Magic) -> None:
    """UTF-16 units count, not bytes or characters (docs/format.md §2)."""
    assert magic_of_topic(topic) is magic


def test_the_host_flags_follow_the_hosts() -> None:
    """The request's host bits are replaced, all other bits stay."""
    v4, v6 = builders.BORN_HOST, builders.BORN_HOST_V6
    assert with_host_flags(0x30 | 0x4C, born_host=v4, store_host=v4) == 0x4C
    assert with_host_flags(0, born_host=v6, store_host=v4) == 0x10
    assert with_host_flags(0, born_host=v4, store_host=v6) == 0x20
    assert with_host_flags(-(1 << 31), born_host=v6, store_host=v6) == -(1 << 31) + 0x30


def test_a_given_crc_is_written_unchanged() -> None:
    """A record's CRC may be known already, or wrong on purpose."""
    assert encode_record(Record(topic=b"T", body=b"x", body_crc=-7)) == builders.record_bytes(
        topic=b"T",
        body=b"x",
        body_crc=-7,
        born_timestamp=0,
        store_timestamp=0,
        born_host=bytes(8),
        store_host=bytes(8),
    )


@pytest.mark.parametrize("size", [0, 1, 39, 87, 88, 104])
def test_a_truncated_record_is_corrupt(size: int) -> None:
    """Every length below its own is tried."""
    data = builders.record_bytes()
    with pytest.raises(CorruptMessageError):
        decode_record(data[:size])


def test_a_blank_record_is_not_decoded_as_a_record() -> None:
    """decode_record accepts only records."""
    with pytest.raises(CorruptMessageError) as refused:
        decode_record(builders.blank_bytes(200).ljust(200, b"\0"))
    assert refused.value.facts == {"reason": "MAGIC"}
