"""Compares a repeated batch with the log: equal content gets the original's offsets, other content is a conflict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import numpy as np

from tidemark.errors import CorruptMessageError, RequestConflictError
from tidemark.format.properties import REAL_TOPIC, UNIQ_KEY, decode_properties
from tidemark.format.record import Record, decode_record
from tidemark.format.sys_flag import INNER_BATCH_FLAGS
from tidemark.format.wire_batch import remove_unique_keys, scan, unique_key_after
from tidemark.store.mapped_file_queue import MappedFileQueue

from ..batch.batch import Appended, Batch, QueueKey, Wrapper
from ..batch.delayed_message import destination_of, with_destination
from ..batch.record_encoder import Encoder, RecordPosition, u8
from .recent_batches import Earlier

_SIZE_FIELD = 4


def find_original(
    log: MappedFileQueue, batch: Batch, candidates: Iterable[Earlier], dead_end: Callable[[str], int]
) -> Appended | None:
    """Return the location of *batch*'s original, or None if no candidate is a readable record of its key.

    A record of a deleted topic is not an original: readers never see it, even if the topic was created again. Nor is
    one of a file that is being deleted, although the file can still be read.

    Args:
        dead_end: returns the physical offset below which a topic's records are dead.

    Raises:
        RequestConflictError: the key was used for other content. Fact: physical_offset.
    """
    dead_below = max(dead_end(batch.readers_topic), log.min_offset)
    for physical_offset, messages in candidates:
        if physical_offset < dead_below:
            continue
        record = _read_record(log, physical_offset)
        if record is None or not _has_key(record, batch):
            continue
        appended = _compare_both_forms(log, batch, record) if messages in (None, batch.count) else None
        if appended is None and not log.covers(physical_offset):  # expired during the comparison
            continue
        if appended is None and batch.may_share_key:  # another message with the same key: both are stored
            continue
        if appended is None:
            raise RequestConflictError(
                f"the request id or UNIQ_KEY {batch.unique_key.decode('utf-8', 'replace')[:255]!r} was already used "
                f"for other content, at physical offset {physical_offset}: use a new one for each batch",
                physical_offset=physical_offset,
            )
        return appended
    return None


def _read_record(log: MappedFileQueue, physical_offset: int) -> Record | None:
    size = int.from_bytes(log.read(physical_offset, _SIZE_FIELD), "big")
    try:
        return decode_record(log.read(physical_offset, size))
    except CorruptMessageError:  # expired or damaged: a repeat cannot be proved
        return None


def _has_key(record: Record, batch: Batch) -> bool:
    if record.topic != batch.key.topic.encode() or record.reconsume_times != batch.wrapper.reconsume_times:
        return False
    properties = decode_properties(record.properties)
    if batch.delay is not None and properties.get(REAL_TOPIC) != batch.delay.topic:
        return False
    return properties.get(UNIQ_KEY, "").encode() == batch.unique_key


def _compare_both_forms(log: MappedFileQueue, batch: Batch, first: Record) -> Appended | None:
    """Compare *batch* in its present form, and in the form of an earlier version of the writer or client.

    Earlier versions set a UNIQ_KEY on the first message of a batch only, so a batch that they stored differs from its
    repeat by the keys of the other messages.
    """
    appended = _compare(log, batch, first)
    if appended is not None or batch.delay is not None:
        return appended
    wire = batch.wire.tobytes()
    earlier = remove_unique_keys(wire, batch.unique_key)
    if earlier == wire:
        return None
    facts = scan(earlier)
    extra = (
        b""
        if batch.inner_properties is not None or facts.unique_key
        else unique_key_after(facts.first_properties, batch.unique_key)
    )
    return _compare(
        log,
        dataclasses.replace(batch, wire=u8(earlier), parts_size=facts.parts_size, first_extra=u8(extra)),
        first,
    )


def _compare(log: MappedFileQueue, batch: Batch, first: Record) -> Appended | None:
    """Encode *batch* for the location of *first* and return the location if the bytes equal those on disk."""
    is_inner = first.sys_flag & INNER_BATCH_FLAGS == INNER_BATCH_FLAGS
    if is_inner != (batch.inner_properties is not None):
        return None
    wrapper = Wrapper(first.born_host, first.born_timestamp, first.sys_flag, first.flag, first.reconsume_times)
    same = dataclasses.replace(batch, key=QueueKey(batch.key.topic, first.queue_id), wrapper=wrapper)
    if batch.delay is not None:  # the original's destination queue was chosen when it was stored
        destination = destination_of(first)
        if destination is None:
            return None
        same = with_destination(same, batch.delay._replace(queue_id=destination.queue_id))
    if is_inner:
        if first.body != batch.wire.tobytes():
            return None
        positions = first.physical_offset.to_bytes(8, "big")
        size = int.from_bytes(log.read(first.physical_offset, _SIZE_FIELD), "big")
    else:
        encoder = Encoder(first.store_host)
        size = encoder.size(same, first.queue_offset)
        again = np.empty(size, np.uint8)
        place = RecordPosition(first.queue_offset, first.physical_offset, first.store_timestamp)
        positions = encoder.encode(same, place, again)
        if log.read(first.physical_offset, size) != again.tobytes():
            return None
    batch.delay = same.delay
    return Appended(
        queue_id=first.queue_id,
        queue_offset=first.queue_offset,
        message_count=batch.count,
        physical_offset=first.physical_offset,
        end_offset=first.physical_offset + size,
        store_timestamp=first.store_timestamp,
        physical_offsets=positions,
        duplicate=True,
    )
