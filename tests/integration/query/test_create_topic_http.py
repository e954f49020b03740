"""POST /v1/topics: forwarded to a real writer over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.writer.harness import RunningWriter
from tests.query_server import serve_query

pytestmark = pytest.mark.integration


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    with (
        RunningWriter(tmp_path / "store") as writer,
        serve_query(writer.root, writer_address=writer.address) as client,
    ):
        yield client


def test_a_topic_is_created_once(client: httpx.Client) -> None:
    """It answers 201, then 200 for the same shape, and 409 for another."""
    first = client.post("/v1/topics", json={"topic": "orders", "queues": 3})
    again = client.post("/v1/topics", json={"topic": "orders", "queues": 3})
    other = client.post("/v1/topics", json={"topic": "orders", "queues": 5})
    assert (first.status_code, again.status_code) == (201, 200), first.text
    assert (first.json()["created"], again.json()["created"]) == (True, False)
    assert (first.json()["read_queues"], first.json()["queue_ids"]) == (3, [0, 1, 2])
    assert (other.status_code, other.json()["reason"]) == (409, "TOPIC_EXISTS")


def test_a_batch_topic_is_created_by_its_attribute(client: httpx.Client) -> None:
    """The writer's default is the number of queues."""
    made = client.post("/v1/topics", json={"topic": "batches", "attributes": {"queue.type": "BatchCQ"}}).json()
    assert (made["queue_type"], made["read_queues"]) == ("BatchCQ", 4)


def test_a_created_topic_is_listed(client: httpx.Client) -> None:
    client.post("/v1/topics", json={"topic": "orders"})
    assert [one["topic"] for one in client.get("/v1/topics").json()["topics"]] == ["orders"]


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"topic": "a/b"}, 422, "ARGUMENT_ILLEGAL"),
        ({"topic": "orders", "queues": 0}, 422, "ARGUMENT_ILLEGAL"),
        ({"topic": "orders", "shape": "round"}, 422, "ARGUMENT_ILLEGAL"),
        ({"topic": "orders", "attributes": {"no.such": "1"}}, 422, "TOPIC_ATTRIBUTE_ILLEGAL"),
        ({"topic": "TBW102"}, 403, "TOPIC_FORBIDDEN"),
    ],
)
def test_an_invalid_topic_is_refused(client: httpx.Client, body: dict[str, object], status: int, reason: str) -> None:
    """Query service or writer refuse it with a reason."""
    response = client.post("/v1/topics", json=body)
    assert (response.status_code, response.json()["reason"]) == (status, reason)


def test_creating_a_topic_without_a_writer_is_503(tmp_path: Path) -> None:
    """The writer is not configured, or does not run."""
    for address in (None, "127.0.0.1:1"):
        with serve_query(tmp_path, writer_address=address, query_writer_timeout_ms=3_000) as client:
            response = client.post("/v1/topics", json={"topic": "orders"})
            assert (response.status_code, response.json()["reason"]) == (503, "WRITER_UNREACHABLE")
