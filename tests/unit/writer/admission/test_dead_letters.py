from __future__ import annotations

from typing import Any

import pytest

from services.writer.admission.append_request import Received
from services.writer.admission.dead_letters import limit_of_tries, redirect
from tests.builders import properties, wire_batch
from tidemark.errors import ArgumentIllegalError, PropertiesIllegalError
from tidemark.format.elements import decode_elements
from tidemark.format.properties import decode_properties
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, Message, MessageList

DEFAULT = 16


def retry(reconsume_times: int, named: dict[str, str] | None = None, **request: Any) -> Received:
    wire = wire_batch((b"body", properties(named or {}), 7))
    given = {"topic": "%RETRY%billing", "packed": wire, "reconsume_times": reconsume_times, **request}
    return Received.of(AppendBatchRequest(**given))


def redirected(received: Received) -> Received:
    return redirect(received, max_body_size=1 << 20, max_reconsume_times=DEFAULT)


@pytest.mark.parametrize(
    ("text", "limit"), [(None, DEFAULT), ("3", 3), ("0", 0), ("-1", DEFAULT), ("+5", 5), ("2147483647", 2147483647)]
)
def test_the_retry_limit_is_the_property_or_the_default(text: str | None, limit: int) -> None:
    assert limit_of_tries({} if text is None else {"MAX_RECONSUME_TIMES": text}, DEFAULT) == limit


@pytest.mark.parametrize("text", ["", "many", "1.5", "2147483648", "-2147483649", "0x10"])
def test_a_retry_limit_that_is_not_an_integer_is_refused(text: str) -> None:
    with pytest.raises(PropertiesIllegalError):
        limit_of_tries({"MAX_RECONSUME_TIMES": text}, DEFAULT)


@pytest.mark.parametrize(
    "received",
    [
        retry(DEFAULT - 1),
        retry(2, {"MAX_RECONSUME_TIMES": "3"}),
        retry(DEFAULT, topic="orders"),
        retry(0, {"MAX_RECONSUME_TIMES": "0"}),
    ],
    ids=["one try is left", "one of its own tries is left", "no retry topic", "sent for the first time"],
)
def test_other_appends_are_not_redirected(received: Received) -> None:
    assert redirected(received) is received


@pytest.mark.parametrize("topic", ["%RETRY%billing", "%RETRY%billing+orders"])
@pytest.mark.parametrize(
    ("reconsume_times", "named"), [(DEFAULT, {}), (DEFAULT + 5, {}), (3, {"MAX_RECONSUME_TIMES": "3"})]
)
def test_the_last_attempt_is_stored_as_a_dead_letter(topic: str, reconsume_times: int, named: dict[str, str]) -> None:
    received = retry(reconsume_times, {**named, "DELAY": "5", "KEYS": "k"}, topic=topic, queue_id=3)
    letter = redirected(received)
    assert letter.request.topic == "%DLQ%billing"
    assert not letter.request.HasField("queue_id")
    assert letter.packed is not None
    (element,) = decode_elements(letter.packed)
    assert (element.body, element.flag) == (b"body", 7)
    assert decode_properties(element.properties) == {**named, "KEYS": "k"}
    assert received.request.topic == topic, "the request of the caller is not changed"


def test_an_unpacked_message_is_redirected_too() -> None:
    messages = MessageList(messages=[Message(body=b"body")])
    request = AppendBatchRequest(topic="%RETRY%billing", messages=messages, reconsume_times=DEFAULT)
    assert redirected(Received.of(request)).request.topic == "%DLQ%billing"


def test_an_expected_offset_in_the_retry_topic_is_refused() -> None:
    with pytest.raises(ArgumentIllegalError):
        redirected(retry(DEFAULT, queue_id=0, expected_next_offset=1))
