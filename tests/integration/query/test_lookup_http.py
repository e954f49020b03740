"""Lookups over HTTP: by id, position, key and time; topics, status and their monitoring."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.builders import STORE_HOST
from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tidemark.client import Consumer, TopicQueue
from tidemark.replication.group_state import GroupState
from tidemark.replication.member_files import MemberFiles
from tidemark.replication.member_role import PublishedRole
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.integration


def get(client: httpx.Client, path: str, **params: Any) -> Any:
    response = client.get(path, params=params or None)
    assert response.status_code == 200, response.text
    return response.json()


def test_a_message_is_returned_by_offset_and_by_id(built: BuiltStore, client: httpx.Client) -> None:
    """The answer is always a list: an inner batch is one record and several messages."""
    record = built.append("orders", b"last")
    built.publish()
    by_place = get(client, f"/v1/messages/at/{record.physical_offset}", body_encoding="utf8")
    assert (by_place["topic"], by_place["queue_id"], by_place["messages"][0]["body"]) == ("orders", 0, "last")
    message_id = (STORE_HOST + record.physical_offset.to_bytes(8, "big")).hex().upper()
    assert get(client, f"/v1/messages/{message_id}", body_encoding="utf8")["messages"] == by_place["messages"]
    assert get(client, f"/v1/messages/{message_id.lower()}")["topic"] == "orders"
    batch = get(client, "/v1/topics/batches/queues/0/messages")["messages"]
    elements = get(client, f"/v1/messages/{batch[2]['offset_msg_id']}")["messages"]
    assert [message["queue_offset"] for message in elements] == [0, 1, 2]


def test_each_message_of_a_batch_has_its_own_id_in_every_format(built: BuiltStore, client: httpx.Client) -> None:
    """The id is its own UNIQ_KEY, or its number in the batch, never the wrapper's key; all forms agree."""
    built.append_batch("batches", [(b"c0", {"UNIQ_KEY": "own"}, 0), (b"c1", {}, 0)], {"UNIQ_KEY": "wrapper"})
    built.publish()
    path = "/v1/topics/batches/queues/0/messages"
    messages = get(client, path)["messages"]
    ids = [message["message_id"] for message in messages]
    first, second = messages[0]["offset_msg_id"], messages[3]["offset_msg_id"]
    assert ids == [f"{first}-0", f"{first}-1", f"{first}-2", "own", f"{second}-1"]
    lines = client.get(path, headers={"Accept": "application/x-ndjson"}).text.splitlines()
    assert [json.loads(line)["message_id"] for line in lines] == ids
    arrow = client.get(path, headers={"Accept": "application/vnd.apache.arrow.stream"}).content
    assert pa.ipc.open_stream(arrow).read_all()["message_id"].to_pylist() == ids
    with Consumer(queues=[TopicQueue("batches", 0)], store=built.root) as consumer:
        assert [message.message_id for message in consumer.poll(10)] == ids
    found = get(client, "/v1/topics/batches/messages", unique_key="wrapper")["messages"]
    assert [message["message_id"] for message in found] == ids[3:]
    for number in (0, 1, 2, 4):
        assert get(client, f"/v1/messages/{ids[number]}")["messages"] == [messages[number]]
    assert client.get(f"/v1/messages/{first}-3").json()["reason"] == "NOT_FOUND"
    assert client.get(f"/v1/messages/{first}-x").status_code == 422
    theirs = get(client, path, semantics="rocketmq")["messages"]
    assert [message["message_id"] for message in theirs] == [None, None, None, "own", None]


def test_a_lookup_waits_for_an_invisible_message(built: BuiltStore, client: httpx.Client) -> None:
    """Without waiting it is 404 NOT_YET_VISIBLE, with waiting the message; NOT_FOUND comes at once."""
    record = built.append("orders", b"soon")
    path = f"/v1/messages/at/{record.physical_offset}"
    response = client.get(path)
    assert (response.status_code, response.json()["reason"]) == (404, "NOT_YET_VISIBLE")
    threading.Timer(0.2, built.publish).start()
    assert get(client, path, wait_ms=20_000, body_encoding="utf8")["messages"][0]["body"] == "soon"
    response = client.get(f"/v1/messages/at/{record.physical_offset + 1}", params={"wait_ms": 20_000})
    assert (response.status_code, response.json()["reason"]) == (404, "NOT_FOUND")


def test_a_damaged_message_is_reported_by_a_lookup(built: BuiltStore, client: httpx.Client) -> None:
    """A lookup by position fails; a pull skips it and reports it."""
    record = built.append("orders", b"wrong", {"KEYS": "bad"})
    built.publish()
    built.write_log(record.physical_offset + 88, b"W")
    response = client.get(f"/v1/messages/at/{record.physical_offset}")
    assert (response.status_code, response.json()["reason"]) == (500, "CORRUPT_MESSAGE")
    told = {"physical_offset": record.physical_offset, "queue_offset": 10, "reason": "BODY_CRC", "message_count": 1}
    answer = get(client, "/v1/topics/orders/queues/0/messages", offset=10)
    assert (answer["status"], answer["next_offset"], answer["skipped"]) == ("NO_MATCHED_MESSAGE", 11, [told])
    assert [skip["reason"] for skip in get(client, "/v1/topics/orders/messages", key="bad")["skipped"]] == ["BODY_CRC"]


def test_a_key_search_is_paged_by_cursor(built: BuiltStore, client: httpx.Client) -> None:
    """Cursors work while messages are appended, and belong to their search."""
    for number in range(5):
        built.append("orders", f"a{number}".encode(), {"KEYS": "all", "UNIQ_KEY": f"u{number}"}, queue_id=number % 2)
    built.publish()
    first = get(client, "/v1/topics/orders/messages", key="all", limit=3, body_encoding="utf8")
    assert [(message["body"], message["queue_id"]) for message in first["messages"]] == [
        ("a0", 0),
        ("a1", 1),
        ("a2", 0),
    ]
    built.append("orders", b"a5", {"KEYS": "all"})
    built.publish()
    cursor = first["next_cursor"]
    second = get(client, "/v1/topics/orders/messages", key="all", limit=3, cursor=cursor, body_encoding="utf8")
    assert ([message["body"] for message in second["messages"]], second["next_cursor"]) == (["a3", "a4", "a5"], None)
    found = get(client, "/v1/topics/orders/messages", unique_key="u3", body_encoding="utf8")
    assert [message["body"] for message in found["messages"]] == ["a3"]
    response = client.get("/v1/topics/orders/messages", params={"key": "other", "cursor": cursor})
    assert (response.status_code, response.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")


def test_a_search_by_store_time_returns_all_queues_in_log_order(built: BuiltStore, client: httpx.Client) -> None:
    """Without a key all messages of both queues come in the order of the log; the last page has no cursor."""
    middle = built.append("orders", b"other", queue_id=1)
    built.publish()
    bodies: list[str] = []
    params: dict[str, Any] = {"limit": 4, "body_encoding": "utf8"}
    while True:
        page = get(client, "/v1/topics/orders/messages", **params)
        bodies += [message["body"] for message in page["messages"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert bodies == [*(f"m{number}" for number in range(10)), "other"]
    late = get(client, "/v1/topics/orders/messages", **{"from": middle.store_timestamp, "body_encoding": "utf8"})
    assert [message["body"] for message in late["messages"]] == ["other"]


def test_times_are_accepted_as_milliseconds_and_rfc_3339(built: BuiltStore, client: httpx.Client) -> None:
    """Epoch milliseconds and RFC 3339 are equivalent; a `+` need not be percent-encoded."""
    record = built.append("orders", b"x", at_ms=1_700_000_100_000)
    built.publish()
    for text in ("1700000100000", "2023-11-14T22:15:00Z", "2023-11-14T23:15:00+01:00", "2023-11-14T22:15:00.000Z"):
        for raw in (text, text.replace("+", "%2B")):
            answer = get(client, f"/v1/topics/orders/queues/0/offset?time={raw}")
            assert (answer["offset"], answer["store_timestamp_ms"]) == (record.queue_offset, 1_700_000_100_000)
    upper = get(client, "/v1/topics/orders/queues/0/offset", time=1_700_000_099_999, boundary="upper")
    assert upper["offset"] == 9
    beyond = get(client, "/v1/topics/orders/queues/0/offset", time="2099-01-01T00:00:00Z")
    assert (beyond["offset"], beyond["store_timestamp_ms"]) == (11, None)


def test_topics_and_queues_have_types_and_bounds(built: BuiltStore, client: httpx.Client) -> None:
    """The answer has types and bounds; a new topic is there at once."""
    topics = {topic["topic"]: topic for topic in get(client, "/v1/topics")["topics"]}
    assert {name: topic["queue_type"] for name, topic in topics.items()} == {"orders": "SimpleCQ", "batches": "BatchCQ"}
    assert topics["orders"]["queue_ids"] == [0, 1]
    queues = get(client, "/v1/topics/orders")["queues"]
    assert queues == [
        {"queue_id": 0, "min_offset": 0, "max_offset": 10},
        {"queue_id": 1, "min_offset": 0, "max_offset": 0},
    ]
    queue = get(client, "/v1/topics/batches/queues/0")
    assert (queue["min_offset"], queue["max_offset"], queue["lag_bytes"]) == (0, 3, 0)
    built.topic("%RETRY%group")
    assert get(client, "/v1/topics/%25RETRY%25group")["topic"] == "%RETRY%group"


def test_status_watermark_and_metrics_are_served(built: BuiltStore, client: httpx.Client) -> None:
    """These are an operator's endpoints."""
    status = get(client, "/v1/status")
    assert status["watermark"]["physical_offset"] == built.end
    assert status["writer"]["present"] is False
    assert status["pipeline"]["shards"] == [{"shard": 0, "visible": built.end, "durable": 0, "term": 0}]
    assert status["disk"]["free_bytes"] > 0
    watermark = get(client, "/v1/watermark")
    assert (watermark["committed_offset"], watermark["lag_bytes"]) == (built.end, 0)
    assert get(client, "/healthz") == {"status": "ok"}
    assert get(client, "/readyz") == {"status": "ready"}
    get(client, "/v1/topics/orders/queues/0/messages")
    metrics = client.get("/metrics").text
    assert f"tidemark_watermark_bytes {float(built.end)}" in metrics
    assert 'rocketmq_messages_out_total{topic="orders"} 10.0' in metrics
    assert 'path="/v1/topics/{topic}/queues/{queue_id}/messages",status="200"' in metrics


def test_status_has_the_group_of_a_member(built: BuiltStore, client: httpx.Client) -> None:
    assert get(client, "/v1/status")["replication"] is None
    folder = StorePaths(built.root).replication
    role = PublishedRole(folder, DiskStorage())
    MemberFiles(folder, DiskStorage()).save_state(
        GroupState(7, 3, "a.0", frozenset({"a.0"}), frozenset({"b.1"}), 2, "g")
    )
    time.sleep(0.3)  # TIDEMARK_QUERY_RECHECK_MS
    get(client, "/v1/watermark")
    shown = get(client, "/v1/status")["replication"]
    assert (shown["role"], shown["epoch"], shown["writer"]) == ("replica", 3, "a")
    assert (shown["in_sync"], shown["eligible"], shown["min_in_sync"]) == (["a"], ["b"], 2)
    role.write(3, 0, until_s=None)
    assert get(client, "/v1/status")["replication"]["role"] == "writer"


def test_status_has_disk_forecast_newest_damage_and_lagging_groups(built: BuiltStore, client: httpx.Client) -> None:
    """It has the time until the disk is full, the newest damage, and the groups that lag most; null if unknown."""
    status = get(client, "/v1/status")
    assert (status["pipeline"]["behind_since_ms"], status["newest_corruption"]) == (None, None)
    assert (status["writer"]["flush_mode"], status["writer"]["last_append_ms"]) == (None, None)  # there never was one
    assert status["groups"] == {"count": 0, "most_lag": []}
    growth = status["log"]["growth"]
    assert growth["size_bytes"] == built.end
    assert status["disk"]["full_in_s"] == pytest.approx(status["disk"]["free_bytes"] / growth["bytes_per_s"], rel=0.1)
    for group, offset in (("slow", 2), ("fast", 9), ("done", 10)):
        client.put(f"/v1/groups/{group}/topics/orders/queues/0/offset", json={"offset": offset}).raise_for_status()
    entry = {"size": 9, "reason": "BODY_CRC", "topic": "orders", "queue_id": 0, "queue_offset": 1}
    lines = [json.dumps({"physical_offset": place, "found_ms": -place, **entry}) for place in (100, 200)]
    (built.root / "tidemark" / "indexer" / "ledger-0.jsonl").write_text("\n".join(lines))
    status = get(client, "/v1/status")
    assert status["newest_corruption"]["physical_offset"] == 100
    assert status["groups"] == {"count": 3, "most_lag": [{"group": "slow", "lag": 8}, {"group": "fast", "lag": 1}]}


def test_status_omits_the_lag_above_the_offset_limit(built: BuiltStore) -> None:
    """The status is polled often, and must be cheap."""
    with serve_query(built.root, query_max_status_offsets=1) as client:
        for queue_id, lags in ((0, [{"group": "slow", "lag": 10}]), (1, None)):
            path = f"/v1/groups/slow/topics/orders/queues/{queue_id}/offset"
            client.put(path, json={"offset": 0}).raise_for_status()
            assert get(client, "/v1/status")["groups"] == {"count": 1, "most_lag": lags}


def test_corruptions_are_listed_once(built: BuiltStore, client: httpx.Client) -> None:
    """All ledgers are merged, ascending, page by page; a line that a crash cut off is ignored."""
    entry = {"size": 9, "reason": "BODY_CRC", "topic": "orders", "queue_id": 0, "queue_offset": 1, "found_ms": 5}
    folder = built.root / "tidemark" / "indexer"
    for shard, places in enumerate(((300, 100), (200, 300))):
        lines = [json.dumps({"physical_offset": place, **entry}) for place in places]
        (folder / f"ledger-{shard}.jsonl").write_text("\n".join(lines) + '\n{"physical_off')
    page = get(client, "/v1/corruptions", limit=2)
    assert ([one["physical_offset"] for one in page["corruptions"]], page["total"]) == ([100, 200], 3)
    rest = get(client, "/v1/corruptions", limit=2, after=page["next_after"])
    assert rest["corruptions"] == [{"physical_offset": 300, **entry}]
    assert rest["next_after"] is None
    assert get(client, "/v1/status")["corruptions"] == 3


def test_a_store_that_was_never_indexed_is_not_ready(built: BuiltStore) -> None:
    """It answers with empty results; readyz gives the reason."""
    (built.root / "tidemark" / "indexer" / "marks").unlink()
    with serve_query(built.root) as client:
        response = client.get("/readyz")
        assert (response.status_code, response.json()["reason"]) == (503, "CORRUPT_STORE")
        answer = get(client, "/v1/topics/orders/queues/0/messages")
        assert (answer["status"], answer["watermark"]["physical_offset"]) == ("NO_MESSAGE_IN_QUEUE", 0)
        assert get(client, "/healthz") == {"status": "ok"}


def test_a_read_only_store_is_served(built: BuiltStore) -> None:
    """Not even an empty folder is created; consumer offsets are refused."""
    (built.root / "tidemark" / "query").write_bytes(b"no folder can be made here")
    before = sorted(built.root.rglob("*"))
    with serve_query(built.root) as client:
        assert len(get(client, "/v1/topics/orders/queues/0/messages")["messages"]) == 10
        response = client.put("/v1/groups/g/topics/orders/queues/0/offset", json={"offset": 1})
        assert (response.status_code, response.json()["reason"]) == (503, "STORE_LOCKED")
        assert get(client, "/v1/groups")["groups"] == []
    assert sorted(built.root.rglob("*")) == before


def test_concurrent_requests_are_answered_correctly(built: BuiltStore, client: httpx.Client) -> None:
    """Many run concurrently while messages arrive: every answer is right."""
    failures: list[str] = []
    stop = time.monotonic() + 1.5

    def pull() -> None:
        with httpx.Client(base_url=client.base_url, timeout=30) as own:
            while time.monotonic() < stop:
                answer = get(own, "/v1/topics/orders/queues/0/messages", offset=5, body_encoding="utf8")
                bodies = [message["body"] for message in answer["messages"]]
                if bodies != [f"m{number}" for number in range(5, 5 + len(bodies))] or answer["skipped"]:
                    failures.append(str(answer))

    threads = [threading.Thread(target=pull) for _ in range(4)]
    for thread in threads:
        thread.start()
    while time.monotonic() < stop:
        built.append("orders", f"m{built.next['orders', 0]}".encode())
        built.publish()
    for thread in threads:
        thread.join()
    assert failures == []
