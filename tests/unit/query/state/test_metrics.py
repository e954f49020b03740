from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    store = BuiltStore(tmp_path)
    for name in ("bills", "orders"):
        store.topic(name)
        store.append(name)
        store.append(name)
    store.publish()
    return store


@pytest.fixture
def service(built: BuiltStore) -> Iterator[ServedApp]:
    with ServedApp(built, metrics_max_topics=1) as served:
        yield served


def value(service: ServedApp, name: str, **labels: str) -> float | None:
    """Return a sample as it is now; None for a series that is not there."""
    return service.state.metrics.registry.get_sample_value(name, labels)


def counts(service: ServedApp) -> dict[tuple[str, str], float]:
    """Return the number of requests by route and status."""
    return {
        (sample.labels["path"], sample.labels["status"]): sample.value
        for family in service.state.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "tidemark_query_requests_total"
    }


def test_requests_are_counted_by_route_and_status_and_not_by_path(service: ServedApp) -> None:
    for path in ("/v1/topics/orders", "/v1/topics/bills", "/v1/topics/nothing", "/invented"):
        service.get(path)
    route = "/v1/topics/{topic}"
    assert counts(service) == {(route, "200"): 2, (route, "404"): 1, ("none", "404"): 1}


def test_messages_are_counted_by_topic_up_to_a_number_of_topics(service: ServedApp) -> None:
    for topic in ("orders", "bills"):
        service.get(f"/v1/topics/{topic}/queues/0/messages", params={"max_messages": 1})
    samples: list[Any] = [
        sample
        for family in service.state.metrics.given.families()
        for sample in family.samples
        if sample.name == "rocketmq_messages_out_total"
    ]
    assert [sample.value for sample in samples] == [1, 1]
    assert {"orders"} < {sample.labels["topic"] for sample in samples}
    assert "bills" not in {sample.labels["topic"] for sample in samples}


def test_the_watermark_metric_is_read_at_the_scrape(service: ServedApp, built: BuiltStore) -> None:
    assert value(service, "tidemark_watermark_bytes") == built.end
    built.append("orders")
    built.publish()
    assert value(service, "tidemark_watermark_bytes") == built.end


def test_damage_is_counted_by_reason_at_each_scrape(service: ServedApp, built: BuiltStore) -> None:
    name = "tidemark_damaged_places"
    assert (value(service, name, reason="NONE"), value(service, name, reason="BODY_CRC")) == (0, None)
    entry = {"size": 1, "reason": "BODY_CRC", "topic": None, "queue_id": None, "queue_offset": None, "found_ms": 1}
    with (built.root / "tidemark" / "indexer" / "ledger-0.jsonl").open("a") as ledger:
        for number in (1, 2):
            ledger.write(json.dumps({"physical_offset": number, **entry}) + "\n")
            ledger.flush()
            assert value(service, name, reason="BODY_CRC") == number
