"""Where the messages lie that may carry a key: the key index tells it without a look at any other message.

Readers go to these places alone, and look at the keys there: what lies at a place may have another key of equal hash,
or the key as its unique one. What must not happen is that a message is left out. So wherever the index cannot be
trusted to know all of them the answer is None, and readers look at every message.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidemark.errors import QueueIllegalError, StoreContradictionError, TopicNotFoundError
from tidemark.format.index_file import ENTRIES_A_SLOT, ENTRY, key_hash
from tidemark.format.key_chain import oldest_entries
from tidemark.format.record import HEAD, Magic
from tidemark.read.lookup.index_reader import IndexReader, IndexTable
from tidemark.read.lookup.key_lookup import read_sized
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark

_LIGHT_QUEUE = "%LMQ%"  # its messages are indexed under another topic (docs/format.md §2)
_UNREADABLE = "\ufffd"  # stands for bytes that are no UTF-8: the index has hashed something else
_MOST_LENGTH = 32_767  # of all properties of a message together


class QueuePlace(NamedTuple):
    """A message's place."""

    queue_id: int
    queue_offset: int


class _UnknownError(Exception):
    """The index does not tell."""


def places_of_key(
    store: StoreReader, watermark: Watermark, *, topic: str, key: str, most: int
) -> list[QueuePlace] | None:
    """Places, in the order of the log, of all visible messages of *topic* that carry *key*, and maybe of some others.

    None where they are more than *most*, or where the index does not know all keys: of an attached store, of messages
    inside inner batches, of a store whose index files are not there or laid out in another way than by default
    raises TopicNotFoundError
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
    """Whether an index could have *key* of messages of *topic* at all, in this very form."""
    has_length = 0 < len(key) <= _MOST_LENGTH
    return has_length and _UNREADABLE not in key and not topic.startswith(_LIGHT_QUEUE)


def _hits(store: StoreReader, watermark: Watermark, topic: str, key: str, most: int) -> list[int]:
    """Return the physical offsets of all living records with the key's hash, ascending."""
    hits: set[int] = set()
    hashed, least = key_hash(topic, key), max(store.log_min, store.dead_end(topic))
    for table in _tables(store):
        found, more = oldest_entries(
            table.slots,
            table.entries,
            table.header,
            key_hash=hashed,
            after=least - 1,
            below=watermark.physical_offset,
            limit=most + 1,
        )
        hits.update(found.tolist())
        if more or len(hits) > most:
            raise _UnknownError
    return sorted(hits)


def _tables(store: StoreReader) -> list[IndexTable]:
    """All index files, the newest one that the pipeline has told of among them."""
    marks = store.watermarks.marks
    tables = IndexReader(store.paths.index).tables()
    names = {int(table.path.name) for table in tables}
    if marks is None or marks.index_file not in names or not all(map(_is_laid_out, tables)):
        raise _UnknownError
    return tables


def _is_laid_out(table: IndexTable) -> bool:
    """Whether its slots are where they are by default: the last entry's slot leads to it, or to a newer one."""
    slots = table.slots.view(">i4")
    entries = table.entries[: len(table.entries) // ENTRY.itemsize * ENTRY.itemsize].view(ENTRY)
    last = table.header.index_count - 1
    if len(entries) != ENTRIES_A_SLOT * len(slots) or last < 1:
        return False
    number = int(slots[int(entries["key_hash"][last]) % len(slots)])
    return last <= number < len(entries)


def _place(store: StoreReader, watermark: Watermark, topic: str, physical_offset: int) -> QueuePlace | None:
    """Where the record at *physical_offset* stands in a queue of *topic*; None where it is another topic's."""
    head = store.log.read(physical_offset, HEAD.itemsize)
    if len(head) == HEAD.itemsize:
        record = np.frombuffer(head, HEAD)[0]
        place = QueuePlace(int(record["queue_id"]), int(record["queue_offset"]))
        if record["magic"] in (Magic.V1, Magic.V2) and _points_at(store, watermark, topic, place, physical_offset):
            return place
    records = read_sized(store, watermark, np.array([physical_offset]))
    if not len(records.rows) or not records.right[0]:
        raise _UnknownError
    at, length = int(records.rows["topic_at"][0]), int(records.rows["topic_length"][0])
    if records.buffer[at : at + length].tobytes() == topic.encode():  # and yet not in its queue
        raise _UnknownError
    return None


def _points_at(store: StoreReader, watermark: Watermark, topic: str, place: QueuePlace, physical_offset: int) -> bool:
    """Whether the visible unit at *place* of a queue of *topic* is that record's."""
    try:
        queue = store.queue(topic, place.queue_id)
    except (QueueIllegalError, TopicNotFoundError):
        return False
    first, end = store.bounds(queue, watermark).units
    if not first <= place.queue_offset < end:
        return False
    units = queue.run.read(place.queue_offset, 1)
    return len(units) == 1 and int(units["physical_offset"][0]) == physical_offset
