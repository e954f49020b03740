"""The record bytes of a batch, compared with records made by struct and zlib alone."""

from __future__ import annotations

import numpy as np
import pytest

from services.writer.batch.batch import Batch, QueueKey, Wrapper
from services.writer.batch.record_encoder import Encoder, RecordPosition, u8
from tests.builders import (
    BORN_HOST,
    BORN_HOST_V6,
    BORN_MS,
    STORE_HOST,
    STORE_HOST_V6,
    STORE_MS,
    properties,
    record_bytes,
    wire_batch,
)
from tidemark.errors import PropertiesSizeExceededError
from tidemark.format.wire_batch import scan

ELEMENTS = [(b"m0", properties({"WAIT": "true", "TAGS": "TagA"}), 0), (b"msg1", b"", 3), (b"z" * 1000, b"a\x01b", -1)]


def make_batch(born_host: bytes, *, inner: bytes | None = None, extra: bytes = b"") -> Batch:
    wire = wire_batch(*ELEMENTS)
    facts = scan(wire)
    return Batch(
        key=QueueKey("TopicTest", 2),
        topic_field=u8(b"\x09TopicTest"),
        wire=u8(wire),
        count=facts.count,
        parts_size=facts.parts_size,
        wrapper=Wrapper(born_host, BORN_MS, sys_flag=0x2, flag=7, reconsume_times=4),
        unique_key=b"",
        first_extra=u8(extra),
        inner_properties=inner,
    )


@pytest.mark.parametrize("born_host", [BORN_HOST, BORN_HOST_V6], ids=["born v4", "born v6"])
@pytest.mark.parametrize("store_host", [STORE_HOST, STORE_HOST_V6], ids=["store v4", "store v6"])
@pytest.mark.parametrize("extra", [b"", b"UNIQ_KEY\x01r\x02"], ids=["as it is", "with key"])
def test_legacy_batch_equals_plain_records(born_host: bytes, store_host: bytes, extra: bytes) -> None:
    """All four pairs of host sizes; dense queue offsets; positions; extra properties on the first message only."""
    encoder = Encoder(store_host)
    batch = make_batch(born_host, extra=extra)
    out = np.full(encoder.size(batch, 10) + 16, 0xEE, np.uint8)
    positions = encoder.encode(batch, RecordPosition(10, 4096, STORE_MS), out)
    expected, places = b"", b""
    for i, (body, text, flag) in enumerate(ELEMENTS):
        places += (4096 + len(expected)).to_bytes(8, "big")
        expected += record_bytes(
            topic=b"TopicTest",
            body=body,
            properties=text + (extra if i == 0 else b""),
            queue_id=2,
            queue_offset=10 + i,
            physical_offset=4096 + len(expected),
            flag=flag,
            sys_flag=0x2,
            born_host=born_host,
            store_host=store_host,
            reconsume_times=4,
        )
    assert out.tobytes() == expected + b"\xee" * 16
    assert positions == places


@pytest.mark.parametrize("born_host", [BORN_HOST, BORN_HOST_V6], ids=["born v4", "born v6"])
def test_inner_batch_equals_a_plain_record(born_host: bytes) -> None:
    """One record: the wire bytes as body, flags 0xC0, the wrapper's flag, INNER_BASE after INNER_NUM."""
    encoder = Encoder(STORE_HOST)
    batch = make_batch(born_host, inner=properties({"INNER_NUM": "3", "UNIQ_KEY": "u"}))
    encoder.encode(
        make_batch(born_host), RecordPosition(1, 2, 3), np.empty(5000, np.uint8)
    )  # its head must not be reused
    out = np.full(encoder.size(batch, 12345) + 16, 0xEE, np.uint8)
    positions = encoder.encode(batch, RecordPosition(12345, 8192, STORE_MS), out)
    expected = record_bytes(
        topic=b"TopicTest",
        body=wire_batch(*ELEMENTS),
        properties=properties({"INNER_NUM": "3", "INNER_BASE": "12345", "UNIQ_KEY": "u"}),
        queue_id=2,
        queue_offset=12345,
        physical_offset=8192,
        flag=7,
        sys_flag=0xC2,
        born_host=born_host,
        reconsume_times=4,
    )
    assert out.tobytes() == expected + b"\xee" * 16
    assert positions == (8192).to_bytes(8, "big")


def test_inner_base_that_makes_the_properties_too_long_is_refused() -> None:
    """The limit includes the properties that the writer appends."""
    encoder = Encoder(STORE_HOST)
    room = 32_767 - len(properties({"INNER_NUM": "3", "INNER_BASE": "9"}))
    fits = make_batch(BORN_HOST, inner=properties({"INNER_NUM": "3", "a": "v" * (room - 3)}))
    out = np.empty(encoder.size(fits, 10), np.uint8)
    encoder.encode(fits, RecordPosition(9, 0, 0), out)
    with pytest.raises(PropertiesSizeExceededError):
        encoder.encode(fits, RecordPosition(10, 0, 0), out)
