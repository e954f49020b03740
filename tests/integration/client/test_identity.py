"""Each message of a batch has its own identity, whichever way it was sent; readers see it as `message_id`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

from tests.integration.client.stored import records
from tidemark.client import BATCH_QUEUE, AsyncProducer, Message, Producer, Query
from tidemark.format.elements import decode_elements
from tidemark.format.properties import decode_properties
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("wire")]
COUNT = 20


def by_send_batch(stack: LocalStack, topic: str) -> None:
    with Producer(stack.writer_address) as producer:
        producer.send_batch([Message(topic, f"{n}") for n in range(COUNT)])


def by_async_send_batch(stack: LocalStack, topic: str) -> None:
    async def run() -> None:
        async with AsyncProducer(stack.writer_address) as producer:
            await producer.send_batch([Message(topic, f"{n}") for n in range(COUNT)])

    asyncio.run(run())


def by_named_batch(stack: LocalStack, topic: str) -> None:
    with Producer(stack.writer_address) as producer:
        producer.send_batch([Message(topic, f"{n}") for n in range(COUNT)], request_id="job")


def by_packed_batch(stack: LocalStack, topic: str) -> None:
    """Send bytes that the program packed, without keys; the writer derives them."""
    from tidemark.format.elements import Element, encode_elements

    with Producer(stack.writer_address) as producer:
        packed = encode_elements([Element(b"%d" % n) for n in range(COUNT)])
        producer.send_packed_async(topic, packed, count=COUNT).result()


def by_send_table(stack: LocalStack, topic: str) -> None:
    with Producer(stack.writer_address) as producer:
        producer.send_table(pa.table({"b": [f"{n}" for n in range(COUNT)]}), topic, body="b")


def by_accumulated_sends(stack: LocalStack, topic: str) -> None:
    with Producer(stack.writer_address, accumulate=True) as producer:
        for future in [producer.send_async(topic, f"{n}") for n in range(COUNT)]:
            future.result()


def by_rest(stack: LocalStack, topic: str) -> None:
    body = {"messages": [{"body": f"{n}", "body_encoding": "utf8"} for n in range(COUNT)]}
    headers = {"Content-Type": "application/json", "Idempotency-Key": "job"}
    url = f"{stack.query_url}/v1/topics/{topic}/messages"
    for _ in range(2):  # the repetition is recognised by the same derived keys
        with urlopen(Request(url, json.dumps(body).encode(), headers)) as answer:
            assert json.load(answer)["queue_offset"] == 0


def by_cli(stack: LocalStack, topic: str) -> None:
    command = [sys.executable, "-m", "tidemark.cli", "produce", topic, "--writer", stack.writer_address]
    lines = "".join(f"{n}\n" for n in range(COUNT))
    subprocess.run(command, input=lines, text=True, check=True, capture_output=True, timeout=60)


WAYS: tuple[Callable[[LocalStack, str], None], ...] = (
    by_send_batch,
    by_async_send_batch,
    by_named_batch,
    by_packed_batch,
    by_send_table,
    by_accumulated_sends,
    by_rest,
    by_cli,
)


@pytest.mark.parametrize("attributes", [{}, BATCH_QUEUE], ids=["simple", "batch"])
@pytest.mark.parametrize("send", WAYS, ids=lambda way: way.__name__)
def test_each_message_of_a_batch_has_a_unique_key(
    stack: LocalStack, send: Callable[[LocalStack, str], None], attributes: dict[str, str]
) -> None:
    """It is one of its own properties, also within an inner batch."""
    topic = f"identity-{uuid.uuid4().hex[:8]}"
    with Producer(stack.writer_address) as producer:
        producer.topics.create(topic, queues=1, attributes=attributes)
    send(stack, topic)
    properties = []
    for record in records(stack.writer_address, topic):
        inner = [element.properties for element in decode_elements(record.body)] if attributes else [record.properties]
        properties += inner
    assert len(properties) == COUNT
    keys = [decode_properties(one).get("UNIQ_KEY") for one in properties]
    assert None not in keys
    assert len(set(keys)) == COUNT


def test_the_result_of_a_batch_has_the_id_of_each_message(stack: LocalStack) -> None:
    """Each id finds its message, and a reader sees it."""
    topic = f"identity-{uuid.uuid4().hex[:8]}"
    with Producer(stack.writer_address) as producer, Query(stack.query_url) as query:
        producer.topics.create(topic, queues=1)
        sent = producer.send_batch([Message(topic, f"{n}") for n in range(COUNT)], queue_id=0)
        assert len(set(sent.message_ids)) == COUNT
        page = query.pull(topic, 0, 0, body_encoding="utf8", wait_ms=10_000)
        assert [message["message_id"] for message in page["messages"]] == list(sent.message_ids)
        for number, message_id in enumerate(sent.message_ids):
            found = query.get(f"/v1/topics/{topic}/messages", unique_key=message_id, body_encoding="utf8")["messages"]
            assert [message["body"] for message in found] == [f"{number}"]


def test_a_batch_with_the_same_request_id_is_stored_once(stack: LocalStack) -> None:
    """Its keys are derived from the id, so that the repetition has the same bytes."""
    topic = f"identity-{uuid.uuid4().hex[:8]}"
    with Producer(stack.writer_address) as producer:
        messages = [Message(topic, f"{n}") for n in range(COUNT)]
        first = producer.send_batch(messages, queue_id=0, request_id="job")
        again = producer.send_batch(messages, queue_id=0, request_id="job")
    assert (again.duplicate, again.queue_offset) == (True, first.queue_offset)
    assert list(first.message_ids) == list(again.message_ids) == ["job", *(f"job#{n}" for n in range(1, COUNT))]
    assert len(records(stack.writer_address, topic)) == COUNT
