"""Contiguous records, as a pull of stored records returns them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import CorruptStoreError
from tidemark.format.message import find_records
from tidemark.format.record import Record, encode_record


def records(*bodies: bytes) -> list[bytes]:
    return [
        encode_record(Record(topic=b"t", body=body, physical_offset=7 * i, queue_offset=5 * i))
        for i, body in enumerate(bodies)
    ]


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_each_record_starts_at_the_end_of_the_previous_one(bodies: list[bytes]) -> None:
    """An empty buffer has none."""
    made = records(*bodies)
    sizes = list(map(len, made))
    found = find_records(np.frombuffer(b"".join(made), np.uint8))
    assert found.places.tolist() == np.cumsum([0, *sizes])[:-1].tolist()
    assert found.sizes.tolist() == sizes
    assert found.physical_offsets.tolist() == [7 * i for i in range(len(made))]
    assert found.queue_offsets.tolist() == [5 * i for i in range(len(made))]


@pytest.mark.parametrize("wrong", ["cut", "longer", "tiny", "negative"])
def test_records_that_do_not_end_at_the_buffers_end_are_refused(wrong: str) -> None:
    """This includes sizes that would never end."""
    first, last = records(b"a" * 50, b"b" * 50)
    data = {
        "cut": (first + last)[:-1],
        "longer": first + last + b"\0",
        "tiny": first + (4).to_bytes(4, "big") + last[4:],
        "negative": first + (-1).to_bytes(4, "big", signed=True) + last[4:],
    }[wrong]
    with pytest.raises(CorruptStoreError):
        find_records(np.frombuffer(data, np.uint8))


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_records_or_refused(data: bytes) -> None:
    """Nothing is read beyond the buffer."""
    buffer = np.frombuffer(data, np.uint8)
    try:
        places = find_records(buffer).places
    except CorruptStoreError:
        return
    assert len(places) == 0 or places[-1] < len(data)
