"""Wire batches: the compiled scan and encoder equal the plain decoder and encoder."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import builders
from tests.property.strategies import damaged_wire_batches, property_bytes, wire_batches
from tidemark.errors import BatchMalformedError
from tidemark.format import wire_batch
from tidemark.format.elements import Element, decode_elements, encode_elements
from tidemark.format.properties import decode_properties, is_java_true, is_transactional, timer_name
from tidemark.format.record import HEAD, Record, encode_record
from tidemark.format.wire_batch import scan

Elements = list[tuple[bytes, bytes, int]]


def first(values: list[bool]) -> int | None:
    return values.index(True) if True in values else None


def decoded(wire: bytes) -> tuple[list[Element], int | None]:
    """Return the elements, and the position of the first malformed one, if any."""
    elements = []
    try:
        for element in decode_elements(wire):
            elements.append(element)  # noqa: PERF402 - those before the malformed one are kept
    except BatchMalformedError as error:
        return elements, int(str(error.facts["at"]))
    return elements, None


def is_delayed(properties: dict[str, str]) -> bool:
    return properties.get("DELAY", "0") != "0" or timer_name(properties) is not None


@given(elements=wire_batches())
def test_encoded_elements_have_the_documented_layout(elements: Elements) -> None:
    """encode_elements writes the same as struct by docs/format.md §3, and decode_elements reads it back."""
    wire = encode_elements(Element(*element) for element in elements)
    assert wire == builders.wire_batch(*elements)
    assert list(decode_elements(wire)) == [Element(*element) for element in elements]


@given(wire=st.one_of(damaged_wire_batches(), st.binary(max_size=120)))
def test_the_batch_scan_accepts_the_same_batches_as_the_plain_decoder(wire: bytes) -> None:
    """A batch is malformed for both, at the same byte, or for none; and the facts are those of its elements."""
    check_scan(wire)


@example(body=b"x", at=-2, changed=1, is_cut=False)
@given(body=st.binary(max_size=40), at=st.integers(-3, 61), changed=st.integers(0, 255), is_cut=st.booleans())
def test_the_batch_scan_of_one_plain_element_accepts_the_same_batches(
    body: bytes, at: int, changed: int, is_cut: bool
) -> None:
    """The same for one element without properties, for which the scan has a way of its own."""
    wire = bytearray(builders.wire_batch((body, b"", 0)))
    if at < len(wire):
        wire[at] = changed
    check_scan(bytes(wire[:at] if is_cut else wire))


def check_scan(wire: bytes) -> None:
    elements, malformed_at = decoded(wire)
    if malformed_at is not None:
        with pytest.raises(BatchMalformedError) as refused:
            scan(wire)
        assert refused.value.facts["at"] == malformed_at
        return
    facts = scan(wire)
    parts = [len(element.body) + len(element.properties) for element in elements]
    properties = [decode_properties(element.properties) for element in elements]
    assert facts.count == len(elements)
    assert facts.parts_size == sum(parts)
    assert facts.max_element_parts == max(parts, default=0)
    assert facts.empty_body_at == first([not element.body for element in elements])
    assert facts.crc_at == first(["__CRC32#" in one for one in properties])
    assert facts.inner_at == first(["INNER_NUM" in one or "INNER_MULTI_DISPATCH" in one for one in properties])
    assert facts.delay_at == first([is_delayed(one) for one in properties])
    assert facts.transaction_at == first([is_transactional(one) for one in properties])
    waits = [is_java_true(one["WAIT"]) for one in properties if "WAIT" in one]
    assert (facts.waiting, facts.not_waiting) == (waits.count(True), waits.count(False))
    assert facts.first_properties == (elements[0].properties if elements else b"")


@given(elements=wire_batches().filter(bool))
def test_the_batch_scan_returns_the_keys_of_the_first_element(elements: Elements) -> None:
    """unique_key and keys are the bytes of the first element's properties, or empty."""
    facts = scan(builders.wire_batch(*elements))
    named = decode_properties(elements[0][1])
    assert facts.unique_key.decode("utf-8", "replace") == named.get("UNIQ_KEY", "")
    assert facts.keys.decode("utf-8", "replace") == named.get("KEYS", "")


@given(wire=damaged_wire_batches())
def test_the_batch_scan_is_equal_for_bytes_and_arrays(wire: bytes) -> None:
    """Bytes and uint8 arrays give the same facts."""
    outcomes = []
    for form in (wire, np.frombuffer(bytearray(wire), np.uint8)):
        try:
            outcomes.append(str(scan(form)))
        except BatchMalformedError as error:
            outcomes.append(str(error.facts))
    assert outcomes[0] == outcomes[1]


@given(
    elements=wire_batches(),
    topic=st.binary(max_size=127),
    is_v2=st.booleans(),
    first_extra=property_bytes(),
    queue_offset=st.integers(0, 1 << 40),
    physical_offset=st.integers(0, 1 << 40),
)
def test_encoded_records_equal_those_of_encode_record(
    elements: Elements, topic: bytes, is_v2: bool, first_extra: bytes, queue_offset: int, physical_offset: int
) -> None:
    """Each record of the compiled loop equals the plain encoder's and struct's, byte by byte."""
    common = {
        "topic": topic,
        "queue_id": 3,
        "sys_flag": 0x2,
        "magic": builders.MAGIC_V2 if is_v2 else builders.MAGIC_V1,
    }
    head = np.frombuffer(builders.record_bytes(**common)[: HEAD.itemsize], np.uint8)  # type: ignore[arg-type]
    named = np.frombuffer(struct.pack(">h" if is_v2 else ">B", len(topic)) + topic, np.uint8)
    out = np.zeros(sum(200 + len(body) + len(extra) + 600 for body, extra, _ in elements), np.uint8)
    positions = np.zeros(len(elements), np.int64)
    written = wire_batch.encode_records(
        np.frombuffer(builders.wire_batch(*elements), np.uint8),
        head=head,
        topic=named,
        first_extra=np.frombuffer(first_extra, np.uint8),
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        out=out,
        positions=positions,
    )
    expected, by_struct = [], b""
    for i, (body, properties, flag) in enumerate(elements):
        fields = {
            **common,
            "body": body,
            "properties": properties + (first_extra if i == 0 else b""),
            "flag": flag,
            "queue_offset": queue_offset + i,
            "physical_offset": physical_offset + len(by_struct),
            "born_timestamp": builders.BORN_MS,
            "store_timestamp": builders.STORE_MS,
            "born_host": builders.BORN_HOST,
            "store_host": builders.STORE_HOST,
        }
        expected.append(encode_record(Record(**fields)))  # type: ignore[arg-type]
        by_struct += builders.record_bytes(**fields)  # type: ignore[arg-type]
    assert out[:written].tobytes() == b"".join(expected) == by_struct
    assert not out[written:].any()
    assert positions.tolist() == [physical_offset + sum(map(len, expected[:i])) for i in range(len(expected))]


def test_a_record_whose_body_has_crc_0_stores_0() -> None:
    """A body whose CRC is 0 is stored with 0."""
    assert zlib.crc32(builders.BODY_OF_CRC_0) == 0
    record = encode_record(Record(topic=b"T", body=builders.BODY_OF_CRC_0))
    assert record[8:12] == bytes(4)
