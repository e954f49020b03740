"""Send requests and their answers."""

from __future__ import annotations

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting.sending import (
    SendAnswer,
    SendRequest,
    join_message_ids,
    parse_send,
    parse_send_answer,
    send_answer_fields,
    to_fields,
)

NAMES = {  # the one-letter names of 310 and 320, and the names of 10
    "a": "producerGroup",
    "b": "topic",
    "c": "defaultTopic",
    "d": "defaultTopicQueueNums",
    "e": "queueId",
    "f": "sysFlag",
    "g": "bornTimestamp",
    "h": "flag",
    "i": "properties",
    "j": "reconsumeTimes",
    "k": "unitMode",
    "l": "maxReconsumeTimes",
    "m": "batch",
    "n": "bname",
}
LETTERED = {
    "a": "g",
    "b": "T",
    "c": "TBW102",
    "d": "8",
    "e": "-1",
    "f": "769",
    "g": "1795639209212",
    "h": "5",
    "i": "k\x01v\x02",
    "j": "3",
    "k": "true",
    "l": "2",
    "m": "true",
    "n": "broker-a",
}
NAMED = {NAMES[letter]: value for letter, value in LETTERED.items()}
REQUEST = SendRequest(
    producer_group="g",
    topic="T",
    queue_id=-1,
    sys_flag=769,
    born_timestamp=1795639209212,
    flag=5,
    default_topic="TBW102",
    default_topic_queue_nums=8,
    properties="k\x01v\x02",
    reconsume_times=3,
    unit_mode=True,
    max_reconsume_times=2,
    batch=True,
    broker_name="broker-a",
)


@pytest.mark.parametrize(("code", "fields"), [(10, NAMED), (310, LETTERED), (320, LETTERED)])
def test_both_directions_have_the_fields_of_the_code(code: int, fields: dict[str, str]) -> None:
    assert parse_send(code, fields) == REQUEST
    assert to_fields(code, REQUEST) == fields


def test_absent_fields_have_their_defaults() -> None:
    required = {letter: LETTERED[letter] for letter in "abefgh"}
    found = parse_send(310, required)
    assert (found.reconsume_times, found.unit_mode, found.batch) == (0, False, False)
    assert (found.max_reconsume_times, found.properties, found.broker_name) == (None, "", None)


@pytest.mark.parametrize("letter", list("abefgh"))
def test_missing_required_field_is_named(letter: str) -> None:
    with pytest.raises(FieldIllegalError, match=rf"^{NAMES[letter]} \({letter}\) is missing") as refused:
        parse_send(310, {name: value for name, value in LETTERED.items() if name != letter})
    assert refused.value.facts["field"] == letter
    with pytest.raises(FieldIllegalError, match=rf"^{NAMES[letter]} is missing"):
        parse_send(10, {name: value for name, value in NAMED.items() if name != NAMES[letter]})


@pytest.mark.parametrize("letter", list("defghjl"))
def test_number_that_is_none_is_named(letter: str) -> None:
    with pytest.raises(FieldIllegalError, match=rf"^{NAMES[letter]} \({letter}\) is 'x'"):
        parse_send(320, {**LETTERED, letter: "x"})


def test_answer_has_the_fields_of_the_protocol() -> None:
    host = bytes([127, 0, 0, 1, 0, 0, 0x51, 0xAF])
    answer = SendAnswer(0, 344, join_message_ids(host, [0x3A8533]), "KEY")
    fields = {
        "queueId": "0",
        "queueOffset": "344",
        "msgId": "7F000001000051AF00000000003A8533",
        "transactionId": "KEY",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "false",
    }
    assert send_answer_fields(answer) == fields
    assert parse_send_answer(fields) == answer


def test_answer_to_a_batch_joins_the_message_ids() -> None:
    host = bytes([127, 0, 0, 1, 0, 0, 0x51, 0xAF])
    answer = SendAnswer(1, 400, join_message_ids(host, [0x3ADA7A, 0x3ADBDD]))
    fields = send_answer_fields(answer)
    assert fields["msgId"] == "7F000001000051AF00000000003ADA7A,7F000001000051AF00000000003ADBDD"
    assert "transactionId" not in fields
    assert parse_send_answer(fields).message_ids == fields["msgId"].split(",")


@pytest.mark.parametrize("field", ["queueId", "queueOffset", "msgId"])
def test_answer_without_a_required_field_is_refused(field: str) -> None:
    fields = {"queueId": "0", "queueOffset": "1", "msgId": "x"}
    del fields[field]
    with pytest.raises(FieldIllegalError, match=f"^{field} is missing"):
        parse_send_answer(fields)
