"""Lookup of one record by its physical offset or its offset message id (docs/format.md §14).

A body may contain bytes that look like a record, so a place counts as a record only if a unit points at it.
"""

from __future__ import annotations

import numpy as np

from tidemark.errors import (
    CorruptMessageError,
    MessageNotFoundError,
    MessageNotYetVisibleError,
    OffsetError,
    OffsetTooSmallError,
    QueueIllegalError,
    TopicNotFoundError,
)
from tidemark.format import consume_queue
from tidemark.format.host import encode_host
from tidemark.format.message_id import OffsetMessageId
from tidemark.read.messages.message_rows import host_text
from tidemark.read.pull import PulledPart
from tidemark.read.queue_reader import QueueReader
from tidemark.read.records import Records, read_record
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import UnitsGoneError
from tidemark.read.watermark import Watermark


def message_at(store: StoreReader, watermark: Watermark, physical_offset: int) -> PulledPart:
    """Return the messages of the record that starts at *physical_offset*: several for an inner batch.

    Raises MessageNotYetVisibleError above the watermark, OffsetTooSmallError below the log's minimum,
    MessageNotFoundError if no record starts there, and CorruptMessageError if the record's body is damaged.
    """
    log_min = store.log_min
    facts = {
        "physical_offset": physical_offset,
        "min_physical_offset": log_min,
        "watermark_offset": watermark.physical_offset,
        "committed_offset": watermark.committed_offset,
    }
    if physical_offset >= watermark.physical_offset:
        if physical_offset < max(_capacity_end(store), watermark.committed_offset):
            raise MessageNotYetVisibleError(
                f"physical offset {physical_offset} is not visible yet, the watermark is {watermark.physical_offset}",
                **facts,
            )
        raise MessageNotFoundError(f"physical offset {physical_offset} is after the end of the log", **facts)
    if physical_offset < log_min:
        raise OffsetTooSmallError(
            f"physical offset {physical_offset} was deleted, the log begins at {log_min}", **facts
        )
    records = read_record(store.log, physical_offset, below=watermark.physical_offset)
    if records is None:
        raise _not_found(store, physical_offset, facts)
    row = records.rows[0]
    is_damaged = row["fault"] != 0
    if (is_damaged and row["topic_length"] == 0) or not has_unit(store, watermark, records):
        raise _not_found(store, physical_offset, facts)
    if is_damaged:
        raise CorruptMessageError(
            f"the record at {physical_offset} is damaged",
            reason_of_damage=records.skipped(_NO_OFFSET)[0].reason,
            **facts,
        )
    return PulledPart(records, records.messages(), records.right)


def _not_found(store: StoreReader, physical_offset: int, facts: dict[str, int]) -> OffsetError:
    """Return the error for a missing record: not found, or expired since the log's minimum was read."""
    if physical_offset < store.log_min:
        return UnitsGoneError(f"the log file with {physical_offset} was deleted", **facts)
    return MessageNotFoundError(f"no message starts at physical offset {physical_offset}", **facts)


_NO_OFFSET = np.array([-1], np.int64)


def message_of_id(
    store: StoreReader, watermark: Watermark, message_id: OffsetMessageId, element: int | None = None
) -> PulledPart:
    """Return the messages of an id like `message_at`; the store host in the id must be the record's.

    element: index from 0 of one message of an inner batch; None for all messages of the record
    """
    part = message_at(store, watermark, message_id.physical_offset)
    message = part.messages[0]
    at = int(message["store_host_at"])
    stored = part.records.buffer[at : at + int(message["store_host_size"])].tobytes()
    if stored != encode_host(message_id.store_host):
        raise MessageNotFoundError(
            f"the message at {message_id.physical_offset} has another store host: {host_text(stored)}",
            physical_offset=message_id.physical_offset,
        )
    if element is None:
        return part
    chosen = part.messages[part.messages["inner"] == element + 1]
    if not len(chosen):
        raise MessageNotFoundError(
            f"the record at {message_id.physical_offset} has no element {element}",
            physical_offset=message_id.physical_offset,
            element=element,
        )
    return PulledPart(part.records, chosen, part.chosen)


def _capacity_end(store: StoreReader) -> int:
    listing = store.log.known
    return listing.starts[-1] + listing.file_size if listing.starts else 0


def has_unit(store: StoreReader, watermark: Watermark, records: Records, i: int = 0) -> bool:
    """Return True if a unit of record *i*'s queue points at it; in an attached store: the unit of its queue offset."""
    row = records.rows[i]
    at = int(row["topic_at"])
    topic = records.buffer[at : at + int(row["topic_length"])].tobytes().decode("utf-8", "replace")
    try:
        queue = store.queue(topic, int(row["queue_id"]))
    except (TopicNotFoundError, QueueIllegalError, ValueError):
        return False
    queue_offset = int(row["queue_offset"])
    number = find_unit(store, queue, watermark, int(row["physical_offset"]), queue_offset=queue_offset)
    if number is None:
        return False
    if not queue.is_batch and number == queue_offset:
        return True
    numbers = queue.numbers_to_check(queue.first_offsets(number, queue.run.read(number, 1)))
    return numbers is None or numbers.may_restart or int(numbers.queue_offsets[0]) == queue_offset


def find_unit(
    store: StoreReader, queue: QueueReader, watermark: Watermark, physical_offset: int, *, queue_offset: int
) -> int | None:
    """Return the number of the visible unit that points at *physical_offset*; None if there is none.

    queue_offset  of the record: nearly always the unit's number, so that one read suffices
    """
    first, end = store.bounds(queue, watermark).units
    if not queue.is_batch and first <= queue_offset < end:
        units = queue.run.read(queue_offset, 1)
        if len(units):
            found, size, _ = units[0].item()
            if found == physical_offset and 0 < size != consume_queue.PRE_BLANK_SIZE:
                return queue_offset
    number = queue.run.first_at_or_above(physical_offset, first, end)
    if number < end and int(queue.run.unit(number)["physical_offset"]) == physical_offset:
        return number
    return None
