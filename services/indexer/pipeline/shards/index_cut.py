"""Cuts the key index at a physical offset, entry by entry, and updates the marks that publish it."""

from __future__ import annotations

import numpy as np

from tidemark.format.check import Checker, Crc
from tidemark.index.key_index import KeyIndex
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks

from ..plan import EpochPlan

_SIZE_FIELD = 4


def cut_index(index: KeyIndex, physical_end: int, plan: EpochPlan, marks: Marks) -> None:
    """Remove keys of records at or above *physical_end*. The caller has lowered the marks to `KeyIndex.cut_at`.

    Before a file is removed, the marks name the newest file that stays. Otherwise a start after a crash would miss the
    named file, blame a broker for the loss, and build the whole index again.
    """
    if index.is_cut_at(physical_end):
        return
    marks.say_index_synced(False)
    log = plan.open_log()
    try:
        index.cut(
            physical_end,
            store_time_of=lambda place: _store_time(log, place),
            before_drop=lambda name: _name_newest(marks, name),
        )
    finally:
        log.close()
    marks.set_index_file(index.newest_file)


def _name_newest(marks: Marks, name: int) -> None:
    marks.set_index_file(name)
    marks.flush()


def _store_time(log: MappedFileQueue, physical_offset: int) -> int | None:
    """Return the store timestamp of the record at *physical_offset*; None if the log holds no record there."""
    size = int.from_bytes(log.read(physical_offset, _SIZE_FIELD), "big", signed=True)
    if not 0 < size <= log.file_size:
        return None
    record = np.frombuffer(log.read(physical_offset, size), np.uint8)
    rows = Checker(crc=Crc.OFF).check(record, base_offset=physical_offset).requests
    return int(rows["store_timestamp"][0]) if len(rows) else None
