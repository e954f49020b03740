"""The check of a page of stored records by the client, as the service does it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidemark.client.rest.page import RecordsPage
from tidemark.errors import CorruptStoreError
from tidemark.format import message
from tidemark.format.dispatch_request import U8Array
from tidemark.format.record import HEAD
from tidemark.read.buffers import POOL


def is_sound(page: RecordsPage, topic: str, queue_id: int) -> bool:
    """Return True if *page* is whole records of the queue: with their numbers, and bodies that have their CRC."""
    buffer = np.frombuffer(page.data, np.uint8)
    try:
        places = message.record_places(buffer)
    except CorruptStoreError:
        return False
    rows = message.check_records(
        buffer,
        places=places,
        physical_offsets=_values(buffer, places, "physical_offset"),
        sizes=np.diff(places, append=buffer.size),
        topic=topic.encode(),
        queue_id=queue_id,
        with_fields=False,
        new_buffer=POOL.lend,
    )
    return not page.skipped and not rows["fault"].any() and _has_its_numbers(page, buffer, places)


def _has_its_numbers(page: RecordsPage, buffer: U8Array, places: NDArray[np.int64]) -> bool:
    numbers = _values(buffer, places, "queue_offset")
    if len(places) == page.message_count:
        return np.array_equal(numbers, page.requested_offset + np.arange(len(places)))
    return bool((np.diff(numbers) > 0).all())  # inner batches have several numbers


def _values(buffer: U8Array, places: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    """Return an eight-byte field of each record's head."""
    at: int = HEAD.fields[name][1]  # type: ignore[index]
    raw: NDArray[np.uint8] = buffer[places[:, np.newaxis] + np.arange(at, at + 8)]
    return raw.view(">i8")[:, 0].astype(np.int64)
