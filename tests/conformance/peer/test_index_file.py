"""RocketMQ's IndexFileTest and IndexServiceTest: files of 100 slots and 400 entries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.builders import STORE_MS, properties, row_of_records
from tests.built_store import java_hash
from tests.conformance.format import vectors
from tidemark.format import index_file
from tidemark.format.check import Checker
from tidemark.format.index_file import Header, find_entries, key_hash, make_entries
from tidemark.index.key_index import KeyIndex, index_files
from tidemark.index.part_keys import hash_rows
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance

SLOTS, ENTRIES, TOPIC = 100, 400, "TopicTest"
# TopicTest#<key> has the hash -2^31, whose absolute value is negative, like `polygenelubricants` alone.
KEY_OF_LEAST_HASH = "dwtgicqdju"


def index_of_keys(folder: Path, keys: list[str]) -> tuple[list[Path], list[int]]:
    """Return the files of an index with one record a key, and each record's position."""
    log = row_of_records({"properties": properties({"KEYS": key}), "store_timestamp": STORE_MS} for key in keys)
    buffer = np.frombuffer(bytearray(log), np.uint8)
    rows = Checker().check(buffer, base_offset=0).requests
    index = KeyIndex(folder, slots=SLOTS, entries=ENTRIES, storage=DiskStorage())
    assert index.append(hash_rows(buffer, rows)) == len(keys)
    index.close()
    return index_files(folder), rows["physical_offset"].tolist()


def header_of(path: Path) -> Header:
    return index_file.decode_header(path.read_bytes()[:40])


def test_ix1_an_index_file_of_400_entries_holds_399_keys(tmp_path: Path) -> None:
    """Entry 0 is never used; the 400th key begins another file."""
    (only,), _ = index_of_keys(tmp_path / "399", [str(number) for number in range(399)])
    assert header_of(only).index_count == 400
    assert only.stat().st_size == 40 + 4 * SLOTS + 20 * ENTRIES
    (first, second), places = index_of_keys(tmp_path / "400", [str(number) for number in range(400)])
    assert header_of(first).index_count == 400
    assert (header_of(second).index_count, header_of(second).begin_physical_offset) == (2, places[399])
    assert first.read_bytes() == only.read_bytes()


def test_ix2_a_key_is_found_once(tmp_path: Path) -> None:
    """Keys 0 to 398 have positions 0 to 398: `60` finds only position 60, with a limit of ten."""
    hashes = np.array([key_hash(TOPIC, str(number)) for number in range(399)], np.int32)
    new = make_entries(
        Header(),
        np.zeros(4 * SLOTS, np.uint8),
        hashes=hashes,
        physical_offsets=np.arange(399),
        store_timestamps=np.full(399, STORE_MS),
    )
    slots = np.zeros(SLOTS, ">i4")
    slots[new.slot_numbers] = new.slot_values
    entries = np.frombuffer((bytes(20) + new.entries).ljust(20 * ENTRIES, b"\0"), np.uint8)
    arguments = {"begin_ms": 0, "end_ms": (1 << 63) - 1, "limit": 10}
    found = find_entries(slots.view(np.uint8), entries, new.header, key_hash=key_hash(TOPIC, "60"), **arguments)
    assert found == [60]


def test_ix3_a_lookup_in_an_empty_index_finds_nothing(tmp_path: Path) -> None:
    """There is no folder, an empty folder, or a file without keys."""
    assert IndexReader(tmp_path / "none").tables() == []
    index = KeyIndex(tmp_path, slots=SLOTS, entries=ENTRIES, storage=DiskStorage())
    assert IndexReader(tmp_path, slots=SLOTS, entries=ENTRIES).tables() == []
    index.close()
    empty = np.zeros(20 * ENTRIES, np.uint8)
    arguments = {"begin_ms": 0, "end_ms": (1 << 63) - 1, "limit": (1 << 31) - 1}
    assert find_entries(empty[: 4 * SLOTS], empty, Header(), key_hash=1, **arguments) == []


def test_ix4_three_puts_write_the_same_file_as_rocketmq(tmp_path: Path) -> None:
    """Four slots, four entries; K1 at 0, K2 at 4096, K1 at 8192: every byte as IndexFile wrote it; K1 gives 8192, 0."""
    hashes = np.array([key_hash(TOPIC, key) for key in ("K1", "K2", "K1")], np.int32)
    times = vectors.ST + np.array([0, 2500, 61_000])
    places = np.array([0, 4096, 8192])
    new = make_entries(Header(), np.zeros(16, np.uint8), hashes=hashes, physical_offsets=places, store_timestamps=times)
    slots = np.zeros(4, ">i4")
    slots[new.slot_numbers] = new.slot_values
    content = index_file.encode_header(new.header) + slots.tobytes() + bytes(20) + new.entries
    assert content == vectors.IDX
    data = np.frombuffer(vectors.IDX, np.uint8)
    arguments = {"begin_ms": 0, "end_ms": (1 << 63) - 1, "limit": 10}
    assert find_entries(data[40:56], data[56:], new.header, key_hash=key_hash(TOPIC, "K1"), **arguments) == [8192, 0]


def test_own10_a_key_of_the_least_hash_is_stored_with_hash_0(tmp_path: Path) -> None:
    """-2^31 has no absolute value in 32 bits: the entry has 0, is in slot 0, and is found."""
    assert java_hash("polygenelubricants") == java_hash(f"{TOPIC}#{KEY_OF_LEAST_HASH}") == -(1 << 31)
    (path,), places = index_of_keys(tmp_path, ["other", KEY_OF_LEAST_HASH])
    data = np.frombuffer(path.read_bytes(), np.uint8)
    slots, entries = data[40 : 40 + 4 * SLOTS], data[40 + 4 * SLOTS :]
    assert entries[40:44].tobytes() == bytes(4)
    assert int.from_bytes(slots[:4].tobytes(), "big") == 2
    found = find_entries(
        slots,
        entries,
        header_of(path),
        key_hash=key_hash(TOPIC, KEY_OF_LEAST_HASH),
        begin_ms=0,
        end_ms=1 << 62,
        limit=9,
    )
    assert found == [places[1]]
