"""The walk over a log: parts, rolls, damage below the floor, the torn end above it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.builders import Placed, write_log
from tidemark.format.check import Checker, Crc
from tidemark.index.log_walk import Damage, LogWalk
from tidemark.store.mapped_file_queue import MappedFileQueue

FILE_SIZE = 4096


def make_log(folder: Path, count: int = 60, body: bytes = b"0123456789" * 5) -> list[Placed]:
    """Write *count* records of one queue in 4 KiB files."""
    return write_log(folder, FILE_SIZE, ({"body": body, "queue_offset": i} for i in range(count)))


def end_of(placed: list[Placed]) -> int:
    return placed[-1].physical_offset + len(placed[-1].data)


def walk_all(
    folder: Path, *, floor: int, chunk: int = 1 << 16, position: int = 0
) -> tuple[list[int], list[Damage], int]:
    """Return the physical offsets, the damages, and the position where the walk ended."""
    log = MappedFileQueue(folder, FILE_SIZE)
    walk = LogWalk(log, position, Checker(crc=Crc.STOPS), chunk_size_bytes=chunk)
    seen: list[int] = []
    damages: list[Damage] = []
    for part in walk.parts(limit=log.capacity_end, floor=floor):
        seen.extend(part.requests["physical_offset"].tolist())
        damages.extend(part.damages)
    return seen, damages, walk.position


def overwrite(folder: Path, at: int, data: bytes) -> None:
    with (folder / f"{at - at % FILE_SIZE:020d}").open("r+b") as file:
        file.seek(at % FILE_SIZE)
        file.write(data)


@pytest.mark.parametrize("chunk", [200, 256, 1000, 4096, 1 << 16])
def test_a_walk_returns_every_record_once_for_any_chunk_size(tmp_path: Path, chunk: int) -> None:
    """Chunks cut records and rolls end files; no record is lost or repeated."""
    placed = make_log(tmp_path)
    seen, damages, end = walk_all(tmp_path, floor=0, chunk=chunk)
    assert seen == [record.physical_offset for record in placed]
    assert damages == []
    assert end == end_of(placed)


def test_a_record_longer_than_the_chunk_is_read_whole(tmp_path: Path) -> None:
    """The buffer grows to the record."""
    placed = make_log(tmp_path, count=3, body=bytes(1500))
    assert walk_all(tmp_path, floor=0, chunk=128)[0] == [record.physical_offset for record in placed]


@pytest.mark.parametrize("chunk", [1 << 15, 1 << 16, (1 << 16) + 1, 1 << 20])
def test_parts_of_any_size_are_read_whole(tmp_path: Path, chunk: int) -> None:
    """Small and large parts are read into different buffers."""
    placed = write_log(tmp_path, 1 << 20, ({"body": bytes(1000), "queue_offset": i} for i in range(300)))
    log = MappedFileQueue(tmp_path, 1 << 20)
    limit = end_of(placed)
    parts = LogWalk(log, 0, Checker(crc=Crc.STOPS), chunk_size_bytes=chunk).parts(limit=limit, floor=limit)
    seen = [place for part in parts for place in part.requests["physical_offset"].tolist()]
    assert seen == [record.physical_offset for record in placed]


@pytest.mark.parametrize("crc", [Crc.STOPS, Crc.MARKS])
def test_bytes_that_are_wrong_only_once_are_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crc: Crc
) -> None:
    """The part is read once more, to distinguish a read error from damage on disk."""
    placed = make_log(tmp_path, count=5)
    read_into, reads = MappedFileQueue.read_into, itertools.count()

    def wrong_once(log: MappedFileQueue, offset: int, buffer: memoryview) -> int:
        got = read_into(log, offset, buffer)
        if next(reads) == 0:
            buffer[90] ^= 1  # of the first body
        return got

    monkeypatch.setattr(MappedFileQueue, "read_into", wrong_once)
    limit = end_of(placed)
    walk = LogWalk(MappedFileQueue(tmp_path, FILE_SIZE), 0, Checker(crc=crc))
    (part,) = walk.parts(limit=limit, floor=limit)
    assert (part.damages, part.requests["fault"].tolist()) == ([], [0] * 5)
    assert next(reads) == 2


def test_the_walk_stops_at_the_limit(tmp_path: Path) -> None:
    """Nothing at or above the committed offset is read."""
    placed = make_log(tmp_path)
    log = MappedFileQueue(tmp_path, FILE_SIZE)
    walk = LogWalk(log, 0, Checker())
    limit = placed[7].physical_offset
    parts = walk.parts(limit=limit, floor=limit)
    seen = [place for part in parts for place in part.requests["physical_offset"].tolist()]
    assert seen == [record.physical_offset for record in placed[:7]]
    assert walk.position == limit


@pytest.mark.parametrize(
    ("byte", "reason"), [(4, "MAGIC"), (0, "LENGTH"), (30, "POSITION"), (90, "BODY_CRC"), (87, "LENGTH")]
)
def test_a_bad_record_above_the_floor_ends_the_log(tmp_path: Path, byte: int, reason: str) -> None:
    """The log ends at a torn tail of any kind."""
    placed = make_log(tmp_path)
    bad = placed[20]
    overwrite(tmp_path, bad.physical_offset + byte, bytes([bad.data[byte] ^ 0x11]))
    seen, damages, end = walk_all(tmp_path, floor=bad.physical_offset)
    assert seen == [record.physical_offset for record in placed[:20]]
    assert damages == []
    assert end == bad.physical_offset


@pytest.mark.parametrize(
    ("byte", "reason"), [(4, "MAGIC"), (0, "LENGTH"), (30, "POSITION"), (90, "BODY_CRC"), (87, "LENGTH")]
)
def test_a_bad_record_below_the_floor_is_reported_and_the_walk_continues(
    tmp_path: Path, byte: int, reason: str
) -> None:
    """Damage is reported with its position, size and reason; nothing else is lost."""
    placed = make_log(tmp_path)
    bad = placed[20]
    overwrite(tmp_path, bad.physical_offset + byte, bytes([bad.data[byte] ^ 0x11]))
    seen, damages, end = walk_all(tmp_path, floor=end_of(placed))
    assert seen == [record.physical_offset for record in placed if record is not bad]
    assert damages == [Damage(bad.physical_offset, len(bad.data), reason)]
    assert end == end_of(placed)


def test_a_damaged_blank_record_costs_only_the_rest_of_its_file(tmp_path: Path) -> None:
    """The walk continues with the next file."""
    placed = make_log(tmp_path)
    last_of_first = max(record.physical_offset + len(record.data) for record in placed if record.physical_offset < 4096)
    overwrite(tmp_path, last_of_first, bytes(8))
    seen, damages, _ = walk_all(tmp_path, floor=end_of(placed))
    assert seen == [record.physical_offset for record in placed]
    assert damages == [Damage(last_of_first, FILE_SIZE - last_of_first, "MAGIC")]


def test_stale_records_after_the_end_are_not_returned(tmp_path: Path) -> None:
    """A whole record of an older generation, right but for its position, ends the log."""
    placed = make_log(tmp_path, count=5)
    overwrite(tmp_path, end_of(placed), placed[2].data)
    seen, damages, end = walk_all(tmp_path, floor=0)
    assert (len(seen), damages, end) == (5, [], end_of(placed))


def test_a_missing_file_below_the_floor_is_damage(tmp_path: Path) -> None:
    """The hole is reported, and the following files are read."""
    placed = make_log(tmp_path)
    (tmp_path / f"{FILE_SIZE:020d}").unlink()
    log = MappedFileQueue(tmp_path, FILE_SIZE)
    walk = LogWalk(log, 0, Checker())
    parts = list(walk.parts(limit=end_of(placed), floor=end_of(placed)))
    damages = [damage for part in parts for damage in part.damages]
    assert damages == [Damage(FILE_SIZE, FILE_SIZE, "FILE_MISSING")]
    assert walk.position == end_of(placed)


def test_a_log_that_begins_above_zero_is_read_from_its_first_file(tmp_path: Path) -> None:
    """Expired files are no damage."""
    placed = write_log(tmp_path, FILE_SIZE, ({"queue_offset": i} for i in range(5)), first_offset=3 * FILE_SIZE)
    assert walk_all(tmp_path, floor=0)[0] == [record.physical_offset for record in placed]


def test_a_walk_continues_at_the_minimum_when_files_expire(tmp_path: Path) -> None:
    """No damage is reported, no file is skipped, and a part reports that the range is done."""
    placed = make_log(tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    walk = LogWalk(MappedFileQueue(tmp_path, FILE_SIZE), 0, Checker(), chunk_size_bytes=512)
    limit = end_of(placed)
    parts = walk.parts(limit=limit, floor=limit)
    next(parts)
    for path in files[:2]:
        path.unlink()
    walk.close()
    expired = next(parts)
    assert (len(expired.requests), expired.damages, expired.end_offset) == (0, [], 2 * FILE_SIZE)
    seen: list[int] = []
    for part in parts:
        seen += part.requests["physical_offset"].tolist()
        assert part.damages == []
    assert seen == [record.physical_offset for record in placed if record.physical_offset >= 2 * FILE_SIZE]


def test_an_empty_log_is_walked_to_its_minimum(tmp_path: Path) -> None:
    """A follower reaches the committed offset even if no record is left below it."""
    (tmp_path / f"{2 * FILE_SIZE:020d}").write_bytes(bytes(FILE_SIZE))
    walk = LogWalk(MappedFileQueue(tmp_path, FILE_SIZE), 0, Checker())
    ends = [part.end_offset for part in walk.parts(limit=2 * FILE_SIZE, floor=2 * FILE_SIZE)]
    assert (ends, walk.position) == ([2 * FILE_SIZE], 2 * FILE_SIZE)
