"""What the messages of a batch must have in common. Reasons that a writer gives, too: tests/integration/client."""

from __future__ import annotations

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
def test_one_message_that_does_not_belong_refuses_the_batch(
    writer: FakeWriter, producer: Producer, second: Message, error: type[StoreError]
) -> None:
    """Before anything is sent."""
    with pytest.raises(error):
        producer.send_batch([Message("t", b"x"), second])
    assert writer.received == []


def test_wait_of_true_is_the_default(writer: FakeWriter, producer: Producer) -> None:
    """Said or not said, it is the same."""
    assert producer.send_batch([Message("t", b"x"), Message("t", b"x", properties={"WAIT": "true"})]).count == 2


def test_a_message_brings_its_own_parts(producer: Producer) -> None:
    """Given twice, nobody knows which is meant."""
    with pytest.raises(ValueError, match="brings its own"):
        producer.send(Message("t", b"x"), tag="A")
    with pytest.raises(ValueError, match="topic and a body"):
        producer.send("t")
