"""Columns of messages, as Arrow has them, from the buffer of records (docs/format.md §14)."""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import DISPATCH_REQUEST, U8Array
from tidemark.format.kernels import columns as kernel
from tidemark.format.kernels.properties import N_NAMES
from tidemark.format.message import MESSAGE, MessageArray, NewBuffer, new_array
from tidemark.format.record import MIN_RECORD_SIZE
from tidemark.format.sys_flag import SysFlag

_ELEMENT_SUFFIX_SIZE = len("-2147483647")
_HEX_OF_OFFSET = 16  # digits
_LONGS, _INTEGERS = 4, 5  # of NumberColumns
_FIRST_ROOM_A_MESSAGE, _ROOM_GROWTH = 40, 4  # bytes of each field; factor


class Field(enum.IntEnum):
    """A field of variable length, whose position MESSAGE has."""

    BORN_HOSTS = kernel.BORN_HOSTS
    STORE_HOSTS = kernel.STORE_HOSTS
    TAGS = kernel.TAGS
    KEYS = kernel.KEYS
    UNIQUE_KEYS = kernel.UNIQUE_KEYS
    PROPERTIES = kernel.PROPERTIES  # if there are others than TAGS, KEYS and UNIQ_KEY, otherwise empty
    BODIES = kernel.BODIES


ALL_FIELDS = frozenset(Field)


class BytesColumn(NamedTuple):
    """A value for each message, as Arrow has them."""

    ends: NDArray[np.int32]  # Arrow's offsets: one more than messages
    data: U8Array


class NumberColumns(NamedTuple):
    """One value per message, named as in MESSAGE. sys_flag: for an element, without the flags of its inner batch."""

    queue_offset: NDArray[np.int64]
    physical_offset: NDArray[np.int64]
    store_timestamp: NDArray[np.int64]
    born_timestamp: NDArray[np.int64]
    flag: NDArray[np.int32]
    sys_flag: NDArray[np.int32]
    reconsume_times: NDArray[np.int32]
    body_crc: NDArray[np.int32]
    inner: NDArray[np.int32]


class Columns(NamedTuple):
    """Messages as columns. fields: as stored, by Field; a message without the field has zero bytes."""

    numbers: NumberColumns
    fields: list[BytesColumn]
    compressed: int  # number of compressed bodies
    elements: int  # number of elements of inner batches


def columns_of(
    buffer: U8Array, messages: MessageArray, fields: Collection[Field] = ALL_FIELDS, new_buffer: NewBuffer = new_array
) -> Columns:
    """Return columns of *messages*, whose positions refer to *buffer*. fields: the others stay empty."""
    sums = np.zeros(kernel.N_SUMS, np.int64)
    kernel.measure(messages, sums)
    sums[[field for field in Field if field not in fields]] = 0
    *sizes, compressed, elements = sums.tolist()
    numbers, ends = _new_columns(len(messages), new_buffer)
    data = tuple(map(new_buffer, sizes))
    kernel.fill_columns(buffer, messages, sums, tuple(numbers), ends, data)
    return Columns(numbers, list(map(BytesColumn, ends, data)), compressed, elements)


def checked_columns(
    buffer: U8Array, count: int, topic: bytes, queue_id: int, new_buffer: NewBuffer = new_array
) -> Columns | None:
    """Check *count* consecutive records in *buffer* as `check_records` does, and return their columns in one pass.

    Returns None for a record with a fault, an inner batch, or another number of records. In any case *buffer* loses
    its records: their bodies are moved to its front, where their column has them.

    topic  not empty
    """
    if count > len(buffer) // MIN_RECORD_SIZE:
        return None
    numbers, ends = _new_columns(count, new_buffer)
    places, rows = np.empty(kernel.TILE, np.int64), np.empty(kernel.TILE, DISPATCH_REQUEST)
    messages, found = np.empty(kernel.TILE, MESSAGE), np.empty((N_NAMES, 2), np.int64)
    name, sums = np.frombuffer(topic, np.uint8), np.empty(kernel.N_SUMS, np.int64)
    at = row = 0
    room = min(_FIRST_ROOM_A_MESSAGE * count, len(buffer))
    data = _new_data(room, buffer, new_buffer)
    while True:
        at, row, stop = kernel.check_and_fill(
            buffer, at, row, name, queue_id, places, rows, messages, found, sums, tuple(numbers), ends, data
        )
        if stop != kernel.FULL:
            break
        room = min(_ROOM_GROWTH * room, len(buffer))
        smaller, data = data, _new_data(room, buffer, new_buffer)
        for field in range(Field.BODIES):
            data[field][: ends[field, row]] = smaller[field][: ends[field, row]]
    if stop == kernel.NOT_SOUND or row != count:
        return None
    fields = [BytesColumn(ends_of, values[: ends_of[-1]]) for ends_of, values in zip(ends, data, strict=True)]
    return Columns(numbers, fields, int(np.count_nonzero(numbers.sys_flag & SysFlag.COMPRESSED)), elements=0)


def _new_data(room: int, bodies: U8Array, new_buffer: NewBuffer) -> tuple[U8Array, ...]:
    """Return *room* bytes for each field, and *bodies*."""
    return (*new_buffer(room * Field.BODIES).reshape(Field.BODIES, room), bodies)


def _new_columns(count: int, new_buffer: NewBuffer) -> tuple[NumberColumns, NDArray[np.int32]]:
    """Return uninitialised columns of numbers, and Arrow's offsets of each field: 0, and *count* undefined ones."""
    longs, integers = _LONGS * 8 * count, _INTEGERS * 4 * count
    memory = new_buffer(longs + integers + len(Field) * 4 * (count + 1))
    ends = memory[longs + integers :].view(np.int32).reshape(len(Field), count + 1)
    ends[:, 0] = 0
    numbers = NumberColumns(
        *memory[:longs].view(np.int64).reshape(_LONGS, count),
        *memory[longs : longs + integers].view(np.int32).reshape(_INTEGERS, count),
    )
    return numbers, ends


def offset_message_ids(columns: Columns, *, with_element: bool = False) -> BytesColumn:
    """Return the offset message id of each message's record. Needs STORE_HOSTS.

    with_element: give elements of an inner batch the id ``{offset message id}-{index from 0}``.
    """
    hosts, numbers = columns.fields[Field.STORE_HOSTS], columns.numbers
    count = len(numbers.inner)
    ends = np.empty(count + 1, np.int32)
    room = int(hosts.ends[-1]) * 2 + (_HEX_OF_OFFSET + _ELEMENT_SUFFIX_SIZE * with_element) * count
    out = np.empty(room, np.uint8)
    inner = numbers.inner if with_element else numbers.inner[:0]
    kernel.put_ids(hosts.data, hosts.ends, numbers.physical_offset, inner, ends, out)
    return BytesColumn(ends, out[: ends[-1]])


class PropertyPlaces(NamedTuple):
    """Positions of names and values of properties of a run of messages."""

    row_ends: NDArray[np.int32]  # Arrow's offsets of a map column: one more than messages
    name_at: NDArray[np.int32]
    name_length: NDArray[np.int32]
    value_at: NDArray[np.int32]
    value_length: NDArray[np.int32]


def find_properties(properties: BytesColumn) -> PropertyPlaces:
    """Return the positions of all properties except TAGS, KEYS and UNIQ_KEY, as lenient as docs/format.md §2."""
    row_ends = np.empty(len(properties.ends), np.int32)
    room = int(properties.ends[-1]) // 4 + len(properties.ends)
    columns = [np.empty(room, np.int32) for _ in range(4)]
    n = kernel.find_entries(properties.data, properties.ends, row_ends, *columns)
    return PropertyPlaces(row_ends, *(column[:n] for column in columns))
