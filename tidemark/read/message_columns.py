"""Messages as Arrow columns, built from the buffer of records by compiled loops: no Python per message.

The columns are the fields of the JSON contract; body is binary and decompressed. Values are the library's default ones:
an inner batch's elements carry their own properties, without TAGS, KEYS and UNIQ_KEY, which have columns of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidemark.format import message
from tidemark.format.dispatch_request import U8Array
from tidemark.format.message import MessageArray
from tidemark.format.properties import split_keys
from tidemark.format.record import INNER_BATCH_FLAGS, SysFlag
from tidemark.read.body import decompress
from tidemark.read.message_rows import host_text
from tidemark.read.pull import PulledPart

SCHEMA = pa.schema(
    [
        ("queue_offset", pa.int64()),
        ("physical_offset", pa.int64()),
        ("message_id", pa.string()),
        ("offset_msg_id", pa.string()),
        ("store_timestamp_ms", pa.int64()),
        ("born_timestamp_ms", pa.int64()),
        ("tag", pa.string()),
        ("keys", pa.list_(pa.string())),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("flag", pa.int32()),
        ("sys_flag", pa.int32()),
        ("reconsume_times", pa.int32()),
        ("born_host", pa.string()),
        ("store_host", pa.string()),
        ("body_crc", pa.int32()),
        ("body", pa.binary()),
    ]
)
_STREAM_END_SIZE = 8


def message_batch(part: PulledPart) -> pa.RecordBatch:
    """The messages of *part*, in order."""
    buffer, messages = part.records.buffer, part.messages
    body, decompressed = _bodies(buffer, messages)
    sys_flag = messages["sys_flag"] & ~np.where(messages["inner"] == 1, INNER_BATCH_FLAGS, 0).astype(np.int32)
    sys_flag &= ~np.where(decompressed, int(SysFlag.COMPRESSED), 0).astype(np.int32)
    offset_ids = _strings(*message.offset_message_ids(buffer, messages), None)
    unique_keys = _texts(buffer, messages, "unique_key")
    keys = _texts(buffer, messages, "keys")
    columns = [
        pa.array(messages["queue_offset"]),
        pa.array(messages["physical_offset"]),
        pc.coalesce(unique_keys, offset_ids),
        offset_ids,
        pa.array(messages["store_timestamp"]),
        pa.array(messages["born_timestamp"]),
        _texts(buffer, messages, "tags"),
        _key_lists(keys),
        _properties(buffer, messages),
        pa.array(messages["flag"]),
        pa.array(sys_flag),
        pa.array(messages["reconsume_times"]),
        _hosts(buffer, messages, "born"),
        _hosts(buffer, messages, "store"),
        pa.array(messages["body_crc"]),
        body,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def arrow_stream(parts: list[PulledPart], metadata: Mapping[str, str]) -> pa.Buffer:
    """An Arrow IPC stream of all *parts*; *metadata* stands in its schema."""
    schema = SCHEMA.with_metadata(dict(metadata))
    batches = [message_batch(part) for part in parts]
    size = len(schema.serialize()) + sum(map(pa.ipc.get_record_batch_size, batches)) + _STREAM_END_SIZE
    buffer = pa.allocate_buffer(size)  # at once: a sink that grows copies what it has
    with pa.FixedSizeBufferWriter(buffer) as sink:
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return buffer.slice(0, sink.tell())


def _strings(ends: NDArray[np.int32], data: U8Array, valid: NDArray[np.bool_] | None) -> pa.Array:
    """Strings of Arrow's offsets and bytes; bytes that are no UTF-8 are replaced."""
    bitmap, nulls = None, 0
    if valid is not None and not valid.all():
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        nulls = int((~valid).sum())
    buffers = [bitmap, pa.py_buffer(ends), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers, nulls)
    if not data.size or int(data.max()) < 0x80:
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raw = pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers, nulls)
        return pa.array([None if text is None else text.decode("utf-8", "replace") for text in raw.to_pylist()])
    return array


def _texts(buffer: U8Array, messages: MessageArray, name: str) -> pa.Array:
    """A property's values; null where a message has none."""
    lengths = messages[f"{name}_length"]
    return _strings(*message.gather(buffer, messages[f"{name}_at"], lengths), lengths > 0)


def _key_lists(keys: pa.Array) -> pa.Array:
    """KEYS values as lists of their pieces (spec 2.10)."""
    filled = pc.fill_null(keys, "")
    plain = pc.and_(pc.not_equal(filled, ""), pc.invert(pc.match_substring_regex(filled, "^ |  | $")))
    if pc.all(plain).as_py():
        return pc.split_pattern(filled, " ")
    if pc.all(pc.equal(filled, "")).as_py():
        return pa.array([[]] * len(keys), pa.list_(pa.string()))
    return pa.array([split_keys(text) for text in filled.to_pylist()], pa.list_(pa.string()))


def _properties(buffer: U8Array, messages: MessageArray) -> pa.Array:
    """All properties but those with a column of their own."""
    places = message.find_properties(buffer, messages)
    names = _strings(*message.gather(buffer, places.name_at, places.name_length), None)
    values = _strings(*message.gather(buffer, places.value_at, places.value_length), None)
    return pa.MapArray.from_arrays(pa.array(places.row_ends), names, values, pa.map_(pa.string(), pa.string()))


def _hosts(buffer: U8Array, messages: MessageArray, which: str) -> pa.Array:
    """Hosts as text: few different ones, so each is written once."""
    ends, data = message.gather(buffer, messages[f"{which}_host_at"], messages[f"{which}_host_size"])
    raw = pa.Array.from_buffers(pa.binary(), len(messages), [None, pa.py_buffer(ends), pa.py_buffer(data)])
    encoded = raw.dictionary_encode()
    texts = pa.array([host_text(host) for host in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def _bodies(buffer: U8Array, messages: MessageArray) -> tuple[pa.Array, NDArray[np.bool_]]:
    """(bodies, which of them were decompressed)."""
    ends, data = message.gather(buffer, messages["body_at"], messages["body_length"])
    array = pa.Array.from_buffers(pa.binary(), len(messages), [None, pa.py_buffer(ends), pa.py_buffer(data)])
    compressed = (messages["sys_flag"] & SysFlag.COMPRESSED) != 0
    if not compressed.any():
        return array, compressed
    bodies = array.to_pylist()
    done = np.zeros(len(messages), np.bool_)
    for i in np.flatnonzero(compressed):
        original = decompress(bodies[i], int(messages["sys_flag"][i]))
        if original is not None:
            bodies[i] = original
            done[i] = True
    return pa.array(bodies, pa.binary()), done
