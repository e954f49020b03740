"""Wire batches for producers, made before the clock starts, as RocketMQ's figures do not include encoding either."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from tidemark.client.producer.table_columns import ColumnNames, column_slices
from tidemark.format.elements import Element, encode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.pack import pack_batches

_LETTERS = np.frombuffer(string.ascii_letters.encode(), np.uint8)
_MOST_BYTES = 1 << 30
_ODD, _I8 = 0x9E3779B97F4A7C15, (1 << 64) - 1
_CHUNK_MESSAGES = 10_000  # packed at once


def plain_batch(messages: int, body_bytes: int) -> bytes:
    """Return a wire batch without properties. It may be sent repeatedly, because each send has its own request id."""
    return encode_elements([Element(bodies(1, body_bytes)[0].as_py())] * messages)


@functools.lru_cache(maxsize=1)
def bodies(count: int, body_bytes: int) -> pa.Array:
    """Return *count* binary bodies of letters, the same ones for each call."""
    letters = np.random.default_rng(0).choice(_LETTERS, count * body_bytes)
    offsets = body_bytes * np.arange(count + 1, dtype=np.int64)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    )


def table(
    count: int, body_bytes: int, *, key_prefix: str = "", first: int = 0, key_of: Callable[[int], str] = str
) -> pa.Table:
    """Return a table of *count* messages with the columns body and id (UNIQ_KEY).

    With *key_prefix* it also has the column key: the prefix and `key_of(number)`.
    """
    columns = {"body": bodies(count, body_bytes), "id": pa.array(UniqueKeys().make_many(count))}
    if key_prefix:
        columns["key"] = pa.array([f"{key_prefix}{key_of(number)}" for number in range(first, first + count)])
    return pa.table(columns)


def scattered(number: int) -> str:
    """Return 16 hex digits that are not ordered by *number*, like those of UUIDs."""
    return f"{number * _ODD & _I8:016x}"


def unique_batches(
    batches: int, messages: int, body_bytes: int, *, key_prefix: str = "", key_of: Callable[[int], str] = str
) -> Iterator[bytes]:
    """Yield distinct wire batches. Each message has a UNIQ_KEY, and with *key_prefix* a key as in `table`."""
    at_once = max(1, _CHUNK_MESSAGES // messages)
    names = ColumnNames(body="body", key="key" if key_prefix else None, unique_key="id")
    for first in range(0, batches, at_once):
        count = min(at_once, batches - first) * messages
        chunk = table(count, body_bytes, key_prefix=key_prefix, first=first * messages, key_of=key_of)
        for _, columns in column_slices(chunk, names):
            for batch in pack_batches(columns, queues=1, max_count=messages, max_bytes=_MOST_BYTES):
                yield batch.packed
