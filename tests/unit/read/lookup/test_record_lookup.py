"""Records by position and by id."""

from __future__ import annotations

import pytest

from tests.builders import STORE_HOST, record_bytes
from tests.built_store import BuiltStore
from tidemark.errors import CorruptMessageError, MessageNotFoundError, MessageNotYetVisibleError, OffsetTooSmallError
from tidemark.format.message_id import decode_message_id, decode_offset_message_id
from tidemark.read.lookup.record_lookup import message_at, message_of_id
from tidemark.read.messages.body import BodyEncoding
from tidemark.read.messages.message_rows import message_rows
from tidemark.read.store_reader import StoreReader


def bodies_at(reader: StoreReader, physical_offset: int) -> list[str]:
    part = message_at(reader, reader.watermark(), physical_offset)
    return [str(row["body"]) for row in message_rows(part, BodyEncoding.AUTO)]


def test_only_offsets_where_a_record_starts_have_a_message(built: BuiltStore) -> None:
    """Every byte of a log with both kinds of queues and a roll is tried: only 41 positions have a message."""
    built.log_file_size = 4096
    places = {built.append("orders", f"m{number}".encode()).physical_offset: [f"m{number}"] for number in range(40)}
    batch = built.append_batch("batches", [(b"a", {}, 0), (b"b", {}, 0)])
    places[batch.physical_offset] = ["a", "b"]
    built.publish()
    reader = StoreReader(built.root)
    for place in range(built.end):
        try:
            found = bodies_at(reader, place)
        except MessageNotFoundError:
            found = []
        assert found == places.get(place, []), place


def test_a_record_inside_a_body_is_not_found(built: BuiltStore) -> None:
    """A body may hold a whole record that even has the right position: no unit points at it."""
    built.append("orders", b"first")
    inside = built.end + 88
    fake = record_bytes(topic=b"orders", body=b"fake", queue_offset=7, physical_offset=inside)
    built.append("orders", fake)
    built.publish()
    with pytest.raises(MessageNotFoundError):
        bodies_at(StoreReader(built.root), inside)


def test_a_record_above_the_watermark_is_not_yet_visible(built: BuiltStore) -> None:
    """A later record may appear within the log's files, but not beyond them."""
    built.append("orders", b"seen")
    built.publish()
    hidden = built.append("orders", b"hidden")
    reader = StoreReader(built.root)
    with pytest.raises(MessageNotYetVisibleError):
        bodies_at(reader, hidden.physical_offset)
    with pytest.raises(MessageNotFoundError):
        bodies_at(reader, built.log_file_size)
    built.publish()
    assert bodies_at(reader, hidden.physical_offset) == ["hidden"]


def test_a_damaged_record_is_reported(built: BuiltStore) -> None:
    """Its unit points at it, but its body is wrong."""
    record = built.append("orders", b"right")
    built.publish()
    built.write_log(record.physical_offset + 88, b"W")
    with pytest.raises(CorruptMessageError) as caught:
        bodies_at(StoreReader(built.root), record.physical_offset)
    assert caught.value.facts["reason_of_damage"] == "BODY_CRC"


def test_a_deleted_record_is_below_the_logs_minimum(built: BuiltStore) -> None:
    """Its log file is gone, and the error has the log's minimum."""
    while built.end < built.log_file_size:
        built.append("orders", bytes(9000))
    built.publish()
    (built.root / "commitlog" / f"{0:020d}").unlink()
    with pytest.raises(OffsetTooSmallError) as caught:
        bodies_at(StoreReader(built.root), 0)
    assert caught.value.facts["min_physical_offset"] == built.log_file_size


def test_an_id_of_another_store_is_not_found(built: BuiltStore) -> None:
    """The same position under another host is another store's message."""
    record = built.append("orders", b"mine")
    built.publish()
    reader = StoreReader(built.root)
    text = (STORE_HOST + record.physical_offset.to_bytes(8, "big")).hex()
    part = message_of_id(reader, reader.watermark(), decode_offset_message_id(text))
    assert message_rows(part, BodyEncoding.AUTO)[0]["offset_msg_id"] == text.upper()
    other = decode_offset_message_id("7f000001" + text[8:])
    with pytest.raises(MessageNotFoundError):
        message_of_id(reader, reader.watermark(), other)


def test_an_id_of_a_batch_element_finds_only_this_message(built: BuiltStore) -> None:
    """A single message has no elements, and a batch none after its last."""
    single = built.append("orders", b"single")
    batch = built.append_batch("batches", [(b"a", {}, 0), (b"b", {"UNIQ_KEY": "u"}, 0), (b"c", {}, 0)])
    built.publish()
    reader = StoreReader(built.root)
    whole = message_rows(message_at(reader, reader.watermark(), batch.physical_offset), BodyEncoding.AUTO)
    for number in (0, 2):
        record, element = decode_message_id(whole[number]["message_id"])
        part = message_of_id(reader, reader.watermark(), record, element)
        assert message_rows(part, BodyEncoding.AUTO) == [whole[number]]
    assert whole[1]["message_id"] == "u"
    host = STORE_HOST.hex().upper()
    for missing in (f"{host}{batch.physical_offset:016X}-3", f"{host}{single.physical_offset:016X}-0"):
        with pytest.raises(MessageNotFoundError):
            message_of_id(reader, reader.watermark(), *decode_message_id(missing))
