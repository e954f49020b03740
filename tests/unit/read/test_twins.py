"""Compiled loops of tidemark.read equal their plain twins on any input."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import buffer_of_records, record_bytes, wire_batch
from tidemark.format import message
from tidemark.format.index_file import Header, oldest_entries, oldest_entries_plain
from tidemark.format.message import Field, PlainMessage, gather_field, number_columns
from tidemark.format.properties import decode_properties
from tidemark.format.record import decode_record

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
    found = message.find_properties(buffer, messages)
    for i, fields in enumerate(records):
        raw = fields["properties"]
        assert isinstance(raw, bytes)
        try:
            raw.decode()
        except UnicodeDecodeError:
            continue  # replaced characters may make two names equal
        entries = {
            buffer[found.name_at[k] :][: found.name_length[k]].tobytes().decode(): buffer[found.value_at[k] :][
                : found.value_length[k]
            ]
            .tobytes()
            .decode()
            for k in range(found.row_ends[i], found.row_ends[i + 1])
        }
        own = ("TAGS", "KEYS", "UNIQ_KEY")
        assert entries == {name: value for name, value in decode_properties(raw).items() if name not in own}


@given(RECORDS, st.sampled_from([0, 1]))
def test_number_columns_equal_the_message_fields(records: list[dict[str, Any]], compressed: int) -> None:
    """Each column equals MESSAGE's field, and the facts cover all messages."""
    if records:
        records[-1]["sys_flag"] |= compressed
    buffer, places, sizes = buffer_of_records(records)
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes)
    messages = message.unwrap_records(buffer, places, rows)
    columns, facts = number_columns(buffer, messages)
    for name, column in columns._asdict().items():
        plain = messages[name].tolist()
        if name == "sys_flag":
            plain = [flag & ~0xC0 if inner else flag for flag, inner in zip(plain, messages["inner"], strict=True)]
        assert column.tolist() == plain
    hosts = {
        which: {buffer[one[f"{which}_host_at"] :][: one[f"{which}_host_size"]].tobytes() for one in messages}
        for which in ("born", "store")
    }
    assert facts.has_one_born_host == (len(hosts["born"]) <= 1)
    assert facts.has_one_store_host == (len(hosts["store"]) <= 1)
    assert facts.compressed == sum(int(one["sys_flag"]) & 1 for one in messages)
    assert facts.elements == int((messages["inner"] > 0).sum())
    if not facts.other_properties:
        assert not len(message.find_properties(buffer, messages).name_at)


@given(RECORDS)
def test_gathered_fields_and_views_equal_the_bytes_at_the_message_fields(records: list[dict[str, Any]]) -> None:
    buffer, places, sizes = buffer_of_records(records)
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes)
    messages = message.unwrap_records(buffer, places, rows)
    _, facts = number_columns(buffer, messages)
    names = {Field.TAGS: "tags", Field.KEYS: "keys", Field.UNIQUE_KEYS: "unique_key", Field.BODIES: "body"}
    for field, name in names.items():
        expected = [buffer[one[f"{name}_at"] :][: one[f"{name}_length"]].tobytes() for one in messages]
        size = {
            Field.TAGS: facts.tags_bytes,
            Field.KEYS: facts.keys_bytes,
            Field.UNIQUE_KEYS: facts.unique_keys_bytes,
            Field.BODIES: facts.bodies_bytes,
        }[field]
        assert size == sum(map(len, expected))
        found = gather_field(buffer, messages, field, size)
        data = found.data.tobytes()
        assert [data[found.ends[i] : found.ends[i + 1]] for i in range(len(messages))] == expected
        assert found.values == sum(map(bool, expected))
        assert field is Field.BODIES or found.is_ascii == b"".join(expected).isascii()


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
