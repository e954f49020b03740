"""Records: plain encoder and decoder are inverse, agree with struct, and accept any bytes without crashing."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests import builders, plain_check
from tests.property.strategies import damaged_logs, record_fields
from tidemark.errors import CorruptMessageError, CorruptStoreError
from tidemark.format.host import decode_host
from tidemark.format.index_file import decode_header
from tidemark.format.message_id import decode_offset_message_id, decode_unique_key
from tidemark.format.properties import decode_properties
from tidemark.format.record import Record, decode_record, encode_record


@given(fields=record_fields(), physical_offset=st.integers(0, 1 << 50), behind=st.binary(max_size=5))
def test_decode_reverses_encode(fields: dict[str, Any], physical_offset: int, behind: bytes) -> None:
    """Every field is decoded, and the bytes are those of the layout as struct writes it."""
    record = Record(**fields, physical_offset=physical_offset, born_timestamp=builders.BORN_MS)
    data = encode_record(record)
    assert data == builders.record_bytes(**fields, physical_offset=physical_offset)
    v6 = (0x10 if len(record.born_host) == 20 else 0) | (0x20 if len(record.store_host) == 20 else 0)
    expected = record._replace(body_crc=plain_check.masked_crc(record.body), sys_flag=record.sys_flag | v6)
    assert decode_record(data + behind) == expected


@given(data=st.one_of(damaged_logs(), st.binary(max_size=200)))
def test_any_bytes_decode_to_a_record_or_are_corrupt(data: bytes) -> None:
    """decode_record raises nothing else, and agrees with the plain reader on which bytes are a record."""
    try:
        record = decode_record(data)
    except CorruptMessageError as error:
        record = None
        assert error.facts["reason"] in {"TOO_SHORT", "MAGIC", "LENGTH"}  # noqa: PT017 - either outcome is right here
    assert (record is None) == (not is_record(data))
    if record is not None:
        assert data.startswith(encode_record(record))


def is_record(data: bytes) -> bool:
    """Return True if a whole record of consistent lengths is at byte 0, whatever its PHYSICALOFFSET."""
    if len(data) < 40:
        return False
    try:
        plain_check.measure(data, 0, len(data), base_offset=plain_check.i8(data, 28), file_end=None)
    except plain_check.Stop:
        return False
    return True


@given(data=st.binary(max_size=80))
def test_any_bytes_decode_as_properties(data: bytes) -> None:
    """The lenient parser refuses nothing, and returns no empty name or value."""
    assert all(name and value for name, value in decode_properties(data).items())


@given(data=st.binary(max_size=80))
def test_any_bytes_decode_to_a_header_or_are_too_short(data: bytes) -> None:
    """An index file's header is corrupt only when it is cut off."""
    try:
        decode_header(data)
    except CorruptStoreError:
        assert len(data) < 40
    else:
        assert len(data) >= 40


@given(data=st.binary(max_size=24))
def test_any_bytes_decode_to_a_host_or_raise_value_error(data: bytes) -> None:
    """Any 8 or 20 bytes are a host."""
    try:
        decode_host(data)
    except ValueError:
        assert len(data) not in (8, 20)
    else:
        assert len(data) in (8, 20)


HEX_DIGITS = set("0123456789abcdefABCDEF")
HEXLIKE = st.sampled_from([32, 56]).flatmap(
    lambda size: st.text(st.sampled_from("0123456789abcdefABCDEF \t_٣"), min_size=size, max_size=size)
)


@given(text=st.one_of(HEXLIKE, st.text(max_size=60)))
def test_any_text_decodes_to_a_message_id_or_raises_value_error(text: str) -> None:
    """Ids come from users: nothing else is raised, and blanks are no hex digits."""
    for decode in (decode_offset_message_id, decode_unique_key):
        try:
            decode(text)
        except ValueError:
            assert (
                not (len(text) in (32, 56) and set(text) <= set("0123456789abcdefABCDEF"))
                or decode is decode_unique_key
            )
        else:
            assert set(text) <= set("0123456789abcdefABCDEF")
