from __future__ import annotations

import copy
import pickle
from typing import cast

import pytest

from tests.unit.client.received_messages import ORDERS, message_json, page_json, received
from tidemark.client.answers import MessageAnswer, SkippedAnswer
from tidemark.client.received_message import FIELDS, ReceivedMessage, StoreQueue, pulled_page

LOST: SkippedAnswer = {"physical_offset": -1, "queue_offset": 4, "reason": "UNIT_LOST", "message_count": 1}


def test_a_message_of_a_json_answer_has_its_bytes_and_its_offset() -> None:
    answer = message_json(7, b"\x00\xff", tag="red", keys=["a", "b"], properties={"x": "y"}, physical_offset=99)
    message = ReceivedMessage.of(ORDERS, answer)
    assert (message.queue, message.queue_offset, message.physical_offset) == (ORDERS, 7, 99)
    assert (message.body, message.tag, message.keys, message.properties) == (
        b"\x00\xff",
        "red",
        ("a", "b"),
        {"x": "y"},
    )


def test_a_queue_of_a_store_differs_from_the_same_queue_of_another() -> None:
    ours, theirs = (StoreQueue("orders", 0, url) for url in ("http://a", "http://b"))
    assert ours == StoreQueue("orders", 0, "http://a")
    assert len({ours, theirs, ORDERS}) == 3
    assert ours != theirs
    assert ours != ORDERS != ours
    topic, queue_id = ours
    assert (topic, queue_id, ours.store) == ("orders", 0, "http://a")
    for copied in (copy.copy(ours), pickle.loads(pickle.dumps(ours))):
        assert copied == ours
    assert eval(repr(ours)) == ours


def test_a_message_knows_its_store() -> None:
    message = received(3).read_from("http://a")
    assert message.queue == StoreQueue(*ORDERS, "http://a")
    for copied in (copy.copy(message), pickle.loads(pickle.dumps(message)), message.replace(topic=message.topic)):
        assert (copied, copied.store) == (message, "http://a")
    assert message != received(3)
    assert received(3).store == ""
    assert not isinstance(received(3).queue, StoreQueue)


def test_every_member_of_the_answer_arrives_under_its_name() -> None:
    numbers = ("store_timestamp_ms", "born_timestamp_ms", "flag", "sys_flag", "reconsume_times")
    members = {name: number for number, name in enumerate(numbers, 1)}
    texts = {name: name for name in ("message_id", "offset_msg_id", "born_host", "store_host")}
    message = ReceivedMessage.of(ORDERS, cast(MessageAnswer, {**message_json(0), **members, **texts}))
    assert {name: getattr(message, name) for name in (*members, *texts)} == {**members, **texts}


def test_a_body_is_read_as_text_or_json() -> None:
    message = received(body='{"price": "3 €"}'.encode())
    assert (message.text(), message.json()) == ('{"price": "3 €"}', {"price": "3 €"})


def test_reading_a_body_that_is_not_utf8_as_text_raises() -> None:
    message = received(body=b"\xff")
    with pytest.raises(UnicodeDecodeError):
        message.text()
    with pytest.raises(ValueError, match="UTF-8"):
        message.json()


def test_a_page_has_its_messages_and_its_bounds() -> None:
    page = pulled_page(ORDERS, page_json(3, [3, 5], end=9, min_offset=1, skipped=[LOST]))
    assert [message.queue_offset for message in page.messages] == [3, 5]
    assert (page.status, page.requested_offset, page.next_offset) == ("FOUND", 3, 6)
    assert (page.min_offset, page.max_offset, page.skipped) == (1, 9, [LOST])


def test_equal_messages_have_equal_attributes() -> None:
    message = received(7, tag="red")
    assert message == received(7, tag="red")
    assert hash(message) == hash(received(7, tag="red"))
    assert message != received(7, tag="blue")
    assert message != received(8, tag="red")
    assert message != "red"


def test_a_copy_has_other_values_for_some_attributes() -> None:
    message = received(7, tag="red")
    changed = message.replace(body=b"new")
    assert (changed.body, changed.tag, message.body) == (b"new", "red", b"x")
    with pytest.raises(TypeError):
        message.replace(colour="red")


def test_a_message_is_pickled_and_shown_with_all_its_attributes() -> None:
    message = received(7, tag="red", properties={"a": "b"})
    again = pickle.loads(pickle.dumps(message))
    assert (type(again), again) == (ReceivedMessage, message)
    assert copy.deepcopy(message) == message
    assert "queue_offset=7" in repr(message)
    assert message.as_dict() == {name: getattr(message, name) for name in FIELDS}
    assert FIELDS[0] == "topic"
    assert FIELDS[-1] == "store_host"
