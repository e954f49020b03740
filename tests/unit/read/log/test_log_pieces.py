"""Records, blank ends and gaps in a range of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import MAGIC_V2, Placed, write_log
from tidemark.read.file_run import FileRun
from tidemark.read.log.log_pieces import LogStretch, Piece, PieceKind

FILE_SIZE = 4096
WHOLE = 1 << 20


def pieces(folder: Path, start: int, end: int, *, most: int = 100, most_bytes: int = WHOLE) -> tuple[list[Piece], int]:
    """Return the pieces, and the position to continue from."""
    stretch = LogStretch(FileRun(folder), start, end=end, most=most, most_bytes=most_bytes)
    return stretch.pieces(), stretch.position


def end_of(placed: list[Placed]) -> int:
    return placed[-1].physical_offset + len(placed[-1].data)


@pytest.fixture
def placed(tmp_path: Path) -> list[Placed]:
    """Write two files: three records and a blank end, then two records."""
    fields = [{"body": b"x" * 1000, "topic": b"a", "queue_offset": number} for number in range(3)]
    fields += [{"body": b"y" * 900, "topic": "ü".encode(), "queue_id": 3, "magic": MAGIC_V2}, {"topic": b"a"}]
    return write_log(tmp_path, FILE_SIZE, fields)


def test_records_and_blank_records_are_listed_in_order_without_gaps(tmp_path: Path, placed: list[Placed]) -> None:
    """Each piece begins at the end of the previous one."""
    found, position = pieces(tmp_path, 0, end_of(placed))
    assert [piece.kind.value for piece in found] == ["V1", "V1", "V1", "BLANK", "V2", "V1"]
    assert [piece.physical_offset for piece in found[1:]] == [
        piece.physical_offset + piece.size for piece in found[:-1]
    ]
    assert position == end_of(placed)


def test_a_listed_record_names_its_queue(tmp_path: Path, placed: list[Placed]) -> None:
    record = pieces(tmp_path, FILE_SIZE, end_of(placed))[0][0]
    assert (record.topic, record.queue_id, record.queue_offset, record.message_count) == ("ü", 3, 0, 1)
    assert (record.size, record.fault) == (len(placed[3].data), None)


def test_pages_together_list_the_whole_log(tmp_path: Path, placed: list[Placed]) -> None:
    """Each page has one piece."""
    position, found = 0, []
    while position < end_of(placed):
        page, position = pieces(tmp_path, position, end_of(placed), most=1)
        found += page
    assert found == pieces(tmp_path, 0, end_of(placed))[0]


def test_a_range_that_begins_within_a_record_begins_with_a_gap(tmp_path: Path, placed: list[Placed]) -> None:
    """The next piece is the next record."""
    gap, record, *_ = pieces(tmp_path, 17, end_of(placed))[0]
    assert (gap.kind, gap.physical_offset, gap.size) == (PieceKind.GAP, 17, len(placed[0].data) - 17)
    assert record.physical_offset == placed[1].physical_offset


def test_a_damaged_head_is_a_gap_up_to_the_next_record(tmp_path: Path, placed: list[Placed]) -> None:
    """The gap has the fault."""
    change(tmp_path, placed[1].physical_offset + 4)
    found = pieces(tmp_path, 0, end_of(placed))[0]
    assert (found[1].kind, found[1].fault, found[1].size) == (PieceKind.GAP, "MAGIC", len(placed[1].data))
    assert found[2].kind is PieceKind.V1


def test_a_record_with_a_damaged_body_has_a_fault(tmp_path: Path, placed: list[Placed]) -> None:
    change(tmp_path, placed[1].physical_offset + 500)
    assert [piece.fault for piece in pieces(tmp_path, 0, FILE_SIZE)[0]] == [None, "BODY_CRC", None, None]


def test_a_missing_file_is_one_gap(tmp_path: Path) -> None:
    placed = write_log(tmp_path, FILE_SIZE, [{"body": b"x" * 3000}] * 3)
    (tmp_path / f"{FILE_SIZE:020d}").unlink()
    gaps = [piece for piece in pieces(tmp_path, 0, end_of(placed))[0] if piece.kind is PieceKind.GAP]
    assert [(gap.physical_offset, gap.size, gap.fault) for gap in gaps] == [(FILE_SIZE, FILE_SIZE, "FILE_MISSING")]


def test_a_first_record_above_the_byte_limit_is_returned(tmp_path: Path) -> None:
    """The first record is always returned."""
    placed = write_log(tmp_path, WHOLE, [{"body": b"x" * 600_000}, {"body": b"y"}])
    found, position = pieces(tmp_path, 0, end_of(placed), most_bytes=4096)
    assert [piece.size for piece in found] == [len(placed[0].data)]
    assert position == placed[1].physical_offset


def test_the_record_after_a_long_gap_is_found(tmp_path: Path) -> None:
    """The record is beyond the first read."""
    placed = write_log(tmp_path, 4 * WHOLE, [{"body": b"x" * 2 * WHOLE}, {"body": b"y"}])
    found, _ = pieces(tmp_path, 17, end_of(placed), most_bytes=4 * WHOLE)
    assert [piece.physical_offset for piece in found] == [17, placed[1].physical_offset]


def test_uncommitted_records_are_not_listed(tmp_path: Path, placed: list[Placed]) -> None:
    """A limit within a record leaves a gap; a limit at the start leaves nothing."""
    found, position = pieces(tmp_path, 0, placed[1].physical_offset + 10)
    assert [(piece.kind, piece.size) for piece in found] == [(PieceKind.V1, len(placed[0].data)), (PieceKind.GAP, 10)]
    assert position == placed[1].physical_offset + 10
    assert pieces(tmp_path, 0, 0) == ([], 0)


def test_a_log_without_files_has_no_pieces(tmp_path: Path) -> None:
    assert pieces(tmp_path / "none", 0, 100) == ([], 0)


def change(folder: Path, place: int) -> None:
    """Change the byte at *place*."""
    path = folder / f"{place - place % FILE_SIZE:020d}"
    data = bytearray(path.read_bytes())
    data[place % FILE_SIZE] ^= 0xFF
    path.write_bytes(data)
