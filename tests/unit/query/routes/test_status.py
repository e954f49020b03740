from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp


def entry(physical_offset: int, found_ms: int = 1) -> dict[str, Any]:
    return {
        "physical_offset": physical_offset,
        "size": 100,
        "reason": "BODY_CRC",
        "topic": "orders",
        "queue_id": 0,
        "queue_offset": physical_offset // 100,
        "found_ms": found_ms,
    }


def write_ledger(built: BuiltStore, *entries: dict[str, Any]) -> None:
    folder = built.root / "tidemark" / "indexer"
    (folder / "ledger-0.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in entries))


def test_the_watermark_is_the_last_published_one(service: ServedApp, built: BuiltStore) -> None:
    before = built.end
    built.append("orders")
    assert service.get("/v1/watermark").json()["watermark"]["physical_offset"] == before
    built.publish()
    answer = service.get("/v1/watermark").json()
    assert answer["watermark"]["physical_offset"] == built.end
    assert answer["published_age_ms"] >= 0


def test_a_store_that_was_never_indexed_has_no_publication_time(tmp_path: Path) -> None:
    with ServedApp(BuiltStore(tmp_path, marked=False)) as service:
        assert service.get("/v1/watermark").json()["published_age_ms"] is None
        assert service.get("/v1/status").json()["pipeline"]["shards"] == []


def test_status_counts_topics_and_damage_and_has_the_newest_damage(service: ServedApp, built: BuiltStore) -> None:
    write_ledger(built, entry(200, found_ms=9), entry(100, found_ms=5))
    status = service.get("/v1/status").json()
    assert (status["topics"], status["corruptions"]) == (2, 2)
    assert status["newest_corruption"]["physical_offset"] == 200
    assert (status["writer"]["present"], status["query"]["waiting_requests"]) == (False, 0)


def test_damage_is_listed_page_by_page_in_the_order_of_the_log(service: ServedApp, built: BuiltStore) -> None:
    write_ledger(built, entry(300), entry(100), entry(200))
    first = service.get("/v1/corruptions", params={"limit": 2}).json()
    assert [one["physical_offset"] for one in first["corruptions"]] == [100, 200]
    assert (first["total"], first["next_after"]) == (3, 200)
    second = service.get("/v1/corruptions", params={"limit": 2, "after": first["next_after"]}).json()
    assert [one["physical_offset"] for one in second["corruptions"]] == [300]
    assert second["next_after"] is None


def test_a_record_that_a_pull_skipped_is_on_the_first_page(service: ServedApp, built: BuiltStore) -> None:
    record = built.append("orders", b"damaged")
    built.publish()
    built.write_log(record.physical_offset + 88, b"D")  # the first byte of the body
    assert service.get("/v1/corruptions").json()["lost_units"] == []
    service.get("/v1/topics/orders/queues/0/messages")
    (place,) = service.get("/v1/corruptions").json()["lost_units"]
    assert (place["topic"], place["queue_offset"], place["reason"]) == ("orders", record.queue_offset, "BODY_CRC")
    assert service.get("/v1/corruptions", params={"after": 0}).json()["lost_units"] == []


def test_a_service_that_runs_is_healthy_and_ready(service: ServedApp) -> None:
    assert service.get("/healthz").json() == {"status": "ok"}
    assert service.get("/readyz").json() == {"status": "ready"}


def test_a_service_that_drains_is_healthy_and_not_ready(service: ServedApp) -> None:
    service.state.is_draining = True
    answer = service.get("/readyz")
    assert (answer.status_code, answer.json()["reason"]) == (503, "STORE_CLOSED")
    assert service.get("/healthz").status_code == 200


@pytest.mark.parametrize("damage", ["no marks", "topics that are no JSON"])
def test_an_unreadable_store_is_not_ready(tmp_path: Path, damage: str) -> None:
    built = BuiltStore(tmp_path, marked=damage != "no marks")
    built.topic("orders")
    if damage != "no marks":
        (tmp_path / "config" / "topics.json").write_text("{")
    with ServedApp(built) as service:
        answer = service.get("/readyz")
    assert (answer.status_code, answer.json()["status"], answer.json()["reason"]) == (503, 503, "CORRUPT_STORE")


def test_metrics_are_in_the_text_format_of_prometheus(service: ServedApp, built: BuiltStore) -> None:
    answer = service.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert f"tidemark_watermark_bytes {float(built.end)}" in answer.text
