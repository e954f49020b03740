from __future__ import annotations

from dataclasses import dataclass

import pytest

from services.writer.log.batch_journal import BatchJournal
from services.writer.replication.piece import Piece
from tests.unit.writer.log.log_tails import FILE_SIZE, Tail
from tests.unit.writer.replication.replicas import Replica, joined, pieces_of, written
from tidemark.errors import DiskFullError, FlushFailedError, PieceIllegalError
from tidemark.store.batch_journal import BatchRange


def bytes_of(tail: Tail, end: int) -> bytes:
    return b"".join(tail.log.read(start, min(FILE_SIZE, end - start)) for start in range(0, end, FILE_SIZE))


def test_the_log_is_byte_for_byte_that_of_the_writer(tail: Tail, replica: Replica) -> None:
    """Over several files, with their blank records."""
    for piece in pieces_of(tail, written(tail, *[9_000] * 20)):
        replica.log.append(piece)
    assert replica.log.end == tail.tail.position > 2 * FILE_SIZE
    assert replica.bytes(replica.log.end) == bytes_of(tail, tail.tail.position)
    assert replica.files.starts == tail.log.starts


def test_several_batches_may_be_one_piece(tail: Tail, replica: Replica) -> None:
    pieces = pieces_of(tail, written(tail, 10, 3_000, 200))
    replica.log.append(joined(*pieces))
    assert replica.bytes(replica.log.end) == bytes_of(tail, tail.tail.position)
    assert replica.recovered_end() == replica.log.end


def test_a_blank_record_may_come_alone(tail: Tail, replica: Replica) -> None:
    first, *_ = pieces_of(tail, written(tail, 40_000, 40_000))
    replica.log.append(first._replace(blank=0))
    replica.log.append(Piece(first.data_end, b"", (), first.blank))
    assert replica.log.end == FILE_SIZE
    assert replica.bytes(FILE_SIZE) == bytes_of(tail, FILE_SIZE)


def test_pieces_count_after_a_sync(tail: Tail, replica: Replica) -> None:
    one, other = pieces_of(tail, written(tail, 10, 20))
    replica.log.append(one)
    assert (replica.log.synced, replica.log.sync(), replica.log.synced) == (0, one.end, one.end)
    replica.log.append(other)
    assert (replica.log.end, replica.log.synced) == (other.end, one.end)


@pytest.mark.parametrize("torn", range(24, 300, 23))
def test_a_restart_keeps_whole_batches_only(tail: Tail, replica: Replica, torn: int) -> None:
    """A power cut can lose the last bytes of the last batch."""
    one, other = pieces_of(tail, written(tail, 300, 300))
    replica.log.append(one)
    replica.log.sync()
    replica.log.append(other)
    assert replica.recovered_end(one.end) == other.end
    replica.files.write(other.end - torn, bytes(torn))
    assert replica.recovered_end(one.end) == one.end


@dataclass
class Wrong:
    """A piece with a fault, and the words of its refusal."""

    piece: Piece
    words: str


def wrongs(piece: Piece) -> dict[str, Wrong]:
    (batch,) = piece.batches
    data = bytes(piece.data)
    middle = piece.start + 100
    return {
        "gap": Wrong(piece._replace(start=piece.start + 1), f"it starts at {piece.start + 1}"),
        "repeat": Wrong(piece._replace(start=0), "it starts at 0"),
        "flipped bit": Wrong(piece._replace(data=data[:-1] + bytes([data[-1] ^ 1])), "the CRC-32 of its batch"),
        "cut": Wrong(piece._replace(data=data[:-1]), "does not follow"),
        "more bytes": Wrong(piece._replace(data=data + b"\0"), "its bytes at"),
        "no batches": Wrong(piece._replace(batches=()), "its batches end at"),
        "batches with a gap": Wrong(
            piece._replace(batches=(BatchRange(middle, batch.end, batch.crc),)), "does not follow"
        ),
        "empty batch": Wrong(piece._replace(batches=(batch._replace(end=batch.start), batch)), "does not follow"),
        "blank within the file": Wrong(piece._replace(blank=8), "does not end at"),
        "nothing": Wrong(Piece(piece.start, b"", ()), "it is empty"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", wrongs(Piece(0, b"x", (BatchRange(0, 1, 0),))))
def test_a_piece_that_does_not_continue_the_log_changes_nothing(tail: Tail, replica: Replica, kind: str) -> None:
    one, other = pieces_of(tail, written(tail, 200, 200))
    replica.log.append(one)
    wrong = wrongs(other)[kind]
    with pytest.raises(PieceIllegalError, match=wrong.words) as refused:
        replica.log.append(wrong.piece)
    assert refused.value.facts["log_end"] == one.end
    assert replica.log.end == one.end
    assert not any(replica.files.read(one.end, 4_000))
    replica.log.append(other)


@pytest.mark.parametrize("over", [0, 1])
def test_batches_end_below_the_room_of_a_blank_record(tail: Tail, replica: Replica, over: int) -> None:
    """A piece that goes beyond its file is of a log with other files."""
    (piece,) = pieces_of(tail, written(tail, 30_000))
    longer = joined(piece, Piece(piece.end, bytes(FILE_SIZE - piece.end - 8 + over), ()))
    with pytest.raises(PieceIllegalError, match=f"above {FILE_SIZE - 8} in this file" if over else "its bytes at"):
        replica.log.append(longer)


def test_a_failed_write_leaves_no_trace(tail: Tail, replica: Replica) -> None:
    one, other = pieces_of(tail, written(tail, 300, 300))
    replica.log.append(one)
    replica.log.sync()
    replica.disk.refuses_data = True
    with pytest.raises(DiskFullError):
        replica.log.append(other)
    replica.disk.refuses_data = False
    assert not any(replica.files.read(one.end, 1_000))
    assert replica.recovered_end(one.end) == one.end
    replica.log.append(other)
    assert replica.recovered_end(one.end) == other.end


def test_a_failed_write_that_cannot_be_undone_stops_the_log(tail: Tail, replica: Replica) -> None:
    (piece,) = pieces_of(tail, written(tail, 300))
    replica.disk.refuses_data = replica.disk.refuses_zeros = True
    with pytest.raises(FlushFailedError):
        replica.log.append(piece)


@pytest.mark.parametrize("sizes", [[300], [30_000] * 3], ids=["in turn", "concurrently"])
@pytest.mark.parametrize("failing", ["log", "journal"])
def test_after_a_failed_sync_no_other_sync_succeeds(
    tail: Tail, replica: Replica, monkeypatch: pytest.MonkeyPatch, failing: str, sizes: list[int]
) -> None:
    """The kernel marks the lost pages as clean, so that a second fdatasync would report nothing."""
    for piece in pieces_of(tail, written(tail, *sizes)):
        replica.log.append(piece)

    def fail(*_: object) -> None:
        raise FlushFailedError("fdatasync failed: injected")

    with monkeypatch.context() as patched:
        patched.setattr(replica.files if failing == "log" else BatchJournal, "flush", fail)
        with pytest.raises(FlushFailedError):
            replica.log.sync()
    with pytest.raises(FlushFailedError):
        replica.log.sync()
    assert replica.log.synced == 0


@pytest.mark.parametrize("kept", [0, 1, 3, 5, 6])
def test_a_cut_removes_all_later_bytes_and_appends_continue(tail: Tail, replica: Replica, kept: int) -> None:
    """Some cuts are in an earlier file."""
    pieces = pieces_of(tail, written(tail, *[30_000] * 6))
    for piece in pieces:
        replica.log.append(piece)
    point = pieces[kept - 1].data_end if kept else 0
    replica.log.cut(point)
    assert (replica.log.end, replica.log.synced) == (point, point)
    assert replica.bytes(tail.tail.position) == bytes_of(tail, tail.tail.position)[:point].ljust(
        tail.tail.position, b"\0"
    )
    assert replica.recovered_end() == point
    if kept and pieces[kept - 1].blank:
        replica.log.append(Piece(point, b"", (), pieces[kept - 1].blank))
    for piece in pieces[kept:]:
        replica.log.append(piece)
    assert replica.bytes(replica.log.end) == bytes_of(tail, tail.tail.position)
    assert replica.recovered_end() == replica.log.end
