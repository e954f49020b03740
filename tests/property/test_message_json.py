"""The compiled writer of JSON equals the plain one, byte for byte."""

from __future__ import annotations

import zlib

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import buffer_of_records, wire_batch
from tidemark.format import message
from tidemark.format.message_json import put_messages
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_json import message_json
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.pull import PulledPart
from tidemark.read.records import Records

ODD_BYTES = st.sampled_from(
    [b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbf\xbd", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80"]
)
TEXT = st.text(max_size=50) | st.text('abc "\\\n\t\x00\x1f\x7f\u2028é€😀', max_size=120)
BYTES = (
    TEXT.map(str.encode)
    | st.binary(max_size=50)
    | st.tuples(TEXT, ODD_BYTES, TEXT).map(lambda pieces: pieces[0].encode() + pieces[1] + pieces[2].encode())
)
ENTRIES = st.lists(
    st.tuples(st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "lang", "a b", ""]) | TEXT, TEXT | st.just(" k1  k2 ")),
    max_size=6,
).map(lambda entries: "".join(f"{name}\x01{value}\x02" for name, value in entries).encode())
PROPERTIES = ENTRIES | ENTRIES | BYTES
ELEMENTS = st.lists(st.tuples(BYTES, PROPERTIES, st.integers(-5, 5)), min_size=1, max_size=4)
HOSTS = st.binary(min_size=8, max_size=8) | st.binary(min_size=20, max_size=20) | st.just(b"\x7f\0\0\x01\0\0\x1f\x90")
I8, I4 = st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 31), (1 << 31) - 1)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "body": BYTES | BYTES.map(zlib.compress) | ELEMENTS.map(lambda elements: wire_batch(*elements)),
            "properties": PROPERTIES,
            "sys_flag": st.sampled_from([0, 0, 0, 0xC0, 0x40, 0x1, 0x301, 0x8]),
            "queue_offset": I8,
            "flag": I4,
            "reconsume_times": I4,
            "born_timestamp": I8,
            "store_timestamp": I8,
            "born_host": HOSTS,
            "store_host": HOSTS,
        }
    ),
    min_size=1,
    max_size=6,
)


def part_of(records: list[dict[str, object]]) -> PulledPart:
    buffer, places, sizes = buffer_of_records(records)
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes)
    found = Records(buffer, places, rows)
    return PulledPart(found, found.messages(), found.right)


@given(RECORDS, st.sampled_from(list(BodyEncoding)), st.booleans())
def test_message_json_equals_the_rows_for_any_messages(
    records: list[dict[str, object]], encoding: BodyEncoding, as_broker: bool
) -> None:
    """Bodies and properties have text, escapes and invalid UTF-8; there are IPv6 hosts, batches, compression."""
    part = part_of(records)
    rows = message_rows(part, encoding, as_broker=as_broker)
    written = b"".join(message_json(part, encoding, terminator=b"\n", as_broker=as_broker))
    assert written == b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


@given(st.lists(BYTES, min_size=1, max_size=9), st.booleans(), st.integers(0, 4000))
def test_a_small_buffer_ends_a_run_of_messages(bodies: list[bytes], is_text: bool, room_bytes: int) -> None:
    """Each message is in exactly one run, and no run is larger than its buffer."""
    part = part_of([{"body": body} for body in bodies])
    texts: list[bytes] = []
    at = 0
    while at < len(bodies):
        run = put_messages(
            part.records.buffer,
            part.messages,
            at,
            is_text=is_text,
            terminator=b",",
            new_buffer=lambda size: np.full(size, 0xFF, np.uint8),
            room_bytes=room_bytes,
        )
        assert run.end > at
        texts.append(run.text.tobytes())
        at = run.end
    encoding = BodyEncoding.UTF8 if is_text else BodyEncoding.BASE64
    assert b"".join(texts) == b"".join(orjson.dumps(row) + b"," for row in message_rows(part, encoding))
