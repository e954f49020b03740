"""The key index: compiled entries and lookups equal a plain put and walk by docs/format.md §6, §14."""

from __future__ import annotations

import itertools
import struct
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import builders, plain_check
from tests.property.strategies import logs
from tidemark.format import index_file, index_layout
from tidemark.format.check import Checker
from tidemark.format.index_file import (
    Header,
    decode_header,
    encode_header,
    find_entries,
    hash_keys,
    make_entries,
    slot_stretches,
)

I4_MAX = (1 << 31) - 1


class PlainIndex:
    """An index file as dict and lists, put after put."""

    def __init__(self, slots: int, *, begin_timestamp: int = 0, begin_physical_offset: int = 0) -> None:
        self.n_slots = slots
        self.slots: dict[int, int] = {}
        self.entries: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)]
        self.begin, self.end = begin_timestamp, begin_timestamp
        self.begin_offset, self.end_offset = begin_physical_offset, begin_physical_offset
        self.used = 0

    def put(self, key_hash: int, physical_offset: int, timestamp: int) -> None:
        count = len(self.entries)
        slot = key_hash % self.n_slots
        previous = self.slots.get(slot, 0)
        difference = 0 if self.begin <= 0 else min(max(int((timestamp - self.begin) / 1000), 0), I4_MAX)
        self.entries.append((key_hash, physical_offset, difference, previous))
        self.slots[slot] = count
        if count <= 1:
            self.begin_offset, self.begin = physical_offset, timestamp
        if previous == 0:
            self.used += 1
        self.end_offset, self.end = physical_offset, timestamp

    def find(self, key_hash: int, begin: int, end: int, limit: int) -> list[int]:
        found: list[int] = []
        number = self.slots.get(key_hash % self.n_slots, 0)
        while number and len(found) < limit:
            one_hash, physical_offset, difference, previous = self.entries[number]
            timestamp = self.begin + difference * 1000
            if one_hash == key_hash and begin <= timestamp <= end:
                found.append(physical_offset)
            if timestamp < begin:
                break
            number = previous
        return found

    def header(self) -> Header:
        return Header(self.begin, self.end, self.begin_offset, self.end_offset, self.used, len(self.entries))

    def slot_bytes(self) -> bytes:
        return b"".join(struct.pack(">i", self.slots.get(slot, 0)) for slot in range(self.n_slots))

    def entry_bytes(self, first: int = 0) -> bytes:
        return b"".join(struct.pack(">iqii", *entry) for entry in self.entries[first:])


class Put(NamedTuple):
    key_hash: int
    physical_offset: int
    timestamp: int


PUTS = st.lists(
    st.builds(
        Put,
        st.integers(0, 12) | st.integers(0, I4_MAX),
        st.integers(0, 1 << 50),
        st.integers(0, 5_000_000) | st.integers(0, 1 << 43),
    ),
    max_size=30,
)


def append(
    header: Header, slots: np.ndarray[tuple[int], np.dtype[np.uint8]], puts: list[Put]
) -> tuple[memoryview, Header]:
    """Return make_entries of *puts*; set the slots in place."""
    new = make_entries(
        header,
        slots,
        hashes=np.array([put.key_hash for put in puts], np.int32),
        physical_offsets=np.array([put.physical_offset for put in puts], np.int64),
        store_timestamps=np.array([put.timestamp for put in puts], np.int64),
    )
    assert sorted(set(new.slot_numbers.tolist())) == new.slot_numbers.tolist()
    slots.view(">i4")[new.slot_numbers] = new.slot_values
    return new.entries, new.header


@given(puts=PUTS, slots=st.integers(1, 9), cuts=st.sets(st.integers(1, 29)), rolled=st.booleans())
def test_entries_appended_in_any_portions_equal_single_puts(
    puts: list[Put], slots: int, cuts: set[int], rolled: bool
) -> None:
    """Entries, slots and header do not depend on the division of a run of keys, and follow docs/format.md §6."""
    start = {"begin_timestamp": 1_000_000, "begin_physical_offset": 77} if rolled else {}
    plain = PlainIndex(slots, **start)
    header, table, entries = plain.header(), np.zeros(4 * slots, np.uint8), b""
    edges = [0, *sorted(cut for cut in cuts if cut < len(puts)), len(puts)]  # few and many keys are sorted differently
    for begin, end in itertools.pairwise(edges):
        if end > begin:
            more, header = append(header, table, puts[begin:end])
            entries += more
    for put in puts:
        plain.put(*put)
    assert entries == plain.entry_bytes(1)
    assert table.tobytes() == plain.slot_bytes()
    assert header == plain.header()


@given(
    table=st.lists(st.integers(0, I4_MAX), min_size=1, max_size=60),
    new=st.dictionaries(st.integers(0, 59), st.integers(0, I4_MAX), max_size=30),
    gap=st.integers(0, 5),
    most_slots=st.integers(1, 9),
    most_stretches=st.integers(1, 4),
)
def test_slots_written_in_runs_equal_the_set_slots(
    table: list[int], new: dict[int, int], gap: int, most_slots: int, most_stretches: int
) -> None:
    """This holds however few bytes and runs fit at once; no run begins or ends with an unset slot."""
    numbers = sorted(number for number in new if number < len(table))
    slots, written = np.array(table, ">i4"), np.array(table, ">i4")
    done = 0
    sizes: dict[str, Any] = {
        "_GAP_SLOTS": gap,
        "_MOST_WRITTEN_BYTES": 4 * most_slots,
        "_MOST_STRETCHES": most_stretches,
    }
    with mock.patch.multiple(index_file, **sizes):
        while done < len(numbers):
            values = np.array([new[number] for number in numbers], np.int32)
            some = slot_stretches(slots.view(np.uint8), np.array(numbers, np.int32), values, done)
            for number, begin, end in some.stretches:
                data = np.frombuffer(some.data[begin:end], ">i4")
                assert {number, number + len(data) - 1} <= set(numbers)
                written[number : number + len(data)] = data
            assert some.done > done
            done = some.done
    assert written.tolist() == [new.get(number, before) for number, before in enumerate(table)]


@given(
    puts=PUTS,
    slots=st.integers(1, 9),
    begin=st.integers(0, 5_000_000),
    span=st.integers(0, 1 << 43),
    limit=st.integers(0, 40),
)
def test_find_entries_equals_walking_the_chain(puts: list[Put], slots: int, begin: int, span: int, limit: int) -> None:
    """Every hash that was put is found, newest first, within the requested times."""
    plain = PlainIndex(slots)
    for put in puts:
        plain.put(*put)
    table = np.frombuffer(plain.slot_bytes(), np.uint8)
    entries = np.frombuffer(plain.entry_bytes(), np.uint8)
    for key_hash in {put.key_hash for put in puts} | {5}:
        found = find_entries(
            table, entries, plain.header(), key_hash=key_hash, begin_ms=begin, end_ms=begin + span, limit=limit
        )
        assert found == plain.find(key_hash, begin, begin + span, limit)


@given(
    slots=st.binary(min_size=4, max_size=40),
    entries=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(-1, 3), st.integers(-2, 12)), max_size=8
    ),
    slot_values=st.lists(st.integers(-2, 12), min_size=1, max_size=4),
    header=st.builds(
        Header,
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.just(0),
        st.just(0),
        st.just(0),
        st.just(0),
        st.integers(-(1 << 31), I4_MAX) | st.integers(0, 9),
    ),
)
def test_find_entries_ends_on_any_bytes(
    slots: bytes, entries: list[tuple[int, int, int, int]], slot_values: list[int], header: Header
) -> None:
    """Loops, arbitrary numbers and a count beyond the file end a lookup; it reads nothing outside of the tables."""
    table = np.frombuffer(b"".join(struct.pack(">i", value) for value in slot_values), np.uint8)
    rows = np.frombuffer(b"".join(struct.pack(">iqii", *entry) for entry in entries), np.uint8)
    for one_table in (table, np.frombuffer(slots[: len(slots) // 4 * 4], np.uint8)):
        found = find_entries(one_table, rows, header, key_hash=1, begin_ms=0, end_ms=1 << 62, limit=64)
        assert len(found) <= len(entries)
        assert set(found) <= {entry[1] for entry in entries}


@given(data=logs())
def test_hashed_keys_follow_the_spec(data: bytes) -> None:
    """UNIQ_KEY comes first, then each piece of KEYS; rolled-back records have none (docs/format.md §6)."""
    buffer = np.frombuffer(data, np.uint8)
    requests = Checker().check(buffer, base_offset=0).requests
    expected: list[tuple[int, int, int]] = []
    for row in requests:

        def text(part: str, row: np.void = row) -> str:
            at = int(row[f"{part}_at"])
            return data[at : at + int(row[f"{part}_length"])].decode("utf-8", "replace")

        if int(row["sys_flag"]) & 0xC == 0xC:
            continue
        keys = [text("unique_key"), *text("keys").split(" ")]
        for key in filter(None, keys):
            value = plain_check.java_hash(f"{text('topic')}#{key}")
            key_hash = abs(value) if value != -(1 << 31) else 0
            expected.append((key_hash, int(row["physical_offset"]), int(row["store_timestamp"])))
    columns = (column.tolist() for column in hash_keys(buffer, requests))
    assert list(zip(*columns, strict=True)) == expected


@given(header=st.builds(Header, *[st.integers(-(1 << 63), (1 << 63) - 1)] * 4, st.integers(0, 99), st.integers(-3, 99)))
def test_an_index_header_survives_encode_and_decode(header: Header) -> None:
    """A header decodes unchanged; an entry number of 0 or less counts as 1."""
    encoded = encode_header(header)
    assert encoded == struct.pack(">qqqqii", *header)
    assert decode_header(encoded + b"behind") == header._replace(index_count=max(header.index_count, 1))
    assert np.frombuffer(encoded, index_layout.HEADER)[0].tolist() == tuple(header)


def test_a_key_with_the_minimum_hash_counts_as_0() -> None:
    """Topic and key whose joined hash is the minimum integer get hash 0, in every implementation."""
    topic, key = _texts_of_least_hash()
    assert plain_check.java_hash(f"{topic}#{key}") == -(1 << 31)
    assert index_file.key_hash(topic, key) == 0
    data = builders.record_bytes(topic=topic.encode(), properties=builders.properties({"KEYS": key}))
    buffer = np.frombuffer(data, np.uint8)
    hashes, _, _ = hash_keys(buffer, Checker().check(buffer, base_offset=0).requests)
    assert hashes.tolist() == [0]


def _texts_of_least_hash() -> tuple[str, str]:
    """Return a topic, and a key that completes the hash to the minimum integer, digit by digit in base 31."""
    topic = "T"
    for length in range(5, 9):
        rest = ((1 << 31) - plain_check.java_hash(f"{topic}#") * 31**length) % (1 << 32)
        for wraps in range(200_000):
            value, units = rest + (wraps << 32), []
            for _ in range(length):
                value, unit = divmod(value, 31)
                while unit < 0x30 and value > 0:
                    value, unit = value - 1, unit + 31
                units.append(unit)
            if value == 0 and all(0x30 <= unit < 0x7F for unit in units):
                return topic, "".join(map(chr, reversed(units)))
    raise AssertionError("no such key")
