"""The batch body that producers send, with content that no Tidemark producer sends."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests import builders
from tests.fuzz.guarded import GuardedBuffer
from tests.fuzz.mutation import mutated
from tests.fuzz.target import fuzz
from tests.property.strategies import wire_batches
from tidemark.errors import BatchMalformedError
from tidemark.format import wire_batch
from tidemark.format.elements import Element, decode_elements
from tidemark.format.properties import decode_properties

ROOM = GuardedBuffer(1 << 16)
OUT = GuardedBuffer(1 << 18)
BATCHES = wire_batches().map(lambda elements: builders.wire_batch(*elements))
HEAD = np.frombuffer(builders.record_bytes()[:88], np.uint8)
TOPIC = np.frombuffer(b"\x05topic", np.uint8)


def plainly_decoded(wire: bytes) -> list[Element] | int:
    """Return the elements, or the position of the first malformed one."""
    try:
        return list(decode_elements(wire))
    except BatchMalformedError as error:
        return int(str(error.facts["at"]))


@fuzz(few=150, at_once=2_000, wire=mutated(BATCHES) | st.binary(max_size=200), at_end=st.booleans())
def test_compiled_and_plain_batch_decoders_agree_on_any_bytes(wire: bytes, at_end: bool) -> None:
    """Both refuse the batch at the same byte, or both return the same messages; no byte outside of it is read."""
    plain = plainly_decoded(wire)
    try:
        facts = wire_batch.scan(ROOM.lend(wire, at_end=at_end))
    except BatchMalformedError as error:
        assert error.facts["at"] == plain  # noqa: PT017 - whether it is refused is the question
        return
    assert isinstance(plain, list)
    assert facts.count == len(plain)
    assert facts.parts_size == sum(len(one.body) + len(one.properties) for one in plain)
    if plain:
        named = decode_properties(plain[0].properties)
        assert facts.first_properties == plain[0].properties
        assert facts.unique_key.decode("utf-8", "replace") == named.get("UNIQ_KEY", "")
        assert facts.keys.decode("utf-8", "replace") == named.get("KEYS", "")


@fuzz(few=100, at_once=2_000, wire=mutated(BATCHES), at_end=st.booleans())
def test_accepted_batches_are_encoded_within_their_predicted_size(wire: bytes, at_end: bool) -> None:
    """Records take exactly the bytes that the batch's facts predict, and carry its bodies."""
    buffer = ROOM.lend(wire, at_end=at_end)
    try:
        facts = wire_batch.scan(buffer)
    except BatchMalformedError:
        return
    size = facts.parts_size + facts.count * (len(HEAD) + len(TOPIC) + 2)
    out, positions = OUT.lend(bytes(size), at_end=at_end), np.zeros(facts.count, np.int64)
    written = wire_batch.encode_records(
        buffer,
        head=HEAD,
        topic=TOPIC,
        first_extra=np.empty(0, np.uint8),
        queue_offset=0,
        physical_offset=0,
        out=out,
        positions=positions,
    )
    assert written == size
    for place, element in zip(positions.tolist(), decode_elements(wire), strict=True):
        assert out[place + 88 : place + 88 + len(element.body)].tobytes() == element.body
