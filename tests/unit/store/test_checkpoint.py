"""The mapped checkpoint."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tidemark.errors import CorruptStoreError
from tidemark.store import wake
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.storage import DiskStorage

OFFSET = 0x0102030405060708


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def test_a_new_checkpoint_is_4096_zero_bytes(path: Path) -> None:
    """A broker creates the same; every field reads 0."""
    checkpoint = Checkpoint.open_to_write(path, DiskStorage())
    assert [checkpoint.get(field) for field in Field] == [0] * 5
    assert path.read_bytes() == bytes(4096)
    checkpoint.close()


@pytest.mark.parametrize("field", Field)
def test_each_checkpoint_field_is_stored_big_endian_at_8_bytes_per_field(path: Path, field: Field) -> None:
    """Setting a field changes only its eight bytes (docs/format.md §7)."""
    checkpoint = Checkpoint.open_to_write(path, DiskStorage())
    checkpoint.set(field, OFFSET)
    expected = bytearray(4096)
    struct.pack_into(">q", expected, 8 * field, OFFSET)
    assert path.read_bytes() == expected
    checkpoint.flush()
    checkpoint.close()


def test_a_reader_sees_the_committed_offset_immediately(path: Path) -> None:
    """Reader and writer map the same file."""
    writer = Checkpoint.open_to_write(path, DiskStorage())
    reader = Checkpoint.open_read_only(path)
    writer.set(Field.CONFIRM_PHYSICAL_OFFSET, OFFSET)
    assert reader.committed_offset == OFFSET
    writer.close()
    reader.close()


def test_the_committed_word_holds_the_lowest_bytes_of_the_offset(path: Path) -> None:
    """Followers wait on the aligned word of the lowest four bytes, which changes with every commit."""
    checkpoint = Checkpoint.open_to_write(path, DiskStorage())
    address = checkpoint.committed_word_address()
    assert address is not None
    assert address % 4 == 0
    checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, OFFSET)
    assert wake.word_at(address).to_bytes(4, "little") == struct.pack(">q", OFFSET)[4:]
    checkpoint.close()


def test_a_missing_checkpoint_is_not_found(path: Path) -> None:
    """A reader does not create it."""
    with pytest.raises(FileNotFoundError):
        Checkpoint.open_read_only(path)


def test_a_short_checkpoint_is_damage(path: Path) -> None:
    """A file shorter than the layout cannot be mapped."""
    path.write_bytes(bytes(40))
    with pytest.raises(CorruptStoreError):
        Checkpoint.open_read_only(path)
