"""Bytes to be checked: arbitrary ones, valid logs, and valid logs with a little damage at sensitive positions."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st

from tests import builders
from tests.builders import MAGIC_V1, MAGIC_V2

I4 = st.integers(-(1 << 31), (1 << 31) - 1)
I8 = st.integers(-(1 << 63), (1 << 63) - 1)
HOSTILE_I4 = st.one_of(
    st.sampled_from([-1, 0, 1, 7, 8, 22, 90, 91, 92, 0x7FFF, 0x8000, 0x7FFFFFFF, -0x80000000, 0x7FFFFFFF - 91]),
    st.sampled_from([MAGIC_V1, MAGIC_V2, builders.MAGIC_BLANK]),
    st.integers(-300, 300),
    I4,
)
NUMBERS = st.sampled_from(
    "0 1 3 18 19 -1 +2 - x 007 ٣ 32767 32768 -32768 -32769 2147483647 2147483648 9223372036854775807 "  # noqa: SIM905
    "9223372036854775808 -9223372036854775808 -9223372036854775809 ".split(" ")
)
TEXTS = st.sampled_from(["TagA", "a b  c", " ", "k", "日本", "\U0001f600", "\x01", "x\x01y"])
TOPICS = st.sampled_from(
    [b"TopicTest", b"SCHEDULE_TOPIC_XXXX", b"", b"BT", "主题".encode(), b"\xff\xfe", b"%RETRY%" + 100 * b"g"]
)

START_TIMES = ("__STARTDELIVERTIME", "__STARTDELIVERTIMES", "__STARTDELIVERTIMf", "__STaRTDELIVERTIME")
MULTI = ("INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET")
PROPERTY_ENTRIES = st.one_of(
    st.tuples(
        st.sampled_from(
            ["TAGS", "KEYS", "UNIQ_KEY", *MULTI, "TAG", "TAGSX", "INNER_MULTI_QUEUE_OFFSETX", "__CRC32#", ""]
        ),
        TEXTS,
    ),
    st.tuples(st.sampled_from(["INNER_NUM", "INNER_BASE", "DELAY"]), NUMBERS),
    st.tuples(
        st.sampled_from(["TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_", "TIMER", "TIMERS", "TIMES_X", *START_TIMES]),
        NUMBERS,
    ),
    st.tuples(
        st.sampled_from(["TRAN_MSG", "TRAN_MSX", "TRAN_MSGS", "WAIT", "WAITS"]),
        st.sampled_from(["true", "TRUE", "tRuE", "truE ", "false", "1", "yes", "TR\x15E", "t"]),
    ),
)


@st.composite
def property_bytes(draw: st.DrawFn) -> bytes:
    """Draw a properties string, valid or nearly so."""
    entries = draw(st.lists(PROPERTY_ENTRIES, max_size=5))
    data = b"".join(f"{name}\x01{value}\x02".encode() for name, value in entries)
    if draw(st.booleans()):
        data = data.removesuffix(b"\x02")
    if draw(st.integers(0, 3)) == 0:
        data += draw(st.binary(max_size=8))
    return data


@st.composite
def record_fields(draw: st.DrawFn) -> dict[str, Any]:
    """Draw keyword arguments of builders.record_bytes, without the position."""
    magic = draw(st.sampled_from([MAGIC_V1, MAGIC_V1, MAGIC_V2]))
    topic = draw(TOPICS)
    if magic == MAGIC_V2 and draw(st.booleans()):
        topic = b"%RETRY%" + draw(st.integers(0, 300)) * b"t"
    return {
        "magic": magic,
        "topic": topic,
        "body": draw(st.one_of(st.binary(max_size=40), st.just(builders.BODY_OF_CRC_0))),
        "properties": draw(property_bytes()),
        "queue_id": draw(st.one_of(st.integers(0, 5), I4)),
        "queue_offset": draw(st.one_of(st.integers(0, 100), I8)),
        "flag": draw(I4),
        "sys_flag": draw(st.sampled_from([0, 0x1, 0x4, 0x8, 0xC, 0xC0, 0x700, -0x80000000, 0x7FFFFFC0])),
        "store_timestamp": draw(st.one_of(st.just(builders.STORE_MS), I8)),
        "born_host": draw(st.sampled_from([builders.BORN_HOST, builders.BORN_HOST_V6])),
        "store_host": draw(st.sampled_from([builders.STORE_HOST, builders.STORE_HOST_V6])),
        "reconsume_times": draw(I4),
        "prepared_transaction_offset": draw(I8),
    }


@st.composite
def logs(draw: st.DrawFn, base_offset: int = 0, max_size: int = 5) -> bytes:
    """Draw contiguous valid records."""
    records = draw(st.lists(st.tuples(record_fields(), st.booleans()), max_size=max_size))
    return builders.row_of_records(({**one, "property_crc": crc} for one, crc in records), base_offset=base_offset)


@st.composite
def damaged_logs(draw: st.DrawFn, base_offset: int = 0) -> bytes:
    """Draw records with wrong, missing or additional bytes, and perhaps a blank record or zero bytes after them."""
    data = bytearray(draw(logs(base_offset=base_offset)))
    tail = draw(st.integers(0, 3))
    if tail == 1:
        data += builders.blank_bytes(draw(st.sampled_from([8, 100, 0, -1]))) + bytes(draw(st.sampled_from([0, 92])))
    elif tail == 2:
        data += bytes(draw(st.integers(0, 60)))
    elif tail == 3:
        data += draw(st.binary(max_size=60))
    heads = [0, *(i for i in range(len(data) - 8) if data[i + 4 : i + 7] == b"\xda\xa3\x20")]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.sampled_from(heads)) + draw(st.one_of(st.sampled_from([0, 4, 8, 36, 84, 88]), st.integers(0, 200)))
        wrong = draw(
            st.one_of(HOSTILE_I4.map(lambda value: struct.pack(">i", value)), st.binary(min_size=1, max_size=2))
        )
        if at + len(wrong) <= len(data):
            data[at : at + len(wrong)] = wrong
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data)


@st.composite
def wire_batches(draw: st.DrawFn) -> list[tuple[bytes, bytes, int]]:
    """Draw elements (body, properties, flag) of a valid wire batch."""
    return draw(st.lists(st.tuples(st.binary(max_size=40), property_bytes(), I4), max_size=5))


@st.composite
def damaged_wire_batches(draw: st.DrawFn) -> bytes:
    """Draw a wire batch with a wrong number, a cut, or additional bytes."""
    data = bytearray(builders.wire_batch(*draw(wire_batches())))
    if len(data) >= 22 and draw(st.booleans()):
        at = draw(st.one_of(st.sampled_from([0, 16, 20]), st.integers(0, len(data) - 4)))
        data[at : at + 4] = struct.pack(">i", draw(HOSTILE_I4))
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data + draw(st.binary(max_size=3)))
