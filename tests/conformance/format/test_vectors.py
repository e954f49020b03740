"""Every vector of RocketMQ 5.3.3 (tests/conformance/format/vectors.py), in both directions if there are two."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.format import vectors
from tidemark.format import batch_consume_queue, consume_queue, elements, index_file, index_layout, wire_batch
from tidemark.format.check import Checker
from tidemark.format.dispatch_request import Outcome
from tidemark.format.elements import Element
from tidemark.format.host import Host, decode_host, parse_host
from tidemark.format.message_id import OffsetMessageId, decode_offset_message_id, encode_offset_message_id
from tidemark.format.primitives import java_hash, masked_crc32
from tidemark.format.properties import decode_properties, encode_properties
from tidemark.format.record import HEAD, Magic, Record, decode_record, encode_blank, encode_record, record_size
from tidemark.format.sys_flag import SysFlag
from tidemark.format.tags import EXT_ADDRESS_LIMIT, tags_code
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance

TAGA_K1 = encode_properties({"TAGS": "TagA", "KEYS": "K1"})
A = Record(
    topic=b"TopicTest",
    body=b"Hello",
    properties=TAGA_K1,
    queue_id=1,
    queue_offset=7,
    born_timestamp=vectors.BORN,
    store_timestamp=vectors.ST,
    born_host=vectors.BORN_HOST,
    store_host=vectors.STORE_HOST,
)
R1 = A._replace(
    body=b"m0",
    properties=b"WAIT\x01true\x02TAGS\x01TagA\x02",
    queue_id=2,
    queue_offset=10,
    physical_offset=4096,
)
RECORDS = {
    "A": (vectors.A, A),
    "A6": (vectors.A6, A._replace(born_host=vectors.BORN_HOST_V6, store_host=vectors.STORE_HOST_V6)),
    "B": (vectors.B, A._replace(properties=TAGA_K1 + b"__CRC32#\x012734412811\x02")),
    "V2": (
        vectors.V2,
        A._replace(
            topic=b"%RETRY%" + 130 * b"g",
            body=b"x",
            properties=b"",
            queue_id=0,
            queue_offset=0,
            reconsume_times=1,
            magic=Magic.V2,
        ),
    ),
    "R1": (vectors.R1, R1),
    "R2": (
        vectors.R2,
        R1._replace(
            body=b"msg1",
            properties=b"WAIT\x01true\x02",
            flag=3,
            queue_offset=11,
            physical_offset=4096 + len(vectors.R1),
        ),
    ),
    "IB": (
        vectors.IB,
        A._replace(
            topic=b"BT",
            body=vectors.W,
            properties=b"INNER_NUM\x012\x02INNER_BASE\x0130\x02"
            b"UNIQ_KEY\x017F000001149018B4AAC2851B0BAC0003\x02WAIT\x01true\x02",
            queue_id=0,
            queue_offset=30,
            physical_offset=8192,
            sys_flag=int(SysFlag.NEED_UNWRAP | SysFlag.INNER_BATCH),
        ),
    ),
}
by_name = pytest.mark.parametrize("name", RECORDS)


@by_name
def test_a_record_encodes_to_the_vector(name: str) -> None:
    """The plain encoder writes the vector's bytes."""
    data, record = RECORDS[name]
    assert encode_record(record).hex() == data.hex()


@by_name
def test_a_vector_decodes_to_the_record(name: str) -> None:
    """Every field is the listed one, and the CRC is the body's."""
    data, record = RECORDS[name]
    decoded = decode_record(data + b"behind")
    expected = record._replace(
        body_crc=zlib.crc32(record.body) & 0x7FFFFFFF,
        sys_flag=record.sys_flag | (0x30 if name == "A6" else 0),
    )
    assert decoded == expected


@by_name
def test_a_vector_passes_the_check(name: str) -> None:
    """The walk accepts the vector at its position and returns its end."""
    data, record = RECORDS[name]
    result = Checker().check(np.frombuffer(data, np.uint8), base_offset=record.physical_offset)
    assert (result.outcome, result.records, result.end_at) == (Outcome.END, 1, len(data))


@pytest.mark.parametrize(
    ("name", "size"), [("A", 123), ("A6", 147), ("B", 143), ("V2", 230), ("R1", 122), ("R2", 114), ("IB", 251)]
)
def test_record_size_returns_the_total_size_of_the_parts(name: str, size: int) -> None:
    """record_size returns TOTALSIZE of the parts."""
    data, record = RECORDS[name]
    told = record_size(
        born_size=len(record.born_host),
        store_size=len(record.store_host),
        magic=record.magic,
        body_length=len(record.body),
        topic_length=len(record.topic),
        properties_length=len(record.properties),
    )
    assert told == size == len(data)


def test_the_dispatch_request_of_vector_a_has_tags_code_and_keys() -> None:
    """The queue and index builders get these from the walk of A."""
    row = Checker().check(np.frombuffer(vectors.A, np.uint8), base_offset=0).requests[0]
    assert (row["tags_code"], row["queue_id"], row["queue_offset"], row["base_offset"]) == (2598919, 1, 7, 7)
    assert (row["batch_size"], row["message_size"], row["store_timestamp"]) == (1, 123, vectors.ST)
    assert vectors.A[row["keys_at"] :][: row["keys_length"]] == b"K1"


def test_the_dispatch_request_of_an_inner_batch_has_base_and_size() -> None:
    """They are INNER_BASE and INNER_NUM of IB."""
    row = Checker().check(np.frombuffer(vectors.IB, np.uint8), base_offset=8192).requests[0]
    assert (row["base_offset"], row["batch_size"], row["tags_code"]) == (30, 2, 0)


def test_the_crc_property_of_vector_b_covers_the_preceding_bytes() -> None:
    """It has the digits of the masked CRC of all but the last 20 bytes, least significant first (format.md §2)."""
    crc = masked_crc32(vectors.B[:-20])
    assert crc == 1182144372
    assert decode_properties(decode_record(vectors.B).properties)["__CRC32#"] == str(crc)[::-1].ljust(10, "0")


@pytest.mark.parametrize(
    ("host", "physical_offset", "text"),
    [
        (vectors.STORE_HOST, 0, "C0A8074100002A9F0000000000000000"),
        (vectors.STORE_HOST, 0x1000, "C0A8074100002A9F0000000000001000"),
        (vectors.STORE_HOST_V6, 0, "105000000000000000050600300C326B00002A9F0000000000000000"),
    ],
)
def test_an_offset_message_id_is_encoded_and_decoded(host: bytes, physical_offset: int, text: str) -> None:
    """The id is host and offset in upper-case hex."""
    assert encode_offset_message_id(host, physical_offset) == text
    assert decode_offset_message_id(text) == OffsetMessageId(decode_host(host), physical_offset)


def test_the_hosts_of_the_vectors_are_decoded_as_in_the_spec() -> None:
    """They are 127.0.0.1:54321 and the IPv6 store host."""
    assert decode_host(vectors.BORN_HOST) == parse_host("127.0.0.1:54321")
    assert decode_host(vectors.STORE_HOST_V6) == Host("1050::5:600:300c:326b", 10911)


W_ELEMENTS = [Element(b"m0", b"WAIT\x01true\x02TAGS\x01TagA\x02", 0), Element(b"msg1", b"WAIT\x01true\x02", 3)]


def test_a_wire_batch_is_encoded_and_decoded() -> None:
    """W is the two listed messages, for encoder, decoder and scan."""
    assert elements.encode_elements(W_ELEMENTS) == vectors.W
    assert list(elements.decode_elements(vectors.W)) == W_ELEMENTS
    assert wire_batch.scan(vectors.W).count == 2


def test_the_legacy_batch_w_encodes_to_records_r1_and_r2() -> None:
    """The compiled encoder turns W into the two records, with their positions."""
    head = np.frombuffer(encode_record(R1)[: HEAD.itemsize], np.uint8)
    out = np.empty(1000, np.uint8)
    positions = np.empty(2, np.int64)
    size = wire_batch.encode_records(
        np.frombuffer(vectors.W, np.uint8),
        head=head,
        topic=np.frombuffer(b"\x09TopicTest", np.uint8),
        first_extra=np.empty(0, np.uint8),
        queue_offset=10,
        physical_offset=4096,
        out=out,
        positions=positions,
    )
    assert out[:size].tobytes().hex() == (vectors.R1 + vectors.R2).hex()
    ids = [encode_offset_message_id(vectors.STORE_HOST, int(position)) for position in positions]
    assert ",".join(ids) == "C0A8074100002A9F0000000000001000,C0A8074100002A9F000000000000107A"


def test_a_blank_record_of_1000_bytes_equals_the_vector() -> None:
    """It has the length to the file's end, and the magic; the walk takes it as the file's end."""
    assert encode_blank(1000) == vectors.BLANK
    buffer = np.frombuffer(vectors.BLANK + bytes(992), np.uint8)
    assert Checker().check(buffer, base_offset=0, file_end=1000).outcome is Outcome.BLANK


@pytest.mark.parametrize(
    ("unit", "physical_offset", "message_size", "code"),
    [
        (vectors.CQ_OF_A, 0, 123, tags_code("TagA")),
        (vectors.CQ_NEGATIVE, 4096, 100, tags_code("BatchTest#OrderID001")),
        (vectors.CQ_PRE_BLANK, 0, 0x7FFFFFFF, 0),
    ],
)
def test_a_consume_queue_unit_is_encoded_and_decoded(
    unit: bytes, physical_offset: int, message_size: int, code: int
) -> None:
    """It has 20 bytes: position, size, tags code."""
    encoded = consume_queue.encode_units(
        physical_offset=[physical_offset], message_size=[message_size], tags_code=[code]
    )
    assert encoded == unit
    assert consume_queue.decode_units(unit).tolist() == [(physical_offset, message_size, code)]


def test_the_pre_blank_unit_equals_the_vector_and_is_not_live() -> None:
    """Pre-blank units fill heads and point at no record."""
    assert consume_queue.PRE_BLANK_UNIT == vectors.CQ_PRE_BLANK
    units = consume_queue.decode_units(vectors.CQ_PRE_BLANK + vectors.CQ_OF_A + bytes(20) + b"rest")
    assert consume_queue.is_live(units).tolist() == [False, True, False]


def test_a_batch_consume_queue_unit_is_encoded_and_decoded() -> None:
    """They are the 46 bytes of IB."""
    encoded = batch_consume_queue.encode_units(
        physical_offset=[8192],
        message_size=[251],
        tags_code=[0],
        store_timestamp=[vectors.ST],
        base_offset=[30],
        batch_size=[2],
    )
    assert encoded == vectors.BCQ_OF_IB
    units = batch_consume_queue.decode_units(vectors.BCQ_OF_IB + bytes(46))
    assert units[0].tolist() == (8192, 251, 0, vectors.ST, 30, 2, -1, 0)
    assert batch_consume_queue.is_live(units).tolist() == [True, False]


def test_an_extension_address_is_distinguished_from_a_tags_code() -> None:
    """The address of extension offset 0 is at most the limit, every tags code above it."""
    address = int.from_bytes(vectors.EXT_ADDRESS, "big", signed=True)
    assert address <= EXT_ADDRESS_LIMIT < -(1 << 31)
    assert int.from_bytes(vectors.EXT[2:10], "big", signed=True) == tags_code("TagA")


def test_the_index_file_equals_the_vector() -> None:
    """Three puts give RocketMQ's 136 bytes; K1 is found newest first."""
    keys = ["K1", "K2", "K1"]
    header = index_file.Header()
    slots = np.zeros(16, np.uint8)
    hashes = [index_file.key_hash("TopicTest", key) for key in keys]
    assert hashes == [2745032, 2745033, 2745032]
    new = index_file.make_entries(
        header,
        slots,
        hashes=np.array(hashes, np.int32),
        physical_offsets=np.array([0, 4096, 8192], np.int64),
        store_timestamps=np.array([vectors.ST, vectors.ST + 2500, vectors.ST + 61000], np.int64),
    )
    slots.view(">i4")[new.slot_numbers] = new.slot_values
    content = index_file.encode_header(new.header) + slots.tobytes() + bytes(20) + new.entries
    assert content.hex() == vectors.IDX.hex()
    assert len(content) == index_file.file_size(4, 4) == 136
    assert new.header.index_count == 4  # as many as the file has entries: the fourth put is refused


def test_a_lookup_in_the_index_vector_returns_the_newest_first() -> None:
    """A lookup of TopicTest#K1 yields 8192, then 0."""
    data = np.frombuffer(vectors.IDX, np.uint8)
    header = index_file.decode_header(vectors.IDX)
    entries_at = index_file.entry_at(4, 0)
    found = index_file.find_entries(
        data[index_layout.HEADER_SIZE : entries_at],
        data[entries_at:],
        header,
        key_hash=index_file.key_hash("TopicTest", "K1"),
        begin_ms=0,
        end_ms=1 << 62,
        limit=64,
    )
    assert found == [8192, 0]


def test_the_checkpoint_equals_the_vector(tmp_path: Path) -> None:
    """Values are big-endian on disk, in 4096 bytes."""
    path = tmp_path / "checkpoint"
    checkpoint = Checkpoint.open_to_write(path, DiskStorage())
    checkpoint.set(Field.PHYSIC_MESSAGE_TIMESTAMP, vectors.ST)
    checkpoint.set(Field.LOGICS_MESSAGE_TIMESTAMP, vectors.ST)
    checkpoint.flush()
    checkpoint.close()
    assert path.read_bytes() == vectors.CKPT.ljust(4096, b"\0")


def test_record_and_index_file_sizes_equal_those_of_rocketmq() -> None:
    """A record of topic FooBar with 32 and 29 bytes has 158 bytes, the default index file 420,000,040."""
    size = record_size(born_size=8, store_size=8, magic=Magic.V1, body_length=32, topic_length=6, properties_length=29)
    assert size == 158
    assert index_file.file_size(index_file.DEFAULT_SLOTS, index_file.DEFAULT_ENTRIES) == 420_000_040


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("A\x01b\x02C\x01\x02\x01d\x02EE\x01f=\x01g\x02H\x01i", {"A": "b", "EE": "f=\x01g", "H": "i"}),
        ("AB\x02C\x01d\x02A\x01x\x02A\x01y", {"C": "d", "A": "y"}),
    ],
)
def test_the_property_parser_is_as_lenient_as_rocketmq(text: str, entries: dict[str, str]) -> None:
    """They are the two cases of RocketMQ 5.3.3 (tests/conformance/format/vectors.py)."""
    assert decode_properties(text.encode()) == entries


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TagA", 2598919),
        ("TAG1", 2567159),
        ("", 0),
        ("polygenelubricants", -2147483648),
        ("BatchTest#OrderID001", -1005616417),
    ],
)
def test_java_hash_check_values(text: str, value: int) -> None:
    """The values are from RocketMQ 5.3.3."""
    assert java_hash(text) == value


def test_crc_check_value() -> None:
    """The highest bit is cleared; no bytes give 0."""
    assert masked_crc32(b"Hello") == 0x77D18982
    assert masked_crc32(b"") == 0
