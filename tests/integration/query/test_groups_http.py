"""Consumer offsets over HTTP, and in RocketMQ's file."""

from __future__ import annotations

import json
import os
import threading
import time

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tidemark.store.originals.topics import load_config

pytestmark = pytest.mark.integration

OFFSET = "/v1/groups/billing/topics/orders/queues/0/offset"


def test_an_offset_is_stored_and_returned_with_its_lag(built: BuiltStore, client: httpx.Client) -> None:
    """It is answered when it is durable; the file has it under topic@group."""
    assert client.get(OFFSET).json()["reason"] == "NOT_FOUND"
    answer = client.put(OFFSET, json={"offset": 7})
    assert answer.status_code == 200
    assert answer.json() == {
        "store": "tidemark-0", "group": "billing", "topic": "orders", "queue_id": 0, "offset": 7, "min_offset": 0,
        "max_offset": 10, "below_min": 0, "lag": 3,
    }  # fmt: skip
    assert client.get(OFFSET).json() == answer.json()
    stored = json.loads((built.root / "config" / "consumerOffset.json").read_bytes())
    assert stored["offsetTable"] == {"orders@billing": {"0": 7}}
    client.put("/v1/groups/billing/topics/batches/queues/0/offset", json={"offset": 1})
    client.put("/v1/groups/audit/topics/orders/queues/1/offset", json={"offset": 0})
    assert client.get("/v1/groups").json()["groups"] == [
        {"group": "audit", "topics": ["orders"], "queues": 1, "members": 0},
        {"group": "billing", "topics": ["batches", "orders"], "queues": 2, "members": 0},
    ]
    group = client.get("/v1/groups/billing").json()
    assert (group["lag"], [queue["lag"] for queue in group["queues"]]) == (5, [2, 3])
    assert client.get("/v1/groups/nobody").status_code == 404


def test_offsets_survive_a_restart_of_the_process(built: BuiltStore) -> None:
    with serve_query(built.root) as client:
        client.put(OFFSET, json={"offset": 4})
    with serve_query(built.root) as client:
        assert client.get(OFFSET).json()["offset"] == 4


def test_an_offsets_file_of_a_broker_is_read(built: BuiltStore) -> None:
    """Queue ids have no quotes, and the backup is read if the file itself is broken (docs/format.md §9)."""
    path = built.root / "config" / "consumerOffset.json"
    path.write_bytes(b'{"offsetTable":{"orders@billing":{0:3,1:5}}')
    path.with_name("consumerOffset.json.bak").write_bytes(b'{"offsetTable":{"orders@billing":{0:2,1:5}}}')
    with serve_query(built.root) as client:
        assert client.get(OFFSET).json()["offset"] == 2
        client.put(OFFSET, json={"offset": 9})
    assert load_config(path)["offsetTable"] == {"orders@billing": {"0": 9, "1": 5}}


def test_only_one_process_writes_the_offsets(built: BuiltStore, client: httpx.Client) -> None:
    """A second one reads the file and refuses to write; it takes over when the first one has ended."""
    with serve_query(built.root) as second:
        client.put(OFFSET, json={"offset": 6})
        assert second.get(OFFSET).json()["offset"] == 6
        response = second.put(OFFSET, json={"offset": 8})
        assert (response.status_code, response.json()["reason"]) == (503, "STORE_LOCKED")
    with serve_query(built.root) as first:
        first.get(OFFSET)
    assert client.get(OFFSET).json()["offset"] == 6


def test_many_offset_puts_share_writes(built: BuiltStore, client: httpx.Client) -> None:
    """All of 200 concurrent ones are in the file when they are answered."""

    def put(first: int) -> None:
        with httpx.Client(base_url=client.base_url) as own:
            for number in range(first, 200, 8):
                path = f"/v1/groups/g{number}/topics/orders/queues/0/offset"
                assert own.put(path, json={"offset": number, "force": True}).status_code == 200

    threads = [threading.Thread(target=put, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = load_config(built.root / "config" / "consumerOffset.json")["offsetTable"]
    assert table == {f"orders@g{number}": {"0": number} for number in range(200)}
    assert not [name for name in os.listdir(built.root / "config") if name.endswith(".tmp")]


@pytest.mark.parametrize(
    "path", ["/v1/groups/g/topics/nope/queues/0/offset", "/v1/groups/g/topics/orders/queues/2/offset"]
)
def test_an_offset_of_an_unknown_queue_is_404(client: httpx.Client, path: str) -> None:
    assert client.put(path, json={"offset": 1}).status_code == 404
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", [OFFSET, "/v1/groups/billing/offsets"])
def test_an_offset_above_the_end_needs_force(client: httpx.Client, path: str) -> None:
    """One offset, and several: none is set. The end itself is allowed, and an offset below the minimum."""

    def body(offset: int, **more: bool) -> dict[str, object]:
        if path == OFFSET:
            return {"offset": offset, **more}
        others = [{"topic": "orders", "queue_id": 1, "offset": 0}]
        return {"offsets": [*others, {"topic": "orders", "queue_id": 0, "offset": offset}], **more}

    for offset in (11, 1 << 40):
        refused = client.put(path, json=body(offset))
        assert (refused.status_code, refused.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")
        assert f"offset {offset} of queue 0 of orders is above the queue's end, 10" in refused.json()["detail"]
        assert (refused.json()["requested_offset"], refused.json()["max_offset"]) == (offset, 10)
    assert client.get("/v1/groups/billing").status_code == 404
    assert client.put(path, json=body(10)).status_code == 200
    assert client.put(path, json=body(11, force=True)).status_code == 200
    assert client.get(OFFSET).json()["offset"] == 11


def test_a_member_cannot_commit_beyond_the_end(client: httpx.Client) -> None:
    joined = client.post("/v1/groups/billing/members", json={"topics": ["orders"]}).json()
    commit = {"member_id": joined["member_id"], "generation": joined["generation"]}
    for offset, status in ((10, 200), (11, 422)):
        commit["offsets"] = [{"topic": "orders", "queue_id": 0, "offset": offset}]
        assert client.put("/v1/groups/billing/offsets", json=commit).status_code == status
    assert client.get(OFFSET).json()["offset"] == 10


def test_the_offset_of_a_committed_message_can_be_set_before_it_is_visible(
    built: BuiltStore, client: httpx.Client
) -> None:
    """A producer knows its offset from the acknowledgement, while the watermark still lags."""
    built.append("orders", b"committed")
    built.commit()
    time.sleep(0.5)
    assert client.put(OFFSET, json={"offset": 11}).status_code == 200
    assert client.put(OFFSET, json={"offset": 10_000}).status_code == 422


def test_offsets_beyond_the_limit_are_refused(built: BuiltStore) -> None:
    """Existing ones can still be moved; offsets of deleted topics make room."""
    with serve_query(built.root, query_max_offsets=3) as client:
        for number in range(2):
            assert client.put(OFFSET.replace("billing", f"g{number}"), json={"offset": 1}).status_code == 200
        batches = "/v1/groups/g0/topics/batches/queues/0/offset"
        assert client.put(batches, json={"offset": 1}).status_code == 200
        refused = client.put(OFFSET, json={"offset": 1})
        assert (refused.status_code, refused.json()["reason"], refused.json()["limit"]) == (429, "OFFSETS_FULL", 3)
        assert "TIDEMARK_QUERY_MAX_OFFSETS" in refused.json()["detail"]
        assert client.put(OFFSET.replace("billing", "g1"), json={"offset": 5}).status_code == 200
        assert client.get(OFFSET).status_code == 404
        built.delete_topic("batches")
        assert client.put(OFFSET, json={"offset": 1}).status_code == 200
        assert client.put(OFFSET.replace("billing", "g9"), json={"offset": 1}).status_code == 429
    table = load_config(built.root / "config" / "consumerOffset.json")["offsetTable"]
    assert sorted(table) == ["orders@billing", "orders@g0", "orders@g1"]
