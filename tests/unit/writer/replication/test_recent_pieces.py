from __future__ import annotations

import pytest

from services.writer.replication.piece import Piece
from services.writer.replication.recent_pieces import RecentPieces
from tidemark.store.batch_journal import BatchRange

SIZE = 100


def piece(start: int, size: int = SIZE, blank: int = 0) -> Piece:
    return Piece(start, bytes(size), (), blank)


def recent(count: int, *, most_bytes: int = 1 << 20, end: int = 1_000) -> RecentPieces:
    """Return *count* pieces after physical offset *end*, none of them committed."""
    pieces = RecentPieces(end, most_bytes=most_bytes)
    for number in range(count):
        pieces.add(piece(end + SIZE * number))
    return pieces


def starts(pieces: RecentPieces, start: int, most_bytes: int = 1 << 20) -> list[int] | None:
    found = pieces.following(start, most_bytes=most_bytes)
    return None if found is None else [one.start for one in found]


def test_pieces_follow_an_offset_in_their_order() -> None:
    pieces = recent(3)
    assert pieces.end == 1_300
    assert starts(pieces, 1_000) == [1_000, 1_100, 1_200]
    assert starts(pieces, 1_200) == [1_200]
    assert starts(pieces, 1_300) == []


@pytest.mark.parametrize("start", [0, 999, 1_050, 1_299])
def test_an_offset_that_is_no_pieces_start_is_read_from_the_files(start: int) -> None:
    """A stream continues here at the next piece."""
    pieces = recent(3)
    assert starts(pieces, start) is None
    assert pieces.next_start(start) == {0: 1_000, 999: 1_000, 1_050: 1_100, 1_299: 1_300}[start]


@pytest.mark.parametrize(("most_bytes", "count"), [(1, 1), (SIZE, 1), (2 * SIZE, 2), (3 * SIZE - 1, 2), (9 * SIZE, 3)])
def test_a_turn_of_a_stream_is_limited_but_has_a_piece(most_bytes: int, count: int) -> None:
    assert starts(recent(3), 1_000, most_bytes) == [1_000, 1_100, 1_200][:count]


def test_uncommitted_pieces_are_kept_beyond_the_limit() -> None:
    pieces = recent(5, most_bytes=2 * SIZE)
    assert starts(pieces, 1_000) == [1_000, 1_100, 1_200, 1_300, 1_400]
    pieces.committed(1_250)
    assert starts(pieces, 1_200) == [1_200, 1_300, 1_400]
    assert starts(pieces, 1_100) is None
    pieces.committed(1_500)
    assert starts(pieces, 1_300) == [1_300, 1_400]
    assert starts(pieces, 1_200) is None


def test_committed_pieces_are_kept_within_the_limit() -> None:
    """Also those that are committed before the next ones come."""
    pieces = recent(2, most_bytes=2 * SIZE)
    pieces.committed(1_200)
    assert starts(pieces, 1_000) == [1_000, 1_100]
    pieces.add(piece(1_200))
    assert starts(pieces, 1_100) == [1_100, 1_200]
    assert starts(pieces, 1_000) is None


def test_a_blank_record_is_a_part_of_its_piece() -> None:
    pieces = RecentPieces(0, most_bytes=1 << 20)
    pieces.add(piece(0, blank=924))
    pieces.add(piece(1_024))
    assert starts(pieces, 0) == [0, 1_024]
    assert starts(pieces, SIZE) == [SIZE, 1_024], "the blank record alone"
    assert starts(pieces, SIZE + 1) is None
    assert pieces.next_start(SIZE) == 1_024


def test_a_replica_that_kept_some_batches_of_a_piece_gets_the_others() -> None:
    """It was killed within the write of the piece."""
    batches = tuple(BatchRange(start, start + 10, start) for start in (0, 10, 20))
    pieces = RecentPieces(0, most_bytes=1 << 20)
    pieces.add(Piece(0, bytes(range(30)), batches))
    found = pieces.following(10, most_bytes=1)
    assert found is not None
    ((start, data, rest, *_),) = found
    assert (start, bytes(data), rest) == (10, bytes(range(10, 30)), batches[1:])
    assert starts(pieces, 15) is None, "within a batch"


def test_each_addition_is_reported() -> None:
    ends: list[int] = []
    pieces = RecentPieces(0, most_bytes=1, on_added=lambda: ends.append(pieces.end))
    pieces.add(piece(0))
    pieces.add(piece(SIZE))
    assert ends == [SIZE, 2 * SIZE]
