"""Places of the messages that may have a key, from the key index without reading other messages.

Readers read only these places and check the keys there: a message may have another key with the same hash, or the key
as its unique key. No message may be missing, so if the index may be incomplete the result is None, and readers scan all
messages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidemark.errors import QueueIllegalError, StoreContradictionError, TopicNotFoundError
from tidemark.format.index_file import ENTRIES_A_SLOT, key_hash
from tidemark.format.index_layout import ENTRY
from tidemark.format.record import HEAD, Magic
from tidemark.format.topic_name import LIGHT_QUEUE_PREFIX
from tidemark.read.lookup.index_reader import IndexReader, IndexTable
from tidemark.read.records import read_record
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark

_UNREADABLE = "\ufffd"  # replacement for invalid UTF-8, whose original bytes the index has hashed
_MOST_LENGTH = 32_767  # limit for all properties of a message


class QueuePlace(NamedTuple):
    """Place of a message."""

    queue_id: int
    queue_offset: int


class _UnknownError(Exception):
    """The index does not contain the answer."""


def places_of_key(
    store: StoreReader, watermark: Watermark, *, topic: str, key: str, most: int
) -> list[QueuePlace] | None:
    """Return the places, in log order, of all visible messages of *topic* with *key*, and possibly of some others.

    None if there are more than *most*, or if the index may be incomplete: in an attached store, for inner batches, or
    if index files are missing or do not have the default layout. Raises TopicNotFoundError.
    """
    if store.topic(topic).is_batch or not can_be_indexed(topic, key) or store.paths.is_attached:
        return None
    try:
        hits = _hits(store, watermark, topic, key, most)
        found = [_place(store, watermark, topic, physical_offset) for physical_offset in hits]
    except (_UnknownError, StoreContradictionError):
        return None
    return [place for place in found if place is not None]


def can_be_indexed(topic: str, key: str) -> bool:
    """Return True if an index can contain *key* of messages of *topic* in this form."""
    has_length = 0 < len(key) <= _MOST_LENGTH
    return has_length and _UNREADABLE not in key and not topic.startswith(LIGHT_QUEUE_PREFIX)


def _hits(store: StoreReader, watermark: Watermark, topic: str, key: str, most: int) -> list[int]:
    """Return the physical offsets of all live records with the key's hash, ascending."""
    hits: set[int] = set()
    hashed, least = key_hash(topic, key), max(store.log_min, store.dead_end(topic))
    for table in _tables(store):
        found, more = table.oldest(hashed, after=least - 1, below=watermark.physical_offset, limit=most + 1)
        hits.update(found)
        if more or len(hits) > most:
            raise _UnknownError
    return sorted(hits)


def _tables(store: StoreReader) -> list[IndexTable]:
    """Return all index files. Raises unless the newest one that the pipeline has published is among them."""
    marks = store.watermarks.marks
    tables = IndexReader(store.paths.index).tables()
    names = {int(table.path.name) for table in tables}
    if marks is None or marks.index_file not in names or not all(map(_is_laid_out, tables)):
        raise _UnknownError
    return tables


def _is_laid_out(table: IndexTable) -> bool:
    """Return True if the slots have the default layout: the last entry's slot leads to it or to a newer entry."""
    slots = table.slots.view(">i4")
    entries = table.entries[: len(table.entries) // ENTRY.itemsize * ENTRY.itemsize].view(ENTRY)
    last = table.header.index_count - 1
    if len(entries) != ENTRIES_A_SLOT * len(slots) or last < 1:
        return False
    number = int(slots[int(entries["key_hash"][last]) % len(slots)])
    return last <= number < len(entries)


def _place(store: StoreReader, watermark: Watermark, topic: str, physical_offset: int) -> QueuePlace | None:
    """Return the place of the record at *physical_offset* in a queue of *topic*; None if it is of another topic."""
    head = store.log.read(physical_offset, HEAD.itemsize)
    if len(head) == HEAD.itemsize:
        record = np.frombuffer(head, HEAD)[0]
        place = QueuePlace(int(record["queue_id"]), int(record["queue_offset"]))
        if record["magic"] in (Magic.V1, Magic.V2) and _points_at(store, watermark, topic, place, physical_offset):
            return place
    records = read_record(store.log, physical_offset, below=watermark.physical_offset)
    if records is None or not records.right[0]:
        raise _UnknownError
    at, length = int(records.rows["topic_at"][0]), int(records.rows["topic_length"][0])
    if records.buffer[at : at + length].tobytes() == topic.encode():  # although it is not in its queue
        raise _UnknownError
    return None


def _points_at(store: StoreReader, watermark: Watermark, topic: str, place: QueuePlace, physical_offset: int) -> bool:
    """Return True if the visible unit at *place* of a queue of *topic* points at that record."""
    try:
        queue = store.queue(topic, place.queue_id)
    except (QueueIllegalError, TopicNotFoundError):
        return False
    first, end = store.bounds(queue, watermark).units
    if not first <= place.queue_offset < end:
        return False
    units = queue.run.read(place.queue_offset, 1)
    return len(units) == 1 and int(units["physical_offset"][0]) == physical_offset
