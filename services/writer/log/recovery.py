"""Recovery: finds the log's end, cuts the torn tail, and reads queue offsets and recent batches from the log.

Below the durable floor nothing is cut: a bad record there is damage, which is logged and skipped. Above the floor the
first bad record is the torn end: all bytes from it are zeroed and synced before a new term begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from tidemark.format.check import Checker, Crc
from tidemark.format.dispatch_request import Fault, RequestArray, U8Array
from tidemark.format.queue_groups import number_queues, order_by_queue, topic_of
from tidemark.format.record import BLANK, BLANK_SIZE, MIN_RECORD_SIZE, Magic
from tidemark.format.sys_flag import TRANSACTION_MASK, SysFlag
from tidemark.index.end_of_log import durable_floor
from tidemark.index.log_walk import Damage, LogWalk
from tidemark.index.queue_ends import queue_ends
from tidemark.store.batch_journal import journaled_end, sync_journal
from tidemark.store.flushed import read_flushed_offset
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.originals.terms import current_term
from tidemark.store.originals.tombstones import load_tombstones, save_tombstones
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

from ..batch.batch import QueueKey
from ..dedup.recent_batches import TailKeys
from .queue_offsets import QueueOffsets, Snapshot, load_snapshot
from .record_starts import RecordStarts
from .segments import Segments

_WIPE_STEP = 1 << 20
_GREATEST_QUEUE_OFFSET = 1 << 58  # 20-byte units above it cannot be addressed


class Recovered(NamedTuple):
    """The result of recovery."""

    end: int  # the log's end, exclusive
    floor: int  # the durable floor
    store_timestamp: int  # of the last record, epoch milliseconds; 0 for none
    offsets: QueueOffsets
    tail_keys: TailKeys
    damages: list[Damage]
    scanned_from: int
    record_starts: tuple[int, ...]  # some physical offsets at which a record begins


def recover(paths: StorePaths, segments: Segments, *, rebuild_bytes: int, tail_bytes: int | None = None) -> Recovered:
    """Find the log's end, cut the torn tail above it, and rebuild the writer's state in memory.

    rebuild_bytes  of the log's tail are read in any case, to recognise repeated batches
    tail_bytes     of the log in which record starts are kept, for a later start that rebuilds that much; default:
                   rebuild_bytes
    """
    log = segments.log
    floor = durable_floor(paths, log)
    limit = journaled_end(paths, log, floor)
    snapshot = load_snapshot(paths.writer / "queue_offsets")
    scan: _Scan | None = None
    offsets, store_timestamp = QueueOffsets(), 0

    def scan_from(start: int, known_starts: Iterable[int] = ()) -> _Scan:
        starts = RecordStarts(rebuild_bytes if tail_bytes is None else tail_bytes, known_starts)
        return _Scan(log, offsets, start, floor, limit, TailKeys(rebuild_bytes), starts)

    if snapshot is not None and snapshot.position <= log.capacity_end:
        store_timestamp = snapshot.store_timestamp
        tail = max(snapshot.position, floor) - rebuild_bytes
        needed = max(0, min(snapshot.position, tail, limit))
        for start in _starts(log, snapshot, needed):
            offsets = snapshot.offsets.copy()
            scan = scan_from(start, (one for one in snapshot.record_starts if one < start))
            if scan.begins_with_record:
                break
        assert scan is not None, "the start of a file is always tried"
        if scan.end < snapshot.position:  # its offsets include records that were lost
            scan, offsets, store_timestamp = None, QueueOffsets(), 0
    adopted = scan is None or (snapshot is not None and snapshot.position < log.min_offset)
    if scan is None:
        scan = scan_from(log.min_offset)
    if adopted or scan.damages:
        for key, end in queue_ends(paths, below=scan.end):
            offsets.raise_to(QueueKey(*key), end)
    for tombstone in load_tombstones(paths.tombstones):
        for queue_id, next_offset in tombstone.next_offsets.items():
            offsets.raise_to(QueueKey(tombstone.topic, queue_id), next_offset)
    zero_after(segments, scan.end)
    scan.tail_keys.close()
    timestamp = max(store_timestamp, scan.store_timestamp)
    record_starts = tuple(start for start in scan.record_starts.all() if start < scan.end)
    return Recovered(scan.end, floor, timestamp, offsets, scan.tail_keys, scan.damages, scan.start, record_starts)


def recovered_snapshot(recovered: Recovered) -> Snapshot:
    """Return the queue offsets of a log that was just recovered."""
    return Snapshot(recovered.end, recovered.store_timestamp, recovered.offsets, recovered.record_starts)


def advance(snapshot: Snapshot, log: MappedFileQueue, end: int, *, tail_bytes: int) -> Snapshot:
    """Return the queue offsets when the log ended at *end*, from those of an earlier end and the records between.

    tail_bytes: as for `recover`
    """
    if end <= snapshot.position:
        return snapshot
    starts = RecordStarts(tail_bytes, snapshot.record_starts)
    scan = _Scan(log, snapshot.offsets.copy(), snapshot.position, end, end, TailKeys(0), starts)
    timestamp = max(snapshot.store_timestamp, scan.store_timestamp)
    return Snapshot(end, timestamp, scan.offsets, starts.all())


def _starts(log: MappedFileQueue, snapshot: Snapshot, needed: int) -> Iterator[int]:
    """Yield where to begin to read everything from *needed* on: known record starts, then the start of their file.

    At the snapshot's end, which may be that of the log, no record needs to begin.
    """
    file_start = max(log.min_offset, log.file_start(needed))
    if file_start < snapshot.position <= needed:
        yield snapshot.position
    known = [start for start in snapshot.record_starts if file_start < start <= needed]
    if known:
        yield max(known)
    yield file_start


class _Scan:
    """One walk to the log's end that collects queue offsets, keys and damages."""

    def __init__(
        self,
        log: MappedFileQueue,
        offsets: QueueOffsets,
        start: int,
        floor: int,
        limit: int,
        tail_keys: TailKeys,
        record_starts: RecordStarts,
    ) -> None:
        self._log = log
        self.offsets = offsets
        self.start = start
        self.end = start
        self.store_timestamp = 0
        self.damages: list[Damage] = []
        self.tail_keys = tail_keys
        self.record_starts = record_starts
        self.begins_with_record = False
        self._last_places: dict[QueueKey, int] = {}  # physical offset of each queue's last record
        self._known_end = start  # end of the last record or damage, at which a blank record may begin
        self._run(floor, limit)

    def _run(self, floor: int, limit: int) -> None:
        walk = LogWalk(self._log, self.start, Checker(crc=Crc.MARKS))
        for part in walk.parts(limit=limit, floor=floor):
            rows = part.requests
            bad = rows["fault"] != Fault.NONE
            torn = np.flatnonzero(bad & (rows["physical_offset"] >= floor))
            whole = int(torn[0]) if torn.size else rows.size
            self._take(part.buffer, rows[:whole])
            for row in rows[:whole][bad[:whole]]:
                reason = Fault(int(row["fault"])).name
                self.damages.append(Damage(int(row["physical_offset"]), int(row["message_size"]), reason))
            if torn.size:
                self.end = int(rows["physical_offset"][whole])
                return
            self.damages += part.damages
            for damage in part.damages:
                self._known_end = max(self._known_end, damage.physical_offset + damage.size)
        self.end = self._without_last_blank(walk.position)

    def _take(self, buffer: U8Array, rows: RequestArray) -> None:
        if rows.size == 0:
            return
        first = int(rows["physical_offset"][0])
        self.begins_with_record |= first == self.start
        self.record_starts.note(first)
        self._known_end = int(rows["physical_offset"][-1]) + int(rows["message_size"][-1])
        self.store_timestamp = max(self.store_timestamp, int(rows["store_timestamp"].max()))
        self.tail_keys.add(buffer, rows)
        kind = rows["sys_flag"] & TRANSACTION_MASK
        is_counted = (kind == 0) | (kind == SysFlag.TRANSACTION_COMMIT)  # half messages have no queue offset
        counted = rows if is_counted.all() else rows[is_counted]  # without a copy of all rows
        if counted.size:
            self._raise_offsets(buffer, counted)

    def _raise_offsets(self, buffer: U8Array, rows: RequestArray) -> None:
        order, edges = order_by_queue(number_queues(buffer, rows))
        for queue in np.split(np.take(rows, order), edges[1:-1]):
            topic = topic_of(buffer, queue[0]).decode("utf-8", "replace")
            self._raise_queue(QueueKey(topic, int(queue[0]["queue_id"])), queue)

    def _raise_queue(self, key: QueueKey, rows: RequestArray) -> None:
        """Raise the next offset of one queue to the end of *rows*.

        Queue offsets have no checksum, so an impossible one is damage and does not count. The pipeline has the same
        rule (ConsumeQueueBuilder): with such an offset, the queue's later messages would never become visible.
        """
        bases, ends = rows["base_offset"], rows["base_offset"] + rows["batch_size"]
        for run in np.split(np.arange(len(rows)), np.flatnonzero(bases[1:] != ends[:-1]) + 1):
            first, last = rows[run[0]], rows[run[-1]]
            if self._is_possible(key, first):
                self.offsets.raise_to(key, int(ends[run].max()))
                self._last_places[key] = int(last["physical_offset"])
            else:
                place, size = int(first["physical_offset"]), int(first["message_size"])
                self.damages.append(Damage(place, size, "QUEUE_OFFSET"))

    def _is_possible(self, key: QueueKey, row: RequestArray) -> bool:
        """Return True if the records missing before *row* would fit between it and the queue's previous record."""
        base, place = int(row["base_offset"]), int(row["physical_offset"])
        if not 0 <= base <= _GREATEST_QUEUE_OFFSET:
            return False
        if key not in self._last_places and self.offsets.next(key) == 0:  # the first known record of the queue
            return True
        if row["sys_flag"] & SysFlag.INNER_BATCH:
            return True
        missing = base - self.offsets.next(key)
        return missing <= (place - self._last_places.get(key, 0)) // MIN_RECORD_SIZE

    def _without_last_blank(self, end: int) -> int:
        """Return the log's end: if a blank record fills the last file, that is the start of the blank record."""
        if not self._log.starts or end != self._log.capacity_end:
            return end
        at = max(self._known_end, self._log.starts[-1])
        data = self._log.read(at, BLANK_SIZE)
        if len(data) == BLANK_SIZE and BLANK.unpack(data) == (end - at, Magic.BLANK):
            return at
        return end


def sync_files(paths: StorePaths, segments: Segments, recovered: Recovered, storage: Storage) -> None:
    """Make the recovered log durable, because a killed writer may have left unsynced bytes.

    The journal is synced, too: recovery reads it again if the machine stops before a new term has begun.
    """
    sync_journal(paths, storage)
    _write_again(paths, segments, recovered)
    log = segments.log
    for start in log.starts:
        if start >= log.file_start(recovered.scanned_from) and start < recovered.end:
            log.flush(start)


def _write_again(paths: StorePaths, segments: Segments, recovered: Recovered) -> None:
    """Write the bytes again that an earlier run since the machine's boot did not sync.

    After a failed sync the page cache marks such pages as clean, and the next sync would succeed although the disk
    never got them.
    """
    flushed = read_flushed_offset(paths.flushed)
    if flushed is None or not current_term(paths.terms).is_of_this_boot():
        return
    offset, log = max(flushed, segments.log.min_offset), segments.log
    while offset < recovered.end:
        data = log.read(offset, min(_WIPE_STEP, recovered.end - offset))
        if not data:
            return
        log.write(offset, data)
        offset += len(data)


def lower_tombstones(paths: StorePaths, end: int, storage: Storage) -> None:
    """Lower tombstones above *end* to it: they cover lost records, but must not cover new records stored there."""
    stones = load_tombstones(paths.tombstones)
    if any(stone.physical_offset > end for stone in stones):
        lowered = [stone._replace(physical_offset=min(stone.physical_offset, end)) for stone in stones]
        save_tombstones(paths.tombstones, lowered, storage)


def zero_after(segments: Segments, end: int) -> None:
    """Leave only zero bytes after *end*, durably, and at most one file after the file that contains *end*."""
    log = segments.log
    last = log.file_start(end)
    for start in [start for start in reversed(log.starts) if start > last]:
        if start > last + log.file_size or _wipe_file(segments, start, start, look=True):
            log.delete_file(start)
    if log.covers(end):
        _wipe_file(segments, end, last, look=False)


def _wipe_file(segments: Segments, offset: int, start: int, *, look: bool) -> bool:
    """Zero a file from *offset*. With *look*, only return whether it has other bytes."""
    end = start + segments.size
    while (offset := segments.next_data(offset)) < end:
        step_end = min(offset + _WIPE_STEP, end)
        if not look:
            segments.wipe(offset, step_end)
        elif not segments.is_zero(offset, step_end - offset):
            return True
        offset = step_end
    return False
