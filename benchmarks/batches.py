"""Wire batches for producers, made before the clock starts (RocketMQ's figures leave encoding out, too)."""

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
    """A wire batch without properties, which may be sent again and again: each send has a request id of its own."""
    return encode_elements([Element(bodies(1, body_bytes)[0].as_py())] * messages)


@functools.lru_cache(maxsize=1)
def bodies(count: int, body_bytes: int) -> pa.Array:
    """*count* bodies of letters, the same ones each time; binary."""
    letters = np.random.default_rng(0).choice(_LETTERS, count * body_bytes)
    offsets = body_bytes * np.arange(count + 1, dtype=np.int64)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    )


def table(
    count: int, body_bytes: int, *, key_prefix: str = "", first: int = 0, key_of: Callable[[int], str] = str
) -> pa.Table:
    """*count* messages as a table: body, id (a UNIQ_KEY each), with a prefix also key, prefix and `key_of(number)`."""
    columns = {"body": bodies(count, body_bytes), "id": pa.array(UniqueKeys().make_many(count))}
    if key_prefix:
        columns["key"] = pa.array([f"{key_prefix}{key_of(number)}" for number in range(first, first + count)])
    return pa.table(columns)


def scattered(number: int) -> str:
    """16 hex digits that tell nothing of the numbers before and behind, as a UUID's."""
    return f"{number * _ODD & _I8:016x}"


def unique_batches(
    batches: int, messages: int, body_bytes: int, *, key_prefix: str = "", key_of: Callable[[int], str] = str
) -> Iterator[bytes]:
    """Distinct wire batches; each message has a UNIQ_KEY, and with a prefix a key: prefix and `key_of(number)`."""
    at_once = max(1, _CHUNK_MESSAGES // messages)
    names = ColumnNames(body="body", key="key" if key_prefix else None, unique_key="id")
    for first in range(0, batches, at_once):
        count = min(at_once, batches - first) * messages
        chunk = table(count, body_bytes, key_prefix=key_prefix, first=first * messages, key_of=key_of)
        for _, columns in column_slices(chunk, names):
            for batch in pack_batches(columns, queues=1, max_count=messages, max_bytes=_MOST_BYTES):
                yield batch.packed
