"""Walk a buffer record by record: DispatchRequest rows, and why and where it stopped.

format.md §13, with body CRC verification, and one more rule: a record's PHYSICALOFFSET equals its position (stale bytes
of an older generation pass every other test).
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from tidemark.format.dispatch_request import DISPATCH_REQUEST, Fault, Outcome, RequestArray, U8Array
from tidemark.format.kernels import walk as kernel
from tidemark.format.kernels.properties import N_NAMES
from tidemark.format.record import MIN_RECORD_SIZE

_SCRATCH_SIZE = 32_767 + 4  # the longest topic a V2 record can hold, and a queue id
_MAX_BUFFER_SIZE = (1 << 31) - 1  # places in rows are i4


class Crc(enum.IntEnum):
    """What a walk does about CRCs: the body's, and the whole record's where it carries one (docs/format.md §2)."""

    OFF = kernel.CRC_OFF
    STOPS = kernel.CRC_STOPS  # a wrong one ends the walk: recovery
    MARKS = kernel.CRC_MARKS  # a wrong one gets a row with a fault: the indexer, which goes on


class CheckResult(NamedTuple):
    """What a walk saw."""

    requests: RequestArray  # in physical order; of the asked shard, or (owned = 0) for its light queues alone
    outcome: Outcome
    fault: Fault
    end_at: int  # where it stopped, in the buffer's count: first byte not accepted
    records: int  # records seen, of all shards


class Checker:
    """Walks buffers; keeps its row buffer between walks, so the rows of a result are valid until the next walk.

    shard, shards  rows only for the queues of this shard, and only these are verified
    light          rows also for all other records that name light queues (docs/format.md §2)
    """

    def __init__(
        self, *, crc: Crc = Crc.STOPS, shard: int = 0, shards: int = 1, light: bool = False, max_rows: int = 65_536
    ) -> None:
        self._crc = crc
        self._shard = shard
        self._shards = shards
        self._light = light
        self._max_rows = max_rows
        self._rows = np.empty(0, DISPATCH_REQUEST)
        self._found = np.empty((N_NAMES, 2), np.int64)
        self._scratch = np.empty(_SCRATCH_SIZE, np.uint8)

    def check(
        self, buffer: U8Array, *, base_offset: int, start: int = 0, end: int | None = None, file_end: int | None = None
    ) -> CheckResult:
        """Walk buffer[start:end].

        buffer       uint8, contiguous, less than 2 GiB; base_offset: physical offset of its byte 0
        file_end     where the segment ends, in the buffer's count; None when unknown. A blank record must reach it, no
                     record may pass it
        raises       nothing for bad bytes: they are an outcome. ValueError for a negative base_offset and for a stretch
                     that is not within the buffer
        """
        stop = buffer.size if end is None else end
        _require_stretch(buffer, base_offset, start, stop)
        wanted = min(self._max_rows, (stop - start) // MIN_RECORD_SIZE + 1)
        if self._rows.size < wanted:
            self._rows = np.empty(wanted, DISPATCH_REQUEST)
        n, at, outcome, fault, records = kernel.walk(
            buffer,
            start,
            stop,
            base_offset,
            -1 if file_end is None else file_end,
            int(self._crc),
            self._shard,
            self._shards,
            self._light,
            self._rows[:wanted],
            self._found,
            self._scratch,
        )
        return CheckResult(self._rows[:n], Outcome(outcome), Fault(fault), int(at), int(records))


def _require_stretch(buffer: U8Array, base_offset: int, start: int, stop: int) -> None:
    """Compiled loops do not check bounds."""
    if base_offset < 0:
        raise ValueError(f"base_offset is {base_offset}")
    if not 0 <= start <= stop <= buffer.size <= _MAX_BUFFER_SIZE or not buffer.flags.c_contiguous:
        raise ValueError(f"bytes {start} to {stop} of a buffer of {buffer.size}")


def find_next_record(
    buffer: U8Array, *, base_offset: int, start: int = 0, end: int | None = None, file_end: int | None = None
) -> int | None:
    """Where the next whole and right record (or the file's blank record) starts in buffer[start:end]; None if nowhere.

    Safe by magic, position, lengths and CRCs together. A record cut off by the buffer's end is not found. ValueError as
    `Checker.check`.
    """
    stop = buffer.size if end is None else end
    _require_stretch(buffer, base_offset, start, stop)
    at = kernel.find_next(buffer, start, stop, base_offset, -1 if file_end is None else file_end)
    return None if at < 0 else int(at)


def shard_of(topic: bytes, queue_id: int, shards: int) -> int:
    """The shard that owns a queue: crc32(topic ‖ queue id as i32, big-endian), highest bit cleared, then murmur3's
    32-bit finaliser, mod *shards*."""
    name = np.frombuffer(topic, np.uint8)
    return int(kernel.owner_of(name, 0, name.size, queue_id, shards, np.empty(name.size + 4, np.uint8)))
