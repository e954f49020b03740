"""Rules that all messages of a batch must meet. The writer's reasons: tests/integration/client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_writer import FakeWriter
from tidemark.client import Message, Producer
from tidemark.errors import ArgumentIllegalError, BatchDelayError, BatchRetryTopicError, StoreError


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (Message("other", b"x"), ArgumentIllegalError),
        (Message("t", b"x", properties={"WAIT": "false"}), ArgumentIllegalError),
        (Message("t", b"x", delay_level=1), BatchDelayError),
        (Message("t", b"x", properties={"TIMER_DELAY_SEC": "1"}), BatchDelayError),
        (Message("%RETRY%g", b"x"), BatchRetryTopicError),
    ],
)
def test_one_mismatched_message_makes_the_batch_refused(
    writer: FakeWriter, producer: Producer, second: Message, error: type[StoreError]
) -> None:
    """The error comes before anything is sent."""
    with pytest.raises(error):
        producer.send_batch([Message("t", b"x"), second])
    assert writer.received == []


def test_wait_of_true_is_the_default(writer: FakeWriter, producer: Producer) -> None:
    assert producer.send_batch([Message("t", b"x"), Message("t", b"x", properties={"WAIT": "true"})]).count == 2


def test_send_accepts_either_a_message_or_its_parts(producer: Producer) -> None:
    """A part that is given twice would be ambiguous."""
    with pytest.raises(ValueError, match="brings its own"):
        producer.send(Message("t", b"x"), tag="A")
    with pytest.raises(ValueError, match="topic and a body"):
        producer.send("t")


@pytest.mark.parametrize("options", [{"key": 0}, {"key": 1}, {"key": b"k"}, {"properties": 0}, {"request_id": 7}])
def test_an_option_of_a_wrong_type_is_refused(writer: FakeWriter, producer: Producer, options: dict[str, Any]) -> None:
    """Wrong types with a false value are refused too."""
    with pytest.raises(TypeError, match=r"not .* of type"):
        producer.send("t", b"x", **options)
    assert writer.received == []


@pytest.mark.parametrize("request_id", ["a\x01b", "x" * 256, "\ud800"])
def test_a_request_id_that_cannot_be_stored_is_refused(writer: FakeWriter, producer: Producer, request_id: str) -> None:
    with pytest.raises(StoreError):
        producer.send("t", b"x", request_id=request_id)
    with pytest.raises(StoreError):
        producer.send_batch([Message("t", b"x")] * 2, request_id=request_id)
    assert writer.received == []
