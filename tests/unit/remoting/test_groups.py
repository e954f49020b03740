"""Members and queue locks of a group."""

from __future__ import annotations

import json

import pytest

from tidemark.errors import FieldIllegalError
from tidemark.remoting.groups import (
    CONSUMER_GROUP,
    UNREGISTER_CLIENT,
    BrokerQueue,
    ConsumerGroup,
    QueueLock,
    UnregisterClient,
    consumer_list_body,
    locked_queues_body,
    parse_consumer_list,
    parse_locked_queues,
    parse_queue_lock,
    queue_lock_body,
)

QUEUE = {"brokerName": "broker-a", "queueId": 3, "topic": "T"}


def test_unregister_client_has_one_group_or_both() -> None:
    fields = {"clientID": "c", "producerGroup": "p", "consumerGroup": "g"}
    assert UNREGISTER_CLIENT.read(fields) == UnregisterClient("c", "p", "g")
    assert UNREGISTER_CLIENT.write(UnregisterClient("c", consumer_group="g")) == {"clientID": "c", "consumerGroup": "g"}
    with pytest.raises(FieldIllegalError, match=r"^clientID is missing"):
        UNREGISTER_CLIENT.read({"consumerGroup": "g"})


def test_consumer_group_is_the_only_field_of_38_and_40() -> None:
    assert CONSUMER_GROUP.read({"consumerGroup": "g", "ReqT": "0"}) == ConsumerGroup("g")
    assert CONSUMER_GROUP.write(ConsumerGroup("g")) == {"consumerGroup": "g"}


def test_consumer_list_has_each_client_once() -> None:
    assert consumer_list_body(["b", "a", "b", "a"]) == b'{"consumerIdList":["b","a"]}'
    assert parse_consumer_list(b'{"consumerIdList":["b","a"]}') == ("b", "a")
    with pytest.raises(FieldIllegalError, match=r"^body\.consumerIdList is "):
        parse_consumer_list(b'{"consumerIdList":[1]}')


def test_queue_lock_has_client_group_and_queues() -> None:
    lock = QueueLock("c", "g", (BrokerQueue("broker-a", 3, "T"),), True)
    body = {"clientId": "c", "consumerGroup": "g", "mqSet": [QUEUE], "onlyThisBroker": True}
    assert parse_queue_lock(json.dumps(body).encode()) == lock
    assert json.loads(queue_lock_body(lock)) == body
    assert not parse_queue_lock(b'{"clientId":"c","consumerGroup":"g","mqSet":[]}').only_this_broker


def test_locked_queues_keep_the_broker_name_of_the_request() -> None:
    queues = (BrokerQueue("tidemark-0-r", 3, "T"),)
    assert locked_queues_body(queues) == b'{"lockOKMQSet":[{"brokerName":"tidemark-0-r","queueId":3,"topic":"T"}]}'
    assert parse_locked_queues(locked_queues_body(queues)) == queues
    assert locked_queues_body([]) == b'{"lockOKMQSet":[]}'


@pytest.mark.parametrize(
    ("member", "value"), [("queueId", "3"), ("queueId", 1 << 31), ("topic", None), ("brokerName", 1)]
)
def test_illegal_member_of_a_queue_is_named(member: str, value: object) -> None:
    body = {"clientId": "c", "consumerGroup": "g", "mqSet": [QUEUE, {**QUEUE, member: value}]}
    with pytest.raises(FieldIllegalError, match=rf"^body\.mqSet\[1\]\.{member} is "):
        parse_queue_lock(json.dumps(body).encode())
