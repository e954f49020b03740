"""Scans one range: walks it, verifies it, and writes the builders' input."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tidemark.format.check import Checker, Crc
from tidemark.index.log_walk import DEFAULT_CHUNK_SIZE_BYTES, LogWalk
from tidemark.index.scan.log_range import LogRange
from tidemark.index.scan.range_files import RangeFiles
from tidemark.store.mapped_file_queue import MappedFileQueue


@dataclass
class RangeProgress:
    """Result of one range's scan: a row of a job's result. Offsets are physical."""

    start_offset: int
    end_offset: int
    records: int = 0
    keys: int = 0
    damages: int = 0
    reused: bool = False  # an earlier scan was reused
    seconds: float = 0.0


def scan_range(
    log: MappedFileQueue,
    log_range: LogRange,
    folder: Path,
    *,
    floor: int,
    light: bool = False,
    chunk_size_bytes: int = DEFAULT_CHUNK_SIZE_BYTES,
) -> RangeProgress:
    """Scan *log_range* into *folder*, unless a current scan exists.

    floor  a bad record below it is damage; see LogWalk
    light  keep the names of light queues
    """
    files = RangeFiles(folder, log_range)
    if files.is_scan_of(log, light=light):
        return RangeProgress(log_range.start, log_range.end, reused=True)
    began = time.monotonic()
    walk = LogWalk(log, log_range.start, Checker(crc=Crc.MARKS, light=light), chunk_size_bytes=chunk_size_bytes)
    parts = walk.parts(limit=log_range.end, floor=floor)
    done = files.write(log, parts, light=light)
    return RangeProgress(
        log_range.start,
        done.end_offset,
        records=done.records,
        keys=done.keys,
        damages=done.damages,
        seconds=time.monotonic() - began,
    )
