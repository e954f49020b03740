"""A consumer of RocketMQ against the real services: route, heartbeat, long poll, commit, retry, dead letter."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import httpx
import pytest

from tests.remoting_client import RemotingClient
from tidemark.format.record import Record, decode_record
from tidemark.local.local_stack import LocalStack
from tidemark.remoting import Frame, RequestCode
from tidemark.remoting.routes import parse_route

from .calls import SUSPEND, commit_fields, heartbeat, hold, members, outcome

pytestmark = [pytest.mark.integration]


@pytest.fixture
def topic(stack: LocalStack) -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def producer(stack: LocalStack) -> Iterator[RemotingClient]:
    with RemotingClient(int(stack.writer_remoting_address.rpartition(":")[2])) as client:
        yield client


@pytest.fixture
def consumer(stack: LocalStack) -> Iterator[RemotingClient]:
    with RemotingClient(int(stack.query_remoting_address.rpartition(":")[2])) as client:
        yield client


def record_of(answer: Frame) -> Record:
    """Return the only record of a page."""
    assert answer.code == 0, answer.remark
    return decode_record(bytes(answer.body))


def wait_for(consumer: RemotingClient, group: str, topic: str, offset: int = 0) -> Record:
    """Pull as a push consumer does, again and again, until there is a message."""
    while True:
        opaque = hold(consumer, offset, consumerGroup=group, topic=topic, sysFlag=SUSPEND, subVersion=1)
        answer = consumer.receive()
        assert answer.opaque == opaque
        if answer.code != 19:
            return record_of(answer)


def test_a_message_is_consumed_retried_and_a_dead_letter_at_last(
    stack: LocalStack, producer: RemotingClient, consumer: RemotingClient, topic: str
) -> None:
    group = f"g-{topic}"
    retry, dead = f"%RETRY%{group}", f"%DLQ%{group}"
    sent = producer.send_message(topic, b"hello", properties={"TAGS": "A", "UNIQ_KEY": "u1"})

    route = parse_route(consumer.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}).body)
    addresses = {broker.broker_addrs[0]: queue.perm for broker, queue in zip(route.brokers, route.queues, strict=True)}
    assert addresses == {stack.writer_remoting_address: 2, stack.query_remoting_address: 4}

    for client in (producer, consumer):  # both answer for the members
        assert heartbeat(client, "c1", group, **{topic: "A", retry: "*", dead: "*"}).code == 0
        assert members(client, group) == ["c1"]
    record = wait_for(consumer, group, topic)
    assert (record.body, record.queue_id, record.queue_offset) == (b"hello", sent.queue_id, sent.queue_offset)

    def commit(offset: int) -> None:
        fields = commit_fields(offset, consumerGroup=group, topic=topic)
        assert consumer.call(RequestCode.UPDATE_CONSUMER_OFFSET, fields).code == 0

    def send_back(record: Record) -> None:
        fields = {"group": group, "offset": str(record.physical_offset), "delayLevel": "1", "maxReconsumeTimes": "1"}
        answer = consumer.call(RequestCode.CONSUMER_SEND_MSG_BACK, fields)
        assert answer.code == 0, answer.remark

    send_back(record)
    commit(record.queue_offset + 1)
    again = wait_for(consumer, group, retry)
    assert (again.body, again.reconsume_times) == (b"hello", 1)
    send_back(again)
    last = wait_for(consumer, group, dead)
    assert (last.body, last.reconsume_times) == (b"hello", 2)
    with httpx.Client(base_url=stack.query_url, timeout=60) as http:
        (queue,) = http.get(f"/v1/groups/{group}").json()["queues"]
        assert (queue["topic"], queue["offset"], queue["lag"]) == (topic, 1, 0)


def test_a_held_pull_is_answered_by_a_message_that_is_sent_afterwards(
    producer: RemotingClient, consumer: RemotingClient, topic: str
) -> None:
    producer.send_message(topic, b"first")
    group = f"g-{topic}"
    heartbeat(consumer, "c1", group, **{topic: "*"})
    assert wait_for(consumer, group, topic).body == b"first"
    opaque = hold(consumer, 1, consumerGroup=group, topic=topic)
    sent = producer.send_message(topic, b"second")
    answer = consumer.receive()
    assert (answer.opaque, outcome(answer)) == (opaque, (0, 2, 0, 2))
    second = record_of(answer)
    assert (second.body, second.queue_offset) == (b"second", sent.queue_offset)
