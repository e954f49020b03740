from __future__ import annotations

from typing import Any

import pytest

from services.writer.admission.append_request import Received
from services.writer.admission.request_rules import check_request, is_retry, is_single
from tests.builders import properties, wire_batch
from tidemark.errors import (
    ArgumentIllegalError,
    BatchDelayError,
    BatchRetryTopicError,
    BatchTransactionError,
    InnerBatchIllegalError,
    PropertiesIllegalError,
    QueueIllegalError,
    StoreError,
    TopicForbiddenError,
)
from tidemark.store.originals.topics import TopicConfig
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, Message, MessageList

ORDERS = TopicConfig("orders", 4, 4)
BATCHES = TopicConfig("batches", 4, 4, attributes={"queue.type": "BatchCQ"})
RETRY = TopicConfig("%RETRY%billing", 1, 1)
ONE = wire_batch((b"a", properties({"KEYS": "k"}), 0))
TWO = wire_batch((b"a", b"", 0), (b"b", b"", 0))
COMPRESSED, TRANSACTION_PREPARED, INNER_BATCH = 1, 4, 0x80  # MessageSysFlag of RocketMQ


def request_to(config: TopicConfig, **fields: Any) -> AppendBatchRequest:
    return AppendBatchRequest(**{"topic": config.name, "packed": ONE, **fields})


ACCEPTED: dict[str, tuple[TopicConfig, dict[str, Any]]] = {
    "the last queue": (ORDERS, {"queue_id": 3}),
    "a queue that is only read": (TopicConfig("orders", 8, 4), {"queue_id": 7}),
    "an expected offset of a queue": (ORDERS, {"queue_id": 0, "expected_next_offset": 0}),
    "a request id of 255": (ORDERS, {"request_id": "i" * 255}),
    "one delayed message": (ORDERS, {"properties": {"DELAY": "3"}}),
    "a batch with the delay of none": (ORDERS, {"packed": TWO, "properties": {"DELAY": "0"}}),
    "one message for a retry topic": (RETRY, {"reconsume_times": 1}),
    "a retry keeps marks of transactions": (RETRY, {"reconsume_times": 1, "properties": {"TRAN_MSG": "true"}}),
    "an inner batch": (BATCHES, {"packed": TWO, "sys_flag": INNER_BATCH, "properties": {"INNER_NUM": "2"}}),
    "a compressed message": (ORDERS, {"sys_flag": COMPRESSED}),
}
REFUSED: dict[str, tuple[type[StoreError], TopicConfig, dict[str, Any]]] = {
    "a topic without write permission": (TopicForbiddenError, TopicConfig("orders", 4, 4, 4), {}),
    "a topic without write queues": (TopicForbiddenError, TopicConfig("orders", 4, 0), {}),
    "a queue behind the last": (QueueIllegalError, ORDERS, {"queue_id": 4}),
    "a negative queue": (QueueIllegalError, ORDERS, {"queue_id": -1}),
    "an expected offset of no queue": (ArgumentIllegalError, ORDERS, {"expected_next_offset": 0}),
    "a negative expected offset": (ArgumentIllegalError, ORDERS, {"queue_id": 0, "expected_next_offset": -1}),
    "a batch to a retry topic": (BatchRetryTopicError, RETRY, {"packed": TWO}),
    "a negative birth": (ArgumentIllegalError, ORDERS, {"born_timestamp_ms": -1}),
    "negative tries": (ArgumentIllegalError, ORDERS, {"reconsume_times": -1}),
    "a property that ends the text": (PropertiesIllegalError, ORDERS, {"properties": {"a": "b\x02c"}}),
    "a checksum of the client": (PropertiesIllegalError, ORDERS, {"properties": {"__CRC32#": "0123456789"}}),
    "a request id with a separator": (PropertiesIllegalError, ORDERS, {"request_id": "a\x01b"}),
    "a request id of 256": (PropertiesIllegalError, ORDERS, {"request_id": "i" * 256}),
    "a flag of a transaction": (BatchTransactionError, ORDERS, {"sys_flag": TRANSACTION_PREPARED}),
    "a transactional message": (BatchTransactionError, ORDERS, {"properties": {"TRAN_MSG": "true"}}),
    "a first message to a retry topic is no retry": (
        BatchTransactionError,
        RETRY,
        {"properties": {"TRAN_MSG": "true"}},
    ),
    "a delivery at a time": (BatchDelayError, ORDERS, {"properties": {"TIMER_DELIVER_MS": "1"}}),
    "a delayed batch": (BatchDelayError, ORDERS, {"packed": TWO, "properties": {"DELAY": "1"}}),
    "a number without the flag": (InnerBatchIllegalError, BATCHES, {"properties": {"INNER_NUM": "1"}}),
    "several queues": (InnerBatchIllegalError, ORDERS, {"properties": {"INNER_MULTI_DISPATCH": "a,b"}}),
    "an inner batch for single messages": (InnerBatchIllegalError, ORDERS, {"sys_flag": INNER_BATCH}),
    "a compressed inner batch": (InnerBatchIllegalError, BATCHES, {"sys_flag": INNER_BATCH | COMPRESSED}),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_valid_requests_are_accepted(case: str) -> None:
    config, fields = ACCEPTED[case]
    check_request(Received.of(request_to(config, **fields)), config)


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_requests_are_refused(case: str) -> None:
    error, config, fields = REFUSED[case]
    with pytest.raises(error):
        check_request(Received.of(request_to(config, **fields)), config)


@pytest.mark.parametrize(
    ("topic", "tries", "expected"),
    [("%RETRY%billing", 1, True), ("%DLQ%billing", 1, True), ("%RETRY%billing", 0, False), ("orders", 1, False)],
)
def test_a_retry_has_reconsume_times_and_a_retry_topic(topic: str, tries: int, expected: bool) -> None:
    assert is_retry(AppendBatchRequest(topic=topic, reconsume_times=tries)) is expected


def test_one_message_is_single_only_in_a_topic_without_batches() -> None:
    spelled_out = MessageList(messages=[Message(body=b"a")])
    for fields in ({"packed": ONE}, {"packed": b"", "messages": spelled_out}):
        assert is_single(Received.of(AppendBatchRequest(**fields)), ORDERS)
        assert not is_single(Received.of(AppendBatchRequest(**fields)), BATCHES)
    assert not is_single(Received.of(AppendBatchRequest(packed=TWO)), ORDERS)
    assert not is_single(Received.of(AppendBatchRequest(packed=b"")), ORDERS)
    two = MessageList(messages=[Message(), Message()])
    assert not is_single(Received.of(AppendBatchRequest(messages=two)), ORDERS)
