from __future__ import annotations

import pickle
import zlib
from typing import Any

import pytest

from tests.builders import BODY_OF_CRC_0, BORN_HOST_V6, MAGIC_V2, STORE_HOST_V6, properties, record_bytes, wire_batch
from tests.unit.client.received_messages import ORDERS
from tidemark.client.consumer import stored_messages
from tidemark.client.consumer.stored_messages import StoredMessage, decode_records
from tidemark.client.received_message import ReceivedMessage
from tidemark.errors import CorruptMessageError
from tidemark.format.record import HEAD, HEADS, Magic

INNER = 0xC0


def page(*records: dict[str, Any]) -> bytes:
    """Return the records one after the other, each at its place and with its number."""
    made = b""
    for number, fields in enumerate(records):
        made += record_bytes(**{"queue_offset": number, "physical_offset": len(made), **fields})
    return made


def messages(data: bytes, *, least: int = 0, tags: frozenset[str] | None = None) -> list[ReceivedMessage]:
    return decode_records(ORDERS, data, least_offset=least, tags=tags).messages


def offset_of(name: str, hosts: tuple[int, int] = (8, 8)) -> int:
    fields = HEADS[hosts].fields
    assert fields is not None
    return int(fields[name][1])


def test_the_positions_are_those_of_the_format() -> None:
    assert stored_messages._V4_HEAD.size == HEAD.itemsize
    numbers = {name: number for number, name in enumerate(_HEAD_NAMES, 1)}
    fields: dict[str, Any] = dict(numbers)
    data = record_bytes(body=b"x" * 5, **fields)
    head = stored_messages._V4_HEAD.unpack_from(data)
    assert head == (len(data), numbers["magic"], numbers["body_crc"], numbers["queue_offset"], numbers["sys_flag"], 5)
    assert offset_of("born_host") == stored_messages._BORN_HOST_AT
    for hosts in HEADS:
        after = stored_messages._BORN_HOST_AT + sum(hosts) + stored_messages._INT64.size
        assert after == offset_of("reconsume_times", hosts)
        assert after + stored_messages._AFTER_HOSTS.size == HEADS[hosts].itemsize
    assert (stored_messages._V1, stored_messages._V2) == (Magic.V1, Magic.V2)
    for name, at in {"queue_offset": 20, "physical_offset": 28}.items():
        assert offset_of(name) == at


_HEAD_NAMES = ("magic", "body_crc", "queue_offset", "sys_flag")


def test_a_message_has_the_fields_of_its_record() -> None:
    data = page(
        {},
        {
            "topic": b"%RETRY%" + b"g" * 130,
            "magic": MAGIC_V2,
            "body": b"two",
            "properties": properties({"TAGS": "A", "KEYS": " k1  k2 ", "UNIQ_KEY": "u", "x": "y"}),
            "flag": -7,
            "sys_flag": 0x8,
            "reconsume_times": 3,
            "born_timestamp": 5,
            "store_timestamp": 6,
            "born_host": BORN_HOST_V6,
            "store_host": STORE_HOST_V6,
        },
    )
    first, second = messages(data)
    at = len(page({}))
    offset_id = f"{STORE_HOST_V6.hex().upper()}{at:016X}"
    assert second.as_dict() == {
        "topic": "orders",
        "queue_id": 0,
        "queue_offset": 1,
        "body": b"two",
        "tag": "A",
        "keys": ("k1", "k2"),
        "properties": {"x": "y"},
        "message_id": "u",
        "offset_msg_id": offset_id,
        "physical_offset": at,
        "store_timestamp_ms": 6,
        "born_timestamp_ms": 5,
        "flag": -7,
        "sys_flag": 0x38,
        "reconsume_times": 3,
        "born_host": "[::1]:54321",
        "store_host": "[1050::5:600:300c:326b]:10911",
    }
    assert (first.tag, first.keys, first.properties) == (None, (), {})
    assert first.message_id == first.offset_msg_id


def test_a_message_is_decoded_when_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Position and body need no properties."""
    decoded: list[object] = []
    fill = stored_messages._fill

    def note(message: StoredMessage) -> None:
        decoded.append(1)
        fill(message)

    monkeypatch.setattr(stored_messages, "_fill", note)
    (message,) = messages(page({"body": b"x", "properties": properties({"TAGS": "A"})}))
    assert (message.topic, message.queue_offset, message.body, message.text()) == ("orders", 0, b"x", "x")
    assert message.queue == ORDERS
    assert decoded == []
    assert (message.tag, message.flag, message.tag) == ("A", 0, "A")
    assert decoded == [1]
    with pytest.raises(AttributeError):
        _ = message.colour  # type: ignore[attr-defined]


def test_a_pickled_message_is_an_ordinary_one() -> None:
    """The page is not pickled with it."""
    (message, _) = messages(page({"body": b"x"}, {"body": bytes(10_000)}))
    assert isinstance(message, StoredMessage)
    data = pickle.dumps(message)
    assert len(data) < 2_000
    again = pickle.loads(data)
    assert type(again) is ReceivedMessage
    assert again == message == message.replace()


def test_messages_below_the_requested_offset_are_left_out() -> None:
    """A page begins with a whole inner batch."""
    batch = wire_batch(*((b"%d" % number, b"", number) for number in range(4)))
    data = page({"body": batch, "sys_flag": INNER, "queue_offset": 10}, {"body": b"next", "queue_offset": 14})
    assert [(one.queue_offset, one.body, one.flag) for one in messages(data, least=12)] == [
        (12, b"2", 2),
        (13, b"3", 3),
        (14, b"next", 0),
    ]
    assert [one.queue_offset for one in messages(data, least=15)] == []


def test_a_message_of_an_inner_batch_has_its_own_properties_and_the_records_place() -> None:
    batch = wire_batch((b"a", properties({"TAGS": "A"}), 5), (b"b", properties({"UNIQ_KEY": "u"}), 6))
    wrapper = properties({"INNER_BASE": "1", "INNER_NUM": "2", "TAGS": "W"})
    data = page({"body": batch, "properties": wrapper, "sys_flag": INNER | 0x8, "reconsume_times": 9, "flag": 77})
    first, second = messages(data)
    assert [(one.tag, one.flag, one.sys_flag, one.reconsume_times) for one in (first, second)] == [
        ("A", 5, 8, 0),
        (None, 6, 8, 0),
    ]
    assert (first.message_id, second.message_id) == (f"{first.offset_msg_id}-0", "u")
    assert first.physical_offset == second.physical_offset == 0


@pytest.mark.parametrize(("body", "sys_flag"), [(b"no batch", INNER), (wire_batch((b"a", b"", 0)), 0x40), (b"", INNER)])
def test_a_record_that_is_no_inner_batch_is_one_message_as_stored(body: bytes, sys_flag: int) -> None:
    (message,) = messages(page({"body": body, "sys_flag": sys_flag, "flag": 3}))
    assert (message.body, message.sys_flag, message.flag) == (body, sys_flag, 3)


def test_a_compressed_body_is_decompressed_when_it_is_looked_at() -> None:
    data = page({"body": zlib.compress(b"long" * 100), "sys_flag": 0x301}, {"body": b"damaged", "sys_flag": 0x301})
    good, damaged = messages(data)
    assert (good.body, good.sys_flag) == (b"long" * 100, 0x300)
    assert (damaged.body, damaged.sys_flag) == (b"damaged", 0x301)


def test_a_damaged_body_is_skipped_and_reported() -> None:
    """The records after it are returned."""
    data = page({"body": b"a"}, {"body_crc": 7}, {"body_crc": 7, "born_host": BORN_HOST_V6}, {"body": BODY_OF_CRC_0})
    found = decode_records(ORDERS, data, least_offset=0)
    assert [one.body for one in found.messages] == [b"a", BODY_OF_CRC_0]
    assert [(one["queue_offset"], one["reason"], one["message_count"]) for one in found.skipped] == [
        (1, "BODY_CRC", 1),
        (2, "BODY_CRC", 1),
    ]
    assert found.skipped[0]["physical_offset"] == len(page({"body": b"a"}))


def test_the_crc_of_an_empty_body_is_not_checked() -> None:
    """The service does not check it either."""
    data = page({"body": b"", "body_crc": 7}, {"body": b"", "body_crc": 7, "born_host": BORN_HOST_V6})
    assert [one.body for one in messages(data)] == [b"", b""]


def test_tags_are_compared_as_text() -> None:
    """The service compares hashes: Aa and BB have the same one."""
    data = page(*({"properties": properties({"TAGS": tag})} for tag in ("Aa", "BB", "C")), {})
    assert [one.tag for one in messages(data, tags=frozenset({"BB", "C"}))] == ["BB", "C"]


def test_bytes_that_are_no_records_are_an_error() -> None:
    with pytest.raises(CorruptMessageError) as raised:
        messages(page({}) + bytes(100))
    assert raised.value.facts["at"] == len(page({}))
