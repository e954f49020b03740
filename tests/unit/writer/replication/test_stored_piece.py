from __future__ import annotations

from pathlib import Path

import pytest

from services.writer.replication.piece import Piece
from services.writer.replication.stored_piece import StoredPieces
from tests.open_files import open_files
from tests.unit.writer.log.log_tails import FILE_SIZE, Tail
from tests.unit.writer.replication.replicas import Replica, written
from tests.unit.writer.replication.test_replica_log import bytes_of
from tidemark.errors import CorruptMessageError, OffsetTooSmallError
from tidemark.store.mapped_file_queue import MappedFileQueue


def stored(tail: Tail) -> StoredPieces:
    return StoredPieces(MappedFileQueue(Path(tail.log.folder), FILE_SIZE))


def all_pieces(tail: Tail, most_bytes: int) -> list[Piece]:
    found: list[Piece] = []
    pieces, at = stored(tail), 0
    while at < tail.tail.position:
        found.append(pieces.piece(at, tail.tail.position, most_bytes=most_bytes))
        at = found[-1].end
    return found


@pytest.mark.parametrize("most_bytes", [1, 700, 10_000, 1 << 20])
def test_a_replica_gets_the_writers_log(tail: Tail, replica: Replica, most_bytes: int) -> None:
    """The log has several files and batches of several records of several sizes."""
    written(tail, *[100, 9_000, 500, 20_000] * 7)
    found = all_pieces(tail, most_bytes)
    for piece in found:
        replica.log.append(piece)
    assert replica.log.end == tail.tail.position > 3 * FILE_SIZE
    assert replica.bytes(replica.log.end) == bytes_of(tail, tail.tail.position)
    assert replica.recovered_end() == replica.log.end
    assert all(len(piece.data) <= max(most_bytes, 21_000) for piece in found)


def test_only_committed_records_are_sent(tail: Tail) -> None:
    first, _ = written(tail, 300, 300)
    assert first.appended is not None
    end = first.appended.end_offset
    assert stored(tail).piece(0, end, most_bytes=1 << 20).end == end


def test_a_file_that_came_later_is_found(tail: Tail) -> None:
    written(tail, 40_000)
    pieces = stored(tail)
    written(tail, 40_000)
    assert pieces.piece(FILE_SIZE, tail.tail.position, most_bytes=1 << 20).end == tail.tail.position


def test_a_file_that_was_deleted_is_named_as_missing(tail: Tail) -> None:
    """It is no damage: retention deletes files while a stream reads them."""
    written(tail, 40_000, 40_000)
    pieces = stored(tail)
    (Path(tail.log.folder) / f"{0:020}").unlink()
    with pytest.raises(OffsetTooSmallError) as refused:
        pieces.piece(0, tail.tail.position, most_bytes=1 << 20)
    assert refused.value.facts == {"min_offset": FILE_SIZE, "max_offset": tail.tail.position}


def test_no_file_stays_open(tail: Tail) -> None:
    """A stream lives for weeks, and would keep the disk space of all deleted files that it has sent."""
    written(tail, 9_000, 9_000)
    before = open_files(Path(tail.log.folder))
    pieces = stored(tail)
    assert pieces.piece(0, tail.tail.position, most_bytes=1 << 20).data
    assert open_files(Path(tail.log.folder)) == before


@pytest.mark.parametrize("at", [4, 30, 200])
def test_a_damaged_record_is_not_sent(tail: Tail, at: int) -> None:
    """The records before it are."""
    first, second = written(tail, 300, 300)
    assert first.appended is not None and second.appended is not None
    start = second.appended.physical_offset
    (byte,) = tail.log.read(start + at, 1)
    tail.log.write(start + at, bytes([byte ^ 0x40]))
    pieces = stored(tail)
    assert pieces.piece(0, tail.tail.position, most_bytes=1 << 20).end == start
    with pytest.raises(CorruptMessageError) as raised:
        pieces.piece(start, tail.tail.position, most_bytes=1 << 20)
    assert raised.value.facts["physical_offset"] == start
