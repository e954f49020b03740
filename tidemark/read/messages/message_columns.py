"""Messages as Arrow columns, built from the buffer of records by compiled loops without Python code per message.

The columns are the fields of the JSON contract; body is binary and decompressed. Values are the library's defaults: an
inner batch's elements have their own properties, without TAGS, KEYS and UNIQ_KEY, which have separate columns.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidemark.format import message
from tidemark.format.columns import (
    BytesColumn,
    Columns,
    Field,
    columns_of,
    find_properties,
    offset_message_ids,
)
from tidemark.format.compression import decompress
from tidemark.format.dispatch_request import U8Array
from tidemark.format.properties import split_keys
from tidemark.format.sys_flag import SysFlag
from tidemark.read.buffers import POOL
from tidemark.read.cached import require_thread
from tidemark.read.messages.body import BodyRoom
from tidemark.read.messages.message_rows import host_text
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

REPETITIVE = frozenset({"tag", "born_host", "store_host"})  # columns with few distinct values
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_KEYS, _PROPERTIES = SCHEMA.field("keys").type, SCHEMA.field("properties").type
_NO_TEXTS = pa.nulls(0, pa.string())
_NO_ENTRIES = pa.StructArray.from_arrays([_NO_TEXTS, _NO_TEXTS], fields=[_PROPERTIES.key_field, _PROPERTIES.item_field])
_SPACE = 0x20
_INT32_SIZE = 4
_GREATEST_OFFSET = (1 << 31) - 1


_AS_THEY_ARE = {
    "queue_offset": "queue_offset",
    "physical_offset": "physical_offset",
    "store_timestamp_ms": "store_timestamp",
    "born_timestamp_ms": "born_timestamp",
    "flag": "flag",
    "reconsume_times": "reconsume_times",
    "body_crc": "body_crc",
}
_FIELDS = {  # that a column needs
    "message_id": {Field.UNIQUE_KEYS, Field.STORE_HOSTS},
    "offset_msg_id": {Field.STORE_HOSTS},
    "tag": {Field.TAGS},
    "keys": {Field.KEYS},
    "properties": {Field.PROPERTIES},
    "sys_flag": {Field.BODIES},  # the flag of a compressed body shows whether it could be decompressed
    "born_host": {Field.BORN_HOSTS},
    "store_host": {Field.STORE_HOSTS},
    "body": {Field.BODIES},
}


def require_columns(texts: Iterable[str]) -> list[str]:
    """Return the names in *texts*, which separate them with commas. Raises ValueError for a column SCHEMA lacks."""
    names = [name for text in texts for name in text.split(",")]
    for name in names:
        if name not in SCHEMA.names:
            raise ValueError(f"there is no column {name!r}: expected {', '.join(SCHEMA.names)}")
    return names


def schema_of(columns: Collection[str], *, dictionaries: bool = False) -> pa.Schema:
    """Return SCHEMA with these *columns* only, in its order. dictionaries: REPETITIVE ones are dictionary-encoded."""
    fields = [field for field in SCHEMA if field.name in columns]
    return pa.schema(
        [field.with_type(_DICTIONARY) if dictionaries and field.name in REPETITIVE else field for field in fields]
    )


def message_batch(
    part: PulledPart,
    schema: pa.Schema = SCHEMA,
    *,
    room: BodyRoom | None = None,
) -> pa.RecordBatch:
    """Return the messages of *part*, in order.

    schema  SCHEMA or one of `schema_of`: only its columns are built
    room    limit of the response for decompressed bodies
    """
    fields = set().union(*(_FIELDS.get(name, ()) for name in schema.names))
    return batch_of(columns_of(part.records.buffer, part.messages, fields, POOL.lend), schema, room=room)


def batch_of(columns: Columns, schema: pa.Schema = SCHEMA, *, room: BodyRoom | None = None) -> pa.RecordBatch:
    """Return *columns* as a batch. schema, room: as for `message_batch`."""
    made = _Columns(columns, room)
    return pa.RecordBatch.from_arrays([made.column(field) for field in schema], schema=schema)


class _Columns:
    """Columns of messages, each built on request.

    Without functools.cached_property, which has one lock for all objects before Python 3.12.
    """

    def __init__(self, columns: Columns, room: BodyRoom | None) -> None:
        self._columns = columns
        self._numbers = columns.numbers
        self._count = len(columns.numbers.flag)
        self._room = room
        self._ids: pa.Array | None = None
        self._bodies: tuple[pa.Array, NDArray[np.bool_]] | None = None

    def column(self, field: pa.Field) -> pa.Array:
        """Return the column *field* of SCHEMA, which may be dictionary-encoded."""
        if field.name in _AS_THEY_ARE:
            return _number_array(getattr(self._numbers, _AS_THEY_ARE[field.name]))
        column: pa.Array = getattr(self, field.name)
        return column.dictionary_encode() if field.type == _DICTIONARY else column

    @property
    def message_id(self) -> pa.Array:
        unique_keys = self._text(Field.UNIQUE_KEYS)
        if not unique_keys.null_count:
            return unique_keys
        if unique_keys.null_count == self._count:
            return self._own_offset_ids
        return pc.coalesce(unique_keys, self._own_offset_ids)

    @property
    def _own_offset_ids(self) -> pa.Array:
        """Ids of messages without a UNIQ_KEY; those of inner batches contain the index in the batch."""
        if not self._columns.elements:
            return self.offset_msg_id
        return _strings(*offset_message_ids(self._columns, with_element=True), None, is_ascii=True)

    @property
    def offset_msg_id(self) -> pa.Array:
        if self._ids is None:
            self._ids = _strings(*offset_message_ids(self._columns), None, is_ascii=True)
        return self._ids

    @property
    def tag(self) -> pa.Array:
        return self._text(Field.TAGS)

    @property
    def keys(self) -> pa.Array:
        if not self._columns.fields[Field.KEYS].ends[-1]:
            return _no_lists(self._count)
        return _key_lists(self._text(Field.KEYS))

    def _text(self, text: Field) -> pa.Array:
        """Return a text of each message; null for messages without it."""
        ends, data = self._columns.fields[text]
        if not ends[-1]:
            return pa.nulls(self._count, pa.string())
        valid = ends[1:] > ends[:-1]
        return _strings(ends, data, None if valid.all() else valid)

    @property
    def properties(self) -> pa.Array:
        properties = self._columns.fields[Field.PROPERTIES]
        return _properties(properties) if properties.ends[-1] else _no_properties(self._count)

    @property
    def sys_flag(self) -> pa.Array:
        flags = self._numbers.sys_flag
        if not self._columns.compressed:
            return _number_array(flags)
        return _number_array(flags & ~np.where(self._made_bodies()[1], int(SysFlag.COMPRESSED), 0).astype(np.int32))

    @property
    def born_host(self) -> pa.Array:
        return _hosts(self._columns.fields[Field.BORN_HOSTS])

    @property
    def store_host(self) -> pa.Array:
        return _hosts(self._columns.fields[Field.STORE_HOSTS])

    @property
    def body(self) -> pa.Array:
        return self._made_bodies()[0]

    def _made_bodies(self) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Return the bodies, and which of them were decompressed."""
        if self._bodies is None:
            self._bodies = self._make_bodies()
        return self._bodies

    def _make_bodies(self) -> tuple[pa.Array, NDArray[np.bool_]]:
        stored = _binary(self._columns.fields[Field.BODIES])
        if not self._columns.compressed:
            return stored, np.zeros(self._count, np.bool_)
        compressed = (self._numbers.sys_flag & SysFlag.COMPRESSED) != 0
        require_thread(self._columns.compressed, int(_int32s(pc.binary_length(stored))[compressed].sum()))
        return _decompressed(stored.to_pylist(), self._numbers.sys_flag, compressed, self._room)


def _number_array(values: NDArray[np.int32] | NDArray[np.int64]) -> pa.Array:
    """Return *values* as a column. `pa.array` takes several times as long, and imports pandas if that is installed."""
    kind = pa.int32() if values.itemsize == _INT32_SIZE else pa.int64()
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)], 0)


def _binary(values: BytesColumn) -> pa.Array:
    buffers = [None, pa.py_buffer(values.ends), pa.py_buffer(values.data)]
    return pa.Array.from_buffers(pa.binary(), len(values.ends) - 1, buffers, 0)


def _strings(
    ends: NDArray[np.int32], data: U8Array, valid: NDArray[np.bool_] | None, *, is_ascii: bool | None = None
) -> pa.Array:
    """Return strings from Arrow offsets and bytes; invalid UTF-8 is replaced. is_ascii: None if it is not known."""
    bitmap, nulls = None, 0
    if valid is not None:
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        nulls = int((~valid).sum())
    buffers = [bitmap, pa.py_buffer(ends), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers, nulls)
    if not data.size or (int(data.max()) < 0x80 if is_ascii is None else is_ascii):
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        require_thread(len(ends) - 1)
        raw = pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers, nulls)
        texts = [b"" if text is None else text.decode("utf-8", "replace").encode() for text in raw.to_pylist()]
        buffers[1:] = _joined(texts)
        return pa.Array.from_buffers(pa.string(), len(texts), buffers, nulls)
    return array


def _joined(values: Sequence[bytes]) -> list[pa.Buffer]:
    """Return the offsets and the bytes of an Arrow array of *values*. Raises ArrowCapacityError for 2 GiB."""
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=ends[1:])
    if ends[-1] > _GREATEST_OFFSET:
        raise pa.ArrowCapacityError(f"{ends[-1]:,} bytes are more than an Arrow array can hold: ask for fewer messages")
    return [pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(values))]


def _key_lists(keys: pa.Array) -> pa.Array:
    """Split KEYS values into lists (docs/format.md §2); empty lists for messages without keys."""
    present = keys.drop_null()
    texts: pa.Array = present
    counts: int | Sequence[int] | NDArray[np.int32] = 1  # most messages have one key
    if _has_spaces(present):
        if pc.any(pc.match_substring_regex(present, "^ |  | $")).as_py():
            require_thread(len(keys))
            lists = [split_keys(text) for text in present.to_pylist()]
            texts, counts = _texts([text for one in lists for text in one]), [len(one) for one in lists]
        else:
            pieces = pc.split_pattern(present, " ")
            texts, counts = pieces.flatten(), _int32s(pc.list_value_length(pieces))
    ends = np.zeros(len(keys) + 1, np.int32)
    ends[1:][_is_valid(keys)] = counts
    return pa.ListArray.from_arrays(_number_array(np.cumsum(ends, dtype=np.int32)), texts)


def _int32s(numbers: pa.Array) -> NDArray[np.int32]:
    """Return *numbers*, which has no nulls. Its `to_numpy` imports pandas if that is installed."""
    return np.frombuffer(numbers.buffers()[1], np.int32, len(numbers), _INT32_SIZE * numbers.offset)


def _is_valid(array: pa.Array) -> NDArray[np.bool_]:
    bitmap = array.buffers()[0]
    if bitmap is None:
        return np.ones(len(array), np.bool_)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)


def _no_lists(n: int) -> pa.Array:
    """Return *n* empty lists."""
    return pa.Array.from_buffers(_KEYS, n, [None, pa.py_buffer(np.zeros(n + 1, np.int32))], 0, children=[_NO_TEXTS])


def _has_spaces(texts: pa.Array) -> bool:
    data = texts.buffers()[2]
    return data is not None and bool((np.frombuffer(data, np.uint8) == _SPACE).any())


def _properties(properties: BytesColumn) -> pa.Array:
    """Return all properties except those with a separate column."""
    places = find_properties(properties)
    names = _strings(*message.gather(properties.data, places.name_at, places.name_length), None)
    values = _strings(*message.gather(properties.data, places.value_at, places.value_length), None)
    return pa.MapArray.from_arrays(_number_array(places.row_ends), names, values, pa.map_(pa.string(), pa.string()))


def _no_properties(n: int) -> pa.Array:
    """Return *n* empty maps."""
    ends = pa.py_buffer(np.zeros(n + 1, np.int32))
    return pa.Array.from_buffers(_PROPERTIES, n, [None, ends], 0, children=[_NO_ENTRIES])


def _hosts(hosts: BytesColumn) -> pa.Array:
    """Return hosts as text. There are few distinct ones, usually one, so each is formatted only once."""
    n = len(hosts.ends) - 1
    first = hosts.data[: hosts.ends[1]] if n else hosts.data
    if n and _are_equal(hosts, first):
        return _repeated(host_text(first.tobytes()).encode(), n)
    encoded = _binary(hosts).dictionary_encode()
    require_thread(len(encoded.dictionary))
    return _texts([host_text(host) for host in encoded.dictionary.to_pylist()]).take(encoded.indices)


def _texts(texts: Sequence[str]) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), len(texts), [None, *_joined([text.encode() for text in texts])], 0)


def _are_equal(hosts: BytesColumn, first: U8Array) -> bool:
    is_of_one_size = len(hosts.data) == (len(hosts.ends) - 1) * len(first)  # the sizes are 8 and 20
    return is_of_one_size and bool((hosts.data[len(first) :] == hosts.data[: -len(first)]).all())


def _repeated(text: bytes, n: int) -> pa.Array:
    """Return *n* strings *text*."""
    return _many(text, 1 << n.bit_length()).slice(0, n)


@functools.lru_cache(maxsize=8)
def _many(text: bytes, n: int) -> pa.Array:
    ends = np.arange(0, (n + 1) * len(text), len(text), dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), n, [None, pa.py_buffer(ends), pa.py_buffer(text * n)])


def _decompressed(
    bodies: list[bytes], sys_flags: NDArray[np.int32], compressed: NDArray[np.bool_], room: BodyRoom | None
) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Return *bodies* with the *compressed* ones decompressed, and which of them could be."""
    done = np.zeros(len(bodies), np.bool_)
    for i in np.flatnonzero(compressed):
        original = (decompress if room is None else room.decompress)(bodies[i], int(sys_flags[i]))
        if original is not None:
            bodies[i] = original
            done[i] = True
    return pa.Array.from_buffers(pa.binary(), len(bodies), [None, *_joined(bodies)], 0), done
