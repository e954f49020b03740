"""The query service's metrics of itself and of the store."""

from __future__ import annotations

import json
import socket

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query

pytestmark = pytest.mark.integration
PIPELINED = 500


def values(client: httpx.Client, name: str) -> dict[str, float]:
    """Return the values of the samples of *name* by their labels' text."""
    found: dict[str, float] = {}
    for line in client.get("/metrics").text.splitlines():
        sample, _, value = line.rpartition(" ")
        if sample.partition("{")[0] == name:
            found[sample.removeprefix(name)] = float(value)
    return found


def test_lag_is_the_number_of_uncommitted_messages(built: BuiltStore, client: httpx.Client) -> None:
    """It is by topic and group; a deleted queue gives no lag; latency counts from the oldest remaining message."""
    client.put("/v1/groups/billing/topics/orders/queues/0/offset", json={"offset": 7})
    client.put("/v1/groups/billing/topics/batches/queues/0/offset", json={"offset": 3})
    path = built.root / "config" / "consumerOffset.json"
    stored = json.loads(path.read_text())
    stored["offsetTable"]["gone@billing"] = {"0": 1}
    with serve_query(built.root) as other:  # not the owner, so it reads the file
        path.write_text(json.dumps(stored))
        lags = values(other, "rocketmq_consumer_lag_messages")
        latencies = values(other, "rocketmq_consumer_lag_latency")
    billing = '{{consumer_group="billing",topic="{}"}}'.format
    assert lags == {billing("batches"): 0, billing("orders"): 3}
    assert latencies[billing("batches")] == 0
    assert latencies[billing("orders")] > 0


def test_an_unreadable_queue_does_not_hide_other_metrics(built: BuiltStore, client: httpx.Client) -> None:
    """Its group has no lag, the other one has; the page is served."""
    for topic in ("orders", "batches"):
        client.put(f"/v1/groups/billing/topics/{topic}/queues/0/offset", json={"offset": 1})
    (first,) = (built.root / "batchconsumequeue" / "batches" / "0").iterdir()
    first.with_name(f"{first.stat().st_size:020d}").write_bytes(b"of another size")
    with serve_query(built.root) as other:
        assert other.get("/v1/groups/billing").json()["reason"] == "STORE_CONTRADICTION"
        assert values(other, "rocketmq_consumer_lag_messages") == {'{consumer_group="billing",topic="orders"}': 9}


def test_group_topic_pairs_above_the_limit_share_the_label_other(built: BuiltStore) -> None:
    """Their messages are summed."""
    with serve_query(built.root, metrics_max_topics=1) as client:
        for group in ("a", "b", "c"):
            client.put(f"/v1/groups/{group}/topics/orders/queues/0/offset", json={"offset": 8})
        assert values(client, "rocketmq_consumer_lag_messages") == {
            '{consumer_group="a",topic="orders"}': 2,
            '{consumer_group="other",topic="other"}': 4,
        }


def test_pulled_messages_are_counted_by_topic(built: BuiltStore) -> None:
    """Messages and response bytes are counted; the second topic exceeds the limit of labels."""
    with serve_query(built.root, metrics_max_topics=1) as client:
        answer = client.get("/v1/topics/orders/queues/0/messages", params={"max_messages": 4})
        client.get("/v1/topics/batches/queues/0/messages")
        client.get("/v1/topics/orders/queues/1/messages")
        assert values(client, "rocketmq_messages_out_total") == {'{topic="orders"}': 4, '{topic="other"}': 3}
        assert values(client, "rocketmq_throughput_out_total")['{topic="orders"}'] == len(answer.content)


def test_damage_is_counted_by_reason(built: BuiltStore, client: httpx.Client) -> None:
    """The ledger is read again when it has grown."""
    assert values(client, "tidemark_damaged_places") == {'{reason="NONE"}': 0}
    entry = {"size": 9, "reason": "BODY_CRC", "topic": "orders", "queue_id": 0, "queue_offset": 1, "found_ms": 5}
    ledger = built.root / "tidemark" / "indexer" / "ledger-0.jsonl"
    for places in (1, 2):
        with ledger.open("a") as file:
            file.write(json.dumps({"physical_offset": places, **entry}) + "\n")
        assert values(client, "tidemark_damaged_places") == {'{reason="NONE"}': 0, '{reason="BODY_CRC"}': places}


def test_a_store_without_a_pipeline_has_an_infinite_alive_age(built: BuiltStore, client: httpx.Client) -> None:
    """The age is +Inf, which exceeds any alert's threshold; the log's age is that of its first record."""
    assert values(client, "tidemark_pipeline_alive_age_seconds") == {"": float("inf")}
    assert values(client, "rocketmq_storage_dispatch_behind_bytes") == {"": 0}
    (age_ms,) = values(client, "rocketmq_storage_message_reserve_time").values()
    assert age_ms > 0
    assert values(client, "tidemark_watermark_bytes") == {"": built.end}


@pytest.mark.parametrize("topics", [5_000, pytest.param(100_000, marks=pytest.mark.exhaustive)])
def test_unknown_topics_in_requests_add_no_labels(client: httpx.Client, topics: int) -> None:
    """Neither a path nor a missing topic becomes a label."""
    client.get("/v1/topics/none/queues/0/messages")
    client.get("/nowhere")
    client.get("/metrics")
    before = client.get("/metrics").text
    with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as connection:
        for first in range(0, topics, PIPELINED):
            ask_for(connection, range(first, first + PIPELINED))
    after = client.get("/metrics").text
    assert "asked-for" not in after
    assert len(after.splitlines()) == len(before.splitlines())
    assert f'path="/v1/topics/{{topic}}/queues/{{queue_id}}/messages",status="404"}} {topics + 1}.0' in after


def ask_for(connection: socket.socket, numbers: range) -> None:
    """Send a pull of each of these topics at once."""
    request = "GET /v1/topics/asked-for-{}/queues/0/messages HTTP/1.1\r\nHost: localhost\r\n\r\n".format
    connection.sendall("".join(map(request, numbers)).encode())
    answered, rest = 0, b""
    while answered < len(numbers):
        received = connection.recv(1 << 16)
        assert received, "the server has closed the connection"
        parts = (rest + received).split(b"HTTP/1.1 404")
        answered += len(parts) - 1
        rest = parts[-1][-len(b"HTTP/1.1 404") :]
