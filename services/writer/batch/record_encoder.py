"""Encodes a batch as records, directly into the appender's buffer. A message is encoded only here, once.

The compiled loop writes legacy batches as one record per message. A batch for a BatchCQ topic is one inner-batch record
whose body is the received wire batch (docs/format.md §3).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from tidemark.errors import PropertiesSizeExceededError
from tidemark.format import wire_batch
from tidemark.format.dispatch_request import U8Array
from tidemark.format.elements import Element, encode_elements
from tidemark.format.host import IPV4_HOST_SIZE
from tidemark.format.primitives import MAX_PROPERTIES_SIZE_BYTES, masked_crc32
from tidemark.format.properties import INNER_BASE, encode_properties
from tidemark.format.record import Magic, with_host_flags
from tidemark.format.sys_flag import INNER_BATCH_FLAGS, SysFlag

from .batch import Batch, Wrapper

_INNER_BATCH_FLAGS = int(INNER_BATCH_FLAGS)
_MAGIC = int(Magic.V1)  # topics of clients have at most 127 characters


class RecordPosition(NamedTuple):
    """Where and when a batch is stored."""

    queue_offset: int
    physical_offset: int
    store_timestamp: int


def u8(data: bytes | bytearray | memoryview) -> U8Array:
    """Return *data* as an array, without a copy."""
    return np.frombuffer(data, np.uint8)


class _Head:
    """A reusable record head; one for each size of born host. One `pack_into` is faster than an array's fields."""

    def __init__(self, born_size: int, store_host: bytes) -> None:
        self._store_host = store_host
        self._struct = struct.Struct(f">iiiiiqqiq{born_size}sq{len(store_host)}siqi")  # as `record_head`
        self.size = self._struct.size
        self._data = bytearray(self.size)
        self.bytes = u8(self._data)

    def fill(
        self,
        wrapper: Wrapper,
        queue_id: int,
        sys_flag: int,
        store_timestamp: int,
        *,
        total_size: int = 0,
        body_crc: int = 0,
        flag: int = 0,
        queue_offset: int = 0,
        physical_offset: int = 0,
        body_length: int = 0,
    ) -> None:
        """Set all fields. Those after *store_timestamp* differ between records: the compiled loop sets them itself."""
        self._struct.pack_into(
            self._data,
            0,
            total_size,
            _MAGIC,
            body_crc,
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            sys_flag,
            wrapper.born_timestamp,
            wrapper.born_host,
            store_timestamp,
            self._store_host,
            wrapper.reconsume_times,
            0,
            body_length,
        )


class Encoder:
    """Writes batches as records of one store. Reuses scratch buffers between batches, so it is not thread-safe."""

    def __init__(self, store_host: bytes) -> None:
        self.store_host = store_host
        self._heads: dict[int, _Head] = {}
        self._positions = np.empty(1024, np.int64)

    def size(self, batch: Batch, queue_offset: int) -> int:
        """Return the bytes that *batch* takes in the log if its first message gets *queue_offset*."""
        fixed = self._head(batch).size + batch.topic_field.size + 2
        if batch.inner_properties is not None:
            return fixed + batch.wire.size + len(batch.inner_properties) + len(_inner_base(queue_offset))
        return batch.count * fixed + batch.parts_size + batch.first_extra.size

    def encode(self, batch: Batch, place: RecordPosition, out: U8Array) -> bytes:
        """Write *batch* at out[0] and return the physical offsets of its records, 8 bytes big-endian each.

        Raises PropertiesSizeExceededError if INNER_BASE makes the properties too long; *out* is unchanged then.
        """
        if batch.inner_properties is not None:
            return self._encode_inner(batch, place, out)
        wrapper, head = batch.wrapper, self._head(batch)
        head.fill(wrapper, batch.key.queue_id, self._flags(wrapper, wrapper.sys_flag), place.store_timestamp)
        if self._positions.size < batch.count:
            self._positions = np.empty(batch.count, np.int64)
        wire_batch.encode_records(
            batch.wire,
            head=head.bytes,
            topic=batch.topic_field,
            first_extra=batch.first_extra,
            queue_offset=place.queue_offset,
            physical_offset=place.physical_offset,
            out=out,
            positions=self._positions,
        )
        if batch.count == 1:
            return place.physical_offset.to_bytes(8, "big")
        return self._positions[: batch.count].astype(">i8").tobytes()

    def _encode_inner(self, batch: Batch, place: RecordPosition, out: U8Array) -> bytes:
        assert batch.inner_properties is not None
        properties = _inner_base(place.queue_offset, after=batch.inner_properties)
        if len(properties) > MAX_PROPERTIES_SIZE_BYTES:
            raise PropertiesSizeExceededError(
                f"the batch's properties are {len(properties):,} bytes with INNER_BASE, and the limit is "
                f"{MAX_PROPERTIES_SIZE_BYTES:,}",
                size=len(properties),
                limit=MAX_PROPERTIES_SIZE_BYTES,
            )
        wrapper, head = batch.wrapper, self._head(batch)
        head.fill(
            wrapper,
            batch.key.queue_id,
            self._flags(wrapper, wrapper.sys_flag | _INNER_BATCH_FLAGS),
            place.store_timestamp,
            total_size=self.size(batch, place.queue_offset),
            body_crc=masked_crc32(batch.wire.data),
            flag=wrapper.flag,
            queue_offset=place.queue_offset,
            physical_offset=place.physical_offset,
            body_length=batch.wire.size,
        )
        tail = u8(len(properties).to_bytes(2, "big") + properties)
        at = 0
        for part in (head.bytes, batch.wire, batch.topic_field, tail):
            out[at : at + part.size] = part
            at += part.size
        return place.physical_offset.to_bytes(8, "big")

    def _head(self, batch: Batch) -> _Head:
        size = len(batch.wrapper.born_host)
        head = self._heads.get(size)
        if head is None:
            head = self._heads[size] = _Head(size, self.store_host)
        return head

    def _flags(self, wrapper: Wrapper, sys_flag: int) -> int:
        return with_host_flags(sys_flag, born_host=wrapper.born_host, store_host=self.store_host)


def _inner_base(queue_offset: int, *, after: bytes = b"") -> bytes:
    """Return *after*, whose first entry is INNER_NUM, with INNER_BASE inserted as the second entry."""
    base = encode_properties({INNER_BASE: str(queue_offset)})
    first, separator, rest = after.partition(b"\x02")
    return first + separator + base + rest


def warm_up(store_host: bytes = bytes(8)) -> None:
    """Load the compiled loops, so that the first client does not wait for them."""
    wire = wire_batch.add_unique_keys(u8(encode_elements([Element(b"warm")])), 1, b"key")
    facts = wire_batch.scan(wire)
    wrapper = Wrapper(bytes(IPV4_HOST_SIZE), 0, sys_flag=int(SysFlag(0)))
    from .batch import QueueKey

    batch = Batch(QueueKey("t", 0), u8(b"\x01t"), wire, facts.count, facts.parts_size, wrapper, b"", u8(b""))
    encoder = Encoder(store_host)
    encoder.encode(batch, RecordPosition(0, 0, 0), np.empty(encoder.size(batch, 0), np.uint8))
