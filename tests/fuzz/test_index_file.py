"""The key index: arbitrary tables."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from tests.fuzz.guarded import GuardedBuffer
from tests.fuzz.target import fuzz
from tests.property.strategies import HOSTILE_I4, I8
from tidemark.errors import CorruptStoreError
from tidemark.format.index_file import decode_header, find_broken_chain, find_entries
from tidemark.format.index_layout import ENTRY_SIZE

SLOTS, ENTRIES = GuardedBuffer(4096), GuardedBuffer(4096)
NUMBERS = st.integers(-2, 12) | HOSTILE_I4
ENTRY = st.tuples(st.integers(0, 5) | HOSTILE_I4, I8, NUMBERS, NUMBERS).map(lambda one: struct.pack(">iqii", *one))
TABLE = st.lists(ENTRY, min_size=1, max_size=12).map(b"".join)
SLOT_TABLE = st.lists(NUMBERS.map(lambda one: struct.pack(">i", one)), min_size=1, max_size=6).map(b"".join)
HEADER = st.tuples(I8, I8, I8, I8, HOSTILE_I4, NUMBERS).map(lambda one: struct.pack(">qqqqii", *one)) | st.binary()
TIME = st.integers(0, 1 << 42) | I8


@fuzz(
    few=150,
    at_once=2_000,
    raw=HEADER,
    slots=SLOT_TABLE,
    entries=TABLE,
    key_hash=st.integers(0, 5) | st.integers(0, (1 << 31) - 1),
    times=st.tuples(TIME, TIME),
    at_end=st.booleans(),
)
def test_index_chains_cause_no_read_outside_the_tables(
    raw: bytes, slots: bytes, entries: bytes, key_hash: int, times: tuple[int, int], at_end: bool
) -> None:
    """A circular or backward chain, or one that leaves the file, ends; the results are offsets of entries."""
    try:
        header = decode_header(raw)
    except CorruptStoreError:
        return
    slot_table, table = SLOTS.lend(slots, at_end=at_end), ENTRIES.lend(entries, at_end=at_end)
    found = find_entries(slot_table, table, header, key_hash=key_hash, begin_ms=times[0], end_ms=times[1], limit=40)
    stored = {struct.unpack_from(">q", entries, at + 4)[0] for at in range(0, len(entries), ENTRY_SIZE)}
    assert set(found) <= stored
    find_broken_chain(slot_table, table, header)
