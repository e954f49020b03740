"""Index files of the golden stores, rebuilt from their logs with hash_keys and make_entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.conformance.format.golden import COMPLETE, INDEX_SIZES, STORES, data_files, walk_log
from tidemark.format import index_file
from tidemark.format.index_file import Header, hash_keys, make_entries
from tidemark.format.index_layout import ENTRY, ENTRY_SIZE, HEADER_SIZE

pytestmark = pytest.mark.conformance

GoldenStore = Callable[[str], Path]


class Key(NamedTuple):
    """A key of the log, in the index's order."""

    key_hash: int
    physical_offset: int
    store_timestamp: int


class BrokersFile(NamedTuple):
    """An index file as the broker left it."""

    content: bytes
    header: Header
    entries: NDArray[np.void]  # from entry 1 on


def keys_of_log(store: Path) -> list[Key]:
    keys: list[Key] = []
    for file in walk_log(store):
        hashes, offsets, times = hash_keys(file.buffer, file.result.requests)
        keys.extend(map(Key, hashes.tolist(), offsets.tolist(), times.tolist()))
    return keys


def index_files(name: str, store: Path) -> Iterator[BrokersFile]:
    slots, entries = INDEX_SIZES[name.split("/", maxsplit=1)[0]]
    for path in data_files(store / "index"):
        content = path.read_bytes()
        assert len(content) == index_file.file_size(slots, entries)
        header = index_file.decode_header(content)
        table = np.frombuffer(content, ENTRY, offset=index_file.entry_at(slots, 0))
        yield BrokersFile(content, header, table[1 : header.index_count])


def in_the_brokers_order(keys: list[Key], file: BrokersFile, position: int) -> tuple[list[Key], int]:
    """Return the file's keys as in the log from *position* on. A restart may repeat one record's keys."""
    taken: list[Key] = []
    for entry in file.entries:
        found = (int(entry["key_hash"]), int(entry["physical_offset"]))
        if position < len(keys) and keys[position][:2] == found:
            position += 1
            taken.append(keys[position - 1])
            continue
        again = [key for key in keys[max(position - 8, 0) : position] if key[:2] == found]
        assert again, f"{found} is not the log's next key"
        taken.append(again[-1])
    return taken, position


@pytest.mark.parametrize("name", COMPLETE)
def test_index_files_equal_those_of_the_broker(golden_store: GoldenStore, name: str) -> None:
    """Header, slots and entries of every file are compared, each made in one run from the end of the previous one."""
    store = golden_store(name)
    keys = keys_of_log(store)
    n_slots, n_entries = INDEX_SIZES[name.split("/", maxsplit=1)[0]]
    header, position, repeated = Header(), 0, 0
    for file in index_files(name, store):
        taken, next_position = in_the_brokers_order(keys, file, position)
        repeated += len(taken) - (next_position - position)
        position = next_position
        slots = np.zeros(4 * n_slots, np.uint8)
        new = make_entries(
            header,
            slots,
            hashes=np.array([key.key_hash for key in taken], np.int32),
            physical_offsets=np.array([key.physical_offset for key in taken], np.int64),
            store_timestamps=np.array([key.store_timestamp for key in taken], np.int64),
        )
        slots.view(">i4")[new.slot_numbers] = new.slot_values
        made = index_file.encode_header(new.header) + slots.tobytes() + bytes(ENTRY_SIZE) + new.entries
        assert made.ljust(index_file.file_size(n_slots, n_entries), b"\0") == file.content
        end = new.header
        header = Header(
            end.end_timestamp, end.end_timestamp, end.end_physical_offset, end.end_physical_offset, 0, 1
        )  # docs/format.md §6: a follow-up file begins with the old one's end
    assert position == len(keys)
    assert repeated <= {"mixed/store": 0, "killed/store-recovered": 8}[name]


@pytest.mark.parametrize("name", STORES)
def test_every_indexed_key_is_found_again(golden_store: GoldenStore, name: str) -> None:
    """find_entries in the broker's own files returns every entry, newest first."""
    n_slots, _ = INDEX_SIZES[name.split("/", maxsplit=1)[0]]
    for file in index_files(name, golden_store(name)):
        data = np.frombuffer(file.content, np.uint8)
        entries_at = index_file.entry_at(n_slots, 0)
        for key_hash in np.unique(file.entries["key_hash"])[:50].tolist():
            found = index_file.find_entries(
                data[HEADER_SIZE:entries_at],
                data[entries_at:],
                file.header,
                key_hash=key_hash,
                begin_ms=0,
                end_ms=1 << 62,
                limit=10_000,
            )
            expected = file.entries[file.entries["key_hash"] == key_hash]["physical_offset"].tolist()
            assert found == expected[::-1]
