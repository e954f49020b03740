"""Messages of a MemoryLog as an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidemark.client.received_message import ReceivedMessage
from tidemark.format.primitives import masked_crc32
from tidemark.read.messages.message_columns import SCHEMA

_SCHEMA = pa.schema([("topic", pa.string()), ("queue_id", pa.int32()), *SCHEMA])


def messages_table(messages: Sequence[ReceivedMessage]) -> pa.Table:
    """Return a table with the columns of `Consumer.poll_table`, one row per message."""
    rows = [message.as_dict() | {"body_crc": masked_crc32(message.body)} for message in messages]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
