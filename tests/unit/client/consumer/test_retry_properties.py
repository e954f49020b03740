from __future__ import annotations

from tests.unit.client.received_messages import received
from tidemark.client.consumer.retry_properties import as_first_sent, is_retry, origin_message_id, origin_topic
from tidemark.client.received_message import ReceivedMessage, TopicQueue

WAY = {
    "RETRY_TOPIC": "orders",
    "ORIGIN_MESSAGE_ID": "first",
    "MAX_RECONSUME_TIMES": "16",
    "REAL_TOPIC": "%RETRY%billing",
    "REAL_QID": "0",
    "DELAY": "3",
}


def retry(message_id: str = "retry-first-1", **properties: str) -> ReceivedMessage:
    """Return a message that was stored to be tried again."""
    return received(5, queue=TopicQueue("%RETRY%billing", 0), properties={**WAY, **properties}, message_id=message_id)


def test_a_retry_shows_its_first_receiver_the_topic_id_and_properties_of_the_first_send() -> None:
    first = as_first_sent(retry(colour="red"))
    assert (first.topic, first.message_id, first.properties) == ("orders", "first", {"colour": "red"})
    assert (first.queue_id, first.queue_offset) == (0, 5), "its place is the one where it is stored"


def test_a_retry_that_a_broker_stored_keeps_its_own_id() -> None:
    """RocketMQ's brokers give a retry the UNIQ_KEY of the first message."""
    assert origin_message_id(retry("C0A8000100002A9F")) == "C0A8000100002A9F"


def test_a_retry_without_an_origin_id_falls_back_to_its_own_id() -> None:
    assert origin_message_id(retry(ORIGIN_MESSAGE_ID="")) == "retry-first-1"


def test_a_retry_without_an_origin_topic_stays_in_the_retry_topic() -> None:
    message = retry(RETRY_TOPIC="")
    assert (is_retry(message), origin_topic(message)) == (True, "%RETRY%billing")


def test_a_message_of_a_plain_topic_with_retry_properties_is_not_a_retry() -> None:
    """A handler may have sent on the properties of a retry."""
    message = received(0, properties=WAY, message_id="retry-first-1")
    assert (is_retry(message), origin_topic(message)) == (False, "orders")
    assert origin_message_id(message) == "retry-first-1"


def test_a_plain_message_loses_retry_properties_and_keeps_delayed_delivery_properties() -> None:
    """The store itself adds REAL_TOPIC, REAL_QID and DELAY to a message that it delivers late."""
    first = as_first_sent(received(0, properties={**WAY, "DLQ_ORIGIN_TOPIC": "orders", "colour": "red"}))
    assert first.properties == {"colour": "red", "REAL_TOPIC": "%RETRY%billing", "REAL_QID": "0", "DELAY": "3"}


def test_a_dead_letter_keeps_its_origin() -> None:
    """The program that reads dead letters wants to know where they come from."""
    message = received(0, queue=TopicQueue("%DLQ%billing", 0), properties={**WAY, "DLQ_ORIGIN_TOPIC": "orders"})
    assert as_first_sent(message) == message


def test_a_retry_of_a_dead_letter_keeps_the_origin_of_the_dead_letter() -> None:
    first = as_first_sent(retry(RETRY_TOPIC="%DLQ%other", DLQ_ORIGIN_TOPIC="orders", DLQ_ORIGIN_MESSAGE_ID="id"))
    assert first.topic == "%DLQ%other"
    assert first.properties == {"DLQ_ORIGIN_TOPIC": "orders", "DLQ_ORIGIN_MESSAGE_ID": "id"}
