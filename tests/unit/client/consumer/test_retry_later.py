"""RetryLater: the identity of a retry, and the contents of its record."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from tidemark.client.consumer.retry_later import RetryLater
from tidemark.client.consumer.retry_properties import as_first_sent
from tidemark.client.message import Message
from tidemark.client.producer.producer import Producer
from tidemark.client.received_message import ReceivedMessage


def received(**changes: Any) -> ReceivedMessage:
    message = ReceivedMessage(
        "orders", 0, 7, b"body", "T", ("k",), {}, "id", "place", 700, 1_000, 0, 3, 0, 0, "127.0.0.1:1", "127.0.0.1:2"
    )
    return message.replace(**changes)


class Stored:
    """A RetryLater whose producer records the messages."""

    def __init__(self, group: str = "billing", *, max_attempts: int = 16) -> None:
        self.producer = Mock(spec=Producer)
        self.send_back = RetryLater(self.producer, group, max_attempts=max_attempts, first_delay_level=3)

    def last(self) -> tuple[Message, str, int]:
        (message,), options = self.producer.send.call_args
        return message, options["request_id"], options["reconsume_times"]

    def request_id(self, message: ReceivedMessage) -> str:
        self.send_back.send(message)
        return self.last()[1]


def test_messages_with_one_id_at_different_offsets_are_separate_retries() -> None:
    stored = Stored()
    places = [received(queue_offset=offset, queue_id=queue) for offset in range(3) for queue in range(2)]
    places += [received(topic="returns"), received(physical_offset=900), received(reconsume_times=1)]
    assert len({stored.request_id(message) for message in places}) == len(places)
    assert stored.request_id(received()) != Stored("mailing").request_id(received())


def test_a_repeated_retry_has_the_same_request_id() -> None:
    assert Stored().request_id(received()) == Stored().request_id(received())


def test_a_request_id_of_the_longest_names_is_short() -> None:
    request_id = Stored("g" * 120).request_id(received(topic="t" * 127, message_id="m" * 5_000))
    assert len(request_id) <= 255


def test_a_retry_carries_its_origin_and_its_attempt() -> None:
    stored = Stored()
    stored.send_back.send(received(properties={"n": "1"}))
    message, _, attempts = stored.last()
    assert (message.topic, message.delay_level, attempts, message.tag, message.flag) == ("%RETRY%billing", 3, 1, "T", 3)
    assert message.properties == {"n": "1", "RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "id"}


def test_origin_properties_copied_by_a_program_are_replaced() -> None:
    stored = Stored()
    stored.send_back.send(received(properties={"RETRY_TOPIC": "elsewhere", "ORIGIN_MESSAGE_ID": "other", "n": "1"}))
    assert stored.last()[0].properties == {"n": "1", "RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "id"}


def test_the_last_attempt_becomes_a_dead_letter_of_its_first_topic() -> None:
    stored = Stored(max_attempts=3)
    way = {"RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "id", "REAL_TOPIC": "x", "REAL_QID": "0", "DELAY": "3"}
    stored.send_back.send(received(topic="%RETRY%billing", reconsume_times=2, message_id="retry-1", properties=way))
    message, _, attempts = stored.last()
    assert (message.topic, message.delay_level, attempts) == ("%DLQ%billing", 0, 3)
    assert message.properties == {
        "RETRY_TOPIC": "orders",
        "ORIGIN_MESSAGE_ID": "id",
        "DLQ_ORIGIN_TOPIC": "orders",
        "DLQ_ORIGIN_MESSAGE_ID": "id",
    }


def test_a_dead_letter_carries_the_reason() -> None:
    stored = Stored()
    stored.send_back.bury(received(), "MESSAGE_SIZE_EXCEEDED")
    message, _, _ = stored.last()
    assert (message.topic, message.properties["DLQ_REASON"]) == ("%DLQ%billing", "MESSAGE_SIZE_EXCEEDED")


def test_a_forwarded_retry_is_unchanged_and_not_delayed() -> None:
    stored = Stored()
    way = {"RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "id", "DELAY": "3", "n": "1"}
    stored.send_back.forward(received(topic="%RETRY%billing", reconsume_times=2, properties=way))
    message, _, attempts = stored.last()
    assert (message.topic, message.delay_level, attempts) == ("%RETRY%billing+orders", 0, 2)
    assert message.properties == {"RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "id", "n": "1"}


def test_a_handler_sees_a_retry_as_the_message_was_first_sent() -> None:
    way = {"RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "id", "DELAY": "3", "REAL_TOPIC": "x", "n": "1"}
    seen = as_first_sent(received(topic="%RETRY%billing+orders", message_id="retry-1", properties=way))
    assert (seen.topic, seen.message_id, seen.properties) == ("orders", "id", {"n": "1"})


def test_a_retry_of_a_broker_keeps_its_unique_key_as_its_id() -> None:
    """A broker copies UNIQ_KEY, and stores the offset message id as ORIGIN_MESSAGE_ID."""
    way = {"RETRY_TOPIC": "orders", "ORIGIN_MESSAGE_ID": "7F000001"}
    assert as_first_sent(received(topic="%RETRY%billing", message_id="unique", properties=way)).message_id == "unique"


def test_a_handler_of_dead_letters_sees_their_origin() -> None:
    way = {"RETRY_TOPIC": "orders", "DLQ_ORIGIN_TOPIC": "orders"}
    assert as_first_sent(received(topic="%DLQ%billing", properties=way)).properties == way
