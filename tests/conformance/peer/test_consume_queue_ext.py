"""ConsumeQueueExtTest, and ConsumeQueueTest with an extension (format.md §4). Files of 840 bytes, as RocketMQ's."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import STORE_MS
from tidemark.format.consume_queue_ext import ExtUnit, decode_unit, encode_unit, encode_units, to_address, to_offset
from tidemark.index.consume_queue_ext import ConsumeQueueExt
from tidemark.read.ext_reader import ExtReader
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

SIZE = 840
UNITS_A_FILE = 41  # (840 - 4) / 20
LEAST = -(1 << 63)


def opened(folder: Path) -> ConsumeQueueExt:
    return ConsumeQueueExt(MappedFileQueue(folder, SIZE, DiskStorage()))


def put(ext: ConsumeQueueExt, count: int, first: int = 0) -> list[int]:
    """Append *count* units whose tag codes and times count from *first*."""
    numbers = np.arange(first, first + count)
    addresses: list[int] = ext.append(tags_codes=numbers, store_timestamps=STORE_MS + numbers).tolist()
    return addresses


def expected_address(number: int) -> int:
    return LEAST + number // UNITS_A_FILE * SIZE + number % UNITS_A_FILE * 20


def write_with_bitmaps(folder: Path, count: int) -> list[int]:
    """Write files of units of 28 bytes, by struct: a bitmap of 64 bits each, the end mark in a full file."""
    folder.mkdir()
    addresses, per_file = [], (SIZE - 4) // 28
    for start in range(0, count, per_file):
        units = b""
        for number in range(start, min(start + per_file, count)):
            addresses.append(LEAST + start // per_file * SIZE + len(units))
            units += struct.pack(">hqqhQ", 28, number, STORE_MS + number, 8, number)
        if count - start > per_file:
            units += b"\xff\xff"
        (folder / f"{start // per_file * SIZE:020d}").write_bytes(units.ljust(SIZE, b"\0"))
    return addresses


def test_ex1_every_put_returns_a_negative_address_of_its_unit(tmp_path: Path) -> None:
    """There are several files, each with its last four bytes free."""
    ext = opened(tmp_path)
    addresses = put(ext, 100)
    assert addresses == [expected_address(number) for number in range(100)]
    assert max(addresses) < -2147483649
    assert [ext.get(address) for address in addresses] == [ExtUnit(n, STORE_MS + n) for n in range(100)]
    assert (tmp_path / f"{0:020d}").read_bytes()[820:822] == b"\xff\xff"


def test_ex1_units_with_bitmaps_are_read(tmp_path: Path) -> None:
    """A broker that calculates filters writes them; units of both kinds may follow each other."""
    addresses = write_with_bitmaps(tmp_path / "q", 70)
    ext = opened(tmp_path / "q")
    assert [ext.get(a) for a in addresses] == [ExtUnit(n, STORE_MS + n, n.to_bytes(8, "big")) for n in range(70)]
    more = put(ext, 3, first=70)
    assert opened(tmp_path / "q").max_address == more[-1] + 20
    assert [ext.get(a) for a in more] == [ExtUnit(n, STORE_MS + n) for n in range(70, 73)]
    codes = np.array([*addresses, *more], np.int64)
    assert ExtReader(tmp_path / "q").resolve(codes).tolist() == list(range(73))


def test_ex2_units_are_stored_consecutively_from_the_first_address(tmp_path: Path) -> None:
    """A walk by sizes meets every unit of a file; each has at least 20 bytes."""
    ext = opened(tmp_path)
    put(ext, UNITS_A_FILE)
    address, found = to_address(0), []
    while (unit := ext.get(address)) is not None:
        assert unit.size >= 20
        found.append(unit.tags_code)
        address += unit.size
    assert found == list(range(UNITS_A_FILE))


def test_ex3_get_of_an_undecorated_address_returns_none(tmp_path: Path) -> None:
    """An address outside, before or after, gives nothing either; readers leave such a code unchanged."""
    ext = opened(tmp_path)
    put(ext, 50)
    ext.truncate_by_min_address(expected_address(45))
    for address in (0, 1, -2147483648, (1 << 63) - 1, LEAST, expected_address(50), LEAST + 5 * SIZE):
        assert ext.get(address) is None
    codes = np.array([0, 5, -2147483648, LEAST, expected_address(45), LEAST + 5 * SIZE], np.int64)
    resolved = ExtReader(tmp_path).resolve(codes)
    assert resolved.tolist() == [0, 5, -2147483648, LEAST, 45, LEAST + 5 * SIZE]
    assert ExtReader(tmp_path / "none").resolve(codes).tolist() == codes.tolist()


@pytest.mark.parametrize("count", [1, UNITS_A_FILE - 1, UNITS_A_FILE, UNITS_A_FILE + 1, 100])
def test_ex4_a_reopened_extension_has_its_bounds(tmp_path: Path, count: int) -> None:
    """min is -2^63; max is files - 1 whole files and the units of the last one; the next unit goes there."""
    put(opened(tmp_path), count)
    ext = opened(tmp_path)
    files, units = (count - 1) // UNITS_A_FILE, (count - 1) % UNITS_A_FILE + 1
    assert (ext.min_address, ext.max_address) == (LEAST, LEAST + files * SIZE + units * 20)
    assert put(ext, 1, first=count) == [expected_address(count)]


def test_ex5_an_extension_can_be_truncated_at_both_ends(tmp_path: Path) -> None:
    """The minimum address removes whole files; the maximum address everything after its unit."""
    ext = opened(tmp_path)
    put(ext, 4 * UNITS_A_FILE)
    ext.truncate_by_min_address(LEAST + SIZE * 3 // 2)
    assert (ext.min_address, ext.files.starts) == (LEAST + SIZE, [SIZE, 2 * SIZE, 3 * SIZE])
    ext.truncate_by_max_address(LEAST + 2 * SIZE + 20)
    assert ext.max_address == LEAST + 2 * SIZE + 40
    assert ext.files.starts == [SIZE, 2 * SIZE]
    assert (tmp_path / f"{2 * SIZE:020d}").read_bytes()[40:] == bytes(SIZE - 40)
    assert opened(tmp_path).max_address == LEAST + 2 * SIZE + 40
    ext.truncate_by_max_address(None)
    assert (ext.min_address, ext.max_address, ext.files.starts) == (LEAST, LEAST, [])


def test_cq3_each_unit_of_a_brokers_queue_has_its_unit_in_the_extension(golden_store: Callable[[str], Path]) -> None:
    """Position and size are right, and the tag code is that of a plain unit."""
    root = golden_store("extension/store")
    seen = 0
    for folder in sorted((root / "consumequeue").glob("*/*")):
        units = np.frombuffer(b"".join(path.read_bytes() for path in sorted(folder.iterdir())), ">i8,>i4,>i8")
        units = units[units["f1"] > 0]
        ext = MappedFileQueue(root / "consumequeue_ext" / folder.relative_to(root / "consumequeue"), SIZE)
        for place, size, address in units.tolist():
            unit = ConsumeQueueExt(ext).get(address)
            assert unit is not None
            assert place >= 0
            assert size > 0
            assert unit.store_timestamp > 0
            assert unit.tags_code in (2598919, 2598920, -1005616417)  # TagA, TagB, BatchTest#OrderID001
            seen += 1
        addresses = units["f2"].astype(np.int64)
        resolved = ExtReader(ext.folder).resolve(addresses)
        assert resolved.tolist() == [ConsumeQueueExt(ext).get(a).tags_code for a in addresses.tolist()]  # type: ignore[union-attr]
        ext.close()
    assert seen > 100


UNITS = st.builds(
    ExtUnit, st.integers(LEAST, (1 << 63) - 1), st.integers(0, (1 << 63) - 1), st.binary(max_size=(1 << 15) - 21)
)


@given(unit=UNITS, behind=st.binary(max_size=30))
def test_ex1_decode_of_encode_is_the_same(unit: ExtUnit, behind: bytes) -> None:
    """Any bytes may follow; arrays of units are written like single ones."""
    data = encode_unit(unit)
    assert decode_unit(data + behind) == unit
    plain = unit._replace(bitmap=b"")
    assert encode_units(tags_code=[unit.tags_code], store_timestamp=[unit.store_timestamp]) == encode_unit(plain)


@given(data=st.binary(max_size=60) | UNITS.map(encode_unit).map(lambda data: data[:-1]))
def test_ex3_any_bytes_decode_to_a_unit_or_none(data: bytes) -> None:
    """Nothing is raised; a found unit encodes to its own bytes."""
    unit = decode_unit(data)
    if unit is not None:
        assert data.startswith(encode_unit(unit))


@given(offset=st.integers(0, (1 << 62)))
def test_ex3_offsets_and_addresses_are_one_to_one(offset: int) -> None:
    """An offset is never taken for an address."""
    assert to_offset(to_address(offset)) == offset
    assert to_offset(offset) is None
