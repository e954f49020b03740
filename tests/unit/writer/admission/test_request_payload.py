from __future__ import annotations

import pytest

from services.writer.admission.request_payload import wire_of
from tests.builders import properties, wire_batch
from tidemark.errors import (
    BatchEmptyError,
    MessageSizeExceededError,
    PropertiesIllegalError,
    PropertiesSizeExceededError,
    StoreError,
)
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, Message, MessageList

MAX_SIZE = 100
MAX_PROPERTIES_SIZE = (1 << 15) - 1  # Short.MAX_VALUE: the field that holds the size has two bytes


def wire(*messages: Message, topic: str = "orders") -> bytes:
    request = AppendBatchRequest(topic=topic, messages=MessageList(messages=messages))
    return wire_of(request, max_body_size=MAX_SIZE)


def test_messages_become_a_wire_batch_in_their_order() -> None:
    """Tag and keys are the properties TAGS and KEYS; spaces separate several keys."""
    first = Message(body=b"one", tag="A", keys=["k1", "k2"], flag=7)
    second = Message(body=b"two", properties={"color": "red"})
    assert wire(first, second) == wire_batch(
        (b"one", properties({"TAGS": "A", "KEYS": "k1 k2"}), 7), (b"two", properties({"color": "red"}), 0)
    )


def test_a_request_without_messages_is_refused() -> None:
    with pytest.raises(BatchEmptyError):
        wire_of(AppendBatchRequest(topic="orders"), max_body_size=MAX_SIZE)


def test_a_body_of_the_limit_passes_and_one_byte_more_is_refused_with_its_number() -> None:
    small, greatest = Message(body=b"x"), Message(body=b"x" * MAX_SIZE)
    assert wire(small, greatest) == wire_batch((b"x", b"", 0), (b"x" * MAX_SIZE, b"", 0))
    with pytest.raises(MessageSizeExceededError) as refused:
        wire(small, Message(body=b"x" * (MAX_SIZE + 1)))
    assert (refused.value.facts["at"], refused.value.facts["limit"]) == (1, MAX_SIZE)


def test_properties_of_the_limit_pass_and_one_byte_more_is_refused() -> None:
    room = MAX_PROPERTIES_SIZE - len(properties({"a": ""}))
    wire(Message(body=b"x", properties={"a": "v" * room}))
    with pytest.raises(PropertiesSizeExceededError):
        wire(Message(body=b"x", properties={"a": "v" * (room + 1)}))


REFUSED = {
    "a tag given twice": Message(body=b"x", tag="A", properties={"TAGS": "B"}),
    "keys given twice": Message(body=b"x", keys=["k"], properties={"KEYS": "k"}),
    "a key with a space": Message(body=b"x", keys=["a b"]),
    "an empty key": Message(body=b"x", keys=[""]),
    "a value with a separator": Message(body=b"x", properties={"a": "\x01"}),
    "a tag that no filter can name": Message(body=b"x", tag="A||B"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_properties_are_refused_with_the_message_number(case: str) -> None:
    with pytest.raises(PropertiesIllegalError) as refused:
        wire(Message(body=b"x"), REFUSED[case])
    assert refused.value.facts["at"] == 1


@pytest.mark.parametrize("topic", ["%RETRY%billing", "%DLQ%billing"])
def test_a_retried_message_keeps_a_tag_that_no_filter_can_name(topic: str) -> None:
    """A broker stored it with this tag, and the copy for the next attempt must not be lost because of it."""
    assert wire(Message(body=b"x", tag="A||B"), topic=topic) == wire_batch((b"x", properties({"TAGS": "A||B"}), 0))


@pytest.mark.parametrize("key", ["", "a b"])
def test_a_retried_message_with_an_ambiguous_key_is_refused(key: str) -> None:
    with pytest.raises(StoreError):
        wire(Message(body=b"x", keys=[key]), topic="%RETRY%billing")
