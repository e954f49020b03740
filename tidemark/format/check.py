"""Check of a buffer record by record: DispatchRequest rows, and the place and reason of the stop.

It follows format.md §13 with verification of body CRCs, and one more rule: a record's PHYSICALOFFSET must equal its
position, because stale bytes of an older generation pass every other test.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from tidemark.format.dispatch_request import DISPATCH_REQUEST, Fault, Outcome, RequestArray, U8Array
from tidemark.format.kernels import walk as kernel
from tidemark.format.kernels.properties import N_NAMES
from tidemark.format.record import MIN_RECORD_SIZE

_OUTCOMES, _FAULTS = tuple(Outcome), tuple(Fault)  # by number: a call of an enum takes longer than the walk
_SCRATCH_SIZE = 32_767 + 4  # the longest topic of a V2 record, and a queue id
_MAX_BUFFER_SIZE = (1 << 31) - 1  # positions in rows are i4


class Crc(enum.IntEnum):
    """Handling of CRCs: of the body, and of the whole record if it has one (docs/format.md §2)."""

    OFF = kernel.CRC_OFF
    STOPS = kernel.CRC_STOPS  # a wrong one ends the walk; for recovery
    MARKS = kernel.CRC_MARKS  # a wrong one gives a row with a fault; for the indexer


class CheckResult(NamedTuple):
    """Result of a walk."""

    requests: RequestArray  # in physical order; of the requested shard, or (owned = 0) only for its light queues
    outcome: Outcome
    fault: Fault
    end_at: int  # position in the buffer of the first byte not accepted
    records: int  # number of records, of all shards
    faulty: int  # number of requests with a fault


class Checker:
    """Checker of buffers. It reuses its row buffer, so the rows of a result are valid only until the next walk.

    shard, shards  return rows only for the queues of this shard, and verify only these
    light          return rows also for all other records that name light queues (docs/format.md §2)
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
        """Check buffer[start:end].

        buffer       uint8, contiguous, less than 2 GiB; base_offset: physical offset of its byte 0
        file_end     end of the segment as position in the buffer; None if unknown. A blank record must reach it, and no
                     record may exceed it

        Invalid bytes are an outcome, not an error. Raises ValueError if base_offset is negative or the range is not
        within the buffer.
        """
        stop = buffer.size if end is None else end
        _require_stretch(buffer, base_offset, start, stop)
        wanted = min(self._max_rows, (stop - start) // MIN_RECORD_SIZE + 1)
        if self._rows.size < wanted:
            self._rows = np.empty(wanted, DISPATCH_REQUEST)
        n, at, outcome, fault, records, faulty = kernel.walk(
            buffer,
            start,
            stop,
            base_offset,
            -1 if file_end is None else file_end,
            int(self._crc),
            self._shard,
            self._shards,
            self._light,
            self._rows,
            self._found,
            self._scratch,
        )
        return CheckResult(self._rows[:n], _OUTCOMES[outcome], _FAULTS[fault], int(at), int(records), int(faulty))


def _require_stretch(buffer: U8Array, base_offset: int, start: int, stop: int) -> None:
    """Check the range, because compiled loops do not check bounds."""
    if base_offset < 0:
        raise ValueError(f"base_offset is {base_offset}, but must be 0 or more")
    if not 0 <= start <= stop <= buffer.size <= _MAX_BUFFER_SIZE or not buffer.flags.c_contiguous:
        raise ValueError(f"bytes {start} to {stop} are not a range of a contiguous buffer of {buffer.size} bytes")


def find_next_record(
    buffer: U8Array, *, base_offset: int, start: int = 0, end: int | None = None, file_end: int | None = None
) -> int | None:
    """Return the position of the next whole, valid record or of the file's blank record in buffer[start:end], or None.

    Magic, position, lengths and CRCs together prevent false matches. A record that the buffer's end truncates is not
    found. Raises ValueError like `Checker.check`.
    """
    stop = buffer.size if end is None else end
    _require_stretch(buffer, base_offset, start, stop)
    at = kernel.find_next(buffer, start, stop, base_offset, -1 if file_end is None else file_end)
    return None if at < 0 else int(at)


def shard_of(topic: bytes, queue_id: int, shards: int) -> int:
    """Return the shard that owns a queue.

    crc32(topic ‖ queue id as i32, big-endian), highest bit cleared, then murmur3's 32-bit finaliser, mod *shards*.
    """
    name = np.frombuffer(topic, np.uint8)
    return int(kernel.owner_of(name, 0, name.size, queue_id, shards, np.empty(name.size + 4, np.uint8)))
