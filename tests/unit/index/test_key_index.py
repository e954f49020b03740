"""The key index as a series of files: rolls, repair after a kill, truncation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.builders import properties, row_of_records
from tidemark.errors import StoreContradictionError
from tidemark.format import index_file, index_layout
from tidemark.format.check import Checker
from tidemark.format.index_file import Header, file_size, find_entries, key_hash
from tidemark.index.key_index import KeyIndex, index_files
from tidemark.index.part_keys import hash_rows
from tidemark.store.storage import DiskStorage

SLOTS, ENTRIES = 16, 40


def open_index(folder: Path) -> KeyIndex:
    return KeyIndex(folder, slots=SLOTS, entries=ENTRIES, storage=DiskStorage())


def walk(count: int, first: int = 0) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return records with two keys each, `k<i mod 5>` and `only<i>`: the buffer, its rows, their positions."""
    log = row_of_records(
        {"properties": properties({"UNIQ_KEY": f"only{i}", "KEYS": f"k{i % 5}"})} for i in range(first, first + count)
    )
    buffer = np.frombuffer(bytearray(log), np.uint8)
    rows = Checker().check(buffer, base_offset=0).requests.copy()
    return buffer, rows, rows["physical_offset"].tolist()


def look_up(folder: Path, key: str) -> list[int]:
    """Return the physical offsets of a key's hash over all files, newest first."""
    found: list[int] = []
    for path in reversed(index_files(folder)):
        data = np.frombuffer(path.read_bytes(), np.uint8)
        entries_at = index_file.entry_at(SLOTS, 0)
        found += find_entries(
            data[40:entries_at],
            data[entries_at:],
            index_file.decode_header(data[:40].tobytes()),
            key_hash=key_hash("TopicTest", key),
            begin_ms=0,
            end_ms=1 << 62,
            limit=100,
        )
    return found


def test_every_key_is_found_across_index_files(tmp_path: Path) -> None:
    """There are 100 records with two keys each, and 39 keys a file: entry 0 is unused (docs/format.md §6)."""
    buffer, rows, places = walk(100)
    index = open_index(tmp_path)
    assert index.append(hash_rows(buffer, rows)) == 200
    assert len(index_files(tmp_path)) == 6  # ceil(200 / 39)
    assert all(path.stat().st_size == 40 + 4 * SLOTS + 20 * ENTRIES for path in index_files(tmp_path))
    for i in (0, 19, 20, 99):
        assert look_up(tmp_path, f"only{i}") == [places[i]]
    assert look_up(tmp_path, "k3") == [places[i] for i in range(98, 0, -5)]


@pytest.mark.parametrize("step", [1, 3, 7, 50])
def test_index_files_do_not_depend_on_the_append_size(tmp_path: Path, step: int) -> None:
    """Few slots are written one by one, many in runs of pages: the bytes are the same."""
    buffer, rows, _ = walk(100)
    open_index(tmp_path / "one").append(hash_rows(buffer, rows))
    index = open_index(tmp_path / "many")
    for start in range(0, 100, step):
        index.append(hash_rows(buffer, rows[start : start + step]))
    contents = [[path.read_bytes() for path in index_files(tmp_path / folder)] for folder in ("one", "many")]
    assert contents[0] == contents[1]


def test_keys_appended_to_a_wide_slot_table_are_found(tmp_path: Path) -> None:
    """A wide slot table is written in runs with gaps between them."""
    buffer, rows, places = walk(300)
    index = KeyIndex(tmp_path, slots=200_000, entries=1000, storage=DiskStorage())
    index.append(hash_rows(buffer, rows))
    data = np.frombuffer(index_files(tmp_path)[0].read_bytes(), np.uint8)
    header = index_file.decode_header(data[:40].tobytes())
    table, entries = data[40 : index_file.entry_at(200_000, 0)], data[index_file.entry_at(200_000, 0) :]
    for i in range(300):
        wanted = key_hash("TopicTest", f"only{i}")
        found = find_entries(table, entries, header, key_hash=wanted, begin_ms=0, end_ms=1 << 62, limit=9)
        assert found == [places[i]]


def test_a_builder_killed_between_slots_and_header_is_repaired(tmp_path: Path) -> None:
    """Slots that point at entries unknown to the header are set back to known ones."""
    buffer, rows, places = walk(15)
    index = open_index(tmp_path / "a")
    index.append(hash_rows(buffer, rows[:10]))
    path = index_files(tmp_path / "a")[0]
    header = path.read_bytes()[:40]
    index.append(hash_rows(buffer, rows[10:]))
    whole = path.read_bytes()
    path.write_bytes(header + whole[40:])  # killed before the header was written
    again = open_index(tmp_path / "a")
    again.repair()
    assert look_up(tmp_path / "a", "k0") == [places[5], places[0]]
    again.append(hash_rows(buffer, rows[10:]))
    assert path.read_bytes() == whole


def test_truncation_drops_index_files_of_cut_records_and_returns_the_resume_offset(tmp_path: Path) -> None:
    """Building from that position gives the same index as one that never had the cut records."""
    buffer, rows, places = walk(100)
    index = open_index(tmp_path / "a")
    index.append(hash_rows(buffer, rows))
    resume = index.resume_at(places[70])
    assert resume in places
    index.truncate(places[70])
    assert index.resume_at(resume) <= resume, "it must hold for a repeated call after a crash"
    index.append(hash_rows(buffer, rows[places.index(resume) : 70]))
    assert look_up(tmp_path / "a", "only70") == []
    assert look_up(tmp_path / "a", "only69") == [places[69]]
    assert look_up(tmp_path / "a", "k3") == [places[i] for i in range(68, 0, -5)]


def test_truncation_does_not_stop_at_an_empty_newest_file(tmp_path: Path) -> None:
    """Its builder was killed before it wrote to it; the previous file has entries of cut records."""
    buffer, rows, places = walk(100)
    index = open_index(tmp_path)
    index.append(hash_rows(buffer, rows))
    newest = index_files(tmp_path)[-1]
    newest.with_name(str(int(newest.name) + 1)).write_bytes(bytes(newest.stat().st_size))
    again = open_index(tmp_path)
    resume = again.resume_at(places[70])
    assert resume < places[70]
    again.truncate(places[70])
    again.begin(resume)
    again.append(hash_rows(buffer, rows[places.index(resume) : 70]))
    assert look_up(tmp_path, "only70") == []
    assert look_up(tmp_path, "only69") == [places[69]]


def test_index_file_names_ascend_even_within_one_millisecond(tmp_path: Path) -> None:
    """A name is 17 digits of local time, at least one millisecond after the previous one."""
    buffer, rows, _ = walk(100)
    open_index(tmp_path).append(hash_rows(buffer, rows))
    names = [path.name for path in index_files(tmp_path)]
    assert all(len(name) == 17 and name.isdigit() for name in names)
    assert names == sorted(set(names))


def test_index_files_of_another_size_are_refused(tmp_path: Path) -> None:
    """The numbers of slots and entries are settings that the files do not contain."""
    (tmp_path / "20260101000000000").write_bytes(bytes(file_size(SLOTS, ENTRIES) + 20))
    with pytest.raises(StoreContradictionError):
        open_index(tmp_path)


def test_an_empty_index_file_is_removed(tmp_path: Path) -> None:
    """A crash during its creation leaves it empty."""
    (tmp_path / "20260101000000000").write_bytes(b"")
    open_index(tmp_path)
    assert index_files(tmp_path) == []


def test_a_new_index_file_continues_from_the_full_one(tmp_path: Path) -> None:
    """Its first time difference counts from the old file's end, its header from the entry (docs/format.md §6)."""
    buffer, rows, _ = walk(25)
    rows["store_timestamp"] = 1_700_000_000_000 + 3000 * np.arange(25)
    open_index(tmp_path).append(hash_rows(buffer, rows))
    second = index_files(tmp_path)[1].read_bytes()
    header = index_file.decode_header(second)
    assert header == Header(
        begin_timestamp=int(rows["store_timestamp"][19]),
        end_timestamp=int(rows["store_timestamp"][24]),
        begin_physical_offset=int(rows["physical_offset"][19]),
        end_physical_offset=int(rows["physical_offset"][24]),
        hash_slot_count=header.hash_slot_count,
        index_count=12,  # 50 keys: 39 in the first file, 11 here
    )
    first_entry = np.frombuffer(second, index_layout.ENTRY, count=1, offset=index_file.entry_at(SLOTS, 1))[0]
    # key 40 belongs to record 19, as does key 39, which ended the first file
    assert first_entry["time_difference"] == 0


def test_index_files_of_expired_records_are_deleted_except_the_newest(tmp_path: Path) -> None:
    """The physical offset of a file's last record decides; keys of existing records are still found."""
    buffer, rows, places = walk(100)
    index = open_index(tmp_path)
    index.append(hash_rows(buffer, rows))
    ends = [index_file.decode_header(path.read_bytes()[:40]).end_physical_offset for path in index_files(tmp_path)]
    assert index.expire(ends[1]) == 1
    assert index.expire(ends[1]) == 0
    assert index.expire(ends[1] + 1) == 1
    assert look_up(tmp_path, "only99") == [places[99]]
    assert look_up(tmp_path, "only0") == []
    assert index.expire(1 << 62) == 3
    assert len(index_files(tmp_path)) == 1
    more, more_rows, more_places = walk(1, first=500)
    index.append(hash_rows(more, more_rows))
    assert look_up(tmp_path, "only500") == more_places
