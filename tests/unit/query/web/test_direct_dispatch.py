"""Requests answered before the middleware stack, compared with the same requests through it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import Metric

from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp

PULL = "/v1/topics/orders/queues/0/messages"
SAME = [
    ("GET", PULL, {}),
    ("GET", f"{PULL}?max_messages=1&offset=latest", {}),
    ("GET", f"{PULL}?pretty=1", {}),
    ("GET", f"{PULL}?pretty=2", {}),
    ("GET", f"{PULL}?offset=99", {}),
    ("GET", f"{PULL}?ofset=1", {}),
    ("GET", f"{PULL}?tag=A&tag=B%7C%7CC", {}),
    ("GET", PULL, {"Accept": "text/plain"}),
    ("GET", PULL, {"Accept": "application/x-ndjson"}),
    ("GET", PULL, {"X-Request-Id": "mine-1"}),
    ("GET", f"{PULL}/", {}),
    ("HEAD", PULL, {}),
    ("OPTIONS", PULL, {}),
    ("DELETE", PULL, {}),
    ("GET", "/v1/topics/orders/queues/x/messages", {}),
    ("GET", "/v1/topics/orders/queues/0/mesages", {}),
    ("GET", "/v1/topics/or%20ders/queues/0/messages", {}),
    ("GET", "/v1/topics/orders/messages?key=k1", {}),
    ("GET", "/v1/topics/orders/messages?key=a%20b+c", {}),
    ("GET", "/v1/topics/orders/messages?key=k1&key=k2", {}),
    ("GET", "/v1/topics/orders/messages?unique_key=u1&&limit=1", {}),
    ("GET", "/v1/topics/orders/messages?key=", {}),
    ("GET", "/v1/topics/orders/messages?key", {}),
    ("GET", "/v1/topics/absent/messages?key=k1", {}),
    ("GET", "/v1/messages/at/0", {}),
    ("GET", "/v1/messages/at/7", {}),
    ("GET", "/v1/messages/at/x", {}),
    ("GET", "/v1/messages/xyz", {}),
    ("GET", "/v1/topics/orders/queues/0/offset?time=0", {}),
    ("GET", "/healthz", {}),
    ("GET", "/nothing", {}),
]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServedApp]:
    built = BuiltStore(tmp_path / "store")
    built.topic("orders")
    for number in range(3):
        built.append("orders", b"m%d" % number, {"TAGS": "A", "KEYS": f"k{number}", "UNIQ_KEY": f"u{number}"})
    built.publish()
    with ServedApp(built, index_slots=built.slots, index_entries=built.entries) as served:
        yield served


def counted(service: ServedApp) -> dict[tuple[str, ...], float]:
    """Return the counts of answers by route and status, and of observed times by route."""
    families: list[Metric] = [*service.state.metrics.requests.collect(), *service.state.metrics.seconds.collect()]
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name.endswith(("_total", "_count"))
    }


def answer_to(service: ServedApp, method: str, path: str, headers: dict[str, str]) -> tuple[Any, ...]:
    """Return status, headers, body and counts, without the id of the request if the service made it."""
    before = counted(service)
    answer = service.ask(method, path, headers=headers)
    counts = {name: value - before.get(name, 0) for name, value in counted(service).items()}
    body, given = answer.text, headers.get("X-Request-Id")
    request_id = answer.headers.pop("X-Request-Id")
    if given is None:
        body, request_id = body.replace(request_id, "ID"), "ID"
    return (
        answer.status_code,
        answer.headers.raw if given else [pair for pair in answer.headers.raw if pair[0] != b"content-length"],
        body,
        request_id,
        {name: value for name, value in counts.items() if value},
    )


@pytest.mark.parametrize(("method", "path", "headers"), SAME)
def test_an_answer_is_the_same_as_through_the_middleware_stack(
    service: ServedApp, method: str, path: str, headers: dict[str, str]
) -> None:
    directly = answer_to(service, method, path, headers)
    assert service.app.direct is not None
    service.app.direct = None
    assert answer_to(service, method, path, headers) == directly


@pytest.mark.parametrize("path", [PULL, "/v1/topics/orders/messages?key=k1", "/v1/messages/at/0"])
def test_a_lookup_does_not_pass_through_the_middleware_stack(
    service: ServedApp, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def fail(*_: object) -> None:
        raise AssertionError("the stack was called")

    monkeypatch.setattr(FastAPI, "__call__", fail)
    assert service.get(path).status_code == 200
    with pytest.raises(AssertionError, match="the stack was called"):
        service.get("/nothing")


@pytest.mark.parametrize("is_direct", [True, False])
def test_an_unexpected_failure_is_answered_and_raised_to_the_server(
    service: ServedApp, monkeypatch: pytest.MonkeyPatch, is_direct: bool
) -> None:
    """The server logs the error; the metrics count neither way, because the outermost middleware answers."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(service.state.store, "topic", fail)
    if not is_direct:
        service.app.direct = None
    before = counted(service)
    with pytest.raises(ZeroDivisionError, match="broken"):
        service.get("/v1/topics/orders/messages?key=k1")
    transport = httpx.ASGITransport(service.app, raise_app_exceptions=False)
    service.client = httpx.AsyncClient(transport=transport, base_url="http://query")
    answer = service.get("/v1/topics/orders/messages?key=k1", headers={"X-Request-Id": "mine-2"})
    assert (answer.status_code, answer.json()["reason"]) == (500, "INTERNAL")
    assert answer.headers["X-Request-Id"] == answer.json()["request_id"] == "mine-2"
    assert counted(service) == before
