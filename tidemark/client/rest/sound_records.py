"""The check of a page of stored records by the client, as the service does it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidemark.client.rest.page import RecordsPage
from tidemark.errors import CorruptStoreError
from tidemark.format import message
from tidemark.format.dispatch_request import U8Array
from tidemark.read.buffers import POOL
from tidemark.read.records import Records


def is_sound(page: RecordsPage, topic: str, queue_id: int) -> bool:
    """Return True if *page* is whole records of the queue: with their numbers, and bodies that have their CRC."""
    buffer = np.frombuffer(page.data, np.uint8)
    return sound_records(page, buffer, topic, queue_id, with_fields=False) is not None


def sound_records(
    page: RecordsPage, buffer: U8Array, topic: str, queue_id: int, *, with_fields: bool = True
) -> Records | None:
    """Return the records of *page*, or None if they are not sound as `is_sound` describes.

    buffer       the page's data
    with_fields  False: without what their messages need
    """
    try:
        found = message.find_records(buffer)
    except CorruptStoreError:
        return None
    rows = message.check_records(
        buffer,
        places=found.places,
        physical_offsets=found.physical_offsets,
        sizes=found.sizes,
        topic=topic.encode(),
        queue_id=queue_id,
        with_fields=with_fields,
        new_buffer=POOL.lend,
    )
    if page.skipped or rows["fault"].any() or not _has_its_numbers(page, found.queue_offsets):
        return None
    return Records(buffer, found.places, rows, is_sound=True)


def _has_its_numbers(page: RecordsPage, queue_offsets: NDArray[np.int64]) -> bool:
    if len(queue_offsets) == page.message_count:
        end = page.requested_offset + len(queue_offsets)
        return np.array_equal(queue_offsets, np.arange(page.requested_offset, end))
    return bool((np.diff(queue_offsets) > 0).all())  # inner batches have several numbers
