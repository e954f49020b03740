"""Messages for readers: one per record, or one per element of an inner batch (docs/format.md §14).

A MESSAGE is a row of positions and numbers; positions (`*_at`) count from byte 0 of the buffer with the records.
`unwrap_record` is the plain twin of the compiled loops.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import BatchMalformedError, CorruptStoreError
from tidemark.format.dispatch_request import DISPATCH_REQUEST, Fault, RequestArray, U8Array
from tidemark.format.elements import decode_elements
from tidemark.format.kernels import columns as columns_kernel
from tidemark.format.kernels import messages as kernel
from tidemark.format.kernels.properties import N_NAMES
from tidemark.format.primitives import masked_crc32
from tidemark.format.record import HEAD, MIN_RECORD_SIZE, Record
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, SysFlag

MESSAGE = np.dtype(
    [
        ("queue_offset", np.int64),
        ("physical_offset", np.int64),  #  of the record: all messages of an inner batch share it
        ("born_timestamp", np.int64),
        ("store_timestamp", np.int64),
        ("prepared_transaction_offset", np.int64),
        ("record", np.int32),  #           index of the checked record
        ("record_size", np.int32),  #      0 for an element
        ("inner", np.int32),  #            index of an element in its inner batch, from 1; 0: not an element
        ("flag", np.int32),
        ("sys_flag", np.int32),  #         of the record
        ("reconsume_times", np.int32),
        ("body_crc", np.int32),  #         of an element: computed
        ("body_at", np.int32),
        ("body_length", np.int32),
        ("properties_at", np.int32),
        ("properties_length", np.int32),
        ("tags_at", np.int32),
        ("tags_length", np.int32),
        ("keys_at", np.int32),
        ("keys_length", np.int32),
        ("unique_key_at", np.int32),
        ("unique_key_length", np.int32),
        ("born_host_at", np.int32),
        ("born_host_size", np.int32),
        ("store_host_at", np.int32),
        ("store_host_size", np.int32),
    ],
    align=True,
)
MessageArray = NDArray[np.void]

_SYS_FLAG_AT = int(HEAD.fields["sys_flag"][1])  # type: ignore[index]
_QUEUE_OFFSET_AT = int(HEAD.fields["queue_offset"][1])  # type: ignore[index]
_ELEMENT_SUFFIX_SIZE = len("-2147483647")
_HEX_OF_OFFSET = 16  # digits
OTHER_QUEUE_FAULT = kernel.OTHER_QUEUE  # in addition to Fault: a valid record of another topic or queue
_REASONS = {**{int(fault): fault.name for fault in Fault}, kernel.OTHER_QUEUE: "OTHER_QUEUE"}


NewBuffer = Callable[[int], U8Array]  # returns a buffer of this size, uninitialised


def _empty(size: int) -> U8Array:
    return np.empty(size, np.uint8)


def fault_reason(fault: int) -> str:
    """Return the name of a row's fault: a Fault's, or OTHER_QUEUE for a valid record of another topic or queue."""
    return _REASONS[fault]


class FoundRecords(NamedTuple):
    """Start, size, physical offset and queue offset of each record in a buffer, as its head has them."""

    places: NDArray[np.int64]
    sizes: NDArray[np.int64]
    physical_offsets: NDArray[np.int64]
    queue_offsets: NDArray[np.int64]


def find_records(buffer: U8Array) -> FoundRecords:
    """Return the consecutive records in *buffer*, the result of a pull of stored records, without a check of them.

    Raises CorruptStoreError if they do not end at the buffer's end.
    """
    columns = np.empty((4, buffer.size // MIN_RECORD_SIZE + 1), np.int64)
    count = kernel.find_records(buffer, *columns)
    if count < 0:
        raise CorruptStoreError(f"the {buffer.size} bytes are not a sequence of whole records", size=buffer.size)
    return FoundRecords(*columns[:, :count])


def starts_with_inner_batch(buffer: U8Array) -> bool:
    """Return True if the first record in *buffer* is an inner batch, as its head has it."""
    return int.from_bytes(buffer[_SYS_FLAG_AT:][:4], "big") & INNER_BATCH_FLAGS == INNER_BATCH_FLAGS


def check_records(
    buffer: U8Array,
    *,
    places: NDArray[np.int64],
    physical_offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    topic: bytes = b"",
    queue_id: int = 0,
    with_fields: bool = True,
    new_buffer: NewBuffer = _empty,
) -> RequestArray:
    """Check the record at each of *places* against its unit: magic, position, size, queue, body CRC.

    topic  the queue's; b"" accepts any topic and queue

    Returns one DISPATCH_REQUEST per place; `fault` is 0 for a valid record. Without fields only physical_offset,
    message_size and queue_id are filled besides, which is enough to return records as stored.
    """
    memory = new_buffer(len(places) * DISPATCH_REQUEST.itemsize)
    memory[:] = 0
    rows = np.frombuffer(memory, DISPATCH_REQUEST)
    found = np.empty((N_NAMES, 2), np.int64)
    name = np.frombuffer(topic, np.uint8)
    kernel.check_records(buffer, places, physical_offsets, sizes, name, queue_id, with_fields, rows, found)
    return rows


def check_numbers(
    buffer: U8Array,
    places: NDArray[np.int64],
    rows: RequestArray,
    queue_offsets: NDArray[np.int64],
    *,
    may_restart: bool,
    fault: int,
) -> int:
    """Give *fault* to each valid record whose queue offset is not its unit's; return the number of invalid records.

    may_restart: accept 0 anywhere, as a broker does when a queue's numbering restarts.
    """
    queue_offsets = np.ascontiguousarray(queue_offsets)
    faults: int = kernel.check_numbers(buffer, places, rows, queue_offsets, _QUEUE_OFFSET_AT, may_restart, fault)
    return faults


def unwrap_records(
    buffer: U8Array, places: NDArray[np.int64], rows: RequestArray, new_buffer: NewBuffer = _empty
) -> MessageArray:
    """Return MESSAGE rows of the checked records without a fault, with inner batches as their elements.

    An inner batch whose body is not a wire batch stays one message, as stored.
    """
    messages = new_buffer(kernel.count_messages(buffer, rows) * MESSAGE.itemsize).view(MESSAGE)
    kernel.fill_messages(buffer, places, rows, messages, np.empty((N_NAMES, 2), np.int64))
    return messages


class PlainMessage(NamedTuple):
    """One message as values. In an inner batch flag, CRC, body and raw properties are the element's."""

    queue_offset: int
    flag: int
    body: bytes
    properties: bytes
    body_crc: int
    reconsume_times: int
    inner: bool


def unwrap_record(record: Record) -> list[PlainMessage]:
    """Return the messages of one record."""
    if record.sys_flag & INNER_BATCH_FLAGS == INNER_BATCH_FLAGS:
        try:
            elements = list(decode_elements(record.body))
        except BatchMalformedError:
            elements = []
        if elements:
            return [
                PlainMessage(record.queue_offset + i, flag, body, properties, masked_crc32(body), 0, True)
                for i, (body, properties, flag) in enumerate(elements)
            ]
    crc = masked_crc32(record.body) if record.body_crc is None else record.body_crc
    return [
        PlainMessage(
            record.queue_offset, record.flag, record.body, record.properties, crc, record.reconsume_times, False
        )
    ]


def gather(
    buffer: U8Array,
    places: NDArray[np.int32] | NDArray[np.int64],
    lengths: NDArray[np.int32] | NDArray[np.int64],
    new_buffer: NewBuffer = _empty,
) -> tuple[NDArray[np.int32], U8Array]:
    """Return (ends, bytes): pieces of *buffer* concatenated; ends are Arrow's offsets, one more. Less than 2 GiB."""
    ends = np.empty(len(places) + 1, np.int32)
    places, lengths = np.ascontiguousarray(places, np.int64), np.ascontiguousarray(lengths, np.int64)
    out = new_buffer(int(lengths.sum()))
    kernel.gather(buffer, places, lengths, ends, out)
    return ends, out


def copy_records(
    buffer: U8Array, base: int, physical_offsets: NDArray[np.int64], sizes: NDArray[np.int64], out: U8Array, to: int
) -> None:
    """Copy records from *buffer*, whose byte 0 is physical offset *base*, consecutively into *out* from byte *to*."""
    kernel.copy_records(buffer, base, physical_offsets, sizes, out, to)


class Field(enum.IntEnum):
    """A field of variable length, whose position MESSAGE has."""

    BORN_HOSTS = columns_kernel.BORN_HOSTS
    STORE_HOSTS = columns_kernel.STORE_HOSTS
    TAGS = columns_kernel.TAGS
    KEYS = columns_kernel.KEYS
    UNIQUE_KEYS = columns_kernel.UNIQUE_KEYS
    PROPERTIES = columns_kernel.PROPERTIES  # if there are others than TAGS, KEYS and UNIQ_KEY, otherwise empty
    BODIES = columns_kernel.BODIES


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


_LONGS, _INTEGERS = 4, 5  # of NumberColumns
_FIRST_ROOM_A_MESSAGE, _ROOM_GROWTH = 40, 4  # bytes of each field; factor


class Columns(NamedTuple):
    """Messages as columns. fields: as stored, by Field; a message without the field has zero bytes."""

    numbers: NumberColumns
    fields: list[BytesColumn]
    compressed: int  # number of compressed bodies
    elements: int  # number of elements of inner batches


def columns_of(
    buffer: U8Array, messages: MessageArray, fields: Collection[Field] = ALL_FIELDS, new_buffer: NewBuffer = _empty
) -> Columns:
    """Return columns of *messages*, whose positions refer to *buffer*. fields: the others stay empty."""
    sums = np.zeros(columns_kernel.N_SUMS, np.int64)
    columns_kernel.measure(messages, sums)
    sums[[field for field in Field if field not in fields]] = 0
    *sizes, compressed, elements = sums.tolist()
    numbers, ends = _new_columns(len(messages), new_buffer)
    data = tuple(map(new_buffer, sizes))
    columns_kernel.fill_columns(buffer, messages, sums, numbers, ends, data)
    return Columns(numbers, list(map(BytesColumn, ends, data)), compressed, elements)


def checked_columns(
    buffer: U8Array, count: int, topic: bytes, queue_id: int, new_buffer: NewBuffer = _empty
) -> Columns | None:
    """Check *count* consecutive records in *buffer* as `check_records` does, and return their columns in one pass.

    Returns None for a record with a fault, an inner batch, or another number of records. In any case *buffer* loses
    its records: their bodies are moved to its front, where their column has them.

    topic  not empty
    """
    numbers, ends = _new_columns(count, new_buffer)
    places, rows = np.empty(columns_kernel.TILE, np.int64), np.empty(columns_kernel.TILE, DISPATCH_REQUEST)
    messages, found = np.empty(columns_kernel.TILE, MESSAGE), np.empty((N_NAMES, 2), np.int64)
    name, sums = np.frombuffer(topic, np.uint8), np.empty(columns_kernel.N_SUMS, np.int64)
    at = row = 0
    room = min(_FIRST_ROOM_A_MESSAGE * count, len(buffer))
    data = _new_data(room, buffer, new_buffer)
    while True:
        at, row, stop = columns_kernel.check_and_fill(
            buffer, at, row, name, queue_id, places, rows, messages, found, sums, numbers, ends, data
        )
        if stop != columns_kernel.FULL:
            break
        room = min(_ROOM_GROWTH * room, len(buffer))
        smaller, data = data, _new_data(room, buffer, new_buffer)
        for field in range(Field.BODIES):
            data[field][: ends[field, row]] = smaller[field][: ends[field, row]]
    if stop == columns_kernel.NOT_SOUND or row != count:
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
    columns_kernel.put_ids(hosts.data, hosts.ends, numbers.physical_offset, inner, ends, out)
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
    n = columns_kernel.find_entries(properties.data, properties.ends, row_ends, *columns)
    return PropertyPlaces(row_ends, *(column[:n] for column in columns))
