"""Compiled loops of tidemark.read equal their plain twins on any input."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import buffer_of_records, record_bytes, wire_batch
from tidemark.errors import CorruptStoreError
from tidemark.format import message
from tidemark.format.columns import Columns, Field, checked_columns, columns_of, find_properties
from tidemark.format.dispatch_request import U8Array
from tidemark.format.index_file import (
    ANY_TIME,
    Header,
    encode_header,
    find_cached,
    oldest_entries,
    oldest_entries_plain,
)
from tidemark.format.message import PlainMessage
from tidemark.format.properties import decode_properties
from tidemark.format.record import decode_record
from tidemark.format.sys_flag import INNER_BATCH_FLAGS

TOPIC = b"TopicTest"  # of record_bytes
PROPERTIES = st.binary(max_size=60) | st.text("ab=\x01\x02 é", max_size=40).map(str.encode)
ELEMENTS = st.lists(st.tuples(st.binary(max_size=20), PROPERTIES, st.integers(-5, 5)), min_size=1, max_size=5)
BODIES = st.binary(max_size=60) | ELEMENTS.map(lambda elements: wire_batch(*elements))
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "body": BODIES,
            "properties": PROPERTIES,
            "sys_flag": st.sampled_from([0, 0xC0, 0x40, 0x80]),
            "queue_offset": st.integers(0, 1 << 40),
            "flag": st.integers(-9, 9),
            "born_host": st.sampled_from([bytes(8), b"\1" * 8, bytes(20)]),
        }
    ),
    max_size=6,
)


@given(RECORDS)
def test_unwrapped_messages_equal_those_of_the_plain_twin(records: list[dict[str, object]]) -> None:
    """Offsets, flags, bodies, raw properties and CRCs of every message of every record are compared."""
    buffer, places, sizes = buffer_of_records(records)
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes)
    assert not rows["fault"].any()
    found = [
        PlainMessage(
            int(one["queue_offset"]),
            int(one["flag"]),
            buffer[one["body_at"] :][: one["body_length"]].tobytes(),
            buffer[one["properties_at"] :][: one["properties_length"]].tobytes(),
            int(one["body_crc"]),
            int(one["reconsume_times"]),
            bool(one["inner"]),
        )
        for one in message.unwrap_records(buffer, places, rows)
    ]
    raws = [buffer[at : at + size].tobytes() for at, size in zip(places, sizes, strict=True)]
    assert found == [one for raw in raws for one in message.unwrap_record(decode_record(raw))]


@given(RECORDS)
def test_property_columns_equal_the_plain_parser(records: list[dict[str, object]]) -> None:
    """Names and values of a column are those of the plain parser; three properties have columns of their own."""
    raws = [record_bytes(**{**fields, "sys_flag": 0}) for fields in records]  # type: ignore[arg-type]
    sizes = np.array([len(raw) for raw in raws], np.int64)
    places = np.cumsum(sizes) - sizes
    buffer = np.frombuffer(b"".join(raws), np.uint8).copy()
    rows = message.check_records(buffer, places=places, physical_offsets=np.zeros(len(places), np.int64), sizes=sizes)
    messages = message.unwrap_records(buffer, places, rows)
    properties = columns_of(buffer, messages).fields[Field.PROPERTIES]
    found = find_properties(properties)
    for i, fields in enumerate(records):
        raw = fields["properties"]
        assert isinstance(raw, bytes)
        try:
            raw.decode()
        except UnicodeDecodeError:
            continue  # replaced characters may make two names equal
        entries = {
            properties.data[found.name_at[k] :][: found.name_length[k]].tobytes().decode(): properties.data[
                found.value_at[k] :
            ][: found.value_length[k]]
            .tobytes()
            .decode()
            for k in range(found.row_ends[i], found.row_ends[i + 1])
        }
        own = ("TAGS", "KEYS", "UNIQ_KEY")
        assert entries == {name: value for name, value in decode_properties(raw).items() if name not in own}


_PLACES = {
    Field.BORN_HOSTS: ("born_host_at", "born_host_size"),
    Field.STORE_HOSTS: ("store_host_at", "store_host_size"),
    Field.TAGS: ("tags_at", "tags_length"),
    Field.KEYS: ("keys_at", "keys_length"),
    Field.UNIQUE_KEYS: ("unique_key_at", "unique_key_length"),
    Field.BODIES: ("body_at", "body_length"),
}


def values(columns: Columns, field: Field) -> list[bytes]:
    """Return the values of a column."""
    ends, data = columns.fields[field]
    return [data[begin:end].tobytes() for begin, end in itertools.pairwise(ends)]


@given(RECORDS, st.sampled_from([0, 1]), st.sets(st.sampled_from(Field)))
def test_columns_equal_the_message_fields(records: list[dict[str, Any]], compressed: int, wanted: set[Field]) -> None:
    """Fields that are not wanted are empty."""
    if records:
        records[-1]["sys_flag"] |= compressed
    buffer, places, sizes = buffer_of_records(records)
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes)
    messages = message.unwrap_records(buffer, places, rows)
    columns = columns_of(buffer, messages, wanted)
    for name, column in columns.numbers._asdict().items():
        plain = messages[name].tolist()
        if name == "sys_flag":
            plain = [flag & ~0xC0 if inner else flag for flag, inner in zip(plain, messages["inner"], strict=True)]
        assert column.tolist() == plain
    for field, (at, size) in _PLACES.items():
        expected = [buffer[one[at] :][: one[size]].tobytes() if field in wanted else b"" for one in messages]
        assert values(columns, field) == expected
    assert columns.compressed == sum(int(one["sys_flag"]) & 1 for one in messages)
    assert columns.elements == int((messages["inner"] > 0).sum())


@given(RECORDS)
def test_properties_without_a_column_of_their_own_are_a_column(records: list[dict[str, Any]]) -> None:
    """A message whose properties are only TAGS, KEYS and UNIQ_KEY may have them there, too."""
    buffer, places, sizes = buffer_of_records([{**fields, "sys_flag": 0} for fields in records])
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes)
    columns = columns_of(buffer, message.unwrap_records(buffer, places, rows))
    for fields, found in zip(records, values(columns, Field.PROPERTIES), strict=True):
        assert found == fields["properties"] or not found
        try:
            others = set(decode_properties(fields["properties"])) - {"TAGS", "KEYS", "UNIQ_KEY"}
        except UnicodeDecodeError:
            continue
        assert found or not others


@given(RECORDS, st.integers(1, 200), st.sampled_from([0, 1, 0x301]))
def test_columns_made_with_the_check_equal_those_of_checked_records(
    records: list[dict[str, Any]], copies: int, sys_flag: int
) -> None:
    """This covers several tiles, and texts that need more room than the first one."""
    plain = [{**fields, "sys_flag": sys_flag} for fields in records] * copies
    buffer, places, sizes = buffer_of_records(plain)
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes)
    expected = columns_of(buffer, message.unwrap_records(buffer, places, rows))
    found = checked_columns(buffer.copy(), len(plain), TOPIC, 0)
    assert found is not None
    assert (found.compressed, found.elements) == (expected.compressed, 0)
    for name, column in found.numbers._asdict().items():
        assert column.tolist() == getattr(expected.numbers, name).tolist()
    assert [values(found, field) for field in Field] == [values(expected, field) for field in Field]


@given(st.data())
def test_records_that_are_not_sound_have_no_columns(data: st.DataObject) -> None:
    """Any damage to the bytes of one of many records, an inner batch, or another number, topic or queue."""
    count = data.draw(st.integers(1, 150))
    buffer, _, _ = buffer_of_records([{"body": b"0123456789", "properties": b"KEYS\x01k\x02"}] * count)
    assert checked_columns(buffer.copy(), count, TOPIC, 0) is not None
    assert checked_columns(buffer.copy(), count - 1, TOPIC, 0) is None
    assert checked_columns(buffer.copy(), count + 1, TOPIC, 0) is None
    assert checked_columns(buffer.copy(), 1 << 60, TOPIC, 0) is None
    assert checked_columns(buffer.copy(), count, b"TopicTesu", 0) is None
    assert checked_columns(buffer.copy(), count, TOPIC, 1) is None
    at = data.draw(st.integers(0, len(buffer) - 1))
    buffer[at] ^= data.draw(st.integers(1, 255))
    assert (checked_columns(buffer.copy(), count, TOPIC, 0) is not None) == _are_sound(buffer, count)


def _are_sound(buffer: U8Array, count: int) -> bool:
    """Return what checks in two steps say: the physical offsets are those of the heads."""
    try:
        found = message.find_records(buffer)
    except CorruptStoreError:
        return False
    rows = message.check_records(
        buffer,
        places=found.places,
        physical_offsets=found.physical_offsets,
        sizes=found.sizes,
        topic=TOPIC,
        queue_id=0,
    )
    are_inner = (rows["sys_flag"] & INNER_BATCH_FLAGS) == INNER_BATCH_FLAGS
    return len(rows) == count and not rows["fault"].any() and not are_inner.any()


@given(st.data())
def test_any_damage_gives_a_fault_or_a_record(data: st.DataObject) -> None:
    """Any bytes in place of a record give a fault or a record, and no other outcome."""
    raw = bytearray(record_bytes(body=b"0123456789", topic=b"t"))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    buffer = np.frombuffer(bytes(raw), np.uint8).copy()
    zero = np.zeros(1, np.int64)
    rows = message.check_records(
        buffer, places=zero, physical_offsets=zero, sizes=np.array([len(raw)], np.int64), topic=b"t", queue_id=0
    )
    assert message.fault_reason(int(rows["fault"][0]))
    assert len(message.unwrap_records(buffer, zero, rows)) == (rows["fault"][0] == 0)


@given(
    slots=st.integers(1, 4),
    entries=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(-1, 5), st.integers(-1, 12)),
        min_size=1,
        max_size=12,
    ),
    heads=st.lists(st.integers(-1, 14), min_size=4, max_size=4),
    after=st.integers(-1, 30),
    below=st.integers(0, 45),
    least_ms=st.integers(0, 6000),
    limit=st.integers(1, 15),
)
def test_index_chains_of_any_shape_are_walked_as_by_the_plain_twin(
    slots: int,
    entries: list[tuple[int, int, int, int]],
    heads: list[int],
    after: int,
    below: int,
    least_ms: int,
    limit: int,
) -> None:
    """Chains may have any shape, even a broken one: the walk ends, and a page is a prefix of the whole."""
    table = np.array(entries, np.dtype([("h", ">i4"), ("p", ">i8"), ("t", ">i4"), ("n", ">i4")])).view(np.uint8)
    slot_table = np.array(heads[:slots], ">i4").view(np.uint8)
    for key_hash in range(4):
        query = {"key_hash": key_hash, "after": after, "below": below, "least_ms": least_ms}
        whole = oldest_entries_plain(slot_table, table, Header(), **query)
        page, more = oldest_entries(slot_table, table, Header(), limit=1000, **query)
        assert page.tolist() == whole
        assert not more
        page, more = oldest_entries(slot_table, table, Header(), limit=limit, **query)
        assert set(page.tolist()) <= set(whole)
        assert more or page.tolist() == whole


@pytest.fixture(scope="module")
def cached_files() -> Iterator[list[int]]:
    """Return descriptors of two files on a file system that can read without waiting; skip if there is none."""
    with tempfile.TemporaryFile(dir=".") as one, tempfile.TemporaryFile(dir=".") as other:
        one.write(b"x")
        one.flush()
        try:
            os.preadv(one.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except OSError:
            pytest.skip("the file system cannot read without waiting")
        yield [one.fileno(), other.fileno()]


@given(
    tables=st.lists(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(-1, 5), st.integers(-1, 12)),
            min_size=1,
            max_size=12,
        ),
        min_size=2,
        max_size=2,
    ),
    heads=st.lists(st.integers(-1, 14), min_size=3, max_size=3),
    begin=st.integers(0, 9000),
    after=st.integers(-1, 30),
    below=st.integers(0, 45),
    least_ms=st.integers(0, 6000),
    most=st.integers(1, 30),
)
def test_chains_of_several_cached_files_equal_those_of_the_plain_twin(
    cached_files: list[int],
    tables: list[list[tuple[int, int, int, int]]],
    heads: list[int],
    begin: int,
    after: int,
    below: int,
    least_ms: int,
    most: int,
) -> None:
    """Nothing is returned where one of them is too long, or a file has not all that its chain needs."""
    slots = np.array(heads, ">i4").view(np.uint8)
    plain = [np.array(table, np.dtype([("h", ">i4"), ("p", ">i8"), ("t", ">i4"), ("n", ">i4")])) for table in tables]
    header = Header(begin_timestamp=begin)
    for descriptor, table in zip(cached_files, plain, strict=True):
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, encode_header(header) + slots.tobytes() + table.tobytes(), 0)
    files = np.array(
        [(descriptor, len(heads), len(table)) for descriptor, table in zip(cached_files, plain, strict=True)], np.int64
    )
    for key_hash in range(4):
        query = {"key_hash": key_hash, "after": after, "below": below}
        expected: set[int] = set()
        for table in plain:
            view = table.view(np.uint8)
            expected |= set(
                oldest_entries_plain(slots, view, header, least_ms=least_ms if least_ms > 0 else ANY_TIME, **query)
            )
        assert find_cached(files, least_ms=least_ms, most=24, **query) == sorted(expected)
        assert find_cached(files, least_ms=least_ms, most=most, **query) in (None, sorted(expected))
    os.truncate(cached_files[1], 41)
    assert find_cached(files, key_hash=0, after=-1, below=1, least_ms=0, most=24) is None


def written(descriptor: int, data: bytes) -> int:
    """Replace a file's content by *data*, and return its descriptor."""
    os.truncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)
    return descriptor


@given(records=RECORDS, before=st.integers(0, 40))
def test_a_small_record_is_the_one_that_the_check_of_many_finds(
    cached_files: list[int], records: list[dict[str, object]], before: int
) -> None:
    """Its position in the file differs from that in the log, and it must end below a limit."""
    buffer, places, sizes = buffer_of_records(records)
    file, first = written(cached_files[0], bytes(before) + buffer.tobytes()), np.zeros(1, np.int64)
    for place, size in zip(places.tolist(), sizes.tolist(), strict=True):
        alone, end = buffer[place : place + size].copy(), place + size
        rows = message.check_records(alone, places=first, physical_offsets=first + place, sizes=np.array([size]))
        found = message.read_small_record(file, before + place, place, below=end)
        assert found is not None
        assert found.buffer.tobytes() == alone.tobytes()
        assert found.rows.tolist() == rows.tolist()
        is_batch = int(rows["sys_flag"][0]) & INNER_BATCH_FLAGS == INNER_BATCH_FLAGS
        assert (found.messages is None) is is_batch
        if found.messages is not None:
            assert found.messages.tolist() == message.unwrap_records(alone, first, rows).tolist()
        assert message.read_small_record(file, before + place, place, below=end - 1) is None
        assert message.read_small_record(file, before + place, place + 1, below=end + 1) is None


@pytest.mark.parametrize("at", [0, 4, 30, 100])
def test_a_small_record_with_damage_is_not_found(cached_files: list[int], at: int) -> None:
    raw = record_bytes(body=b"some body" * 10)
    data = bytearray(raw)
    data[at] ^= 0x7F
    for content, is_found in ((raw, True), (bytes(data), False), (raw[:-1], False), (b"", False)):
        found = message.read_small_record(written(cached_files[0], content), 0, 0, below=1 << 40)
        assert (found is not None) is is_found


@pytest.mark.parametrize(("body", "is_found"), [(1900, True), (2048, False)])
def test_a_large_record_is_not_read_as_a_small_one(cached_files: list[int], body: int, is_found: bool) -> None:
    file = written(cached_files[0], record_bytes(body=bytes(body)))
    assert (message.read_small_record(file, 0, 0, below=1 << 40) is not None) is is_found
