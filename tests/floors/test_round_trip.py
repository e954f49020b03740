"""A message's whole way through the real services, without Spark: `make floors-test` runs it with several versions."""

from __future__ import annotations

import uuid

import grpc
import httpx
import pyarrow as pa
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tidemark.client import ReceivedMessage
from tidemark.testing.server import TidemarkServer

SERVICES = {"tidemark.v1.CommitLogService", "tidemark.v1.TopicService"}


@pytest.fixture
def topic() -> str:
    """Return a topic of this test alone."""
    return f"floors-{uuid.uuid4().hex[:8]}"


@pytest.mark.usefixtures("wire")
def test_messages_and_rows_come_back(tidemark_server: TidemarkServer, topic: str) -> None:
    table = pa.table({"id": ["k2"], "kind": ["B"], "payload": ["row"]})
    with tidemark_server.producer() as producer:
        producer.send(topic, b"hello", key="k1", tag="A", properties={"n": "1"})
        producer.send_table(table, topic, key="id", tag="kind", body="payload")
    with tidemark_server.consumer(topic, start="earliest") as consumer:
        got: list[ReceivedMessage] = []
        while len(got) < 2:
            got += consumer.poll(timeout_s=30)
    found = {message.key: (message.text(), message.tag, message.properties.get("n")) for message in got}
    assert found == {"k1": ("hello", "A", "1"), "k2": ("row", "B", None)}


def test_a_message_comes_back_over_rest(tidemark_server: TidemarkServer, topic: str) -> None:
    messages = f"{tidemark_server.query_url}/v1/topics/{topic}/messages"
    body = {"messages": [{"body": "hello", "body_encoding": "utf8", "keys": ["k1"]}]}
    assert httpx.post(messages, json=body).status_code == 201
    tidemark_server.wait_until_visible()
    found = httpx.get(messages, params={"key": "k1", "body_encoding": "utf8"}).json()
    assert [message["body"] for message in found["messages"]] == ["hello"]


def test_health_and_reflection_answer(tidemark_server: TidemarkServer) -> None:
    with grpc.insecure_channel(tidemark_server.writer_address) as channel:
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (listed,) = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([request]))
    assert health.status == health_pb2.HealthCheckResponse.SERVING
    assert {service.name for service in listed.list_services_response.service} >= SERVICES
