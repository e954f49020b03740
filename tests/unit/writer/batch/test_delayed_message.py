"""Delay levels, and rewritten delayed messages, compared byte by byte with the spec and a real broker's records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from services.writer.batch.batch import Batch, QueueKey, Wrapper
from services.writer.batch.delayed_message import (
    Destination,
    delay_level,
    delayed,
    delivered,
    destination_of,
    due_ms,
    require_no_timer,
)
from services.writer.batch.record_encoder import Encoder, RecordPosition, u8
from tests.builders import BORN_HOST, BORN_MS, STORE_HOST, STORE_MS, properties, record_bytes, wire_batch
from tests.integration.writer.harness import stored_records
from tidemark.errors import BatchDelayError, PropertiesIllegalError, PropertiesSizeExceededError
from tidemark.format.properties import decode_properties
from tidemark.format.record import Record, decode_record, encode_record
from tidemark.format.tags import DELAY_LEVELS_MS

SCHEDULE = "SCHEDULE_TOPIC_XXXX"
GoldenStore = Callable[[str], Path]


def batch_of(named: dict[str, str], *, extra: bytes = b"") -> Batch:
    """Return one message for queue 2 of `orders`, as admission makes it."""
    text = properties(named)
    wrapper = Wrapper(BORN_HOST, BORN_MS, sys_flag=1, flag=7, reconsume_times=4)
    return Batch(
        key=QueueKey("orders", 2),
        topic_field=u8(b"\x06orders"),
        wire=u8(wire_batch((b"body", text, 9))),
        count=1,
        parts_size=4 + len(text),
        wrapper=wrapper,
        unique_key=named.get("UNIQ_KEY", "").encode(),
        first_extra=u8(extra),
    )


def stored(
    batch: Batch, *, queue_offset: int = 5, physical_offset: int = 4096, store_host: bytes = STORE_HOST
) -> bytes:
    encoder = Encoder(store_host)
    out = np.zeros(encoder.size(batch, queue_offset), np.uint8)
    encoder.encode(batch, RecordPosition(queue_offset, physical_offset, STORE_MS), out)
    return out.tobytes()


@pytest.mark.parametrize(
    ("value", "level"), [("0", 0), ("1", 1), ("18", 18), ("19", 18), ("2147483647", 18), ("007", 7), (None, 0)]
)
def test_delay_levels_above_18_count_as_18(value: str | None, level: int) -> None:
    """Greater levels count as 18; 0 and no value mean no delay."""
    assert delay_level({} if value is None else {"DELAY": value}) == level


@pytest.mark.parametrize("value", ["-1", "soon", "1.5", "2147483648", "٣", " 3", "3 ", "9" * 5000])
def test_an_invalid_delay_level_is_refused(value: str) -> None:
    """A stored invalid level would be damage for the indexer."""
    with pytest.raises(PropertiesIllegalError):
        delay_level({"DELAY": value})


def test_a_delivery_time_property_is_refused() -> None:
    """It is refused even with a level."""
    with pytest.raises(BatchDelayError, match="TIMER_DELIVER_MS"):
        require_no_timer({"DELAY": "3", "TIMER_DELIVER_MS": "1"})


def test_a_delayed_message_is_stored_in_the_queue_of_its_level() -> None:
    """It is in the level's queue; its real topic and queue follow its properties; all other fields stay as sent."""
    batch = delayed(batch_of({"UNIQ_KEY": "u1", "DELAY": "3", "TAGS": "a"}), 3, lambda: "not needed")
    assert stored(batch) == record_bytes(
        topic=SCHEDULE.encode(),
        body=b"body",
        properties=properties({"UNIQ_KEY": "u1", "DELAY": "3", "TAGS": "a", "REAL_TOPIC": "orders", "REAL_QID": "2"}),
        queue_id=2,
        queue_offset=5,
        physical_offset=4096,
        flag=9,
        sys_flag=1,
        reconsume_times=4,
    )
    assert batch.delay is not None
    assert (batch.key, batch.delay) == (QueueKey(SCHEDULE, 2), (3, "orders", 2))
    assert due_ms(batch.delay, STORE_MS) == STORE_MS + 10_000


@pytest.mark.parametrize(
    ("named", "extra", "level", "expected"),
    [
        ({}, b"", 1, {"UNIQ_KEY": "made", "DELAY": "1", "REAL_TOPIC": "orders", "REAL_QID": "2"}),
        ({}, b"UNIQ_KEY\x01r\x02", 1, {"UNIQ_KEY": "r", "DELAY": "1", "REAL_TOPIC": "orders", "REAL_QID": "2"}),
        (
            {"DELAY": "99", "UNIQ_KEY": "u"},
            b"",
            18,
            {"DELAY": "18", "UNIQ_KEY": "u", "REAL_TOPIC": "orders", "REAL_QID": "2"},
        ),
        (
            {"REAL_QID": "7", "REAL_TOPIC": "old", "UNIQ_KEY": "u", "DELAY": "2"},
            b"",
            2,
            {"UNIQ_KEY": "u", "DELAY": "2", "REAL_TOPIC": "orders", "REAL_QID": "2"},
        ),
    ],
    ids=["no key", "request id", "too great a level", "was delayed before"],
)
def test_a_delayed_message_has_a_key_its_level_and_one_destination(
    named: dict[str, str], extra: bytes, level: int, expected: dict[str, str]
) -> None:
    """It has a UNIQ_KEY, its actual level and one destination, and the right sizes."""
    batch = delayed(batch_of(named, extra=extra), level, lambda: "made")
    record = decode_record(stored(batch))
    assert record.properties == properties(expected)
    assert batch.parts_size == len(record.body) + len(record.properties)
    assert destination_of(record) == Destination("orders", 2)


def test_too_long_properties_are_refused() -> None:
    """The destination does not fit any more."""
    with pytest.raises(PropertiesSizeExceededError):
        delayed(batch_of({"UNIQ_KEY": "u", "a": "v" * 32_740}), 1, lambda: "")


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"REAL_TOPIC": "t"},
        {"REAL_QID": "1"},
        {"REAL_TOPIC": "t", "REAL_QID": "x"},
        {"REAL_TOPIC": "t", "REAL_QID": "-1"},
        {"REAL_TOPIC": "t", "REAL_QID": "2147483648"},
    ],
    ids=str,
)
def test_a_record_with_an_ambiguous_destination_has_none(named: dict[str, str]) -> None:
    """The destination would be ambiguous."""
    assert destination_of(Record(SCHEDULE.encode(), b"x", properties(named))) is None


def test_a_delivered_message_keeps_all_fields_except_its_position() -> None:
    """Born host and time, flags, reconsume times, body and properties stay; the old record's CRC is removed."""
    text = {"UNIQ_KEY": "u", "DELAY": "3", "REAL_TOPIC": "orders", "REAL_QID": "2"}
    record = Record(
        SCHEDULE.encode(),
        b"compressed",
        properties(text) + b"__CRC32#\x010123456789\x02",
        queue_id=2,
        flag=9,
        sys_flag=0x101,
        born_timestamp=BORN_MS,
        born_host=BORN_HOST,
        reconsume_times=4,
    )
    batch = delivered(record, Destination("orders", 2), u8(b"\x06orders"), lambda _: None)
    assert stored(batch) == record_bytes(
        topic=b"orders",
        body=b"compressed",
        properties=properties(text),
        queue_id=2,
        queue_offset=5,
        physical_offset=4096,
        flag=9,
        sys_flag=0x101,
        reconsume_times=4,
    )
    assert batch.unique_key == b"u"


def test_deliveries_have_the_same_bytes_as_those_of_a_broker(golden_store: GoldenStore) -> None:
    """Each delayed message of a real store is delivered to the broker's position, with the same bytes.

    It keeps DELAY.
    """
    records = stored_records(golden_store("mixed/store"))
    waiting = [record for record in records if record.topic == SCHEDULE.encode()]
    theirs = {
        decode_properties(record.properties)["UNIQ_KEY"]: record
        for record in records
        if record.topic == b"Payments" and b"DELAY\x01" in record.properties
    }
    assert len(waiting) == len(theirs) == 9
    for record in waiting:
        named = decode_properties(record.properties)
        their = theirs[named["UNIQ_KEY"]]
        destination = destination_of(record)
        assert destination is not None
        batch = delivered(record, destination, u8(b"\x08Payments"), lambda _: None)
        encoder = Encoder(their.store_host)
        out = np.zeros(encoder.size(batch, their.queue_offset), np.uint8)
        encoder.encode(batch, RecordPosition(their.queue_offset, their.physical_offset, their.store_timestamp), out)
        assert out.tobytes() == encode_record(their)
        assert their.store_timestamp >= record.store_timestamp + DELAY_LEVELS_MS[int(named["DELAY"]) - 1]
