"""A real Prometheus scrapes the running services: every panel has data, every rule can be evaluated."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from scripts.dashboard import PANELS
from scripts.promtool import tool
from tests.metrics.scrape import Watched
from tidemark.cli.local_stack import free_port

pytestmark = [pytest.mark.integration, pytest.mark.spark]
RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
_TIMEOUT_S = 60.0
_POLL_S = 0.2


@pytest.fixture(scope="module")
def prometheus(watched: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Its API; it scrapes every second."""
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "prometheus.yml").write_text(_configuration(watched))
    port = free_port()
    with (folder / "log").open("w") as told:
        process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=told,
            stderr=told,
        )
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
                _wait_until_ready(client, process, folder / "log")
                yield client
        finally:
            process.terminate()
            process.wait(30)


def _configuration(watched: Watched) -> str:
    lines = ["global: {scrape_interval: 1s, evaluation_interval: 1s}", f"rule_files: ['{RULES}']", "scrape_configs:"]
    for service, address in watched.addresses.items():
        lines += [f"  - job_name: tidemark-{service}", f"    static_configs: [{{targets: ['{address}']}}]"]
    return "\n".join(lines) + "\n"


def _wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, "prometheus does not get ready"
        try:
            if client.get("/-/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(_POLL_S)


def ask(prometheus: httpx.Client, promql: str) -> list[float]:
    """Values of the vector that *promql* gives now; it must not fail."""
    answer: dict[str, Any] = prometheus.get("/api/v1/query", params={"query": promql}).json()
    assert answer["status"] == "success", answer
    return [float(series["value"][1]) for series in answer["data"]["result"]]


@pytest.mark.parametrize(
    ("title", "promql"), [(panel.title, query.promql) for panel in PANELS for query in panel.queries]
)
def test_every_query_of_the_dashboard_has_data(prometheus: httpx.Client, title: str, promql: str) -> None:
    """A number, not NaN, once a few scrapes and epochs are over."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not any(map(math.isfinite, ask(prometheus, promql.replace("$__rate_interval", "10s")))):
        assert time.monotonic() < deadline, f"{title} stays empty"
        time.sleep(_POLL_S)


def test_every_rule_can_be_evaluated_and_a_sound_stack_fires_none(prometheus: httpx.Client) -> None:
    """After all services were scraped."""
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
