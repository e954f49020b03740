"""A scan gives its readers the same results as a walk over the log."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders import Placed, properties, write_log
from tidemark.format.check import Checker, Crc
from tidemark.index.dispatch import runs_by_queue
from tidemark.index.log_walk import LogPart, LogWalk
from tidemark.index.scan.log_range import LogRange, ScannedRanges, ranges_of
from tidemark.index.scan.range_files import RangeFiles, read_progress
from tidemark.index.scan.scan_range import scan_range
from tidemark.index.scan.scanned_log import ScannedLog
from tidemark.store.mapped_file_queue import MappedFileQueue

FILE_SIZE = 4096
COMPARED = ["physical_offset", "queue_offset", "tags_code", "store_timestamp", "base_offset", "message_size"]
COMPARED += ["batch_size", "sys_flag", "fault", "owned"]


def fields(count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Yield records of several topics and queues: with and without keys, inner batches, transactions, light queues."""
    choice = random.Random(seed)
    for i in range(count):
        entries = {"TAGS": choice.choice("abc")}
        if choice.random() < 0.7:
            entries["KEYS"] = " ".join(f"k{choice.randrange(20)}" for _ in range(choice.randrange(1, 4)))
        if choice.random() < 0.3:
            entries |= {"INNER_MULTI_DISPATCH": "%LMQ%one,%LMQ%two", "INNER_MULTI_QUEUE_OFFSET": f"{i},{i + 1}"}
        if choice.random() < 0.2:
            entries |= {"INNER_NUM": "3", "INNER_BASE": str(3 * i)}
        yield {
            "topic": choice.choice([b"orders", b"flights", "größe".encode()]),
            "queue_id": choice.randrange(3),
            "queue_offset": i,
            "sys_flag": choice.choice([0, 0, 0, 4, 8, 12]),
            "body": bytes(choice.randrange(200)),
            "properties": properties(entries),
            "store_timestamp": 1_700_000_000_000 + i,
        }


class Log:
    """A log of several files, and scans of it. end: the physical offset after its last record."""

    def __init__(self, root: Path, count: int = 120) -> None:
        self.folder = root / "commitlog"
        self.scans = root / "scan"
        self.scans.mkdir()
        self.placed: list[Placed] = write_log(self.folder, FILE_SIZE, fields(count))
        self.end = self.placed[-1].physical_offset + len(self.placed[-1].data)

    def open(self) -> MappedFileQueue:
        return MappedFileQueue(self.folder, FILE_SIZE)

    def ranges(self, size_bytes: int = 2 * FILE_SIZE) -> list[LogRange]:
        return list(ranges_of(self.open(), 0, self.end, size_bytes=size_bytes))

    def scan(self, *, light: bool = True, chunk: int = 1000) -> list[LogRange]:
        ranges = self.ranges()
        assert len(ranges) > 2
        for each in ranges:
            scan_range(self.open(), each, self.scans, floor=self.end, light=light, chunk_size_bytes=chunk)
        return ranges

    def damage(self, record: int, byte: int) -> None:
        """Flip a byte of a record."""
        at = self.placed[record].physical_offset + byte
        with (self.folder / f"{at - at % FILE_SIZE:020d}").open("r+b") as file:
            file.seek(at % FILE_SIZE)
            old = file.read(1)
            file.seek(at % FILE_SIZE)
            file.write(bytes([old[0] ^ 0xFF]))

    def walk(self, position: int = 0, *, shard: int = 0, shards: int = 1, light: bool = True) -> LogWalk:
        checker = Checker(crc=Crc.MARKS, shard=shard, shards=shards, light=light)
        return LogWalk(self.open(), position, checker, chunk_size_bytes=1000)

    def scanned(self, ranges: list[LogRange], position: int = 0, *, shard: int = 0, shards: int = 1) -> ScannedLog:
        walk = self.walk(position, shard=shard, shards=shards)
        return ScannedLog(ScannedRanges(self.scans, tuple(ranges)), walk, shard=shard, shards=shards)


Seen = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[Any], int]


def seen(log: Log, walk: LogWalk | ScannedLog) -> Seen:
    """Return the rows with the names of their queues and light queues, the keys, the damages and the end."""
    rows: list[tuple[Any, ...]] = []
    keys: list[tuple[Any, ...]] = []
    damages: list[Any] = []
    for part in walk.parts(limit=log.end, floor=log.end):
        for run in runs_by_queue(part.buffer, part.requests):
            rows += [
                (run.topic, run.queue_id, *(int(row[name]) for name in COMPARED), *texts(part, row))
                for row in run.requests
            ]
        keys += zip(*(column.tolist() for column in part.hashed_keys()), strict=True)
        damages += part.damages
        assert walk.position == part.end_offset
    return sorted(rows, key=lambda row: row[2]), keys, damages, walk.position


def texts(part: LogPart, row: np.void) -> list[bytes]:
    places = [(int(row[f"{name}_at"]), int(row[f"{name}_length"])) for name in ("multi_dispatch", "multi_offsets")]
    return [part.buffer[at : at + length].tobytes() for at, length in places]


@pytest.mark.parametrize("damaged", [[], [(5, 100)], [(5, 4), (40, 0), (41, 95)], [(119, 90)]])
def test_a_scanned_log_equals_a_walked_log(tmp_path: Path, damaged: list[tuple[int, int]]) -> None:
    """Scan and log agree, also if some positions cannot be read."""
    log = Log(tmp_path)
    for record, byte in damaged:
        log.damage(record, byte)
    ranges = log.scan()
    walked = seen(log, log.walk())
    assert len(walked[0]) > 60 and len(walked[1]) > 60 and bool(walked[2]) == any(byte < 30 for _, byte in damaged)
    assert seen(log, log.scanned(ranges)) == walked


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_a_scan_for_a_shard_equals_the_walk_of_that_shard(tmp_path: Path, shard: int) -> None:
    """A shard's own walk gives the same; damage is reported to one shard."""
    log = Log(tmp_path)
    log.damage(30, 4)
    ranges = log.scan()
    walked = seen(log, log.walk(shard=shard, shards=3))
    scanned = seen(log, log.scanned(ranges, shard=shard, shards=3))
    assert scanned[0] == walked[0] and scanned[3] == walked[3]
    assert {row[-3] for row in walked[0]} == {0, 1}
    assert len(walked[2]) == 1
    assert scanned[2] == (walked[2] if shard == 0 else [])


def test_a_scanned_log_can_be_read_from_any_record(tmp_path: Path) -> None:
    """Another reader may have stopped in the middle of a scanned part."""
    log = Log(tmp_path)
    ranges = log.scan()
    for record in log.placed[::7]:
        begin = record.physical_offset
        assert seen(log, log.scanned(ranges, begin)) == seen(log, log.walk(begin))


@pytest.mark.parametrize("kept", [[0], [1], [0, 2], [-1], []])
def test_ranges_without_a_scan_are_walked(tmp_path: Path, kept: list[int]) -> None:
    log = Log(tmp_path)
    ranges = log.scan()
    assert seen(log, log.scanned([ranges[i] for i in kept])) == seen(log, log.walk())


def test_a_torn_log_end_within_a_range_ends_the_scan(tmp_path: Path) -> None:
    """A torn end above the floor is no damage."""
    log = Log(tmp_path)
    log.damage(118, 0)
    torn = log.placed[118].physical_offset
    ranges = log.ranges()
    for each in ranges:
        scan_range(log.open(), each, log.scans, floor=torn)
    source = log.scanned(ranges)
    damages = [damage for part in source.parts(limit=log.end, floor=torn) for damage in part.damages]
    assert source.position == torn and damages == []


def test_a_scan_is_reused_until_the_log_changes(tmp_path: Path) -> None:
    log = Log(tmp_path)
    first = log.ranges()[0]
    done = scan_range(log.open(), first, log.scans, floor=log.end)
    again = scan_range(log.open(), first, log.scans, floor=log.end)
    assert (done.reused, again.reused) == (False, True)
    assert done.records == sum(record.physical_offset < first.end for record in log.placed)
    log.damage(3, 4)
    assert scan_range(log.open(), first, log.scans, floor=log.end).damages == 1
    assert not scan_range(log.open(), first, log.scans, floor=log.end, light=True).reused


def test_an_incomplete_scan_is_not_reused(tmp_path: Path) -> None:
    """Rows are renamed last; keys without rows, or a truncated file, do not count."""
    log = Log(tmp_path)
    first = log.ranges()[0]
    files = RangeFiles(log.scans, first)
    scan_range(log.open(), first, log.scans, floor=log.end)
    assert read_progress(log.scans) == first.size
    files.rows.write_bytes(files.rows.read_bytes()[:-5])
    assert not files.is_scan_of(log.open(), light=False)
    files.rows.unlink()
    assert not scan_range(log.open(), first, log.scans, floor=log.end).reused


def test_scan_ranges_are_whole_files_and_cover_the_log(tmp_path: Path) -> None:
    log = Log(tmp_path)
    ranges = ranges_of(log.open(), 5000, log.end, size_bytes=9000)
    assert ranges[0].start == 5000 and ranges[-1].end == log.end
    assert all(left.end == right.start for left, right in itertools.pairwise(ranges))
    assert all(each.end % FILE_SIZE == 0 and each.size <= 9000 for each in ranges[:-1])
    assert ranges_of(log.open(), log.end, log.end) == ()
