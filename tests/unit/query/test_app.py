from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp
from tidemark.tracing.exporting import Tracing


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    store = BuiltStore(tmp_path)
    store.topic("orders")
    store.append("orders", b"x", {"traceparent": f"00-{7:032x}-{7:016x}-01"})
    store.publish()
    return store


@pytest.mark.parametrize("path", ["/v1/topics/orders", "/v1/topics/nothing", "/invented", "/healthz"])
def test_every_answer_has_an_id(built: BuiltStore, path: str) -> None:
    with ServedApp(built) as service:
        assert service.get(path, headers={"X-Request-Id": "order-17"}).headers["X-Request-Id"] == "order-17"


@pytest.mark.parametrize(("method", "status"), [("GET", 404), ("POST", 404)])
def test_an_unknown_path_is_a_problem(built: BuiltStore, method: str, status: int) -> None:
    with ServedApp(built) as service:
        answer = service.ask(method, "/v1/invented")
    assert (answer.status_code, answer.json()["reason"]) == (status, "NO_SUCH_PATH")


def test_a_known_path_with_another_method_is_a_problem(built: BuiltStore) -> None:
    with ServedApp(built) as service:
        answer = service.ask("DELETE", "/v1/topics/orders")
    assert (answer.status_code, answer.json()["reason"]) == (405, "METHOD_NOT_ALLOWED")


def test_spans_of_requests_and_of_pulled_messages_are_exported(built: BuiltStore) -> None:
    exporter = InMemorySpanExporter()
    tracing = Tracing("query", shutdown_ms=10_000, exporter=exporter)
    with ServedApp(built, tracing=tracing) as service:
        service.get("/v1/topics/orders/queues/0/messages")
    tracing.close()
    names = sorted(span.name for span in exporter.get_finished_spans())
    assert names == ["GET /v1/topics/{topic}/queues/{queue_id}/messages", "pull orders"]
