"""Packing of columns of messages into wire batches (docs/format.md §3) of one queue each, without Python per message.

The loops are `kernels.pack`; their output equals `elements.encode_elements` of the same rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import BatchEmptyError, PropertiesIllegalError, PropertiesSizeExceededError, StoreError
from tidemark.format.dispatch_request import U8Array
from tidemark.format.kernels import pack as kernel
from tidemark.format.message_id import UniqueKeys

I64Array = NDArray[np.int64]
_MADE_HEAD_LENGTH = 20  # UNIQ_KEY with an IPv4 address: 32 digits without those of its number
MADE_KEY_LENGTH = _MADE_HEAD_LENGTH + kernel.MADE_DIGITS


class Column(NamedTuple):
    """Concatenated values of one column. offsets: start of each row's value, and the end; empty = no column."""

    data: U8Array
    offsets: I64Array


ABSENT = Column(np.empty(0, np.uint8), np.empty(0, np.int64))


class MessageColumns(NamedTuple):
    """Messages as columns of UTF-8 or bytes. An empty value counts as absent; every row needs a body.

    properties  all others, encoded: name U+0001 value U+0002, …
    """

    body: Column
    tag: Column = ABSENT
    key: Column = ABSENT
    unique_key: Column = ABSENT
    properties: Column = ABSENT

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.body.offsets) - 1


class PackedBatch(NamedTuple):
    """One wire batch. rows: the numbers of its rows, in the order of its elements."""

    queue_id: int
    rows: I64Array
    packed: bytes


_FAULTS: dict[int, tuple[type[StoreError], str]] = {
    kernel.SEPARATOR_FAULT: (
        PropertiesIllegalError,
        "a tag or key contains U+0001 or U+0002, or a key contains a space",
    ),
    kernel.PROPERTIES_FAULT: (
        PropertiesSizeExceededError,
        "the properties with UNIQ_KEY are longer than 32,767 bytes",
    ),
    kernel.BODY_FAULT: (BatchEmptyError, "the body is null or empty; it must have at least one byte"),
}


def pack_batches(
    columns: MessageColumns,
    *,
    queues: int,
    max_count: int,
    max_bytes: int,
    first_row: int = 0,
    several_keys: bool = False,
    unique_keys: UniqueKeys | None = None,
) -> Iterator[PackedBatch]:
    """Yield wire batches of at most *max_count* rows and *max_bytes*, in the order of their first rows.

    A row's queue is |hashCode(key)| mod *queues*, as the writer chooses; rows without a key take turns, by *first_row*
    plus their number. Rows of one queue keep their order. A single larger row is a batch of its own.

    several_keys: a row's keys are separated by spaces, and the first one chooses.

    unique_keys: generates a UNIQ_KEY for each row without one. If the first row of a batch has one, the keys of that
    batch are derived from it, so that the same rows give the same batch again.

    Before the first batch, raises BatchEmptyError, PropertiesIllegalError or PropertiesSizeExceededError (fact: row,
    counted from *first_row*).
    """
    queue_of = np.empty(columns.n_rows, np.int64)
    size_of = np.empty(columns.n_rows, np.int64)
    body, tag, key, unique_key, others = (_read_only(column) for column in columns)
    fault, row = kernel.plan_rows(
        body.offsets,
        *tag,
        *key,
        *unique_key,
        others.offsets,
        several_keys,
        MADE_KEY_LENGTH if unique_keys is not None else 0,
        queues,
        first_row,
        queue_of,
        size_of,
    )
    if fault != kernel.NO_FAULT:
        leaf, text = _FAULTS[fault]
        raise leaf(f"row {first_row + int(row)}: {text}", row=first_row + int(row))
    order = np.argsort(queue_of, kind="stable")
    for start, end in _cut(order, queue_of, size_of, max_count=max_count, max_bytes=max_bytes):
        rows = order[start:end]
        out = np.empty(int(size_of[rows].sum()), np.uint8)
        head, first = (b"", 0) if unique_keys is None else _made_keys(unique_keys, unique_key, rows)
        kernel.pack_elements(
            rows, *body, *tag, *key, *unique_key, *others, np.frombuffer(head, np.uint8), np.int64(first), out
        )
        yield PackedBatch(int(queue_of[rows[0]]), rows, out.tobytes())


def _made_keys(unique_keys: UniqueKeys, unique_key: Column, rows: I64Array) -> tuple[bytes, int]:
    """Return the prefix and the first number of the keys for the *rows* of a batch without a key."""
    if unique_key.offsets.size:
        first_row = rows[0]
        given = unique_key.data[unique_key.offsets[first_row] : unique_key.offsets[first_row + 1]]
        if given.size:
            return sha256(given.tobytes()).hexdigest()[:_MADE_HEAD_LENGTH].upper().encode(), 0
    head, first = unique_keys.reserve(len(rows))
    return head.encode(), first


def _read_only(column: Column) -> Column:
    """Return a read-only view, so that the loops are compiled for one array type only."""
    data, offsets = column.data.view(), column.offsets.view()
    data.flags.writeable = offsets.flags.writeable = False
    return Column(data, offsets)


def _cut(
    order: I64Array, queue_of: I64Array, size_of: I64Array, *, max_count: int, max_bytes: int
) -> list[tuple[int, int]]:
    """Return (start, end) in *order* of each batch, sorted by their first rows."""
    ends = np.empty(len(order), np.int64)
    batches = kernel.cut_batches(order, queue_of, size_of, max_count, max_bytes, ends)
    edges = [0, *ends[:batches].tolist()]
    return sorted(itertools.pairwise(edges), key=lambda edge: int(order[edge[0]]))
