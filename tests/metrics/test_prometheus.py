"""A real Prometheus scrapes the running services: every panel has data, every rule can be evaluated."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from scripts.dashboard import PANELS
from scripts.prometheus_server import prometheus_over
from tests.metrics.scrape import Watched

pytestmark = [pytest.mark.integration, pytest.mark.spark]
_TIMEOUT_S = 60.0
_POLL_S = 0.2


@pytest.fixture(scope="module")
def prometheus(watched: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Yield a client of its API; it scrapes every second."""
    with prometheus_over(watched.addresses, tmp_path_factory.mktemp("prometheus")) as client:
        yield client


def ask(prometheus: httpx.Client, promql: str) -> list[float]:
    """Return the values of the vector that *promql* gives now; it must not fail."""
    answer: dict[str, Any] = prometheus.get("/api/v1/query", params={"query": promql}).json()
    assert answer["status"] == "success", answer
    return [float(series["value"][1]) for series in answer["data"]["result"]]


@pytest.mark.parametrize(
    ("title", "promql"), [(panel.title, query.promql) for panel in PANELS for query in panel.queries]
)
def test_every_query_of_the_dashboard_has_data(prometheus: httpx.Client, title: str, promql: str) -> None:
    """Each gives a number, not NaN, after a few scrapes and epochs."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not any(map(math.isfinite, ask(prometheus, promql.replace("$__rate_interval", "10s")))):
        assert time.monotonic() < deadline, f"{title} stays empty"
        time.sleep(_POLL_S)


def test_every_rule_is_evaluated_and_a_healthy_stack_fires_none(prometheus: httpx.Client) -> None:
    """All services were scraped before."""
    deadline = time.monotonic() + _TIMEOUT_S
    while sum(ask(prometheus, 'up{job=~"tidemark-.*"}')) < 3:
        assert time.monotonic() < deadline, "a service is not scraped"
        time.sleep(_POLL_S)
    while True:
        (group,) = prometheus.get("/api/v1/rules").json()["data"]["groups"]
        if all(rule["health"] != "unknown" for rule in group["rules"]):
            break
        assert time.monotonic() < deadline, "the rules are not evaluated"
        time.sleep(_POLL_S)
    assert {rule["name"]: rule["health"] for rule in group["rules"]} == {rule["name"]: "ok" for rule in group["rules"]}
    assert [rule["name"] for rule in group["rules"] if rule["state"] == "firing"] == []
