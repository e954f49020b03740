from __future__ import annotations

import pytest

from tidemark.client import Message
from tidemark.client.producer.batch_rules import is_delayed, require_batch
from tidemark.errors import ArgumentIllegalError, BatchDelayError, BatchEmptyError, BatchRetryTopicError, StoreError

PLAIN = Message("orders", b"x")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (PLAIN, False),
        (Message("orders", b"x", delay_level=1), True),
        (Message("orders", b"x", properties={"DELAY": "3"}), True),
        (Message("orders", b"x", properties={"DELAY": "0"}), False),
        (Message("orders", b"x", properties={"TIMER_DELIVER_MS": "1"}), True),
        (Message("orders", b"x", properties={"colour": "red"}), False),
    ],
)
def test_a_delay_is_found_in_the_level_and_in_the_properties(message: Message, expected: bool) -> None:
    assert is_delayed(message) is expected


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (Message("orders", b"x", delay_level=1), BatchDelayError),
        (Message("%RETRY%g", b"x"), BatchRetryTopicError),
        (Message("users", b"x"), ArgumentIllegalError),
        (Message("orders", b"x", properties={"WAIT": "false"}), ArgumentIllegalError),
    ],
)
def test_a_message_that_does_not_fit_the_first_one_is_refused(last: Message, error: type[StoreError]) -> None:
    with pytest.raises(error) as refused:
        require_batch([PLAIN, PLAIN, last])
    assert refused.value.facts.get("at", 2) == 2


def test_a_batch_without_messages_is_refused() -> None:
    with pytest.raises(BatchEmptyError):
        require_batch([])


def test_an_explicit_default_wait_matches_an_omitted_wait() -> None:
    require_batch([PLAIN, Message("orders", b"y", properties={"WAIT": "true"})])


def test_tags_keys_and_other_properties_may_differ() -> None:
    require_batch([PLAIN, Message("orders", b"y", tag="red", keys=["k"], properties={"colour": "red"})])
