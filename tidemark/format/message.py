"""Messages for readers: one per record, or one per element of an inner batch (docs/format.md §14).

A MESSAGE is a row of positions and numbers; positions (`*_at`) count from byte 0 of the buffer with the records.
`unwrap_record` is the plain twin of the compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import BatchMalformedError, CorruptStoreError
from tidemark.format.dispatch_request import DISPATCH_REQUEST, Fault, RequestArray, U8Array
from tidemark.format.elements import decode_elements
from tidemark.format.kernels import messages as kernel
from tidemark.format.kernels.properties import N_NAMES
from tidemark.format.primitives import masked_crc32
from tidemark.format.record import HEAD, MIN_RECORD_SIZE, Record
from tidemark.format.sys_flag import INNER_BATCH_FLAGS

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

_SMALL_BYTES = 2048
_SYS_FLAG_AT = int(HEAD.fields["sys_flag"][1])  # type: ignore[index]
_QUEUE_OFFSET_AT = int(HEAD.fields["queue_offset"][1])  # type: ignore[index]
OTHER_QUEUE_FAULT = kernel.OTHER_QUEUE  # in addition to Fault: a valid record of another topic or queue
_REASONS = {**{int(fault): fault.name for fault in Fault}, kernel.OTHER_QUEUE: "OTHER_QUEUE"}


NewBuffer = Callable[[int], U8Array]  # returns a buffer of this size, uninitialised


def new_array(size: int) -> U8Array:
    """Return an uninitialised buffer, without a pool."""
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
    new_buffer: NewBuffer = new_array,
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


class SmallRecord(NamedTuple):
    """A checked record. messages: its message; None for an inner batch."""

    buffer: U8Array
    rows: RequestArray
    messages: MessageArray | None


def read_small_record(descriptor: int, position: int, physical_offset: int, *, below: int) -> SmallRecord | None:
    """Read the record of any queue at *position* of a file, without a wait for a disk, and check it.

    below: physical offset at which it must end at the latest

    Returns None if it is larger than _SMALL_BYTES, not in memory, or invalid.
    """
    buffer, places = np.empty(_SMALL_BYTES, np.uint8), np.zeros(1, np.int64)
    rows, messages = np.zeros(1, DISPATCH_REQUEST), np.empty(1, MESSAGE)
    found = np.empty((N_NAMES, 2), np.int64)
    size, filled = kernel.read_small_record(
        descriptor, position, physical_offset, below, buffer, places, rows, messages, found
    )
    return SmallRecord(buffer[:size], rows, messages if filled else None) if size else None


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
    buffer: U8Array, places: NDArray[np.int64], rows: RequestArray, new_buffer: NewBuffer = new_array
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
    new_buffer: NewBuffer = new_array,
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
