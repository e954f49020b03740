"""Tables that the client makes of stored records, equal to the service's."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa

from tidemark.client.rest.connections import Answer
from tidemark.client.rest.page import RecordsPage, records_page
from tidemark.client.rest.sound_records import sound_records
from tidemark.format.columns import Columns, checked_columns, columns_of
from tidemark.format.compression import MAX_DECOMPRESSED_BYTES
from tidemark.format.message import starts_with_inner_batch
from tidemark.read.buffers import POOL
from tidemark.read.messages.arrow_stream import PLAIN, TableForm
from tidemark.read.messages.body import AnswerFullError, BodyRoom
from tidemark.read.messages.message_columns import batch_of

_FACT = "Tidemark-"


def table_of_records(answer: Answer, topic: str, queue_id: int, form: TableForm = PLAIN) -> pa.Table | None:
    """Return the table of an *answer* with unchecked records, or None if only the service can make it.

    It must if a record is damaged or missing, if the bodies exceed MAX_DECOMPRESSED_BYTES, or if their numbers are
    those of the queue's units only. The table uses the memory of the answer's body.
    """
    page = records_page(answer)
    columns = _columns(page, topic, queue_id)
    if columns is None or not _has_its_numbers(page, columns):
        return None
    facts = {_fact(name): value for name, value in answer.headers.items() if name.startswith(_FACT)}
    facts["tidemark.message_count"] = str(len(columns.numbers.queue_offset))
    try:
        batch = batch_of(columns, form.schema.with_metadata(facts), room=BodyRoom(MAX_DECOMPRESSED_BYTES))
    except AnswerFullError:
        return None
    return pa.Table.from_batches([batch])


def _columns(page: RecordsPage, topic: str, queue_id: int) -> Columns | None:
    """Return the messages of *page* as columns, or None if its records are not sound. Uses up the page's data."""
    buffer = np.frombuffer(page.data, np.uint8)
    if page.skipped:
        return None
    if not starts_with_inner_batch(buffer):
        return checked_columns(buffer, page.message_count, topic.encode(), queue_id, POOL.lend)
    records = sound_records(page, buffer, topic, queue_id)
    if records is None:
        return None
    messages = records.messages()
    if len(messages) and messages["queue_offset"][0] < page.requested_offset:  # within the first batch
        messages = messages[messages["queue_offset"] >= page.requested_offset]
    return columns_of(buffer, messages, new_buffer=POOL.lend)


def _has_its_numbers(page: RecordsPage, columns: Columns) -> bool:
    return np.array_equal(columns.numbers.queue_offset, np.arange(page.requested_offset, page.next_offset))


@functools.lru_cache(maxsize=64)
def _fact(header: str) -> str:
    """``Tidemark-Next-Offset`` → ``tidemark.next_offset``."""
    return header.lower().replace("-", ".", 1).replace("-", "_")
