"""Messages as rows and as columns have the same values."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.builders import buffer_of_records
from tests.built_store import BuiltStore
from tests.unit.read.messages.parts import part_of
from tidemark.format import message
from tidemark.read.cached import FEW_BYTES, FEW_MESSAGES, NotCachedError, cached_only
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_columns import REPETITIVE, SCHEMA, message_batch, require_columns, schema_of
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.pull import PulledPart
from tidemark.read.records import Records

PLAIN = b"some text, " * 100
COMPRESSED = {
    "old zlib": (0x001, zlib.compress(PLAIN)),
    "zlib": (0x301, zlib.compress(PLAIN)),
    "lz4": (0x101, pa.compress(PLAIN, codec="lz4", asbytes=True)),
    "zstd": (0x201, pa.compress(PLAIN, codec="zstd", asbytes=True)),
}


def as_row(columns: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the Arrow table with the body in its JSON form."""
    row = {**columns, "properties": dict(columns["properties"]), "body_encoding": "base64"}
    return {**row, "body": base64.b64encode(columns["body"]).decode()}


def test_columns_and_rows_have_equal_values(built: BuiltStore) -> None:
    """The properties are of every kind: none, several keys, blanks, duplicates, multi-byte characters."""
    for entries in (
        {},
        {"TAGS": "A", "KEYS": "k1 k2", "UNIQ_KEY": "u"},
        {"KEYS": " k1  k2 ", "区域": "华东-3", "a": "b"},
        {"KEYS": "one"},
    ):
        built.append("orders", b"body", entries, flag=-7, reconsume_times=2, born_host=bytes(15) + b"\1\0\0\0\5")
    built.append(
        "orders", b"x", properties=b"a\x011\x02UNIQ_KEY\x01first\x02a\x012\x02UNIQ_KEY\x01last\x02=\x02\x01\x02b\x01c"
    )
    part = part_of(built, "orders")
    batch = message_batch(part)
    batch.validate(full=True)
    rows = message_rows(part, BodyEncoding.BASE64)
    assert [as_row(columns) for columns in batch.to_pylist()] == rows
    assert rows[4]["properties"] == {"a": "2", "b": "c"}
    assert (rows[4]["message_id"], rows[0]["message_id"]) == ("last", rows[0]["offset_msg_id"])
    assert (rows[1]["tag"], rows[1]["keys"], rows[2]["keys"]) == ("A", ["k1", "k2"], ["k1", "k2"])
    assert rows[0]["born_host"] == "[::1]:5"


def test_columns_need_no_pandas(built: BuiltStore) -> None:
    """`pa.array` imports it, which takes long; the query service never needs it."""
    assert importlib.util.find_spec("pandas"), "without it this test cannot fail"
    sys_flag, body = next(iter(COMPRESSED.values()))
    built.append("orders", body, {"KEYS": " k1  k2 ", "a": "b"}, sys_flag=sys_flag, born_host=bytes(8))
    built.append("orders", b"x", properties=b"a\x01\xff\x02TAGS\x01\xfe\x02", born_host=b"\1" * 8)
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "import services.indexer.query.server\n"
        "from tests.unit.read.messages.parts import part_in\n"
        "from tidemark.read.messages.message_columns import message_batch\n"
        "from tidemark.read.warm_up import warm_up\n"
        "warm_up()\n"
        "assert message_batch(part_in(Path(sys.argv[1]), 'orders')).num_rows == 2\n"
        "assert 'pandas' not in sys.modules\n"
    )
    built.publish()
    subprocess.run([sys.executable, "-c", program, str(built.root)], check=True, cwd=Path(__file__).parents[4])


@pytest.mark.parametrize("name", SCHEMA.names)
def test_a_single_column_equals_that_column_of_the_full_batch(built: BuiltStore, name: str) -> None:
    """This holds for columns that share work with others, which are then not built."""
    sys_flag, body = next(iter(COMPRESSED.values()))
    built.append("orders", body, {"TAGS": "A", "KEYS": "k1 k2", "UNIQ_KEY": "u", "a": "b"}, sys_flag=sys_flag)
    built.append("orders", b"plain", {"KEYS": "k"}, flag=3)
    part = part_of(built, "orders")
    alone = message_batch(part, schema_of([name]))
    assert alone.schema.names == [name]
    assert alone.column(name).equals(message_batch(part).column(name))


def test_invalid_utf8_is_replaced_equally_in_columns_and_rows(built: BuiltStore) -> None:
    """This covers tags, keys and properties; bodies stay as they are."""
    built.append("orders", b"\xff\xfe", properties=b"TAGS\x01\xff\x02KEYS\x01k\xc3\x02a\x01\xe2\x82\x02")
    built.append("orders", b"ok", {"TAGS": "fine"})
    part = part_of(built, "orders")
    batch = message_batch(part)
    batch.validate(full=True)
    assert [as_row(columns) for columns in batch.to_pylist()] == message_rows(part, BodyEncoding.BASE64)


def test_elements_of_inner_batches_have_their_own_fields(built: BuiltStore) -> None:
    """An element has its own body, flag, properties and CRC, and the record's position, times and hosts."""
    built.append_batch("batches", [(b"one", {"TAGS": "A"}, 5), (b"two", {"UNIQ_KEY": "u2"}, 6)])
    part = part_of(built, "batches")
    rows = message_rows(part, BodyEncoding.UTF8)
    assert [(row["queue_offset"], row["body"], row["flag"], row["sys_flag"]) for row in rows] == [
        (0, "one", 5, 0),
        (1, "two", 6, 0),
    ]
    assert [row["body_crc"] for row in rows] == [zlib.crc32(text) & 0x7FFFFFFF for text in (b"one", b"two")]
    offset_id = rows[0]["offset_msg_id"]
    assert rows[1]["offset_msg_id"] == offset_id
    assert [row["message_id"] for row in rows] == [f"{offset_id}-0", "u2"]
    assert [as_row(columns) for columns in message_batch(part).to_pylist()] == message_rows(part, BodyEncoding.BASE64)
    theirs = message_rows(part, BodyEncoding.UTF8, as_broker=True)
    assert [(row["sys_flag"], row["body_crc"], row["offset_msg_id"], row["message_id"]) for row in theirs] == [
        (0xC0, 0, None, None),
        (0xC0, 0, None, "u2"),
    ]
    assert theirs[0]["properties"] == {"TAGS": "A", "WAIT": "true"}


@pytest.mark.parametrize("kind", COMPRESSED)
def test_compressed_bodies_are_decompressed(built: BuiltStore, kind: str) -> None:
    """The compression flag is cleared; the type's bits stay (docs/format.md §14)."""
    sys_flag, body = COMPRESSED[kind]
    built.append("orders", body, sys_flag=sys_flag)
    built.append("orders", b"plain")
    part = part_of(built, "orders")
    rows = message_rows(part, BodyEncoding.UTF8)
    assert (rows[0]["body"], rows[0]["sys_flag"]) == (PLAIN.decode(), sys_flag & ~1)
    table = message_batch(part)
    assert table["body"].to_pylist() == [PLAIN, b"plain"]
    assert table["sys_flag"].to_pylist() == [sys_flag & ~1, 0]


@pytest.mark.parametrize(
    "message",
    [
        {"body": COMPRESSED["zlib"][1], "sys_flag": COMPRESSED["zlib"][0]},
        {"properties": b"TAGS\x01\xff\x02"},
        {"properties": b"KEYS\x01 odd\x02"},
    ],
)
@pytest.mark.parametrize("messages", [FEW_MESSAGES, FEW_MESSAGES + 1])
def test_work_on_many_messages_is_refused_in_place(built: BuiltStore, message: dict[str, Any], messages: int) -> None:
    """The work is decompression, replacement of invalid UTF-8, or keys with surrounding blanks."""
    for _ in range(messages):
        built.append("orders", **{"body": b"plain", **message})
    part = part_of(built, "orders")
    assert message_batch(part).num_rows == messages
    with cached_only(), pytest.raises(NotCachedError) if messages > FEW_MESSAGES else contextlib.nullcontext():
        message_batch(part)


@pytest.mark.parametrize("keys", ["one", "one two"])
def test_keys_of_some_of_many_messages_are_parsed_in_place(built: BuiltStore, keys: str) -> None:
    for number in range(FEW_MESSAGES + 1):
        built.append("orders", b"plain", {"KEYS": keys} if number % 3 else {})
    part = part_of(built, "orders")
    with cached_only():
        found = message_batch(part, schema_of(["keys"]))["keys"].to_pylist()
    assert found == [keys.split() if number % 3 else [] for number in range(FEW_MESSAGES + 1)]


@pytest.mark.parametrize("size", [FEW_BYTES // 2, FEW_BYTES // 2 + 1])
def test_decompression_of_large_bodies_is_refused_in_place(size: int) -> None:
    """A stored megabyte may decompress to a gigabyte."""
    buffer, places, sizes = buffer_of_records([{"body": bytes(size), "sys_flag": 0x001}] * 2)
    rows = message.check_records(buffer, places=places, physical_offsets=places, sizes=sizes)
    records = Records(buffer, places, rows)
    part = PulledPart(records, records.messages(), records.right)
    assert message_batch(part).num_rows == 2
    with cached_only(), pytest.raises(NotCachedError) if 2 * size > FEW_BYTES else contextlib.nullcontext():
        message_batch(part)


def test_formatting_many_hosts_is_refused_in_place(built: BuiltStore) -> None:
    """Each host is formatted separately."""
    for number in range(FEW_MESSAGES + 1):
        built.append("orders", b"plain", born_host=bytes([127, 0, 0, number, 0, 0, 0, 1]))
    part = part_of(built, "orders")
    assert message_batch(part)["born_host"].to_pylist()[-1] == f"127.0.0.{FEW_MESSAGES}:1"
    with cached_only(), pytest.raises(NotCachedError):
        message_batch(part)


@pytest.mark.parametrize("sys_flag", [0x001, 0x101, 0x201, 0x401])
def test_a_body_that_cannot_be_decompressed_is_returned_as_stored(built: BuiltStore, sys_flag: int) -> None:
    """A broken body, or one of an unknown type, is returned as stored, with its flag."""
    built.append("orders", b"nothing of the kind", sys_flag=sys_flag)
    part = part_of(built, "orders")
    row = message_rows(part, BodyEncoding.UTF8)[0]
    assert (row["body"], row["sys_flag"]) == ("nothing of the kind", sys_flag)
    assert message_batch(part)["sys_flag"].to_pylist() == [sys_flag]


@pytest.mark.parametrize(
    ("encoding", "body", "value", "told"),
    [
        (BodyEncoding.BASE64, b"text", "dGV4dA==", "base64"),
        (BodyEncoding.UTF8, b"text", "text", "utf8"),
        (BodyEncoding.UTF8, b"\xff", "/w==", "base64"),
        (BodyEncoding.AUTO, b"\xff", "/w==", "base64"),
        (BodyEncoding.JSON, b"text", "text", "utf8"),
        (BodyEncoding.JSON, b"\xff", "/w==", "base64"),
    ],
)
def test_bodies_are_encoded_as_requested_or_reported(
    built: BuiltStore, encoding: BodyEncoding, body: bytes, value: str, told: str
) -> None:
    """If a body does not fit the requested encoding, the actual encoding is reported."""
    built.append("orders", body)
    row = message_rows(part_of(built, "orders"), encoding)[0]
    assert (row["body"], row["body_encoding"]) == (value, told)


def test_dictionaries_of_columns_have_their_values(built: BuiltStore) -> None:
    """The messages have some tags or none, and several hosts."""
    built.topic("untagged")
    for number in range(9):
        built.append("orders", b"x", {"TAGS": "AB"[number % 2]} if number % 3 else {})
        built.append("untagged", b"x", born_host=bytes([127, 0, 0, number, 0, 0, 0, 1]))
    for part in (part_of(built, "orders"), part_of(built, "untagged")):
        plain, encoded = message_batch(part), message_batch(part, schema_of(SCHEMA.names, dictionaries=True))
        encoded.validate(full=True)
        assert {field.name for field in encoded.schema if pa.types.is_dictionary(field.type)} == REPETITIVE
        for name in SCHEMA.names:
            column = encoded[name]
            assert (column.dictionary_decode() if name in REPETITIVE else column).equals(plain[name]), name


def test_columns_are_named_alone_or_with_commas() -> None:
    assert require_columns(["body,tag", "keys"]) == ["body", "tag", "keys"]
    for unknown in ("bodies", "", "body,", "Body"):
        with pytest.raises(ValueError, match=r"there is no column '(bodies||Body)': expected queue_offset, "):
            require_columns([unknown])
