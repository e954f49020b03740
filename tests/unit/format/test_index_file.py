"""Single rules of the key index file."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.builders import properties, record_bytes, row_of_records
from tests.plain_check import java_hash
from tidemark.errors import CorruptStoreError
from tidemark.format import index_file, index_layout, primitives
from tidemark.format.check import Checker
from tidemark.format.index_file import Header, decode_header, hash_keys


def keys_of(data: bytes) -> list[tuple[int, int]]:
    """Return hash and row number of each key."""
    buffer = np.frombuffer(data, np.uint8)
    requests = Checker().check(buffer, base_offset=0).requests
    hashes, places, times = hash_keys(buffer, requests)
    rows = [requests["physical_offset"].tolist().index(place) for place in places.tolist()]
    assert times.tolist() == requests["store_timestamp"][rows].tolist()
    return list(zip(hashes.tolist(), rows, strict=True))


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_all_keys_of_a_record_are_hashed(count: int) -> None:
    """Most records have at most two."""
    data = row_of_records([{"properties": properties({"KEYS": " ".join(f"k{i}" for i in range(count))})}])
    assert keys_of(data) == [(abs(java_hash(f"TopicTest#k{i}")), 0) for i in range(count)]


def test_slots_close_to_each_other_are_written_together() -> None:
    """Up to 512 unchanged slots between two changed ones are written, too."""
    numbers, values = np.array([3, 516, 1030], np.int32), np.array([7, 8, 9], np.int32)
    data, stretches, done = index_file.slot_stretches(np.full(8000, 1, np.uint8), numbers, values, 0)
    assert (stretches, done) == ([[3, 0, 2056], [1030, 2056, 2060]], 3)
    assert [data[at : at + 4].hex() for at in (0, 4, 2048, 2052, 2056)] == [
        *("00000007", "01010101", "01010101", "00000008", "00000009")
    ]


def test_the_unique_key_is_indexed_before_the_keys() -> None:
    """The order of the properties does not matter."""
    data = row_of_records(
        [{"properties": properties({"KEYS": "a  b", "UNIQ_KEY": "u"})}, {}, {"properties": properties({"KEYS": "a"})}]
    )
    assert keys_of(data) == [
        (abs(java_hash(f"TopicTest#{key}")), row) for key, row in [("u", 0), ("a", 0), ("b", 0), ("a", 2)]
    ]


@pytest.mark.parametrize(("kind", "count"), [(0x0, 1), (0x4, 1), (0x8, 1), (0xC, 0)])
def test_only_rolled_back_records_are_not_indexed(kind: int, count: int) -> None:
    """Half messages are indexed, under the half topic (docs/format.md §6)."""
    assert len(keys_of(record_bytes(sys_flag=kind, properties=properties({"KEYS": "a"})))) == count


def test_a_key_hash_is_never_negative() -> None:
    """It is Java's absolute value, with 0 for the minimum integer."""
    assert index_file.key_hash("TopicTest", "K1") == 2745032
    assert index_file.key_hash("T", "Z") == abs(java_hash("T#Z"))
    assert index_file.key_hash("polygenelubricants", "") >= 0


def test_an_index_count_of_0_is_read_as_1() -> None:
    """A new file is all zero (docs/format.md §6)."""
    assert decode_header(bytes(40)) == Header(index_count=1)


def test_a_short_index_header_is_damage() -> None:
    """The file is cut off."""
    with pytest.raises(CorruptStoreError):
        decode_header(bytes(39))


def test_index_entries_follow_header_and_slots() -> None:
    """Entries follow header and slots and have twenty bytes each."""
    assert (index_file.entry_at(4, 0), index_file.entry_at(4, 3)) == (56, 116)
    assert index_file.file_size(4, 4) == 136


def test_a_header_with_too_many_entries_causes_no_read_past_the_last() -> None:
    """The first wrong slot is reported; bytes past the last entry are not read."""
    entries = np.zeros(2 * index_layout.ENTRY_SIZE, np.uint8)
    slots = np.zeros(index_layout.SLOT_SIZE, np.uint8)
    assert index_file.find_broken_chain(slots, entries, Header(index_count=(1 << 31) - 1)) == (None, 0)


@pytest.mark.parametrize("key", ["", "k", "a" * 63, "b" * 200, "é" * 70, "日本語" * 50, "a😀b", "x\udc00y"])
def test_the_hash_of_any_text_is_javas(key: str) -> None:
    value = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for unit in struct.unpack(f">{len(units) // 2}H", units):
        value = (31 * value + unit) % (1 << 32)
    assert primitives.java_hash(key) == value - (1 << 32 if value >= 1 << 31 else 0)
