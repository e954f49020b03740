"""Tables that the client makes of stored records, equal to the service's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.client.rest.connections import Answer
from tidemark.client.rest.page import records_page
from tidemark.client.rest.sound_records import sound_records
from tidemark.format.compression import MAX_DECOMPRESSED_BYTES
from tidemark.read.messages.body import AnswerFullError, BodyRoom
from tidemark.read.messages.message_columns import message_batch
from tidemark.read.pull import PulledPart

_FACT = "Tidemark-"


def table_of_records(answer: Answer, topic: str, queue_id: int) -> pa.Table | None:
    """Return the table of an *answer* with unchecked records, or None if only the service can make it.

    It must if a record is damaged or missing, if the bodies exceed MAX_DECOMPRESSED_BYTES, or if their numbers are
    those of the queue's units only.
    """
    page = records_page(answer)
    records = sound_records(page, topic, queue_id)
    if records is None:
        return None
    messages = records.messages()
    if len(messages) and messages["queue_offset"][0] < page.requested_offset:  # within an inner batch
        messages = messages[messages["queue_offset"] >= page.requested_offset]
    if not np.array_equal(messages["queue_offset"], np.arange(page.requested_offset, page.next_offset)):
        return None
    try:
        batch = message_batch(PulledPart(records, messages, None), room=BodyRoom(MAX_DECOMPRESSED_BYTES))
    except AnswerFullError:
        return None
    facts = {_fact(name): value for name, value in answer.headers.items() if name.startswith(_FACT)}
    facts["tidemark.message_count"] = str(len(messages))
    return pa.Table.from_batches([batch]).replace_schema_metadata(facts)


def _fact(header: str) -> str:
    """``Tidemark-Next-Offset`` → ``tidemark.next_offset``."""
    return header.lower().replace("-", ".", 1).replace("-", "_")
